/* Members of head files, each checked where it is read; then what must fit together; then the
 * same members written. */
#include "rfexec/output/head_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "layers/core/printable.h"
#include "tiler/plan/json_reader.h"

enum { PLACE = 80 };
static const long MOST_BYTES = 1L << 20;
static const double MOST_SIDE = 1e6; /* of anchors and strides */

struct reader {
    struct rfx_json_reader json;
    struct rfx_detector *head;
};

static const char *const decodes[] = {"corners", "centre", "distances", "deltas", "cells",
                                      "yolov3",  "yolov5", "centernet", NULL};
_Static_assert(sizeof decodes / sizeof *decodes == RFX_DETECTOR_DECODES + 1, "a word each");
static const char *const activations[] = {"none", "sigmoid", "softmax", NULL};
_Static_assert(sizeof activations / sizeof *activations == RFX_DETECTOR_ACTIVATIONS + 1, "each");
static const char *const values[] = {"box",    "objectness", "scores", "points",
                                     "centre", "sides",      NULL};
_Static_assert(sizeof values / sizeof *values == RFX_DETECTOR_VALUES + 1, "a word each");

bool rfx_head_is_file(const char *head) {
    size_t n = strlen(head);
    return n > 5 && strcasecmp(head + n - 5, ".json") == 0;
}

/* Reads one of the words of a NULL-terminated list; NULL leaves *out unchanged. */
static enum rfx_status read_word(const struct reader *r, const char *place, const json_t *value,
                                 const char *const *words, int *out) {
    char text[RFX_JSON_SHOWN], list[120] = "";
    if (value == NULL) return RFX_OK;
    for (int i = 0; words[i] != NULL; i++) {
        size_t used = strlen(list);
        if (json_is_string(value) && strcmp(json_string_value(value), words[i]) == 0) {
            *out = i;
            return RFX_OK;
        }
        (void)snprintf(list + used, sizeof list - used, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
    }
    return rfx_json_refuse(&r->json, place, "%s is none of %s", rfx_json_shown(value, text), list);
}

/* Reads a number of [lo, hi] that is one in float32, too; NULL leaves *out unchanged. */
static enum rfx_status read_number(const struct reader *r, const char *place, const json_t *value,
                                   double lo, double hi, float *out) {
    char text[RFX_JSON_SHOWN];
    if (value == NULL) return RFX_OK;
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(number >= lo && number <= hi))
        return rfx_json_refuse(&r->json, place, "%s is not a number from %g to %g",
                               rfx_json_shown(value, text), lo, hi);
    *out = (float)number;
    return RFX_OK;
}

/* Checks that a value is a list of lo to hi items and sets *n to their number. */
static enum rfx_status check_list(const struct reader *r, const char *place, const json_t *value,
                                  int lo, int hi, int *n) {
    char text[RFX_JSON_SHOWN];
    size_t size = json_array_size(value);
    if (!json_is_array(value) || size < (size_t)lo || size > (size_t)hi)
        return rfx_json_refuse(&r->json, place, "%s is not a list of %d to %d items",
                               rfx_json_shown(value, text), lo, hi);
    *n = (int)size;
    return RFX_OK;
}

static enum rfx_status read_numbers(const struct reader *r, const char *place, const json_t *value,
                                    double least, int lo, int hi, float *out, int *n) {
    char at[PLACE + 16];
    enum rfx_status status = check_list(r, place, value, lo, hi, n);
    for (int i = 0; status == RFX_OK && i < *n; i++) {
        (void)snprintf(at, sizeof at, "%s[%d]", place, i);
        status = read_number(r, at, json_array_get(value, (size_t)i), least, MOST_SIDE, &out[i]);
    }
    return status;
}

/* ---- outputs ---- */

static enum rfx_status read_names(const struct reader *r, const char *place, const json_t *list,
                                  struct rfx_detector_output *out) {
    char at[PLACE + 16], text[RFX_JSON_SHOWN];
    enum rfx_status status = check_list(r, place, list, 1, RFX_DETECTOR_LEVELS, &out->n_names);
    for (int i = 0; status == RFX_OK && i < out->n_names; i++) {
        const json_t *name = json_array_get(list, (size_t)i);
        (void)snprintf(at, sizeof at, "%s[%d]", place, i);
        size_t length = json_string_length(name);
        if (!json_is_string(name) || length == 0 || length >= RFX_DETECTOR_NAME)
            return rfx_json_refuse(&r->json, at, "%s is not the name of an output",
                                   rfx_json_shown(name, text));
        rfx_printable(json_string_value(name), out->names[i], RFX_DETECTOR_NAME);
    }
    return status;
}

