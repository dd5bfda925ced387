/* Numbers and names as text; see answer_text.h. */
#include "rfexec/answers/answer_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/output/name_list.h"

/* FILE_BYTES: the file's buffer and path. PIECE: the longest formatted piece. */
enum { FILE_BYTES = 96 * 1024, PIECE = 256 };

static double length(double x, double y) {
    return sqrt(x * x + y * y);
}

static void set_affine(struct rfx_answer_text *text, const struct rfx_geo_affine *a) {
    double det = a->x[0] * a->y[1] - a->x[1] * a->y[0];
    text->affine = *a;
    text->cell_area = fabs(det);
    text->side[0] = length(a->x[0], a->y[0]);
    text->side[1] = length(a->x[1], a->y[1]);
    text->mirrored = det < 0.0;
}

static enum rfx_status find_coordinates(struct rfx_answer_text *text, const char *path,
                                        const struct rfx_answer_options *options,
                                        const struct rfx_answer_place *place,
                                        const struct rfx_georeference *geo, struct rfx_error *err) {
    const struct rfx_geo_affine own = {.x = {1.0, 0.0, 0.0}, .y = {0.0, 1.0, 0.0}};
    struct rfx_geo_affine affine;
    bool mapped = geo != NULL && rfx_georeference_affine(geo, &affine);
    if (!mapped && options->coordinates == RFX_ANSWER_MAP)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: map coordinates are wanted, and the picture has no coordinate system",
                        path);
    if (mapped && options->coordinates != RFX_ANSWER_PIXELS) {
        text->mapped = true;
        text->epsg = rfx_georeference_epsg(geo);
        set_affine(text, &affine);
    } else {
        set_affine(text, place->known ? &place->cell : &own);
    }
    return RFX_OK;
}

enum rfx_status rfx_answer_text_open(struct rfx_answer_text *text, struct rfx_memory *mem,
                                     const char *path, const struct rfx_answer_options *options,
                                     const struct rfx_answer_place *place,
                                     const struct rfx_georeference *geo, struct rfx_error *err) {
    *text = (struct rfx_answer_text){.mem = mem};
    enum rfx_status status = find_coordinates(text, path, options, place, geo, err);
    if (status == RFX_OK && options->names != NULL)
        status =
            rfx_names_read(mem, options->names, "class names", &text->names, &text->n_names, err);
    if (status == RFX_OK) status = rfx_output_file_open(mem, path, &text->file, err);
    if (status != RFX_OK) rfx_answer_text_close(text);
    return status;
}

size_t rfx_answer_text_bytes(const struct rfx_answer_options *options) {
    return FILE_BYTES + (options->names != NULL ? rfx_channel_names_bytes(options->names) : 0);
}

static void append(struct rfx_answer_text *text, const char *from, size_t n) {
    if (text->status != RFX_OK) return;
    text->status = rfx_output_file_append(text->file, from, n, &text->err);
}

