/* Reading, writing and comparing the files of shards; see shard_file.h. */
#include "rfexec/shards/shard_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rf_analysis/part_ends.h"
#include "rfexec/image/decode/npy_format.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/shards/shard_json.h"

#define VERSION 3 /* of rectangles */
#define CELLS_VERSION 4

void rfx_shard_file_release(struct rfx_shard_file *shard) {
    json_decref(shard->run);
    json_decref(shard->about);
    json_decref(shard->geo);
    json_decref(shard->grid);
    json_decref(shard->picture);
    shard->run = shard->about = shard->geo = shard->grid = shard->picture = NULL;
}

struct rfx_tensor rfx_shard_file_map(const struct rfx_shard_file *shard) {
    return rfx_tensor_nhwc(shard->shape.dims[1], shard->shape.dims[2], shard->shape.dims[3]);
}

struct rfx_tensor rfx_shard_file_tensor(const struct rfx_shard_file *shard) {
    if (shard->cells.of > 0) return rfx_shard_cells_tensor(&shard->cells);
    return rfx_tensor_nhwc(shard->shape.dims[1], rfx_rect_rows(shard->rect),
                           rfx_rect_cols(shard->rect));
}

struct rfx_end rfx_shard_file_end(const struct rfx_shard_file *shard) {
    struct rfx_tensor map = rfx_shard_file_map(shard);
    return (struct rfx_end){
        .channels = map.c,
        .at = rfx_stored_spread(&shard->stored, rfx_rect_full(map.h, map.w), map.c)};
}

static json_t *shape_json(const struct rfx_shape *shape) {
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++)
        (void)json_array_append_new(list, json_integer((json_int_t)shape->dims[i]));
    return list;
}

/* Returns the JSON member "stored". NULL: the output is declared as it is computed, as a float32
 * map or tensor. */
static json_t *stored_json(const struct rfx_stored *stored) {
    if (!stored->reshaped && stored->type == RFX_TYPE_FLOAT32) return NULL;
    json_t *json = json_pack("{s:s, s:I}", "type", rfx_type_name(stored->type), "most",
                             (json_int_t)stored->most);
    if (json != NULL && stored->reshaped)
        (void)json_object_update_new(
            json, json_pack("{s:o, s:b}", "shape", shape_json(&stored->shape), "channels_last",
                            (int)stored->last));
    return json;
}

json_t *rfx_shard_file_place_json(const struct rfx_shard_file *shard) {
    if (shard->cells.of > 0)
        return json_pack("{s:o}", "cells", rfx_shard_cells_ranges_json(&shard->cells));
    return json_pack("{s:[I,I], s:[I,I]}", "rows", (json_int_t)shard->rect.y0,
                     (json_int_t)shard->rect.y1, "columns", (json_int_t)shard->rect.x0,
                     (json_int_t)shard->rect.x1);
}

enum rfx_status rfx_shard_file_graph(const struct rfx_shard_file *shard,
                                     const struct rfx_graph *base, int k,
                                     const struct rfx_part_known *known, int n_known, int64_t index,
                                     int64_t count, struct rfx_graph **out, struct rfx_error *err) {
    if (shard->cells.of > 0)
        return rfx_part_graph_share(base, k, known, n_known, index, count, out, err);
    return rfx_part_graph_after(base, k, known, n_known, shard->rect, out, err);
}

/* Returns a new JSON document that describes the shard; NULL: no memory. */
static json_t *shard_json(const struct rfx_shard_file *shard) {
    bool cells = shard->cells.of > 0;
    json_t *document =
        json_pack("{s:s, s:i, s:O, s:s, s:o, s:s, s:O*, s:O*, s:O*, s:[I,I], s:o*, s:O*}", "format",
                  RFX_SHARD_FORMAT, "version", cells ? CELLS_VERSION : VERSION, "run", shard->run,
                  "output", shard->output, "shape", shape_json(&shard->shape), "fingerprint",
                  shard->fingerprint, "about", shard->about, "georeference", shard->geo, "grid",
                  shard->grid, "image", (json_int_t)shard->image[0], (json_int_t)shard->image[1],
                  "stored", stored_json(&shard->stored), "picture", shard->picture);
    json_t *where = cells ? json_pack("{s:o}", "cells", rfx_shard_cells_json(&shard->cells))
                          : rfx_shard_file_place_json(shard);
    bool whole = document != NULL && where != NULL && json_object_update(document, where) == 0;
    json_decref(where);
    if (whole) return document;
    json_decref(document);
    return NULL;
}

