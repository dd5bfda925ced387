/* Reading and writing plans as JSON. Errors name the file and the place in it. */
#include "tiler/plan/plan_file.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/graph/group.h"
#include "layers/graph/near_names.h"
#include "tiler/plan/json_reader.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/stage.h"

enum { PLACE_CHARS = 96, MAX_COUNT = 1 << 30 };

struct reader {
    struct rfx_json_reader json;
    const struct rfx_graph *graph;
    struct rfx_plan_file *file;
    int n_targets;
};

/* Reads an integer of [lo, hi] from member "key" of the object at `place`; a missing key leaves
 * *out unchanged. */
static enum rfx_status read_member(const struct reader *r, const char *place, const json_t *object,
                                   const char *key, int64_t lo, int64_t hi, int64_t *out) {
    char at[PLACE_CHARS];
    (void)snprintf(at, sizeof at, "%.40s%s%.40s", place, place[0] != '\0' ? "." : "", key);
    return rfx_json_count(&r->json, at, json_object_get(object, key), lo, hi, out);
}

/* Reads two counts [a, b]; a missing key leaves them unchanged. */
static enum rfx_status read_pair(const struct reader *r, const char *place, const json_t *object,
                                 const char *key, int64_t *a, int64_t *b) {
    char text[RFX_JSON_SHOWN], at[PLACE_CHARS];
    const json_t *value = json_object_get(object, key);
    if (value == NULL) return RFX_OK;
    (void)snprintf(at, sizeof at, "%.40s%s%.40s", place, place[0] != '\0' ? "." : "", key);
    if (!json_is_array(value) || json_array_size(value) != 2)
        return rfx_json_refuse(&r->json, at, "%s is not [rows, columns]",
                               rfx_json_shown(value, text));
    enum rfx_status status =
        rfx_json_count(&r->json, at, json_array_get(value, 0), 1, MAX_COUNT, a);
    return status == RFX_OK
               ? rfx_json_count(&r->json, at, json_array_get(value, 1), 1, MAX_COUNT, b)
               : status;
}

/* Finds a tensor of the network by its name. */
static enum rfx_status read_tensor(const struct reader *r, const char *place, const json_t *value,
                                   int *node) {
    char text[RFX_JSON_SHOWN], near[RFX_NEAR_NAMES_TEXT];
    if (!json_is_string(value))
        return rfx_json_refuse(&r->json, place, "%s is not the name of a tensor",
                               rfx_json_shown(value, text));
    const char *name = json_string_value(value);
    *node = rfx_graph_find(r->graph, name);
    if (*node >= 0) return RFX_OK;
    rfx_graph_near_names(r->graph, name, near);
    return rfx_json_refuse(&r->json, place, "this network has no tensor '%.60s'%s", name, near);
}

enum { MAX_THREADS = 1024, MAX_STAGES = 4096 };
static const long MAX_FILE_BYTES = 4L << 20;

/* Writes "whole" or "tiled" or ..., as far as there is room. */
static const char *mode_names(char text[120]) {
    int n;
    const struct rfx_mode *const *modes = rfx_modes(&n);
    size_t at = 0;
    for (int m = 0; m < n && at < 120; m++)
        at +=
            (size_t)snprintf(text + at, 120 - at, "%s\"%s\"", m == 0 ? "" : " or ", modes[m]->name);
    return text;
}

static enum rfx_status read_mode(const struct reader *r, const char *place, const json_t *stage,
                                 const struct rfx_mode **mode) {
    char text[RFX_JSON_SHOWN], names[120];
    const json_t *value = json_object_get(stage, "mode");
    if (value == NULL) return rfx_json_refuse(&r->json, place, "no 'mode'");
    *mode = json_is_string(value) ? rfx_mode_find(json_string_value(value)) : NULL;
    if (*mode != NULL) return RFX_OK;
    return rfx_json_refuse(&r->json, place, "mode %s is not %s", rfx_json_shown(value, text),
                           mode_names(names));
}

/* Checks tiles, bands and flags against the mode; errors name the place in the file. */
static enum rfx_status check_mode(const struct reader *r, const char *place,
                                  const struct rfx_stage_spec *spec) {
    struct rfx_error why;
    return rfx_stage_check(spec, &why) == RFX_OK ? RFX_OK
                                                 : rfx_json_refuse(&r->json, place, "%s", why.text);
}

