/* Reading and sealing JSON documents; image rows and georeferences as JSON; see shard_json.h. */
#include "rfexec/shards/shard_json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* Inlined, as in the fingerprints of outputs. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/output_file.h"
#include "rfexec/shards/shard_file.h"

/* The longest documents have about 100 bytes for each of some hundreds of states. */
#define MOST_BYTES ((size_t)4 << 20)

enum rfx_status rfx_shard_json_name(const char *path, char *name, size_t size,
                                    struct rfx_error *err) {
    int n = snprintf(name, size, "%s.json", path);
    if (n > 0 && (size_t)n < size) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%.200s...: the name is too long", path);
}

/* Reads the open file `name` into *text, which the caller frees, and sets *length. */
static enum rfx_status read_text(int fd, const char *name, char **text, size_t *length,
                                 struct rfx_error *err) {
    struct stat at;
    if (fstat(fd, &at) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%.300s: %s", name, strerror(errno));
    if (!S_ISREG(at.st_mode))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s: not a regular file", name);
    if (at.st_size > (off_t)MOST_BYTES)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%.300s: %lld bytes long; the JSON of a part has at most %zu", name,
                        (long long)at.st_size, MOST_BYTES);
    char *bytes = malloc((size_t)at.st_size + 1);
    if (bytes == NULL) return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%.300s: no memory", name);
    size_t done = 0;
    while (done < (size_t)at.st_size) {
        ssize_t got = pread(fd, bytes + done, (size_t)at.st_size - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(bytes);
            return rfx_fail(err, RFX_STATUS_IO, "%.300s: %s", name, strerror(errno));
        }
        if (got == 0) break;
        done += (size_t)got;
    }
    *text = bytes;
    *length = done;
    return RFX_OK;
}

enum rfx_status rfx_shard_json_load(const char *what, const char *path, json_t **out,
                                    struct rfx_error *err) {
    char name[RFX_SHARD_PATH_CHARS];
    char *text = NULL;
    size_t length = 0;
    json_error_t where;
    enum rfx_status status = rfx_shard_json_name(path, name, sizeof name, err);
    if (status != RFX_OK) return status;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (fd < 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s '%.200s': '%.200s' beside it, which describes it: %s", what, path, name,
                        strerror(errno));
    status = read_text(fd, name, &text, &length, err);
    (void)close(fd);
    if (status != RFX_OK) return status;
    *out = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    free(text);
    if (*out != NULL) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED, "%.200s: line %d: %.120s", name, where.line,
                    where.text);
}

void rfx_shard_json_hash(uint64_t high, uint64_t low, char out[RFX_FINGERPRINT_CHARS]) {
    rfx_fingerprint_hex(&(struct rfx_fingerprint){.high = high, .low = low}, out);
}

/* Writes the checksum of all members except "sum" to `sum`. The order of the members does not
 * matter. Returns false when there is no memory. */
static bool sum_members(const json_t *document, char sum[RFX_FINGERPRINT_CHARS]) {
    json_t *rest = json_object();
    const char *key;
    json_t *value;
    union {
        const json_t *in;
        json_t *out;
    } all = {document};
    bool done = rest != NULL;
    json_object_foreach(all.out, key, value) if (strcmp(key, "sum") != 0) done =
        done && json_object_set(rest, key, value) == 0;
    char *text = done ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(rest);
    if (text == NULL) return false;
    XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    rfx_shard_json_hash(hash.high64, hash.low64, sum);
    free(text);
    return true;
}

bool rfx_shard_json_seal(json_t *document) {
    char sum[RFX_FINGERPRINT_CHARS];
    return sum_members(document, sum) &&
           json_object_set_new(document, "sum", json_string(sum)) == 0;
}

bool rfx_shard_json_is_sealed(const json_t *document) {
    const char *wanted = json_string_value(json_object_get(document, "sum"));
    char sum[RFX_FINGERPRINT_CHARS];
    return wanted != NULL && sum_members(document, sum) && strcmp(sum, wanted) == 0;
}

enum rfx_status rfx_shard_json_write(struct rfx_memory *mem, const char *path, json_t *document,
                                     const char *end, struct rfx_error *err) {
    char name[RFX_SHARD_PATH_CHARS];
    struct rfx_output_file *file = NULL;
    enum rfx_status status = rfx_shard_json_name(path, name, sizeof name, err);
    if (status != RFX_OK) return status;
    bool sealed = document != NULL && rfx_shard_json_seal(document);
    char *text = sealed ? json_dumps(document, JSON_INDENT(2)) : NULL;
    if (text == NULL) status = rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%s: out of memory", name);
    if (status == RFX_OK) status = rfx_output_file_open(mem, name, &file, err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), err);
    if (status == RFX_OK) status = rfx_output_file_append(file, end, strlen(end), err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    free(text);
    return status;
}