/* Whether the text has words of the letters y, x, a and v, or n and v, each letter once. */
static bool are_axes(const char *text) {
    int seen[128] = {0};
    for (const char *p = text; *p != '\0'; p++) {
        bool space = *p == ' ';
        if (strchr("yxavn ", *p) == NULL || (!space && seen[(int)*p]++ > 0)) return false;
        if (space && (p == text || p[-1] == ' ' || p[1] == '\0')) return false;
    }
    bool cells = seen['y'] && seen['x'] && !seen['n'];
    bool listed = seen['n'] && !seen['y'] && !seen['x'] && !seen['a'];
    return seen['v'] && (cells || listed);
}

static enum rfx_status read_axes(const struct reader *r, const char *place, const json_t *value,
                                 struct rfx_detector_output *out) {
    char text[RFX_JSON_SHOWN];
    const char *axes = json_string_value(value);
    if (axes == NULL || strlen(axes) >= RFX_DETECTOR_AXES || !are_axes(axes))
        return rfx_json_refuse(&r->json, place,
                               "%s is not such as \"yxa v\", \"av y x\" or \"n v\": a word for "
                               "each axis, of the letters y, x, a and v or n and v",
                               rfx_json_shown(value, text));
    (void)snprintf(out->axes, sizeof out->axes, "%s", axes);
    const char *anchors = strchr(axes, 'a');
    out->values_first = anchors != NULL && strchr(axes, 'v') < anchors;
    return RFX_OK;
}

static enum rfx_status read_values(const struct reader *r, const char *place, const json_t *list,
                                   struct rfx_detector_output *out) {
    char at[PLACE + 16];
    enum rfx_status status = check_list(r, place, list, 1, RFX_DETECTOR_VALUES, &out->n_values);
    for (int i = 0; status == RFX_OK && i < out->n_values; i++) {
        int which = 0;
        (void)snprintf(at, sizeof at, "%s[%d]", place, i);
        status = read_word(r, at, json_array_get(list, (size_t)i), values, &which);
        out->values[i] = (enum rfx_detector_value)which;
    }
    return status;
}

static enum rfx_status read_output(const struct reader *r, int i, json_t *item) {
    static const char *const keys[] = {"names", "axes", "values", NULL};
    struct rfx_detector_output *out = &r->head->outputs[i];
    char place[PLACE], at[PLACE], text[RFX_JSON_SHOWN];
    (void)snprintf(place, sizeof place, "outputs[%d]", i);
    if (!json_is_object(item))
        return rfx_json_refuse(&r->json, place, "%s is no object", rfx_json_shown(item, text));
    enum rfx_status status = rfx_json_check_keys(&r->json, place, item, keys);
    (void)snprintf(at, sizeof at, "outputs[%d].names", i);
    if (status == RFX_OK) status = read_names(r, at, json_object_get(item, "names"), out);
    (void)snprintf(at, sizeof at, "outputs[%d].axes", i);
    if (status == RFX_OK) status = read_axes(r, at, json_object_get(item, "axes"), out);
    (void)snprintf(at, sizeof at, "outputs[%d].values", i);
    if (status == RFX_OK) status = read_values(r, at, json_object_get(item, "values"), out);
    return status;
}

static enum rfx_status read_outputs(const struct reader *r, const json_t *list) {
    int *n = &r->head->n_outputs;
    enum rfx_status status = check_list(r, "outputs", list, 1, RFX_DETECTOR_OUTPUTS, n);
    for (int i = 0; status == RFX_OK && i < *n; i++)
        status = read_output(r, i, json_array_get(list, (size_t)i));
    return status;
}

/* ---- levels ---- */

/* Anchors of every size in every shape, in torchvision's order and arithmetic: the shapes are the
 * slower ones. */
