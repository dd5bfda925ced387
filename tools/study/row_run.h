/* An untiled run row by row, as two placement problems: records with slides for rfx_slides_place,
 * and tiles with lifetimes of their own for paper 004's TensorAllocate.
 *
 * Time of the records: one step per node. Time of the tiles: one per step of rows of a node, as
 * the executor runs them, so that the same bytes can be judged by both. No map takes over another's
 * bytes (in place): that is what row by row does anyway. */
#ifndef RFX_TOOLS_STUDY_ROW_RUN_H
#define RFX_TOOLS_STUDY_ROW_RUN_H

#include "layers/core/checked.h"
#include "layers/graph/graph.h"
#include "tiler/arena/placement_slides.h"
#include "tools/study/tile_placement.h"

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
