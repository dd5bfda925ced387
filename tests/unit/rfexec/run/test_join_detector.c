/* Outputs of described heads get one more output, whose cells have the values of all anchors; it
 * streams if each cell comes from one pixel, and what does not fit is refused with the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rfexec/output/head_file.h"
#include "tests/support/makers/head_maker.h"
#include "tests/support/makers/onnx_net.h"

#define PATH "join_detector.onnx"

/* A head file and how a network is loaded with it. */
struct described {
    struct rfx_detector detector;
    struct rfx_load_options options;
};

/* only: of the head alone, or of the other outputs too. */
static enum rfx_status describe(const char *head, bool only, struct described *out,
                                struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    out->options = (struct rfx_load_options){
        .h = 64, .w = 96, .join_heads = true, .detector = &out->detector, .head_only = only};
    enum rfx_status status =
        rfx_head_file_parse(mem, head, strlen(head), "head.json", &out->detector, err);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return status;
}

static struct rfx_graph *loaded(const char *head, bool only) {
    struct described described;
    struct rfx_error err = {{0}};
    if (describe(head, only, &described, &err) != RFX_OK) fail_msg("%s", err.text);
    return onnx_net_of_file(PATH, &described.options);
}

static void discard(struct rfx_graph *net) {
    onnx_net_discard(net);
    (void)unlink(PATH);
}

/* A network of tensors in all orders. `anchors` of the first level; the second has two. active: the
 * list behind a sigmoid is an output, too. */
static void make_orders(struct maker *graph, int anchors, bool active) {
    maker_cells(graph, "list8", 8, anchors, 5, MAKER_LISTED);
    maker_cells(graph, "list16", 16, 2, 5, MAKER_LISTED);
    maker_add_int(graph, "Concat", "list8 list16", "list", "axis", 1);
    maker_add(graph, "Sigmoid", "list", "active");
    maker_cells(graph, "map8", 8, anchors, 3, MAKER_MAP);
    maker_cells(graph, "map16", 16, 2, 3, MAKER_MAP);
    maker_cells(graph, "five8", 8, anchors, 1, MAKER_FIVE);
    maker_cells(graph, "five16", 16, 2, 1, MAKER_FIVE);
    static const char *const outputs[] = {"list", "active", "map8", "map16", "five8", "five16"};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        if (i != 1 || active) maker_value(graph, MAKER_OUTPUT, outputs[i], NULL, 0);
}

#define LEVELS(first)                                   \
    "\"levels\": [{\"stride\": 8, \"anchors\": [" first \
    "]}, {\"anchors\": [[8, 8], [9, 9]]}], "            \
    "\"decode\": \"deltas\"}"
#define TWO "[1, 1], [2, 2]"
#define LIST "{\"names\": [\"list\"], \"axes\": \"yxa v\", \"values\": [\"box\", \"objectness\"]}"
#define MAPS "{\"names\": [\"map8\", \"map16\"], \"axes\": \"va y x\", \"values\": [\"scores\"]}"
#define FIVES \
    "{\"names\": [\"five8\", \"five16\"], \"axes\": \"a y x v\", \"values\": [\"scores\"]}"

/* Finds the joined output and returns its number of pieces; 1 is a whole output. */
static int joined_pieces(const struct rfx_graph *net, int64_t cells, int64_t channels) {
    int n = 0, k = net->n_outputs - 1;
    const struct rfx_tensor *t = &net->nodes[net->outputs[k].node].out;
    assert_string_equal(net->outputs[k].name, "detections");
    assert_string_equal(net->outputs[k].stored.head, "head.json");
    assert_ptr_equal(net->outputs[k].stored.detector, net->detector);
    assert_int_equal(t->shape.rank, 3);
    assert_int_equal(t->shape.dims[1], cells);
    assert_int_equal(t->shape.dims[2], channels);
    for (int i = 0; i < net->n_ends; i++) n += net->ends[i].output == k;
    return n;
}

