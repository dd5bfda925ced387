/* Reading, writing and comparing the files of parts. */
#include "tools/parts/files/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rfexec/image/decode/npy_format.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_file.h"
#include "tools/parts/files/part_json.h"

void rfx_part_file_release(struct rfx_part_file *part) {
    json_decref(part->run);
    json_decref(part->about);
    json_decref(part->geo);
    json_decref(part->picture);
    part->run = part->about = part->geo = part->picture = NULL;
}

struct rfx_tensor rfx_part_file_map(const struct rfx_part_file *part) {
    return rfx_tensor_nhwc(part->shape.dims[1], part->shape.dims[2], part->shape.dims[3]);
}

struct rfx_tensor rfx_part_file_tensor(const struct rfx_part_file *part) {
    if (part->cells.of > 0) return rfx_part_cells_tensor(&part->cells);
    return rfx_tensor_nhwc(part->shape.dims[1], rfx_rect_rows(part->rect),
                           rfx_rect_cols(part->rect));
}

struct rfx_end rfx_part_file_end(const struct rfx_part_file *part) {
    struct rfx_tensor map = rfx_part_file_map(part);
    return (struct rfx_end){
        .channels = map.c,
        .at = rfx_stored_spread(&part->stored, rfx_rect_full(map.h, map.w), map.c)};
}

enum { SHAPE_CHARS = 160 };

/* "1 x 84 x 126" */
static const char *shape_text(const struct rfx_shape *shape, char text[SHAPE_CHARS]) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < shape->rank && used < SHAPE_CHARS; i++)
        used += (size_t)snprintf(text + used, SHAPE_CHARS - used, "%s%" PRId64, i == 0 ? "" : " x ",
                                 shape->dims[i]);
    return text;
}

static bool same_shape(const struct rfx_shape *a, const struct rfx_shape *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->dims[i] == b->dims[i];
    return same;
}

static json_t *shape_json(const struct rfx_shape *shape) {
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++)
        (void)json_array_append_new(list, json_integer((json_int_t)shape->dims[i]));
    return list;
}

/* NULL: as a float32 map or tensor. */
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

/* A new reference; NULL: no memory. */
static json_t *part_json(const struct rfx_part_file *part) {
    bool cells = part->cells.of > 0;
    json_t *document =
        json_pack("{s:s, s:i, s:O, s:s, s:o, s:s, s:O*, s:O*, s:o*, s:O*}", "format",
                  RFX_PART_FORMAT, "version", cells ? RFX_PART_CELLS_VERSION : RFX_PART_VERSION,
                  "run", part->run, "output", part->output, "shape", shape_json(&part->shape),
                  "fingerprint", part->fingerprint, "about", part->about, "georeference", part->geo,
                  "stored", stored_json(&part->stored), "picture", part->picture);
    json_t *where = cells ? json_pack("{s:o}", "cells", rfx_part_cells_json(&part->cells))
                          : json_pack("{s:[I,I], s:[I,I]}", "rows", (json_int_t)part->rect.y0,
                                      (json_int_t)part->rect.y1, "columns",
                                      (json_int_t)part->rect.x0, (json_int_t)part->rect.x1);
    bool whole = document != NULL && where != NULL && json_object_update(document, where) == 0;
    json_decref(where);
    if (whole && rfx_part_json_seal(document)) return document;
    json_decref(document);
    return NULL;
}

enum rfx_status rfx_part_file_write(struct rfx_memory *mem, const char *path,
                                    const struct rfx_part_file *part, struct rfx_error *err) {
    char name[RFX_PART_PATH_CHARS];
    struct rfx_output_file *file = NULL;
    enum rfx_status status = rfx_part_json_name(path, name, sizeof name, err);
    if (status != RFX_OK) return status;
    json_t *document = part_json(part);
    char *text = document == NULL ? NULL : json_dumps(document, JSON_INDENT(2));
    if (text == NULL) status = rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s: out of memory", name);
    if (status == RFX_OK) status = rfx_output_file_open(mem, name, &file, err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), err);
    if (status == RFX_OK) status = rfx_output_file_append(file, "\n", 1, err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    free(text);
    json_decref(document);
    return status;
}

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

