/* Reading plans as JSON; see plan_file.h. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/descriptor.h"
#include "layers/graph/group.h"
#include "tiler/plan/file/plan_file_reader.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/stage.h"

enum { MAX_THREADS = 1024, MAX_STAGES = 4096 };
static const long MAX_FILE_BYTES = 4L << 20;

/* "whole", "tiled", ... into text, as far as there is room. */
static const char *mode_names(char text[120]) {
    int n;
    const struct rfx_mode *const *modes = rfx_modes(&n);
    size_t at = 0;
    for (int m = 0; m < n && at < 120; m++)
        at +=
            (size_t)snprintf(text + at, 120 - at, "%s\"%s\"", m == 0 ? "" : " or ", modes[m]->name);
    return text;
}

static enum rfx_status read_mode(const struct rfx_plan_reader *r, const char *place,
                                 const json_t *stage, const struct rfx_mode **mode) {
    char text[48], names[120];
    const json_t *value = json_object_get(stage, "mode");
    if (value == NULL) return rfx_plan_refuse(r, place, "no 'mode'");
    *mode = json_is_string(value) ? rfx_mode_find(json_string_value(value)) : NULL;
    if (*mode != NULL) return RFX_OK;
    return rfx_plan_refuse(r, place, "mode %s is not %s", rfx_plan_shown(value, text),
                           mode_names(names));
}

/* What the mode makes of tiles, bands and rows, with the place where it stands. */
static enum rfx_status check_mode(const struct rfx_plan_reader *r, const char *place,
                                  const struct rfx_stage_spec *spec) {
    struct rfx_error why;
    return rfx_stage_check(spec, &why) == RFX_OK ? RFX_OK
                                                 : rfx_plan_refuse(r, place, "%s", why.text);
}

/* Names of tensors, behind those that have been read; *list receives them. */
static enum rfx_status read_names(struct rfx_plan_reader *r, const char *place, const char *key,
                                  const json_t *names, const int **list, int *n) {
    char at[RFX_PLAN_PLACE_CHARS + 40], text[48];
    enum rfx_status status = RFX_OK;
    *list = r->file->targets + r->n_targets;
    if (names != NULL && !json_is_array(names))
        return rfx_plan_refuse(r, place, "'%s': %s is no list", key, rfx_plan_shown(names, text));
    for (size_t i = 0; status == RFX_OK && i < json_array_size(names); i++) {
        (void)snprintf(at, sizeof at, "%.90s.%s[%d]", place, key, (int)i);
        status = rfx_plan_read_tensor(r, at, json_array_get(names, i),
                                      &r->file->targets[r->n_targets++]);
    }
    *n = (int)json_array_size(names);
    return status;
}

/* Those of a stage's targets that are spilled. */
static enum rfx_status read_spilled(struct rfx_plan_reader *r, const char *place,
                                    const json_t *list, struct rfx_stage_spec *spec) {
    char at[RFX_PLAN_PLACE_CHARS + 40], text[48];
    bool *spilled = r->file->spilled + (spec->targets - r->file->targets);
    enum rfx_status status = RFX_OK;
    spec->spilled = spilled;
    if (list != NULL && !json_is_array(list))
        return rfx_plan_refuse(r, place, "'spilled': %s is no list", rfx_plan_shown(list, text));
    for (size_t i = 0; status == RFX_OK && i < json_array_size(list); i++) {
        int node = -1, t = 0;
        (void)snprintf(at, sizeof at, "%.90s.spilled[%d]", place, (int)i);
        status = rfx_plan_read_tensor(r, at, json_array_get(list, i), &node);
        while (t < spec->n_targets && spec->targets[t] != node) t++;
        if (status == RFX_OK && t == spec->n_targets)
            status = rfx_plan_refuse(r, at, "it is no target of this stage");
        if (status == RFX_OK) spilled[t] = true;
    }
    return status;
}

