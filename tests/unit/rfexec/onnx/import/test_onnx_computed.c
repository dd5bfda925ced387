/* Constants that operators compute when a model is loaded: their values, where they are kept, and
 * what is refused. Values of whole networks: tests/oracle/constant_models.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

static struct maker graph, node;

static void begin(void) {
    static const int64_t image[] = {1, 3, 4, 5};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
}

static const float *filters(void) {
    static float values[4 * 3 * 3 * 3];
    struct test_rng rng = test_rng_make(1);
    test_rng_fill(&rng, values, 108, -1.0f, 1.0f);
    return values;
}

/* Filters by their lengths (weight normalisation) are filters: the network is one convolution. */
static void weight_norm(void **state) {
    (void)state;
    static const int64_t shape[] = {4, 3, 3, 3}, axes[] = {1, 2, 3};
    const float *v = filters();
    float got[108];
    begin();
    maker_floats(&graph, "v", shape, 4, v);
    maker_add_ints(&graph, "ReduceL2", "v", "length", "axes", axes, 3);
    maker_add(&graph, "Div", "v length", "w");
    maker_add(&graph, "Conv", "image w", "y");
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    assert_int_equal(net->n_nodes, 2);
    assert_int_equal(net->nodes[1].op, RFX_OP_CONV);
    const struct rfx_weight *w = &net->weights[net->nodes[1].attr.conv.weight];
    assert_int_equal(w->source, RFX_WEIGHT_OWNED);
    test_read_weight(w, 0, 108, got);
    for (int oc = 0; oc < 4; oc++) {
        double sum = 0.0;
        for (int i = 0; i < 27; i++) sum += (double)v[oc * 27 + i] * (double)v[oc * 27 + i];
        for (int i = 0; i < 27; i++)
            assert_true(fabs((double)v[oc * 27 + i] / sqrt(sum) - (double)got[oc * 27 + i]) < 1e-7);
    }
    onnx_net_discard(net);
}

/* Weights that nobody asks for are not computed, and what lies between is not kept. */
static void only_what_is_needed(void **state) {
    (void)state;
    static const int64_t shape[] = {4, 3, 3, 3};
    int64_t owned = 0;
    begin();
    maker_floats(&graph, "v", shape, 4, filters());
    maker_add(&graph, "Tanh", "v", "a");
    maker_add(&graph, "Exp", "a", "b");
    maker_add(&graph, "Sigmoid", "b", "w");
    maker_add(&graph, "Softplus", "a", "nobody");
    maker_add(&graph, "Conv", "image w", "y");
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    for (int i = 0; i < net->n_weights; i++)
        if (net->weights[i].source == RFX_WEIGHT_OWNED) owned += net->weights[i].elems;
    assert_int_equal(owned, 108);
    onnx_net_discard(net);
}

/* A pattern that fills a large map is made by parts, as the image's maps are. */
static void larger_than_what_it_is_made_of(void **state) {
    (void)state;
    static const int64_t image[] = {1, 1, 512, 512}, shape[] = {1, 1, 4, 4},
                         times[] = {1, 1, 128, 128};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "v", shape, 4, filters());
    maker_ints(&graph, "times", times, 4);
    maker_add(&graph, "Tile", "v times", "t");
    maker_add(&graph, "Add", "image t", "y");
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    for (int i = 0; i < net->n_weights; i++) assert_true(net->weights[i].elems <= 16);
    float *picture = test_floats(262144);
    for (int64_t i = 0; i < 262144; i++) picture[i] = (float)(i % 1000);
    float *got = test_run_output(net, picture, 0);
    for (int64_t i = 0; i < 262144; i++) {
        float want = picture[i] + filters()[i / 512 % 4 * 4 + i % 4];
        assert_memory_equal(&got[i], &want, sizeof want);
    }
    free(got);
    free(picture);
    onnx_net_discard(net);
}

/* Places of maxima are integers: they pick channels. */
static void integers(void **state) {
    (void)state;
    static const int64_t shape[] = {2, 3};
    static const float values[] = {0, 1, 5, 7, 2, 3};
    begin();
    maker_floats(&graph, "v", shape, 2, values);
    maker_node(&node, "ArgMax", "v", "at");
    maker_attr_int(&node, "axis", 1);
    maker_attr_int(&node, "keepdims", 0);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add_int(&graph, "Gather", "image at", "y", "axis", 1);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    assert_int_equal(net->nodes[1].op, RFX_OP_CHANNEL_SELECT);
    assert_int_equal(net->nodes[1].attr.select.count, 2);
    assert_int_equal(net->nodes[1].attr.select.map[0], 2);
    assert_int_equal(net->nodes[1].attr.select.map[1], 0);
    onnx_net_discard(net);
}

/* float32 does not hold all integers. */
static void large_integers(void **state) {
    (void)state;
    static const int64_t large = ((int64_t)1 << 24) + 1, times = 3;
    begin();
    maker_ints(&graph, "v", &large, 1);
    maker_ints(&graph, "times", &times, 1);
    maker_add(&graph, "Tile", "v times", "t");
    maker_add(&graph, "Cast", "t", "f");
    maker_add(&graph, "Reshape", "image t", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "16777217, beyond 16777216");
}

/* Outputs that are constants, of the shapes that they have in the file. */
static void outputs(void **state) {
    (void)state;
    static const int64_t shape[] = {2, 2}, row[] = {2, 1};
    static const float a[] = {1, 2, 3, 4}, b[] = {5, 6};
    static const float picture[60];
    begin();
    maker_floats(&graph, "a", shape, 2, a);
    maker_floats(&graph, "b", row, 2, b);
    maker_add(&graph, "MatMul", "a b", "y");
    maker_add(&graph, "Relu", "image", "other");
    maker_value(&graph, MAKER_OUTPUT, "other", NULL, 0);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    float *got = test_run_output(net, picture, 1);
    assert_true(got[0] == 17.0f && got[1] == 39.0f);
    free(got);
    onnx_net_discard(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weight_norm),
        cmocka_unit_test(only_what_is_needed),
        cmocka_unit_test(larger_than_what_it_is_made_of),
        cmocka_unit_test(integers),
        cmocka_unit_test(large_integers),
        cmocka_unit_test(outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
