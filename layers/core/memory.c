/* The tracked allocator. Each block carries a 64-byte header with its size, so that accounting
 * needs no table. Counters are C11 atomics; the limit is enforced by a compare-and-swap loop. */
#include "layers/core/memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "layers/core/checked.h"

#define LARGE_BLOCK_BYTES ((size_t)1 << 20)

struct rfx_memory {
    size_t limit_bytes;
    struct rfx_memory_hooks hooks;   /* if allocate is NULL, blocks come from the system */
    bool (*stop_wanted)(void *user); /* NULL: no stop callback */
    void *stop_user;
    atomic_size_t current_bytes;
    atomic_size_t high_water_bytes;
    atomic_size_t taken_bytes;
    atomic_size_t taken_high_water_bytes;
    atomic_size_t taken_limit_bytes; /* 0: none */
    atomic_bool taken_limit_met;
    atomic_uint_fast64_t allocation_count;
    atomic_int_fast64_t passes_left; /* number of allocations that may still succeed
                                        (rfx_memory_fail_after); negative: no limit */
    atomic_bool fails_once;          /* only the next one after them fails */
};

struct block_header {
    size_t bytes;       /* requested by the caller */
    size_t total_bytes; /* header included, as taken from the system */
    void *hooked;       /* the block that the hook returned; NULL: the block is the system's */
    bool mapped;
};

static struct rfx_memory *create(size_t limit_bytes, const struct rfx_memory_hooks *hooks) {
    struct rfx_memory *mem =
        hooks->allocate != NULL ? hooks->allocate(hooks->user, sizeof *mem) : malloc(sizeof *mem);
    if (mem == NULL) return NULL;
    mem->limit_bytes = limit_bytes;
    mem->hooks = *hooks;
    mem->stop_wanted = NULL;
    mem->stop_user = NULL;
    atomic_init(&mem->current_bytes, 0);
    atomic_init(&mem->high_water_bytes, 0);
    atomic_init(&mem->taken_bytes, 0);
    atomic_init(&mem->taken_high_water_bytes, 0);
    atomic_init(&mem->taken_limit_bytes, 0);
    atomic_init(&mem->taken_limit_met, false);
    atomic_init(&mem->allocation_count, 0);
    atomic_init(&mem->passes_left, -1);
    atomic_init(&mem->fails_once, false);
    return mem;
}

struct rfx_memory *rfx_memory_create(size_t limit_bytes) {
    static const struct rfx_memory_hooks none;
    return create(limit_bytes, &none);
}

struct rfx_memory *rfx_memory_create_with(const struct rfx_memory_hooks *hooks) {
    return create(0, hooks);
}

void rfx_memory_free(struct rfx_memory *mem) {
    if (mem == NULL) return;
    assert(atomic_load(&mem->current_bytes) == 0);
    if (mem->hooks.release != NULL)
        mem->hooks.release(mem->hooks.user, mem, sizeof *mem);
    else
        free(mem);
}

static void raise_to(atomic_size_t *high_water, size_t to) {
    size_t high = atomic_load(high_water);
    while (high < to && !atomic_compare_exchange_weak(high_water, &high, to)) {
    }
}

static bool book_taken(struct rfx_memory *mem, size_t bytes) {
    size_t limit = atomic_load(&mem->taken_limit_bytes);
    size_t now = atomic_load(&mem->taken_bytes);
    size_t next;
    do {
        bool fits = rfx_checked_add_size(now, bytes, &next) && (limit == 0 || next <= limit);
        if (!fits) {
            atomic_store(&mem->taken_limit_met, limit != 0);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&mem->taken_bytes, &now, next));
    raise_to(&mem->taken_high_water_bytes, next);
    return true;
}

static bool book_asked(struct rfx_memory *mem, size_t bytes) {
    int_fast64_t passes = atomic_load(&mem->passes_left);
    if (passes == 0) {
        if (atomic_load(&mem->fails_once)) atomic_store(&mem->passes_left, -1);
        return false;
    }
    if (passes > 0) atomic_fetch_sub(&mem->passes_left, 1);
    size_t current = atomic_load(&mem->current_bytes);
    size_t next;
    do {
        if (!rfx_checked_add_size(current, bytes, &next)) return false;
        if (mem->limit_bytes != 0 && next > mem->limit_bytes) return false;
    } while (!atomic_compare_exchange_weak(&mem->current_bytes, &current, next));
    raise_to(&mem->high_water_bytes, next);
    atomic_fetch_add(&mem->allocation_count, 1);
    return true;
}

