/* Untiled runs row by row: the bridge from a network to tiles, and both placers under one
 * simulation.
 *
 * The simulation knows no lifetimes: it walks through the nodes as the executor does, writes on
 * every unit of memory which row of which map lies there, and looks up every row that a step reads
 * before as well as after the step has written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_build.h"
#include "tools/study/row_run.h"

struct simulation {
    const struct rfx_row_run *run;
    const size_t *offsets; /* [run->n] */
    const bool *upwards;   /* per slide, or NULL */
    size_t unit;           /* bytes that all rows and offsets are multiples of */
    uint32_t *map;         /* per unit: node * 2^16 + row + 1 */
};

static const struct rfx_tensor *tensor_of(const struct simulation *s, int node) {
    return &s->run->graph->nodes[node].out;
}

/* Plain tensors are one row. */
static int64_t height(const struct rfx_tensor *t) {
    return t->layout == RFX_LAYOUT_NHWC ? t->h : 1;
}

static size_t row_bytes(const struct rfx_tensor *t) {
    return (size_t)(t->elems / height(t)) * rfx_type_bytes(t->type);
}

static uint32_t *row_at(const struct simulation *s, int node, int64_t y, size_t *units) {
    size_t bytes = row_bytes(tensor_of(s, node));
    *units = bytes / s->unit;
    return s->map + (s->offsets[s->run->map[node]] + (size_t)y * bytes) / s->unit;
}

static bool row_is_there(const struct simulation *s, int node, int64_t y) {
    size_t units;
    const uint32_t *row = row_at(s, node, y, &units);
    for (size_t u = 0; u < units; u++)
        if (row[u] != ((uint32_t)node << 16) + (uint32_t)y + 1) return false;
    return true;
}

/* Whether all that a node reads for rows [lo, hi) of its output is there. */
static bool inputs_are_there(const struct simulation *s, int node, int64_t lo, int64_t hi) {
    const struct rfx_graph *graph = s->run->graph;
    const struct rfx_node *n = &graph->nodes[node];
    for (int k = 0; k < n->n_in; k++) {
        if (s->run->map[n->in[k]] < 0) continue;
        const struct rfx_tensor *in = tensor_of(s, n->in[k]);
        struct rfx_rect need = rfx_op_in_rect(graph, n, k, rfx_rect_make(lo, hi, 0, n->out.w));
        bool all = !rfx_op_def(n->op)->spatial || in->layout != RFX_LAYOUT_NHWC;
        int64_t from = all ? 0 : rfx_max_i64(need.y0, 0);
        int64_t to = all ? height(in) : rfx_min_i64(need.y1, height(in));
        for (int64_t y = from; y < to; y++)
            if (!row_is_there(s, n->in[k], y)) return false;
    }
    return true;
}

static bool run_node(const struct simulation *s, int node) {
    const struct rfx_node *n = &s->run->graph->nodes[node];
    bool by_rows =
        rfx_op_def(n->op)->spatial && n->op != RFX_OP_INPUT && n->out.layout == RFX_LAYOUT_NHWC;
    int64_t h = height(&n->out);
    struct rfx_row_steps whole = {{0, h}, h, 0};
    struct rfx_row_steps rows =
        by_rows ? rfx_row_steps_of(s->run->graph, node, rfx_row_step_rows(s->run->graph, node))
                : whole;
    int64_t steps = rfx_row_step_count(&rows);
    bool upwards = false;
    for (int k = 0; s->upwards != NULL && k < s->run->n_slides; k++)
        upwards |= s->upwards[k] && s->run->slides[k].node == node;
    for (int64_t i = 0; i < steps; i++) {
        int64_t lo = rfx_row_step_at(&rows, upwards ? steps - 1 - i : i).lo;
        int64_t hi = rfx_row_step_at(&rows, upwards ? steps - 1 - i : i).hi;
        if (!inputs_are_there(s, node, lo, hi)) return false;
        for (int64_t y = lo; y < hi && s->run->map[node] >= 0; y++) {
            size_t units;
            uint32_t *row = row_at(s, node, y, &units);
            for (size_t u = 0; u < units; u++) row[u] = ((uint32_t)node << 16) + (uint32_t)y + 1;
        }
        if (!inputs_are_there(s, node, lo, hi)) return false;
    }
    return true;
}

