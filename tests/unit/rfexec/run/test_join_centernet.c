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
#include "rfexec/run/model.h"
#include "tests/support/makers/head_maker.h"
#include "tests/support/test_util.h"

#define PATH "join_centernet.onnx"

static enum rfx_status load(struct rfx_memory *mem, const struct rfx_detector *detector, bool only,
                            struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_load_options options = {
        .h = 63, .w = 97, .join_heads = true, .detector = detector, .head_only = only};
    return rfx_onnx_load(mem, PATH, &options, out, err);
}

static struct rfx_graph *loaded(struct rfx_memory *mem, bool only) {
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (load(mem, NULL, only, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    return graph;
}

static void discard(struct rfx_memory *mem, struct rfx_graph *graph) {
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    (void)unlink(PATH);
}

static void maps_are_joined_and_stream(void **state) {
    static struct maker graph;
    (void)state;
    maker_centernet(&graph, "hm", true);
    for (int only = 0; only < 2; only++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = loaded(mem, only == 1);
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
        discard(mem, net);
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
        struct rfx_memory *mem = rfx_memory_create(0);
        maker_centernet(&graph, cases[i].hm, cases[i].active);
        maker_floats(&graph, "one", dims, 4, ones);
        for (int k = 0; k < 3 && cases[i].nodes[k][0] != NULL; k++) {
            maker_add(&graph, cases[i].nodes[k][0], cases[i].nodes[k][1], cases[i].nodes[k][2]);
            maker_value(&graph, MAKER_OUTPUT, cases[i].nodes[k][2], NULL, 0);
        }
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = loaded(mem, true);
        if ((net->detector != NULL) != cases[i].found) fail_msg("case %zu", i);
        if (net->detector != NULL && net->detector->activation != cases[i].activation)
            fail_msg("case %zu: activation %d", i, (int)net->detector->activation);
        discard(mem, net);
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
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_load_options options = {.h = 64, .w = 96, .join_heads = true};
        struct rfx_graph *net = NULL;
        make_maps(&graph, cases[i].sides, cases[i].stride, cases[i].order);
        maker_save_heads(&graph, PATH);
        assert_int_equal(rfx_onnx_load(mem, PATH, &options, &net, NULL), RFX_OK);
        assert_int_equal(net->n_outputs, cases[i].found ? 4 : 3);
        discard(mem, net);
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
    struct rfx_graph *net = NULL;
    struct rfx_error err = {{0}};
    struct rfx_detector detector;
    (void)state;
    assert_int_equal(rfx_head_file_parse(mem, head, sizeof head - 1, "head.json", &detector, &err),
                     RFX_OK);
    maker_centernet(&graph, "hm", true);
    maker_add_ints(&graph, "Transpose", "hm", "turned", "perm", perm, 4);
    maker_value(&graph, MAKER_OUTPUT, "turned", NULL, 0);
    maker_save_heads(&graph, PATH);
    assert_int_equal(load(mem, &detector, true, &net, &err), RFX_STATUS_INVALID_ARGUMENT);
    if (strstr(err.text, "outputs[0], axes \"y x v\", has the shape 1x25x3x16: peaks") == NULL)
        fail_msg("%s", err.text);
    assert_null(net);
    discard(mem, net);
}

static enum rfx_status build(struct rfx_memory *mem, void *only, struct rfx_error *err) {
    struct rfx_graph *net = NULL;
    enum rfx_status status = load(mem, NULL, *(const bool *)only, &net, err);
    rfx_graph_free(net);
    return status;
}

static void allocations_may_fail(void **state) {
    static struct maker graph;
    (void)state;
    maker_centernet(&graph, "hm", false);
    maker_save_heads(&graph, PATH);
    for (int k = 0; k < 2; k++) {
        bool only = k == 1;
        assert_true(test_fail_each_allocation(build, &only) > 10);
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
