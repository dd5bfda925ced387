/* Groups as geometry and as graphs: what is needed and how far it reaches, against poking single
 * positions; refusals in words; who reads whom in the grouped graph; every allocation failing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"

enum { INPUT, A, B, SUM, C, POOL, MAX_SIZE = 64 };

/* Which positions of each map of a group single positions of the last one read, one after the
 * other: marks[i][p]. */
static void poke(const struct rfx_group_attr *g, int axis, struct rfx_range out,
                 bool marks[RFX_GROUP_MAX_NODES][MAX_SIZE]) {
    int n = g->last - g->first + 1;
    memset(marks, 0, sizeof(bool) * RFX_GROUP_MAX_NODES * MAX_SIZE);
    for (int64_t p = out.lo; p < out.hi; p++) marks[n - 1][p] = true;
    for (int i = n - 1; i > 0; i--) {
        const struct rfx_node *node = &g->base->nodes[g->first + i];
        for (int64_t p = 0; p < MAX_SIZE; p++) {
            if (!marks[i][p]) continue;
            for (int k = 0; k < node->n_in; k++) {
                int in = node->in[k] - g->first;
                if (in < 0) continue;
                const struct rfx_tensor *t = &g->base->nodes[node->in[k]].out;
                struct rfx_range r =
                    rfx_op_in_range(g->base, node, k, axis, (struct rfx_range){p, p + 1});
                for (int64_t q = rfx_max_i64(r.lo, 0);
                     q < rfx_min_i64(r.hi, axis == 0 ? t->h : t->w); q++)
                    marks[in][q] = true;
            }
        }
    }
}

/* Needs lie in the map, hold every position that is read (and, where windows have gaps at a border,
 * a few more), none is longer than the extents say, and the next ones begin no earlier. */
static void check_axis(const struct rfx_group_attr *g, int axis, struct rfx_range out) {
    static bool marks[RFX_GROUP_MAX_NODES][MAX_SIZE];
    struct rfx_range need[RFX_GROUP_MAX_NODES];
    int64_t extents[RFX_GROUP_MAX_NODES];
    rfx_group_needs(g, axis, out, need);
    rfx_group_extents(g, axis, out.hi - out.lo, extents);
    poke(g, axis, out, marks);
    for (int i = 0; i <= g->last - g->first; i++) {
        struct rfx_range r = {MAX_SIZE, 0};
        for (int64_t p = 0; p < MAX_SIZE; p++) {
            if (!marks[i][p]) continue;
            r.lo = rfx_min_i64(r.lo, p);
            r.hi = p + 1;
        }
        const struct rfx_tensor *t = &g->base->nodes[g->first + i].out;
        bool none = r.lo >= r.hi, empty = need[i].lo >= need[i].hi;
        bool inside = empty || (need[i].lo >= 0 && need[i].hi <= (axis == 0 ? t->h : t->w));
        if (!inside || (!none && (r.lo < need[i].lo || r.hi > need[i].hi)))
            fail_msg("node %d, axis %d, out %lld..%lld: needs %lld..%lld, reads %lld..%lld",
                     g->first + i, axis, (long long)out.lo, (long long)out.hi,
                     (long long)need[i].lo, (long long)need[i].hi, (long long)r.lo,
                     (long long)r.hi);
        if (!empty && rfx_range_size(need[i]) > extents[i])
            fail_msg("node %d, axis %d: %lld positions, extent %lld", g->first + i, axis,
                     (long long)rfx_range_size(need[i]), (long long)extents[i]);
    }
    const struct rfx_tensor *end = &g->base->nodes[g->last].out;
    struct rfx_range next[RFX_GROUP_MAX_NODES];
    if (out.hi >= (axis == 0 ? end->h : end->w)) return;
    rfx_group_needs(g, axis, (struct rfx_range){out.hi, out.hi + 1}, next);
    for (int i = 0; i <= g->last - g->first; i++)
        if (next[i].lo < next[i].hi && need[i].lo < need[i].hi && next[i].lo < need[i].lo)
            fail_msg("node %d, axis %d: a later step needs rows from %lld, an earlier from %lld",
                     g->first + i, axis, (long long)next[i].lo, (long long)need[i].lo);
}

/* What the group's node says of its inputs is what its nodes say one by one, for ranges at borders
 * and away from them. */