enum rfx_status rfx_shard_file_write(struct rfx_memory *mem, const char *path,
                                     const struct rfx_shard_file *shard, struct rfx_error *err) {
    json_t *document = shard_json(shard);
    enum rfx_status status = rfx_shard_json_write(mem, path, document, "\n", err);
    json_decref(document);
    return status;
}

/* Reads the range [lo, hi) under `key`. Returns false when it is empty or not inside [0, extent).
 */
static bool read_range(const json_t *document, const char *key, int64_t extent, int64_t *lo,
                       int64_t *hi) {
    const json_t *list = json_object_get(document, key);
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    if (json_array_size(list) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return false;
    *lo = json_integer_value(first);
    *hi = json_integer_value(second);
    return *lo >= 0 && *lo < *hi && *hi <= extent;
}

/* Largest dimension of a shape. The product of the dimensions is checked for overflow. */
#define MOST_EXTENT ((int64_t)1 << 31)

static bool read_type(const json_t *document, enum rfx_type *type) {
    const char *name = json_string_value(json_object_get(document, "type"));
    for (int i = 0; name != NULL && rfx_type_is_stored((enum rfx_type)i); i++) {
        if (strcmp(name, rfx_type_name((enum rfx_type)i)) != 0) continue;
        *type = (enum rfx_type)i;
        return true;
    }
    return false;
}

static bool read_shape(const json_t *document, struct rfx_shape *shape, int64_t *elems) {
    const json_t *list = json_object_get(document, "shape");
    size_t rank = json_array_size(list);
    *elems = 1;
    *shape = (struct rfx_shape){.rank = (int)rank};
    if (rank < 1 || rank > RFX_MAX_RANK) return false;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(list, i);
        if (!json_is_integer(dim)) return false;
        shape->dims[i] = json_integer_value(dim);
        if (shape->dims[i] < 1 || shape->dims[i] > MOST_EXTENT ||
            !rfx_checked_mul_i64(*elems, shape->dims[i], elems))
            return false;
    }
    return *elems < INT64_MAX / 8;
}

/* Reads the member "stored". The shape and the cells of the shard must have been read before. */
static bool read_stored(const json_t *document, const struct rfx_shard_file *shard,
                        struct rfx_stored *stored) {
    const json_t *given = json_object_get(document, "stored");
    int64_t elems;
    *stored = (struct rfx_stored){.type = RFX_TYPE_FLOAT32};
    if (given == NULL) return true;
    if (!read_type(given, &stored->type)) return false;
    stored->most = json_integer_value(json_object_get(given, "most"));
    if (json_object_get(given, "shape") == NULL) return stored->most >= 0;
    if (shard->cells.of > 0 || !read_shape(given, &stored->shape, &elems)) return false;
    const struct rfx_tensor map = rfx_shard_file_map(shard);
    stored->reshaped = true;
    stored->last = json_is_true(json_object_get(given, "channels_last"));
    return stored->most >= 0 && rfx_shape_is_of_map(&stored->shape, &map, stored->last);
}

/* Reads the rectangle or, in version 4, the cells of the shard. Returns the name of the member that
 * is wrong, or NULL. */
static const char *read_place(const json_t *document, int64_t elems, struct rfx_shard_file *shard) {
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (version == CELLS_VERSION)
        return rfx_shard_cells_read(json_object_get(document, "cells"), elems, &shard->cells)
                   ? NULL
                   : "cells";
    if (shard->shape.rank != 4 || shard->shape.dims[0] != 1) return "shape";
    if (!read_range(document, "rows", shard->shape.dims[2], &shard->rect.y0, &shard->rect.y1))
        return "rows";
    if (!read_range(document, "columns", shard->shape.dims[3], &shard->rect.x0, &shard->rect.x1))
        return "columns";
    return NULL;
}