/* Appends the named tensors to those read before; *list receives them. */
static enum rfx_status read_names(struct reader *r, const char *place, const char *key,
                                  const json_t *names, const int **list, int *n) {
    char at[PLACE_CHARS + 40], text[RFX_JSON_SHOWN];
    enum rfx_status status = RFX_OK;
    *list = r->file->targets + r->n_targets;
    if (names != NULL && !json_is_array(names))
        return rfx_json_refuse(&r->json, place, "'%s': %s is no list", key,
                               rfx_json_shown(names, text));
    for (size_t i = 0; status == RFX_OK && i < json_array_size(names); i++) {
        (void)snprintf(at, sizeof at, "%.90s.%s[%d]", place, key, (int)i);
        status = read_tensor(r, at, json_array_get(names, i), &r->file->targets[r->n_targets++]);
    }
    *n = (int)json_array_size(names);
    return status;
}

/* Marks those targets of a stage that are spilled. */
static enum rfx_status read_spilled(struct reader *r, const char *place, const json_t *list,
                                    struct rfx_stage_spec *spec) {
    char at[PLACE_CHARS + 40], text[RFX_JSON_SHOWN];
    bool *spilled = r->file->spilled + (spec->targets - r->file->targets);
    enum rfx_status status = RFX_OK;
    spec->spilled = spilled;
    if (list != NULL && !json_is_array(list))
        return rfx_json_refuse(&r->json, place, "'spilled': %s is no list",
                               rfx_json_shown(list, text));
    for (size_t i = 0; status == RFX_OK && i < json_array_size(list); i++) {
        int node = -1, t = 0;
        (void)snprintf(at, sizeof at, "%.90s.spilled[%d]", place, (int)i);
        status = read_tensor(r, at, json_array_get(list, i), &node);
        while (t < spec->n_targets && spec->targets[t] != node) t++;
        if (status == RFX_OK && t == spec->n_targets)
            status = rfx_json_refuse(&r->json, at, "it is no target of this stage");
        if (status == RFX_OK) spilled[t] = true;
    }
    return status;
}

static enum rfx_status read_stage(struct reader *r, size_t s, json_t *stage) {
    static const char *const keys[] = {"mode",       "targets", "tiles",   "band_rows", "tight",
                                       "row_by_row", "spilled", "forgets", NULL};
    char place[PLACE_CHARS], text[RFX_JSON_SHOWN];
    struct rfx_stage_spec *spec = &r->file->stages[s];
    (void)snprintf(place, sizeof place, "stages[%d]", (int)s);
    if (!json_is_object(stage))
        return rfx_json_refuse(&r->json, place, "%s is no stage", rfx_json_shown(stage, text));
    *spec = (struct rfx_stage_spec){.tiles_y = 1, .tiles_x = 1};
    const json_t *targets = json_object_get(stage, "targets");
    enum rfx_status status = rfx_json_check_keys(&r->json, place, stage, keys);
    if (status == RFX_OK) status = read_mode(r, place, stage, &spec->mode);
    if (status == RFX_OK)
        status = read_pair(r, place, stage, "tiles", &spec->tiles_y, &spec->tiles_x);
    if (status == RFX_OK)
        status = read_member(r, place, stage, "band_rows", 0, MAX_COUNT, &spec->band_rows);
    if (status == RFX_OK) status = rfx_json_flag(&r->json, place, stage, "tight", &spec->staging);
    if (status == RFX_OK)
        status = rfx_json_flag(&r->json, place, stage, "row_by_row", &spec->row_by_row);
    if (status == RFX_OK) status = check_mode(r, place, spec);
    if (status != RFX_OK) return status;
    if (!json_is_array(targets) || json_array_size(targets) == 0)
        return rfx_json_refuse(&r->json, place,
                               "'targets' must name the tensors that the stage makes");
    status = read_names(r, place, "targets", targets, &spec->targets, &spec->n_targets);
    if (status == RFX_OK) status = read_spilled(r, place, json_object_get(stage, "spilled"), spec);
    if (status == RFX_OK)
        status = read_names(r, place, "forgets", json_object_get(stage, "forgets"),
                            &spec->forgotten, &spec->n_forgotten);
    return status;
}