static void check_reach(const struct rfx_group_attr *g, struct test_rng *rng) {
    struct rfx_graph *graph;
    struct rfx_error err = {{0}};
    if (rfx_graph_group(g->base, g, 1, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    const struct rfx_node *node = &graph->nodes[g->last];
    for (int i = 0; i < 60; i++) {
        int axis = i % 2;
        int64_t n = axis == 0 ? node->out.h : node->out.w;
        struct rfx_range out = {i % 3 == 0 ? 0 : test_rng_int(rng, 0, n - 1), n};
        if (i % 5 != 0) out.hi = test_rng_int(rng, out.lo + 1, n);
        for (int k = 0; k < node->n_in; k++) {
            struct rfx_range by_nodes = rfx_group_in_range_by_nodes(node, k, axis, out);
            struct rfx_range r = rfx_op_in_range(graph, node, k, axis, out);
            if (r.lo != by_nodes.lo || r.hi != by_nodes.hi)
                fail_msg(
                    "nodes %d..%d, axis %d, input %d, out %lld..%lld: %lld..%lld, by nodes "
                    "%lld..%lld",
                    g->first, g->last, axis, k, (long long)out.lo, (long long)out.hi,
                    (long long)r.lo, (long long)r.hi, (long long)by_nodes.lo,
                    (long long)by_nodes.hi);
        }
        struct rfx_group_attr slow = *g; /* without what rfx_graph_group finds */
        assert_int_equal(rfx_group_is_inside(&node->attr.group, axis, out),
                         rfx_group_is_inside(&slow, axis, out));
    }
    rfx_graph_free(graph);
}

static int check_groups_of(const struct rfx_graph *graph, struct test_rng *rng) {
    int checked = 0;
    for (int first = 0; first < graph->n_nodes; first++)
        for (int last = first + 1; last < graph->n_nodes; last++) {
            if (rfx_group_refusal(graph, first, last) != NULL) continue;
            struct rfx_group_attr g = {.base = graph, .first = first, .last = last};
            const struct rfx_tensor *t = &graph->nodes[last].out;
            for (int axis = 0; axis < 2; axis++) {
                int64_t n = axis == 0 ? t->h : t->w, lo = test_rng_int(rng, 0, n - 1);
                check_axis(&g, axis, (struct rfx_range){lo, test_rng_int(rng, lo + 1, n)});
                check_axis(&g, axis, (struct rfx_range){n - 1, n});
                check_axis(&g, axis, (struct rfx_range){0, n});
            }
            check_reach(&g, rng);
            checked++;
        }
    return checked;
}

static void needs_and_extents(void **state) {
    int checked = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct random_graph_options options = random_graph_defaults();
        struct test_rng rng = test_rng_make(seed);
        options.spatial_only = true;
        options.max_size = seed % 3 == 0 ? 5 : 14;
        options.max_nodes = 16;
        options.quantised = 25;
        struct rfx_graph *graph = random_graph_make(mem, seed, &options);
        bool small = true;
        for (int i = 0; i < graph->n_nodes; i++)
            small &= graph->nodes[i].out.h <= MAX_SIZE && graph->nodes[i].out.w <= MAX_SIZE;
        if (small) checked += check_groups_of(graph, &rng);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    fprintf(stderr, "test_group: %d groups of random graphs\n", checked);
    assert_true(checked > 1000);
}

static void expect(const char *why, const char *words) {
    if (why == NULL || strstr(why, words) == NULL)
        fail_msg("wanted \"%s\", got \"%s\"", words, why != NULL ? why : "may be a group");
}

static void refusals(void **state) {
    struct small_plan_case f = small_plan_case_begin(24, 20);
    (void)state;
    assert_null(rfx_group_refusal(f.graph, A, SUM));
    assert_null(rfx_group_refusal(f.graph, A, C));
    assert_null(rfx_group_refusal(f.graph, B, SUM));
    assert_null(rfx_group_refusal(f.graph, SUM, C));
    expect(rfx_group_refusal(f.graph, A, A), "fewer than two");
    expect(rfx_group_refusal(f.graph, C, A), "fewer than two");
    expect(rfx_group_refusal(f.graph, -1, A), "fewer than two");
    expect(rfx_group_refusal(f.graph, C, POOL + 1), "fewer than two");
    expect(rfx_group_refusal(f.graph, A, B), "read outside"); /* a, by sum */
    expect(rfx_group_refusal(f.graph, INPUT, A), "nothing is computed");
    expect(rfx_group_refusal(f.graph, C, POOL), "not local");
    small_plan_case_end(&f);
}

/* A chain of `n` affine nodes; `output`: node 1 is an output too. */
static struct rfx_graph *chain(struct rfx_memory *mem, int n, bool output) {
    struct rfx_graph *graph = NULL;
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "x"};
    static const struct rfx_fuse_options nothing = {0};
    char name[16];
    int last = -1;
    assert_int_equal(rfx_graph_create(mem, "chain", &graph, NULL), RFX_OK);
    node.attr.input.c = 2;
    node.attr.input.h = node.attr.input.w = 9;
    assert_int_equal(rfx_graph_add(graph, &node, &last, NULL), RFX_OK);
    for (int i = 0; i < n; i++) {
        int in = last;
        (void)snprintf(name, sizeof name, "n%d", i);
        struct rfx_node act = {
            .op = RFX_OP_CROP, .name = name, .n_in = 1, .in = &in}; /* the whole map */
        act.attr.crop.sy = act.attr.crop.sx = 1;
        act.attr.crop.oh = act.attr.crop.ow = 9;
        assert_int_equal(rfx_graph_add(graph, &act, &last, NULL), RFX_OK);
    }
    assert_int_equal(rfx_graph_add_output(graph, last, "y", NULL), RFX_OK);
    if (output) assert_int_equal(rfx_graph_add_output(graph, 1, "kept", NULL), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, &nothing, NULL), RFX_OK);
    return graph;
}

