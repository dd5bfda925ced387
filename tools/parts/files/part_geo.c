/* {"scale": [3], "points": [6 n], "matrix": [16], "keys": [4 n], "params": [...], "texts": "",
 * "no_data": "", "metadata": "", "pixel_um": [2]}, what there is of it. */
#include "tools/parts/files/part_geo.h"

#include <math.h>
#include <string.h>

static json_t *doubles_json(const double *values, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) (void)json_array_append_new(list, json_real(values[i]));
    return list;
}

static void put_doubles(json_t *to, const char *key, const double *values, int n) {
    if (n > 0) (void)json_object_set_new(to, key, doubles_json(values, n));
}

static void put_text(json_t *to, const char *key, const char *text) {
    if (text == NULL) return;
    json_t *value = json_string(text);
    if (value == NULL) {
        value = json_array();
        for (const char *p = text; *p != '\0'; p++)
            (void)json_array_append_new(value, json_integer((unsigned char)*p));
    }
    (void)json_object_set_new(to, key, value);
}

json_t *rfx_part_geo_json(const struct rfx_georeference *geo) {
    if (rfx_georeference_is_empty(geo)) return NULL;
    json_t *json = json_object();
    put_doubles(json, "scale", geo->scale, geo->has_scale ? RFX_GEO_SCALE : 0);
    put_doubles(json, "points", geo->points, geo->n_points);
    put_doubles(json, "matrix", geo->matrix, geo->has_matrix ? RFX_GEO_MATRIX : 0);
    if (geo->n_keys > 0) {
        json_t *keys = json_array();
        for (int i = 0; i < geo->n_keys; i++)
            (void)json_array_append_new(keys, json_integer(geo->keys[i]));
        (void)json_object_set_new(json, "keys", keys);
    }
    put_doubles(json, "params", geo->params, geo->n_params);
    put_text(json, "texts", geo->texts);
    put_text(json, "no_data", geo->no_data);
    put_text(json, "metadata", geo->metadata);
    put_doubles(json, "pixel_um", geo->pixel_um, geo->pixel_um[0] > 0.0 ? 2 : 0);
    return json;
}

/* What is read, and why it is none. */
struct parse {
    struct rfx_georeference *geo;
    const json_t *json;
    const char *wrong; /* a member; NULL: all are well */
    bool no_memory;
};

/* The list of a member: *n its length (0: there is none). Too long: wrong. */
static const json_t *list_of(struct parse *p, const char *key, size_t *n) {
    const json_t *list = json_object_get(p->json, key);
    *n = json_array_size(list);
    if (list != NULL && (!json_is_array(list) || *n > RFX_GEO_MOST_BYTES)) p->wrong = key;
    if (p->wrong != NULL) *n = 0;
    return list;
}

/* Doubles of a list, in a block of their own. */
static void take_doubles(struct parse *p, const char *key, double **to, int *count) {
    size_t n;
    const json_t *list = list_of(p, key, &n);
    if (n == 0) return;
    *to = rfx_memory_alloc(p->geo->mem, n * sizeof **to);
    p->no_memory |= *to == NULL;
    for (size_t i = 0; i < n && *to != NULL; i++) {
        const json_t *value = json_array_get(list, i);
        (*to)[i] = json_number_value(value);
        if (!json_is_number(value) || !isfinite((*to)[i])) p->wrong = key;
    }
    if (*to != NULL) *count = (int)n;
}

static void take_fixed(struct parse *p, const char *key, int n, double *to, bool *has) {
    double *values = NULL;
    int count = 0;
    take_doubles(p, key, &values, &count);
    *has = count == n;
    if (*has) memcpy(to, values, (size_t)n * sizeof *to);
    if (count != 0 && count != n) p->wrong = key;
    rfx_memory_release(p->geo->mem, values);
}

static void take_keys(struct parse *p) {
    size_t n;
    const json_t *list = list_of(p, "keys", &n);
    if (n == 0) return;
    if (n % 4 != 0) p->wrong = "keys";
    p->geo->keys = rfx_memory_alloc(p->geo->mem, n * sizeof *p->geo->keys);
    p->no_memory |= p->geo->keys == NULL;
    for (size_t i = 0; i < n && p->geo->keys != NULL; i++) {
        const json_t *value = json_array_get(list, i);
        json_int_t key = json_integer_value(value);
        if (!json_is_integer(value) || key < 0 || key > UINT16_MAX) p->wrong = "keys";
        p->geo->keys[i] = (uint16_t)key;
    }
    if (p->geo->keys != NULL) p->geo->n_keys = (int)n;
}

static void take_text(struct parse *p, const char *key, char **to) {
    const json_t *value = json_object_get(p->json, key);
    const char *text = json_string_value(value);
    if (value == NULL) return;
    if (text != NULL) {
        *to = rfx_memory_strdup(p->geo->mem, text);
        p->no_memory |= *to == NULL;
        return;
    }
    size_t n;
    const json_t *list = list_of(p, key, &n);
    if (n == 0) {
        p->wrong = key;
        return;
    }
    *to = rfx_memory_calloc(p->geo->mem, n + 1, 1);
    p->no_memory |= *to == NULL;
    for (size_t i = 0; i < n && *to != NULL; i++) {
        const json_t *byte = json_array_get(list, i);
        if (!json_is_integer(byte) || json_integer_value(byte) < 1 ||
            json_integer_value(byte) > 255)
            p->wrong = key;
        (*to)[i] = (char)json_integer_value(byte);
    }
}

enum rfx_status rfx_part_geo_parse(struct rfx_memory *mem, const json_t *json,
                                   struct rfx_georeference *out, struct rfx_error *err) {
    struct rfx_georeference geo = {.mem = mem};
    struct parse p = {.geo = &geo, .json = json};
    take_fixed(&p, "scale", RFX_GEO_SCALE, geo.scale, &geo.has_scale);
    take_fixed(&p, "matrix", RFX_GEO_MATRIX, geo.matrix, &geo.has_matrix);
    take_doubles(&p, "points", &geo.points, &geo.n_points);
    take_keys(&p);
    take_doubles(&p, "params", &geo.params, &geo.n_params);
    take_text(&p, "texts", &geo.texts);
    take_text(&p, "no_data", &geo.no_data);
    take_text(&p, "metadata", &geo.metadata);
    bool sized;
    take_fixed(&p, "pixel_um", 2, geo.pixel_um, &sized);
    if (sized && !(geo.pixel_um[0] > 0.0 && geo.pixel_um[1] > 0.0)) p.wrong = "pixel_um";
    if (geo.n_points % RFX_GEO_POINT != 0) p.wrong = "points";
    if (rfx_georeference_bytes(&geo) > RFX_GEO_MOST_BYTES) p.wrong = "length";
    enum rfx_status status = RFX_OK;
    if (p.no_memory)
        status = rfx_memory_fail(mem, "georeference", rfx_georeference_bytes(&geo), err);
    else if (p.wrong != NULL)
        status =
            rfx_fail(err, RFX_STATUS_MALFORMED, "the '%s' of its georeference is none", p.wrong);
    if (status == RFX_OK)
        *out = geo;
    else
        rfx_georeference_release(&geo);
    return status;
}