static enum rfx_status make_anchors(const struct reader *r, const char *place, json_t *made,
                                    struct rfx_detector_level *level) {
    static const char *const keys[] = {"sizes", "ratios", "round", NULL};
    float sizes[RFX_DETECTOR_ANCHORS], ratios[RFX_DETECTOR_ANCHORS];
    char at[PLACE + 16];
    int n_sizes = 0, n_ratios = 0;
    bool round = false;
    enum rfx_status status = rfx_json_check_keys(&r->json, place, made, keys);
    (void)snprintf(at, sizeof at, "%s.sizes", place);
    if (status == RFX_OK)
        status = read_numbers(r, at, json_object_get(made, "sizes"), 1e-6, 1, RFX_DETECTOR_ANCHORS,
                              sizes, &n_sizes);
    (void)snprintf(at, sizeof at, "%s.ratios", place);
    if (status == RFX_OK)
        status = read_numbers(r, at, json_object_get(made, "ratios"), 1e-6, 1, RFX_DETECTOR_ANCHORS,
                              ratios, &n_ratios);
    if (status == RFX_OK) status = rfx_json_flag(&r->json, place, made, "round", &round);
    if (status != RFX_OK) return status;
    if (n_sizes * n_ratios > RFX_DETECTOR_ANCHORS)
        return rfx_json_refuse(&r->json, place, "%d sizes and %d ratios are more than %d anchors",
                               n_sizes, n_ratios, RFX_DETECTOR_ANCHORS);
    for (int k = 0; k < n_sizes * n_ratios; k++) {
        float tall = sqrtf(ratios[k / n_sizes]), side[2] = {1.0F / tall, tall};
        for (int i = 0; i < 2; i++) {
            float half = side[i] * sizes[k % n_sizes] / 2;
            level->anchor[k][i] = 2 * (round ? rintf(half) : half);
        }
    }
    level->anchors = n_sizes * n_ratios;
    return RFX_OK;
}

static enum rfx_status read_anchors(const struct reader *r, const char *place, json_t *value,
                                    struct rfx_detector_level *level) {
    char at[PLACE + 16];
    int n;
    if (json_is_object(value)) return make_anchors(r, place, value, level);
    enum rfx_status status = check_list(r, place, value, 1, RFX_DETECTOR_ANCHORS, &level->anchors);
    for (int k = 0; status == RFX_OK && k < level->anchors; k++) {
        (void)snprintf(at, sizeof at, "%s[%d]", place, k);
        status =
            read_numbers(r, at, json_array_get(value, (size_t)k), 1e-6, 2, 2, level->anchor[k], &n);
    }
    return status;
}

static enum rfx_status read_level(const struct reader *r, int i, json_t *item) {
    static const char *const keys[] = {"stride", "anchors", NULL};
    struct rfx_detector_level *level = &r->head->levels[i];
    char place[PLACE], at[PLACE], text[RFX_JSON_SHOWN];
    (void)snprintf(place, sizeof place, "levels[%d]", i);
    if (!json_is_object(item))
        return rfx_json_refuse(&r->json, place, "%s is no object", rfx_json_shown(item, text));
    json_t *anchors = json_object_get(item, "anchors");
    if (i > 0 && (anchors != NULL) != r->head->has_anchors)
        return rfx_json_refuse(&r->json, place, "all levels have anchors, or none");
    r->head->has_anchors = anchors != NULL;
    level->anchors = 1;
    enum rfx_status status = rfx_json_check_keys(&r->json, place, item, keys);
    (void)snprintf(at, sizeof at, "levels[%d].stride", i);
    if (status == RFX_OK)
        status = read_number(r, at, json_object_get(item, "stride"), 1, MOST_SIDE, &level->stride);
    (void)snprintf(at, sizeof at, "levels[%d].anchors", i);
    if (status == RFX_OK && anchors != NULL) status = read_anchors(r, at, anchors, level);
    return status;
}

/* Without a list, each name of the first output is a level. */
static enum rfx_status read_levels(const struct reader *r, const json_t *list) {
    struct rfx_detector *head = r->head;
    head->n_levels = head->outputs[0].n_names;
    if (list == NULL) {
        for (int i = 0; i < head->n_levels; i++) head->levels[i].anchors = 1;
        return RFX_OK;
    }
    enum rfx_status status = check_list(r, "levels", list, 1, RFX_DETECTOR_LEVELS, &head->n_levels);
    for (int i = 0; status == RFX_OK && i < head->n_levels; i++)
        status = read_level(r, i, json_array_get(list, (size_t)i));
    return status;
}

