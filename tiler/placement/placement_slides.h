/* TODO */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_SLIDES_H
#define RFX_TILER_PLACEMENT_PLACEMENT_SLIDES_H

#include "layers/core/checked.h"
#include "layers/graph/graph.h"
#include "tiler/placement/placement.h"

/* Fills the offsets of records[n], the direction upwards[n_slides] of each slide, and the arena's
 * size: the best over the paper's three orders (size, lifetime, number of peers), order of time,
 * and, unless the bound is met, a fixed number of reshuffled ones (few when quick, or of very many
 * records). Two records are in one slide at most, and slides of a node follow each other.
 * OUT_OF_MEMORY. O(orders * n^2). */
RFX_NODISCARD enum rfx_status rfx_slides_place_greedily(struct rfx_memory *mem,
                                                        struct rfx_record *records, int n,
                                                        const struct rfx_slide *slides,
                                                        int n_slides, bool quick, size_t bound,
                                                        bool *upwards, size_t *arena_bytes,
                                                        struct rfx_error *err);

/* The same, or, unless the bound is met, what is better: rows of slides spread out
 * (placement_spread.c). */
RFX_NODISCARD enum rfx_status rfx_slides_place(struct rfx_memory *mem, struct rfx_record *records,
                                               int n, const struct rfx_slide *slides, int n_slides,
                                               bool quick, size_t bound, bool *upwards,
                                               size_t *arena_bytes, struct rfx_error *err);

/* Steps of rows in which a map, or what is wanted of one, is made. */
struct rfx_row_steps {
    struct rfx_range all;
    int64_t rows; /* of a step; of the first one `lead` fewer, of the last one what is left */
    int64_t lead;
};

static inline int64_t rfx_row_step_count(const struct rfx_row_steps *steps) {
    return rfx_ceil_div(rfx_range_size(steps->all) + steps->lead, steps->rows);
}

static inline struct rfx_range rfx_row_step_at(const struct rfx_row_steps *steps, int64_t index) {
    int64_t lo = steps->all.lo - steps->lead + index * steps->rows;
    struct rfx_range rows = {rfx_max_i64(lo, steps->all.lo),
                             rfx_min_i64(lo + steps->rows, steps->all.hi)};
    return rows;
}

/* Rows per step of a node in a stage that runs row by row: whole canonical blocks of its kernel;
 * and its steps, of so many rows. */
int64_t rfx_row_step_rows(const struct rfx_graph *graph, int node);
struct rfx_row_steps rfx_row_steps_of(const struct rfx_graph *graph, int node, int64_t rows);

/* Fills the distances of a slide: of input k's map and the map that the node makes, a step of rows
 * at a time (struct rfx_slide). */
void rfx_slide_measure(const struct rfx_graph *graph, int node, int k, struct rfx_slide *slide);

/* Adds a slide, or widens the one that the two records have already; slides of one node are added
 * one after the other. */
void rfx_slide_add(struct rfx_slide *slides, int *n_slides, const struct rfx_slide *slide);
#endif
