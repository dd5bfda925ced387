/* Local maxima of rows, compared with the rows around them; see peaks.h. */
#include "rfexec/answers/peaks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"

/* A peak of its row and of the rows above it. */
struct candidate {
    int32_t x, channel;
    float value;
};

struct rfx_peaks {
    struct rfx_memory *mem;
    rfx_peak_fn *take;
    void *user;
    int64_t w, h, channels;
    int64_t across, down; /* the distance, cut to the map's width and height */
    int64_t y;            /* next row */
    size_t most;          /* candidates of a row */
    float *thresholds;
    float *prefix, *suffix;       /* maxima of a row, [w, channels] */
    float *highest;               /* rings of down + 1 rows: row y is at y % (down + 1) */
    struct candidate *candidates; /* `most` a row */
    size_t *counts;
};

struct sizes {
    size_t row, rows, most; /* floats of a row; rows of rings; candidates of a row */
    size_t highest, candidates, counts, channels; /* bytes */
};

/* Returns false if a size is more than size_t holds. */
static bool find_sizes(const struct rfx_peaks_options *o, struct sizes *out) {
    struct sizes s;
    int64_t across = rfx_min_i64(o->distance, o->width - 1);
    size_t bytes = 0;
    s.rows = (size_t)rfx_min_i64(o->distance, o->height - 1) + 1;
    bool fits = rfx_checked_mul_size((size_t)o->width, (size_t)o->channels, &s.row) &&
                rfx_checked_mul_size((size_t)rfx_ceil_div(o->width, across + 1),
                                     (size_t)o->channels, &s.most) &&
                rfx_checked_mul_size(s.rows, s.row, &bytes) &&
                rfx_checked_mul_size(bytes, sizeof(float), &s.highest) &&
                rfx_checked_mul_size(s.rows, s.most, &bytes) &&
                rfx_checked_mul_size(bytes, sizeof(struct candidate), &s.candidates);
    if (!fits) return false;
    s.counts = s.rows * sizeof(size_t);
    s.channels = (size_t)o->channels * sizeof(float);
    *out = s;
    return true;
}

size_t rfx_peaks_bytes(const struct rfx_peaks_options *options) {
    const size_t much = SIZE_MAX / 4;
    struct sizes s;
    if (!find_sizes(options, &s) || s.highest > much / 4 || s.candidates > much / 4) return much;
    return sizeof(struct rfx_peaks) + s.channels + s.counts + s.candidates + s.highest +
           2 * s.row * sizeof(float);
}

enum rfx_status rfx_peaks_create(struct rfx_memory *mem, const struct rfx_peaks_options *options,
                                 rfx_peak_fn *take, void *user, struct rfx_peaks **out,
                                 struct rfx_error *err) {
    struct sizes s;
    size_t bytes = rfx_peaks_bytes(options);
    if (!find_sizes(options, &s)) return rfx_memory_fail(mem, "peaks", bytes, err);
    struct rfx_peaks *p = rfx_memory_calloc(mem, 1, sizeof *p);
    if (p == NULL) return rfx_memory_fail(mem, "peaks", bytes, err);
    *p = (struct rfx_peaks){.mem = mem,
                            .take = take,
                            .user = user,
                            .w = options->width,
                            .h = options->height,
                            .channels = options->channels,
                            .across = rfx_min_i64(options->distance, options->width - 1),
                            .down = (int64_t)s.rows - 1,
                            .most = s.most};
    size_t c = (size_t)options->channels;
    p->thresholds = rfx_memory_alloc(mem, c * sizeof *p->thresholds);
    p->prefix = rfx_memory_alloc(mem, s.row * sizeof *p->prefix);
    p->suffix = rfx_memory_alloc(mem, s.row * sizeof *p->suffix);
    p->highest = rfx_memory_alloc(mem, s.highest);
    p->candidates = rfx_memory_alloc(mem, s.candidates);
    p->counts = rfx_memory_calloc(mem, s.rows, sizeof *p->counts);
    if (p->thresholds == NULL || p->prefix == NULL || p->suffix == NULL || p->highest == NULL ||
        p->candidates == NULL || p->counts == NULL) {
        rfx_peaks_free(p);
        return rfx_memory_fail(mem, "peaks", bytes, err);
    }
    memcpy(p->thresholds, options->thresholds, c * sizeof *p->thresholds);
    *out = p;
    return RFX_OK;
}

static size_t slot_of(const struct rfx_peaks *p, int64_t y) {
    return (size_t)(y % (p->down + 1));
}

static float *highest_of(const struct rfx_peaks *p, int64_t y) {
    return p->highest + slot_of(p, y) * (size_t)(p->w * p->channels);
}

/* `to` becomes the larger of `values` and `before`, pixel by pixel; NaN of `values` is passed over.
 * before NULL: as if all were -infinity. */
static void larger(const float *values, const float *before, float *to, int64_t channels) {
    for (int64_t k = 0; k < channels; k++) {
        float least = before != NULL ? before[k] : -INFINITY;
        to[k] = values[k] > least ? values[k] : least;
    }
}

/* Fills, for each pixel, the largest value from the beginning of its block to it, and from it to
 * the end of its block. Blocks have as many columns as the window. */