static bool read_text(const json_t *document, const char *key, char *text, size_t size) {
    const char *value = json_string_value(json_object_get(document, key));
    if (value == NULL || strlen(value) >= size) return false;
    memcpy(text, value, strlen(value) + 1);
    return true;
}

/* Reads all members. Returns the name of the first one that is missing or wrong, or NULL. */
static const char *read_members(const json_t *document, struct rfx_shard_file *shard) {
    const char *format = json_string_value(json_object_get(document, "format"));
    if (format == NULL || strcmp(format, RFX_SHARD_FORMAT) != 0) return "format";
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (version != VERSION && version != CELLS_VERSION) return "version";
    int64_t elems;
    if (!read_shape(document, &shard->shape, &elems)) return "shape";
    if (!read_text(document, "output", shard->output, sizeof shard->output)) return "output";
    const char *wrong = read_place(document, elems, shard);
    if (wrong != NULL) return wrong;
    if (!read_stored(document, shard, &shard->stored)) return "stored";
    if (!read_text(document, "fingerprint", shard->fingerprint, sizeof shard->fingerprint) ||
        strlen(shard->fingerprint) != 32 || strspn(shard->fingerprint, "0123456789abcdef") != 32)
        return "fingerprint";
    json_t *run = json_object_get(document, "run");
    if (!json_is_object(run)) return "run";
    shard->run = json_incref(run);
    shard->about = json_incref(json_object_get(document, "about"));
    shard->geo = json_incref(json_object_get(document, "georeference"));
    shard->grid = json_incref(json_object_get(document, "grid"));
    const json_t *image = json_object_get(document, "image");
    for (size_t i = 0; i < 2; i++) shard->image[i] = json_integer_value(json_array_get(image, i));
    shard->picture = json_incref(json_object_get(document, "picture"));
    return rfx_shard_json_is_sealed(document) ? NULL : "sum";
}

enum rfx_status rfx_shard_file_read(const char *path, struct rfx_shard_file *shard,
                                    struct rfx_error *err) {
    struct rfx_shard_file read = {.run = NULL};
    json_t *document;
    enum rfx_status status = rfx_shard_json_load("part", path, &document, err);
    if (status != RFX_OK) return status;
    const char *wrong = read_members(document, &read);
    json_decref(document);
    if (wrong != NULL) rfx_shard_file_release(&read);
    if (wrong != NULL && strcmp(wrong, "sum") == 0)
        return rfx_fail(
            err, RFX_STATUS_MALFORMED,
            "%.300s.json was changed since the part was made: its checksum 'sum' does not match",
            path);
    if (wrong != NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s.json: '%s' is missing or not valid",
                        path, wrong);
    *shard = read;
    return RFX_OK;
}

/* Checks the header and the length of the open .npy file, and sets *data_offset. */
static enum rfx_status check_npy(const char *path, const struct rfx_shard_file *shard, int fd,
                                 int64_t *data_offset, struct rfx_error *err) {
    unsigned char bytes[RFX_NPY_MAX_HEADER_BYTES];
    struct rfx_npy_header header;
    struct rfx_tensor tensor = rfx_shard_file_tensor(shard);
    struct stat at;
    ssize_t got = pread(fd, bytes, sizeof bytes, 0);
    if (got < 0 || fstat(fd, &at) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "part '%.200s': %s", path, strerror(errno));
    enum rfx_status status = rfx_npy_parse(bytes, (size_t)got, &header, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "part '%.200s'", path);
    char shape[RFX_SHAPE_TEXT];
    bool same = strcmp(header.descr, "<f4") == 0 && !header.fortran_order &&
                rfx_shape_equal(&header.shape, &tensor.shape);
    if (!same)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "part '%.200s': its array does not have the shape in its JSON, %s", path,
                        rfx_shape_text(&tensor.shape, " x ", shape));
    int64_t wanted = (int64_t)header.data_offset + (int64_t)rfx_floats_bytes(tensor.elems);
    if ((int64_t)at.st_size != wanted)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "part '%.200s': %lld bytes long, %" PRId64
                        " are needed: it was cut off or added to",
                        path, (long long)at.st_size, wanted);
    *data_offset = (int64_t)header.data_offset;
    return RFX_OK;
}