static void all_orders_are_joined_and_stream(void **state) {
    static struct maker graph;
    static const char *const heads[2] = {"{\"outputs\": [" LIST "," MAPS "], " LEVELS("[1, 1]"),
                                         "{\"outputs\": [" LIST "," MAPS "], " LEVELS(TWO)};
    (void)state;
    for (int anchors = 1; anchors <= 2; anchors++) {
        maker_begin_cells(&graph);
        make_orders(&graph, anchors, false);
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = loaded(heads[anchors - 1], true);
        assert_int_equal(net->n_outputs, 3); /* five8, five16, detections */
        assert_string_equal(net->outputs[0].name, "five8");
        assert_int_equal(joined_pieces(net, 8 * 12 + 4 * 6, 2 * 8), 2);
        assert_int_equal(net->detector->levels[1].h, 4);
        assert_int_equal(net->detector->levels[1].w, 6);
        assert_int_equal(net->detector->channels, 8);
        assert_int_equal(net->detector->outputs[1].first, 5);
        assert_int_equal(net->detector->places[RFX_DETECTOR_SCORES].n, 3);
        discard(net);
    }
}

/* Where the listed outputs are wanted too, they are whole, and so is what is made of them. */
static void all_outputs_stay(void **state) {
    static struct maker graph;
    (void)state;
    maker_begin_cells(&graph);
    make_orders(&graph, 2, true);
    maker_save_heads(&graph, PATH);
    struct rfx_graph *net = loaded("{\"outputs\": [" LIST "," FIVES "], " LEVELS(TWO), false);
    assert_int_equal(net->n_outputs, 7);
    assert_string_equal(net->outputs[0].name, "list");
    assert_int_equal(joined_pieces(net, 8 * 12 + 4 * 6, 2 * 6), 1);
    discard(net);
}

static void one_output_of_each_level(void **state) {
    static struct maker graph;
    (void)state;
    maker_begin_cells(&graph);
    maker_cells(&graph, "out8", 8, 3, 7, MAKER_FIVE);
    maker_value(&graph, MAKER_OUTPUT, "out8", NULL, 0);
    maker_save_heads(&graph, PATH);
    struct rfx_graph *net = loaded(
        "{\"outputs\": [{\"names\": [\"out8\"], \"axes\": \"a y x v\", \"values\": [\"box\", "
        "\"objectness\", \"scores\"]}], \"levels\": [{\"anchors\": [[1, 1], [2, 2], [3, 3]]}], "
        "\"decode\": \"yolov5\"}",
        true);
    assert_int_equal(net->n_outputs, 1);
    assert_int_equal(joined_pieces(net, 8 * 12, 3 * 7), 1);
    assert_int_equal(net->nodes[net->outputs[0].node].op, RFX_OP_JOIN_MAPS); /* one map: streams */
    discard(net);
}

/* Behind a sigmoid the levels are cut out of the whole output, which is stored. */
static void other_tensors_are_whole(void **state) {
    static struct maker graph;
    (void)state;
    maker_begin_cells(&graph);
    make_orders(&graph, 2, true);
    maker_save_heads(&graph, PATH);
    struct rfx_graph *net = loaded(
        "{\"outputs\": [{\"names\": [\"active\"], \"axes\": \"yxa v\", "
        "\"values\": [\"box\", \"scores\"]}], \"levels\": [{\"stride\": "
        "8, \"anchors\": [[1, 1], [2, 2]]}, {\"stride\": 16, "
        "\"anchors\": [[8, 8], [9, 9]]}], \"decode\": \"deltas\"}",
        true);
    assert_int_equal(joined_pieces(net, 8 * 12 + 4 * 6, 2 * 5), 1);
    discard(net);
}

