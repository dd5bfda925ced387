/* The tracked allocator. No other code of the library calls malloc and mmap, or the hooks that a
 * user of the library gave in their place.
 *
 * Invariants: 1. current_bytes is the sum of all live blocks, high_water_bytes its maximum; 2. with
 * a limit set, an allocation that would exceed it fails and changes nothing; 3. blocks are aligned
 * to RFX_ALIGNMENT_BYTES; 4. all functions may be called from several threads.
 *
 * The allocator does not know what blocks are for: breakdowns by purpose are computed by the
 * planner. The allocator can also stop work: once its stop callback returns true, every allocation
 * fails, and each caller ends as it does when memory runs out. */
#ifndef RFX_LAYERS_CORE_MEMORY_H
#define RFX_LAYERS_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

/* Bytes kept inaccessible around every buffer of an arena in builds with AddressSanitizer. */
#ifdef RFX_SANITIZE_ADDRESS
#define RFX_RED_ZONE_BYTES ((size_t)64)
#else
#define RFX_RED_ZONE_BYTES ((size_t)0)
#endif

struct rfx_memory;

/* Creates an allocator. limit_bytes 0 means no limit. Returns NULL when the system has no memory.
 */
struct rfx_memory *rfx_memory_create(size_t limit_bytes);

/* Functions that provide blocks in place of the system. If `allocate` is NULL, blocks come from the
 * system. The blocks need only malloc's alignment or less. Both functions may be called from any
 * thread. */
struct rfx_memory_hooks {
    void *(*allocate)(void *user, size_t bytes);
    /* `bytes` is the size that was passed to allocate. */
    void (*release)(void *user, void *block, size_t bytes);
    void *user;
};

/* Creates an allocator without a limit whose blocks come from `hooks`. The allocator's own
 * structure is allocated by the hooks too. Returns NULL when `allocate` does. */
struct rfx_memory *rfx_memory_create_with(const struct rfx_memory_hooks *hooks);

/* Frees the allocator; NULL is fine. All its blocks must have been freed before (asserted). */
void rfx_memory_free(struct rfx_memory *mem);

/* Returns an uninitialised block, or NULL when the limit or the system refuses it, or when work is
 * to stop. bytes 0 gives a valid block. Without hooks, blocks of 1 MiB and more come from mmap and
 * return to the system when freed. */
void *rfx_memory_alloc(struct rfx_memory *mem, size_t bytes);

/* As rfx_memory_alloc for count * size bytes, all zero. The product is overflow-checked. */
void *rfx_memory_calloc(struct rfx_memory *mem, size_t count, size_t size);

/* Grows or shrinks a block and returns it, perhaps moved; `block` NULL allocates a new one. On
 * failure returns NULL and leaves the block unchanged. */
void *rfx_memory_realloc(struct rfx_memory *mem, void *block, size_t bytes);

/* Grows an array to hold at least `wanted` elements of `size` bytes each; *capacity is the number
 * of elements it can hold now. If that is enough, returns `block`. Otherwise moves the elements to
 * a new block for 2 * wanted elements, updates *capacity and returns the new block. On failure
 * returns NULL and changes nothing. */
void *rfx_memory_reserve(struct rfx_memory *mem, void *block, size_t *capacity, size_t wanted,
                         size_t size);

/* Copies a string into a new block; returns NULL when the allocation fails. */
char *rfx_memory_strdup(struct rfx_memory *mem, const char *text);

/* Frees a block; NULL is fine. */
void rfx_memory_release(struct rfx_memory *mem, void *block);

/* Makes the C library return its freed memory to the system, if it can (malloc_trim). To be called
 * after work that has allocated much and before other large allocations. Does nothing with hooks.
 * Takes milliseconds. */
void rfx_memory_trim(const struct rfx_memory *mem);

/* Returns the bytes that the live blocks take from the system. They include headers, alignment and
 * an estimate of the system's own bookkeeping; for many small blocks these are most of the bytes.
 */
size_t rfx_memory_taken_bytes(const struct rfx_memory *mem);

/* rfx_memory_taken_high_water_bytes returns the maximum of the taken bytes since the last call of
 * rfx_memory_mark. rfx_memory_mark restarts this maximum and returns the bytes taken now. */
size_t rfx_memory_taken_high_water_bytes(const struct rfx_memory *mem);
size_t rfx_memory_mark(struct rfx_memory *mem);

/* Limits the bytes taken from the system: from now on, an allocation that would exceed `bytes`
 * fails. 0 means no limit. */
void rfx_memory_limit_taken(struct rfx_memory *mem, size_t bytes);

/* Whether the limit of rfx_memory_limit_taken has failed an allocation since it was set. */
bool rfx_memory_taken_limit_was_met(const struct rfx_memory *mem);

size_t rfx_memory_current_bytes(const struct rfx_memory *mem);
size_t rfx_memory_high_water_bytes(const struct rfx_memory *mem);

/* Returns the number of allocations that succeeded so far; tests check that `run` makes none. */
uint64_t rfx_memory_allocation_count(const struct rfx_memory *mem);

/* Lets the next k allocations succeed and fails all later ones (for tests). A negative k turns this
 * off. */
void rfx_memory_fail_after(struct rfx_memory *mem, int64_t k);

/* Lets the next k allocations succeed, fails one, and lets all later ones succeed (for tests). */
void rfx_memory_fail_once(struct rfx_memory *mem, int64_t k);

/* Sets the stop callback; NULL: none. `wanted` returns true when the work is to stop, and from then
 * on always. It is called at each allocation and by the functions below, so it has to be quick. Set
 * it while no other thread uses the allocator. */
void rfx_memory_set_stop(struct rfx_memory *mem, bool (*wanted)(void *user), void *user);

/* Calls the stop callback and returns whether the work is to stop; for loops that allocate nothing.
 */
bool rfx_memory_is_stopped(const struct rfx_memory *mem);

/* Returns CANCELLED with a text if the work is to stop, else RFX_OK. */
RFX_NODISCARD enum rfx_status rfx_memory_check_stop(const struct rfx_memory *mem,
                                                    struct rfx_error *err);

/* Returns the status of a failed allocation of `bytes` for `what` and writes the text to err. The
 * status is CANCELLED when the work is to stop, else OUT_OF_MEMORY. */
enum rfx_status rfx_memory_fail(const struct rfx_memory *mem, const char *what, size_t bytes,
                                struct rfx_error *err);

/* Returns CANCELLED with a text if `status` is OUT_OF_MEMORY and the work is to stop; otherwise
 * returns `status` unchanged. For errors that went through code which only knows that it got no
 * memory, such as an encoder. */
enum rfx_status rfx_memory_settle(const struct rfx_memory *mem, enum rfx_status status,
                                  struct rfx_error *err);
#endif
