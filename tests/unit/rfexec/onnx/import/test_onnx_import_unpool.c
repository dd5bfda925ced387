/* Conversion of MaxUnpool: values against its definition, equal ones in a window among them, and
 * what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { C = 3, MOST = 3 * 13 * 13 };

static struct maker graph, node;

static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

/* p, i: the map and indices of a MaxPool of k x k and that stride. */
static void begin(int64_t h, int64_t w, int64_t k, int64_t stride) {
    const int64_t image[] = {1, C, h, w}, kernel[] = {k, k}, strides[] = {stride, stride};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_node(&node, "MaxPool", "x", "p i");
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    maker_attr_ints(&node, "strides", strides, 2);
    add();
}

/* y: the negative of p unpooled to h x w, by its attributes alone where the windows fill that. */
static void unpool(int64_t h, int64_t w, int64_t k) {
    const int64_t shape[] = {1, C, h, w}, kernel[] = {k, k};
    maker_node(&node, "Neg", "p", "n");
    add();
    maker_ints(&graph, "shape", shape, 4);
    maker_node(&node, "MaxUnpool", h % k == 0 && w % k == 0 ? "n i" : "n i shape", "y");
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    maker_attr_ints(&node, "strides", kernel, 2);
    add();
}

static void naive(const float *x, int64_t h, int64_t w, int64_t k, float *y) {
    for (int64_t i = 0; i < C * h * w; i++) y[i] = 0.0f;
    for (int64_t c = 0; c < C; c++)
        for (int64_t oy = 0; oy < h / k; oy++)
            for (int64_t ox = 0; ox < w / k; ox++) {
                int64_t best = (c * h + oy * k) * w + ox * k; /* the first of equal ones */
                for (int64_t t = 0; t < k * k; t++) {
                    int64_t at = (c * h + oy * k + t / k) * w + ox * k + t % k;
                    if (x[at] > x[best]) best = at;
                }
                y[best] = -x[best];
            }
}

static void values_go_back(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{8, 6, 2}, {9, 11, 2}, {9, 6, 3}, {13, 10, 4}, {3, 5, 1}};
    static float x[MOST], wanted[MOST];
    struct test_rng rng = test_rng_make(11);
    for (int n = 0; n < 5; n++) {
        int64_t h = sizes[n][0], w = sizes[n][1], k = sizes[n][2];
        for (int64_t i = 0; i < C * h * w; i++) x[i] = (float)test_rng_int(&rng, -1, 3);
        begin(h, w, k, k);
        unpool(h, w, k);
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        for (int i = 0; i < net->n_nodes; i++)
            assert_true(rfx_node_is_local(&net->nodes[i]) || rfx_node_is_constant(&net->nodes[i]));
        naive(x, h, w, k, wanted);
        float *got = test_run_output(net, x, 0);
        for (int64_t i = 0; i < C * h * w; i++) {
            if (got[i] != wanted[i])
                fail_msg("%lldx%lld by %lld: [%lld] is %g, not %g", (long long)h, (long long)w,
                         (long long)k, (long long)i, (double)got[i], (double)wanted[i]);
        }
        free(got);
        onnx_net_discard(net);
    }
}

static void refusals(void **state) {
    (void)state;
    static const int64_t kernel[] = {2, 2}, shape[] = {1, C, 9, 8}, indices[] = {1, 2};
    begin(8, 8, 3, 2);
    unpool(8, 8, 2);
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "MaxPool 'p' is 3x3, stride 2x2: only windows side by side");
    begin(8, 8, 2, 2);
    maker_node(&node, "MaxUnpool", "x i", "y");
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    maker_attr_ints(&node, "strides", kernel, 2);
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, "3x8x8 values for 3x4x4 indices");
    begin(8, 8, 2, 2);
    maker_ints(&graph, "shape", shape, 4);
    maker_node(&node, "MaxUnpool", "p i shape", "y");
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "9x8 pixels, but the indices count over the 8x8 of MaxPool 'p'");
    begin(8, 8, 2, 2);
    maker_ints(&graph, "k", indices, 2);
    maker_node(&node, "MaxUnpool", "p k", "y");
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "indices that are no MaxPool's");
    static const int64_t large[] = {1, C, 2368, 2368}, batch[] = {2, C, 8, 8};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", large, 4);
    maker_node(&node, "MaxPool", "x", "p y");
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "indices of a map of 3x2368x2368 (channels, rows, columns) count 16822272 "
                     "elements; float32, as which they are given out, is exact up to 16777216");
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", batch, 4);
    maker_node(&node, "MaxPool", "x", "p y");
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "MaxPool 'p' (opset 17): its indices 'y' are supported of images");
}

/* Of windows that overlap and reach over the border, as an output and as a tensor to compute with,
 * beside a MaxUnpool of the same ones. */
static void indices_are_numbers(void **state) {
    (void)state;
    enum { H = 7, W = 9, OH = 4, OW = 5 };
    static const int64_t image[] = {1, C, H, W}, kernel[] = {3, 3}, two[] = {2, 2},
                         pads[] = {1, 1, 1, 1};
    float x[C * H * W];
    struct test_rng rng = test_rng_make(12);
    for (int i = 0; i < C * H * W; i++) x[i] = (float)test_rng_int(&rng, -3, 3); /* equal ones */
    for (int order = 0; order < 2; order++)
        for (int direct = 0; direct < 2; direct++) {
            graph.size = 0;
            maker_value(&graph, MAKER_INPUT, "x", image, 4);
            maker_node(&node, "MaxPool", "x", direct ? "p y" : "p i");
            maker_attr_ints(&node, "kernel_shape", kernel, 2);
            maker_attr_ints(&node, "strides", two, 2);
            maker_attr_ints(&node, "pads", pads, 4);
            maker_attr_int(&node, "storage_order", order);
            add();
            if (!direct) {
                maker_node(&node, "Cast", "i", "whole");
                maker_attr_int(&node, "to", 7);
                add();
                maker_node(&node, "Neg", "whole", "y");
                add();
            }
            struct rfx_graph *net = onnx_net_loaded(&graph, 17);
            float *got = test_run_output(net, x, 0);
            for (int i = 0; i < C * OH * OW; i++) {
                int c = i / (OH * OW), top = i / OW % OH * 2 - 1, left = i % OW * 2 - 1, best = -1;
                for (int t = 0; t < 9; t++) {
                    int r = top + t / 3, q = left + t % 3, at = (c * H + r) * W + q;
                    if (r < 0 || q < 0 || r >= H || q >= W) continue;
                    if (best < 0 || x[at] > x[best]) best = at;
                }
                int r = best / W % H, q = best % W;
                float wanted = (float)(order == 0 ? best : (c * W + q) * H + r);
                assert_true(got[i] == (direct ? wanted : -wanted));
            }
            free(got);
            onnx_net_discard(net);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_back),
        cmocka_unit_test(indices_are_numbers),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
