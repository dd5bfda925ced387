/* Counts a plan's steps as sums of products of row counts and column counts, and counts its
 * groups. */
#include "tiler/search/plan_counts.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/schedule.h"
#include "tiler/plan/stage.h"

/* The column ranges of a node that are cut into the same number of strips inside a group, so that
 * the same rows are computed for all of them. A node that is not a group counts as a group of one
 * map in one strip. */
struct columns {
    int64_t strips;
    int64_t parts;                     /* number of column ranges */
    int64_t cols[RFX_GROUP_MAX_NODES]; /* columns computed of each map, in all ranges */
    int64_t steps, row_pieces;         /* row steps of a tile, and the pieces they are cut into */
    int64_t rows[RFX_GROUP_MAX_NODES]; /* rows computed of each map, in all steps of a tile */
    int next;                          /* next entry of the same node; -1: none */
};

/* The stage being counted. */
struct counter {
    const struct rfx_graph *graph;
    const struct rfx_stage *stage;
    int *first;              /* per node: index into columns; -1: none */
    struct columns *columns; /* [n] */
    int n;
    size_t capacity;
    bool out_of_memory;
};

static const struct rfx_group_attr *group_of(const struct counter *c, int node) {
    const struct rfx_node *n = &c->graph->nodes[node];
    return n->op == RFX_OP_GROUP ? &n->attr.group : NULL;
}

static int count_maps(const struct rfx_group_attr *group) {
    return group == NULL ? 1 : group->last - group->first + 1;
}

/* Computes how many positions of each map are computed along an axis. */
static void list_made(const struct rfx_group_attr *group, enum rfx_axis axis,
                      struct rfx_range range, int64_t parts, int64_t *made) {
    if (group != NULL)
        rfx_group_made(group, (int)axis, range, parts, made);
    else
        made[0] = rfx_range_size(range);
}

/* Returns whether the stage runs the node itself. A reduction only takes values that other nodes
 * compute. */
static bool is_run(const struct rfx_stage *stage, int node) {
    return stage->places[node] >= RFX_PLACE_LOCAL && stage->places[node] != RFX_PLACE_REDUCED;
}

/* Returns the node's entry for a number of strips, adding it if necessary; NULL: out of memory. */
static struct columns *find_columns(struct counter *c, int node, int64_t strips) {
    for (int k = c->first[node]; k >= 0; k = c->columns[k].next)
        if (c->columns[k].strips == strips) return &c->columns[k];
    struct columns *columns = rfx_memory_reserve(c->graph->mem, c->columns, &c->capacity,
                                                 (size_t)c->n + 1, sizeof *c->columns);
    if (columns == NULL) {
        c->out_of_memory = true;
        return NULL;
    }
    c->columns = columns;
    c->columns[c->n] = (struct columns){.strips = strips, .next = c->first[node]};
    c->first[node] = c->n;
    return &c->columns[c->n++];
}

static void add_columns(struct counter *c, int node, struct rfx_range cols, int64_t parts) {
    const struct rfx_group_attr *group = group_of(c, node);
    int64_t made[RFX_GROUP_MAX_NODES], width = rfx_range_size(cols);
    if (width == 0 || c->out_of_memory) return;
    int64_t strips = group == NULL ? 1 : rfx_group_strips(group, width);
    struct columns *columns = find_columns(c, node, strips);
    if (columns == NULL) return;
    list_made(group, RFX_AXIS_COLS, cols, strips, made);
    columns->parts += parts;
    for (int i = 0; i < count_maps(group); i++) columns->cols[i] += made[i] * parts;
}

static void add_parts(void *user, const struct rfx_axis_region *regions, int64_t parts) {
    struct counter *c = user;
    for (int i = c->stage->first; i <= c->stage->last; i++)
        if (is_run(c->stage, i)) add_columns(c, i, regions[i].clamped, parts);
}

static void add_rows(void *user, int node, struct rfx_range rows, int64_t times) {
    struct counter *c = user;
    const struct rfx_group_attr *group = group_of(c, node);
    int64_t made[RFX_GROUP_MAX_NODES], height = rfx_range_size(rows);
    if (height == 0) return;
    for (int k = c->first[node]; k >= 0; k = c->columns[k].next) {
        struct columns *columns = &c->columns[k];
        int64_t pieces = group == NULL ? 1 : rfx_group_row_parts(group, height, columns->strips);
        list_made(group, RFX_AXIS_ROWS, rows, pieces, made);
        columns->steps += times;
        columns->row_pieces += pieces * times;
        for (int i = 0; i < count_maps(group); i++) columns->rows[i] += made[i] * times;
    }
}

