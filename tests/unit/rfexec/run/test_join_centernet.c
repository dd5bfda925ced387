/* CenterNets are recognised by names and shapes of their outputs, and by the sigmoid before the
 * scores. Their joined output streams, with the largest scores around each cell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rfexec/output/head_file.h"
#include "tests/support/makers/head_maker.h"
#include "tests/support/makers/onnx_net.h"

#define PATH "join_centernet.onnx"

static struct rfx_load_options options_of(bool only) {
    return (struct rfx_load_options){.h = 63, .w = 97, .join_heads = true, .head_only = only};
}

static struct rfx_graph *loaded(bool only) {
    const struct rfx_load_options options = options_of(only);
    return onnx_net_of_file(PATH, &options);
}

static void discard(struct rfx_graph *net) {
    onnx_net_discard(net);
    (void)unlink(PATH);
}

static void maps_are_joined_and_stream(void **state) {
    static struct maker graph;
    (void)state;
    maker_centernet(&graph, "hm", true);
    for (int only = 0; only < 2; only++) {
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = loaded(only == 1);
        const struct rfx_output *joined = &net->outputs[net->n_outputs - 1];
        const struct rfx_node *join = &net->nodes[joined->node];
        assert_int_equal(net->n_outputs, only ? 1 : 4);
        assert_string_equal(joined->name, "detections");
        assert_string_equal(joined->stored.head, "centernet");
        assert_ptr_equal(joined->stored.detector, net->detector);
        assert_int_equal(join->op, RFX_OP_JOIN_MAPS);
        assert_int_equal(join->out.shape.dims[1], 16 * 25);
        assert_int_equal(join->out.shape.dims[2], 3 + 2 + 2 + 3);
        assert_int_equal(net->detector->channels, 10);
        assert_int_equal(net->detector->peaks, 7);
        discard(net);
    }
}

/* Names of other programs, and the scores behind other nodes than a sigmoid. */
static void names_and_sigmoids(void **state) {
    static const struct {
        const char *hm;
        bool active;
        const char *nodes[3][3]; /* operator, inputs, output */
        bool found;
        enum rfx_detector_activation activation;
    } cases[] = {
        {"hm", true, {{NULL}}, true, RFX_DETECTOR_NONE},
        {"hm", false, {{NULL}}, true, RFX_DETECTOR_SIGMOID},
        {"heatmap", true, {{NULL}}, true, RFX_DETECTOR_NONE},
        {"center_heatmap_pred", false, {{NULL}}, true, RFX_DETECTOR_SIGMOID},
        {"heat2", true, {{NULL}}, false, RFX_DETECTOR_NONE},
        {"near", true, {{"Relu", "near", "hm"}}, true, RFX_DETECTOR_NONE},
        {"near", false, {{"Relu", "near", "hm"}}, true, RFX_DETECTOR_SIGMOID},
        /* the network finds peaks by itself */
        {"near", true, {{"Mul", "near raw", "hm"}}, true, RFX_DETECTOR_NONE},
        {"near", true, {{"Conv", "near one", "hm"}}, true, RFX_DETECTOR_SIGMOID},
    };
    static struct maker graph;
    const float ones[3] = {1, 1, 1};
    const int64_t dims[4] = {1, 3, 1, 1};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        maker_centernet(&graph, cases[i].hm, cases[i].active);
        maker_floats(&graph, "one", dims, 4, ones);
        for (int k = 0; k < 3 && cases[i].nodes[k][0] != NULL; k++) {
            maker_add(&graph, cases[i].nodes[k][0], cases[i].nodes[k][1], cases[i].nodes[k][2]);
            maker_value(&graph, MAKER_OUTPUT, cases[i].nodes[k][2], NULL, 0);
        }
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = loaded(true);
        if ((net->detector != NULL) != cases[i].found) fail_msg("case %zu", i);
        if (net->detector != NULL && net->detector->activation != cases[i].activation)
            fail_msg("case %zu: activation %d", i, (int)net->detector->activation);
        discard(net);
    }
}

/* Makes hm, wh and reg of these channels and strides. */
static void make_maps(struct maker *graph, int sides, int stride, enum maker_order order) {
    maker_begin_cells(graph);
    maker_cells(graph, "hm", 4, 1, 3, MAKER_MAP);
    maker_cells(graph, "wh", stride, 1, sides, MAKER_MAP);
    maker_cells(graph, "reg", 4, 1, 2, order);
    maker_value(graph, MAKER_OUTPUT, "hm", NULL, 0);
    maker_value(graph, MAKER_OUTPUT, "wh", NULL, 0);
    maker_value(graph, MAKER_OUTPUT, "reg", NULL, 0);
}

static void other_shapes_stay(void **state) {
    static const struct {
        int sides, stride;
        enum maker_order order;
        bool found;
    } cases[] = {{2, 4, MAKER_MAP, true},
                 {4, 4, MAKER_MAP, false},
                 {2, 8, MAKER_MAP, false},
                 {2, 4, MAKER_FIVE, false}};
    static struct maker graph;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rfx_load_options options = {.h = 64, .w = 96, .join_heads = true};
        make_maps(&graph, cases[i].sides, cases[i].stride, cases[i].order);
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = onnx_net_of_file(PATH, &options);
        assert_int_equal(net->n_outputs, cases[i].found ? 4 : 3);
        discard(net);
    }
}

/* Scores whose rows and columns are no map's cannot be pooled. */
static void peaks_need_a_map(void **state) {
    static const char head[] =
        "{\"outputs\": [{\"names\": [\"turned\"], \"axes\": \"y x v\", \"values\": [\"scores\"]}, "
        "{\"names\": [\"wh\"], \"axes\": \"v y x\", \"values\": [\"sides\"]}, {\"names\": "
        "[\"reg\"], \"axes\": \"v y x\", \"values\": [\"centre\"]}], \"decode\": \"centernet\"}";
    static struct maker graph;
    const int64_t perm[4] = {0, 3, 1, 2};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = options_of(true);
    struct rfx_detector detector;
    (void)state;
    assert_int_equal(rfx_head_file_parse(mem, head, sizeof head - 1, "head.json", &detector, NULL),
                     RFX_OK);
    rfx_memory_free(mem);
    options.detector = &detector;
    maker_centernet(&graph, "hm", true);
    maker_add_ints(&graph, "Transpose", "hm", "turned", "perm", perm, 4);
    maker_value(&graph, MAKER_OUTPUT, "turned", NULL, 0);
    maker_save_heads(&graph, PATH);
    onnx_net_file_refused(PATH, &options, RFX_STATUS_INVALID_ARGUMENT,
                          "outputs[0], axes \"y x v\", has the shape 1x25x3x16: peaks");
    (void)unlink(PATH);
}

static void allocations_may_fail(void **state) {
    static struct maker graph;
    (void)state;
    maker_centernet(&graph, "hm", false);
    maker_save_heads(&graph, PATH);
    for (int only = 0; only < 2; only++) {
        const struct rfx_load_options options = options_of(only == 1);
        onnx_net_file_runs_out(PATH, &options);
    }
    (void)unlink(PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_joined_and_stream), cmocka_unit_test(names_and_sigmoids),
        cmocka_unit_test(other_shapes_stay),          cmocka_unit_test(peaks_need_a_map),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests_name("join centernet", tests, NULL, NULL);
}