/* ---- what must fit together ---- */

static bool has_letter(const struct rfx_detector_output *out, char letter) {
    return strchr(out->axes, letter) != NULL;
}

static enum rfx_status check_output(const struct reader *r, int i, int n_values[]) {
    const struct rfx_detector *head = r->head;
    const struct rfx_detector_output *out = &head->outputs[i];
    char place[PLACE];
    bool cells = head->decode != RFX_DETECTOR_CORNERS && head->decode != RFX_DETECTOR_CENTRE;
    (void)snprintf(place, sizeof place, "outputs[%d]", i);
    if (out->n_names != 1 && out->n_names != head->n_levels)
        return rfx_json_refuse(&r->json, place, "%d names for %d levels: one name, or one each",
                               out->n_names, head->n_levels);
    if (cells && has_letter(out, 'n'))
        return rfx_json_refuse(&r->json, place, "\"%s\" decodes by rows and columns: y and x",
                               decodes[head->decode]);
    if (!has_letter(out, 'a'))
        for (int l = 0; l < head->n_levels; l++)
            if (head->levels[l].anchors > 1)
                return rfx_json_refuse(&r->json, place, "levels[%d] has %d anchors: an axis a", l,
                                       head->levels[l].anchors);
    /* Levels follow each other along one axis. */
    const char *y = strchr(out->axes, 'y'), *x = strchr(out->axes, 'x');
    size_t length = y != NULL ? strcspn(y < x ? y : x, " ") : 0;
    if (out->n_names < head->n_levels && (y == NULL || (size_t)(y < x ? x - y : y - x) >= length))
        return rfx_json_refuse(&r->json, place,
                               "several levels in one output follow each other along one axis, "
                               "which has y and x");
    for (int k = 0; k < out->n_values; k++)
        if (n_values[out->values[k]]++ > 0)
            return rfx_json_refuse(&r->json, place, "there is \"%s\" twice",
                                   values[out->values[k]]);
    return RFX_OK;
}

/* A box is one value of four numbers, or of two outputs two each. */
static enum rfx_status check_box(const struct reader *r, const int n_values[]) {
    enum rfx_detector_decode decode = r->head->decode;
    int halves = n_values[RFX_DETECTOR_BOX_CENTRE] + n_values[RFX_DETECTOR_BOX_SIDES];
    if (halves == 0 && n_values[RFX_DETECTOR_BOX] == 0)
        return rfx_json_refuse(&r->json, "outputs", "no output has \"box\"");
    if (halves != 0 && (halves != 2 || n_values[RFX_DETECTOR_BOX] != 0))
        return rfx_json_refuse(&r->json, "outputs",
                               "a box is \"box\", or \"centre\" and \"sides\"");
    if (halves != 0 && (decode == RFX_DETECTOR_CORNERS || decode == RFX_DETECTOR_DISTANCES))
        return rfx_json_refuse(&r->json, "outputs", "\"%s\" has no \"centre\" and \"sides\"",
                               decodes[decode]);
    return RFX_OK;
}

/* Peaks are found in maps of the scores. */
static enum rfx_status check_peaks(const struct reader *r, const int n_values[]) {
    const struct rfx_detector *head = r->head;
    const char *decode = decodes[RFX_DETECTOR_CENTERNET];
    if (head->activation == RFX_DETECTOR_SOFTMAX)
        return rfx_json_refuse(&r->json, "activation", "\"%s\" has none or \"sigmoid\"", decode);
    if (n_values[RFX_DETECTOR_OBJECTNESS] > 0)
        return rfx_json_refuse(&r->json, "outputs", "\"%s\" has no objectness", decode);
    for (int i = 0; i < head->n_outputs; i++) {
        const struct rfx_detector_output *out = &head->outputs[i];
        char place[PLACE];
        bool scores = false;
        for (int k = 0; k < out->n_values; k++) scores |= out->values[k] == RFX_DETECTOR_SCORES;
        (void)snprintf(place, sizeof place, "outputs[%d]", i);
        if (scores && (out->n_values > 1 || out->n_names != head->n_levels ||
                       (strcmp(out->axes, "v y x") != 0 && strcmp(out->axes, "y x v") != 0)))
            return rfx_json_refuse(&r->json, place,
                                   "\"%s\" finds peaks in maps that have \"scores\" alone, of axes "
                                   "\"v y x\" or \"y x v\", one for each level",
                                   decode);
    }
    return RFX_OK;
}