enum { DIGITS = 8 };

/* Returns the text "sums" of the rows of `rect`; NULL: no memory. */
static json_t *sums_json(struct rfx_rect rect, const struct rfx_row_sums *sums) {
    size_t rows = (size_t)rfx_rect_rows(rect);
    char *text = malloc(rows * DIGITS + 1);
    if (text == NULL) return NULL;
    for (size_t i = 0; i < rows; i++) {
        uint32_t sum;
        char *at = text + i * DIGITS;
        if (rfx_row_sums_get(sums, rect.y0 + (int64_t)i, &sum))
            (void)snprintf(at, DIGITS + 1, "%08" PRIx32, sum);
        else
            (void)snprintf(at, DIGITS + 1, "--------");
    }
    json_t *json = json_stringn(text, rows * DIGITS);
    free(text);
    return json;
}

/* Sets *last to the result of stat for the image's file; of several files, for the one modified
 * last. Returns false when the image is not a file. */
static bool find_file(const char *input, struct stat *last) {
    char room[4096];
    bool found = false;
    const char *file = input;
    for (int k = 0; file != NULL; k++) {
        struct stat at;
        file = rfx_image_file_of(input, k, room, sizeof room);
        if (file == NULL || stat(file, &at) != 0) continue;
        bool later = at.st_mtim.tv_sec != last->st_mtim.tv_sec
                         ? at.st_mtim.tv_sec > last->st_mtim.tv_sec
                         : at.st_mtim.tv_nsec > last->st_mtim.tv_nsec;
        if (!found || later) *last = at;
        found = true;
    }
    return found;
}

/* Returns the list "file"; NULL: the image is not a file, or there is no memory. */
static json_t *file_json(const char *input) {
    struct stat at;
    if (!find_file(input, &at)) return NULL;
    return json_pack("[I,I,I,I]", (json_int_t)at.st_size, (json_int_t)at.st_mtim.tv_sec,
                     (json_int_t)at.st_mtim.tv_nsec, (json_int_t)at.st_ino);
}

json_t *rfx_shard_image_json(const char *input, struct rfx_rect rect,
                             const struct rfx_row_sums *sums) {
    json_t *picture =
        json_pack("{s:[I,I], s:[I,I], s:i, s:o*}", "rows", (json_int_t)rect.y0, (json_int_t)rect.y1,
                  "columns", (json_int_t)rect.x0, (json_int_t)rect.x1, "version",
                  RFX_ROW_SUMS_VERSION, "sums", sums_json(rect, sums));
    json_t *file = picture != NULL ? file_json(input) : NULL;
    if (file != NULL) (void)json_object_set_new(picture, "file", file);
    return picture;
}

bool rfx_shard_image_same_file(const json_t *picture, const char *input) {
    json_t *now = file_json(input);
    bool same = now != NULL && json_equal(now, json_object_get(picture, "file"));
    json_decref(now);
    return same;
}

/* The rows of a "picture" object, and their checksums. */
struct rows {
    struct rfx_range rows;
    const char *sums;
};

/* Reads the rows and checksums. Returns false when the object has none, or they are not valid. */
static bool read_rows(const json_t *picture, struct rows *out) {
    const json_t *rows = json_object_get(picture, "rows");
    const json_t *sums = json_object_get(picture, "sums");
    out->rows.lo = json_integer_value(json_array_get(rows, 0));
    out->rows.hi = json_integer_value(json_array_get(rows, 1));
    out->sums = json_string_value(sums);
    if (out->sums == NULL || out->rows.lo < 0 || out->rows.hi < out->rows.lo) return false;
    return json_string_length(sums) % DIGITS == 0 &&
           json_string_length(sums) / DIGITS == (size_t)(out->rows.hi - out->rows.lo);
}

bool rfx_shard_image_agrees(const json_t *a, const json_t *b, int64_t *row) {
    struct rows of_a, of_b;
    if (!read_rows(a, &of_a) || !read_rows(b, &of_b)) return true;
    if (!json_equal(json_object_get(a, "columns"), json_object_get(b, "columns"))) return true;
    const json_t *version = json_object_get(a, "version"), *other = json_object_get(b, "version");
    if (json_integer_value(version) != json_integer_value(other)) return true;
    int64_t lo = rfx_max_i64(of_a.rows.lo, of_b.rows.lo);
    int64_t hi = rfx_min_i64(of_a.rows.hi, of_b.rows.hi);
    for (int64_t y = lo; y < hi; y++) {
        const char *p = of_a.sums + (y - of_a.rows.lo) * DIGITS;
        const char *q = of_b.sums + (y - of_b.rows.lo) * DIGITS;
        if (p[0] == '-' || q[0] == '-' || memcmp(p, q, DIGITS) == 0) continue;
        *row = y;
        return false;
    }
    return true;
}

