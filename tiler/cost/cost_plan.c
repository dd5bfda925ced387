/* Counts of a finished plan, stage by stage from its specifications; see cost.h. */
#include "tiler/cost/cost.h"
#include "tiler/plan/stage.h"

/* Tables of one stage, made anew for each. */
struct tables {
    struct rfx_node_rows *rows;
    struct rfx_tile_extent *cols;
    struct rfx_axis_region *regions;
    int64_t *done;
};

static void release(struct rfx_memory *mem, struct tables *t) {
    rfx_memory_release(mem, t->rows);
    rfx_memory_release(mem, t->cols);
    rfx_memory_release(mem, t->regions);
    rfx_memory_release(mem, t->done);
}

static enum rfx_status allocate(struct rfx_memory *mem, size_t n, struct tables *t,
                                struct rfx_error *err) {
    t->rows = rfx_memory_calloc(mem, n, sizeof *t->rows);
    t->cols = rfx_memory_calloc(mem, n, sizeof *t->cols);
    t->regions = rfx_memory_calloc(mem, RFX_SWEEP_REGIONS * n, sizeof *t->regions);
    t->done = rfx_memory_calloc(mem, RFX_MODE_SCRATCH * n, sizeof *t->done);
    if (t->rows == NULL || t->cols == NULL || t->regions == NULL || t->done == NULL)
        return rfx_memory_fail(mem, "counts of a plan", n * sizeof *t->rows, err);
    return RFX_OK;
}

static void count_stage(const struct rfx_cost_model *model, const struct rfx_stage *stage,
                        struct tables *t, struct rfx_cost_counts *counts) {
    const struct rfx_graph *graph = model->graph;
    struct rfx_stage_shape shape = {.spec = stage->spec,
                                    .first = stage->first,
                                    .end = stage->last + 1,
                                    .places = stage->places,
                                    .rows = t->rows};
    struct rfx_mode_measure measure = {graph, stage->places, &stage->spec, t->done, t->regions};
    stage->spec.mode->measure(&measure, t->rows, &shape.overlap_rows);
    if (rfx_stage_cuts_cols(&stage->spec)) {
        rfx_stage_extents(graph, stage->places, RFX_AXIS_COLS, stage->spec.parts_x, t->regions,
                          t->cols);
        shape.cols = t->cols;
    }
    for (int i = stage->first; i <= stage->last; i++) rfx_cost_count(model, &shape, i, &counts[i]);
}

enum rfx_status rfx_cost_count_plan(const struct rfx_plan *plan, const struct rfx_caches *caches,
                                    struct rfx_cost_counts *counts, struct rfx_error *err) {
    struct rfx_memory *mem = plan->graph->mem;
    struct rfx_cost_model model = {0};
    struct tables t = {0};
    enum rfx_status status = rfx_cost_init(&model, plan->graph, caches, plan->threads, err);
    if (status == RFX_OK) status = allocate(mem, (size_t)plan->graph->n_nodes, &t, err);
    for (int i = 0; status == RFX_OK && i < plan->graph->n_nodes; i++)
        counts[i] = (struct rfx_cost_counts){{0}};
    for (int s = 0; status == RFX_OK && s < plan->n_stages; s++)
        count_stage(&model, &plan->stages[s], &t, counts);
    release(mem, &t);
    rfx_cost_release(&model);
    return status;
}