static enum rfx_status read_stage(struct rfx_plan_reader *r, size_t s, json_t *stage) {
    static const char *const keys[] = {"mode",       "targets", "tiles",   "band_rows", "tight",
                                       "row_by_row", "spilled", "forgets", NULL};
    char place[RFX_PLAN_PLACE_CHARS], text[48];
    struct rfx_stage_spec *spec = &r->file->stages[s];
    (void)snprintf(place, sizeof place, "stages[%d]", (int)s);
    if (!json_is_object(stage))
        return rfx_plan_refuse(r, place, "%s is no stage", rfx_plan_shown(stage, text));
    *spec = (struct rfx_stage_spec){.parts_y = 1, .parts_x = 1};
    const json_t *targets = json_object_get(stage, "targets");
    enum rfx_status status = rfx_plan_check_keys(r, place, stage, keys);
    if (status == RFX_OK) status = read_mode(r, place, stage, &spec->mode);
    if (status == RFX_OK)
        status = rfx_plan_read_pair(r, place, stage, "tiles", &spec->parts_y, &spec->parts_x);
    if (status == RFX_OK)
        status = rfx_plan_read_member(r, place, stage, "band_rows", 0, RFX_PLAN_MAX_COUNT,
                                      &spec->band_rows);
    if (status == RFX_OK) status = rfx_plan_read_flag(r, place, stage, "tight", &spec->tight);
    if (status == RFX_OK)
        status = rfx_plan_read_flag(r, place, stage, "row_by_row", &spec->row_by_row);
    if (status == RFX_OK) status = check_mode(r, place, spec);
    if (status != RFX_OK) return status;
    if (!json_is_array(targets) || json_array_size(targets) == 0)
        return rfx_plan_refuse(r, place, "'targets' must name the tensors that the stage makes");
    status = read_names(r, place, "targets", targets, &spec->targets, &spec->n_targets);
    if (status == RFX_OK) status = read_spilled(r, place, json_object_get(stage, "spilled"), spec);
    if (status == RFX_OK)
        status = read_names(r, place, "forgets", json_object_get(stage, "forgets"),
                            &spec->forgotten, &spec->n_forgotten);
    return status;
}

static enum rfx_status read_stages(struct rfx_plan_reader *r, const json_t *stages) {
    struct rfx_memory *mem = r->graph->mem;
    if (!json_is_array(stages) || json_array_size(stages) == 0)
        return rfx_plan_refuse(r, "stages", "there must be a list of at least one stage");
    size_t n = json_array_size(stages);
    size_t n_targets = 1;
    if (n > MAX_STAGES)
        return rfx_plan_refuse(r, "stages", "%zu stages, at most %d", n, MAX_STAGES);
    for (size_t s = 0; s < n; s++) {
        const json_t *stage = json_array_get(stages, s);
        n_targets += json_array_size(json_object_get(stage, "targets"));
        n_targets += json_array_size(json_object_get(stage, "forgets"));
    }
    r->file->stages = rfx_memory_calloc(mem, n, sizeof *r->file->stages);
    r->file->targets = rfx_memory_calloc(mem, n_targets, sizeof *r->file->targets);
    r->file->spilled = rfx_memory_calloc(mem, n_targets, sizeof *r->file->spilled);
    if (r->file->stages == NULL || r->file->targets == NULL || r->file->spilled == NULL)
        return rfx_memory_fail(mem, "stages of a plan file", n * sizeof *r->file->stages, r->err);
    r->file->n_stages = (int)n;
    enum rfx_status status = RFX_OK;
    for (size_t s = 0; status == RFX_OK && s < n; s++)
        status = read_stage(r, s, json_array_get(stages, s));
    return status;
}

