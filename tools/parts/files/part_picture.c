/* Rows' sums as text, and files known again; see part_picture.h. */
#include "tools/parts/files/part_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_source.h"

enum { DIGITS = 8 };

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

/* The file of an image that was written last. false: there is none. */
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

static json_t *file_json(const char *input) {
    struct stat at;
    if (!find_file(input, &at)) return NULL;
    return json_pack("[I,I,I,I]", (json_int_t)at.st_size, (json_int_t)at.st_mtim.tv_sec,
                     (json_int_t)at.st_mtim.tv_nsec, (json_int_t)at.st_ino);
}

json_t *rfx_part_picture_json(const char *input, struct rfx_rect rect,
                              const struct rfx_row_sums *sums) {
    json_t *picture =
        json_pack("{s:[I,I], s:[I,I], s:i, s:o*}", "rows", (json_int_t)rect.y0, (json_int_t)rect.y1,
                  "columns", (json_int_t)rect.x0, (json_int_t)rect.x1, "version",
                  RFX_ROW_SUMS_VERSION, "sums", sums_json(rect, sums));
    json_t *file = picture != NULL ? file_json(input) : NULL;
    if (file != NULL) (void)json_object_set_new(picture, "file", file);
    return picture;
}

bool rfx_part_picture_same_file(const json_t *picture, const char *input) {
    json_t *now = file_json(input);
    bool same = now != NULL && json_equal(now, json_object_get(picture, "file"));
    json_decref(now);
    return same;
}

/* A picture's rows; false: they are not as long as they say. */
struct rows {
    struct rfx_range rows;
    const char *sums;
};

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

bool rfx_part_picture_agrees(const json_t *a, const json_t *b, int64_t *row) {
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