/* Sizes up to 2^40, of which four make no overflow together with 4 bytes where rows and columns of
 * an image do not. */
#define MOST_EXTENT ((int64_t)1 << 31)

static bool read_type(const json_t *document, enum rfx_type *type) {
    const char *name = json_string_value(json_object_get(document, "type"));
    for (int i = 0; name != NULL && i < RFX_TYPE_COUNT; i++) {
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

/* How the output is declared, after its map's shape. */
static bool read_stored(const json_t *document, const struct rfx_part_file *part,
                        struct rfx_stored *stored) {
    const json_t *given = json_object_get(document, "stored");
    int64_t elems;
    *stored = (struct rfx_stored){.type = RFX_TYPE_FLOAT32};
    if (given == NULL) return true;
    if (!read_type(given, &stored->type)) return false;
    stored->most = json_integer_value(json_object_get(given, "most"));
    if (json_object_get(given, "shape") == NULL) return stored->most >= 0;
    if (part->cells.of > 0 || !read_shape(given, &stored->shape, &elems)) return false;
    const struct rfx_tensor map = rfx_part_file_map(part);
    stored->reshaped = true;
    stored->last = json_is_true(json_object_get(given, "channels_last"));
    return stored->most >= 0 && rfx_shape_is_of_map(&stored->shape, &map, stored->last);
}

/* Which cells of the output or which rectangle of its map it is, as the version says. */
static const char *read_place(const json_t *document, int64_t elems, struct rfx_part_file *part) {
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (version == RFX_PART_CELLS_VERSION)
        return rfx_part_cells_read(json_object_get(document, "cells"), elems, &part->cells)
                   ? NULL
                   : "cells";
    if (part->shape.rank != 4 || part->shape.dims[0] != 1) return "shape";
    if (!read_range(document, "rows", part->shape.dims[2], &part->rect.y0, &part->rect.y1))
        return "rows";
    if (!read_range(document, "columns", part->shape.dims[3], &part->rect.x0, &part->rect.x1))
        return "columns";
    return NULL;
}

static bool read_text(const json_t *document, const char *key, char *text, size_t size) {
    const char *value = json_string_value(json_object_get(document, key));
    if (value == NULL || strlen(value) >= size) return false;
    memcpy(text, value, strlen(value) + 1);
    return true;
}

/* Which member is missing or none that a part has; NULL: all are well. */
static const char *read_members(const json_t *document, struct rfx_part_file *part) {
    const char *format = json_string_value(json_object_get(document, "format"));
    if (format == NULL || strcmp(format, RFX_PART_FORMAT) != 0) return "format";
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (version != RFX_PART_VERSION && version != RFX_PART_CELLS_VERSION) return "version";
    int64_t elems;
    if (!read_shape(document, &part->shape, &elems)) return "shape";
    if (!read_text(document, "output", part->output, sizeof part->output)) return "output";
    const char *wrong = read_place(document, elems, part);
    if (wrong != NULL) return wrong;
    if (!read_stored(document, part, &part->stored)) return "stored";
    if (!read_text(document, "fingerprint", part->fingerprint, sizeof part->fingerprint) ||
        strlen(part->fingerprint) != 32 || strspn(part->fingerprint, "0123456789abcdef") != 32)
        return "fingerprint";
    part->run = json_object_get(document, "run");
    if (!json_is_object(part->run)) return "run";
    json_incref(part->run);
    part->about = json_incref(json_object_get(document, "about"));
    part->geo = json_incref(json_object_get(document, "georeference"));
    part->picture = json_incref(json_object_get(document, "picture"));
    return rfx_part_json_is_sealed(document) ? NULL : "sum";
}

enum rfx_status rfx_part_file_read(const char *path, struct rfx_part_file *part,
                                   struct rfx_error *err) {
    struct rfx_part_file read = {.run = NULL};
    json_t *document;
    enum rfx_status status = rfx_part_json_load("part", path, &document, err);
    if (status != RFX_OK) return status;
    const char *wrong = read_members(document, &read);
    json_decref(document);
    if (wrong != NULL) rfx_part_file_release(&read);
    if (wrong != NULL && strcmp(wrong, "sum") == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%.300s.json was changed since the part was made: its 'sum' is another one",
                        path);
    if (wrong != NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s.json: '%s' is not that of a part", path,
                        wrong);
    *part = read;
    return RFX_OK;
}

static enum rfx_status check_npy(const char *path, const struct rfx_part_file *part, int fd,
                                 int64_t *data_offset, struct rfx_error *err) {
    unsigned char bytes[RFX_NPY_MAX_HEADER_BYTES];
    struct rfx_npy_header header;
    struct rfx_tensor tensor = rfx_part_file_tensor(part);
    struct stat at;
    ssize_t got = pread(fd, bytes, sizeof bytes, 0);
    if (got < 0 || fstat(fd, &at) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "part '%.200s': %s", path, strerror(errno));
    enum rfx_status status = rfx_npy_parse(bytes, (size_t)got, &header, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "part '%.200s'", path);
    char shape[SHAPE_CHARS];
    bool same = strcmp(header.descr, "<f4") == 0 && !header.fortran_order &&
                same_shape(&header.shape, &tensor.shape);
    if (!same)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "part '%.200s': its array has not the shape that its JSON says, %s", path,
                        shape_text(&tensor.shape, shape));
    int64_t wanted = (int64_t)header.data_offset + (int64_t)rfx_floats_bytes(tensor.elems);
    if ((int64_t)at.st_size != wanted)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "part '%.200s': %lld bytes long, %" PRId64
                        " are needed: it was cut off or added to",
                        path, (long long)at.st_size, wanted);
    *data_offset = (int64_t)header.data_offset;
    return RFX_OK;
}