static enum rfx_status read_group(const struct rfx_plan_reader *r, int g, json_t *item,
                                  struct rfx_group_attr *group) {
    static const char *const keys[] = {"first", "last", "strip_cols", "strips", "step_rows", NULL};
    char place[RFX_PLAN_PLACE_CHARS], at[RFX_PLAN_PLACE_CHARS], text[48];
    *group = (struct rfx_group_attr){.strips = 1, .step_rows = 1};
    (void)snprintf(place, sizeof place, "groups[%d]", g);
    if (!json_is_object(item))
        return rfx_plan_refuse(r, place, "%s is no group", rfx_plan_shown(item, text));
    enum rfx_status status = rfx_plan_check_keys(r, place, item, keys);
    (void)snprintf(at, sizeof at, "groups[%d].first", g);
    if (status == RFX_OK)
        status = rfx_plan_read_tensor(r, at, json_object_get(item, "first"), &group->first);
    (void)snprintf(at, sizeof at, "groups[%d].last", g);
    if (status == RFX_OK)
        status = rfx_plan_read_tensor(r, at, json_object_get(item, "last"), &group->last);
    if (status == RFX_OK)
        status = rfx_plan_read_member(r, place, item, "strip_cols", 1, RFX_PLAN_MAX_COUNT,
                                      &group->strip_cols);
    if (status == RFX_OK)
        status =
            rfx_plan_read_member(r, place, item, "strips", 1, RFX_PLAN_MAX_COUNT, &group->strips);
    if (status == RFX_OK)
        status = rfx_plan_read_member(r, place, item, "step_rows", 1, RFX_PLAN_MAX_COUNT,
                                      &group->step_rows);
    if (status != RFX_OK) return status;
    if (group->strip_cols == 0) return rfx_plan_refuse(r, place, "no 'strip_cols'");
    const char *why = rfx_group_refusal(r->graph, group->first, group->last);
    if (why != NULL) return rfx_plan_refuse(r, place, "%s", why);
    return g == 0 || group->first > group[-1].last
               ? RFX_OK
               : rfx_plan_refuse(r, place, "it overlaps the group before it or comes before it");
}

/* The key missing: every node is run by itself. */
static enum rfx_status read_groups(struct rfx_plan_reader *r, const json_t *groups) {
    struct rfx_memory *mem = r->graph->mem;
    char text[48];
    if (groups == NULL) return RFX_OK;
    if (!json_is_array(groups))
        return rfx_plan_refuse(r, "groups", "%s is no list", rfx_plan_shown(groups, text));
    size_t n = json_array_size(groups);
    if (n > (size_t)r->graph->n_nodes)
        return rfx_plan_refuse(r, "groups", "%zu groups are too many", n);
    r->file->groups = rfx_memory_calloc(mem, n + 1, sizeof *r->file->groups);
    if (r->file->groups == NULL)
        return rfx_memory_fail(mem, "groups of a plan file", n * sizeof *r->file->groups, r->err);
    enum rfx_status status = RFX_OK;
    for (size_t g = 0; status == RFX_OK && g < n; g++)
        status = read_group(r, (int)g, json_array_get(groups, g), &r->file->groups[g]);
    r->file->n_groups = (int)n;
    return status;
}

/* Convolutions that keep their factors; the key missing: none does. */
static enum rfx_status read_keepers(struct rfx_plan_reader *r, const json_t *list) {
    struct rfx_memory *mem = r->graph->mem;
    char at[RFX_PLAN_PLACE_CHARS], text[48];
    if (list == NULL) return RFX_OK;
    if (!json_is_array(list))
        return rfx_plan_refuse(r, "keeps_factors", "%s is no list", rfx_plan_shown(list, text));
    size_t n = json_array_size(list);
    r->file->keepers = rfx_memory_calloc(mem, n + 1, sizeof *r->file->keepers);
    if (r->file->keepers == NULL)
        return rfx_memory_fail(mem, "factors of a plan file", n * sizeof *r->file->keepers, r->err);
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; status == RFX_OK && k < n; k++) {
        int *node = &r->file->keepers[k];
        (void)snprintf(at, sizeof at, "keeps_factors[%d]", (int)k);
        status = rfx_plan_read_tensor(r, at, json_array_get(list, k), node);
        if (status == RFX_OK && r->graph->nodes[*node].op != RFX_OP_CONV)
            status = rfx_plan_refuse(r, at, "it is no convolution");
    }
    r->file->n_keepers = (int)n;
    return status;
}

/* Whose arithmetic the plan was made for: a note, but one of those that there are. */
static enum rfx_status check_conv(const struct rfx_plan_reader *r, const json_t *value) {
    enum rfx_conv_choice choice;
    char text[48];
    if (value == NULL) return RFX_OK;
    if (json_is_string(value) && rfx_conv_choice_find(json_string_value(value), &choice))
        return RFX_OK;
    return rfx_plan_refuse(r, "conv", "%s is not \"direct\", \"openblas\" or \"winograd\"",
                           rfx_plan_shown(value, text));
}

