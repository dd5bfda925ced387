/* The phases of transposed convolutions and the offsets of their packed weights: see
 * conv_transpose.h. */
#include "layers/conv/conv_transpose.h"
#include "layers/core/checked.h"

static struct rfx_transpose_axis axis_of(int64_t k, int64_t s, int64_t d, int64_t pad, int64_t in) {
    int64_t common = rfx_gcd_i64(s, d);
    return (struct rfx_transpose_axis){k, s, d, pad, in, s / common, d / common};
}

struct rfx_transpose_axis rfx_transpose_rows(const struct rfx_conv_attr *a, int64_t in_h) {
    return axis_of(a->kh, a->sh, a->dh, a->pads.top, in_h);
}

struct rfx_transpose_axis rfx_transpose_cols(const struct rfx_conv_attr *a, int64_t in_w) {
    return axis_of(a->kw, a->sw, a->dw, a->pads.left, in_w);
}

/* Returns the number of taps of the phase whose first tap is `first`. */
static int64_t taps_from(const struct rfx_transpose_axis *x, int64_t first) {
    return first < x->k ? (x->k - 1 - first) / x->every + 1 : 0;
}

/* Each of the first `every` taps is the first tap of a different phase. */
struct rfx_transpose_taps rfx_transpose_phase(const struct rfx_transpose_axis *x, int64_t phase) {
    struct rfx_transpose_taps taps = {0};
    for (int64_t first = 0; first < rfx_min_i64(x->every, x->k); first++) {
        int64_t own = first * x->d % x->s;
        if (own < phase) taps.before += taps_from(x, first);
        if (own != phase) continue;
        taps.first = first;
        taps.count = taps_from(x, first);
    }
    return taps;
}

int64_t rfx_transpose_most_taps(const struct rfx_transpose_axis *x) {
    return taps_from(x, 0);
}

struct rfx_transpose_outputs rfx_transpose_outputs(const struct rfx_transpose_axis *x, int64_t lo,
                                                   int64_t hi, int64_t phase) {
    struct rfx_transpose_outputs r = {.taps = rfx_transpose_phase(x, phase)};
    int64_t at = (lo + x->pad) % x->s;
    r.o = lo + (phase - at + x->s) % x->s;
    r.count = r.o < hi ? (hi - 1 - r.o) / x->s + 1 : 0;
    r.input = rfx_floor_div(r.o + x->pad - r.taps.first * x->d, x->s);
    return r;
}

struct rfx_range rfx_transpose_inside(const struct rfx_transpose_axis *x,
                                      const struct rfx_transpose_outputs *outputs, int64_t q) {
    int64_t input = outputs->input + q;
    struct rfx_range r = {rfx_max_i64(0, rfx_ceil_div(input - (x->in - 1), x->step)),
                          rfx_min_i64(outputs->taps.count, rfx_floor_div(input, x->step) + 1)};
    if (r.hi < r.lo) r.lo = r.hi = 0;
    return r;
}

static int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

int64_t rfx_transpose_packed_elems(const struct rfx_conv_attr *a,
                                   const struct rfx_transpose_layout *l) {
    return l->groups * round_up(l->ocg, l->fill) * l->icg * a->kh * a->kw;
}

int64_t rfx_transpose_part_at(const struct rfx_conv_attr *a, const struct rfx_transpose_layout *l,
                              int64_t g, int64_t o, int64_t *width) {
    int64_t left = l->ocg - o;
    *width = left >= l->part ? l->part : round_up(left, l->fill);
    return (g * round_up(l->ocg, l->fill) + o) * l->icg * a->kh * a->kw;
}

int64_t rfx_transpose_taps_before(const struct rfx_conv_attr *a,
                                  const struct rfx_transpose_taps *rows,
                                  const struct rfx_transpose_taps *cols) {
    return rows->before * a->kw + rows->count * cols->before;
}

int64_t rfx_transpose_weights_at(const struct rfx_conv_attr *a,
                                 const struct rfx_transpose_layout *l, int64_t g, int64_t o,
                                 const struct rfx_transpose_taps *rows,
                                 const struct rfx_transpose_taps *cols, int64_t *width) {
    int64_t at = rfx_transpose_part_at(a, l, g, o, width);
    return at + rfx_transpose_taps_before(a, rows, cols) * l->icg * *width;
}