enum rfx_status rfx_shard_file_open(const char *path, const struct rfx_shard_file *shard, int *fd,
                                    int64_t *data_offset, struct rfx_error *err) {
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "part '%.200s': %s", path, strerror(errno));
    enum rfx_status status = check_npy(path, shard, opened, data_offset, err);
    if (status == RFX_OK)
        *fd = opened;
    else
        (void)close(opened);
    return status;
}

enum rfx_status rfx_shard_file_values(const char *path, int fd, int64_t offset, int64_t count,
                                      float *values, struct rfx_error *err) {
    size_t bytes = rfx_floats_bytes(count), done = 0;
    while (done < bytes) {
        ssize_t got =
            pread(fd, (char *)values + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return rfx_fail(err, RFX_STATUS_IO, "part '%.200s': %s", path, strerror(errno));
        if (got == 0)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "part '%.200s' ends too early", path);
        done += (size_t)got;
    }
    return RFX_OK;
}

/* Returns the number of runs of the shard. A run is a row of one channel of a map, or a span of
 * cells: elements that are contiguous in the array and have a fixed step in the output. */
static int64_t count_runs(const struct rfx_shard_file *shard) {
    if (shard->cells.of > 0) return rfx_shard_cells_spans(&shard->cells);
    return shard->shape.dims[1] * rfx_rect_rows(shard->rect);
}

/* Returns run i. Sets *step to the distance of its elements in the output. */
static struct rfx_shard_span run_of(const struct rfx_shard_file *shard, int64_t i, int64_t *step) {
    *step = 1;
    if (shard->cells.of > 0) return rfx_shard_cells_span(&shard->cells, i);
    const struct rfx_spread at = rfx_shard_file_end(shard).at;
    int64_t rows = rfx_rect_rows(shard->rect), cols = rfx_rect_cols(shard->rect);
    int64_t y = shard->rect.y0 + i % rows, c = i / rows;
    *step = at.column_step;
    return (struct rfx_shard_span){
        .from = i * cols,
        .to = y * at.row_step + shard->rect.x0 * at.column_step + c * at.channel_step,
        .count = cols};
}

enum { CHECK_CHUNK = 16384 };

/* Adds n values to the fingerprint. They are the elements `to`, `to` + step, ... of the output. */
static void add_values(struct rfx_fingerprint *hash, int64_t to, int64_t step, float *values,
                       int64_t n) {
    struct rfx_rect row = rfx_rect_make(0, 1, 0, n);
    struct rfx_view view = rfx_view_dense(values, row, 1);
    struct rfx_end end = {.channels = 1, .at = {to, n * step, step, INT64_MAX}};
    rfx_fingerprint_add_end(hash, &end, row, &view);
}

/* Reads a run of the open file, chunk by chunk, and adds its values to the fingerprint. */
static enum rfx_status hash_run(const char *path, int fd, int64_t offset, struct rfx_shard_span run,
                                int64_t step, float *chunk, struct rfx_fingerprint *hash,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < run.count && status == RFX_OK; i += CHECK_CHUNK) {
        int64_t n = rfx_min_i64(CHECK_CHUNK, run.count - i);
        int64_t at = offset + (int64_t)rfx_floats_bytes(run.from + i);
        status = rfx_shard_file_values(path, fd, at, n, chunk, err);
        if (status == RFX_OK) add_values(hash, run.to + i * step, step, chunk, n);
    }
    return status;
}

