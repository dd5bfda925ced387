/* The iterator over a plan's steps. Every stage first loads its packed weights (where they are
 * loaded by stage, and not node by node) and begins its reductions; then it runs its body, which
 * belongs to its mode; then it finishes its reductions. */
#include "tiler/plan/schedule.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/plan/mode.h"

enum phase { PHASE_LOAD, PHASE_REDUCE_BEGIN, PHASE_BODY, PHASE_REDUCE_FINISH, PHASE_END };

struct rfx_schedule {
    const struct rfx_plan *plan;
    int stage; /* n_stages: the end */
    enum phase phase;
    int node; /* next node, outside of the body */
    struct rfx_walk walk;
    int64_t n_units;    /* units of progress of all stages */
    int64_t stage_unit; /* units before this stage */
};

static int64_t count_units(const struct rfx_plan *plan, int stage) {
    return plan->stages[stage].spec.mode->units(plan, &plan->stages[stage]);
}

static void enter_stage(struct rfx_schedule *schedule, int stage) {
    const struct rfx_plan *plan = schedule->plan;
    if (stage > 0) schedule->stage_unit += count_units(plan, stage - 1);
    schedule->stage = stage;
    if (stage == plan->n_stages) return; /* the walk of the last stage stays valid */
    schedule->phase = PHASE_LOAD;
    schedule->node = plan->stages[stage].first;
    schedule->walk.stage = &plan->stages[stage];
    schedule->walk.restart = true;
    schedule->walk.unit = 0;
    schedule->walk.stage->spec.mode->enter(&schedule->walk);
}

void rfx_schedule_rewind(struct rfx_schedule *schedule) {
    schedule->stage_unit = 0;
    enter_stage(schedule, 0);
}

enum rfx_status rfx_schedule_create(const struct rfx_plan *plan, struct rfx_schedule **out,
                                    struct rfx_error *err) {
    struct rfx_memory *mem = plan->mem;
    size_t bytes = 1;
    struct rfx_schedule *schedule = rfx_memory_calloc(mem, 1, sizeof *schedule);
    if (schedule == NULL) return rfx_memory_fail(mem, "schedule", sizeof *schedule, err);
    schedule->plan = plan;
    schedule->walk.plan = plan;
    for (int s = 0; s < plan->n_stages; s++) {
        size_t needed = plan->stages[s].spec.mode->walk_bytes(plan->graph);
        if (needed > bytes) bytes = needed;
        schedule->n_units += count_units(plan, s);
    }
    schedule->walk.state = rfx_memory_calloc(mem, 1, bytes);
    if (schedule->walk.state == NULL) {
        rfx_schedule_free(schedule);
        return rfx_memory_fail(mem, "state of a schedule", bytes, err);
    }
    rfx_schedule_rewind(schedule);
    *out = schedule;
    return RFX_OK;
}

void rfx_schedule_free(struct rfx_schedule *schedule) {
    if (schedule == NULL) return;
    rfx_memory_release(schedule->plan->mem, schedule->walk.state);
    rfx_memory_release(schedule->plan->mem, schedule);
}

static bool has_packed(const struct rfx_stage *stage, int node) {
    return rfx_place_is_computed(stage->places[node]) && stage->nodes[node].packed.bytes != 0;
}

static bool is_reduced(const struct rfx_stage *stage, int node) {
    return stage->places[node] == RFX_PLACE_REDUCED;
}

/* Fills one step for each node for which `wanted` holds; returns false after the last one. */
static bool next_in_phase(struct rfx_schedule *schedule, enum rfx_step_kind kind,
                          bool (*wanted)(const struct rfx_stage *stage, int node),
                          struct rfx_step *step) {
    const struct rfx_stage *stage = schedule->walk.stage;
    while (schedule->node <= stage->last) {
        int node = schedule->node++;
        if (!wanted(stage, node)) continue;
        bool empty = rfx_rect_is_empty(schedule->plan->graph->nodes[node].wanted);
        if (empty && kind != RFX_STEP_LOAD) continue;
        step->kind = kind;
        step->node = node;
        step->rect = rfx_rect_full(1, 1);
        return true;
    }
    schedule->node = stage->first;
    return false;
}

static bool next_in_stage(struct rfx_schedule *schedule, struct rfx_step *step) {
    const struct rfx_mode *mode = schedule->walk.stage->spec.mode;
    switch (schedule->phase) {
        case PHASE_LOAD:
            return !mode->once && next_in_phase(schedule, RFX_STEP_LOAD, has_packed, step);
        case PHASE_REDUCE_BEGIN:
            return next_in_phase(schedule, RFX_STEP_REDUCE_BEGIN, is_reduced, step);
        case PHASE_BODY:
            return mode->next(&schedule->walk, step);
        case PHASE_REDUCE_FINISH:
            return next_in_phase(schedule, RFX_STEP_REDUCE_FINISH, is_reduced, step);
        case PHASE_END:
            break;
    }
    return false;
}

bool rfx_schedule_next(struct rfx_schedule *schedule, struct rfx_step *step) {
    while (schedule->stage < schedule->plan->n_stages) {
        step->stage = schedule->stage;
        step->restart = false;
        if (next_in_stage(schedule, step)) {
            if (rfx_rect_is_empty(step->rect)) continue;
            step->unit = rfx_min_i64(schedule->stage_unit + schedule->walk.unit, schedule->n_units);
            step->n_units = schedule->n_units;
            return true;
        }
        schedule->phase++;
        if (schedule->phase == PHASE_END) enter_stage(schedule, schedule->stage + 1);
    }
    return false;
}

struct rfx_resident_region rfx_schedule_resident_region(const struct rfx_schedule *schedule,
                                                        int node) {
    const struct rfx_plan *plan = schedule->plan;
    const struct rfx_stage *stage = schedule->walk.stage;
    bool local = rfx_place_is_local(stage->places[node]);
    struct rfx_resident_region region = {
        .rect = plan->graph->nodes[node].wanted,
        .offset = rfx_plan_buffer(plan, (int)(stage - plan->stages), node)->offset,
    };
    if (local && stage->spec.mode->resident_region != NULL)
        stage->spec.mode->resident_region(&schedule->walk, node, &region);
    return region;
}
