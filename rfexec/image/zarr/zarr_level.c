/* Finds the array that is read from the metadata of a folder: its level, axes and layout. */
#include "rfexec/image/zarr/zarr_level.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/zarr/zarr_folder.h"

enum { MOST_LAST = 4, TEXT_CHARS = 160 };

static bool is_one_of(const char *name, const char *const *words) {
    for (int i = 0; words[i] != NULL; i++)
        if (strcasecmp(name, words[i]) == 0) return true;
    return false;
}

/* Writes the axes as "t 1, y 20, x 30", or only the lengths. */
static void describe(int rank, const int64_t *shape, const char *const *names,
                     char text[TEXT_CHARS]) {
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && at < TEXT_CHARS; i++)
        at += (size_t)snprintf(text + at, TEXT_CHARS - at, "%s%.12s%s%" PRId64, i > 0 ? ", " : "",
                               names != NULL ? names[i] : "", names != NULL ? " " : "", shape[i]);
}

static enum rfx_status fail_axes(int rank, const int64_t *shape, const char *const *names,
                                 const char *why, struct rfx_error *err) {
    char text[TEXT_CHARS];
    describe(rank, shape, names, text);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "axes (%s): %s", text, why);
}

/* Sets an axis. Returns false if it was set before. */
static bool take(int *axis, int i) {
    bool first = *axis < 0;
    *axis = i;
    return first;
}

static enum rfx_status settle_named(int rank, const int64_t *shape, const char *const *names,
                                    struct rfx_zarr_axes *axes, struct rfx_error *err) {
    static const char *const rows[] = {"y", "row", "rows", "height", "lat", "latitude", NULL},
                             *const columns[] = {"x",     "column", "columns",   "col",
                                                 "width", "lon",    "longitude", NULL},
                             *const channels[] = {"c",    "channel", "channels",
                                                  "band", "bands",   NULL};
    bool once = true, ones = true;
    for (int i = 0; i < rank; i++) {
        if (is_one_of(names[i], rows))
            once = take(&axes->y, i) && once;
        else if (is_one_of(names[i], columns))
            once = take(&axes->x, i) && once;
        else if (is_one_of(names[i], channels))
            once = take(&axes->c, i) && once;
        else
            ones = shape[i] == 1 && ones;
    }
    if (axes->y < 0 || axes->x < 0 || !once)
        return fail_axes(rank, shape, names, "one must be called y and one x, and at most one c",
                         err);
    if (!ones)
        return fail_axes(rank, shape, names, "but for c, y and x each must have length 1", err);
    return RFX_OK;
}

static enum rfx_status settle_places(int rank, const int64_t *shape, struct rfx_zarr_axes *axes,
                                     struct rfx_error *err) {
    *axes = (struct rfx_zarr_axes){rank - 2, rank - 1, rank >= 3 ? rank - 3 : -1};
    if (rank < 2 || rank > 5)
        return fail_axes(rank, shape, NULL, "2 to 5 axes without names are read", err);
    if (rank == 3) {
        bool first = shape[0] <= MOST_LAST, last = shape[2] <= MOST_LAST;
        if (first && last)
            return fail_axes(rank, shape, NULL,
                             "c, y, x or y, x, c: without names of the axes nobody can know", err);
        if (last) *axes = (struct rfx_zarr_axes){0, 1, 2};
    }
    if (rank == 4 && shape[3] <= MOST_LAST && shape[1] > MOST_LAST)
        return fail_axes(rank, shape, NULL, "without names (1, c, y, x) is read", err);
    if (rank == 4 && shape[0] != 1)
        return fail_axes(rank, shape, NULL,
                         "without names (1, c, y, x) is read: images of a batch are run one by one",
                         err);
    if (rank == 5) axes->c = 1;
    if (rank == 5 && (shape[0] != 1 || shape[2] != 1))
        return fail_axes(rank, shape, NULL, "without names (t, c, z, y, x) with t and z 1 is read",
                         err);
    return RFX_OK;
}

