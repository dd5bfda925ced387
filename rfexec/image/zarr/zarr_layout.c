/* Reading the JSON of an array. */
#include "rfexec/image/zarr/zarr_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"

#define MALFORMED(...) rfx_fail(err, RFX_STATUS_MALFORMED, __VA_ARGS__)
#define UNSUPPORTED(...) rfx_fail(err, RFX_STATUS_UNSUPPORTED, __VA_ARGS__)

/* "" where it is no string. */
static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static bool is_empty(const json_t *value) {
    return value == NULL || json_is_null(value) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* `rank` lengths of 1 and more; rank 0: any number of them, which it becomes. */
static enum rfx_status read_lengths(const json_t *array, const char *what, int *rank,
                                    int64_t lengths[RFX_ZARR_MAX_RANK], struct rfx_error *err) {
    size_t n = json_array_size(array);
    if (!json_is_array(array) || n < 1 || (*rank > 0 && n != (size_t)*rank))
        return MALFORMED("'%s' is no list of %s", what,
                         *rank > 0 ? "as many numbers as there are axes" : "numbers");
    if (n > RFX_ZARR_MAX_RANK)
        return UNSUPPORTED("%zu axes; at most %d are read", n, (int)RFX_ZARR_MAX_RANK);
    for (size_t i = 0; i < n; i++) {
        const json_t *length = json_array_get(array, i);
        lengths[i] = json_integer_value(length);
        if (!json_is_integer(length) || lengths[i] < 1)
            return MALFORMED("'%s' %zu is %" PRId64 ", no number of 1 or more", what, i,
                             lengths[i]);
    }
    *rank = (int)n;
    return RFX_OK;
}

/* Of the chunk grid, in one of its two orders. */
static enum rfx_status settle_chunks(struct rfx_zarr_layout *l, bool column_major,
                                     struct rfx_error *err) {
    int64_t bytes = l->type->bytes;
    for (int i = 0; i < l->rank; i++) {
        int axis = column_major ? i : l->rank - 1 - i;
        l->step[axis] = (size_t)bytes;
        if (!rfx_checked_mul_i64(bytes, l->chunk[axis], &bytes) || bytes > INT32_MAX)
            return UNSUPPORTED("chunks of more than %d bytes", INT32_MAX);
    }
    l->chunk_bytes = (size_t)bytes;
    return RFX_OK;
}

/* As a double: numbers, and the words and bit patterns of floats. */
static bool parse_fill(const struct rfx_zarr_type *type, const json_t *fill, double *value) {
    const char *text = json_string_value(fill);
    if (json_is_number(fill)) return *value = json_number_value(fill), true;
    if (type->kind != 'f' || text == NULL) return false;
    if (strcmp(text, "NaN") == 0) return *value = (double)NAN, true;
    if (strcmp(text, "Infinity") == 0) return *value = HUGE_VAL, true;
    if (strcmp(text, "-Infinity") == 0) return *value = -HUGE_VAL, true;
    char *end;
    errno = 0;
    unsigned long long bits = strtoull(text, &end, 16);
    if (strncmp(text, "0x", 2) != 0 || *end != '\0' || errno != 0) return false;
    if (type->bytes == 8) return memcpy(value, &bits, 8), true;
    uint32_t low = (uint32_t)bits;
    float narrow;
    memcpy(&narrow, &low, 4);
    return *value = (double)narrow, bits == low;
}

static enum rfx_status read_fill(struct rfx_zarr_layout *l, const json_t *fill,
                                 struct rfx_error *err) {
    const struct rfx_zarr_type *type = l->type;
    double value = 0.0;
    if (fill != NULL && !json_is_null(fill) && !parse_fill(type, fill, &value))
        return MALFORMED("'fill_value' is no value of %s", type->name);
    if (type->kind != 'f') {
        double most = ldexp(1.0, 8 * type->bytes - (type->kind == 'i' ? 1 : 0));
        double least = type->kind == 'i' ? -most : 0.0;
        if (!(value >= least && value < most) || floor(value) != value)
            return MALFORMED("'fill_value' %g is no value of %s", value, type->name);
    }
    int bits = rfx_zarr_type_sample_bits(type);
    float sample = (float)value;
    uint16_t whole = bits == 32 ? 0 : (uint16_t)value;
    memcpy(l->fill, bits == 32 ? (const void *)&sample : (const void *)&whole,
           bits == 32 ? sizeof sample : sizeof whole);
    return RFX_OK;
}

static enum rfx_status refuse_codec(const char *name, struct rfx_error *err) {
    return UNSUPPORTED("chunks packed by '%.40s'; zstd, gzip, zlib and blosc are read", name);
}

static enum rfx_status read_separator(struct rfx_zarr_layout *l, const json_t *separator,
                                      char usual, struct rfx_error *err) {
    const char *text = separator == NULL ? NULL : json_string_value(separator);
    l->separator = text != NULL ? text[0] : usual;
    if (separator == NULL || (text != NULL && (strcmp(text, "/") == 0 || strcmp(text, ".") == 0)))
        return RFX_OK;
    return MALFORMED("chunks' keys with a separator that is neither '/' nor '.'");
}

static enum rfx_status read_v2(const json_t *array, struct rfx_zarr_layout *l,
                               struct rfx_error *err) {
    const char *type = text_of(array, "dtype"), *order = text_of(array, "order");
    const json_t *packing = json_object_get(array, "compressor"),
                 *filters = json_object_get(array, "filters");
    l->type = rfx_zarr_type_parse(type, &l->big);
    if (l->type == NULL)
        return UNSUPPORTED(
            "samples of type '%.40s'; integers of 8, 16 and 32 bits, float16, float32 and "
            "float64 are read",
            type);
    if (strcmp(order, "C") != 0 && strcmp(order, "F") != 0)
        return MALFORMED("'order' is '%.20s', neither C nor F", order);
    if (!is_empty(filters))
        return UNSUPPORTED("filter '%.40s': chunks with filters are not read",
                           text_of(json_array_get(filters, 0), "id"));
    if (!is_empty(packing) && !rfx_zarr_codec_named(text_of(packing, "id"), &l->codec))
        return refuse_codec(text_of(packing, "id"), err);
    enum rfx_status status =
        read_lengths(json_object_get(array, "chunks"), "chunks", &l->rank, l->chunk, err);
    if (status == RFX_OK) status = settle_chunks(l, strcmp(order, "F") == 0, err);
    if (status == RFX_OK)
        status = read_separator(l, json_object_get(array, "dimension_separator"), '.', err);
    return status;
}

/* The bytes of samples come first, then at most one packing. */
static enum rfx_status read_codecs_v3(const json_t *codecs, struct rfx_zarr_layout *l,
                                      struct rfx_error *err) {
    size_t i;
    const json_t *codec;
    json_array_foreach(codecs, i, codec) {
        const char *name =
            json_is_string(codec) ? json_string_value(codec) : text_of(codec, "name");
        const char *endian = text_of(json_object_get(codec, "configuration"), "endian");
        if (i == 0 && strcmp(name, "bytes") == 0) {
            l->big = strcmp(endian, "big") == 0;
            if (!l->big && strcmp(endian, "little") != 0 && l->type->bytes > 1)
                return MALFORMED("codec 'bytes' without an order of bytes");
        } else if (i != 1 || !rfx_zarr_codec_named(name, &l->codec)) {
            return refuse_codec(name, err);
        }
    }
    return i > 0 ? RFX_OK : MALFORMED("'codecs' is no list of codecs");
}

static enum rfx_status read_v3(const json_t *array, struct rfx_zarr_layout *l,
                               struct rfx_error *err) {
    const json_t *grid = json_object_get(array, "chunk_grid"),
                 *keys = json_object_get(array, "chunk_key_encoding"),
                 *lengths = json_object_get(json_object_get(grid, "configuration"), "chunk_shape");
    const char *type = text_of(array, "data_type"), *keys_name = text_of(keys, "name");
    l->type = rfx_zarr_type_named(type);
    l->has_prefix = strcmp(keys_name, "default") == 0;
    if (l->type == NULL)
        return UNSUPPORTED(
            "samples of type '%.40s'; integers of 8, 16 and 32 bits, float16, float32 and "
            "float64 are read",
            type);
    if (strcmp(text_of(grid, "name"), "regular") != 0)
        return UNSUPPORTED("chunk grid '%.40s'; regular ones are read", text_of(grid, "name"));
    if (!l->has_prefix && strcmp(keys_name, "v2") != 0)
        return UNSUPPORTED("chunks' keys of the kind '%.40s'; default and v2 are read", keys_name);
    if (!is_empty(json_object_get(array, "storage_transformers")))
        return UNSUPPORTED("arrays with storage transformers are not read");
    enum rfx_status status = read_lengths(lengths, "chunk_shape", &l->rank, l->chunk, err);
    if (status == RFX_OK) status = settle_chunks(l, false, err);
    if (status == RFX_OK)
        status =
            read_separator(l, json_object_get(json_object_get(keys, "configuration"), "separator"),
                           l->has_prefix ? '/' : '.', err);
    return status == RFX_OK ? read_codecs_v3(json_object_get(array, "codecs"), l, err) : status;
}

/* What the array itself calls its axes. */
static void read_names(const json_t *array, const json_t *attributes, int rank,
                       const char *names[RFX_ZARR_MAX_RANK]) {
    const json_t *given = json_object_get(array, "dimension_names");
    if (given == NULL) given = json_object_get(attributes, "_ARRAY_DIMENSIONS");
    bool fit = json_array_size(given) == (size_t)rank;
    for (int i = 0; i < rank; i++)
        names[i] = fit ? json_string_value(json_array_get(given, (size_t)i)) : NULL;
}

static enum rfx_status check_sides(const struct rfx_zarr_layout *l, struct rfx_error *err) {
    if (l->h <= RFX_ZARR_MOST_SIDE && l->w <= RFX_ZARR_MOST_SIDE && l->c <= RFX_ZARR_MOST_BANDS)
        return RFX_OK;
    return UNSUPPORTED("%" PRId64 " x %" PRId64 " pixels of %" PRId64
                       " bands; up to %d of each side and %d bands are read",
                       l->h, l->w, l->c, (int)RFX_ZARR_MOST_SIDE, (int)RFX_ZARR_MOST_BANDS);
}

enum rfx_status rfx_zarr_layout_read(const json_t *array, int format, const json_t *attributes,
                                     const char *const *axes, struct rfx_zarr_layout *out,
                                     struct rfx_error *err) {
    struct rfx_zarr_layout l = {.format = format};
    const char *names[RFX_ZARR_MAX_RANK];
    if (json_integer_value(json_object_get(array, "zarr_format")) != format)
        return MALFORMED("'zarr_format' is not %d", format);
    enum rfx_status status =
        read_lengths(json_object_get(array, "shape"), "shape", &l.rank, l.shape, err);
    if (status == RFX_OK) status = format == 2 ? read_v2(array, &l, err) : read_v3(array, &l, err);
    if (status == RFX_OK) status = read_fill(&l, json_object_get(array, "fill_value"), err);
    if (status != RFX_OK) return status;
    read_names(array, attributes, l.rank, names);
    status = rfx_zarr_axes_settle(l.rank, l.shape, axes != NULL ? axes : names, &l.axes, err);
    if (status != RFX_OK) return status;
    l.h = l.shape[l.axes.y];
    l.w = l.shape[l.axes.x];
    l.c = l.axes.c < 0 ? 1 : l.shape[l.axes.c];
    status = check_sides(&l, err);
    if (status == RFX_OK) *out = l;
    return status;
}

void rfx_zarr_layout_key(const struct rfx_zarr_layout *layout, int64_t c, int64_t y, int64_t x,
                         char key[RFX_ZARR_KEY_CHARS]) {
    const struct rfx_zarr_axes *axes = &layout->axes;
    size_t at = (size_t)snprintf(key, RFX_ZARR_KEY_CHARS, "%s", layout->has_prefix ? "c" : "");
    for (int i = 0; i < layout->rank; i++) {
        int64_t index = i == axes->y ? y : i == axes->x ? x : i == axes->c ? c : 0;
        const char separator[2] = {layout->separator, '\0'};
        at += (size_t)snprintf(key + at, RFX_ZARR_KEY_CHARS - at, "%s%" PRId64,
                               at > 0 ? separator : "", index);
    }
}
