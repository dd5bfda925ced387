/* Flows give what the nodes themselves give, for every short range and for some long ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/flow.h"
#include "rfexec/run/model.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/test_util.h"
#include "tiler/search/graph_variants.h"

static int known, asked;

static void compare_range(const struct rfx_graph *graph, const struct rfx_flow *flow,
                          enum rfx_axis axis, struct rfx_range out) {
    const struct rfx_node *node = &graph->nodes[flow->node];
    struct rfx_range in = rfx_flow_range(flow, graph, axis, out);
    struct rfx_range right = rfx_input_range(graph, node, flow->k, axis, out);
    if (in.lo != right.lo || in.hi != right.hi)
        fail_msg("'%s' input %d axis %d, %lld..%lld: %lld..%lld, of the node %lld..%lld",
                 node->name, flow->k, (int)axis, (long long)out.lo, (long long)out.hi,
                 (long long)in.lo, (long long)in.hi, (long long)right.lo, (long long)right.hi);
}

static void compare_flows(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        if (!rfx_node_is_local(node)) continue;
        for (int k = 0; k < node->n_in; k++)
            for (int axis = 0; axis < 2; axis++) {
                if (!rfx_node_is_local(&graph->nodes[node->in[k]])) continue;
                struct rfx_flow flow = rfx_flow_of(graph, i, k, (enum rfx_axis)axis);
                int64_t extent = rfx_node_extent(node, (enum rfx_axis)axis);
                known += flow.lo < flow.hi;
                asked++;
                for (int64_t lo = 0; lo < extent; lo += 1 + lo / 16)
                    for (int64_t hi = lo + 1; hi <= extent; hi += 1 + (hi - lo) / 3)
                        compare_range(graph, &flow, (enum rfx_axis)axis,
                                      (struct rfx_range){lo, hi});
            }
    }
}

/* As it is, and with groups for a small cache. */
static void compare_all(const struct rfx_graph *graph) {
    struct rfx_error err = {{0}};
    struct rfx_graph *grouped = NULL;
    struct rfx_plan_request request = {
        .threads = 2, .caches = {.second_bytes = (size_t)1 << 20, .shared_bytes = (size_t)4 << 20}};
    compare_flows(graph);
    if (rfx_groups_apply(graph, &request, &grouped, &err) != RFX_OK) fail_msg("%s", err.text);
    if (grouped == NULL) return;
    compare_flows(grouped);
    rfx_graph_free(grouped);
}

static void random_networks(void **state) {
    (void)state;
    struct random_graph_options options = random_graph_defaults();
    options.min_size = 8;
    options.max_size = 64;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = random_graph_make(mem, seed, &options);
        compare_all(graph);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    print_message("%d of %d flows are known\n", known, asked);
    assert_true(known > asked / 2 && known < asked);
}

/* Groups that begin with joins of up to six maps. */
static void built_in_networks(void **state) {
    (void)state;
    static const char *const names[] = {"densenet121", "real_esrgan", "yolov8n"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        struct rfx_error err = {{0}};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = NULL;
        struct rfx_load_options load = {.h = 96, .w = 64};
        if (rfx_builtin_build(mem, names[k], &load, &graph, &err) != RFX_OK)
            fail_msg("%s", err.text);
        compare_all(graph);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks),
        cmocka_unit_test(built_in_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