enum rfx_status rfx_shard_file_check_hash(const char *path, const struct rfx_shard_file *shard,
                                          const char *found, struct rfx_error *err) {
    if (strcmp(found, shard->fingerprint) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "part '%.200s': its values have the hash %s, not %s: they were changed since "
                    "it was made",
                    path, found, shard->fingerprint);
}

enum rfx_status rfx_shard_file_check(struct rfx_memory *mem, const char *path,
                                     const struct rfx_shard_file *shard, struct rfx_error *err) {
    struct rfx_fingerprint all = {0};
    char hash[RFX_FINGERPRINT_CHARS];
    int64_t offset = 0;
    int fd = -1;
    float *chunk = rfx_memory_alloc(mem, CHECK_CHUNK * sizeof *chunk);
    if (chunk == NULL) return rfx_memory_fail(mem, path, CHECK_CHUNK * sizeof *chunk, err);
    enum rfx_status status = rfx_shard_file_open(path, shard, &fd, &offset, err);
    for (int64_t i = 0; status == RFX_OK && i < count_runs(shard); i++) {
        int64_t step;
        struct rfx_shard_span run = run_of(shard, i, &step);
        status = hash_run(path, fd, offset, run, step, chunk, &all, err);
        if (status == RFX_OK) status = rfx_memory_check_stop(mem, err);
    }
    if (fd >= 0) (void)close(fd);
    rfx_memory_release(mem, chunk);
    rfx_fingerprint_hex(&all, hash);
    if (status == RFX_OK) status = rfx_shard_file_check_hash(path, shard, hash, err);
    return status;
}

/* Writes a JSON value, or "nothing" for NULL, to text[size]. A long text is cut. */
static void show(const json_t *value, char *text, size_t size) {
    char *dump =
        value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    (void)snprintf(text, size, "%s", dump == NULL ? "nothing" : dump);
    free(dump);
}

/* Returns whether the member `key` of a and b differs or is missing. If so, writes both values to
 * why[size]. */
static bool is_other(const json_t *a, const json_t *b, const char *key, char *why, size_t size) {
    const json_t *of_a = json_object_get(a, key), *of_b = json_object_get(b, key);
    char text_a[120], text_b[120];
    if (of_a != NULL && of_b != NULL && json_equal(of_a, of_b)) return false;
    show(of_a, text_a, sizeof text_a);
    show(of_b, text_b, sizeof text_b);
    (void)snprintf(why, size, "their '%s' differs: %s and %s", key, text_a, text_b);
    return true;
}

bool rfx_shard_file_same_run(const struct rfx_shard_file *a, const struct rfx_shard_file *b,
                             char *why, size_t size) {
    const char *key;
    json_t *value;
    json_object_foreach(a->run, key,
                        value) if (is_other(a->run, b->run, key, why, size)) return false;
    json_object_foreach(b->run, key,
                        value) if (is_other(a->run, b->run, key, why, size)) return false;
    if (strcmp(a->output, b->output) != 0) {
        (void)snprintf(why, size, "they are of outputs '%s' and '%s'", a->output, b->output);
        return false;
    }
    if (!rfx_shape_equal(&a->shape, &b->shape)) {
        char of_a[RFX_SHAPE_TEXT], of_b[RFX_SHAPE_TEXT];
        (void)snprintf(why, size, "they are of outputs of %s and %s",
                       rfx_shape_text(&a->shape, " x ", of_a),
                       rfx_shape_text(&b->shape, " x ", of_b));
        return false;
    }
    const struct rfx_stored *s = &a->stored, *t = &b->stored;
    if (s->type != t->type || s->most != t->most || s->reshaped != t->reshaped ||
        s->last != t->last || (s->reshaped && !rfx_shape_equal(&s->shape, &t->shape))) {
        (void)snprintf(why, size, "their outputs are declared differently");
        return false;
    }
    const struct rfx_shard_cells *p = &a->cells, *q = &b->cells;
    if (p->of == q->of && p->channels == q->channels && p->last == q->last) return true;
    (void)snprintf(why, size, "their cells do not lie alike in the output");
    return false;
}

