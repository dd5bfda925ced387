/* Reduces pairs of rows to rows of half the width, level by level; see overviews.h. */
#include "rfexec/output/overviews/overviews.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"
#include "rfexec/output/output_sink.h"

enum { MOST_LEVELS = 32 };

struct level {
    int64_t h, w;
    int64_t taken;       /* rows received of the next larger level */
    off_t offset;        /* place of the level in the file */
    unsigned char *held; /* the first of two rows of the next larger level */
    unsigned char *row;
};

struct rfx_overviews {
    struct rfx_memory *mem;
    struct rfx_overview_map map;
    char *path; /* path of the output */
    int fd, count;
    unsigned char *plane;             /* with planes: a row of one channel of the picture */
    struct level levels[MOST_LEVELS]; /* [0] is the picture */
};

static size_t row_bytes(const struct rfx_overview_map *map, int64_t w) {
    return (size_t)(w * map->channels) * (size_t)(map->bits / 8);
}

static size_t plane_bytes(const struct rfx_overview_map *map, int64_t w) {
    return (size_t)w * (size_t)(map->bits / 8);
}

int64_t rfx_overviews_length(int64_t length, int k) {
    return ((length - 1) >> k) + 1;
}

int rfx_overviews_count(const struct rfx_overview_map *map) {
    int k = 0;
    if (map->kind == RFX_OVERVIEW_NONE) return 0;
    while (rfx_overviews_length(rfx_max_i64(map->h, map->w), k) > map->side) k++;
    return k;
}

size_t rfx_overviews_bytes(const struct rfx_overview_map *map) {
    size_t bytes = sizeof(struct rfx_overviews) + 4096 /* the path */;
    for (int k = 1; k <= rfx_overviews_count(map); k++)
        bytes += row_bytes(map, rfx_overviews_length(map->w, k - 1)) +
                 row_bytes(map, rfx_overviews_length(map->w, k));
    return map->planes ? bytes + plane_bytes(map, map->w) : bytes;
}

static enum rfx_status fail_io(const struct rfx_overviews *o, const char *doing, int number,
                               struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO, "%s: %s the overviews kept beside it: %s", o->path, doing,
                    strerror(number));
}

/* Allocates a row of a plane and places the picture's planes before the levels in the file. */
static enum rfx_status open_planes(struct rfx_overviews *o, off_t *offset, struct rfx_error *err) {
    size_t bytes = plane_bytes(&o->map, o->map.w);
    if (!o->map.planes) return RFX_OK;
    o->plane = rfx_memory_alloc(o->mem, bytes);
    *offset = (off_t)row_bytes(&o->map, o->map.w) * o->map.h;
    return o->plane != NULL ? RFX_OK : rfx_memory_fail(o->mem, o->path, bytes, err);
}

static enum rfx_status open_levels(struct rfx_overviews *o, struct rfx_error *err) {
    off_t offset = 0;
    o->levels[0] = (struct level){.h = o->map.h, .w = o->map.w};
    enum rfx_status status = open_planes(o, &offset, err);
    if (status != RFX_OK) return status;
    for (int k = 1; k <= o->count; k++) {
        struct level *level = &o->levels[k];
        size_t held = row_bytes(&o->map, o->levels[k - 1].w), row;
        level->h = rfx_overviews_length(o->map.h, k);
        level->w = rfx_overviews_length(o->map.w, k);
        level->offset = offset;
        row = row_bytes(&o->map, level->w);
        offset += (off_t)row * level->h;
        level->held = rfx_memory_alloc(o->mem, held);
        level->row = rfx_memory_alloc(o->mem, row);
        if (level->held == NULL || level->row == NULL)
            return rfx_memory_fail(o->mem, o->path, held + row, err);
    }
    if (offset == 0) return RFX_OK;
    o->fd = rfx_temp_file_beside(o->path);
    if (o->fd < 0) return fail_io(o, "cannot make a file for", errno, err);
    int number = rfx_descriptor_reserve(o->fd, 0, offset);
    bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    return full ? fail_io(o, "no room for", number, err) : RFX_OK;
}

enum rfx_status rfx_overviews_open(struct rfx_memory *mem, const char *path,
                                   const struct rfx_overview_map *map, struct rfx_overviews **out,
                                   struct rfx_error *err) {
    struct rfx_overviews *o = rfx_memory_calloc(mem, 1, sizeof *o);
    if (o == NULL) return rfx_memory_fail(mem, path, sizeof *o, err);
    o->mem = mem;
    o->map = *map;
    o->fd = -1;
    o->count = rfx_overviews_count(map);
    o->path = rfx_memory_strdup(mem, path);
    enum rfx_status status =
        o->path != NULL ? open_levels(o, err) : rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK)
        *out = o;
    else
        rfx_overviews_free(o);
    return status;
}

