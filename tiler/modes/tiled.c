/* Tiled mode (paper 003): the targets' maps are cut into a grid of tiles. All nodes before the
 * targets are computed again for each tile, with exactly the halo that the receptive field
 * requires. The tiles are stitched together in the targets' full maps. Tiles are computed row by
 * row of the grid. */
#include <stdio.h>

#include "layers/core/checked.h"
#include "tiler/modes/candidate_template.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/stage.h"

struct state {
    int node;
    int64_t y, x;                        /* the tile */
    bool ready;                          /* rows and cols belong to this tile */
    struct rfx_axis_region *rows, *cols; /* n_nodes */
};

struct row_sums {
    const struct rfx_graph *graph;
    struct rfx_node_rows *rows;
    struct rfx_tile_overlap overlap;
};

static void add_rows(void *user, const struct rfx_axis_region *regions, int64_t tiles) {
    struct row_sums *sums = user;
    rfx_tile_overlap_add(regions, sums->graph->input, &sums->overlap);
    for (int i = 0; i < sums->graph->n_nodes; i++) {
        struct rfx_node_rows *rows = &sums->rows[i];
        int64_t size = rfx_range_size(regions[i].clamped);
        rows->most = rows->per_step = rfx_max_i64(rows->most, size);
        rows->computed += size * tiles;
    }
}

static void measure(const struct rfx_mode_measure *m, struct rfx_node_rows *rows,
                    int64_t *overlap_rows) {
    struct row_sums sums = {.graph = m->graph, .rows = rows};
    for (int i = 0; i < m->graph->n_nodes; i++) rows[i] = (struct rfx_node_rows){0};
    rfx_stage_sweep(m->graph, m->places, RFX_AXIS_ROWS, m->spec->tiles_y, m->regions, add_rows,
                    &sums);
    *overlap_rows = sums.overlap.max_overlap;
}

struct tile_rows {
    const struct rfx_mode_sweep *sweep;
    rfx_rows_adder *add;
    void *user;
};

static void add_tile_rows(void *user, const struct rfx_axis_region *regions, int64_t tiles) {
    const struct tile_rows *t = user;
    const struct rfx_stage *stage = t->sweep->stage;
    for (int i = stage->first; i <= stage->last; i++)
        if (rfx_place_is_computed(stage->places[i]) && stage->places[i] != RFX_PLACE_REDUCED)
            t->add(t->user, i, regions[i].clamped, tiles);
}

static void sweep_rows(const struct rfx_mode_sweep *sweep, rfx_rows_adder *add, void *user) {
    struct tile_rows rows = {sweep, add, user};
    rfx_stage_sweep(sweep->graph, sweep->stage->places, RFX_AXIS_ROWS, sweep->stage->spec.tiles_y,
                    sweep->regions, add_tile_rows, &rows);
}

static int64_t window_rows(const struct rfx_stage_shape *shape, int input) {
    return shape->spec.tiles_x > 1 ? shape->rows[input].most : shape->overlap_rows;
}

static int64_t units(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    (void)plan;
    return stage->spec.tiles_y * stage->spec.tiles_x;
}

static size_t walk_bytes(const struct rfx_graph *graph) {
    return sizeof(struct state) + 2 * (size_t)graph->n_nodes * sizeof(struct rfx_axis_region);
}

static void enter(struct rfx_walk *walk) {
    struct state *s = walk->state;
    struct rfx_axis_region *regions = (struct rfx_axis_region *)(void *)(s + 1);
    *s = (struct state){
        .node = walk->stage->first, .rows = regions, .cols = regions + walk->plan->graph->n_nodes};
}

static void enter_tile(const struct rfx_walk *walk) {
    struct state *s = walk->state;
    const struct rfx_stage *stage = walk->stage;
    rfx_stage_regions(walk->plan->graph, stage->places, RFX_AXIS_COLS, stage->spec.tiles_x, s->x,
                      s->cols);
    rfx_stage_regions(walk->plan->graph, stage->places, RFX_AXIS_ROWS, stage->spec.tiles_y, s->y,
                      s->rows);
    s->ready = true;
}

/* Moves to the next tile. Returns false after the last one, whose regions stay set. */
static bool leave_tile(struct rfx_walk *walk) {
    struct state *s = walk->state;
    const struct rfx_stage_spec *spec = &walk->stage->spec;
    if (s->y == spec->tiles_y) return false;
    walk->unit++;
    s->node = walk->stage->first;
    s->ready = false;
    if (++s->x < spec->tiles_x) return true;
    s->x = 0;
    return ++s->y < spec->tiles_y;
}

static bool next(struct rfx_walk *walk, struct rfx_step *step) {
    struct state *s = walk->state;
    const struct rfx_stage *stage = walk->stage;
    for (;;) {
        if (s->node > stage->last || s->y == stage->spec.tiles_y)
            if (!leave_tile(walk)) return false;
        if (!s->ready) enter_tile(walk);
        int node = s->node++;
        if (!rfx_place_is_computed(stage->places[node])) continue;
        struct rfx_rect rect =
            stage->places[node] == RFX_PLACE_REDUCED
                ? rfx_walk_own_rect(walk, node, s->y, s->x)
                : rfx_rect_from_ranges(s->rows[node].clamped, s->cols[node].clamped);
        rfx_walk_compute(walk, node, rect, step);
        return true;
    }
}

static void resident_region(const struct rfx_walk *walk, int node,
                            struct rfx_resident_region *region) {
    const struct state *s = walk->state;
    region->rect = rfx_rect_from_ranges(s->rows[node].clamped, s->cols[node].clamped);
}

static int describe(const struct rfx_stage_spec *spec, const char *to, bool alone, char *text,
                    size_t size) {
    (void)alone;
    return snprintf(text, size, "to %s in %lldx%lld tiles", to, (long long)spec->tiles_y,
                    (long long)spec->tiles_x);
}

static const struct rfx_candidate_template templates[] = {
    {.phase = RFX_PHASE_TILES,
     .kind = RFX_PLAN_UNTILED,
     .kind_in_tiles = RFX_PLAN_TILES,
     .cuts = RFX_CUTS_EVERY,
     .tiles = RFX_TILES_GRID,
     .when_asked = true},
};

const struct rfx_mode rfx_mode_tiled = {
    .name = "tiled",
    .a_mode = "a tiled stage",
    .local = true,
    .trims = true,
    .knows = RFX_KNOWS_TILES_Y | RFX_KNOWS_TILES_X,
    .take_over = RFX_TAKE_SAME_TILE,
    .templates = templates,
    .n_templates = sizeof templates / sizeof templates[0],
    .measure = measure,
    .window_rows = window_rows,
    .sweep_rows = sweep_rows,
    .units = units,
    .walk_bytes = walk_bytes,
    .enter = enter,
    .next = next,
    .resident_region = resident_region,
    .describe = describe,
};
