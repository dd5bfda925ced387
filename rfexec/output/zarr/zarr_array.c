/* Computes shapes, names and JSON metadata of Zarr arrays. */
#include "rfexec/output/zarr/zarr_array.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/decode/array_type.h"

#define ROW_OF_CHUNKS_BYTES ((int64_t)32 * 1024 * 1024)
enum { USUAL_SIDE = 256, LEAST_ROWS = 16 };

void rfx_zarr_choose_chunks(struct rfx_zarr_array *array, int64_t side) {
    int64_t rows = side != 0 ? side : USUAL_SIDE, cols = rows;
    int64_t row_bytes = array->w * array->channels * (array->bits / 8);
    while (side == 0 && rows > LEAST_ROWS && row_bytes > ROW_OF_CHUNKS_BYTES / rows) {
        rows /= 2;
        cols *= 2;
    }
    array->chunk_rows = rfx_min_i64(rows, array->h);
    array->chunk_cols = rfx_min_i64(cols, array->w);
}

struct rfx_overview_map rfx_zarr_overviews(const struct rfx_zarr_array *array) {
    return (struct rfx_overview_map){.h = array->h,
                                     .w = array->w,
                                     .channels = array->channels,
                                     .bits = array->bits,
                                     .is_signed = array->is_signed,
                                     .side = rfx_max_i64(array->chunk_rows, array->chunk_cols),
                                     .kind = array->ome ? array->overviews : RFX_OVERVIEW_NONE};
}

static int count_levels(const struct rfx_zarr_array *array) {
    const struct rfx_overview_map map = rfx_zarr_overviews(array);
    return rfx_overviews_count(&map);
}

struct rfx_zarr_array rfx_zarr_level(const struct rfx_zarr_array *array, int k) {
    struct rfx_zarr_array level = *array;
    level.h = rfx_overviews_length(array->h, k);
    level.w = rfx_overviews_length(array->w, k);
    level.chunk_rows = rfx_min_i64(array->chunk_rows, level.h);
    level.chunk_cols = rfx_min_i64(array->chunk_cols, level.w);
    level.level = k;
    return level;
}

/* Writes the folder of an array: "3/" in a group, else "". */
static void put_folder(const struct rfx_zarr_array *array, char folder[RFX_ZARR_NAME]) {
    folder[0] = '\0';
    if (array->ome) (void)snprintf(folder, RFX_ZARR_NAME, "%d/", array->level);
}

void rfx_zarr_chunk_name(const struct rfx_zarr_array *array, int64_t channel, int64_t y, int64_t x,
                         char name[RFX_ZARR_NAME]) {
    put_folder(array, name);
    size_t n = strlen(name);
    (void)snprintf(name + n, RFX_ZARR_NAME - n, "%s%s%" PRId64 "/%" PRId64 "/%" PRId64,
                   array->format == 3 ? "c/" : "", array->batch ? "0/" : "", channel, y, x);
}

/* Return a list with one number or text for each of the axes channel, row and column, and a further
 * one before them for a batch. */
static json_t *axes_ints(const struct rfx_zarr_array *array, int64_t c, int64_t y, int64_t x) {
    return array->batch ? json_pack("[i, I, I, I]", 1, (json_int_t)c, (json_int_t)y, (json_int_t)x)
                        : json_pack("[I, I, I]", (json_int_t)c, (json_int_t)y, (json_int_t)x);
}

static json_t *axes_names(const struct rfx_zarr_array *array) {
    return array->batch ? json_pack("[s, s, s, s]", "n", "c", "y", "x")
                        : json_pack("[s, s, s]", "c", "y", "x");
}

static json_t *fill_value(const struct rfx_zarr_array *array) {
    return array->bits == 32 && !array->is_signed ? json_real(0.0) : json_integer(0);
}

static json_t *codecs_v3(const struct rfx_zarr_array *array) {
    if (!array->zstd)
        return json_pack("[{s:s, s:{s:s}}]", "name", "bytes", "configuration", "endian", "little");
    return json_pack("[{s:s, s:{s:s}}, {s:s, s:{s:i, s:b}}]", "name", "bytes", "configuration",
                     "endian", "little", "name", "zstd", "configuration", "level",
                     (int)RFX_ZARR_LEVEL, "checksum", 0);
}

static const struct rfx_zarr_type *type_of(const struct rfx_zarr_array *array) {
    static const char *const names[2][3] = {{"uint8", "uint16", "float32"},
                                            {"int8", "int16", "int32"}};
    return rfx_zarr_type_named(
        names[array->is_signed][array->bits == 32 ? 2 : array->bits / 8 - 1]);
}

static json_t *array_v3(const struct rfx_zarr_array *array) {
    return json_pack(
        "{s:i, s:s, s:o, s:s, s:{s:s, s:{s:o}}, s:{s:s, s:{s:s}}, s:o, s:o, s:o}", "zarr_format", 3,
        "node_type", "array", "shape", axes_ints(array, array->channels, array->h, array->w),
        "data_type", type_of(array)->name, "chunk_grid", "name", "regular", "configuration",
        "chunk_shape", axes_ints(array, 1, array->chunk_rows, array->chunk_cols),
        "chunk_key_encoding", "name", "default", "configuration", "separator", "/", "fill_value",
        fill_value(array), "codecs", codecs_v3(array), "dimension_names", axes_names(array));
}

