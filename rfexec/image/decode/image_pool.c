/* A bump allocator over one tracked block. */
#include "rfexec/image/decode/image_pool.h"

#include "layers/core/checked.h"

enum rfx_status rfx_image_pool_reserve(struct rfx_memory *mem, struct rfx_image_pool *pool,
                                       size_t bytes, const char *what, struct rfx_error *err) {
    rfx_image_pool_release(mem, pool);
    pool->block = rfx_memory_alloc(mem, bytes);
    if (pool->block == NULL) return rfx_memory_fail(mem, what, bytes, err);
    pool->bytes = bytes;
    return RFX_OK;
}

void *rfx_image_pool_take(struct rfx_image_pool *pool, size_t bytes) {
    if (bytes > pool->bytes || rfx_align_up(bytes) > pool->bytes - pool->used) {
        pool->exhausted = true;
        return NULL;
    }
    void *block = pool->block + pool->used;
    pool->used += rfx_align_up(bytes);
    return block;
}

void rfx_image_pool_restart(struct rfx_image_pool *pool) {
    pool->used = 0;
    pool->exhausted = false;
}

void rfx_image_pool_release(struct rfx_memory *mem, struct rfx_image_pool *pool) {
    rfx_memory_release(mem, pool->block);
    *pool = (struct rfx_image_pool){0};
}