/* Finds the axes of rows, columns and channels. If all axes have names, by their names: one of
 * rows, one of columns, at most one of channels, any other of length 1. Else by their number: y, x;
 * c, y, x, or y, x, c if the last has 1 to 4 and the first more; 1, c, y, x; or t, c, z, y, x as in
 * OME-Zarr's first versions, with t and z of length 1. names: NULL or with NULL elements if there
 * are none. UNSUPPORTED, with an explanation. */
static enum rfx_status settle_axes(int rank, const int64_t *shape, const char *const *names,
                                   struct rfx_zarr_axes *out, struct rfx_error *err) {
    struct rfx_zarr_axes axes = {-1, -1, -1};
    bool named = names != NULL;
    for (int i = 0; i < rank && named; i++) named = names[i] != NULL;
    enum rfx_status status = named ? settle_named(rank, shape, names, &axes, err)
                                   : settle_places(rank, shape, &axes, err);
    if (status == RFX_OK) *out = axes;
    return status;
}

#define MALFORMED(...) rfx_fail(err, RFX_STATUS_MALFORMED, __VA_ARGS__)
#define UNSUPPORTED(...) rfx_fail(err, RFX_STATUS_UNSUPPORTED, __VA_ARGS__)

/* Returns the string of a key, or "" if it is no string. */
static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static bool is_empty(const json_t *value) {
    return value == NULL || json_is_null(value) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* Reads `rank` lengths of at least 1. *rank 0: any number, which *rank receives. */
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

/* Sets the steps and bytes of a chunk, in row-major or column-major order. */
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

/* Reads the fill value as a double: a number, or the words and bit patterns of floats. Returns
 * false for anything else. */
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

/* Reads the codecs of format 3: first the byte order of samples, then at most one compression. */
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

/* Reads the names that the array itself gives its axes. */
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

/* Reads the metadata of an array. axes: the names of the axes in OME-Zarr; NULL: the names in the
 * array, of which format 2 has a file of its own, `attributes` (NULL: none). MALFORMED or
 * UNSUPPORTED; the text does not have the file's name. */
static enum rfx_status read_array(const json_t *array, int format, const json_t *attributes,
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
    status = settle_axes(l.rank, l.shape, axes != NULL ? axes : names, &l.axes, err);
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

/* Metadata of one folder. */
struct node {
    int folder, format; /* format 0: no metadata */
    json_t *array;      /* metadata of an array, else NULL */
    json_t *attributes; /* format 2: the file's object; format 3: a part of `array` or `group` */
    json_t *group;      /* metadata of a group in format 3 */
};

static void close_node(struct node *node) {
    json_decref(node->array);
    json_decref(node->group);
    json_decref(node->attributes);
    if (node->folder >= 0) (void)close(node->folder);
    *node = (struct node){.folder = -1};
}

/* Reads the metadata files that exist. node->folder is open. */
static enum rfx_status read_node(struct rfx_memory *mem, struct node *node, size_t *held,
                                 struct rfx_error *err) {
    json_t *document = NULL;
    enum rfx_status status =
        rfx_zarr_file_json(mem, node->folder, "zarr.json", &document, held, err);
    if (status != RFX_OK) return status;
    if (document != NULL) {
        const char *type = json_string_value(json_object_get(document, "node_type"));
        bool is_array = type != NULL && strcmp(type, "array") == 0;
        *(is_array ? &node->array : &node->group) = document;
        node->attributes = json_incref(json_object_get(document, "attributes"));
        node->format = 3;
        return RFX_OK;
    }
    status = rfx_zarr_file_json(mem, node->folder, ".zarray", &node->array, held, err);
    if (status == RFX_OK)
        status = rfx_zarr_file_json(mem, node->folder, ".zattrs", &node->attributes, held, err);
    node->format = 2;
    return status;
}

/* Returns the first picture of a group; NULL: it has none. */
static const json_t *find_multiscale(const struct node *node) {
    const json_t *ome = json_object_get(node->attributes, "ome");
    return json_array_get(json_object_get(ome != NULL ? ome : node->attributes, "multiscales"), 0);
}

/* Reads the names of the axes, which are objects, strings or missing, depending on the version of
 * OME-Zarr. Points *names into the document; NULL: no names. */
static enum rfx_status read_axes(const json_t *multiscale, int rank,
                                 const char *names[RFX_ZARR_MAX_RANK], struct rfx_error *err) {
    static const char *const first[] = {"t", "c", "z", "y", "x"};
    const json_t *axes = json_object_get(multiscale, "axes");
    if (axes == NULL && rank == 5) memcpy(names, first, sizeof first);
    if (axes == NULL && rank == 5) return RFX_OK;
    if (json_array_size(axes) != (size_t)rank)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%zu axes of OME-Zarr, and %d of the array",
                        json_array_size(axes), rank);
    for (int i = 0; i < rank; i++) {
        const json_t *axis = json_array_get(axes, (size_t)i);
        names[i] = json_string_value(json_is_object(axis) ? json_object_get(axis, "name") : axis);
        if (names[i] == NULL)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "axis %d of OME-Zarr has no name", i);
    }
    return RFX_OK;
}