static enum rfx_status read_stages(struct reader *r, const json_t *stages) {
    struct rfx_memory *mem = r->graph->mem;
    if (!json_is_array(stages) || json_array_size(stages) == 0)
        return rfx_json_refuse(&r->json, "stages", "there must be a list of at least one stage");
    size_t n = json_array_size(stages);
    size_t n_targets = 1;
    if (n > MAX_STAGES)
        return rfx_json_refuse(&r->json, "stages", "%zu stages, at most %d", n, MAX_STAGES);
    for (size_t s = 0; s < n; s++) {
        const json_t *stage = json_array_get(stages, s);
        n_targets += json_array_size(json_object_get(stage, "targets"));
        n_targets += json_array_size(json_object_get(stage, "forgets"));
    }
    r->file->stages = rfx_memory_calloc(mem, n, sizeof *r->file->stages);
    r->file->targets = rfx_memory_calloc(mem, n_targets, sizeof *r->file->targets);
    r->file->spilled = rfx_memory_calloc(mem, n_targets, sizeof *r->file->spilled);
    if (r->file->stages == NULL || r->file->targets == NULL || r->file->spilled == NULL)
        return rfx_memory_fail(mem, "stages of a plan file", n * sizeof *r->file->stages,
                               r->json.err);
    r->file->n_stages = (int)n;
    enum rfx_status status = RFX_OK;
    for (size_t s = 0; status == RFX_OK && s < n; s++)
        status = read_stage(r, s, json_array_get(stages, s));
    return status;
}

static enum rfx_status read_group(const struct reader *r, int g, json_t *item,
                                  struct rfx_group_attr *group) {
    static const char *const keys[] = {"first", "last", "strip_cols", "strips", "step_rows", NULL};
    char place[PLACE_CHARS], at[PLACE_CHARS], text[RFX_JSON_SHOWN];
    *group = (struct rfx_group_attr){.strips = 1, .step_rows = 1};
    (void)snprintf(place, sizeof place, "groups[%d]", g);
    if (!json_is_object(item))
        return rfx_json_refuse(&r->json, place, "%s is no group", rfx_json_shown(item, text));
    enum rfx_status status = rfx_json_check_keys(&r->json, place, item, keys);
    (void)snprintf(at, sizeof at, "groups[%d].first", g);
    if (status == RFX_OK)
        status = read_tensor(r, at, json_object_get(item, "first"), &group->first);
    (void)snprintf(at, sizeof at, "groups[%d].last", g);
    if (status == RFX_OK) status = read_tensor(r, at, json_object_get(item, "last"), &group->last);
    if (status == RFX_OK)
        status = read_member(r, place, item, "strip_cols", 1, MAX_COUNT, &group->strip_cols);
    if (status == RFX_OK)
        status = read_member(r, place, item, "strips", 1, MAX_COUNT, &group->strips);
    if (status == RFX_OK)
        status = read_member(r, place, item, "step_rows", 1, MAX_COUNT, &group->step_rows);
    if (status != RFX_OK) return status;
    if (group->strip_cols == 0) return rfx_json_refuse(&r->json, place, "no 'strip_cols'");
    const char *why = rfx_group_refusal(r->graph, group->first, group->last);
    if (why != NULL) return rfx_json_refuse(&r->json, place, "%s", why);
    return g == 0 || group->first > group[-1].last
               ? RFX_OK
               : rfx_json_refuse(&r->json, place,
                                 "it overlaps the group before it or comes before it");
}

/* A missing key means that every node runs by itself. */
static enum rfx_status read_groups(struct reader *r, const json_t *groups) {
    struct rfx_memory *mem = r->graph->mem;
    char text[RFX_JSON_SHOWN];
    if (groups == NULL) return RFX_OK;
    if (!json_is_array(groups))
        return rfx_json_refuse(&r->json, "groups", "%s is no list", rfx_json_shown(groups, text));
    size_t n = json_array_size(groups);
    if (n > (size_t)r->graph->n_nodes)
        return rfx_json_refuse(&r->json, "groups", "%zu groups are too many", n);
    r->file->groups = rfx_memory_calloc(mem, n + 1, sizeof *r->file->groups);
    if (r->file->groups == NULL)
        return rfx_memory_fail(mem, "groups of a plan file", n * sizeof *r->file->groups,
                               r->json.err);
    enum rfx_status status = RFX_OK;
    for (size_t g = 0; status == RFX_OK && g < n; g++)
        status = read_group(r, (int)g, json_array_get(groups, g), &r->file->groups[g]);
    r->file->n_groups = (int)n;
    return status;
}