static uint64_t macs_of(const struct counter *c, int node, const struct columns *columns) {
    const struct rfx_group_attr *group = group_of(c, node);
    const struct rfx_graph *graph = group == NULL ? c->graph : group->base;
    int first = group == NULL ? node : group->first;
    uint64_t macs = 0;
    for (int i = 0; i < count_maps(group); i++)
        macs += rfx_op_macs(graph, &graph->nodes[first + i],
                            rfx_rect_full(columns->rows[i], columns->cols[i]));
    return macs;
}

static void multiply(const struct counter *c, struct rfx_node_counts *counts) {
    for (int i = c->stage->first; i <= c->stage->last; i++)
        for (int k = c->first[i]; k >= 0; k = c->columns[k].next) {
            const struct columns *columns = &c->columns[k];
            if (columns->steps == 0) continue;
            counts[i].macs += macs_of(c, i, columns);
            counts[i].steps += columns->steps * columns->parts;
            counts[i].pieces += columns->row_pieces * columns->strips * columns->parts;
        }
}

static void count_stage(struct counter *c, struct rfx_mode_sweep *sweep,
                        struct rfx_node_counts *counts) {
    const struct rfx_stage *stage = sweep->stage;
    c->stage = stage;
    c->n = 0;
    for (int i = 0; i < c->graph->n_nodes; i++) c->first[i] = -1;
    if (rfx_stage_cuts_cols(&stage->spec)) {
        rfx_stage_sweep(c->graph, stage->places, RFX_AXIS_COLS, stage->spec.tiles_x, sweep->regions,
                        add_parts, c);
    } else {
        for (int i = stage->first; i <= stage->last; i++)
            if (is_run(stage, i))
                add_columns(c, i, rfx_rect_col_range(c->graph->nodes[i].wanted), 1);
    }
    stage->spec.mode->sweep_rows(sweep, add_rows, c);
    multiply(c, counts);
}

static uint64_t sum_macs(const struct rfx_node_counts *counts, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += counts[i].macs;
    return sum;
}

/* Counts all stages. macs receives the MACs of each stage; it may be NULL. */
static enum rfx_status count_stages(const struct rfx_plan *plan, struct rfx_node_counts *counts,
                                    uint64_t *macs, struct rfx_error *err) {
    struct rfx_memory *mem = plan->mem;
    size_t n = (size_t)plan->graph->n_nodes;
    struct counter c = {.graph = plan->graph, .first = rfx_memory_calloc(mem, n, sizeof *c.first)};
    struct rfx_mode_sweep sweep = {
        .graph = plan->graph,
        .done = rfx_memory_calloc(mem, RFX_MODE_SCRATCH * n, sizeof *sweep.done),
        .regions = rfx_memory_calloc(mem, RFX_SWEEP_REGIONS * n, sizeof *sweep.regions),
    };
    c.out_of_memory = c.first == NULL || sweep.done == NULL || sweep.regions == NULL;
    for (int s = 0; s < plan->n_stages && !c.out_of_memory && !rfx_memory_is_stopped(mem); s++) {
        uint64_t before = macs == NULL ? 0 : sum_macs(counts, n);
        sweep.stage = &plan->stages[s];
        count_stage(&c, &sweep, counts);
        if (macs != NULL) macs[s] = sum_macs(counts, n) - before;
    }
    rfx_memory_release(mem, c.first);
    rfx_memory_release(mem, c.columns);
    rfx_memory_release(mem, sweep.done);
    rfx_memory_release(mem, sweep.regions);
    if (c.out_of_memory) return rfx_memory_fail(mem, "counts of steps", n * sizeof *c.columns, err);
    return rfx_memory_check_stop(mem, err);
}

