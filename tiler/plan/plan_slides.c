/* Which maps die while a stage as a whole makes others, row by row. */
#include <string.h>

#include "tiler/plan/plan_build.h"

bool rfx_plan_sliding_init(struct rfx_plan_sliding *sliding, const struct rfx_graph *graph) {
    sliding->lags = rfx_memory_calloc(graph->mem, RFX_PLAN_LAGS, sizeof *sliding->lags);
    sliding->scratch =
        rfx_memory_calloc(graph->mem, 2 * (size_t)graph->n_nodes, sizeof *sliding->scratch);
    return sliding->lags != NULL && sliding->scratch != NULL;
}

void rfx_plan_sliding_release(struct rfx_plan_sliding *sliding, struct rfx_memory *mem) {
    rfx_memory_release(mem, sliding->lags);
    rfx_memory_release(mem, sliding->scratch);
}

int64_t *rfx_plan_lag(struct rfx_plan_sliding *sliding, int before, int after) {
    enum { TRIES = 8 };
    struct rfx_plan_lag *lag = NULL;
    uint32_t hash = ((uint32_t)before * 2654435761U) ^ ((uint32_t)after * 2246822519U);
    for (uint32_t t = 0; t < TRIES; t++) {
        lag = &sliding->lags[((hash >> 8) + t) % RFX_PLAN_LAGS];
        if (lag->after == after && lag->before == before) return &lag->lag;
        if (lag->after == 0) break;
    }
    *lag = (struct rfx_plan_lag){before, after, INT64_MAX};
    return &lag->lag;
}

/* The stage at hand. */
struct slider {
    struct rfx_plan_context *context;
    const struct rfx_stage_shape *shape;
    int stage, end; /* end: its last step */
    int begin;      /* of the stage's slides */
};

static bool is_output(const struct rfx_graph *graph, int node) {
    for (int e = 0; e < graph->n_ends; e++)
        if (graph->ends[e].node == node) return true;
    return false;
}

/* Whether an input is a map of an earlier stage that is read here for the last time. A single row
 * dies at once. */
static bool dies(const struct slider *s, int node) {
    const struct rfx_plan_context *c = s->context;
    if (s->shape->places[node] != RFX_PLACE_READ) return false;
    const struct rfx_tensor *out = &c->graph->nodes[node].out;
    int record = c->stored_record[node];
    return record >= 0 && c->records[record].last == s->end && out->layout == RFX_LAYOUT_NHWC &&
           out->h > 1 && !is_output(c->graph, node);
}

/* Whether a map is written over another one already. */
static bool is_taken(const struct slider *s, int after) {
    for (int k = s->begin; k < s->context->n_slides; k++)
        if (s->context->slides[k].after == after) return true;
    return false;
}

/* The slide to the largest of the maps that the stage stores that may be written over the map of
 * `before`, of those that are not written over another one, if there are any: two maps may take the
 * place of two. Its `after` is -1: there is none. */
static struct rfx_slide find_slide(const struct slider *s, int before) {
    struct rfx_plan_context *c = s->context;
    struct rfx_slide found = {.after = -1};
    bool found_taken = false;
    const struct rfx_stage_spec *spec = &s->shape->spec;
    for (int t = 0; t < spec->n_targets; t++) {
        int node = spec->targets[t];
        bool stored = s->shape->places[node] == RFX_PLACE_STORED && node > before;
        int after = stored ? c->stored_record[node] : -1;
        if (after < 0) continue;
        bool taken = is_taken(s, after);
        if (found.after >= 0 && taken && !found_taken) continue;
        if (found.after >= 0 && taken == found_taken &&
            c->records[found.after].bytes >= c->records[after].bytes)
            continue;
        struct rfx_slide slide = {.before = c->stored_record[before],
                                  .after = after,
                                  .stage = s->stage,
                                  .node = node,
                                  .up = c->records[c->stored_record[before]].bytes};
        if (spec->mode->slide(c->graph, s->shape, before, node, c->sliding.scratch,
                              rfx_plan_lag(&c->sliding, before, node), &slide.down)) {
            found = slide;
            found_taken = taken;
        }
    }
    return found;
}

/* Those to one map follow each other. */
static void insert(struct rfx_plan_context *c, int begin, const struct rfx_slide *slide) {
    int at = c->n_slides;
    while (at > begin && c->slides[at - 1].node > slide->node) at--;
    memmove(&c->slides[at + 1], &c->slides[at], (size_t)(c->n_slides - at) * sizeof *c->slides);
    c->slides[at] = *slide;
    c->n_slides++;
}

void rfx_plan_list_stage_slides(struct rfx_plan_context *context,
                                const struct rfx_stage_shape *shape, int stage) {
    const struct rfx_graph *graph = context->graph;
    int begin = context->n_slides, end = rfx_plan_count_steps(graph, stage) + graph->n_nodes;
    struct slider s = {context, shape, stage, end, begin};
    if (!shape->spec.row_by_row || shape->spec.mode->slide == NULL) return;
    for (int i = shape->first; i < shape->end; i++) {
        if (!rfx_place_is_computed(shape->places[i])) continue;
        for (int k = 0; k < rfx_place_inputs(shape->places[i], &graph->nodes[i]); k++) {
            int in = graph->nodes[i].in[k];
            bool listed = !dies(&s, in);
            for (int l = begin; l < context->n_slides && !listed; l++)
                listed = context->slides[l].before == context->stored_record[in];
            struct rfx_slide slide = listed ? (struct rfx_slide){.after = -1} : find_slide(&s, in);
            if (slide.after >= 0) insert(context, begin, &slide);
        }
    }
}

void rfx_plan_take_slides(const struct rfx_plan_context *context, struct rfx_plan *plan) {
    for (int s = 0; s < plan->n_stages; s++)
        if (plan->stages[s].spec.mode->slide != NULL) plan->stages[s].spec.row_by_row = false;
    for (int k = 0; k < context->n_slides; k++) {
        const struct rfx_slide *slide = &context->slides[k];
        struct rfx_stage *stage = &plan->stages[slide->stage];
        stage->spec.row_by_row = true;
        if (context->upwards[k]) stage->nodes[slide->node].upwards = true;
    }
}
