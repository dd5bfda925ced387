/* The naive evaluator: attention in windows, in double, in the cyclic form of the papers: the map
 * is rolled, cut into windows that wrap, and pixels that are no neighbours are masked. The operator
 * cuts windows off instead. What is masked is out of the question here: the papers' 100 is as good
 * for scores as networks have them, but random ones may be larger. */
#include <math.h>

#include "tests/support/oracle/reference_call.h"

/* Position of the rolled map -> region of the map, as the mask of the papers numbers them. */
static int64_t region(int64_t at, int64_t extent, int64_t size, int64_t shift) {
    if (at < extent - size) return 0;
    return at < extent - shift ? 1 : 2;
}

struct axis {
    int64_t extent, size, shift;
};

/* Where position `place` of the window that holds `at` lies on the map; *same: no mask between. */
static int64_t other(const struct axis *a, int64_t at, int64_t place, bool *same) {
    int64_t rolled = (at - a->shift + a->extent) % a->extent;
    int64_t it = rolled / a->size * a->size + place;
    *same = a->shift == 0 || region(it, a->extent, a->size, a->shift) ==
                                 region(rolled, a->extent, a->size, a->shift);
    return (it + a->shift) % a->extent;
}

static int64_t place_of(const struct axis *a, int64_t at) {
    return (at - a->shift + a->extent) % a->extent % a->size;
}

static double bias_of(const struct rfx_ref_call *k, int64_t head, int64_t qy, int64_t qx,
                      int64_t ky, int64_t kx) {
    const struct rfx_window_attention_attr *a = &k->node->attr.window_attention;
    int64_t n = a->h * a->w, at = (head * n + qy * a->w + qx) * n + ky * a->w + kx;
    if (a->by_table)
        at = ((qy - ky + a->h - 1) * (2 * a->w - 1) + qx - kx + a->w - 1) * a->heads + head;
    float value = 0.0f;
    if (a->bias >= 0 && rfx_weight_read(&k->g->weights[a->bias], at, 1, &value, NULL) != RFX_OK)
        return (double)NAN;
    return (double)value;
}

int64_t rfx_ref_window_values(const struct rfx_ref_call *k) {
    const struct rfx_window_attention_attr *a = &k->node->attr.window_attention;
    return a->value_size > 0 ? a->heads * a->value_size : k->it->c / 3;
}

/* The nearest value that a byte stands for. */
static double rounded(const struct rfx_rounding *r, double value) {
    if (r->scale == 0.0f) return value;
    double lo = r->to == RFX_TYPE_INT8 ? -128 : 0, zero = r->zero_point, scale = (double)r->scale;
    double whole = fmin(fmax(nearbyint(value / scale) + zero, lo), lo + 255);
    return (whole - zero) * scale;
}

double rfx_ref_window_attention_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_window_attention_attr *a = &k->node->attr.window_attention;
    const struct axis rows = {k->it->h, a->h, a->shift_h}, cols = {k->it->w, a->w, a->shift_w};
    int64_t values = rfx_ref_window_values(k);
    int64_t keys = (k->it->c - values) / 2, size = keys / a->heads, head = c / (values / a->heads);
    double top = 0, bottom = 0, most = -INFINITY;
    for (int pass = 0; pass < 3; pass++) /* the largest score, the sum of weights, of values */
        for (int64_t ky = 0; ky < a->h; ky++)
            for (int64_t kx = 0; kx < a->w; kx++) {
                bool same_row, same_col;
                int64_t iy = other(&rows, y, ky, &same_row), ix = other(&cols, x, kx, &same_col);
                double score = bias_of(k, head, place_of(&rows, y), place_of(&cols, x), ky, kx);
                for (int64_t e = head * size; e < (head + 1) * size; e++)
                    score += (double)rfx_ref_in_at(k, e, y, x) * (double)a->scale *
                             (double)rfx_ref_in_at(k, keys + e, iy, ix);
                score = rounded(&a->round_scores, score);
                if (!same_row || !same_col) score -= 1e9;
                if (pass == 0) most = fmax(most, score);
                double weight = pass == 0 ? 0.0 : exp(score - most);
                if (pass == 1) bottom += weight;
                if (pass == 2)
                    top += rounded(&a->round_weights, weight / bottom) *
                           (double)rfx_ref_in_at(k, 2 * keys + c, iy, ix);
            }
    return top;
}