static void what_does_not_fit_is_refused(void **state) {
    static const struct {
        const char *head, *words;
    } cases[] = {
        {"{\"outputs\": [{\"names\": [\"nothing\"], \"axes\": \"n v\", \"values\": [\"box\", "
         "\"scores\"]}], \"decode\": \"corners\"}",
         "head 'head.json': the network has no output 'nothing'; its first one is 'list'"},
        {"{\"outputs\": [{\"names\": [\"list\"], \"axes\": \"y x v\", \"values\": [\"box\", "
         "\"scores\"]}], \"decode\": \"cells\"}",
         "outputs[0], axes \"y x v\", has the shape 1x240x5: there must be 4 axes"},
        {"{\"outputs\": [" LIST "," MAPS "], " LEVELS("[1, 1]"),
         "axis 1 of level 0 must be 96, for 8 x 12 cells of 1 anchors"},
        {"{\"outputs\": [" LIST ", {\"names\": [\"map8\", \"map16\"], \"axes\": \"a y x\", "
         "\"values\": [\"scores\"]}], " LEVELS(TWO),
         "outputs[1].axes"},
        {"{\"outputs\": [{\"names\": [\"list\"], \"axes\": \"yxa v\", \"values\": [\"box\", "
         "\"points\"]}," MAPS "], " LEVELS(TWO),
         "outputs[0], axes \"yxa v\", has the shape 1x192x5: 5 values of a candidate, where 14 are "
         "described"},
        {"{\"outputs\": [{\"names\": [\"list\"], \"axes\": \"yxa v\", \"values\": [\"box\", "
         "\"objectness\", \"scores\"]}], " LEVELS(TWO),
         "5 values of a candidate, where 5 and the classes are described"},
        {"{\"outputs\": [{\"names\": [\"map8\", \"five16\"], \"axes\": \"va y x\", \"values\": "
         "[\"scores\"]}," LIST "], " LEVELS(TWO),
         "there must be 4 axes"},
        {"{\"background\": 3, \"outputs\": [" LIST "," MAPS "], " LEVELS(TWO),
         "\"background\" is class 3, and the outputs have 3 classes"},
        {"{\"outputs\": [{\"names\": [\"active\"], \"axes\": \"yxa v\", \"values\": [\"box\", "
         "\"scores\"]}], " LEVELS(TWO),
         "the rows and columns of levels[1] cannot be told"},
        {"{\"outputs\": [{\"names\": [\"active\"], \"axes\": \"yxa v\", \"values\": [\"box\", "
         "\"scores\"]}], \"levels\": [{\"stride\": 8}, {\"stride\": 16}], \"decode\": \"cells\"}",
         "level 1 has 4 x 6 cells of 1 anchors, and 144 candidates are left for it"},
        {"{\"outputs\": [{\"names\": [\"list\"], \"axes\": \"yxav\", \"values\": [\"box\", "
         "\"scores\"]}], " LEVELS(TWO),
         "there must be 2 axes"},
    };
    static struct maker graph;
    (void)state;
    maker_begin_cells(&graph);
    make_orders(&graph, 2, true);
    maker_save_heads(&graph, PATH);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct described described;
        struct rfx_error err = {{0}};
        enum rfx_status status = describe(cases[i].head, i % 2 == 0, &described, &err);
        if (status == RFX_OK) {
            onnx_net_file_refused(PATH, &described.options, RFX_STATUS_INVALID_ARGUMENT,
                                  cases[i].words);
            continue;
        }
        assert_int_equal(i, 3); /* the head file itself is refused */
        assert_non_null(strstr(err.text, cases[i].words));
    }
    (void)unlink(PATH);
}

static void allocations_may_fail(void **state) {
    static struct maker graph;
    (void)state;
    maker_begin_cells(&graph);
    make_orders(&graph, 1, false);
    maker_save_heads(&graph, PATH);
    for (int only = 0; only < 2; only++) {
        struct described described;
        assert_int_equal(describe("{\"outputs\": [" LIST "," MAPS "], " LEVELS("[1, 1]"), only == 1,
                                  &described, NULL),
                         RFX_OK);
        onnx_net_file_runs_out(PATH, &described.options);
    }
    (void)unlink(PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_orders_are_joined_and_stream),
        cmocka_unit_test(all_outputs_stay),
        cmocka_unit_test(one_output_of_each_level),
        cmocka_unit_test(other_tensors_are_whole),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests_name("join detector", tests, NULL, NULL);
}
