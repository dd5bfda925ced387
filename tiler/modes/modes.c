/* The built-in modes, and functions that all modes share. */
#include "tiler/modes/modes.h"

#include <string.h>

#include "tiler/plan/stage.h"

#define DEFAULT_TILES 4 /* a 4 x 4 grid: paper 003's first example */

static const struct rfx_mode *const modes[] = {&rfx_mode_whole, &rfx_mode_streamed,
                                               &rfx_mode_tiled};
enum { N_MODES = sizeof modes / sizeof modes[0] };

const struct rfx_mode *const *rfx_modes(int *count) {
    *count = N_MODES;
    return modes;
}

const struct rfx_mode *rfx_mode_find(const char *name) {
    for (int m = 0; m < N_MODES; m++)
        if (strcmp(modes[m]->name, name) == 0) return modes[m];
    return NULL;
}

struct rfx_stage_spec rfx_ask_whole(void) {
    return (struct rfx_stage_spec){.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1};
}

struct rfx_stage_spec rfx_ask_tiles(int64_t down, int64_t across) {
    return (struct rfx_stage_spec){.mode = &rfx_mode_tiled, .tiles_y = down, .tiles_x = across};
}

struct rfx_stage_spec rfx_ask_bands(int64_t band_rows, int64_t strips) {
    return (struct rfx_stage_spec){.mode = &rfx_mode_streamed,
                                   .tiles_y = 1,
                                   .tiles_x = strips > 0 ? strips : 1,
                                   .band_rows = band_rows};
}

struct rfx_stage_spec rfx_ask_cut(void) {
    return rfx_ask_tiles(DEFAULT_TILES, DEFAULT_TILES);
}

void rfx_walk_compute(struct rfx_walk *walk, int node, struct rfx_rect rect,
                      struct rfx_step *step) {
    enum rfx_node_place place = walk->stage->places[node];
    step->kind = place == RFX_PLACE_REDUCED   ? RFX_STEP_REDUCE_ADD
                 : place == RFX_PLACE_FETCHED ? RFX_STEP_FETCH
                                              : RFX_STEP_RUN;
    step->node = node;
    step->rect = rect;
    if (node != walk->plan->graph->input || rfx_rect_is_empty(rect)) return;
    step->restart = walk->restart;
    walk->restart = false;
}

struct rfx_rect rfx_walk_own_rect(const struct rfx_walk *walk, int node, int64_t y, int64_t x) {
    const struct rfx_graph *graph = walk->plan->graph;
    const struct rfx_stage *stage = walk->stage;
    enum rfx_node_place place = stage->places[node];
    return rfx_rect_from_ranges(
        rfx_stage_target_range(graph, node, place, RFX_AXIS_ROWS, stage->spec.tiles_y, y),
        rfx_stage_target_range(graph, node, place, RFX_AXIS_COLS, stage->spec.tiles_x, x));
}
