/* An untiled run row by row, as two placement problems: records with slides for rfx_slides_place,
 * and tiles with lifetimes of their own for paper 004's TensorAllocate.
 *
 * Time of the records: one step per node. Time of the tiles: one per step of rows of a node, as
 * the executor runs them, so that the same bytes can be judged by both. No map takes over another's
 * bytes (in place): that is what row by row does anyway. */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_ROWS_H
#define RFX_TILER_PLACEMENT_PLACEMENT_ROWS_H

#include "layers/core/checked.h"
#include "layers/graph/graph.h"
#include "tiler/placement/placement.h"
#include "tiler/strategies/placement_tiles.h"

struct rfx_row_run {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed */
    int n, n_slides;
    int *map;                   /* per node: its record or -1 */
    int *nodes;                 /* [n] */
    struct rfx_record *records; /* [n] */
    struct rfx_slide *slides;
    int64_t *begin; /* [n_nodes + 1]: first time of each node's steps; [n_nodes]: the end */
};

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

/* A run of the graph in which the maps nodes[n] (rising indices) need bytes. The graph must outlive
 * it. OUT_OF_MEMORY. Free with rfx_row_run_free. */
RFX_NODISCARD enum rfx_status rfx_row_run_create(struct rfx_memory *mem,
                                                 const struct rfx_graph *graph, const int *nodes,
                                                 int n, struct rfx_row_run **out,
                                                 struct rfx_error *err);
void rfx_row_run_free(struct rfx_row_run *run);

/* rfx_slides_place: fills offsets[n], upwards[n_slides] and the arena's size. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_row_run_place(struct rfx_row_run *run, size_t *offsets,
                                                bool *upwards, size_t *arena_bytes,
                                                struct rfx_error *err);

/* The maps as row tiles: rows that are made in one step and last read in one step are a tile; a map
 * is needed whole from when it is complete to before the first step that reads it. upwards: per
 * slide, as rfx_slides_place gives it; NULL: every node from its first rows to its last. Free with
 * rfx_tiles_problem_free. */
RFX_NODISCARD enum rfx_status rfx_row_run_tiles(const struct rfx_row_run *run, const bool *upwards,
                                                struct rfx_tiles_problem **out,
                                                struct rfx_error *err);

/* Bytes that no placement can do without, whichever way each node runs: the most bytes of rows that
 * live at one time. */
RFX_NODISCARD enum rfx_status rfx_row_run_bound(const struct rfx_row_run *run, size_t *bound_bytes,
                                                struct rfx_error *err);
#endif