static float mean_of_floats(const struct rfx_overview_map *map, const float *values, int n) {
    double sum = 0;
    int counted = 0;
    for (int i = 0; i < n; i++) {
        if (isnan(values[i]) || (map->has_no_data && (double)values[i] == map->no_data)) continue;
        sum += (double)values[i];
        counted++;
    }
    return counted > 0 ? rfx_one_nan((float)(sum / counted)) : values[0];
}

static unsigned mean_of_counts(const struct rfx_overview_map *map, const unsigned *values, int n) {
    unsigned sum = 0, counted = 0;
    for (int i = 0; i < n; i++) {
        if (map->has_no_data && (double)values[i] == map->no_data) continue;
        sum += values[i];
        counted++;
    }
    return counted > 0 ? (sum + counted / 2) / counted : values[0];
}

static int64_t load_signed(const unsigned char *from, size_t bytes) {
    int8_t narrow;
    int16_t wide;
    int32_t widest;
    if (bytes == 1) return memcpy(&narrow, from, 1), narrow;
    if (bytes == 2) return memcpy(&wide, from, 2), wide;
    return memcpy(&widest, from, 4), widest;
}

/* Writes the mean of signed integers, rounded halves away from zero. */
static void mean_of_signed(const struct rfx_overview_map *map, const int64_t *values, int n,
                           unsigned char *to) {
    int64_t sum = 0, counted = 0;
    for (int i = 0; i < n; i++) {
        if (map->has_no_data && (double)values[i] == map->no_data) continue;
        sum += values[i];
        counted++;
    }
    int64_t half = sum < 0 ? -(counted / 2) : counted / 2;
    int64_t mean = counted > 0 ? (sum + half) / counted : values[0];
    memcpy(to, &mean, (size_t)map->bits / 8); /* little-endian */
}

/* reduce_element for signed integers. */
static void reduce_signed(const struct rfx_overview_map *map, const unsigned char *const above[2],
                          int rows, const int64_t cols[2], int n_cols, unsigned char *to) {
    size_t bytes = (size_t)map->bits / 8;
    int64_t values[4];
    int n = 0;
    for (int r = 0; r < rows; r++)
        for (int x = 0; x < n_cols; x++)
            values[n++] = load_signed(above[r] + (size_t)cols[x] * bytes, bytes);
    mean_of_signed(map, values, n, to);
}

/* Computes element `to` of a row from elements of `rows` rows and `n_cols` columns of the larger
 * level. */
static void reduce_element(const struct rfx_overview_map *map, const unsigned char *const above[2],
                           int rows, const int64_t cols[2], int n_cols, unsigned char *to) {
    size_t bytes = (size_t)map->bits / 8;
    if (map->is_signed) {
        reduce_signed(map, above, rows, cols, n_cols, to);
        return;
    }
    float floats[4];
    unsigned counts[4];
    int n = 0;
    for (int r = 0; r < rows; r++)
        for (int x = 0; x < n_cols; x++, n++) {
            const unsigned char *from = above[r] + (size_t)cols[x] * bytes;
            uint16_t wide;
            if (bytes == 4) memcpy(&floats[n], from, 4);
            if (bytes == 2) memcpy(&wide, from, 2);
            counts[n] = bytes == 1 ? *from : bytes == 2 ? wide : 0;
        }
    if (bytes == 4) {
        float mean = mean_of_floats(map, floats, n);
        memcpy(to, &mean, 4);
        return;
    }
    uint16_t mean = (uint16_t)mean_of_counts(map, counts, n);
    if (bytes == 2) memcpy(to, &mean, 2);
    if (bytes == 1) *to = (unsigned char)mean;
}

/* Computes a row of `w` columns from one or two rows of `w_above` columns. */
static void reduce_rows(const struct rfx_overview_map *map, const unsigned char *const above[2],
                        int rows, int64_t w_above, int64_t w, unsigned char *row) {
    size_t bytes = (size_t)map->bits / 8, pixel = (size_t)map->channels * bytes;
    for (int64_t x = 0; x < w; x++) {
        unsigned char *to = row + (size_t)x * pixel;
        if (map->kind == RFX_OVERVIEW_NEAREST) {
            memcpy(to, above[0] + 2 * (size_t)x * pixel, pixel);
            continue;
        }
        int n_cols = 2 * x + 1 < w_above ? 2 : 1;
        for (int64_t c = 0; c < map->channels; c++) {
            const int64_t cols[2] = {2 * x * map->channels + c, (2 * x + 1) * map->channels + c};
            reduce_element(map, above, rows, cols, n_cols, to + (size_t)c * bytes);
        }
    }
}

