/* Lines of nodes, joined of flows by hand; that sweeps of whole networks hold them equal to walks
 * from map to map is in test_stage_sweep.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/group.h"
#include "rf_analysis/flow.h"

enum { NODES = 4 };

/* A window of 3 with a border of 1 around it, moved by `step`, over a map of so many rows. */
static struct rfx_flow window(int node, int in, int64_t step, int64_t room) {
    return (struct rfx_flow){.scale = step,
                             .first = -1,
                             .end = 2,
                             .lo = -1000,
                             .hi = 1000,
                             .extent = (room - 1) / step + 1,
                             .room = room,
                             .node = node,
                             .in = in};
}

static struct rfx_flow same(int node, int in, int64_t room) {
    struct rfx_flow flow = window(node, in, 1, room);
    flow.first = 0;
    flow.end = 1;
    return flow;
}

/* Node 3 is the target; the others are read. */
static void begin(struct rfx_line *lines) {
    for (int i = 0; i < NODES; i++) lines[i].anchor = RFX_LINE_UNKNOWN;
    assert_false(rfx_line_settle(lines, NODES - 1));
    assert_int_equal(lines[NODES - 1].anchor, NODES - 1);
}

static void expect_region(const struct rfx_line *line, int64_t extent, struct rfx_range anchor,
                          int64_t lo, int64_t hi) {
    struct rfx_axis_region region = rfx_line_region(line, extent, anchor);
    assert_int_equal(region.clamped.lo, lo);
    assert_int_equal(region.clamped.hi, hi);
}

static void windows_follow_each_other(void **state) {
    (void)state;
    struct rfx_line lines[NODES];
    struct rfx_flow last = window(3, 2, 2, 10), first = window(2, 1, 1, 10);
    begin(lines);
    rfx_line_pass(lines, &last);
    assert_true(rfx_line_settle(lines, 2));
    rfx_line_pass(lines, &first);
    assert_true(rfx_line_settle(lines, 1));
    assert_int_equal(lines[1].anchor, 3);
    expect_region(&lines[1], 10, (struct rfx_range){0, 1}, 0, 3);
    expect_region(&lines[1], 10, (struct rfx_range){1, 3}, 0, 7);
    expect_region(&lines[1], 10, (struct rfx_range){2, 3}, 2, 7);
    expect_region(&lines[1], 10, (struct rfx_range){4, 5}, 6, 10);
}

static void paths_join_when_they_are_alike(void **state) {
    (void)state;
    struct rfx_line lines[NODES];
    struct rfx_flow by_window = window(3, 2, 1, 10), by_add = same(3, 1, 10),
                    before = window(2, 1, 1, 10), stride = window(2, 1, 2, 19);
    begin(lines);
    rfx_line_pass(lines, &by_add);
    rfx_line_pass(lines, &by_window);
    assert_true(rfx_line_settle(lines, 2));
    rfx_line_pass(lines, &before);
    assert_true(rfx_line_settle(lines, 1));
    expect_region(&lines[1], 10, (struct rfx_range){4, 5}, 2, 7);

    begin(lines);
    rfx_line_pass(lines, &by_add);
    rfx_line_pass(lines, &by_window);
    assert_true(rfx_line_settle(lines, 2));
    rfx_line_pass(lines, &stride); /* another scale */
    assert_false(rfx_line_settle(lines, 1));

    begin(lines);
    rfx_line_pass(lines, &by_add);
    assert_false(rfx_line_settle(lines, 2)); /* another anchor */
    rfx_line_pass(lines, &before);
    assert_false(rfx_line_settle(lines, 1));
}

/* What a border cuts off would show further back. */
static void no_line_where_borders_matter(void **state) {
    (void)state;
    struct rfx_line lines[NODES];
    struct rfx_flow good = window(3, 2, 2, 10), flows[6];
    for (int i = 0; i < 6; i++) flows[i] = good;
    flows[0].first = 1;  /* the first row is not read */
    flows[1].first = -2; /* of 10 rows, the last one */
    flows[1].end = 1;    /* is read by nobody */
    flows[2].end = 0;    /* the first position reads nothing but border */
    flows[2].extent = 6;
    flows[3].extent = 7;           /* the last one: rows 11 to 13 */
    flows[4].hi = 4;               /* the last one has another rule */
    flows[5].lo = flows[5].hi = 0; /* nothing is known */
    for (int i = 0; i < 6; i++) {
        begin(lines);
        rfx_line_pass(lines, &flows[i]);
        assert_false(rfx_line_settle(lines, 2));
        assert_int_equal(lines[2].anchor, 2);
    }
    begin(lines);
    rfx_line_pass(lines, &good);
    assert_true(rfx_line_settle(lines, 2));
}

