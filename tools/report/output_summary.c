/* Makes histograms and previews; see output_summary.h. */
#include "tools/report/output_summary.h"

#include <math.h>
#include <string.h>

#include "layers/core/checked.h"

/* Returns the number of the bin that contains a value, counted from 0.0. The result is exact,
 * because a float is divided by a power of two. */
static int64_t index_of(float value, int exponent) {
    return (int64_t)floor(ldexp((double)value, -exponent));
}

/* Returns the exponent of the smallest useful bin. A float has 24 significant bits, so finer bins
 * would not separate more values. */
static int finest_exponent(float min, float max) {
    int exponent;
    float most = fmaxf(fabsf(min), fabsf(max));
    if (most == 0.0F) return -149;
    (void)frexpf(most, &exponent);
    return exponent - 24;
}

/* Returns the exponent of the smallest bins with which all values lie in RFX_SKETCH_BINS bins. */
static int fit_exponent(float min, float max) {
    int exponent = finest_exponent(min, max);
    while (index_of(max, exponent) - index_of(min, exponent) >= RFX_SKETCH_BINS) ++exponent;
    return exponent;
}

/* Returns floor(index / 2^shift). */
static int64_t shifted(int64_t index, int shift) {
    if (shift > 62) return index < 0 ? -1 : 0;
    int64_t divisor = (int64_t)1 << shift;
    int64_t quotient = index / divisor;
    return index % divisor < 0 ? quotient - 1 : quotient;
}

/* Extends the range to a value and joins bins until there are at most RFX_SKETCH_BINS. */
static void widen(struct rfx_value_sketch *s, float value) {
    bool none = s->finite == 0;
    s->min = none || value < s->min ? value : s->min;
    s->max = none || value > s->max ? value : s->max;
    int exponent = fit_exponent(s->min, s->max);
    int64_t first = index_of(s->min, exponent);
    uint64_t bins[RFX_SKETCH_BINS] = {0};
    for (int i = 0; i < RFX_SKETCH_BINS && !none; ++i)
        if (s->bins[i] > 0)
            bins[shifted(s->first + i, exponent - s->exponent) - first] += s->bins[i];
    memcpy(s->bins, bins, sizeof bins);
    s->exponent = exponent;
    s->first = first;
}

static void add_special(struct rfx_value_sketch *s, float value) {
    if (isnan(value))
        ++s->nan;
    else if (value > 0)
        ++s->plus_inf;
    else
        ++s->minus_inf;
}

void rfx_value_sketch_add(struct rfx_value_sketch *s, const float *values, int64_t n) {
    double scale = ldexp(1.0, -s->exponent);
    for (int64_t i = 0; i < n; ++i) {
        float value = values[i];
        if (!isfinite(value)) {
            add_special(s, value);
            continue;
        }
        if (s->finite == 0 || value < s->min || value > s->max) {
            widen(s, value);
            scale = ldexp(1.0, -s->exponent);
        }
        ++s->finite;
        s->sum += (double)value;
        ++s->bins[(int64_t)floor((double)value * scale) - s->first];
    }
}

double rfx_value_sketch_edge(const struct rfx_value_sketch *s, int i) {
    return ldexp((double)(s->first + i), s->exponent);
}

int rfx_value_sketch_used(const struct rfx_value_sketch *s) {
    return s->finite == 0 ? 0 : (int)(index_of(s->max, s->exponent) - s->first) + 1;
}

bool rfx_map_preview_suits(const struct rfx_tensor *tensor) {
    return tensor->layout == RFX_LAYOUT_NHWC && tensor->h * tensor->w > 1;
}

/* Returns the sizes of a preview that has the proportions of the map and no side longer than
 * RFX_PREVIEW_SIDE. */
static struct rfx_map_preview shape_of(const struct rfx_tensor *tensor) {
    int64_t longer = rfx_max_i64(tensor->h, tensor->w);
    int64_t side = rfx_min_i64(longer, RFX_PREVIEW_SIDE);
    return (struct rfx_map_preview){
        .h = tensor->h,
        .w = tensor->w,
        .c = tensor->c,
        .rows = rfx_max_i64(1, tensor->h * side / longer),
        .cols = rfx_max_i64(1, tensor->w * side / longer),
        .channels = rfx_min_i64(tensor->c, RFX_PREVIEW_CHANNELS),
    };
}

static size_t cells_of(const struct rfx_map_preview *preview) {
    return (size_t)(preview->channels * preview->rows * preview->cols);
}

size_t rfx_map_preview_bytes(const struct rfx_tensor *tensor) {
    struct rfx_map_preview shape = shape_of(tensor);
    return cells_of(&shape) * (sizeof *shape.sum + sizeof *shape.count);
}

enum rfx_status rfx_map_preview_create(struct rfx_memory *mem, const struct rfx_tensor *tensor,
                                       struct rfx_map_preview *preview, struct rfx_error *err) {
    *preview = shape_of(tensor);
    preview->mem = mem;
    preview->sum = rfx_memory_calloc(mem, cells_of(preview), sizeof *preview->sum);
    preview->count = rfx_memory_calloc(mem, cells_of(preview), sizeof *preview->count);
    if (preview->sum != NULL && preview->count != NULL) return RFX_OK;
    rfx_map_preview_free(preview);
    return rfx_memory_fail(mem, "preview of an output", rfx_map_preview_bytes(tensor), err);
}

void rfx_map_preview_free(struct rfx_map_preview *preview) {
    if (preview->mem == NULL) return;
    rfx_memory_release(preview->mem, preview->sum);
    rfx_memory_release(preview->mem, preview->count);
    *preview = (struct rfx_map_preview){0};
}

static size_t cell_at(const struct rfx_map_preview *p, int64_t c, int64_t row, int64_t col) {
    return (size_t)((c * p->rows + row) * p->cols + col);
}

static void add_value(struct rfx_map_preview *p, size_t cell, float value) {
    if (!isfinite(value)) return;
    p->sum[cell] += (double)value;
    ++p->count[cell];
}

void rfx_map_preview_add(struct rfx_map_preview *p, struct rfx_rect rect,
                         const struct rfx_view *view) {
    for (int64_t y = rect.y0; y < rect.y1; ++y) {
        int64_t row = y * p->rows / p->h;
        for (int64_t x = rect.x0; x < rect.x1; ++x) {
            const float *pixel = rfx_view_f32_at(view, y, x);
            int64_t col = x * p->cols / p->w;
            for (int64_t c = 0; c < p->channels; ++c)
                add_value(p, cell_at(p, c, row, col), pixel[c]);
        }
    }
}

double rfx_map_preview_mean(const struct rfx_map_preview *p, int64_t channel, int64_t row,
                            int64_t col) {
    size_t cell = cell_at(p, channel, row, col);
    return p->count[cell] > 0 ? p->sum[cell] / p->count[cell] : NAN;
}
