/* The cut tensors of a network with late nodes become one output that is joined of maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rfexec/run/join_cuts.h"
#include "tests/support/makers/head_maker.h"
#include "tests/support/makers/late_maker.h"
#include "tests/support/makers/onnx_net.h"

#define PATH "join_cuts.onnx"
enum { H = 32, W = 48, CELLS = H / LATE_MAKER_STRIDE * (W / LATE_MAKER_STRIDE) };

static const struct rfx_load_options options = {.h = H, .w = W, .late = true, .join_cuts = true};

static void discard(struct rfx_graph *net) {
    onnx_net_discard(net);
    (void)unlink(PATH);
}

/* First the boxes of all cells, four numbers each, then their scores, one of each class. */
static void cut_tensors_become_one_output(void **state) {
    static const struct rfx_spread wanted[2] = {{0, 4 * 12, 4, 1}, {4 * CELLS, 2 * 12, 2, 1}};
    (void)state;
    late_maker_save(PATH, H, W, 0.5F);
    struct rfx_graph *net = onnx_net_of_file(PATH, &options);
    const struct rfx_node *join = &net->nodes[net->outputs[0].node];
    assert_int_equal(net->n_outputs, 1);
    assert_null(net->late);
    assert_string_equal(net->outputs[0].name, "cut tensors");
    assert_string_equal(net->outputs[0].stored.head, RFX_CUTS_HEAD);
    assert_int_equal(join->op, RFX_OP_JOIN_MAPS);
    assert_int_equal(join->out.shape.dims[1], CELLS * (4 + LATE_MAKER_CLASSES));
    assert_int_equal(join->out.shape.dims[2], 1);
    assert_int_equal(net->n_ends, 2);
    for (int e = 0; e < 2; e++) assert_memory_equal(&net->ends[e].at, &wanted[e], sizeof wanted[e]);
    discard(net);
}

static void other_networks_stay(void **state) {
    static struct maker graph;
    (void)state;
    maker_rfb(&graph);
    maker_save_heads(&graph, PATH);
    struct rfx_graph *net = onnx_net_of_file(PATH, &options);
    assert_int_equal(net->n_outputs, 2);
    discard(net);
}

static void allocations_may_fail(void **state) {
    (void)state;
    late_maker_save(PATH, H, W, 0.5F);
    onnx_net_file_runs_out(PATH, &options);
    (void)unlink(PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_tensors_become_one_output),
        cmocka_unit_test(other_networks_stay),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests_name("join cuts", tests, NULL, NULL);
}
