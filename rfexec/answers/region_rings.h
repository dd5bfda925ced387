/* The rings of a region, made from the rectangles of its components. */
#ifndef RFX_RFEXEC_ANSWERS_REGION_RINGS_H
#define RFX_RFEXEC_ANSWERS_REGION_RINGS_H

#include "rfexec/answers/label_regions.h"
#include "rfexec/answers/region_store.h"

/* Buffers for the making of rings. Small ones are kept from region to region. */
struct rfx_region_buffer {
    void *block;
    size_t bytes;
};
struct rfx_region_rings {
    struct rfx_region_buffer rows, sides, points, rings;
    struct rfx_region_buffer lines; /* of rfx_region_simplify; `rings` lead there then */
    int64_t n_rings;  /* in `rings`: struct rfx_region_ring; their points are in `points` */
    int64_t edges[2]; /* of all rings: along rows, along columns */
};

/* Gives the buffer at least `bytes`, uninitialised. Statuses of rfx_region_allocate. */
RFX_NODISCARD enum rfx_status rfx_region_buffer_resize(struct rfx_region_memory *memory,
                                                       struct rfx_region_buffer *buffer,
                                                       size_t bytes, struct rfx_error *err);

/* An order of lists, which are sorted by merging ascending parts: those of rectangles have long
 * ones. */
struct rfx_region_order {
    const struct rfx_region_pool *pool; /* of the list */
    const struct rfx_region_pool *rectangles;
    bool (*before)(const struct rfx_region_order *order, int32_t a, int32_t b);
};

/* The order of rectangles by their first row, then by their first column. */
bool rfx_region_begins_before(const struct rfx_region_order *order, int32_t a, int32_t b);

/* Sorts a list, which may be empty, and returns its new head. */
int32_t rfx_region_sort_list(const struct rfx_region_order *order, int32_t list);

/* Makes the rings of a region from the list of its components, which ends with RFX_REGION_NONE,
 * and their closed rectangles. Sorts the list: *components is its new head. The rectangles keep
 * only their links; the rings are in `rings` until the next call. O(n log n) in the rectangles.
 * Statuses of rfx_region_allocate. */
RFX_NODISCARD enum rfx_status rfx_region_rings_make(struct rfx_region_memory *memory,
                                                    const struct rfx_region_pool *component_pool,
                                                    const struct rfx_region_pool *rectangle_pool,
                                                    int32_t *components,
                                                    struct rfx_region_rings *rings,
                                                    struct rfx_error *err);

/* Frees large buffers. */
void rfx_region_rings_trim(struct rfx_region_memory *memory, struct rfx_region_rings *rings);

/* Frees all buffers. */
void rfx_region_rings_release(struct rfx_region_memory *memory, struct rfx_region_rings *rings);
#endif