enum rfx_status rfx_part_file_open(const char *path, const struct rfx_part_file *part, int *fd,
                                   int64_t *data_offset, struct rfx_error *err) {
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "part '%.200s': %s", path, strerror(errno));
    enum rfx_status status = check_npy(path, part, opened, data_offset, err);
    if (status == RFX_OK)
        *fd = opened;
    else
        (void)close(opened);
    return status;
}

enum rfx_status rfx_part_file_values(const char *path, int fd, int64_t offset, int64_t count,
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

/* Runs of elements that follow each other in the array, and are `step` apart in the output: rows of
 * a map's channels, or those of cells. */
static int64_t count_runs(const struct rfx_part_file *part) {
    if (part->cells.of > 0) return rfx_part_cells_runs(&part->cells);
    return part->shape.dims[1] * rfx_rect_rows(part->rect);
}

static struct rfx_part_run run_of(const struct rfx_part_file *part, int64_t i, int64_t *step) {
    *step = 1;
    if (part->cells.of > 0) return rfx_part_cells_run(&part->cells, i);
    const struct rfx_spread at = rfx_part_file_end(part).at;
    int64_t rows = rfx_rect_rows(part->rect), cols = rfx_rect_cols(part->rect);
    int64_t y = part->rect.y0 + i % rows, c = i / rows;
    *step = at.column_step;
    return (struct rfx_part_run){
        .from = i * cols,
        .to = y * at.row_step + part->rect.x0 * at.column_step + c * at.channel_step,
        .count = cols};
}

enum { CHECK_CHUNK = 16384 };

/* n values, which are elements to, to + step, ... of the output. */
static void add_values(struct rfx_fingerprint *hash, int64_t to, int64_t step, float *values,
                       int64_t n) {
    struct rfx_rect row = rfx_rect_make(0, 1, 0, n);
    struct rfx_view view = rfx_view_dense(values, row, 1);
    struct rfx_end end = {.channels = 1, .at = {to, n * step, step, INT64_MAX}};
    rfx_fingerprint_add_end(hash, &end, row, &view);
}

static enum rfx_status hash_run(const char *path, int fd, int64_t offset, struct rfx_part_run run,
                                int64_t step, float *chunk, struct rfx_fingerprint *hash,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < run.count && status == RFX_OK; i += CHECK_CHUNK) {
        int64_t n = rfx_min_i64(CHECK_CHUNK, run.count - i);
        int64_t at = offset + (int64_t)rfx_floats_bytes(run.from + i);
        status = rfx_part_file_values(path, fd, at, n, chunk, err);
        if (status == RFX_OK) add_values(hash, run.to + i * step, step, chunk, n);
    }
    return status;
}

