/* An untiled run row by row as a placement problem, in two forms: records with slides for
 * rfx_slides_place, and tiles for TensorAllocate of paper 004.
 *
 * For records, each node is one time step. For tiles, each step of rows of a node is one, as in the
 * executor, so that both forms can be compared. No map is computed in place of another: row by row
 * does that anyway. */
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
    int64_t *begin; /* [n_nodes + 1]: time of each node's first step; [n_nodes]: the end */
};

/* Describes a run in which the maps nodes[n] (increasing indices) need memory. The graph must
 * outlive it. OUT_OF_MEMORY. Free with rfx_row_run_free. */
RFX_NODISCARD enum rfx_status rfx_row_run_create(struct rfx_memory *mem,
                                                 const struct rfx_graph *graph, const int *nodes,
                                                 int n, struct rfx_row_run **out,
                                                 struct rfx_error *err);
void rfx_row_run_free(struct rfx_row_run *run);

/* Places the maps with rfx_slides_place: writes offsets[n], upwards[n_slides] and the size of the
 * arena. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_row_run_place(struct rfx_row_run *run, size_t *offsets,
                                                bool *upwards, size_t *arena_bytes,
                                                struct rfx_error *err);

/* Describes the maps as tiles of rows. Rows that are computed in one step and last read in one step
 * are one tile. A map is needed as a whole from its completion to the first step that reads it.
 * upwards: per slide, as written by rfx_row_run_place; NULL: every node runs from its first rows to
 * its last. Free with rfx_tiles_problem_free. */
RFX_NODISCARD enum rfx_status rfx_row_run_tiles(const struct rfx_row_run *run, const bool *upwards,
                                                struct rfx_tiles_problem **out,
                                                struct rfx_error *err);

/* Computes a lower bound for every placement and every direction of the nodes: the most bytes of
 * rows that are live at one time. */
RFX_NODISCARD enum rfx_status rfx_row_run_bound(const struct rfx_row_run *run, size_t *bound_bytes,
                                                struct rfx_error *err);
#endif
