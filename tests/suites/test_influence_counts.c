/* Brute-force proof of the analysis on random networks, its numbers: receptive fields against the
 * definitions of the ops composed tap by tap, planned MACs against MACs counted one by one.
 * RFX_CASES (default 2000) from RFX_SEED. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rf_analysis/analysis.h"
#include "rf_analysis/regions.h"
#include "tests/support/oracle/influence.h"
#include "tests/support/oracle/influence_case.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/splits.h"

/* --- receptive fields on images so large that the middle sees no border --- */

/* A transposed convolution that leaves inputs out between its taps: the field is the hull of the
 * undilated window there. */
static bool has_holes(const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    return node->op == RFX_OP_CONV_TRANSPOSE &&
           (a->dh > 1 || a->dw > 1 || a->kh < a->sh || a->kw < a->sw);
}

/* Whether one number says what the node sees: not after joins of maps that move at different
 * rates, broadcasts along the axis, or resizes whose rate is not the ratio of the sizes. */
static void mark_uniform(const struct rfx_graph *graph, const struct rfx_analysis *analysis,
                         int axis, bool *uniform) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        const struct rfx_ratio *jump = NULL;
        uniform[i] = !analysis->layers[i].global && node->op != RFX_OP_RESIZE && !has_holes(node);
        for (int k = 0; k < node->n_in; k++) {
            const struct rfx_node *in = &graph->nodes[node->in[k]];
            if (in->op == RFX_OP_CONST_MAP) continue;
            const struct rfx_ratio *r = &analysis->layers[node->in[k]].field[axis].jump;
            bool same = jump == NULL || (jump->num == r->num && jump->den == r->den);
            uniform[i] = uniform[i] && uniform[node->in[k]] && same &&
                         rfx_node_extent(in, (enum rfx_axis)axis) > 1;
            jump = r;
        }
    }
}

/* Whether positions of a node's map come from behind the end of its input, which begins again
 * there: one number says where the others are. */
static bool is_wrapped(const struct rfx_graph *graph, const struct rfx_node *node, int axis,
                       struct rfx_range at) {
    if (node->op != RFX_OP_PAD || node->attr.pad.mode != RFX_PAD_WRAP) return false;
    const struct rfx_pads *pads = &node->attr.pad.pads;
    int64_t before = axis == 0 ? pads->top : pads->left;
    int64_t n = rfx_node_extent(&graph->nodes[node->in[0]], (enum rfx_axis)axis);
    return at.lo - before < 0 || at.hi - before > n;
}

/* Whether positions `out` of a node are computed without touching the border of any map. */
static bool sees_no_border(const struct rfx_graph *graph, int node, int axis,
                           struct rfx_range out) {
    struct rfx_range *need = calloc((size_t)graph->n_nodes, sizeof *need);
    bool inside = true;
    assert_non_null(need);
    influence_need(graph, node, axis, out, true, need);
    for (int i = 0; i <= node; i++) {
        int64_t n = rfx_node_extent(&graph->nodes[i], (enum rfx_axis)axis);
        bool constant = graph->nodes[i].op == RFX_OP_CONST_MAP;
        if (need[i].lo >= need[i].hi || constant) continue;
        inside &= need[i].lo > 0 && need[i].hi < n;
        inside &= !is_wrapped(graph, &graph->nodes[i], axis, need[i]);
    }
    free(need);
    return inside;
}

/* Returns whether the node has a middle that sees no border. */
static bool check_field(const struct influence_case *c, int i, int axis,
                        const struct rfx_axis_field *field, const struct rfx_range *hulls) {
    int64_t n = rfx_node_extent(&c->graph->nodes[i], (enum rfx_axis)axis), period = field->period;
    int64_t o = n / 2 / period * period, step = period * field->jump.num / field->jump.den;
    struct rfx_range middle = {o, o + 2 * period};
    if (middle.hi > n || !sees_no_border(c->graph, i, axis, middle)) return false;
    int64_t largest = 0;
    for (int64_t p = middle.lo; p < middle.hi; p++)
        largest = hulls[p].hi - hulls[p].lo > largest ? hulls[p].hi - hulls[p].lo : largest;
    if (largest == 0 && field->size_px == 0) return false; /* made of constants */
    int64_t padding = o / period * step - hulls[o].lo, moved = hulls[o + period].lo - hulls[o].lo;
    if (largest == field->size_px && padding == field->padding_px && moved == step) return true;
    fprintf(stderr,
            "axis %d: brute force says field %lld, padding %lld, %lld pixels per %lld outputs; the "
            "analysis %lld, %lld, %lld\n",
            axis, (long long)largest, (long long)padding, (long long)moved, (long long)period,
            (long long)field->size_px, (long long)field->padding_px, (long long)step);
    influence_case_fail(c, "the receptive field differs", i);
    return false;
}