static int add_pool(struct rfx_graph *graph, const char *name, int in, int64_t side, int64_t step) {
    struct rfx_node node = {.op = RFX_OP_POOL_MAX, .name = name, .n_in = 1, .in = &in};
    int64_t pad = side / 2 * (side % 2);
    node.attr.pool = (struct rfx_pool_attr){.kh = side,
                                            .kw = side,
                                            .sh = step,
                                            .sw = step,
                                            .dh = 1,
                                            .dw = 1,
                                            .pads = {pad, pad, pad, pad}};
    int index = -1;
    assert_int_equal(rfx_graph_add(graph, &node, &index, NULL), RFX_OK);
    return index;
}

/* input (14 rows) -> "read" -> a group of two ways, "near" 3x3 of step 2, and "wide" 3x3 and then a
 * pool of `side` and step 2, which are added. */
static struct rfx_graph *two_ways(struct rfx_memory *mem, int64_t side) {
    static const struct rfx_fuse_options nothing = {0};
    struct rfx_graph *graph = NULL;
    struct rfx_node input = {.op = RFX_OP_INPUT, .name = "input"};
    input.attr.input.c = 1;
    input.attr.input.h = input.attr.input.w = 14;
    int at = -1;
    assert_int_equal(rfx_graph_create(mem, "two ways", &graph, NULL), RFX_OK);
    assert_int_equal(rfx_graph_add(graph, &input, &at, NULL), RFX_OK);
    int read = add_pool(graph, "read", at, 3, 1), near = add_pool(graph, "near", read, 3, 2);
    int wide = add_pool(graph, "wide", read, 3, 1),
        halved = add_pool(graph, "halved", wide, side, 2);
    int ways[2] = {near, halved};
    struct rfx_node sum = {.op = RFX_OP_BINARY, .name = "sum", .n_in = 2, .in = ways};
    sum.attr.binary.kind = RFX_BINARY_ADD;
    assert_int_equal(rfx_graph_add(graph, &sum, &at, NULL), RFX_OK);
    assert_int_equal(rfx_graph_add_output(graph, at, "sum", NULL), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, &nothing, NULL), RFX_OK);
    assert_int_equal(graph->n_nodes, 6);
    return graph;
}

/* A way inside of a group without a line leaves what is read outside without one, though the other
 * way has one: a pool of 1 and step 2 never reads the last of 14 rows, one of 2 does. */
static void groups_have_lines_where_all_inside_have(void **state) {
    (void)state;
    for (int64_t side = 1; side <= 2; side++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *base = two_ways(mem, side), *grouped = NULL;
        const struct rfx_group_attr group = {
            .first = 2, .last = 5, .strip_cols = 7, .strips = 1, .step_rows = 1};
        struct rfx_line lines[6];
        assert_int_equal(rfx_graph_group(base, &group, 1, &grouped, NULL), RFX_OK);
        for (int i = 0; i < 6; i++) lines[i].anchor = RFX_LINE_UNKNOWN;
        assert_false(rfx_line_settle(lines, 5));
        rfx_line_pass_group(lines, grouped, 5, RFX_AXIS_ROWS);
        assert_int_equal(rfx_line_settle(lines, 1), side == 2);
        assert_int_equal(lines[1].anchor, side == 2 ? 5 : 1);
        if (side == 2) expect_region(&lines[1], 14, (struct rfx_range){3, 4}, 5, 9);
        rfx_graph_free(grouped);
        rfx_graph_free(base);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_follow_each_other),
        cmocka_unit_test(paths_join_when_they_are_alike),
        cmocka_unit_test(no_line_where_borders_matter),
        cmocka_unit_test(groups_have_lines_where_all_inside_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