static enum rfx_status read_layout(const struct node *node, const json_t *multiscale,
                                   struct rfx_zarr_layout *layout, struct rfx_error *err) {
    const char *names[RFX_ZARR_MAX_RANK];
    size_t rank = json_array_size(json_object_get(node->array, "shape"));
    enum rfx_status status = RFX_OK;
    bool named = multiscale != NULL && rank >= 1 && rank <= RFX_ZARR_MAX_RANK;
    if (named) status = read_axes(multiscale, (int)rank, names, err);
    if (status != RFX_OK) return status;
    return read_array(node->array, node->format, node->attributes, named ? names : NULL, layout,
                      err);
}

static enum rfx_status fail_level(const char *what, int64_t number, int levels,
                                  struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "level %" PRId64 " of %d%s ('rfexec info' lists them)", number, levels, what);
}

/* Opens a level of a group, and reads its layout with the group's metadata. */
static enum rfx_status enter_level(struct rfx_memory *mem, const struct node *group, int64_t number,
                                   struct node *level, struct rfx_zarr_level *out,
                                   struct rfx_error *err) {
    const json_t *multiscale = find_multiscale(group);
    const json_t *levels = json_object_get(multiscale, "datasets");
    out->levels = (int)json_array_size(levels);
    if (multiscale == NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "a Zarr group without OME-Zarr's multiscales: name one of the arrays or "
                        "pictures in it");
    if (number >= out->levels) return fail_level("", number, out->levels, err);
    const char *path =
        json_string_value(json_object_get(json_array_get(levels, (size_t)number), "path"));
    if (path == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "level %" PRId64 " has no path", number);
    enum rfx_status status = rfx_zarr_folder_enter(group->folder, path, &level->folder, err);
    if (status == RFX_OK) status = read_node(mem, level, &out->held, err);
    if (status == RFX_OK && level->array == NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "no array is there");
    if (status == RFX_OK) status = read_layout(level, multiscale, &out->layout, err);
    return status == RFX_OK
               ? status
               : rfx_fail_within(err, status, "level %" PRId64 " in '%.100s'", number, path);
}

static enum rfx_status open_level(struct rfx_memory *mem, const char *name, int64_t number,
                                  struct node *root, struct rfx_zarr_level *out,
                                  struct rfx_error *err) {
    struct node level = {.folder = -1};
    enum rfx_status status = read_node(mem, root, &out->held, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", name);
    if (root->array != NULL) {
        out->levels = 1;
        status = number > 0 ? fail_level(", an array by itself", number, 1, err)
                            : read_layout(root, NULL, &out->layout, err);
        out->folder = root->folder;
        if (status == RFX_OK) root->folder = -1;
    } else {
        status = enter_level(mem, root, number, &level, out, err);
        out->folder = level.folder;
        if (status == RFX_OK) level.folder = -1;
    }
    close_node(&level);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "%s", name);
}

enum rfx_status rfx_zarr_level_open(struct rfx_memory *mem, const char *name, int64_t number,
                                    struct rfx_zarr_level *out, struct rfx_error *err) {
    struct node root = {.folder = -1};
    struct rfx_zarr_level level = {.folder = -1};
    enum rfx_status status = rfx_zarr_folder_open(name, &root.folder, err);
    if (status == RFX_OK) status = open_level(mem, name, number, &root, &level, err);
    if (status != RFX_OK) level.folder = -1;
    *out = level;
    close_node(&root);
    return status;
}
