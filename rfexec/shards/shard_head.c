/* See shard_head.h. */
#include "rfexec/shards/shard_head.h"

#include <string.h>
#include <strings.h>

#include "layers/core/checked.h"
#include "rfexec/output/head_file.h"

json_t *rfx_shard_head_json(const struct rfx_graph *graph) {
    const struct rfx_output *output = NULL;
    for (int k = 0; k < graph->n_outputs; k++)
        if (graph->outputs[k].stored.head != NULL) output = &graph->outputs[k];
    if (output == NULL) return NULL;
    const struct rfx_detector *d = output->stored.detector;
    json_t *head = json_pack("{s:s, s:s}", "output", output->name, "name", output->stored.head);
    if (d == NULL) return head;
    json_t *cells = json_array(), *values = json_array();
    for (int l = 0; l < d->n_levels; l++)
        (void)json_array_append_new(
            cells, json_pack("[I,I]", (json_int_t)d->levels[l].h, (json_int_t)d->levels[l].w));
    for (int o = 0; o < d->n_outputs; o++)
        (void)json_array_append_new(values, json_integer(d->outputs[o].channels));
    json_t *file = json_pack("{s:o, s:o, s:o}", "file", rfx_head_file_json(d), "cells", cells,
                             "values", values);
    bool whole = head != NULL && file != NULL && json_object_update(head, file) == 0;
    json_decref(file);
    if (whole) return head;
    json_decref(head);
    return NULL;
}

static const char *text_of(const json_t *head, const char *key) {
    return json_string_value(json_object_get(head, key));
}

static enum rfx_status fail_damaged(struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_MALFORMED, "the member 'head' of 'run' is not valid");
}

enum rfx_status rfx_shard_head_load(const json_t *run, struct rfx_detector *detector,
                                    struct rfx_load_options *load, struct rfx_error *err) {
    const json_t *head = json_object_get(run, "head");
    json_t *file = json_object_get(head, "file");
    if (head == NULL) return RFX_OK;
    if (text_of(head, "name") == NULL) return fail_damaged(err);
    load->join_heads = load->head_only = true;
    if (file == NULL) return RFX_OK;
    load->detector = detector;
    return rfx_head_file_take(file, text_of(head, "name"), detector, err);
}

/* Whether two descriptions join the same outputs in the same way. */
static bool join_alike(const struct rfx_detector *a, const struct rfx_detector *b) {
    bool same = a->n_outputs == b->n_outputs && a->n_levels == b->n_levels;
    for (int o = 0; same && o < a->n_outputs; o++) {
        const struct rfx_detector_output *x = &a->outputs[o], *y = &b->outputs[o];
        same = x->n_names == y->n_names && strcmp(x->axes, y->axes) == 0;
        for (int i = 0; same && i < x->n_names; i++) same = strcmp(x->names[i], y->names[i]) == 0;
    }
    for (int l = 0; same && l < a->n_levels; l++)
        same = a->levels[l].anchors == b->levels[l].anchors;
    return same;
}

/* Reads the cells of the levels and the values of the outputs, and places the values. Returns
 * whether they are those of the shard's output. */
static bool read_layout(const json_t *head, const struct rfx_shard_file *shard,
                        struct rfx_detector *d) {
    const json_t *cells = json_object_get(head, "cells"), *values = json_object_get(head, "values");
    int64_t sum = 0, most = shard->cells.of, channels = 0;
    d->image_h = shard->image[0];
    d->image_w = shard->image[1];
    for (int l = 0; l < d->n_levels; l++) {
        const json_t *cell = json_array_get(cells, (size_t)l);
        int64_t h = json_integer_value(json_array_get(cell, 0)), n;
        int64_t w = json_integer_value(json_array_get(cell, 1));
        if (h < 1 || w < 1 || !rfx_checked_mul_i64(h, w, &n) || n > most - sum) return false;
        d->levels[l].h = h;
        d->levels[l].w = w;
        sum += n;
    }
    for (int o = 0; o < d->n_outputs; o++) {
        int64_t n = json_integer_value(json_array_get(values, (size_t)o));
        if (n < 1 || n > shard->cells.channels - channels) return false;
        d->outputs[o].channels = n;
        channels += n;
    }
    return sum == most && rfx_detector_settle(d) < 0 &&
           d->places[RFX_DETECTOR_SCORES].n > d->background &&
           d->most_anchors * d->channels == shard->cells.channels;
}

enum rfx_status rfx_shard_head_declare(struct rfx_memory *mem, const struct rfx_shard_file *shard,
                                       const char *asked, struct rfx_detector *detector,
                                       struct rfx_stored *stored, struct rfx_error *err) {
    const json_t *head = json_object_get(shard->run, "head");
    const char *output = text_of(head, "output"), *name = text_of(head, "name");
    json_t *file = json_object_get(head, "file");
    bool is_file = asked != NULL && rfx_head_is_file(asked);
    struct rfx_detector own;
    bool joined = output != NULL && name != NULL && strcmp(output, shard->output) == 0;
    if (is_file && (!joined || file == NULL))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "--head '%.100s': the parts are of output '%.60s', which no head file has "
                        "joined: make them by run --part --head FILE.json",
                        asked, shard->output);
    if (!joined) return RFX_OK;
    if (file != NULL && asked != NULL && !is_file && strcasecmp(asked, name) != 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "--head '%.60s': the parts are of the head '%.60s'", asked, name);
    stored->head = name;
    if (file == NULL) return RFX_OK;
    enum rfx_status status = rfx_head_file_take(file, name, &own, err);
    *detector = own;
    if (status == RFX_OK && is_file) status = rfx_head_file_read(mem, asked, detector, err);
    if (status != RFX_OK) return status;
    if (!join_alike(&own, detector))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "--head '%.100s': the parts were joined by '%.60s', which has other "
                        "outputs, axes or anchors",
                        asked, name);
    if (!read_layout(head, shard, detector))
        return is_file ? rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                  "--head '%.100s': its values or its background are not those of "
                                  "the parts",
                                  asked)
                       : fail_damaged(err);
    stored->head = detector->name;
    stored->detector = detector;
    return RFX_OK;
}