static enum rfx_status put_bytes(const struct rfx_overviews *o, const unsigned char *p,
                                 size_t bytes, off_t offset, struct rfx_error *err) {
    int number = rfx_descriptor_write_at(o->fd, p, bytes, offset);
    return number == 0 ? RFX_OK : fail_io(o, "cannot write", number, err);
}

static enum rfx_status get_bytes(const struct rfx_overviews *o, unsigned char *p, size_t bytes,
                                 off_t offset, struct rfx_error *err) {
    int number = rfx_descriptor_read_at(o->fd, p, bytes, offset);
    return number == 0 ? RFX_OK : fail_io(o, "cannot read", number, err);
}

/* Returns where row y of a channel begins in the file. */
static off_t plane_offset(const struct rfx_overviews *o, int k, int64_t channel, int64_t y) {
    const struct level *level = &o->levels[k];
    return level->offset + (off_t)plane_bytes(&o->map, level->w) * (channel * level->h + y);
}

/* Writes row y of level k. */
static enum rfx_status write_row(struct rfx_overviews *o, int k, int64_t y,
                                 const unsigned char *row, struct rfx_error *err) {
    const struct level *level = &o->levels[k];
    size_t bytes = row_bytes(&o->map, level->w), sample = (size_t)o->map.bits / 8;
    if (!o->map.planes) return put_bytes(o, row, bytes, level->offset + (off_t)bytes * y, err);
    enum rfx_status status = RFX_OK;
    for (int64_t c = 0; c < o->map.channels && status == RFX_OK; c++) {
        for (int64_t x = 0; x < level->w; x++)
            memcpy(o->plane + (size_t)x * sample, row + (size_t)(x * o->map.channels + c) * sample,
                   sample);
        status =
            put_bytes(o, o->plane, plane_bytes(&o->map, level->w), plane_offset(o, k, c, y), err);
    }
    return status;
}

enum rfx_status rfx_overviews_put(struct rfx_overviews *o, const void *samples,
                                  struct rfx_error *err) {
    const unsigned char *row = samples;
    enum rfx_status status = RFX_OK;
    if (o->map.planes) status = write_row(o, 0, o->levels[0].taken++, row, err);
    for (int k = 1; k <= o->count && status == RFX_OK; k++) {
        struct level *level = &o->levels[k];
        const struct level *above = &o->levels[k - 1];
        int64_t y = level->taken++;
        if (y % 2 == 0 && y + 1 < above->h) {
            memcpy(level->held, row, row_bytes(&o->map, above->w));
            return RFX_OK;
        }
        const unsigned char *const pair[2] = {y % 2 == 0 ? row : level->held, row};
        reduce_rows(&o->map, pair, (int)(y % 2) + 1, above->w, level->w, level->row);
        status = write_row(o, k, y / 2, level->row, err);
        row = level->row;
    }
    return status;
}

enum rfx_status rfx_overviews_read(struct rfx_overviews *o, int k, int64_t y, void *row,
                                   struct rfx_error *err) {
    size_t bytes = row_bytes(&o->map, o->levels[k].w);
    return get_bytes(o, row, bytes, o->levels[k].offset + (off_t)bytes * y, err);
}

enum rfx_status rfx_overviews_read_plane(struct rfx_overviews *o, int k, int64_t channel, int64_t y,
                                         void *row, struct rfx_error *err) {
    return get_bytes(o, row, plane_bytes(&o->map, o->levels[k].w), plane_offset(o, k, channel, y),
                     err);
}

void rfx_overviews_free(struct rfx_overviews *o) {
    if (o == NULL) return;
    if (o->fd >= 0) (void)close(o->fd);
    for (int k = 0; k < MOST_LEVELS; k++) {
        rfx_memory_release(o->mem, o->levels[k].held);
        rfx_memory_release(o->mem, o->levels[k].row);
    }
    rfx_memory_release(o->mem, o->plane);
    rfx_memory_release(o->mem, o->path);
    rfx_memory_release(o->mem, o);
}
