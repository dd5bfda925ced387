/* The table of operators: no row leaves out what others rely on. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/graph/op.h"
#include "tests/support/random/small_nets.h"

#define FOR_EACH_OP(op, def)                  \
    for (int op = 0; op < RFX_OP_COUNT; op++) \
        for (const struct rfx_op_def *def = rfx_op_def((enum rfx_op)op); def != NULL; def = NULL)

/* The image, constants and what stands for a node inside a group have no inputs, so nothing that
 * maps to them. */
static bool has_inputs(int op) {
    return op != RFX_OP_INPUT && op != RFX_OP_INNER && op != RFX_OP_CONST_MAP &&
           op != RFX_OP_CONST_PLAIN && op != RFX_OP_REPEAT;
}

static void every_row_is_complete(void **state) {
    (void)state;
    FOR_EACH_OP(op, def) {
        if (def->name == NULL || def->infer == NULL) fail_msg("op %d: no name or infer", op);
        bool never_run = op == RFX_OP_INPUT || op == RFX_OP_INNER;
        if ((def->run == NULL) != never_run) fail_msg("%s: run", def->name);
        if ((def->pack == NULL) != (def->packed_bytes == NULL)) fail_msg("%s: pack", def->name);
        if (def->reduction != NULL && def->spatial) fail_msg("%s: reduction", def->name);
    }
}

/* No op is one to one by omission. */
static void every_spatial_row_says_how_it_maps(void **state) {
    (void)state;
    FOR_EACH_OP(op, def) {
        bool maps = def->spatial && has_inputs(op);
        if ((def->axis_map != NULL) != maps) fail_msg("%s: axis_map", def->name);
        if (!maps && (def->in_range != NULL || def->endless_range != NULL))
            fail_msg("%s: a range without a map", def->name);
        if (def->axis_map == rfx_op_map_identity && def->in_range != NULL)
            fail_msg("%s: a range beside the identity", def->name);
    }
}

/* Slots lie in the attributes, one per role that fusing asks for, and nowhere twice. */
static void weights_are_where_the_rows_say(void **state) {
    (void)state;
    const size_t from = offsetof(struct rfx_node, attr), to = from + sizeof(union rfx_attr);
    FOR_EACH_OP(op, def) {
        const struct rfx_weight_slot *slots = def->weights;
        for (int i = 0; slots != NULL && slots[i].name != NULL; i++) {
            if (slots[i].offset < from || slots[i].offset + sizeof(int) > to)
                fail_msg("%s: %s lies outside of the attributes", def->name, slots[i].name);
            for (int j = 0; j < i; j++)
                if (slots[i].offset == slots[j].offset || strcmp(slots[i].name, slots[j].name) == 0)
                    fail_msg("%s: %s twice", def->name, slots[i].name);
        }
        if (slots != NULL && def->pack == NULL) fail_msg("%s: weights, but no pack", def->name);
    }
    /* by hand: where the indices of a convolution are */
    struct rfx_node node = {.op = RFX_OP_CONV};
    node.attr.conv.weight = 3;
    node.attr.conv.bias = 4;
    node.attr.conv.scale = -1;
    const struct rfx_weight_slot *slots = rfx_op_def(RFX_OP_CONV)->weights;
    assert_int_equal(*rfx_node_weight_at(&node, &slots[0]), 3);
    *rfx_node_weight_rw(&node, rfx_op_weight_slot(RFX_OP_CONV, RFX_WEIGHT_SCALE)) = 7;
    assert_int_equal(node.attr.conv.scale, 7);
    assert_null(rfx_op_weight_slot(RFX_OP_POOL_MAX, RFX_WEIGHT_BIAS));
}

/* What fusing needs of the node that stays and of the part that goes. */
static void fusing_finds_its_slots(void **state) {
    (void)state;
    FOR_EACH_OP(op, def) {
        enum rfx_op o = (enum rfx_op)op;
        if ((def->takes_in & RFX_FUSE_BATCH_NORM) != 0 &&
            (rfx_op_weight_slot(o, RFX_WEIGHT_SCALE) == NULL ||
             rfx_op_weight_slot(o, RFX_WEIGHT_BIAS) == NULL))
            fail_msg("%s takes in batch norms without a scale and a bias", def->name);
        if ((def->fuses_as & RFX_FUSE_BATCH_NORM) != 0 &&
            (rfx_op_weight_slot(o, RFX_WEIGHT_FACTOR) == NULL ||
             rfx_op_weight_slot(o, RFX_WEIGHT_BIAS) == NULL))
            fail_msg("%s is a batch norm without factor and shift", def->name);
        if ((def->takes_in & RFX_FUSE_SUM) != 0 && def->axis_map == rfx_op_map_window)
            fail_msg("%s reads a residual through its window", def->name);
        if ((def->takes_in & RFX_FUSE_GATE) != 0) fail_msg("%s: a gate is no part", def->name);
    }
}