/* Rectangles are compared pair by pair. Rectangles that do not overlap cover the map exactly when
 * the sum of their areas is the area of the map. */

static enum rfx_status fail_overlap(const struct rfx_shard_file *a, const struct rfx_shard_file *b,
                                    const char *path_a, const char *path_b, struct rfx_error *err) {
    struct rfx_rect common = rfx_rect_intersect(a->rect, b->rect);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "parts '%.120s' and '%.120s' overlap: both have rows %lld to %lld, columns "
                    "%lld to %lld",
                    path_a, path_b, (long long)common.y0, (long long)common.y1,
                    (long long)common.x0, (long long)common.x1);
}

static bool is_covered(const struct rfx_shard_file *shards, int n, int64_t y, int64_t x) {
    for (int i = 0; i < n; i++)
        if (rfx_rect_contains(shards[i].rect, rfx_rect_make(y, y + 1, x, x + 1))) return true;
    return false;
}

/* Finds the first element of the map that is in no rectangle. Returns false when there is none. A
 * gap begins at the map's first row or column, or where a rectangle ends, so only these are tested.
 */
static bool find_gap(const struct rfx_shard_file *shards, int n, struct rfx_tensor map,
                     int64_t *row, int64_t *column) {
    bool found = false;
    for (int i = -1; i < n; i++) {
        int64_t y = i < 0 ? 0 : shards[i].rect.y1;
        if (y >= map.h || (found && y > *row)) continue;
        for (int j = -1; j < n; j++) {
            int64_t x = j < 0 ? 0 : shards[j].rect.x1;
            bool later = found && (y > *row || (y == *row && x >= *column));
            if (x >= map.w || later || is_covered(shards, n, y, x)) continue;
            *row = y;
            *column = x;
            found = true;
        }
    }
    return found;
}

/* Returns whether two shards have a cell in common. Sets *common to the first range of such cells.
 */
static bool find_common(const struct rfx_shard_cells *a, const struct rfx_shard_cells *b,
                        struct rfx_range *common) {
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        struct rfx_range of_a = a->ranges[i], of_b = b->ranges[j];
        *common = (struct rfx_range){rfx_max_i64(of_a.lo, of_b.lo), rfx_min_i64(of_a.hi, of_b.hi)};
        if (common->lo < common->hi) return true;
        if (of_a.hi < of_b.hi)
            i++;
        else
            j++;
    }
    return false;
}

/* Returns the end of the range that contains cell p, or p when no shard contains the cell. */
static int64_t end_of_range(const struct rfx_shard_file *shards, int n, int64_t p) {
    for (int i = 0; i < n; i++)
        for (int r = 0; r < shards[i].cells.n; r++)
            if (shards[i].cells.ranges[r].lo <= p && p < shards[i].cells.ranges[r].hi)
                return shards[i].cells.ranges[r].hi;
    return p;
}

/* rfx_shards_check_cover for outputs of cells. */
static enum rfx_status check_cells(const struct rfx_shard_file *shards, const char *const *paths,
                                   int n, struct rfx_error *err) {
    int64_t found = 0, of = shards[0].cells.of, p = 0;
    struct rfx_range common;
    for (int i = 0; i < n; i++) {
        found += rfx_shard_cells_count(&shards[i].cells);
        for (int j = 0; j < i; j++)
            if (find_common(&shards[j].cells, &shards[i].cells, &common))
                return rfx_fail(err, RFX_STATUS_MALFORMED,
                                "parts '%.120s' and '%.120s' overlap: both have cells %lld to %lld",
                                paths[j], paths[i], (long long)common.lo, (long long)common.hi);
    }
    if (found == of) return RFX_OK;
    for (int64_t next; (next = end_of_range(shards, n, p)) != p;) p = next;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "beside part '%.200s' (%d in all) %lld of %lld cells of output '%.100s' belong "
                    "to no part, the first one is number %lld",
                    paths[0], n, (long long)(of - found), (long long)of, shards[0].output,
                    (long long)p);
}