static json_t *doubles_json(const double *values, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) (void)json_array_append_new(list, json_real(values[i]));
    return list;
}

static void put_doubles(json_t *to, const char *key, const double *values, int n) {
    if (n > 0) (void)json_object_set_new(to, key, doubles_json(values, n));
}

/* Sets member `key` to a text, or to the list of its bytes if the text is not UTF-8. NULL: sets
 * nothing. */
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

json_t *rfx_shard_geo_json(const struct rfx_georeference *geo) {
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

/* A georeference that is being read. */
struct parse {
    struct rfx_georeference *geo;
    const json_t *json;
    const char *wrong; /* the first member that is wrong; NULL: none is */
    bool no_memory;
};

/* Returns the list under `key` and sets *n to its length, 0 when there is no list. Sets p->wrong
 * when the member is not a list or is too long; *n is 0 after any wrong member. */
static const json_t *list_of(struct parse *p, const char *key, size_t *n) {
    const json_t *list = json_object_get(p->json, key);
    *n = json_array_size(list);
    if (list != NULL && (!json_is_array(list) || *n > RFX_GEO_MOST_BYTES)) p->wrong = key;
    if (p->wrong != NULL) *n = 0;
    return list;
}

/* Reads the list of numbers under `key` into a new block *to and sets *count. Leaves both unchanged
 * when there is no list. */
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

/* Reads a list of exactly n numbers to to[n]; *has: there is such a list. */
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

/* Reads a text, or the list of its bytes, into a new block *to. */
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

enum rfx_status rfx_shard_geo_parse(struct rfx_memory *mem, const json_t *json,
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
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "member '%s' of its georeference is not valid",
                          p.wrong);
    if (status == RFX_OK)
        *out = geo;
    else
        rfx_georeference_release(&geo);
    return status;
}

json_t *rfx_shard_grid_json(const struct rfx_answer_place *place) {
    const struct rfx_geo_affine *cell = &place->cell;
    if (!place->known) return NULL;
    return json_pack("[f, f, f, f]", cell->x[0], cell->x[2], cell->y[1], cell->y[2]);
}

enum rfx_status rfx_shard_grid_parse(const json_t *json, struct rfx_answer_place *out,
                                     struct rfx_error *err) {
    double v[4];
    *out = (struct rfx_answer_place){.known = json != NULL};
    for (size_t i = 0; i < 4 && json != NULL; i++) {
        const json_t *number = json_array_get(json, i);
        v[i] = json_number_value(number);
        if (!json_is_number(number) || (i % 2 == 0 && !(v[i] > 0.0)))
            return rfx_fail(err, RFX_STATUS_MALFORMED, "its 'grid' is not valid");
    }
    if (json != NULL) {
        out->cell = (struct rfx_geo_affine){.x = {v[0], 0.0, v[1]}, .y = {0.0, v[2], v[3]}};
    }
    return RFX_OK;
}

enum { SOURCE_NUMBERS = 5 };

json_t *rfx_shard_source_json(const struct rfx_geo_source *source, bool as_stored) {
    return json_pack("[i, I, I, I, I]", as_stored ? 1 : source->orientation, (json_int_t)source->h,
                     (json_int_t)source->w, (json_int_t)source->y0, (json_int_t)source->x0);
}

enum rfx_status rfx_shard_source_parse(struct rfx_memory *mem, const json_t *geo,
                                       const json_t *place, struct rfx_geo_source *out,
                                       struct rfx_error *err) {
    int64_t v[SOURCE_NUMBERS];
    *out = (struct rfx_geo_source){.geo.mem = mem};
    bool valid = json_array_size(place) == SOURCE_NUMBERS;
    for (size_t i = 0; i < SOURCE_NUMBERS && valid; i++) {
        v[i] = json_integer_value(json_array_get(place, i));
        valid = json_is_integer(json_array_get(place, i)) && v[i] >= 0;
    }
    if (!valid || v[0] < 1 || v[0] > 8)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "its 'image_place' is not valid");
    out->orientation = (int)v[0];
    out->h = v[1];
    out->w = v[2];
    out->y0 = v[3];
    out->x0 = v[4];
    return rfx_shard_geo_parse(mem, geo, &out->geo, err);
}
