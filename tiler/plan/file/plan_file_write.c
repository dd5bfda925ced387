/* Writing plans as JSON; see plan_file.h. */
#include <jansson.h>

#include "layers/conv/conv_backend.h"
#include "tiler/plan/file/plan_file.h"
#include "tiler/plan/mode.h"

/* Appends an item, NULL where there was no memory for it; whether the list is still whole. */
static bool append(json_t *list, json_t *item) {
    return json_array_append_new(list, item) == 0;
}

/* The list, or NULL where it is not whole. */
static json_t *whole_list(json_t *list, bool whole) {
    if (whole) return list;
    json_decref(list);
    return NULL;
}

/* Names of a stage's targets, or of those that are spilled; NULL: no memory. */
static json_t *names_json(const struct rfx_plan *plan, const struct rfx_stage *stage,
                          bool spilled) {
    json_t *names = json_array();
    bool whole = names != NULL;
    for (int i = stage->first; i <= stage->last; i++) {
        enum rfx_node_place place = stage->places[i];
        if (spilled ? place == RFX_PLACE_SPILLED : place > RFX_PLACE_LOCAL)
            whole = append(names, json_string(plan->graph->nodes[i].name)) && whole;
    }
    return whole_list(names, whole);
}

/* Names of what a stage forgets; NULL: no memory. */
static json_t *forgotten_json(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    json_t *names = json_array();
    bool whole = names != NULL;
    for (int f = 0; f < stage->spec.n_forgotten; f++)
        whole = append(names, json_string(plan->graph->nodes[stage->forgotten[f]].name)) && whole;
    return whole_list(names, whole);
}

static json_t *stage_json(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    json_t *targets = names_json(plan, stage, false);
    json_t *spilled = names_json(plan, stage, true);
    json_t *forgotten = forgotten_json(plan, stage);
    bool spills = json_array_size(spilled) > 0, forgets = json_array_size(forgotten) > 0;
    json_t *made =
        targets == NULL || spilled == NULL || forgotten == NULL
            ? NULL
            : json_pack("{s:s, s:O, s:[I, I], s:I, s:b, s:b, s:O*, s:O*}", "mode",
                        stage->spec.mode->name, "targets", targets, "tiles",
                        (json_int_t)stage->spec.parts_y, (json_int_t)stage->spec.parts_x,
                        "band_rows", (json_int_t)stage->spec.band_rows, "tight", stage->spec.tight,
                        "row_by_row", stage->spec.row_by_row, "spilled", spills ? spilled : NULL,
                        "forgets", forgets ? forgotten : NULL);
    json_decref(targets);
    json_decref(spilled);
    json_decref(forgotten);
    return made;
}

static json_t *groups_json(const struct rfx_graph *graph) {
    json_t *groups = json_array();
    bool whole = groups != NULL;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_group_attr *group = &graph->nodes[i].attr.group;
        if (graph->nodes[i].op != RFX_OP_GROUP) continue;
        json_t *item = json_pack(
            "{s:s, s:s, s:I, s:I, s:I}", "first", graph->nodes[group->first].name, "last",
            graph->nodes[group->last].name, "strip_cols", (json_int_t)group->strip_cols, "strips",
            (json_int_t)group->strips, "step_rows", (json_int_t)group->step_rows);
        whole = append(groups, item) && whole;
    }
    return whole_list(groups, whole);
}

/* Names of convolutions that keep factors. */
static json_t *keepers_json(const struct rfx_graph *graph) {
    json_t *names = json_array();
    bool whole = names != NULL;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        if (node->op == RFX_OP_CONV && node->attr.conv.keeps_factors)
            whole = append(names, json_string(node->name)) && whole;
    }
    return whole_list(names, whole);
}

static json_t *plan_json(const struct rfx_plan *plan, const char *model) {
    const struct rfx_tensor *input = &plan->graph->nodes[plan->graph->input].out;
    const struct rfx_plan_bytes *b = &plan->bytes;
    json_t *stages = json_array();
    bool whole = stages != NULL;
    for (int s = 0; s < plan->n_stages; s++)
        whole = append(stages, stage_json(plan, &plan->stages[s])) && whole;
    stages = whole_list(stages, whole);
    json_t *predicted = json_pack(
        "{s:s, s:I, s:{s:I, s:I, s:I, s:I, s:I}, s:I, s:I}", "note",
        "calculated anew whenever the plan is read; offsets in the arena too", "peak_bytes",
        (json_int_t)plan->peak_bytes, "breakdown", "arena", (json_int_t)b->arena, "weights",
        (json_int_t)b->weights, "scratch", (json_int_t)b->scratch, "source", (json_int_t)b->source,
        "reserve", (json_int_t)b->reserve, "macs", (json_int_t)plan->macs, "macs_untiled",
        (json_int_t)plan->macs_untiled);
    json_t *groups = plan->grouped != NULL ? groups_json(plan->graph) : NULL;
    json_t *keepers = plan->grouped != NULL ? keepers_json(plan->graph) : NULL;
    bool lost = groups == NULL || keepers == NULL; /* which json_pack would leave out */
    if (plan->grouped != NULL && lost) {
        json_decref(groups);
        json_decref(keepers);
        json_decref(stages);
        json_decref(predicted);
        return NULL;
    }
    return json_pack("{s:i, s:s, s:s, s:s, s:[I, I], s:i, s:b, s:b, s:o*, s:o*, s:o, s:o}",
                     "schema", RFX_PLAN_FILE_SCHEMA, "kind", RFX_PLAN_FILE_KIND, "model", model,
                     "conv", rfx_conv_choice_name(rfx_conv_choice_of(plan->graph)), "size",
                     (json_int_t)input->h, (json_int_t)input->w, "threads", plan->threads,
                     "weights_by_stage", rfx_plan_loads_by_stage(plan), "in_place", plan->in_place,
                     "groups", groups, "keeps_factors", keepers, "stages", stages, "predicted",
                     predicted);
}

enum rfx_status rfx_plan_file_text(const struct rfx_plan *plan, const char *model, char **text,
                                   struct rfx_error *err) {
    json_t *root = plan_json(plan, model);
    size_t length = root != NULL ? json_dumpb(root, NULL, 0, JSON_INDENT(2)) : 0;
    char *made = length > 0 ? rfx_memory_alloc(plan->mem, length + 2) : NULL;
    if (made != NULL && json_dumpb(root, made, length, JSON_INDENT(2)) != length) {
        rfx_memory_release(plan->mem, made);
        made = NULL;
    }
    if (made != NULL) {
        made[length] = '\n';
        made[length + 1] = '\0';
        *text = made;
    }
    json_decref(root);
    return made != NULL ? RFX_OK : rfx_memory_fail(plan->mem, "text of a plan", length + 2, err);
}
