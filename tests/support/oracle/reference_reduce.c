/* Naive reductions of a list of values, and norms by statistics over channels or space. Two passes
 * over the values where the code under test has one. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/oracle/reference_call.h"

double rfx_ref_reduce(enum rfx_reduce_kind kind, const double *v, int64_t n) {
    double sum = 0, magnitudes = 0, squares = 0, largest = -INFINITY, smallest = INFINITY;
    double product = 1, first_max = -1, last_max = -1, first_min = -1, last_min = -1;
    for (int64_t i = 0; i < n; i++) {
        sum += v[i];
        magnitudes += fabs(v[i]);
        squares += pow(v[i], 2);
        largest = fmax(largest, v[i]);
        smallest = fmin(smallest, v[i]);
        product *= v[i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        if (v[i] == largest) first_max = (double)i;
        if (v[i] == smallest) first_min = (double)i;
        if (v[i] == largest && last_max < 0) last_max = (double)i;
        if (v[i] == smallest && last_min < 0) last_min = (double)i;
    }
    const double of_kind[RFX_REDUCE_COUNT] = {[RFX_REDUCE_MEAN] = sum / (double)n,
                                              [RFX_REDUCE_MAX] = largest,
                                              [RFX_REDUCE_SUM] = sum,
                                              [RFX_REDUCE_MIN] = smallest,
                                              [RFX_REDUCE_L1] = magnitudes,
                                              [RFX_REDUCE_L2] = sqrt(squares),
                                              [RFX_REDUCE_SUM_SQUARE] = squares,
                                              [RFX_REDUCE_PROD] = product,
                                              [RFX_REDUCE_ARG_MAX] = first_max,
                                              [RFX_REDUCE_ARG_MAX_LAST] = last_max,
                                              [RFX_REDUCE_ARG_MIN] = first_min,
                                              [RFX_REDUCE_ARG_MIN_LAST] = last_min};
    return of_kind[kind];
}

enum { MOST_CHANNELS = 512 }; /* of random networks */

static int64_t channels_at(const struct rfx_ref_call *k, int64_t y, int64_t x, double *v) {
    int64_t n = k->it->c;
    if (n > MOST_CHANNELS) abort();
    for (int64_t i = 0; i < n; i++) v[i] = (double)rfx_ref_in_at(k, i, y, x);
    return n;
}

double rfx_ref_channel_reduce_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    double v[MOST_CHANNELS] = {0};
    (void)c;
    return rfx_ref_reduce(k->node->attr.reduce.kind, v, channels_at(k, y, x, v));
}

double rfx_ref_channel_norm_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    double v[MOST_CHANNELS] = {0}, eps = (double)k->node->attr.channel_norm.eps, by = 0;
    int64_t n = channels_at(k, y, x, v);
    double mean = rfx_ref_reduce(RFX_REDUCE_MEAN, v, n), value = v[c];
    switch (k->node->attr.channel_norm.kind) {
        case RFX_NORM_LAYER:
            value -= mean;
            for (int64_t i = 0; i < n; i++) v[i] -= mean;
            by = sqrt(rfx_ref_reduce(RFX_REDUCE_SUM_SQUARE, v, n) / (double)n + eps);
            break;
        case RFX_NORM_RMS:
            by = sqrt(rfx_ref_reduce(RFX_REDUCE_SUM_SQUARE, v, n) / (double)n + eps);
            break;
        case RFX_NORM_L1:
            by = rfx_ref_reduce(RFX_REDUCE_L1, v, n);
            break;
        case RFX_NORM_L2:
            by = rfx_ref_reduce(RFX_REDUCE_L2, v, n);
            break;
        case RFX_NORM_COUNT:
            return NAN;
    }
    value = by == 0 ? 0 : value / by;
    value = value * rfx_ref_weight(k->g, k->node->attr.channel_norm.scale, c, 1) +
            rfx_ref_weight(k->g, k->node->attr.channel_norm.shift, c, 0);
    return rfx_ref_act(k->g, &k->node->act, value, c);
}

/* Mean of the group of channel c, or of squared distances from `centre`. */
static double group_mean(const struct rfx_ref_call *k, int64_t c, bool squares, double centre) {
    int64_t per_group = k->it->c / k->node->attr.moments.groups, first = c / per_group * per_group;
    int64_t pixels = k->it->h * k->it->w;
    const float *v = k->in[0] + first * pixels;
    double sum = 0;
    for (int64_t i = 0; i < per_group * pixels; i++)
        sum += squares ? pow((double)v[i] - centre, 2) : (double)v[i];
    return sum / (double)(per_group * pixels);
}

double rfx_ref_moments_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    int64_t channel = c % k->it->c;
    double mean = group_mean(k, channel, false, 0);
    (void)y;
    (void)x;
    if (c < k->it->c) return mean;
    double variance = group_mean(k, channel, true, mean);
    return 1 / sqrt(variance + (double)k->node->attr.moments.eps);
}

double rfx_ref_normalise_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    double mean = (double)k->in[1][c], inverse = (double)k->in[1][k->it->c + c];
    double v = ((double)rfx_ref_in_at(k, c, y, x) - mean) * inverse *
                   rfx_ref_weight(k->g, k->node->attr.affine.scale, c, 1) +
               rfx_ref_weight(k->g, k->node->attr.affine.shift, c, 0);
    return rfx_ref_act(k->g, &k->node->act, v, c);
}
