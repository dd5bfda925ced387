/* Conversion of MaxUnpool: values against its definition, equal ones in a window among them, and
 * what is refused. */
#include <math.h>
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
            if (got[i] != wanted[i] ||
                (got[i] == 0.0f && signbit(got[i]))) /* zeros are 0, not -0 */
                fail_msg("%lldx%lld by %lld: [%lld] is %g, not %g", (long long)h, (long long)w,
                         (long long)k, (long long)i, (double)got[i], (double)wanted[i]);
        }
        free(got);
        onnx_net_discard(net);
    }
}

/* Values of windows with a NaN, which is their largest, go to the first place: NaN is not lost. */
static void nan_stays(void **state) {
    (void)state;
    float x[C * 16];
    for (int i = 0; i < C * 16; i++) x[i] = (float)i;
    x[1] = x[5] = x[26] =
        NAN; /* channel 0, 1st window: right column; channel 1, 4th window: (0, 0) */
    begin(4, 4, 2, 2);
    unpool(4, 4, 2);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    float *got = test_run_output(net, x, 0);
    for (int i = 0; i < C * 16; i++) {
        bool nan = i == 0 || i == 26, corner = i % 2 == 1 && i / 4 % 2 == 1;
        float wanted = corner && i != 5 && i != 31 ? -x[i] : 0.0f;
        if (nan ? !isnan(got[i]) : got[i] != wanted) fail_msg("[%d] is %g", i, (double)got[i]);
    }
    free(got);
    onnx_net_discard(net);
}

/* A MaxPool and a MaxUnpool of all of its attributes. */
struct attributes {
    int64_t size, kernel[2], strides[2], pads[4], dilation, ceil_mode, storage_order;
    const char *why;
};

static void other_windows(void **state) {
    (void)state;
    static const struct attributes cases[] = {
        {8, {3, 3}, {2, 2}, {0}, 1, 0, 0, "MaxPool 'p' is 3x3, stride 2x2: only windows side by"},
        {8, {2, 2}, {3, 3}, {0}, 1, 0, 0, "MaxPool 'p' is 2x2, stride 3x3: only windows side by"},
        {8, {2, 2}, {2, 3}, {0}, 1, 0, 0, "MaxPool 'p' is 2x2, stride 2x3: only windows side by"},
        {8, {2, 4}, {2, 4}, {0}, 1, 0, 0, "MaxPool 'p' is 2x4, stride 2x4: only windows side by"},
        {10, {5, 5}, {5, 5}, {0}, 1, 0, 0, "MaxPool 'p' is 5x5, stride 5x5: only windows side by"},
        {8, {2, 2}, {2, 2}, {1, 1, 0, 0}, 1, 0, 0, "MaxPool 'p' is 2x2, stride 2x2: only windows"},
        {8, {2, 2}, {2, 2}, {0}, 2, 0, 0, "MaxPool 'p' is 2x2, stride 2x2: only windows"},
        {9, {2, 2}, {2, 2}, {0}, 1, 1, 0, "MaxPool 'p' is 2x2, stride 2x2: only windows"},
        {8, {2, 2}, {2, 2}, {0}, 1, 0, 1, "MaxPool 'p' has storage_order = 1: its indices count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct attributes *a = &cases[i];
        const int64_t image[] = {1, C, a->size, a->size}, dilations[] = {a->dilation, a->dilation};
        graph.size = 0;
        maker_value(&graph, MAKER_INPUT, "x", image, 4);
        maker_node(&node, "MaxPool", "x", "p i");
        maker_attr_ints(&node, "kernel_shape", a->kernel, 2);
        maker_attr_ints(&node, "strides", a->strides, 2);
        maker_attr_ints(&node, "pads", a->pads, 4);
        maker_attr_ints(&node, "dilations", dilations, 2);
        maker_attr_int(&node, "ceil_mode", a->ceil_mode);
        maker_attr_int(&node, "storage_order", a->storage_order);
        add();
        maker_ints(&graph, "shape", image, 4);
        maker_node(&node, "MaxUnpool", "p i shape", "y");
        maker_attr_ints(&node, "kernel_shape", a->kernel, 2);
        maker_attr_ints(&node, "strides", a->strides, 2);
        add();
        onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, a->why);
    }
}

