/* Heads of several outputs get one more output, which streams; what is no such head stays as it is,
 * and half a head is refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/head_maker.h"
#include "tests/support/makers/onnx_net.h"

#define PATH "join_heads.onnx"

static struct rfx_load_options options_of(bool join) {
    return (struct rfx_load_options){.h = 64, .w = 96, .join_heads = join};
}

static struct rfx_graph *loaded(bool join) {
    const struct rfx_load_options options = options_of(join);
    return onnx_net_of_file(PATH, &options);
}

static void discard(struct rfx_graph *net) {
    onnx_net_discard(net);
    (void)unlink(PATH);
}

static int count_ends(const struct rfx_graph *graph, int output) {
    int n = 0;
    for (int i = 0; i < graph->n_ends; i++) n += graph->ends[i].output == output;
    return n;
}

static void yunet_gets_one_more_output(void **state) {
    static struct maker graph;
    (void)state;
    maker_yunet(&graph, NULL, NULL);
    maker_save_heads(&graph, PATH);
    struct rfx_graph *net = loaded(true);
    assert_int_equal(net->n_outputs, 13);
    for (int k = 0; k < 12; k++) {
        assert_null(net->outputs[k].stored.head);
        assert_int_equal(net->nodes[net->outputs[k].node].op, RFX_OP_JOIN_MAPS);
        assert_int_equal(net->n_consumers[net->ends[k].node], 1); /* only as an output */
    }
    const struct rfx_output *joined = &net->outputs[12];
    const struct rfx_node *join = &net->nodes[joined->node];
    assert_string_equal(joined->name, "detections");
    assert_string_equal(joined->stored.head, "yunet");
    assert_int_equal(join->op, RFX_OP_JOIN_MAPS);
    assert_int_equal(join->out.shape.rank, 3);
    assert_int_equal(join->out.shape.dims[1], 8 * 12 + 4 * 6 + 2 * 3);
    assert_int_equal(join->out.shape.dims[2], 16);
    assert_int_equal(count_ends(net, 12), 3);
    for (int i = 0; i < net->n_ends; i++)
        if (net->ends[i].output == 12) assert_int_equal(net->ends[i].channels, 16);
    discard(net);
}

static void names_that_are_taken(void **state) {
    static struct maker graph;
    (void)state;
    maker_rfb(&graph);
    maker_add(&graph, "Relu", "image", "detections");
    maker_value(&graph, MAKER_OUTPUT, "detections", NULL, 0);
    maker_save_heads(&graph, PATH);
    struct rfx_graph *net = loaded(true);
    assert_int_equal(net->n_outputs, 4);
    assert_string_equal(net->outputs[3].name, "detections#2");
    assert_string_equal(net->outputs[3].stored.head, "rfb");
    const struct rfx_node *join = &net->nodes[net->outputs[3].node];
    const struct rfx_shape *shape = &join->out.shape;
    assert_int_equal(join->op, RFX_OP_JOIN_MAPS); /* of two levels, with all anchors of a cell */
    assert_int_equal(net->nodes[join->in[0]].out.c, 3 * 6);
    assert_int_equal(net->nodes[join->in[1]].out.c, 2 * 6);
    assert_int_equal(shape->dims[1], 3 * 8 * 12 + 2 * 4 * 6);
    assert_int_equal(shape->dims[2], 6);
    discard(net);
}

static void other_networks_stay(void **state) {
    static struct maker graph;
    (void)state;
    for (int i = 0; i < 3; i++) {
        maker_yunet(&graph, NULL, NULL);
        if (i > 0) maker_rfb(&graph);
        /* "boxes" alone, beside scores of another shape */
        if (i == 2) {
            const int64_t dims[4] = {1, 3, 0, 0};
            graph = (struct maker){.size = 0};
            maker_value(&graph, MAKER_INPUT, "image", dims, 4);
            maker_add(&graph, "Relu", "image", "scores");
            maker_add(&graph, "Sigmoid", "image", "boxes");
            maker_value(&graph, MAKER_OUTPUT, "scores", NULL, 0);
            maker_value(&graph, MAKER_OUTPUT, "boxes", NULL, 0);
        }
        maker_save_heads(&graph, PATH);
        struct rfx_graph *net = loaded(i == 2);
        assert_int_equal(net->n_outputs, i == 0 ? 12 : 2);
        discard(net);
    }
}

static void half_a_head_is_refused(void **state) {
    static const struct {
        const char *without, *wide, *words;
    } cases[] = {
        {"kps_32", NULL, "head 'yunet' has 12 outputs; the network lacks 'kps_32'"},
        {"cls_8", NULL, "lacks 'cls_8'"},
        {NULL, "bbox_16",
         "output 'bbox_16' of a head 'yunet' has the shape 1 x candidates x 4 with as many "
         "candidates as 'cls_16'; here it has 1x24x5"},
        {NULL, "cls_8", "1 x candidates x 1 with"},
    };
    static struct maker graph;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rfx_load_options options = options_of(true);
        maker_yunet(&graph, cases[i].without, cases[i].wide);
        maker_save_heads(&graph, PATH);
        onnx_net_file_refused(PATH, &options, RFX_STATUS_UNSUPPORTED, cases[i].words);
        discard(loaded(false)); /* nobody asks for boxes */
    }
}

static void allocations_may_fail(void **state) {
    static struct maker graph;
    const struct rfx_load_options options = options_of(true);
    (void)state;
    maker_yunet(&graph, NULL, NULL);
    maker_save_heads(&graph, PATH);
    onnx_net_file_runs_out(PATH, &options);
    (void)unlink(PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yunet_gets_one_more_output), cmocka_unit_test(names_that_are_taken),
        cmocka_unit_test(other_networks_stay),        cmocka_unit_test(half_a_head_is_refused),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests_name("join heads", tests, NULL, NULL);
}
