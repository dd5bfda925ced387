/* The list of modes, and the shortest ways to ask for one. */
#ifndef RFX_TILER_MODES_MODES_H
#define RFX_TILER_MODES_MODES_H

#include "tiler/modes/mode.h"

extern const struct rfx_mode rfx_mode_whole;    /* node by node, full maps, or rows of them */
extern const struct rfx_mode rfx_mode_tiled;    /* part by part of a grid, stitched together */
extern const struct rfx_mode rfx_mode_streamed; /* bands of rows through all nodes, in rings */

/* The built-in modes in the planner's order; *count of them. The first computes any node: it takes
 * what the others leave. */
const struct rfx_mode *const *rfx_modes(int *count);

/* The mode of that name, or NULL. */
const struct rfx_mode *rfx_mode_find(const char *name);

/* Specifications without targets, for requests and for stages by hand. */
struct rfx_stage_spec rfx_ask_whole(void);
struct rfx_stage_spec rfx_ask_tiles(int64_t down, int64_t across);
struct rfx_stage_spec rfx_ask_bands(int64_t band_rows, int64_t strips); /* strips 0: one, or as
                                                                           the planner likes */

/* What is meant where a cut is named and nothing else. */
struct rfx_stage_spec rfx_ask_cut(void);

/* Rows per step of a node in a whole stage that runs row by row. */
int64_t rfx_row_step_rows(const struct rfx_graph *graph, int node);
#endif
