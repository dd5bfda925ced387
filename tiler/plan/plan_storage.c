/* The memory of a plan itself. */
#include <string.h>

#include "tiler/plan/plan_build.h"

void rfx_plan_free(struct rfx_plan *plan) {
    if (plan == NULL) return;
    for (int s = 0; plan->stages != NULL && s < plan->n_stages; s++) {
        rfx_memory_release(plan->mem, plan->stages[s].places);
        rfx_memory_release(plan->mem, plan->stages[s].nodes);
        rfx_memory_release(plan->mem, plan->stages[s].targets);
        rfx_memory_release(plan->mem, plan->stages[s].spilled);
        rfx_memory_release(plan->mem, plan->stages[s].forgotten);
    }
    rfx_memory_release(plan->mem, plan->stages);
    rfx_memory_release(plan->mem, plan->stored);
    rfx_memory_release(plan->mem, plan->resident);
    rfx_graph_free(plan->grouped);
    rfx_memory_release(plan->mem, plan);
}

static bool allocate_stage(struct rfx_memory *mem, size_t n, const struct rfx_stage_spec *spec,
                           struct rfx_stage *stage) {
    stage->places = rfx_memory_calloc(mem, n, sizeof *stage->places);
    stage->nodes = rfx_memory_calloc(mem, n, sizeof *stage->nodes);
    stage->targets = rfx_memory_calloc(mem, (size_t)spec->n_targets, sizeof *stage->targets);
    stage->spilled = rfx_memory_calloc(mem, (size_t)spec->n_targets, sizeof *stage->spilled);
    if (spec->n_forgotten > 0) {
        size_t n_forgotten = (size_t)spec->n_forgotten;
        stage->forgotten = rfx_memory_calloc(mem, n_forgotten, sizeof *stage->forgotten);
        if (stage->forgotten == NULL) return false;
        memcpy(stage->forgotten, spec->forgotten, n_forgotten * sizeof *stage->forgotten);
    }
    return stage->places != NULL && stage->nodes != NULL && stage->targets != NULL &&
           stage->spilled != NULL;
}

enum rfx_status rfx_plan_allocate(const struct rfx_plan_context *context,
                                  const struct rfx_stage_shape *shapes, int n_stages,
                                  struct rfx_plan **out, struct rfx_error *err) {
    struct rfx_memory *mem = context->graph->mem;
    size_t n = (size_t)context->graph->n_nodes;
    struct rfx_plan *plan = rfx_memory_calloc(mem, 1, sizeof *plan);
    if (plan == NULL) return rfx_memory_fail(mem, "plan", sizeof *plan, err);
    plan->mem = mem;
    plan->graph = context->graph;
    plan->threads = context->request->threads;
    plan->n_stages = n_stages;
    plan->stored = rfx_memory_calloc(mem, n, sizeof *plan->stored);
    plan->stages = rfx_memory_calloc(mem, (size_t)n_stages, sizeof *plan->stages);
    plan->resident = rfx_memory_calloc(mem, n, sizeof *plan->resident);
    bool all = plan->stored != NULL && plan->stages != NULL && plan->resident != NULL;
    for (int s = 0; all && s < n_stages; s++)
        all = allocate_stage(mem, n, &shapes[s].spec, &plan->stages[s]);
    if (!all) {
        rfx_plan_free(plan);
        return rfx_memory_fail(mem, "plan", n * sizeof *plan->stages->nodes, err);
    }
    *out = plan;
    return RFX_OK;
}