static int64_t field_case(struct influence_case *c) {
    struct rfx_analysis *analysis = NULL;
    struct rfx_range **hulls = calloc((size_t)c->graph->n_nodes, sizeof *hulls);
    bool *uniform = calloc((size_t)c->graph->n_nodes, sizeof *uniform);
    int64_t checked = 0;
    assert_true(hulls != NULL && uniform != NULL);
    assert_int_equal(rfx_analysis_create(c->graph, &analysis, NULL), RFX_OK);
    for (int axis = 0; axis < 2; axis++) {
        influence_hulls(c->graph, c->graph->input, axis, hulls);
        mark_uniform(c->graph, analysis, axis, uniform);
        for (int i = 0; i < c->graph->n_nodes; i++)
            if (uniform[i] && c->graph->nodes[i].op != RFX_OP_CONST_MAP &&
                check_field(c, i, axis, &analysis->layers[i].field[axis], hulls[i]))
                checked++;
        influence_hulls_free(c->graph, hulls);
    }
    rfx_analysis_free(analysis);
    free(uniform);
    free(hulls);
    return checked;
}

static void fields_are_what_the_taps_reach(void **state) {
    (void)state;
    int64_t n = influence_case_count("fields", 2000), first = test_env_int("RFX_SEED", 1),
            checked = 0;
    for (int64_t i = 0; i < n; i++) {
        struct influence_case c = influence_case_begin((uint64_t)(first + i) + 2000000, 700, 10);
        checked += field_case(&c);
        influence_case_end(&c);
    }
    fprintf(stderr, "%lld fields\n", (long long)checked);
    assert_true(checked >= 4 * n);
}

/* --- MACs --- */

static uint64_t planned_macs(const struct influence_case *c, struct rfx_plan_request request) {
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    const struct rfx_tensor *t = &c->graph->nodes[c->graph->input].out;
    request.source =
        (struct rfx_source_traits){.h = t->h, .w = t->w, .c = t->c, .random_access = true};
    request.threads = 1;
    if (rfx_plan_create(c->graph, &request, &plan, &err) != RFX_OK)
        influence_case_fail(c, err.text, -1);
    uint64_t macs = plan->macs;
    rfx_plan_free(plan);
    return macs;
}

static bool has_op(const struct rfx_graph *graph, enum rfx_op op) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op == op) return true;
    return false;
}

static void mac_case(struct influence_case *c) {
    const struct rfx_graph *graph = c->graph;
    uint64_t whole = influence_count_tiled(graph, -1, 0, 0);
    if (planned_macs(c, (struct rfx_plan_request){.asked = rfx_ask_whole()}) != whole)
        influence_case_fail(c, "planned MACs are not the counted ones", -1);
    int *splits = calloc((size_t)graph->n_nodes, sizeof *splits);
    assert_non_null(splits);
    int n = rfx_splits_list(graph, splits);
    if (n > 0) {
        int split = splits[test_rng_int(&c->rng, 0, n - 1)];
        struct rfx_plan_request request = {.split = graph->nodes[split].name};
        int64_t down = test_rng_int(&c->rng, 1, 5), across = test_rng_int(&c->rng, 1, 5);
        request.asked = rfx_ask_tiles(down, across);
        uint64_t tiled = influence_count_tiled(graph, split, down, across);
        if (planned_macs(c, request) != tiled)
            influence_case_fail(c, "planned MACs of tiles are not the counted ones", split);
    }
    free(splits);
}

/* Transposed convolutions are left out: their formula counts an average
 * (layers/conv/conv_transpose.c). */
static void macs_are_counted(void **state) {
    (void)state;
    int64_t n = influence_case_count("MACs", 2000), first = test_env_int("RFX_SEED", 1), done = 0;
    for (int64_t i = 0; i < n; i++) {
        struct influence_case c = influence_case_begin((uint64_t)(first + i) + 1000000, 30, 12);
        if (!has_op(c.graph, RFX_OP_CONV_TRANSPOSE)) {
            mac_case(&c);
            done++;
        }
        influence_case_end(&c);
    }
    assert_true(done * 2 > n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_what_the_taps_reach),
        cmocka_unit_test(macs_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