/* Counted on paper for the 2 x 9 x 8 image of two convolutions, 3x3 and padded by 1: "a" with
 * stride 2 makes 4 x 5 x 4, "b" 3 x 5 x 4. Floats of inputs and outputs, times 4. */
static void moved_bytes_are_those_of_the_rectangle(void **state) {
    static const struct {
        int node;
        struct rfx_rect rect;
        uint64_t floats;
    } cases[] = {
        {1, {0, 5, 0, 4}, 9 * 8 * 2 + 5 * 4 * 4},
        {1, {1, 2, 1, 3}, 3 * 5 * 2 + 1 * 2 * 4}, /* rows 1..3, columns 1..5 */
        {2, {0, 2, 0, 4}, 3 * 4 * 4 + 2 * 4 * 3}, /* one row of padding */
        {2, {2, 3, 3, 4}, 3 * 2 * 4 + 1 * 1 * 3},
    };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 9, 8);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rfx_node *node = &graph->nodes[cases[i].node];
        assert_int_equal(rfx_op_moved_bytes(graph, node, cases[i].rect),
                         4 * cases[i].floats + rfx_op_packed_bytes(graph, node));
        assert_true(rfx_op_packed_bytes(graph, node) >= 9 * 2 * 4 * 4);
        assert_string_not_equal(rfx_op_backend(graph, node), "");
    }
    assert_string_equal(rfx_op_backend(graph, &graph->nodes[graph->input]), "");
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* A rectangle of nothing but padding reads nothing, and a view moves nothing. */
static void moved_bytes_of_nothing(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    int input, pad, plain, view;
    (void)state;
    assert_int_equal(rfx_graph_create(mem, "pad", &graph, NULL), RFX_OK);
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "input"};
    node.attr.input.c = 2;
    node.attr.input.h = 3;
    node.attr.input.w = 5;
    assert_int_equal(rfx_graph_add(graph, &node, &input, NULL), RFX_OK);
    node = (struct rfx_node){.op = RFX_OP_PAD, .name = "pad", .n_in = 1, .in = &input};
    node.attr.pad.pads = (struct rfx_pads){4, 0, 4, 0};
    assert_int_equal(rfx_graph_add(graph, &node, &pad, NULL), RFX_OK);
    node = (struct rfx_node){.op = RFX_OP_TO_PLAIN, .name = "plain", .n_in = 1, .in = &input};
    assert_int_equal(rfx_graph_add(graph, &node, &plain, NULL), RFX_OK);
    node = (struct rfx_node){.op = RFX_OP_RESHAPE, .name = "view", .n_in = 1, .in = &plain};
    node.attr.reshape.shape = (struct rfx_shape){1, {30}};
    assert_int_equal(rfx_graph_add(graph, &node, &view, NULL), RFX_OK);
    const struct rfx_node *nodes = graph->nodes;
    const struct rfx_rect corner = {0, 2, 0, 3}, some = {3, 6, 3, 6}, one = {0, 1, 0, 1};
    assert_int_equal(rfx_op_moved_bytes(graph, &nodes[pad], corner), 4 * 6 * 2);
    assert_int_equal(rfx_op_moved_bytes(graph, &nodes[pad], some), 4 * (9 + 4) * 2);
    assert_int_equal(rfx_op_moved_bytes(graph, &nodes[plain], one), 4 * 60);
    assert_int_equal(rfx_op_moved_bytes(graph, &nodes[view], one), 0);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Only these take OpenBLAS's buffers; a convolution, where it is chosen (test_conv_backend.c). */
static void products_are_known(void **state) {
    (void)state;
    FOR_EACH_OP(op, def) {
        bool multiplies = op == RFX_OP_CONV || op == RFX_OP_MATMUL || op == RFX_OP_GROUP;
        if ((def->calls_blas != NULL) != multiplies) fail_msg("%s: calls_blas", def->name);
    }
    const struct rfx_graph graph = {.conv = RFX_CONV_OPENBLAS};
    const struct rfx_node product = {.op = RFX_OP_MATMUL}, pool = {.op = RFX_OP_POOL_MAX};
    assert_true(rfx_op_calls_blas(&graph, &product));
    assert_false(rfx_op_calls_blas(&graph, &pool));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(every_spatial_row_says_how_it_maps),
        cmocka_unit_test(weights_are_where_the_rows_say),
        cmocka_unit_test(fusing_finds_its_slots),
        cmocka_unit_test(moved_bytes_are_those_of_the_rectangle),
        cmocka_unit_test(moved_bytes_of_nothing),
        cmocka_unit_test(products_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
