/* The tracked allocator: the only caller of malloc and mmap in the library, or of what its user
 * gave in their place.
 *
 * Invariants: 1. current_bytes is the sum of all live blocks, high_water_bytes its maximum;
 * 2. with a limit set, an allocation that would pass it fails and changes nothing; 3. blocks are
 * aligned to RFX_ALIGNMENT_BYTES; 4. all functions may be called from several threads.
 * It does not know what blocks are for: breakdowns are the planner's business. Who created it may
 * want all work on what lies in it to stop: then nothing is allocated any more, which every
 * function knows how to end by. */
#ifndef RFX_LAYERS_CORE_MEMORY_H
#define RFX_LAYERS_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

/* Kept free and inaccessible around every buffer of an arena in builds with AddressSanitizer. */
#ifdef RFX_SANITIZE_ADDRESS
#define RFX_RED_ZONE_BYTES ((size_t)64)
#else
#define RFX_RED_ZONE_BYTES ((size_t)0)
#endif

struct rfx_memory;

/* Creates an allocator. limit_bytes 0 means no limit. NULL when the system has no memory. */
struct rfx_memory *rfx_memory_create(size_t limit_bytes);

/* Where blocks come from instead of the system, aligned as malloc's or less; NULL: there is none.
 * Both are called from any thread. */
struct rfx_memory_hooks {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *block, size_t bytes); /* as many as were asked for */
    void *user;
};

/* As rfx_memory_create without a limit; the allocator itself lies in such a block too. */
struct rfx_memory *rfx_memory_create_with(const struct rfx_memory_hooks *hooks);

/* Frees the allocator; NULL is fine. All its blocks must have been freed before (asserted). */
void rfx_memory_free(struct rfx_memory *mem);

/* Uninitialised block, or NULL when the limit or the system says no. bytes 0 gives a valid block.
 * Without hooks, blocks of 1 MiB and more come straight from mmap and go back to the system when
 * freed. */
void *rfx_memory_alloc(struct rfx_memory *mem, size_t bytes);

/* As rfx_memory_alloc, zeroed; count * size is overflow-checked. */
void *rfx_memory_calloc(struct rfx_memory *mem, size_t count, size_t size);

/* Grows or shrinks a block (NULL: allocates); on failure NULL, and the block is unchanged. */
void *rfx_memory_realloc(struct rfx_memory *mem, void *block, size_t bytes);

/* The block with room for `wanted` elements of `size` bytes, of which it has *capacity now: itself
 * where that is enough, else one for twice as many. On failure NULL, and nothing is changed. */
void *rfx_memory_reserve(struct rfx_memory *mem, void *block, size_t *capacity, size_t wanted,
                         size_t size);

/* Copies a string into a block; NULL when it does not fit. */
char *rfx_memory_strdup(struct rfx_memory *mem, const char *text);

/* Frees a block; NULL is fine. */
void rfx_memory_release(struct rfx_memory *mem, void *block);

/* Gives back to the system what was freed and lies between blocks, where the C library can: after
 * work that allocated much, before what is to fit beside it. Without hooks only; milliseconds. */
void rfx_memory_trim(const struct rfx_memory *mem);

/* What the live blocks take from the system: headers, alignment and the system's own share, which
 * of many small blocks is most. */
size_t rfx_memory_taken_bytes(const struct rfx_memory *mem);

/* The most that was taken since the last rfx_memory_mark, which begins anew and returns what is
 * taken now. */
size_t rfx_memory_taken_high_water_bytes(const struct rfx_memory *mem);
size_t rfx_memory_mark(struct rfx_memory *mem);

/* From now on fails allocations that would take more than `bytes` from the system; 0: none. */
void rfx_memory_limit_taken(struct rfx_memory *mem, size_t bytes);

/* Whether that limit has failed an allocation since it was set. */
bool rfx_memory_taken_limit_was_met(const struct rfx_memory *mem);

size_t rfx_memory_current_bytes(const struct rfx_memory *mem);
size_t rfx_memory_high_water_bytes(const struct rfx_memory *mem);

/* How many allocations succeeded so far; tests hold `run` to zero new ones. */
uint64_t rfx_memory_allocation_count(const struct rfx_memory *mem);

/* Lets the next k allocations pass and fails all later ones (for tests); negative: never fail. */
void rfx_memory_fail_after(struct rfx_memory *mem, int64_t k);

/* Who is asked whether the work is to stop; NULL: nobody. `wanted` is asked at each allocation and
 * by the functions below, so it has to be quick; once true it stays so. To be set while no other
 * thread uses the allocator. */
void rfx_memory_set_stop(struct rfx_memory *mem, bool (*wanted)(void *user), void *user);

/* Whether the work is to stop: for loops that allocate nothing. */
bool rfx_memory_is_stopped(const struct rfx_memory *mem);

/* CANCELLED with a text if it is, else RFX_OK. */
RFX_NODISCARD enum rfx_status rfx_memory_check_stop(const struct rfx_memory *mem,
                                                    struct rfx_error *err);

/* The status for a failed allocation of `bytes` for `what`, with the text in err: OUT_OF_MEMORY, or
 * CANCELLED when the work is to stop. */
enum rfx_status rfx_memory_fail(const struct rfx_memory *mem, const char *what, size_t bytes,
                                struct rfx_error *err);

/* `status`, but CANCELLED with a text instead of OUT_OF_MEMORY when the work is to stop: for what
 * may end in code that knows only that it got no memory, such as an encoder's. */
enum rfx_status rfx_memory_settle(const struct rfx_memory *mem, enum rfx_status status,
                                  struct rfx_error *err);
#endif
