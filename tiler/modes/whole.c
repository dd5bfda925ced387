/* Whole mode: computes node by node, each map at once or in steps of rows.
 *
 * If a map is computed in steps of rows, it may overwrite rows of its input that are no longer
 * needed (placement_slides.h). Its rows are then computed from the first to the last, or from the
 * last to the first. A node's weights are loaded just before the node is computed. */
#include <stdio.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/arena/placement_slides.h"
#include "tiler/modes/candidate_template.h"
#include "tiler/modes/modes.h"

struct state {
    int node;
    bool loaded;      /* this node's weights are loaded */
    int64_t row_step; /* next step of this node */
};

static void measure(const struct rfx_mode_measure *m, struct rfx_node_rows *rows,
                    int64_t *overlap_rows) {
    for (int i = 0; i < m->graph->n_nodes; i++) {
        int64_t h = rfx_rect_rows(m->graph->nodes[i].wanted);
        rows[i] = (struct rfx_node_rows){.most = h, .per_step = h, .computed = h};
    }
    *overlap_rows = 0;
}

static int64_t step_rows(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                         int node) {
    bool rows = spec->row_by_row && rfx_node_runs_by_rows(&graph->nodes[node]);
    return rows ? rfx_row_step_rows(graph, node) : 0;
}

static void sweep_rows(const struct rfx_mode_sweep *sweep, rfx_rows_adder *add, void *user) {
    const struct rfx_stage *stage = sweep->stage;
    for (int i = stage->first; i <= stage->last; i++) {
        if (!rfx_place_is_computed(stage->places[i])) continue;
        struct rfx_range all = rfx_rect_row_range(sweep->graph->nodes[i].wanted);
        int64_t step = stage->nodes[i].step_rows;
        if (step > 0) { /* groups are never computed in steps */
            struct rfx_row_steps steps = rfx_row_steps_of(sweep->graph, i, step);
            struct rfx_range first = rfx_row_step_at(&steps, 0);
            if (steps.lead > 0) add(user, i, first, 1);
            all.lo = steps.lead > 0 ? first.hi : first.lo;
        }
        int64_t full = step == 0 ? 0 : rfx_range_size(all) / step;
        if (full > 0) add(user, i, (struct rfx_range){all.lo, all.lo + step}, full);
        all.lo += full * step;
        if (all.lo < all.hi) add(user, i, all, 1);
    }
}

static int64_t units(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    (void)plan;
    return stage->last - stage->first + 1;
}

static size_t walk_bytes(const struct rfx_graph *graph) {
    (void)graph;
    return sizeof(struct state);
}

static void enter(struct rfx_walk *walk) {
    *(struct state *)walk->state = (struct state){.node = walk->stage->first};
}

static void leave_node(struct rfx_walk *walk) {
    struct state *s = walk->state;
    *s = (struct state){.node = s->node + 1};
    walk->unit++;
}

/* Returns the rows of the current node's next step and advances. *last receives whether it is the
 * node's last step. */
static struct rfx_range next_rows(struct state *s, const struct rfx_graph *graph,
                                  const struct rfx_stage_node *how, bool *last) {
    *last = how->step_rows == 0;
    if (*last) return rfx_rect_row_range(graph->nodes[s->node].wanted);
    struct rfx_row_steps steps = rfx_row_steps_of(graph, s->node, how->step_rows);
    int64_t count = rfx_row_step_count(&steps), index = s->row_step++;
    *last = s->row_step >= count;
    return rfx_row_step_at(&steps, how->upwards ? count - 1 - index : index);
}

static bool next(struct rfx_walk *walk, struct rfx_step *step) {
    struct state *s = walk->state;
    const struct rfx_stage *stage = walk->stage;
    while (s->node <= stage->last && !rfx_place_is_computed(stage->places[s->node]))
        leave_node(walk);
    if (s->node > stage->last) return false;
    int node = s->node;
    const struct rfx_stage_node *how = &stage->nodes[node];
    if (!s->loaded && how->packed.bytes != 0) {
        s->loaded = true;
        step->kind = RFX_STEP_LOAD;
        step->node = node;
        step->rect = rfx_rect_full(1, 1);
        return true;
    }
    struct rfx_rect wanted = walk->plan->graph->nodes[node].wanted;
    bool last;
    struct rfx_range rows = next_rows(s, walk->plan->graph, how, &last);
    if (last) leave_node(walk);
    rfx_walk_compute(walk, node, rfx_rect_from_ranges(rows, rfx_rect_col_range(wanted)), step);
    return true;
}

static int describe(const struct rfx_stage_spec *spec, const char *to, bool alone, char *text,
                    size_t size) {
    (void)to;
    return snprintf(text, size, "%s%s", alone ? "untiled" : "rest whole",
                    spec->row_by_row ? ", row by row" : "");
}

static const struct rfx_candidate_template templates[] = {
    {.phase = RFX_PHASE_EXACT,
     .kind = RFX_PLAN_UNTILED,
     .kind_in_tiles = RFX_PLAN_UNTILED,
     .cuts = RFX_CUTS_NONE,
     .tiles = RFX_TILES_ONE,
     .when_asked = true,
     .always = true},
};

const struct rfx_mode rfx_mode_whole = {
    .name = "whole",
    .a_mode = "a whole stage",
    .local = false,
    .once = true,
    .knows = RFX_KNOWS_ROW_BY_ROW,
    .take_over = RFX_TAKE_ANY,
    .templates = templates,
    .n_templates = sizeof templates / sizeof templates[0],
    .measure = measure,
    .step_rows = step_rows,
    .sweep_rows = sweep_rows,
    .units = units,
    .walk_bytes = walk_bytes,
    .enter = enter,
    .next = next,
    .describe = describe,
};
