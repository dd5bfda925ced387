/* The built-in modes, and functions that make requests for them. */
#ifndef RFX_TILER_MODES_MODES_H
#define RFX_TILER_MODES_MODES_H

#include "tiler/plan/mode.h"

extern const struct rfx_mode rfx_mode_whole;    /* node by node: full maps, or rows of them */
extern const struct rfx_mode rfx_mode_tiled;    /* tile by tile of a grid, stitched together */
extern const struct rfx_mode rfx_mode_streamed; /* bands of rows pass through all nodes */

/* Return stage specifications without targets, for requests and for stages given by hand. */
struct rfx_stage_spec rfx_ask_whole(void);
struct rfx_stage_spec rfx_ask_tiles(int64_t down, int64_t across);
struct rfx_stage_spec rfx_ask_bands(
    int64_t band_rows, int64_t strips); /* strips 0: one strip, or the planner's choice */
#endif