/* Returns the bytes that a block of `total` bytes takes from the system. A block of the C library
 * is counted with RFX_ALIGNMENT_BYTES more for the C library's bookkeeping. */
static size_t taken(size_t total, bool mapped) {
    return mapped ? total : total + RFX_ALIGNMENT_BYTES;
}

static struct block_header *header_of(void *block) {
    return (struct block_header *)(void *)((char *)block - RFX_ALIGNMENT_BYTES);
}

/* Returns the bytes to request from a hook: `total` and enough to align the block. */
static size_t hooked_bytes(size_t total) {
    return total + RFX_ALIGNMENT_BYTES;
}

/* Allocates `total` aligned bytes from the hook, mmap or the C library and returns them, or NULL.
 * *hooked receives the hook's own pointer, or NULL without hooks. */
static void *take(struct rfx_memory *mem, size_t total, bool mapped, void **hooked) {
    *hooked = NULL;
    if (mem->hooks.allocate != NULL) {
        *hooked = mem->hooks.allocate(mem->hooks.user, hooked_bytes(total));
        if (*hooked == NULL) return NULL;
        return (char *)*hooked + (RFX_ALIGNMENT_BYTES - (uintptr_t)*hooked % RFX_ALIGNMENT_BYTES) %
                                     RFX_ALIGNMENT_BYTES;
    }
    if (!mapped) return aligned_alloc(RFX_ALIGNMENT_BYTES, total);
    void *raw = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return raw == MAP_FAILED ? NULL : raw;
}

void *rfx_memory_alloc(struct rfx_memory *mem, size_t bytes) {
    _Static_assert(sizeof(struct block_header) <= RFX_ALIGNMENT_BYTES, "header fits");
    if (bytes > SIZE_MAX / 2 || rfx_memory_is_stopped(mem)) return NULL;
    size_t total = rfx_align_up(bytes) + RFX_ALIGNMENT_BYTES;
    bool mapped = bytes >= LARGE_BLOCK_BYTES && mem->hooks.allocate == NULL;
    if (!book_taken(mem, taken(total, mapped))) return NULL;
    if (!book_asked(mem, bytes)) {
        atomic_fetch_sub(&mem->taken_bytes, taken(total, mapped));
        return NULL;
    }
    void *hooked, *raw = take(mem, total, mapped, &hooked);
    if (raw == NULL) {
        atomic_fetch_sub(&mem->current_bytes, bytes);
        atomic_fetch_sub(&mem->taken_bytes, taken(total, mapped));
        return NULL;
    }
    struct block_header *header = raw;
    header->bytes = bytes;
    header->total_bytes = total;
    header->hooked = hooked;
    header->mapped = mapped;
    return (char *)raw + RFX_ALIGNMENT_BYTES;
}

void *rfx_memory_calloc(struct rfx_memory *mem, size_t count, size_t size) {
    size_t bytes;
    if (!rfx_checked_mul_size(count, size, &bytes)) return NULL;
    void *block = rfx_memory_alloc(mem, bytes);
    if (block != NULL && !header_of(block)->mapped) memset(block, 0, bytes);
    return block;
}

void *rfx_memory_realloc(struct rfx_memory *mem, void *block, size_t bytes) {
    void *next = rfx_memory_alloc(mem, bytes);
    if (next == NULL || block == NULL) return next;
    size_t old = header_of(block)->bytes;
    memcpy(next, block, old < bytes ? old : bytes);
    rfx_memory_release(mem, block);
    return next;
}

void *rfx_memory_reserve(struct rfx_memory *mem, void *block, size_t *capacity, size_t wanted,
                         size_t size) {
    size_t grown, bytes;
    if (block != NULL && wanted <= *capacity) return block;
    if (!rfx_checked_mul_size(wanted, 2, &grown) || !rfx_checked_mul_size(grown, size, &bytes))
        return NULL;
    void *larger = rfx_memory_realloc(mem, block, bytes);
    if (larger != NULL) *capacity = grown;
    return larger;
}