static void fill_blocks(struct rfx_peaks *p, const float *values) {
    int64_t c = p->channels, side = 2 * p->across + 1;
    for (int64_t x = 0; x < p->w; x++)
        larger(values + x * c, x % side > 0 ? p->prefix + (x - 1) * c : NULL, p->prefix + x * c, c);
    for (int64_t x = p->w - 1; x >= 0; x--) {
        bool last = x == p->w - 1 || x % side == side - 1;
        larger(values + x * c, last ? NULL : p->suffix + (x + 1) * c, p->suffix + x * c, c);
    }
}

/* Fills, for each pixel, the largest value of its row within the distance. */
static void fill_highest(struct rfx_peaks *p, const float *values, float *to) {
    int64_t c = p->channels, side = 2 * p->across + 1;
    fill_blocks(p, values);
    for (int64_t x = 0; x < p->w; x++) {
        int64_t first = x - p->across, end = rfx_min_i64(x + p->across, p->w - 1);
        const float *prefix = p->prefix + end * c;
        if (first <= 0) /* the window ends in the first block */
            memcpy(to + x * c, prefix, (size_t)c * sizeof *to);
        else if (first / side == end / side) /* it begins in the last block, or fills a block */
            memcpy(to + x * c, p->suffix + first * c, (size_t)c * sizeof *to);
        else
            larger(p->suffix + first * c, prefix, to + x * c, c);
    }
}

/* Returns whether a pixel before this one in the row has the same value. For pixels that none of
 * their row exceeds, the steps of all calls add up to the row's width at most: each pixel is passed
 * by the first such pixel after it alone. */
static bool has_equal_before(const struct rfx_peaks *p, const float *value, int64_t x) {
    for (int64_t i = 1; i <= p->across && i <= x; i++)
        if (value[-i * p->channels] == *value) return true;
    return false;
}

static bool is_above_rows_before(const struct rfx_peaks *p, int64_t at, float value) {
    for (int64_t y = rfx_max_i64(p->y - p->down, 0); y < p->y; y++)
        if (highest_of(p, y)[at] >= value) return false;
    return true;
}

static void find_candidates(struct rfx_peaks *p, const float *values) {
    const float *highest = highest_of(p, p->y);
    size_t slot = slot_of(p, p->y), n = 0;
    struct candidate *found = p->candidates + slot * p->most;
    for (int64_t x = 0, at = 0; x < p->w; x++)
        for (int64_t k = 0; k < p->channels; k++, at++) {
            float value = values[at];
            if (!(value > p->thresholds[k]) || value < highest[at]) continue;
            if (has_equal_before(p, values + at, x) || !is_above_rows_before(p, at, value))
                continue;
            found[n++] = (struct candidate){(int32_t)x, (int32_t)k, value};
        }
    p->counts[slot] = n;
}

/* Drops the candidates of row y that the new row exceeds. */
static void drop_exceeded(struct rfx_peaks *p, int64_t y, const float *highest) {
    size_t slot = slot_of(p, y), kept = 0;
    struct candidate *list = p->candidates + slot * p->most;
    for (size_t i = 0; i < p->counts[slot]; i++)
        if (!(highest[list[i].x * p->channels + list[i].channel] > list[i].value))
            list[kept++] = list[i];
    p->counts[slot] = kept;
}

static enum rfx_status pass_on(struct rfx_peaks *p, int64_t y, struct rfx_error *err) {
    size_t slot = slot_of(p, y);
    const struct candidate *list = p->candidates + slot * p->most;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; i < p->counts[slot] && status == RFX_OK; i++) {
        const struct rfx_peak peak = {list[i].x, y, list[i].channel, list[i].value};
        status = p->take(p->user, &peak, err);
    }
    return status;
}

enum rfx_status rfx_peaks_row(struct rfx_peaks *peaks, const float *values, struct rfx_error *err) {
    struct rfx_peaks *p = peaks;
    if (p->y >= p->h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "peaks: more rows than the %" PRId64 " of the map", p->h);
    float *highest = highest_of(p, p->y);
    fill_highest(p, values, highest);
    find_candidates(p, values);
    for (int64_t y = rfx_max_i64(p->y - p->down, 0); y < p->y; y++) drop_exceeded(p, y, highest);
    int64_t complete = p->y++ - p->down;
    return complete >= 0 ? pass_on(p, complete, err) : RFX_OK;
}

enum rfx_status rfx_peaks_end(struct rfx_peaks *peaks, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = rfx_max_i64(peaks->y - peaks->down, 0); y < peaks->y && status == RFX_OK; y++)
        status = pass_on(peaks, y, err);
    return status;
}

void rfx_peaks_free(struct rfx_peaks *peaks) {
    if (peaks == NULL) return;
    struct rfx_memory *mem = peaks->mem;
    rfx_memory_release(mem, peaks->thresholds);
    rfx_memory_release(mem, peaks->prefix);
    rfx_memory_release(mem, peaks->suffix);
    rfx_memory_release(mem, peaks->highest);
    rfx_memory_release(mem, peaks->candidates);
    rfx_memory_release(mem, peaks->counts);
    rfx_memory_release(mem, peaks);
}
