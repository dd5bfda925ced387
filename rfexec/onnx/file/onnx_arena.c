/* An arena for the many small structs of a model: a chain of blocks, of which the first is filled.
 */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/file/onnx_model.h"

#define ARENA_BLOCK_BYTES ((size_t)64 * 1024)
/* Block size of large models. The C library allocates so large a block directly from the system and
 * returns it when it is freed. Small blocks would stay in the C library's heap. */
#define ARENA_LARGE_BLOCK_BYTES ((size_t)1 << 20)
#define ARENA_ALIGN ((size_t)16)

struct arena_block {
    struct arena_block *next;
    size_t used, size;
};

struct rfx_arena {
    struct rfx_memory *mem;
    struct arena_block *blocks; /* the first one is being filled */
    size_t bytes;               /* of all blocks */
};

#define BLOCK_HEADER ((sizeof(struct arena_block) + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1))

struct rfx_arena *rfx_arena_create(struct rfx_memory *mem) {
    struct rfx_arena *arena = rfx_memory_calloc(mem, 1, sizeof *arena);
    if (arena != NULL) arena->mem = mem;
    return arena;
}

void rfx_arena_free(struct rfx_arena *arena) {
    if (arena == NULL) return;
    while (arena->blocks != NULL) {
        struct arena_block *next = arena->blocks->next;
        rfx_memory_release(arena->mem, arena->blocks);
        arena->blocks = next;
    }
    rfx_memory_release(arena->mem, arena);
}

void *rfx_arena_alloc(struct rfx_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!rfx_checked_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    if (arena->blocks == NULL || arena->blocks->size - arena->blocks->used < bytes) {
        bool large = arena->bytes >= ARENA_LARGE_BLOCK_BYTES;
        size_t usual = large ? ARENA_LARGE_BLOCK_BYTES : ARENA_BLOCK_BYTES;
        size_t room = bytes > usual / 4 ? bytes : usual;
        struct arena_block *block = rfx_memory_alloc(arena->mem, BLOCK_HEADER + room);
        if (block == NULL) return NULL;
        block->used = 0;
        block->size = room;
        block->next = arena->blocks;
        arena->bytes += room;
        arena->blocks = block;
    }
    char *at = (char *)arena->blocks + BLOCK_HEADER + arena->blocks->used;
    arena->blocks->used += bytes;
    return memset(at, 0, bytes);
}