char *rfx_memory_strdup(struct rfx_memory *mem, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = rfx_memory_alloc(mem, bytes);
    if (copy != NULL) memcpy(copy, text, bytes);
    return copy;
}

void rfx_memory_release(struct rfx_memory *mem, void *block) {
    if (block == NULL) return;
    struct block_header *header = header_of(block);
    atomic_fetch_sub(&mem->current_bytes, header->bytes);
    atomic_fetch_sub(&mem->taken_bytes, taken(header->total_bytes, header->mapped));
    if (header->hooked != NULL)
        mem->hooks.release(mem->hooks.user, header->hooked, hooked_bytes(header->total_bytes));
    else if (header->mapped)
        munmap(header, header->total_bytes);
    else
        free(header);
}

size_t rfx_memory_current_bytes(const struct rfx_memory *mem) {
    return atomic_load(&mem->current_bytes);
}

size_t rfx_memory_high_water_bytes(const struct rfx_memory *mem) {
    return atomic_load(&mem->high_water_bytes);
}

void rfx_memory_trim(const struct rfx_memory *mem) {
#ifdef __GLIBC__
    if (mem->hooks.allocate == NULL) (void)malloc_trim(0);
#else
    (void)mem;
#endif
}

size_t rfx_memory_taken_bytes(const struct rfx_memory *mem) {
    return atomic_load(&mem->taken_bytes);
}

size_t rfx_memory_taken_high_water_bytes(const struct rfx_memory *mem) {
    return atomic_load(&mem->taken_high_water_bytes);
}

size_t rfx_memory_mark(struct rfx_memory *mem) {
    size_t now = atomic_load(&mem->taken_bytes);
    atomic_store(&mem->taken_high_water_bytes, now);
    return now;
}

void rfx_memory_limit_taken(struct rfx_memory *mem, size_t bytes) {
    atomic_store(&mem->taken_limit_met, false);
    atomic_store(&mem->taken_limit_bytes, bytes);
}

bool rfx_memory_taken_limit_was_met(const struct rfx_memory *mem) {
    return atomic_load(&mem->taken_limit_met);
}

uint64_t rfx_memory_allocation_count(const struct rfx_memory *mem) {
    return atomic_load(&mem->allocation_count);
}

void rfx_memory_fail_after(struct rfx_memory *mem, int64_t k) {
    atomic_store(&mem->fails_once, false);
    atomic_store(&mem->passes_left, k);
}

void rfx_memory_fail_once(struct rfx_memory *mem, int64_t k) {
    atomic_store(&mem->fails_once, true);
    atomic_store(&mem->passes_left, k);
}

void rfx_memory_set_stop(struct rfx_memory *mem, bool (*wanted)(void *user), void *user) {
    mem->stop_wanted = wanted;
    mem->stop_user = user;
}

bool rfx_memory_is_stopped(const struct rfx_memory *mem) {
    return mem->stop_wanted != NULL && mem->stop_wanted(mem->stop_user);
}

enum rfx_status rfx_memory_check_stop(const struct rfx_memory *mem, struct rfx_error *err) {
    if (!rfx_memory_is_stopped(mem)) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped before it was done");
}

enum rfx_status rfx_memory_settle(const struct rfx_memory *mem, enum rfx_status status,
                                  struct rfx_error *err) {
    if (status != RFX_STATUS_OUT_OF_MEMORY) return status;
    enum rfx_status stop = rfx_memory_check_stop(mem, err);
    return stop != RFX_OK ? stop : status;
}

enum rfx_status rfx_memory_fail(const struct rfx_memory *mem, const char *what, size_t bytes,
                                struct rfx_error *err) {
    enum rfx_status status = rfx_memory_check_stop(mem, err);
    if (status != RFX_OK) return status;
    if (mem->limit_bytes == 0)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s: cannot allocate %zu bytes", what,
                        bytes);
    return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                    "%s: cannot allocate %zu bytes: %zu of the limit of %zu are in use", what,
                    bytes, rfx_memory_current_bytes(mem), mem->limit_bytes);
}
