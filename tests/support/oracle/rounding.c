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

double test_rounding(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                     int64_t channel) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (node->op != RFX_OP_CONV) return 0;
    const struct rfx_weight *w = &graph->weights[a->weight];
    const struct rfx_tensor *input = &graph->nodes[node->in[0]].out;
    int64_t products = a->ic / a->groups * a->kh * a->kw;
    double magnitudes = 0, scale = 1, bias = 0, residual = 0;
    for (int64_t i = 0; i < products; i++) {
        float v;
        test_read_weight(w, channel * products + i, 1, &v);
        magnitudes += fabs((double)v);
    }
    if (a->scale >= 0) scale = fabs(rfx_ref_weight(graph, a->scale, channel, 1));
    if (a->bias >= 0) bias = fabs(rfx_ref_weight(graph, a->bias, channel, 0));
    if (node->residual) residual = test_largest(in[1], node->out.elems);
    double n = (double)(products + 3);
    double most = test_largest(in[0], input->elems) * magnitudes * scale + bias + residual;
    return n * HALF_UNIT * most;
}
