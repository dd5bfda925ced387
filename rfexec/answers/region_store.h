/* Memory of the connected regions that are open: counted blocks, and pools of rectangles and of
 * components (label_regions.h).
 *
 * Invariants: 1. used_bytes is the sum of all live blocks and never exceeds most_bytes; 2. entries
 * of a pool never move, and have indexes of 32 bits; 3. freed entries are used again, and the
 * pool's chunks are freed only with the pool. */
#ifndef RFX_RFEXEC_ANSWERS_REGION_STORE_H
#define RFX_RFEXEC_ANSWERS_REGION_STORE_H

#include "layers/core/memory.h"

/* No entry. */
#define RFX_REGION_NONE (-1)

/* Most entries of a pool: the four corners of every rectangle have indexes of 32 bits too. */
#define RFX_REGION_MOST_ENTRIES ((size_t)1 << 29)

struct rfx_region_memory {
    struct rfx_memory *mem;
    size_t most_bytes; /* 0: no limit */
    size_t used_bytes, high_water_bytes;
    int64_t row; /* for error texts */
};

/* Allocates an uninitialised block. BUDGET_IMPOSSIBLE: it would exceed most_bytes. OUT_OF_MEMORY.
 */
RFX_NODISCARD enum rfx_status rfx_region_allocate(struct rfx_region_memory *memory, size_t bytes,
                                                  void **out, struct rfx_error *err);

/* Frees a block of `bytes`; NULL is fine. */
void rfx_region_release(struct rfx_region_memory *memory, void *block, size_t bytes);

/* Entries of one size. Each begins with an int32_t that links it to the next entry of a list. */
struct rfx_region_pool {
    size_t entry_bytes;
    unsigned char **chunks; /* of RFX_REGION_CHUNK entries */
    size_t n_chunks, capacity;
    int32_t first_free;
};
enum { RFX_REGION_CHUNK_BITS = 8, RFX_REGION_CHUNK = 1 << RFX_REGION_CHUNK_BITS };

void rfx_region_pool_init(struct rfx_region_pool *pool, size_t entry_bytes);
void rfx_region_pool_release(struct rfx_region_memory *memory, struct rfx_region_pool *pool);

/* Takes an uninitialised entry. Statuses of rfx_region_allocate; BUDGET_IMPOSSIBLE also if there
 * are RFX_REGION_MOST_ENTRIES already. */
RFX_NODISCARD enum rfx_status rfx_region_pool_take(struct rfx_region_memory *memory,
                                                   struct rfx_region_pool *pool, int32_t *out,
                                                   struct rfx_error *err);

/* Returns entry i. */
static inline void *rfx_region_pool_entry(const struct rfx_region_pool *pool, int32_t i) {
    return pool->chunks[i >> RFX_REGION_CHUNK_BITS] +
           (size_t)(i & (RFX_REGION_CHUNK - 1)) * pool->entry_bytes;
}

/* Returns the link of entry i. */
static inline int32_t *rfx_region_pool_link(const struct rfx_region_pool *pool, int32_t i) {
    return rfx_region_pool_entry(pool, i);
}

/* Gives back the list of entries from `first` to `last`. O(1). */
void rfx_region_pool_give(struct rfx_region_pool *pool, int32_t first, int32_t last);

/* Consecutive rows of a component that have the same run of pixels: columns [x0, x1). */
struct rfx_region_rectangle {
    int32_t next; /* of the same component */
    int32_t x0, x1, y0;
    int32_t y1; /* undefined while the next row may continue the rectangle */
};

/* Pixels that are joined by sides. The components of a region (several only with connectivity 8)
 * form a ring by `next` and `previous`. */
struct rfx_region_component {
    int32_t next, previous;
    int32_t parent;      /* the component that it was merged with, or itself */
    int32_t group;       /* a component of the same region, and so on to the region's root */
    int32_t first, last; /* rectangles */
    int32_t seen;        /* of a root: the last row that has changed the region, or -1 */
    int32_t largest;     /* score, as a key (label_regions.c) */
    int32_t first_side;  /* while rings are made: of its vertical sides */
};

static inline struct rfx_region_rectangle *rfx_region_rectangle_at(
    const struct rfx_region_pool *pool, int32_t i) {
    return rfx_region_pool_entry(pool, i);
}

static inline struct rfx_region_component *rfx_region_component_at(
    const struct rfx_region_pool *pool, int32_t i) {
    return rfx_region_pool_entry(pool, i);
}
#endif