static enum rfx_status check_together(const struct reader *r) {
    const struct rfx_detector *head = r->head;
    int n_values[RFX_DETECTOR_VALUES] = {0};
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < head->n_outputs && status == RFX_OK; i++)
        status = check_output(r, i, n_values);
    if (status == RFX_OK) status = check_box(r, n_values);
    if (status == RFX_OK && head->decode == RFX_DETECTOR_CENTERNET)
        status = check_peaks(r, n_values);
    if (status != RFX_OK) return status;
    if (n_values[RFX_DETECTOR_SCORES] == 0)
        return rfx_json_refuse(&r->json, "outputs", "no output has \"%s\"",
                               values[RFX_DETECTOR_SCORES]);
    bool needs = head->decode == RFX_DETECTOR_DELTAS || head->decode == RFX_DETECTOR_YOLOV3 ||
                 head->decode == RFX_DETECTOR_YOLOV5;
    bool may = needs || head->decode == RFX_DETECTOR_DISTANCES;
    if (head->has_anchors ? !may : needs)
        return rfx_json_refuse(&r->json, "levels", "\"%s\" decodes %s anchors",
                               decodes[head->decode], needs ? "by" : "without");
    bool yolo = head->decode == RFX_DETECTOR_YOLOV3 || head->decode == RFX_DETECTOR_YOLOV5;
    if (yolo && n_values[RFX_DETECTOR_POINTS] > 0)
        return rfx_json_refuse(&r->json, "outputs", "\"%s\" decodes no points",
                               decodes[head->decode]);
    if (head->root && n_values[RFX_DETECTOR_OBJECTNESS] == 0)
        return rfx_json_refuse(&r->json, "root", "there is no objectness");
    return RFX_OK;
}

static enum rfx_status read_settings(const struct reader *r, json_t *root) {
    struct rfx_detector *head = r->head;
    const json_t *weights = json_object_get(root, "weights");
    int n, decode = -1, activation = RFX_DETECTOR_NONE;
    enum rfx_status status =
        read_word(r, "decode", json_object_get(root, "decode"), decodes, &decode);
    if (status == RFX_OK && decode < 0) status = rfx_json_refuse(&r->json, "", "no \"decode\"");
    if (status == RFX_OK)
        status = read_word(r, "activation", json_object_get(root, "activation"), activations,
                           &activation);
    if (status == RFX_OK) status = rfx_json_flag(&r->json, "", root, "shares", &head->shares);
    if (status == RFX_OK) status = rfx_json_flag(&r->json, "", root, "root", &head->root);
    if (status == RFX_OK)
        status = rfx_json_flag(&r->json, "", root, "every_class", &head->every_class);
    if (status == RFX_OK) status = rfx_json_flag(&r->json, "", root, "clip", &head->clip);
    if (status == RFX_OK)
        status = rfx_json_count(&r->json, "background", json_object_get(root, "background"), 0,
                                INT32_MAX, &head->background);
    if (status == RFX_OK)
        status = read_number(r, "offset", json_object_get(root, "offset"), -MOST_SIDE, MOST_SIDE,
                             &head->offset);
    if (status == RFX_OK)
        status = read_number(r, "limit", json_object_get(root, "limit"), -MOST_SIDE, MOST_SIDE,
                             &head->limit);
    if (status == RFX_OK && weights != NULL)
        status = read_numbers(r, "weights", weights, 1e-6, 4, 4, head->weights, &n);
    head->decode = (enum rfx_detector_decode)decode;
    head->activation = (enum rfx_detector_activation)activation;
    head->every_class |= head->decode == RFX_DETECTOR_CENTERNET;
    return status;
}

static enum rfx_status read_head(const struct reader *r, json_t *root) {
    static const char *const keys[] = {
        "outputs",     "levels", "decode", "activation", "shares", "root", "background",
        "every_class", "clip",   "offset", "weights",    "limit",  NULL};
    char text[RFX_JSON_SHOWN];
    if (!json_is_object(root))
        return rfx_json_refuse(&r->json, "", "%s is no head", rfx_json_shown(root, text));
    enum rfx_status status = rfx_json_check_keys(&r->json, "", root, keys);
    if (status == RFX_OK) status = read_settings(r, root);
    if (status == RFX_OK) status = read_outputs(r, json_object_get(root, "outputs"));
    if (status == RFX_OK) status = read_levels(r, json_object_get(root, "levels"));
    return status == RFX_OK ? check_together(r) : status;
}