/* What kind of file it is and whether it is for this image size. */
static enum rfx_status read_head(struct rfx_plan_reader *r, json_t *root) {
    static const char *const keys[] = {"schema", "kind",      "model",
                                       "size",   "threads",   "in_place",
                                       "stages", "predicted", "weights_by_stage",
                                       "groups", "conv",      "keeps_factors",
                                       NULL};
    char text[48];
    if (!json_is_object(root))
        return rfx_plan_refuse(r, "", "%s is no plan", rfx_plan_shown(root, text));
    const json_t *kind = json_object_get(root, "kind");
    if (!json_is_string(kind) || strcmp(json_string_value(kind), RFX_PLAN_FILE_KIND) != 0)
        return rfx_plan_refuse(r, "kind", "%s is not \"%s\"",
                               kind != NULL ? rfx_plan_shown(kind, text) : "nothing",
                               RFX_PLAN_FILE_KIND);
    int64_t schema = 0, h = 0, w = 0, threads = 0;
    enum rfx_status status = rfx_plan_read_member(r, "", root, "schema", RFX_PLAN_FILE_SCHEMA,
                                                  RFX_PLAN_FILE_SCHEMA, &schema);
    if (status == RFX_OK && schema == 0)
        status = rfx_plan_refuse(r, "schema", "missing, must be 1");
    if (status == RFX_OK) status = rfx_plan_check_keys(r, "", root, keys);
    if (status == RFX_OK) status = check_conv(r, json_object_get(root, "conv"));
    if (status == RFX_OK) status = rfx_plan_read_pair(r, "", root, "size", &h, &w);
    if (status == RFX_OK)
        status = rfx_plan_read_member(r, "", root, "threads", 1, MAX_THREADS, &threads);
    if (status == RFX_OK)
        status = rfx_plan_read_flag(r, "", root, "weights_by_stage", &r->file->weights_by_stage);
    if (status == RFX_OK) status = rfx_plan_read_flag(r, "", root, "in_place", &r->file->in_place);
    if (status != RFX_OK) return status;
    r->file->threads = (int)threads;
    const struct rfx_tensor *input = &r->graph->nodes[r->graph->input].out;
    if (h != 0 && (h != input->h || w != input->w))
        return rfx_plan_refuse(
            r, "size", "the plan is for %lldx%lld, the network's input is %lldx%lld", (long long)h,
            (long long)w, (long long)input->h, (long long)input->w);
    return RFX_OK;
}

enum rfx_status rfx_plan_file_parse(const struct rfx_graph *graph, const char *text, size_t length,
                                    const char *name, struct rfx_plan_file **out,
                                    struct rfx_error *err) {
    struct rfx_plan_reader r = {.graph = graph, .name = name, .err = err};
    json_error_t where;
    enum rfx_status status;
    errno = 0;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    /* Jansson has no word for memory that it has not got: it calls the text malformed. */
    if (root == NULL && errno == ENOMEM) return rfx_memory_fail(graph->mem, name, length, err);
    if (root == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.100s: line %d, column %d: %s", name,
                        where.line, where.column, where.text);
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
    FILE *stream = rfx_descriptor_stream(path);
    if (stream == NULL)
        return rfx_fail(err, errno == ENOMEM ? RFX_STATUS_IO : RFX_STATUS_MALFORMED,
                        "plan '%s': cannot be opened: %s", path, strerror(errno));
    char *text = NULL;
    enum rfx_status status;
    long size = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
    if (size < 0 || size > MAX_FILE_BYTES || fseek(stream, 0, SEEK_SET) != 0) {
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "plan '%s': not a file of at most %ld bytes",
                          path, MAX_FILE_BYTES);
        goto done;
    }
    text = rfx_memory_alloc(graph->mem, (size_t)size + 1);
    if (text == NULL) {
        status = rfx_memory_fail(graph->mem, "plan file", (size_t)size + 1, err);
        goto done;
    }
    status = fread(text, 1, (size_t)size, stream) == (size_t)size
                 ? rfx_plan_file_parse(graph, text, (size_t)size, path, out, err)
                 : rfx_fail(err, RFX_STATUS_IO, "plan '%s': cannot be read", path);
done:
    rfx_memory_release(graph->mem, text);
    (void)fclose(stream);
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
