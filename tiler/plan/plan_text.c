/* A plan in words. */
#include <stdio.h>

#include "layers/core/printable.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/splits.h"

/* The node that a stage is named after: the last map that it makes for others. */
static int last_target(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    for (int i = stage->last; i >= stage->first; i--) {
        if (stage->places[i] == RFX_PLACE_REDUCED) return plan->graph->nodes[i].in[0];
        if (stage->places[i] > RFX_PLACE_LOCAL) return i;
    }
    return stage->last;
}

static bool spills(const struct rfx_stage *stage) {
    for (int t = 0; t < stage->spec.n_targets; t++)
        if (stage->spilled[t]) return true;
    return false;
}

void rfx_plan_describe(const struct rfx_plan *plan, char *text, size_t size) {
    size_t at = 0;
    bool alone = plan->n_stages == 1;
    for (int s = 0; s < plan->n_stages && at < size; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        const char *to = rfx_split_label(plan->graph, last_target(plan, stage));
        if (s > 0) at += (size_t)snprintf(text + at, size - at, "; ");
        if (at < size)
            at += (size_t)stage->spec.mode->describe(&stage->spec, to, alone, text + at, size - at);
        if (spills(stage) && at < size) at += (size_t)snprintf(text + at, size - at, ", spilled");
    }
    if (rfx_plan_loads_by_stage(plan) && at < size)
        (void)snprintf(text + at, size - at, "%s weights by stage",
                       alone && !plan->stages[0].spec.mode->local ? "," : ";");
    rfx_trim_cut_character(text);
}