enum rfx_status rfx_head_file_take(json_t *root, const char *name, struct rfx_detector *out,
                                   struct rfx_error *err) {
    struct rfx_detector head = {
        .background = -1, .offset = 0.5F, .weights = {1, 1, 1, 1}, .limit = INFINITY};
    const struct reader r = {.json = {name, err}, .head = &head};
    const char *slash = strrchr(name, '/');
    rfx_printable(slash != NULL ? slash + 1 : name, head.name, sizeof head.name);
    enum rfx_status status = read_head(&r, root);
    if (status == RFX_OK) *out = head;
    return status;
}

enum rfx_status rfx_head_file_parse(struct rfx_memory *mem, const char *text, size_t length,
                                    const char *name, struct rfx_detector *out,
                                    struct rfx_error *err) {
    const struct rfx_json_reader json = {name, err};
    json_t *root;
    enum rfx_status status = rfx_json_parse(&json, mem, text, length, &root);
    if (status != RFX_OK) return status;
    status = rfx_head_file_take(root, name, out, err);
    json_decref(root);
    return status;
}

enum rfx_status rfx_head_file_read(struct rfx_memory *mem, const char *path,
                                   struct rfx_detector *out, struct rfx_error *err) {
    const struct rfx_json_reader json = {path, err};
    char *text = NULL;
    size_t length = 0;
    enum rfx_status status = rfx_json_text(&json, "head", MOST_BYTES, mem, &text, &length);
    if (status == RFX_OK) status = rfx_head_file_parse(mem, text, length, path, out, err);
    rfx_memory_release(mem, text);
    return status;
}

/* ---- writing ---- */

static json_t *numbers_json(const float *numbers, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) (void)json_array_append_new(list, json_real((double)numbers[i]));
    return list;
}

static json_t *outputs_json(const struct rfx_detector *head) {
    json_t *list = json_array();
    for (int o = 0; o < head->n_outputs; o++) {
        const struct rfx_detector_output *out = &head->outputs[o];
        json_t *names = json_array(), *words = json_array();
        for (int i = 0; i < out->n_names; i++)
            (void)json_array_append_new(names, json_string(out->names[i]));
        for (int i = 0; i < out->n_values; i++)
            (void)json_array_append_new(words, json_string(values[out->values[i]]));
        (void)json_array_append_new(
            list, json_pack("{s:o, s:s, s:o}", "names", names, "axes", out->axes, "values", words));
    }
    return list;
}

static json_t *levels_json(const struct rfx_detector *head) {
    json_t *list = json_array();
    for (int l = 0; l < head->n_levels; l++) {
        const struct rfx_detector_level *level = &head->levels[l];
        json_t *item = json_object(), *anchors = head->has_anchors ? json_array() : NULL;
        if (level->stride > 0)
            (void)json_object_set_new(item, "stride", json_real((double)level->stride));
        for (int k = 0; anchors != NULL && k < level->anchors; k++)
            (void)json_array_append_new(anchors, numbers_json(level->anchor[k], 2));
        if (anchors != NULL) (void)json_object_set_new(item, "anchors", anchors);
        (void)json_array_append_new(list, item);
    }
    return list;
}

json_t *rfx_head_file_json(const struct rfx_detector *head) {
    json_t *limit = isinf(head->limit) ? NULL : json_real((double)head->limit);
    json_t *background = head->background < 0 ? NULL : json_integer(head->background);
    return json_pack("{s:o, s:o, s:s, s:s, s:b, s:b, s:b, s:b, s:f, s:o, s:o*, s:o*}", "outputs",
                     outputs_json(head), "levels", levels_json(head), "decode",
                     decodes[head->decode], "activation", activations[head->activation], "shares",
                     (int)head->shares, "root", (int)head->root, "every_class",
                     (int)head->every_class, "clip", (int)head->clip, "offset",
                     (double)head->offset, "weights", numbers_json(head->weights, 4), "limit",
                     limit, "background", background);
}