/* What a MaxUnpool says of the size of its output: nothing else than what the MaxPool had. */
static void other_sizes(void **state) {
    (void)state;
    enum { OK = RFX_OK, NO = RFX_STATUS_UNSUPPORTED, BAD = RFX_STATUS_MALFORMED };
    static const struct {
        int64_t kernel[2], strides[2], pads[4], shape[5], rank;
        int status;
        const char *why;
    } cases[] = {
        {{4, 2}, {2, 2}, {1, 0, 1, 0}, {0}, 0, OK, NULL},
        {{2, 4}, {2, 2}, {0, 2, 0, 0}, {0}, 0, OK, NULL},
        {{4, 2}, {2, 2}, {0}, {0}, 0, NO, "10x8 pixels, but the indices count over the 8x8 of"},
        {{2, 2},
         {2, 2},
         {0},
         {1, C, 9, 8},
         4,
         NO,
         "9x8 pixels, but the indices count over the 8x8"},
        {{2, 2},
         {2, 2},
         {0},
         {1, C, 8, 7},
         4,
         NO,
         "8x7 pixels, but the indices count over the 8x8"},
        {{2, 2}, {2, 2}, {0}, {1, C, 8}, 3, BAD, "an output shape of rank 3, not 4"},
        {{2, 2}, {2, 2}, {0}, {1, C, 8, 8, 1}, 5, BAD, "an output shape of rank 5, not 4"},
        {{2, -2}, {2, 2}, {0}, {0}, 0, BAD, "kernel, stride or pad of -2 is not in 0 to 16777216"},
        {{2, 2},
         {INT64_MAX, 2},
         {0},
         {0},
         0,
         BAD,
         "a kernel, stride or pad of 9223372036854775807 is not in 0 to 16777216"},
        {{2, 2}, {2, 2}, {0, 0, 0, -1}, {0}, 0, BAD, "pad of -1 is not in 0 to 16777216"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(8, 8, 2, 2);
        if (cases[i].rank > 0) maker_ints(&graph, "shape", cases[i].shape, (int)cases[i].rank);
        maker_node(&node, "MaxUnpool", cases[i].rank > 0 ? "p i shape" : "p i", "y");
        maker_attr_ints(&node, "kernel_shape", cases[i].kernel, 2);
        maker_attr_ints(&node, "strides", cases[i].strides, 2);
        maker_attr_ints(&node, "pads", cases[i].pads, 4);
        add();
        if (cases[i].status == OK)
            onnx_net_discard(onnx_net_loaded(&graph, 17));
        else
            onnx_net_refused(&graph, 17, (enum rfx_status)cases[i].status, cases[i].why);
    }
}

static void other_operands(void **state) {
    (void)state;
    static const struct {
        const char *op, *in, *why;
        enum rfx_status status;
    } cases[] = {
        {"MaxUnpool", "x i", "3x8x8 values for 3x4x4 indices", RFX_STATUS_MALFORMED},
        {"MaxUnpool", "p k", "indices that are no MaxPool's", RFX_STATUS_UNSUPPORTED},
    };
    static const int64_t kernel[] = {2, 2}, indices[] = {1, 2};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        begin(8, 8, 2, 2);
        maker_ints(&graph, "k", indices, 2);
        maker_node(&node, cases[n].op, cases[n].in, "y");
        if (cases[n].op[0] == 'M') maker_attr_ints(&node, "kernel_shape", kernel, 2);
        if (cases[n].op[0] == 'M') maker_attr_ints(&node, "strides", kernel, 2);
        add();
        onnx_net_refused(&graph, 17, cases[n].status, cases[n].why);
    }
}

static void numbers_that_are_refused(void **state) {
    (void)state;
    static const int64_t kernel[] = {2, 2};
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
                     "MaxPool 'p' (opset 17): its indices 'y' are supported for images");
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
        cmocka_unit_test(nan_stays),
        cmocka_unit_test(other_windows),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(other_operands),
        cmocka_unit_test(indices_are_numbers),
        cmocka_unit_test(numbers_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