enum rfx_status rfx_shards_check_cover(const struct rfx_shard_file *shards,
                                       const char *const *paths, int n, struct rfx_error *err) {
    if (shards[0].cells.of > 0) return check_cells(shards, paths, n, err);
    struct rfx_tensor map = rfx_shard_file_map(&shards[0]);
    int64_t area = 0, row = 0, column = 0;
    for (int i = 0; i < n; i++) {
        area += rfx_rect_area(shards[i].rect);
        for (int j = 0; j < i; j++)
            if (!rfx_rect_is_empty(rfx_rect_intersect(shards[i].rect, shards[j].rect)))
                return fail_overlap(&shards[j], &shards[i], paths[j], paths[i], err);
    }
    if (area == map.h * map.w) return RFX_OK;
    (void)find_gap(shards, n, map, &row, &column);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "beside part '%.200s' (%d in all) %lld of %lld positions of output '%.100s' "
                    "belong to no part, the first one in row %lld, column %lld of %lld x %lld",
                    paths[0], n, (long long)(map.h * map.w - area), (long long)(map.h * map.w),
                    shards[0].output, (long long)row, (long long)column, (long long)map.h,
                    (long long)map.w);
}

static const struct rfx_output_format npy = {.kind = &rfx_output_npy};

size_t rfx_shard_writer_bytes(const struct rfx_shard_file *shard) {
    struct rfx_tensor tensor = rfx_shard_file_tensor(shard);
    return rfx_output_stream_bytes(&npy, &tensor);
}

enum rfx_status rfx_shard_writer_open(struct rfx_shard_writer *writer, const char *path,
                                      struct rfx_error *err) {
    struct rfx_tensor tensor = rfx_shard_file_tensor(writer->shard);
    return rfx_output_stream_open(writer->base->mem, path, &npy, &tensor, &writer->stream, err);
}

/* The rfx_shard_put_fn of an output stream. */
static enum rfx_status put(void *user, struct rfx_rect rect, const struct rfx_view *view,
                           struct rfx_error *err) {
    return rfx_output_stream_write(user, rect, view, err);
}

/* Writes rows of one of the maps of which the output is joined. i: number of the output piece in
 * the shard's graph. */
static enum rfx_status receive_cells(struct rfx_shard_writer *w, int i, struct rfx_rect rect,
                                     const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_end end = rfx_part_share_end(w->base, w->k, w->index, w->count, i);
    struct rfx_end inside =
        rfx_shard_cells_end(&w->shard->cells, &end, &w->base->nodes[end.node],
                            rfx_part_end_rows(w->base, &end, w->index, w->count));
    rfx_fingerprint_add_end(&w->fingerprint, &end, rect, view);
    return rfx_output_stream_write_end(w->stream, &inside, rect, view, err);
}

/* The sink of the shard's graph: adds the rows to the fingerprint and writes them to the file. */
static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_shard_writer *w = user;
    if (w->shard->cells.of > 0) return receive_cells(w, end->output, rect, view, err);
    struct rfx_end whole = rfx_shard_file_end(w->shard);
    rfx_fingerprint_add_end(&w->fingerprint, &whole, rect, view);
    return rfx_shard_put_rows(w->shard->rect, rect, view, put, w->stream, err);
}

struct rfx_output_sink rfx_shard_writer_sink(struct rfx_shard_writer *writer) {
    return (struct rfx_output_sink){.write = receive, .user = writer};
}

enum rfx_status rfx_shard_writer_commit(struct rfx_shard_writer *writer, const char *path,
                                        struct rfx_error *err) {
    rfx_fingerprint_hex(&writer->fingerprint, writer->shard->fingerprint);
    enum rfx_status status = rfx_shard_file_write(writer->base->mem, path, writer->shard, err);
    return status == RFX_OK ? rfx_output_stream_commit(writer->stream, NULL, NULL, err) : status;
}

void rfx_shard_writer_free(struct rfx_shard_writer *writer) {
    rfx_output_stream_free(writer->stream);
    writer->stream = NULL;
}