static bool simulate(const struct rfx_row_run *run, const size_t *offsets, const bool *upwards,
                     size_t arena) {
    struct simulation s = {run, offsets, upwards, RFX_ALIGNMENT_BYTES, NULL};
    for (int m = 0; m < run->n; m++) {
        const struct rfx_tensor *t = tensor_of(&s, run->nodes[m]);
        s.unit = (size_t)rfx_gcd_i64((int64_t)s.unit, (int64_t)row_bytes(t));
        assert_int_equal(offsets[m] % RFX_ALIGNMENT_BYTES, 0);
        assert_true(offsets[m] + (size_t)t->elems * rfx_type_bytes(t->type) <= arena);
    }
    s.map = calloc(arena / s.unit + 1, sizeof *s.map);
    assert_non_null(s.map);
    bool good = true;
    for (int i = 0; i < run->graph->n_nodes && good; i++) good = run_node(&s, i);
    free(s.map);
    return good;
}

/* The maps that nodes of the network make for each other. */
static int list_maps(const struct rfx_graph *graph, int *nodes) {
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op != RFX_OP_INPUT && !rfx_node_is_constant(&graph->nodes[i]))
            nodes[n++] = i;
    return n;
}

static struct rfx_row_run *make_run(const struct rfx_graph *graph) {
    struct rfx_row_run *run = NULL;
    int *nodes = calloc((size_t)graph->n_nodes, sizeof *nodes);
    assert_non_null(nodes);
    int n = list_maps(graph, nodes);
    assert_int_equal(rfx_row_run_create(graph->mem, graph, nodes, n, &run, NULL), RFX_OK);
    free(nodes);
    return run;
}

#define ROW 64 /* bytes of a row of both maps below */

static void check_tiles(const struct rfx_tiles_problem *tiles, int tensor, int n,
                        const int64_t (*expected)[4]) {
    const struct rfx_tile_item *item = &tiles->items[tiles->first_item[tensor]];
    assert_int_equal(tiles->first_item[tensor + 1] - tiles->first_item[tensor], n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(item[i].first, expected[i][0]);
        assert_int_equal(item[i].last, expected[i][1]);
        assert_int_equal(item[i].offset, expected[i][2] * ROW);
        assert_int_equal(item[i].list.n, 1);
        assert_int_equal(item[i].list.chunks[0].bytes, expected[i][3] * ROW);
    }
}

/* Two convolutions of 3 x 3 with padding 1, the first with stride 2, on 8 x 8 pixels, a row a step:
 * the image, made at 0; row y of "a", made at 1 + y of rows 2 y - 1 to 2 y + 1; row y of "b", made
 * at 5 + y of rows y - 1 to y + 1. The caller wants bytes for the image and for "a". */
static void rows_of_two_convolutions(void **state) {
    (void)state;
    static const int64_t image[][4] = {/* first, last, row, rows */
                                       {0, 1, 0, 1},
                                       {0, 2, 1, 2},
                                       {0, 3, 3, 2},
                                       {0, 4, 5, 3},
                                       {0, 0, 0, 8}}; /* whole */
    static const int64_t a[][4] = {
        {1, 6, 0, 1}, {2, 7, 1, 1}, {3, 8, 2, 1}, {4, 8, 3, 1}, {4, 4, 0, 4}};
    static const int64_t image_up[][4] = {
        {0, 4, 0, 2}, {0, 3, 2, 2}, {0, 2, 4, 2}, {0, 1, 6, 2}, {0, 0, 0, 8}};
    static const size_t tile_aware[] = {12 * ROW, 9 * ROW, 12 * ROW}; /* size, lifetime, peers */
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 8, 8);
    struct rfx_row_run *run = NULL;
    struct rfx_tiles_problem *tiles = NULL;
    static const int nodes[] = {0, 1};
    bool upwards = true;
    size_t bytes;
    size_t offsets[2];
    assert_int_equal(rfx_row_run_create(mem, graph, nodes, 2, &run, NULL), RFX_OK);
    assert_int_equal(rfx_row_run_bound(run, &bytes, NULL), RFX_OK);
    assert_int_equal(bytes, 9 * ROW); /* all rows of the image and the first of "a" */
    assert_int_equal(run->n_slides, 1);
    assert_int_equal(rfx_row_run_tiles(run, &upwards, &tiles, NULL), RFX_OK);
    check_tiles(tiles, 0, 5, image_up);
    rfx_tiles_problem_free(tiles);
    assert_int_equal(rfx_row_run_tiles(run, NULL, &tiles, NULL), RFX_OK);
    check_tiles(tiles, 0, 5, image);
    check_tiles(tiles, 1, 5, a);
    /* over the image "a" cannot slide, under it it can: whoever is laid first decides */
    for (int order = 0; order < RFX_TILES_COUNT; order++) {
        assert_int_equal(rfx_tiles_place(tiles, (enum rfx_tiles_order)order, offsets, &bytes, NULL),
                         RFX_OK);
        assert_int_equal(bytes, tile_aware[order]);
        assert_true(simulate(run, offsets, NULL, bytes));
    }
    /* the simulation can say no: one row less between them */
    offsets[0] = ROW;
    offsets[1] = 0;
    assert_true(simulate(run, offsets, NULL, 9 * ROW));
    offsets[0] = 0;
    assert_false(simulate(run, offsets, NULL, 9 * ROW));
    assert_int_equal(rfx_row_run_place(run, offsets, &upwards, &bytes, NULL), RFX_OK);
    assert_false(upwards);
    assert_int_equal(bytes, 9 * ROW + 2 * RFX_RED_ZONE_BYTES);
    rfx_tiles_problem_free(tiles);
    rfx_row_run_free(run);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* All placements of one network: valid, and not below the bound. */