/* Reads the convolutions whose transformed weights are stored; a missing key means none. */
static enum rfx_status read_keepers(struct reader *r, const json_t *list) {
    struct rfx_memory *mem = r->graph->mem;
    char at[PLACE_CHARS], text[RFX_JSON_SHOWN];
    if (list == NULL) return RFX_OK;
    if (!json_is_array(list))
        return rfx_json_refuse(&r->json, "keeps_factors", "%s is no list",
                               rfx_json_shown(list, text));
    size_t n = json_array_size(list);
    r->file->keepers = rfx_memory_calloc(mem, n + 1, sizeof *r->file->keepers);
    if (r->file->keepers == NULL)
        return rfx_memory_fail(mem, "keepers of a plan file", n * sizeof *r->file->keepers,
                               r->json.err);
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; status == RFX_OK && k < n; k++) {
        int *node = &r->file->keepers[k];
        (void)snprintf(at, sizeof at, "keeps_factors[%d]", (int)k);
        status = read_tensor(r, at, json_array_get(list, k), node);
        if (status == RFX_OK && r->graph->nodes[*node].op != RFX_OP_CONV)
            status = rfx_json_refuse(&r->json, at, "it is no convolution");
    }
    r->file->n_keepers = (int)n;
    return status;
}

/* Checks the name of the convolution arithmetic; it is a note, but must be a known name. */
static enum rfx_status check_conv(const struct reader *r, const json_t *value) {
    enum rfx_conv_choice choice;
    char text[RFX_JSON_SHOWN];
    if (value == NULL) return RFX_OK;
    if (json_is_string(value) && rfx_conv_choice_find(json_string_value(value), &choice))
        return RFX_OK;
    return rfx_json_refuse(&r->json, "conv", "%s is not \"direct\", \"openblas\" or \"winograd\"",
                           rfx_json_shown(value, text));
}

/* Checks that the plan is of the same arithmetic of 8-bit networks: the nodes of the network depend
 * on it. */
static enum rfx_status check_int8(const struct reader *r, const json_t *value) {
    enum rfx_int8_choice choice = RFX_INT8_ORT;
    char text[RFX_JSON_SHOWN];
    if (value != NULL &&
        !(json_is_string(value) && rfx_int8_choice_find(json_string_value(value), &choice)))
        return rfx_json_refuse(&r->json, "int8", "%s is not \"ort\" or \"spec\"",
                               rfx_json_shown(value, text));
    if (choice == r->graph->int8) return RFX_OK;
    return rfx_json_refuse(&r->json, "int8",
                           "the plan is for --int8 %s, the network was loaded with --int8 %s",
                           rfx_int8_choice_name(choice), rfx_int8_choice_name(r->graph->int8));
}

/* Reads the kind of file and checks that it is for this image size. */
static enum rfx_status read_head(struct reader *r, json_t *root) {
    static const char *const keys[] = {"schema", "kind",      "model",
                                       "size",   "threads",   "in_place",
                                       "stages", "predicted", "weights_by_stage",
                                       "groups", "conv",      "keeps_factors",
                                       "int8",   NULL};
    char text[RFX_JSON_SHOWN];
    if (!json_is_object(root))
        return rfx_json_refuse(&r->json, "", "%s is no plan", rfx_json_shown(root, text));
    const json_t *kind = json_object_get(root, "kind");
    if (!json_is_string(kind) || strcmp(json_string_value(kind), RFX_PLAN_FILE_KIND) != 0)
        return rfx_json_refuse(&r->json, "kind", "%s is not \"%s\"", rfx_json_shown(kind, text),
                               RFX_PLAN_FILE_KIND);
    int64_t schema = 0, h = 0, w = 0, threads = 0;
    enum rfx_status status =
        read_member(r, "", root, "schema", RFX_PLAN_FILE_SCHEMA, RFX_PLAN_FILE_SCHEMA, &schema);
    if (status == RFX_OK && schema == 0)
        status = rfx_json_refuse(&r->json, "schema", "missing, must be 1");
    if (status == RFX_OK) status = rfx_json_check_keys(&r->json, "", root, keys);
    if (status == RFX_OK) status = check_conv(r, json_object_get(root, "conv"));
    if (status == RFX_OK) status = check_int8(r, json_object_get(root, "int8"));
    if (status == RFX_OK) status = read_pair(r, "", root, "size", &h, &w);
    if (status == RFX_OK) status = read_member(r, "", root, "threads", 1, MAX_THREADS, &threads);
    if (status == RFX_OK)
        status = rfx_json_flag(&r->json, "", root, "weights_by_stage", &r->file->weights_by_stage);
    if (status == RFX_OK)
        status = rfx_json_flag(&r->json, "", root, "in_place", &r->file->in_place);
    if (status != RFX_OK) return status;
    r->file->threads = (int)threads;
    const struct rfx_tensor *input = &r->graph->nodes[r->graph->input].out;
    if (h != 0 && (h != input->h || w != input->w))
        return rfx_json_refuse(
            &r->json, "size", "the plan is for %lldx%lld, the network's input is %lldx%lld",
            (long long)h, (long long)w, (long long)input->h, (long long)input->w);
    return RFX_OK;
}