static enum rfx_status count_by_steps(const struct rfx_plan *plan, struct rfx_node_counts *counts,
                                      uint64_t *stage_macs, struct rfx_error *err) {
    struct rfx_schedule *schedule;
    struct rfx_step step;
    enum rfx_status status = rfx_schedule_create(plan, &schedule, err);
    if (status != RFX_OK) return status;
    memset(counts, 0, (size_t)plan->graph->n_nodes * sizeof *counts);
    if (stage_macs != NULL) memset(stage_macs, 0, (size_t)plan->n_stages * sizeof *stage_macs);
    while (status == RFX_OK && rfx_schedule_next(schedule, &step)) {
        status = rfx_memory_check_stop(plan->mem, err);
        if (step.kind != RFX_STEP_RUN) continue;
        const struct rfx_node *node = &plan->graph->nodes[step.node];
        const struct rfx_group_attr *group = node->op == RFX_OP_GROUP ? &node->attr.group : NULL;
        int64_t strips = group == NULL ? 1 : rfx_group_strips(group, rfx_rect_cols(step.rect));
        int64_t rows = rfx_rect_rows(step.rect);
        uint64_t macs = rfx_op_macs(plan->graph, node, step.rect);
        counts[step.node].macs += macs;
        if (stage_macs != NULL) stage_macs[step.stage] += macs;
        counts[step.node].steps++;
        counts[step.node].pieces +=
            group == NULL ? 1 : strips * rfx_group_row_parts(group, rows, strips);
    }
    rfx_schedule_free(schedule);
    return status;
}

enum rfx_status rfx_plan_count_by_steps(const struct rfx_plan *plan, struct rfx_node_counts *counts,
                                        struct rfx_error *err) {
    return count_by_steps(plan, counts, NULL, err);
}

static enum rfx_status count(const struct rfx_plan *plan, struct rfx_node_counts *counts,
                             uint64_t *macs, struct rfx_error *err) {
    for (int s = 0; s < plan->n_stages; s++)
        if (plan->stages[s].spec.mode->sweep_rows == NULL)
            return count_by_steps(plan, counts, macs, err);
    memset(counts, 0, (size_t)plan->graph->n_nodes * sizeof *counts);
    return count_stages(plan, counts, macs, err);
}

enum rfx_status rfx_plan_count_nodes(const struct rfx_plan *plan, struct rfx_node_counts *counts,
                                     struct rfx_error *err) {
    return count(plan, counts, NULL, err);
}

enum rfx_status rfx_plan_count_step_macs(const struct rfx_plan *plan, uint64_t *all,
                                         uint64_t *stages, struct rfx_error *err) {
    size_t n = (size_t)plan->graph->n_nodes;
    struct rfx_node_counts *counts = rfx_memory_calloc(plan->mem, n, sizeof *counts);
    if (counts == NULL)
        return rfx_memory_fail(plan->mem, "counts of steps", n * sizeof *counts, err);
    enum rfx_status status = count(plan, counts, stages, err);
    if (status == RFX_OK && all != NULL) *all = sum_macs(counts, n);
    rfx_memory_release(plan->mem, counts);
    return status;
}

struct rfx_plan_group_counts rfx_plan_count_groups(const struct rfx_plan *plan) {
    struct rfx_plan_group_counts counts = {0};
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (!rfx_node_is_input(node) && !rfx_node_is_constant(node)) counts.layers++;
        if (node->op != RFX_OP_GROUP) continue;
        const struct rfx_group_attr *g = &node->attr.group;
        counts.groups++;
        counts.grouped += g->last - g->first + 1;
        counts.most_cols = rfx_max_i64(counts.most_cols, g->strip_cols);
        counts.most_rows = rfx_max_i64(counts.most_rows, g->step_rows);
    }
    return counts;
}

enum rfx_status rfx_plan_list_groups(const struct rfx_plan *plan, struct rfx_plan_group *groups,
                                     struct rfx_error *err) {
    size_t n_nodes = (size_t)plan->graph->n_nodes;
    struct rfx_node_counts *counts = rfx_memory_calloc(plan->mem, n_nodes, sizeof *counts);
    if (counts == NULL)
        return rfx_memory_fail(plan->mem, "groups of a plan", n_nodes * sizeof *counts, err);
    enum rfx_status status = rfx_plan_count_nodes(plan, counts, err);
    int n = 0;
    for (int i = 0; status == RFX_OK && i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (node->op != RFX_OP_GROUP) continue;
        groups[n++] = (struct rfx_plan_group){
            .attr = &node->attr.group,
            .ring_bytes = rfx_group_ring_bytes(&node->attr.group),
            .steps = counts[i].steps,
            .items = counts[i].pieces,
        };
    }
    rfx_memory_release(plan->mem, counts);
    return status;
}