static void lengths_and_outputs(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = chain(mem, RFX_GROUP_MAX_NODES + 1, false);
    (void)state;
    assert_null(rfx_group_refusal(graph, 1, RFX_GROUP_MAX_NODES));
    expect(rfx_group_refusal(graph, 1, RFX_GROUP_MAX_NODES + 1), "more than 12");
    rfx_graph_free(graph);
    graph = chain(mem, 3, true);
    assert_null(rfx_group_refusal(graph, 2, 3));
    expect(rfx_group_refusal(graph, 1, 3), "read outside"); /* by the user */
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void grouped_graphs(void **state) {
    struct small_plan_case f = small_plan_case_begin(24, 20);
    struct rfx_group_attr group = {
        .first = A, .last = SUM, .strip_cols = 7, .strips = 1, .step_rows = 2};
    struct rfx_graph *grouped = NULL;
    (void)state;
    assert_int_equal(rfx_graph_group(f.graph, &group, 1, &grouped, NULL), RFX_OK);
    assert_ptr_equal(grouped->base, f.graph);
    assert_int_equal(grouped->n_nodes, f.graph->n_nodes);
    assert_true(grouped->held_bytes > f.graph->held_bytes);
    for (int i = 0; i < grouped->n_nodes; i++) {
        const struct rfx_node *node = &grouped->nodes[i], *base = &f.graph->nodes[i];
        assert_string_equal(node->name, base->name);
        assert_int_equal(node->out.elems, base->out.elems);
        if (i != A && i != B && i != SUM) assert_int_equal(node->op, base->op);
    }
    assert_int_equal(grouped->nodes[A].op, RFX_OP_INNER);
    assert_int_equal(grouped->nodes[B].op, RFX_OP_INNER);
    assert_int_equal(grouped->nodes[SUM].op, RFX_OP_GROUP);
    assert_int_equal(grouped->nodes[SUM].n_in, 1);
    assert_int_equal(grouped->nodes[SUM].in[0], INPUT);
    static const int consumers[] = {1, 0, 0, 1, 1, 1};
    for (int i = 0; i <= POOL; i++) assert_int_equal(grouped->n_consumers[i], consumers[i]);
    /* Two rows of sum need four of b's input, six of the image; b's own two, a's four. */
    int64_t rows[RFX_GROUP_MAX_NODES];
    rfx_group_extents(&grouped->nodes[SUM].attr.group, 0, 2, rows);
    assert_int_equal(rows[A - A], 4);
    assert_int_equal(rows[B - A], 2);
    assert_int_equal(rows[SUM - A], 2);
    struct rfx_rect need =
        rfx_op_in_rect(grouped, &grouped->nodes[SUM], 0, rfx_rect_make(10, 12, 5, 6));
    assert_int_equal(need.y0, 8);
    assert_int_equal(need.y1, 14);
    assert_int_equal(need.x0, 3);
    assert_int_equal(need.x1, 8);
    /* a: 4 rows of 9 columns, b: 2 rows of 7; 4 channels of 4 bytes; aligned to 64 */
    assert_int_equal(rfx_group_ring_bytes(&grouped->nodes[SUM].attr.group),
                     rfx_align_up(4 * 9 * 16) + rfx_align_up(2 * 7 * 16));
    assert_int_equal(rfx_group_strips(&grouped->nodes[SUM].attr.group, 20), 3);
    /* of 80 columns, 16 each: five, six for two threads or three, that none has one more */
    struct rfx_group_attr wide = {.strip_cols = 16, .strips = 1};
    assert_int_equal(rfx_group_strips(&wide, 80), 5);
    wide.strips = 4;
    assert_int_equal(rfx_group_strips(&wide, 80), 6);
    assert_int_equal(rfx_group_strips(&wide, 32), 4);
    assert_int_equal(rfx_group_strips(&wide, 24), 3); /* of 8 columns at least */
    wide.strips = 6;
    assert_int_equal(rfx_group_strips(&wide, 112), 9);
    rfx_graph_free(grouped);
    small_plan_case_end(&f);
}

static enum rfx_status group_and_free(struct rfx_memory *mem, void *context,
                                      struct rfx_error *err) {
    struct rfx_graph *graph = context, *grouped = NULL;
    struct rfx_memory *own = graph->mem;
    struct rfx_group_attr groups[2] = {
        {.first = A, .last = SUM, .strip_cols = 7, .strips = 1, .step_rows = 2}};
    graph->mem = mem; /* for the allocations of the grouped graph alone */
    enum rfx_status status = rfx_graph_group(graph, groups, 1, &grouped, err);
    if (status == RFX_OK) rfx_graph_free(grouped);
    graph->mem = own;
    return status;
}

static void failing_allocations(void **state) {
    struct small_plan_case f = small_plan_case_begin(24, 20);
    (void)state;
    assert_true(test_fail_each_allocation(group_and_free, f.graph) > 10);
    small_plan_case_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_and_extents),   cmocka_unit_test(refusals),
        cmocka_unit_test(lengths_and_outputs), cmocka_unit_test(grouped_graphs),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
