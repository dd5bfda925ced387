/* Tile-aware placement for stages that run row by row: a map may be written over rows of its input
 * that are no longer needed.
 *
 * This is the idea of paper 004 (tensors may share bytes as long as no two of their tiles do at one
 * time) for row tiles in the executor's order. There the collision of two tensors has a closed
 * form: one distance in each direction (struct rfx_slide). Strided tiles and the paper's own
 * algorithms: tools/study/tile_placement.h. */
#ifndef RFX_TILER_ARENA_PLACEMENT_SLIDES_H
#define RFX_TILER_ARENA_PLACEMENT_SLIDES_H

#include "layers/core/checked.h"
#include "layers/graph/graph.h"
#include "tiler/arena/placement.h"

/* Places records with slides: fills the offsets of records[n], the direction upwards[n_slides] of
 * each slide, and the arena's size. Takes the best of the paper's three orders (size, lifetime,
 * number of peers), the order of time and, unless the bound is met, a fixed number of perturbed
 * orders (few when quick, or with very many records). Two records are in at most one slide, and the
 * slides of a node are adjacent. OUT_OF_MEMORY. O(orders * n^2). */
RFX_NODISCARD enum rfx_status rfx_slides_place_greedily(struct rfx_memory *mem,
                                                        struct rfx_record *records, int n,
                                                        const struct rfx_slide *slides,
                                                        int n_slides, bool quick, size_t bound,
                                                        bool *upwards, size_t *arena_bytes,
                                                        struct rfx_error *err);

/* Places records with slides as rfx_slides_place_greedily does. Unless that placement meets the
 * bound, also spreads the records out (placement_slides.c) and keeps the better placement. */
RFX_NODISCARD enum rfx_status rfx_slides_place(struct rfx_memory *mem, struct rfx_record *records,
                                               int n, const struct rfx_slide *slides, int n_slides,
                                               bool quick, size_t bound, bool *upwards,
                                               size_t *arena_bytes, struct rfx_error *err);

/* The steps in which the rows of a map, or of its ROI, are computed. */
struct rfx_row_steps {
    struct rfx_range all;
    int64_t rows; /* rows of a step; the last step has the rows that are left */
    int64_t lead; /* the first step has this many rows less */
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

/* rfx_row_step_rows returns the rows per step of a node in a stage that runs row by row: whole
 * canonical blocks of its kernel. rfx_row_steps_of returns the node's steps of that many rows. */
int64_t rfx_row_step_rows(const struct rfx_graph *graph, int node);
struct rfx_row_steps rfx_row_steps_of(const struct rfx_graph *graph, int node, int64_t rows);

/* Computes the distances of a slide (struct rfx_slide): of the map of input k and the map that the
 * node computes step by step. */
void rfx_slide_measure(const struct rfx_graph *graph, int node, int k, struct rfx_slide *slide);

/* Adds a slide, or widens the slide that the two records already have. The slides of a node are
 * added one after the other. */
void rfx_slide_add(struct rfx_slide *slides, int *n_slides, const struct rfx_slide *slide);
#endif
