#include "tests/support/oracle/rounding.h"

#include <math.h>

#include "tests/support/oracle/reference.h"
#include "tests/support/test_util.h"

#define HALF_UNIT 0x1p-24

double test_largest(const float *values, int64_t n) {
    double most = 1e-3;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i])) most = fmax(most, fabs((double)values[i]));
    return most;
}

static double mean_square(const float *values, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i])) sum += (double)values[i] * (double)values[i];
    return sum / (double)n;
}

struct test_rounding test_rounding(const struct rfx_graph *graph, const struct rfx_node *node,
                                   float *const *in, int64_t channel) {
    struct test_rounding none = {0, 0};
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (node->op != RFX_OP_CONV && node->op != RFX_OP_CONV_TRANSPOSE) return none;
    const struct rfx_weight *w = &graph->weights[a->weight];
    const struct rfx_tensor *input = &graph->nodes[node->in[0]].out;
    bool transposed = node->op == RFX_OP_CONV_TRANSPOSE;
    int64_t taps = a->kh * a->kw, icg = a->ic / a->groups, ocg = a->oc / a->groups;
    double magnitudes = 0, squares = 0, scale = 1, bias = 0, residual = 0;
    for (int64_t i = 0; i < icg * taps; i++) {
        int64_t at = channel * icg * taps + i;
        int64_t ic = channel / ocg * icg + i / taps;
        if (transposed) at = (ic * ocg + channel % ocg) * taps + i % taps;
        float v;
        test_read_weight(w, at, 1, &v);
        magnitudes += fabs((double)v);
        squares += (double)v * (double)v;
    }
    if (a->scale >= 0) scale = fabs(rfx_ref_weight(graph, a->scale, channel, 1));
    if (a->bias >= 0) bias = fabs(rfx_ref_weight(graph, a->bias, channel, 0));
    if (node->residual) residual = test_largest(in[1], node->out.elems);
    double n = (double)(icg * taps + 3);
    double most = test_largest(in[0], input->elems) * magnitudes * scale + bias + residual;
    double root = scale * sqrt(squares * mean_square(in[0], input->elems)) + bias + residual;
    return (struct test_rounding){n * HALF_UNIT * most, 6 * HALF_UNIT * sqrt(n / 6) * root};
}