enum rfx_status rfx_part_file_check(struct rfx_memory *mem, const char *path,
                                    const struct rfx_part_file *part, struct rfx_error *err) {
    struct rfx_fingerprint all = {0};
    char hash[RFX_FINGERPRINT_CHARS];
    int64_t offset = 0;
    int fd = -1;
    float *chunk = rfx_memory_alloc(mem, CHECK_CHUNK * sizeof *chunk);
    if (chunk == NULL) return rfx_memory_fail(mem, path, CHECK_CHUNK * sizeof *chunk, err);
    enum rfx_status status = rfx_part_file_open(path, part, &fd, &offset, err);
    for (int64_t i = 0; status == RFX_OK && i < count_runs(part); i++) {
        int64_t step;
        struct rfx_part_run run = run_of(part, i, &step);
        status = hash_run(path, fd, offset, run, step, chunk, &all, err);
        if (status == RFX_OK) status = rfx_memory_check_stop(mem, err);
    }
    if (fd >= 0) (void)close(fd);
    rfx_memory_release(mem, chunk);
    rfx_fingerprint_hex(&all, hash);
    if (status == RFX_OK && strcmp(hash, part->fingerprint) != 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "part '%.200s': its values have the hash %s, not %s: they were changed "
                          "since it was made",
                          path, hash, part->fingerprint);
    return status;
}

/* A value in words, cut where it is long. */
static void show(const json_t *value, char *text, size_t size) {
    char *dump =
        value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    (void)snprintf(text, size, "%s", dump == NULL ? "nothing" : dump);
    free(dump);
}

static bool is_other(const json_t *a, const json_t *b, const char *key, char *why, size_t size) {
    const json_t *of_a = json_object_get(a, key), *of_b = json_object_get(b, key);
    char text_a[120], text_b[120];
    if (of_a != NULL && of_b != NULL && json_equal(of_a, of_b)) return false;
    show(of_a, text_a, sizeof text_a);
    show(of_b, text_b, sizeof text_b);
    (void)snprintf(why, size, "their '%s' differs: %s and %s", key, text_a, text_b);
    return true;
}

bool rfx_part_file_same_run(const struct rfx_part_file *a, const struct rfx_part_file *b, char *why,
                            size_t size) {
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
    if (!same_shape(&a->shape, &b->shape)) {
        char of_a[SHAPE_CHARS], of_b[SHAPE_CHARS];
        (void)snprintf(why, size, "they are of outputs of %s and %s", shape_text(&a->shape, of_a),
                       shape_text(&b->shape, of_b));
        return false;
    }
    const struct rfx_stored *s = &a->stored, *t = &b->stored;
    if (s->type != t->type || s->most != t->most || s->reshaped != t->reshaped ||
        s->last != t->last || (s->reshaped && !same_shape(&s->shape, &t->shape))) {
        (void)snprintf(why, size, "their outputs are declared differently");
        return false;
    }
    const struct rfx_part_cells *p = &a->cells, *q = &b->cells;
    if (p->of == q->of && p->channels == q->channels && p->last == q->last) return true;
    (void)snprintf(why, size, "their cells do not lie alike in the output");
    return false;
}