void rfx_answer_put(struct rfx_answer_text *text, const char *format, ...) {
    char piece[PIECE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    append(text, piece, n < 0 ? 0 : n < PIECE ? (size_t)n : PIECE - 1);
}

/* Appends `value` with the fewest of `least` to `most` digits that give the same number. */
static void put_shortest(struct rfx_answer_text *text, double value, int least, int most,
                         bool single) {
    char piece[PIECE];
    int n = 0;
    if (!isfinite(value)) {
        append(text, "null", strlen("null"));
        return;
    }
    if (value == 0.0) value = 0.0; /* not -0 */
    for (int digits = least; digits <= most; digits++) {
        n = snprintf(piece, sizeof piece, "%.*g", digits, value);
        if (single ? strtof(piece, NULL) == (float)value : strtod(piece, NULL) == value) break;
    }
    append(text, piece, (size_t)n);
}

void rfx_answer_number(struct rfx_answer_text *text, double value) {
    const double whole = 1e15; /* whole numbers below it are exact */
    if (value > -whole && value < whole && value == (double)(int64_t)value)
        rfx_answer_put(text, "%" PRId64, (int64_t)value);
    else
        put_shortest(text, value, 15, 17, false);
}

void rfx_answer_float(struct rfx_answer_text *text, float value) {
    put_shortest(text, (double)value, 6, 9, true);
}

bool rfx_answer_own_pixels(const struct rfx_answer_text *text) {
    const struct rfx_geo_affine *a = &text->affine;
    return a->x[0] == 1.0 && a->x[1] == 0.0 && a->x[2] == 0.0 && a->y[0] == 0.0 && a->y[1] == 1.0 &&
           a->y[2] == 0.0;
}

void rfx_answer_point(struct rfx_answer_text *text, double x, double y) {
    const struct rfx_geo_affine *a = &text->affine;
    rfx_answer_number(text, a->x[0] * x + a->x[1] * y + a->x[2]);
    append(text, ",", 1);
    rfx_answer_number(text, a->y[0] * x + a->y[1] * y + a->y[2]);
}

const char *rfx_answer_name(const struct rfx_answer_text *text, int64_t label) {
    return rfx_name_at(text->names, text->n_names, label);
}

/* Appends a text in quotation marks. Each of the characters `marked` gets `mark` before it. */
static void put_quoted(struct rfx_answer_text *text, const char *name, const char *marked,
                       char mark) {
    append(text, "\"", 1);
    for (const char *p = name; *p != '\0'; p++) {
        if (strchr(marked, *p) != NULL) append(text, &mark, 1);
        append(text, p, 1);
    }
    append(text, "\"", 1);
}

void rfx_answer_json_string(struct rfx_answer_text *text, const char *name) {
    put_quoted(text, name, "\"\\", '\\');
}

void rfx_answer_csv_field(struct rfx_answer_text *text, const char *name) {
    put_quoted(text, name, "\"", '"');
}

void rfx_answer_class_json(struct rfx_answer_text *text, int64_t label) {
    const char *name = rfx_answer_name(text, label);
    rfx_answer_put(text, "\"label\":%" PRId64, label);
    if (name == NULL) return;
    rfx_answer_put(text, ",\"name\":");
    rfx_answer_json_string(text, name);
}

void rfx_answer_class_csv(struct rfx_answer_text *text, int64_t label) {
    const char *name = rfx_answer_name(text, label);
    rfx_answer_put(text, "%" PRId64 ",", label);
    if (name != NULL) rfx_answer_csv_field(text, name);
    rfx_answer_put(text, ",");
}

void rfx_answer_properties(struct rfx_answer_text *text, const char *type, int64_t label) {
    const char *name = rfx_answer_name(text, label);
    rfx_answer_put(text, ",\"properties\":{\"objectType\":\"%s\",\"label\":%" PRId64, type, label);
    if (name == NULL) return;
    rfx_answer_put(text, ",\"classification\":{\"name\":");
    rfx_answer_json_string(text, name);
    rfx_answer_put(text, "}");
}

void rfx_answer_collection(struct rfx_answer_text *text) {
    const int wgs84 = 4326; /* GeoJSON's own system, with longitude first */
    rfx_answer_put(text, "{\"type\":\"FeatureCollection\",");
    if (text->epsg != 0 && text->epsg != wgs84)
        rfx_answer_put(text,
                       "\"crs\":{\"type\":\"name\",\"properties\":{\"name\":"
                       "\"urn:ogc:def:crs:EPSG::%d\"}},",
                       text->epsg);
    rfx_answer_put(text, "\"features\":[");
}

void rfx_answer_boxes_begin(struct rfx_answer_text *text, enum rfx_answer_form form,
                            const char *head) {
    if (form == RFX_ANSWER_COCO) rfx_answer_put(text, "[");
    if (form == RFX_ANSWER_GEOJSON) rfx_answer_collection(text);
    if (form != RFX_ANSWER_JSON) return;
    rfx_answer_put(text, "{\"head\":");
    rfx_answer_json_string(text, head); /* may have the name of a file */
    rfx_answer_put(text, ",\"boxes\":[");
}

void rfx_answer_boxes_end(struct rfx_answer_text *text, enum rfx_answer_form form) {
    if (form == RFX_ANSWER_COCO) rfx_answer_put(text, "\n]\n");
    if (form == RFX_ANSWER_GEOJSON || form == RFX_ANSWER_JSON) rfx_answer_put(text, "\n]}\n");
}

enum rfx_status rfx_answer_text_status(const struct rfx_answer_text *text, struct rfx_error *err) {
    if (text->status == RFX_OK) return RFX_OK;
    return rfx_fail(err, text->status, "%s", text->err.text);
}

void rfx_answer_text_close(struct rfx_answer_text *text) {
    rfx_output_file_free(text->file);
    if (text->mem != NULL) rfx_memory_release(text->mem, text->names);
    *text = (struct rfx_answer_text){0};
}