static void check_network(const char *name, int64_t h, int64_t w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {.h = h, .w = w};
    struct rfx_graph *graph = NULL;
    struct rfx_tiles_problem *tiles = NULL;
    size_t bound;
    size_t arena;
    assert_int_equal(rfx_builtin_build(mem, name, &options, &graph, NULL), RFX_OK);
    struct rfx_row_run *run = make_run(graph);
    size_t *offsets = calloc((size_t)run->n, sizeof *offsets);
    bool *upwards = calloc((size_t)run->n_slides + 1, sizeof *upwards);
    assert_true(offsets != NULL && upwards != NULL);
    assert_int_equal(rfx_row_run_bound(run, &bound, NULL), RFX_OK);
    assert_int_equal(rfx_row_run_tiles(run, NULL, &tiles, NULL), RFX_OK);
    for (int order = 0; order < RFX_TILES_COUNT; order++) {
        assert_int_equal(rfx_tiles_place(tiles, (enum rfx_tiles_order)order, offsets, &arena, NULL),
                         RFX_OK);
        if (arena < bound || !simulate(run, offsets, NULL, arena) ||
            !rfx_tiles_are_valid(tiles, offsets, arena))
            fail_msg("%s, %s: not valid in %zu bytes, the bound is %zu", name,
                     rfx_tiles_order_name((enum rfx_tiles_order)order), arena, bound);
    }
    rfx_tiles_problem_free(tiles);
    assert_int_equal(rfx_row_run_place(run, offsets, upwards, &arena, NULL), RFX_OK);
    assert_int_equal(rfx_row_run_tiles(run, upwards, &tiles, NULL), RFX_OK);
    if (arena < bound || !simulate(run, offsets, upwards, arena) ||
        !rfx_tiles_are_valid(tiles, offsets, arena))
        fail_msg("%s, slides: not valid in %zu bytes, the bound is %zu", name, arena, bound);
    rfx_tiles_problem_free(tiles);
    free(upwards);
    free(offsets);
    rfx_row_run_free(run);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void every_network(void **state) {
    (void)state;
    int count;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int b = 0; b < count; b++) {
        const char *name = list[b].name;
        bool enlarges = strcmp(name, "srgan") == 0 || strcmp(name, "real_esrgan_compact") == 0;
        bool much = strcmp(name, "real_esrgan") == 0 || strcmp(name, "vae_decoder") == 0;
        int64_t less = much ? 4 : 1, largest = much ? 128 : enlarges ? 256 : 512;
        check_network(name, 224 / less, 224 / less);
        check_network(name, largest, largest / 4 * 3);
    }
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_graph *graph = context;
    static const int nodes[] = {0, 1};
    struct rfx_row_run *run = NULL;
    struct rfx_tiles_problem *tiles = NULL;
    size_t bound;
    enum rfx_status status = rfx_row_run_create(mem, graph, nodes, 2, &run, err);
    if (status == RFX_OK) status = rfx_row_run_tiles(run, NULL, &tiles, err);
    if (status == RFX_OK) status = rfx_row_run_bound(run, &bound, err);
    rfx_tiles_problem_free(tiles);
    rfx_row_run_free(run);
    return status;
}

static void allocations_may_fail(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 8, 8);
    assert_true(test_fail_each_allocation(build, graph) >= 20);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_two_convolutions),
                                       cmocka_unit_test(every_network),
                                       cmocka_unit_test(allocations_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