static json_t *array_v2(const struct rfx_zarr_array *array) {
    char type[RFX_ZARR_TYPE_CHARS];
    rfx_zarr_type_format(type_of(array), type);
    json_t *packing = array->zstd
                          ? json_pack("{s:s, s:i}", "id", "zstd", "level", (int)RFX_ZARR_LEVEL)
                          : json_null();
    return json_pack("{s:i, s:o, s:o, s:s, s:o, s:o, s:s, s:n, s:s}", "zarr_format", 2, "shape",
                     axes_ints(array, array->channels, array->h, array->w), "chunks",
                     axes_ints(array, 1, array->chunk_rows, array->chunk_cols), "dtype", type,
                     "compressor", packing, "fill_value", fill_value(array), "order", "C",
                     "filters", "dimension_separator", "/");
}

/* Returns the metadata of a level with the positions of its pixels, in units of the picture's
 * pixels: a mean lies in the middle of its pixels, a nearest sample at its own pixel. */
static json_t *level_json(const struct rfx_zarr_array *array, int k) {
    char path[RFX_ZARR_NAME];
    double size = (double)((int64_t)1 << k), middle = (size - 1) / 2;
    (void)snprintf(path, sizeof path, "%d", k);
    json_t *places = json_pack("[{s:s, s:[f, f, f]}]", "type", "scale", "scale", 1.0, size, size);
    bool moved = k > 0 && array->overviews == RFX_OVERVIEW_MEAN;
    if (moved &&
        json_array_append_new(places, json_pack("{s:s, s:[f, f, f]}", "type", "translation",
                                                "translation", 0.0, middle, middle)) != 0) {
        json_decref(places);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "path", path, "coordinateTransformations", places);
}

static json_t *multiscales(const struct rfx_zarr_array *array, const char *title) {
    json_t *levels = json_array();
    bool whole = levels != NULL;
    for (int k = 0; k <= count_levels(array); k++)
        whole = json_array_append_new(levels, level_json(array, k)) == 0 && whole;
    if (!whole) {
        json_decref(levels);
        return NULL;
    }
    json_t *item = json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}], s:o}", "name", title,
                             "axes", "name", "c", "type", "channel", "name", "y", "type", "space",
                             "name", "x", "type", "space", "datasets", levels);
    if (array->format == 2 && json_object_set_new(item, "version", json_string("0.4")) != 0) {
        json_decref(item);
        return NULL;
    }
    return json_pack("[o]", item);
}

static json_t *group_v3(const struct rfx_zarr_array *array, const char *title) {
    return json_pack("{s:i, s:s, s:{s:{s:s, s:o}}}", "zarr_format", 3, "node_type", "group",
                     "attributes", "ome", "version", "0.5", "multiscales",
                     multiscales(array, title));
}

static json_t *group_document(const struct rfx_zarr_array *array, const char *title, int k,
                              char name[RFX_ZARR_NAME]) {
    static const char *const names[] = {".zgroup", ".zattrs"};
    (void)snprintf(name, RFX_ZARR_NAME, "%s", array->format == 3 ? "zarr.json" : names[k]);
    if (array->format == 3) return group_v3(array, title);
    return k == 0 ? json_pack("{s:i}", "zarr_format", 2)
                  : json_pack("{s:o}", "multiscales", multiscales(array, title));
}

/* Returns metadata file k. An empty name: there is no file k. NULL with a name: no memory. */
static json_t *document(const struct rfx_zarr_array *array, const char *title, int k,
                        char name[RFX_ZARR_NAME]) {
    int of_group = array->ome ? array->format == 3 ? 1 : 2 : 0,
        of_array = array->format == 3 ? 1 : 2;
    if (k < of_group) return group_document(array, title, k, name);
    int level = (k - of_group) / of_array, file = (k - of_group) % of_array;
    name[0] = '\0';
    if (level > count_levels(array)) return NULL;
    const struct rfx_zarr_array one = rfx_zarr_level(array, level);
    const char *const names[] = {".zarray", ".zattrs"};
    put_folder(&one, name);
    (void)strcat(name, array->format == 3 ? "zarr.json" : names[file]);
    if (array->format == 3) return array_v3(&one);
    return file == 0 ? array_v2(&one) : json_pack("{s:o}", "_ARRAY_DIMENSIONS", axes_names(array));
}

enum rfx_status rfx_zarr_metadata(struct rfx_memory *mem, const struct rfx_zarr_array *array,
                                  const char *title, int k, char name[RFX_ZARR_NAME], char **text,
                                  struct rfx_error *err) {
    json_t *made = document(array, title, k, name);
    *text = NULL;
    if (name[0] == '\0') return RFX_OK;
    char *dumped = made != NULL ? json_dumps(made, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(made);
    if (dumped != NULL) *text = rfx_memory_strdup(mem, dumped);
    free(dumped); /* allocated by jansson */
    return *text != NULL ? RFX_OK : rfx_memory_fail(mem, name, 1024, err);
}
