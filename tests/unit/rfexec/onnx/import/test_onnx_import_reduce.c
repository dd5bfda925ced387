/* Conversion of reductions over space: values against their definition, and refusals. */
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

enum { C = 3, H = 4, W = 5 };

static struct maker graph, node;

static void global_lp_pool(int64_t p) {
    static const int64_t image[] = {1, C, H, W};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_node(&node, "GlobalLpPool", "x", "y");
    if (p != 2) maker_attr_int(&node, "p", p); /* 2 is what is meant without it */
    maker_message(&graph, MAKER_NODE, &node);
}

/* No node is whole: the map is taken in by rows. */
static void roots_of_sums_of_powers(void **state) {
    (void)state;
    float x[C * H * W];
    struct test_rng rng = test_rng_make(5);
    test_rng_fill(&rng, x, C * H * W, -2.0f, 2.0f);
    for (int64_t p = 1; p <= 5; p++) {
        global_lp_pool(p);
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        for (int i = 0; i < net->n_nodes; i++)
            assert_true(rfx_node_is_local(&net->nodes[i]) ||
                        rfx_op_def(net->nodes[i].op)->reduction != NULL);
        float *y = test_run_output(net, x, 0);
        for (int c = 0; c < C; c++) {
            double sum = 0.0;
            for (int i = 0; i < H * W; i++) sum += pow(fabs((double)x[c * H * W + i]), (double)p);
            assert_true(fabs((double)y[c] - pow(sum, 1.0 / (double)p)) < 1e-5);
        }
        free(y);
        onnx_net_discard(net);
    }
}

static void no_power(void **state) {
    (void)state;
    global_lp_pool(0);
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "p = 0: only 1 to 64 are supported");
    global_lp_pool(65);
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "p = 65: only 1 to 64 are supported");
    graph.size = 0; /* of opset 1, whose p is a float */
    maker_value(&graph, MAKER_INPUT, "x", (int64_t[]){1, C, H, W}, 4);
    maker_node(&node, "GlobalLpPool", "x", "y");
    maker_attr_float(&node, "p", 2.5f);
    maker_message(&graph, MAKER_NODE, &node);
    onnx_net_refused(&graph, 1, RFX_STATUS_UNSUPPORTED, "p = 2.5: only whole numbers from 1 to 64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_of_sums_of_powers),
        cmocka_unit_test(no_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