enum rfx_status rfx_plan_file_parse(const struct rfx_graph *graph, const char *text, size_t length,
                                    const char *name, struct rfx_plan_file **out,
                                    struct rfx_error *err) {
    struct reader r = {.json = {name, err}, .graph = graph};
    json_t *root;
    enum rfx_status status = rfx_json_parse(&r.json, graph->mem, text, length, &root);
    if (status != RFX_OK) return status;
    r.file = rfx_memory_calloc(graph->mem, 1, sizeof *r.file);
    if (r.file == NULL) {
        status = rfx_memory_fail(graph->mem, "plan file", sizeof *r.file, err);
        goto done;
    }
    r.file->mem = graph->mem;
    r.file->in_place = true;
    status = read_head(&r, root);
    if (status == RFX_OK) status = read_stages(&r, json_object_get(root, "stages"));
    if (status == RFX_OK) status = read_groups(&r, json_object_get(root, "groups"));
    if (status == RFX_OK) status = read_keepers(&r, json_object_get(root, "keeps_factors"));
    if (status == RFX_OK)
        *out = r.file;
    else
        rfx_plan_file_free(r.file);
done:
    json_decref(root);
    return status;
}

enum rfx_status rfx_plan_file_read(const struct rfx_graph *graph, const char *path,
                                   struct rfx_plan_file **out, struct rfx_error *err) {
    const struct rfx_json_reader json = {path, err};
    char *text = NULL;
    size_t length = 0;
    enum rfx_status status =
        rfx_json_text(&json, "plan", MAX_FILE_BYTES, graph->mem, &text, &length);
    if (status == RFX_OK) status = rfx_plan_file_parse(graph, text, length, path, out, err);
    rfx_memory_release(graph->mem, text);
    return status;
}

void rfx_plan_file_free(struct rfx_plan_file *file) {
    if (file == NULL) return;
    rfx_memory_release(file->mem, file->targets);
    rfx_memory_release(file->mem, file->spilled);
    rfx_memory_release(file->mem, file->stages);
    rfx_memory_release(file->mem, file->groups);
    rfx_memory_release(file->mem, file->keepers);
    rfx_memory_release(file->mem, file);
}

void rfx_plan_file_apply(const struct rfx_plan_file *file, struct rfx_plan_request *request) {
    request->stages = file->stages;
    request->n_stages = file->n_stages;
    request->groups = file->groups;
    request->n_groups = file->n_groups;
    request->keepers = file->keepers;
    request->n_keepers = file->n_keepers;
    request->asked.weights_by_stage = file->weights_by_stage;
    request->no_inplace = !file->in_place;
    if (file->threads != 0) request->threads = file->threads;
}

/* Appends an item (NULL: there was no memory for it); returns whether the list is complete. */
static bool append(json_t *list, json_t *item) {
    return json_array_append_new(list, item) == 0;
}

/* Returns the list, or NULL where it is not complete. */
static json_t *whole_list(json_t *list, bool whole) {
    if (whole) return list;
    json_decref(list);
    return NULL;
}

/* Returns the names of a stage's targets, or of its spilled targets; NULL: no memory. */
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

/* Returns the names of the nodes that a stage forgets; NULL: no memory. */
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
                        (json_int_t)stage->spec.tiles_y, (json_int_t)stage->spec.tiles_x,
                        "band_rows", (json_int_t)stage->spec.band_rows, "tight",
                        stage->spec.staging, "row_by_row", stage->spec.row_by_row, "spilled",
                        spills ? spilled : NULL, "forgets", forgets ? forgotten : NULL);
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

/* Returns the names of convolutions whose transformed weights are stored. */
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
    bool lost = groups == NULL || keepers == NULL; /* json_pack would leave them out */
    if (plan->grouped != NULL && lost) {
        json_decref(groups);
        json_decref(keepers);
        json_decref(stages);
        json_decref(predicted);
        return NULL;
    }
    enum rfx_int8_choice int8 = plan->graph->int8;
    return json_pack("{s:i, s:s, s:s, s:s, s:s*, s:[I, I], s:i, s:b, s:b, s:o*, s:o*, s:o, s:o}",
                     "schema", RFX_PLAN_FILE_SCHEMA, "kind", RFX_PLAN_FILE_KIND, "model", model,
                     "conv", rfx_conv_choice_name(rfx_conv_choice_of(plan->graph)), "int8",
                     int8 != RFX_INT8_ORT ? rfx_int8_choice_name(int8) : NULL, "size",
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
