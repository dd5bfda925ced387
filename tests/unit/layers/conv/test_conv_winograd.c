/* Winograd convolutions: against the naive reference, any rectangle against the whole run bit by
 * bit, what a rectangle reads, the same bits with every instruction set, refusals in words. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
// clang-format on

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "tests/support/oracle/reference.h"
#include "tests/support/run/op_cases.h"

struct shape {
    int64_t ic, oc, h, w;
    struct rfx_pads pads;
    bool residual, bias, scale;
    enum rfx_act_kind act;
    int64_t edge; /* of its tiles: 3 with stride 2 */
};

/* With a tile that begins at row `from`. */
static void begin_from(struct op_case *c, const struct shape *s, uint64_t seed, int64_t from) {
    int64_t stride = s->edge == 3 ? 2 : 1;
    int64_t oh = (s->h + s->pads.top + s->pads.bottom - 3) / stride + 1,
            ow = (s->w + s->pads.left + s->pads.right - 3) / stride + 1;
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(s->ic, s->h, s->w),
                                         rfx_tensor_nhwc(s->oc, oh, ow)};
    const int64_t dims[4] = {s->oc, s->ic, 3, 3};
    op_case_begin(c, s->residual ? 2 : 1, inputs, seed);
    c->graph->conv = RFX_CONV_WINOGRAD;
    struct rfx_node node = {
        .op = RFX_OP_CONV,
        .act = {s->act, 0.1f, 0.9f, -1},
        .residual = s->residual,
        .attr.conv = {3, 3, stride, stride, 1, 1, s->pads, 0, 0, 1, 0, s->oc, -1, -1, -1},
    };
    node.attr.conv.weight = op_case_weight(c, 4, dims, -0.5f, 0.5f);
    if (s->bias) node.attr.conv.bias = op_case_weight(c, 1, &s->oc, -1.0f, 1.0f);
    if (s->scale) node.attr.conv.scale = op_case_weight(c, 1, &s->oc, 0.5f, 2.0f);
    if (s->act == RFX_ACT_PRELU) node.act.slope = op_case_weight(c, 1, &s->oc, -1.0f, 1.0f);
    if (op_case_add(c, &node) != RFX_OK) fail_msg("%s", c->err.text);
    struct rfx_node *added = &c->graph->nodes[c->index];
    added->attr.conv.tiles_from = from;
    assert_string_equal(rfx_conv_backend_of(c->graph, added)->name, "winograd");
    if (s->edge == 0) return;
    assert_int_equal(rfx_conv_block_of(c->graph, added).h, s->edge);
    assert_int_equal(rfx_conv_block_of(c->graph, added).w, s->edge);
    assert_int_equal(rfx_conv_block_of(c->graph, added).from, from);
}

static void begin(struct op_case *c, const struct shape *s, uint64_t seed) {
    begin_from(c, s, seed, 0);
}

/* The largest error of the whole run against the reference, relative to the largest value before
 * activation. */
static double error_of(struct op_case *c) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    const struct rfx_tensor *t = &node->out;
    struct rfx_node bare = *node;
    float *whole = op_case_whole(c), *got = test_floats(t->elems), *want = test_floats(t->elems),
          *before = test_floats(t->elems);
    bare.act = (struct rfx_act){.kind = RFX_ACT_NONE, .slope = -1};
    assert_true(rfx_ref_node(c->graph, node, c->onnx_order, want));
    assert_true(rfx_ref_node(c->graph, &bare, c->onnx_order, before));
    test_nhwc_to_nchw(whole, got, t->c, t->h, t->w);
    double worst = 0.0, largest = 0.0;
    for (int64_t i = 0; i < t->elems; i++) {
        double error = fabs((double)got[i] - (double)want[i]);
        worst = error >= worst || isnan(error) ? error : worst;
        largest = fmax(largest, fabs((double)before[i]));
    }
    free(whole);
    free(got);
    free(want);
    free(before);
    return worst / largest;
}

static void check_from(const struct shape *s, uint64_t seed, int rects, int64_t from) {
    char what[200];
    struct op_case c;
    (void)snprintf(what, sizeof what,
                   "seed %llu: {%lld, %lld, %lld, %lld, {%lld, %lld, %lld, %lld}, %d, %d, %d, %d}",
                   (unsigned long long)seed, (long long)s->ic, (long long)s->oc, (long long)s->h,
                   (long long)s->w, (long long)s->pads.top, (long long)s->pads.left,
                   (long long)s->pads.bottom, (long long)s->pads.right, s->residual, s->bias,
                   s->scale, (int)s->act);
    begin_from(&c, s, seed, from);
    double error = error_of(&c);
    if (!(error < 3e-6)) fail_msg("%s: error of %g of the largest value", what, error);
    op_case_check(&c, 1e-4, rects, what); /* its tolerance is relative to 1 */
    op_case_end(&c);
}

static void check(const struct shape *s, uint64_t seed, int rects) {
    check_from(s, seed, rects, 0);
}

static void test_named_shapes(void **state) {
    (void)state;
    static const struct shape shapes[] = {
        {40, 36, 28, 29, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU, 4},
        {16, 16, 20, 20, {1, 1, 1, 1}, false, false, false, RFX_ACT_NONE, 4},
        {17, 35, 21, 33, {0, 1, 2, 0}, true, true, true, RFX_ACT_CLIP, 4},
        {20, 140, 22, 22, {0, 0, 0, 0}, false, true, false, RFX_ACT_SILU, 4},
        {16, 140, 8, 60, {1, 1, 1, 1}, true, true, true, RFX_ACT_PRELU, 4},
        {40, 24, 5, 97, {1, 2, 1, 2}, false, true, false, RFX_ACT_RELU, 4},
        {32, 20, 23, 21, {3, 4, 5, 6}, false, true, true, RFX_ACT_TANH, 4},
        {64, 33, 8, 8, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU, 2},
        {16, 47, 14, 15, {1, 1, 1, 1}, true, true, false, RFX_ACT_LEAKY_RELU, 2},
        {19, 16, 9, 17, {0, 2, 1, 0}, false, false, true, RFX_ACT_NONE, 2},
        {100, 40, 10, 10, {1, 1, 1, 1}, false, true, true, RFX_ACT_RELU, 2},
        {172, 180, 20, 20, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU, 4}, /* weights are many */
        {256, 262, 8, 8, {1, 1, 1, 1}, false, true, false, RFX_ACT_SILU, 2},
        {16, 16, 3, 1, {8, 8, 8, 8}, false, true, false, RFX_ACT_NONE, 2},
        {16, 16, 1, 1, {12, 12, 12, 12}, true, true, true, RFX_ACT_SIGMOID, 4},
        {32, 32, 24, 24, {1, 1, 1, 1}, false, false, false, RFX_ACT_NONE, 3},
        {40, 36, 27, 34, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU, 3},
        {33, 35, 29, 42, {0, 1, 2, 0}, true, true, true, RFX_ACT_CLIP, 3},
        {40, 140, 36, 23, {0, 0, 1, 1}, false, true, false, RFX_ACT_SILU, 3},
        {33, 44, 8, 62, {6, 2, 5, 7}, false, true, true, RFX_ACT_PRELU, 3},
        {200, 33, 17, 18, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU, 3}, /* sums in parts */
        {32, 33, 1, 1, {9, 9, 9, 9}, true, true, true, RFX_ACT_SIGMOID, 3},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check(&shapes[i], i, 40);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_from(&shapes[i], i + 50, 20, shapes[i].edge - 1);
    /* Factors are made, of slices of the input channels; larger maps are compared in
     * test_factors_made, since the reference is slow. */
    static const struct shape many = {512,  520,           8, 8, {1, 1, 1, 1}, true, true,
                                      true, RFX_ACT_PRELU, 2};
    struct op_case c;
    begin(&c, &many, 1);
    op_case_check(&c, 1e-4, 4, "factors that are made");
    op_case_end(&c);
}

static void test_random_shapes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 36; seed++) {
        struct test_rng r = test_rng_make(seed);
        struct shape s = {.ic = test_rng_int(&r, 16, 35), .oc = test_rng_int(&r, 16, 20)};
        int64_t least = seed % 2 == 0 ? 20 : 10;
        s.pads = (struct rfx_pads){test_rng_int(&r, 0, 3), test_rng_int(&r, 0, 3),
                                   test_rng_int(&r, 0, 3), test_rng_int(&r, 0, 3)};
        s.h = test_rng_int(&r, least + 2, least + 8);
        s.w = test_rng_int(&r, least + 2, 30);
        if (seed > 24) { /* with stride 2: tiles that are mostly whole */
            s.edge = 3;
            s.ic += 16;
            s.oc += 16;
            s.h = 6 * test_rng_int(&r, 3, 5) + test_rng_int(&r, 1, 2) - s.pads.top - s.pads.bottom;
            s.w = 6 * test_rng_int(&r, 3, 7) + test_rng_int(&r, 1, 2) - s.pads.left - s.pads.right;
        }
        s.residual = test_rng_chance(&r, 30);
        s.bias = test_rng_chance(&r, 70);
        s.scale = test_rng_chance(&r, 50);
        s.act = (enum rfx_act_kind)test_rng_int(&r, 0, RFX_ACT_TANH);
        check_from(&s, seed, 12, (int64_t)seed % (seed > 24 ? 3 : 2));
    }
}

/* A filter of a layer is what it is in a smaller layer, bit by bit: the large one makes factors
 * while they are used, slice by slice, the small one has them packed. */
static void check_made(int64_t ic, int64_t oc, int64_t size, int64_t edge) {
    enum { FEW = 40 };
    const struct shape large = {ic,    oc,   size, size,         {1, 1, 1, 1},
                                false, true, true, RFX_ACT_NONE, edge};
    struct shape small = large;
    struct op_case a, b;
    small.oc = FEW;
    begin(&a, &large, 5);
    begin(&b, &small, 5); /* the same image */
    const struct rfx_conv_attr *from = &a.graph->nodes[a.index].attr.conv;
    const struct rfx_conv_attr *to = &b.graph->nodes[b.index].attr.conv;
    const int weights[][3] = {{from->weight, to->weight, 9 * (int)ic},
                              {from->bias, to->bias, 1},
                              {from->scale, to->scale, 1}};
    for (int i = 0; i < 3; i++)
        memcpy(rfx_graph_owned_weight(b.graph, weights[i][1]),
               rfx_graph_owned_weight(a.graph, weights[i][0]),
               (size_t)FEW * (size_t)weights[i][2] * sizeof(float));
    size_t bytes = rfx_conv_winograd.packed_bytes(a.graph, &a.graph->nodes[a.index]);
    assert_true(bytes < (size_t)(ic * (oc + 32) * 10) * sizeof(float));
    bytes = rfx_conv_winograd.packed_bytes(b.graph, &b.graph->nodes[b.index]);
    assert_true(bytes >= (size_t)(ic * FEW * (edge + 2) * (edge + 2)) * sizeof(float));
    float *made = op_case_whole(&a), *kept = op_case_whole(&b);
    int64_t pixels = a.graph->nodes[a.index].out.h * a.graph->nodes[a.index].out.w;
    for (int64_t i = 0; i < pixels; i++)
        assert_memory_equal(made + i * oc, kept + i * FEW, FEW * sizeof *made);
    free(kept);
    a.graph->nodes[a.index].attr.conv.keeps_factors = true;
    bytes = rfx_conv_winograd.packed_bytes(a.graph, &a.graph->nodes[a.index]);
    assert_true(bytes >= (size_t)(ic * oc * (edge + 2) * (edge + 2)) * sizeof(float));
    kept = op_case_whole(&a);
    assert_memory_equal(made, kept, (size_t)(pixels * oc) * sizeof *made);
    free(made);
    free(kept);
    op_case_end(&a);
    op_case_end(&b);
}

static void test_factors_made(void **state) {
    (void)state;
    check_made(384, 330, 20, 4);
    check_made(340, 345, 23, 4);
    check_made(512, 520, 9, 2);
    check_made(512, 360, 17, 3);
    check_made(400, 431, 18, 3);
    check_made(1024, 264, 10, 2);
}

/* Every activation, with a residual and without, in all tiles. */
static void test_activations(void **state) {
    (void)state;
    for (int act = 0; act <= RFX_ACT_TANH; act++)
        for (int64_t edge = 2; edge <= 4; edge++) {
            struct shape s = {.ic = edge == 3 ? 32 : 16,
                              .oc = 33,
                              .h = edge == 3 ? 17 : 4 + 5 * edge,
                              .w = edge == 3 ? 23 : 5 + 5 * edge,
                              .pads = {1, 1, 1, 1},
                              .residual = act % 2 == 0,
                              .bias = true,
                              .act = (enum rfx_act_kind)act,
                              .edge = edge};
            check(&s, (uint64_t)act + 100, 4);
            s.residual = !s.residual;
            check(&s, (uint64_t)act + 200, 4);
        }
}

static bool marked(const float *map, const struct rfx_tensor *t, int64_t y, int64_t x) {
    return isnan(map[(y * t->w + x) * t->c]) != 0;
}

/* Whether an output position is rounded by way of input position `at`, which its region holds. With
 * stride 2 those of odd places of a window meet the middle tap alone. */
static bool is_met(const struct op_case *c, const struct shape *s, int axis, int64_t out,
                   int64_t at) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    struct rfx_range one = {out, out + 1};
    struct rfx_range own = rfx_op_endless_range(c->graph, node, 0, axis, one);
    int64_t place = at + (axis == 0 ? s->pads.top : s->pads.left);
    return s->edge != 3 || place % 2 == 0 || (at >= own.lo && at < own.hi);
}

/* A NaN in one input pixel reaches exactly those output pixels whose region holds it: regions are
 * neither too small nor larger than need be. */
static void check_reach(const struct shape *s, int64_t from) {
    struct op_case c;
    begin_from(&c, s, 7, from);
    const struct rfx_node *node = &c.graph->nodes[c.index];
    for (int64_t at = 0; at < s->h * s->w; at += 5) {
        float saved = c.values[0][at * s->ic];
        c.values[0][at * s->ic] = NAN;
        float *map = op_case_whole(&c);
        for (int64_t i = 0; i < node->out.h * node->out.w; i++) {
            int64_t y = i / node->out.w, x = i % node->out.w;
            struct rfx_rect need =
                rfx_op_in_rect(c.graph, node, 0, rfx_rect_make(y, y + 1, x, x + 1));
            int64_t iy = at / s->w, ix = at % s->w;
            bool inside = iy >= need.y0 && iy < need.y1 && ix >= need.x0 && ix < need.x1;
            inside = inside && is_met(&c, s, 0, y, iy) && is_met(&c, s, 1, x, ix);
            if (marked(map, &node->out, y, x) != inside)
                fail_msg("input %lld, %lld, output %lld, %lld: %s", (long long)iy, (long long)ix,
                         (long long)y, (long long)x, inside ? "not reached" : "reached");
        }
        free(map);
        c.values[0][at * s->ic] = saved;
    }
    op_case_end(&c);
}

static void test_reach(void **state) {
    (void)state;
    const struct shape shapes[] = {
        {16, 16, 21, 23, {1, 1, 1, 1}, false, true, false, RFX_ACT_NONE, 4},
        {16, 16, 24, 22, {0, 2, 1, 0}, false, true, false, RFX_ACT_NONE, 4},
        {16, 16, 11, 10, {1, 1, 1, 1}, false, true, false, RFX_ACT_NONE, 2},
        {32, 32, 24, 25, {1, 1, 1, 1}, false, true, false, RFX_ACT_NONE, 3},
        {32, 32, 24, 23, {0, 2, 1, 0}, false, true, false, RFX_ACT_NONE, 3},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int64_t from = 0; from < shapes[i].edge; from++) check_reach(&shapes[i], from);
}

/* What rows of the output read, by hand: from, to, and those of the input; receptive fields stay
 * the layer's own. */
static void check_regions(const struct op_case *c, const int64_t (*rows)[4], size_t n) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    const struct rfx_conv_attr *a = &node->attr.conv;
    for (size_t i = 0; i < n; i++) {
        struct rfx_range out = {rows[i][0], rows[i][1]};
        struct rfx_range in = rfx_op_in_range(c->graph, node, 0, 0, out);
        assert_int_equal(in.lo, rows[i][2]);
        assert_int_equal(in.hi, rows[i][3]);
        struct rfx_range own = rfx_op_endless_range(c->graph, node, 0, 0, out);
        assert_int_equal(own.lo, out.lo * a->sh - 1);
        assert_int_equal(own.hi, (out.hi - 1) * a->sh + 2);
    }
}

static void test_regions(void **state) {
    (void)state;
    const struct shape large = {16, 16, 22, 30, {1, 1, 1, 1}, false, false, false, RFX_ACT_NONE, 4};
    const int64_t rows[][4] = {{0, 1, -1, 4},    {1, 2, 0, 4},     {2, 3, 0, 4},  {3, 4, 0, 5},
                               {0, 4, -1, 5},    {4, 8, 3, 9},     {5, 6, 4, 8},  {5, 9, 4, 12},
                               {6, 8, 4, 9},     {7, 8, 4, 9},     {8, 9, 7, 12}, {20, 22, 19, 23},
                               {20, 21, 19, 23}, {21, 22, 20, 23}, {3, 22, 0, 23}};
    struct op_case c;
    begin(&c, &large, 1);
    const struct rfx_node *node = &c.graph->nodes[c.index];
    check_regions(&c, rows, sizeof rows / sizeof rows[0]);
    assert_int_equal(rfx_conv_rows_together(c.graph, node).h, 4);
    c.graph->conv = RFX_CONV_DIRECT;
    assert_int_equal(rfx_conv_rows_together(c.graph, node).h, 1);
    assert_int_equal(rfx_op_in_range(c.graph, node, 0, 0, (struct rfx_range){5, 6}).lo, 4);
    assert_int_equal(rfx_op_in_range(c.graph, node, 0, 0, (struct rfx_range){5, 6}).hi, 7);
    op_case_end(&c);
}

/* With stride 2 output row i has input rows 2i - 1 to 2i + 1; 3 rows are a tile. */
static void test_regions_of_stride_2(void **state) {
    (void)state;
    const struct shape large = {32, 32, 48, 48, {1, 1, 1, 1}, false, false, false, RFX_ACT_NONE, 3};
    const int64_t rows[][4] = {{0, 1, -1, 4},  {1, 2, 1, 4},     {2, 3, 1, 6},     {0, 3, -1, 6},
                               {3, 4, 5, 10},  {4, 5, 7, 10},    {5, 6, 7, 12},    {4, 8, 7, 16},
                               {8, 9, 13, 18}, {23, 24, 43, 48}, {21, 22, 41, 46}, {2, 23, 1, 46}};
    struct op_case c;
    begin(&c, &large, 1);
    check_regions(&c, rows, sizeof rows / sizeof rows[0]);
    assert_int_equal(rfx_conv_rows_together(c.graph, &c.graph->nodes[c.index]).h, 3);
    op_case_end(&c);
}

/* Tiles of rows -1 to 2, 3 to 6 and so on; columns from 0. */
static void test_regions_of_moved_tiles(void **state) {
    (void)state;
    const struct shape moved = {16, 16, 22, 30, {1, 1, 1, 1}, false, false, false, RFX_ACT_NONE, 4};
    const int64_t rows[][4] = {{0, 1, -1, 3},  {1, 2, -1, 3},    {2, 3, -1, 4},   {3, 4, 2, 7},
                               {3, 7, 2, 8},   {5, 8, 3, 11},    {6, 7, 3, 8},    {0, 3, -1, 4},
                               {7, 11, 6, 12}, {19, 22, 18, 23}, {20, 22, 19, 23}};
    struct op_case c;
    begin_from(&c, &moved, 1, 3);
    const struct rfx_node *node = &c.graph->nodes[c.index];
    check_regions(&c, rows, sizeof rows / sizeof rows[0]);
    assert_int_equal(rfx_op_in_range(c.graph, node, 0, 1, (struct rfx_range){4, 8}).lo, 3);
    assert_int_equal(rfx_op_in_range(c.graph, node, 0, 1, (struct rfx_range){4, 8}).hi, 9);
    op_case_end(&c);
}

/* Tiles that begin at a row are those of a map with as many rows of zeros before it as there are
 * from that row to the next whole tile. */
static void test_moved_tiles(void **state) {
    (void)state;
    for (int64_t edge = 2; edge <= 4; edge++)
        for (int64_t from = 1; from < edge; from++) {
            int64_t before = (edge - from) * (edge == 3 ? 2 : 1);
            int64_t size = edge == 2 ? 12 : 59; /* three hold it with more rows, too */
            struct shape moved = {33,    40,   size,  size,         {1, 1, 1, 1},
                                  false, true, false, RFX_ACT_SILU, edge};
            struct shape padded = moved;
            padded.pads.top += before;
            struct op_case a, b;
            begin_from(&a, &moved, 9, from);
            begin(&b, &padded, 9);
            float *got = op_case_whole(&a), *want = op_case_whole(&b);
            const struct rfx_tensor *map = &a.graph->nodes[a.index].out;
            assert_memory_equal(got, want + (edge - from) * map->w * map->c,
                                (size_t)map->elems * sizeof *got);
            b.graph->nodes[b.index].attr.conv.tiles_from = 1; /* it matters where they begin */
            float *other = op_case_whole(&b);
            assert_memory_not_equal(got, other + (edge - from) * map->w * map->c,
                                    (size_t)map->elems * sizeof *got);
            free(other);
            free(want);
            free(got);
            op_case_end(&a);
            op_case_end(&b);
        }
}

static const struct shape set_shapes[] = {
    {40, 50, 23, 27, {1, 1, 1, 1}, true, true, true, RFX_ACT_SILU, 4},
    {33, 18, 11, 13, {1, 0, 1, 2}, true, true, true, RFX_ACT_RELU, 2},
    {256, 462, 20, 20, {1, 1, 1, 1}, false, true, true, RFX_ACT_NONE, 4}, /* makes factors */
    {40, 50, 24, 29, {1, 1, 1, 1}, true, true, true, RFX_ACT_SILU, 3},
    {512, 360, 17, 17, {1, 1, 1, 1}, false, true, true, RFX_ACT_NONE, 3}, /* makes factors */
};
#define SET_FLOATS 200000

/* The layer's bits with the kernels of that name, made in a process of its own. */
static int64_t made_with(const char *set, const struct shape *s, float *out) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct op_case c;
        (void)setenv("RFX_KERNELS", set, 1);
        begin(&c, s, 3);
        float *map = op_case_whole(&c);
        size_t bytes = (size_t)c.graph->nodes[c.index].out.elems * sizeof *map, done = 0;
        bool right = strcmp(rfx_kernels()->name, set) == 0;
        for (ssize_t n = 1; right && n > 0 && done < bytes; done += (size_t)n)
            n = write(ends[1], (const char *)map + done, bytes - done);
        _exit(right && done == bytes ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t got = 0;
    for (ssize_t n = 1; n > 0 && got<SET_FLOATS * sizeof *out; got += n> 0 ? (size_t)n : 0)
        n = read(ends[0], (char *)out + got, SET_FLOATS * sizeof *out - got);
    (void)close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return (int64_t)(got / sizeof *out);
}

/* Must be the first test: a process that has chosen its kernels keeps them. */
static void test_instruction_sets(void **state) {
    (void)state;
    static float avx2[SET_FLOATS], avx512[SET_FLOATS];
    bool runs_avx512 = rfx_kernels_find("avx512") != NULL;
    if (rfx_kernels_find("avx2") == NULL || !runs_avx512) {
        print_message("one instruction set alone: nothing to compare\n");
        skip();
    }
    for (size_t i = 0; i < sizeof set_shapes / sizeof set_shapes[0]; i++) {
        int64_t n = made_with("avx2", &set_shapes[i], avx2);
        assert_true(n > 1000);
        assert_int_equal(made_with("avx512", &set_shapes[i], avx512), n);
        assert_memory_equal(avx2, avx512, (size_t)n * sizeof *avx2);
    }
}

static void refused(struct rfx_node node, enum rfx_conv_choice choice, const char *expected) {
    const struct rfx_graph graph = {.conv = choice};
    char why[200] = "untouched";
    assert_int_equal(rfx_conv_winograd.accepts(&graph, &node, why, sizeof why), expected == NULL);
    assert_int_equal(rfx_conv_winograd.accepts(&graph, &node, NULL, 0), expected == NULL);
    assert_string_equal(why, expected == NULL ? "untouched" : expected);
    if (expected == NULL)
        assert_string_equal(rfx_conv_backend_of(&graph, &node)->name, "winograd");
    else
        assert_string_not_equal(rfx_conv_backend_of(&graph, &node)->name, "winograd");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        enum rfx_conv_choice choice;
        int64_t kw, sh, dw, groups, ic, h, w;
        const char *why;
    } layers[] = {
        {RFX_CONV_WINOGRAD, 3, 1, 1, 1, 16, 8, 8, NULL},
        {RFX_CONV_DIRECT, 3, 1, 1, 1, 16, 8, 8, "winograd is not asked for"},
        {RFX_CONV_OPENBLAS, 3, 1, 1, 1, 16, 8, 8, "winograd is not asked for"},
        {RFX_CONV_WINOGRAD, 1, 1, 1, 1, 16, 8, 8, "a kernel of 3x1, not 3x3"},
        {RFX_CONV_WINOGRAD, 3, 2, 1, 1, 16, 8, 8, "stride 2x1, not 1x1 or 2x2"},
        {RFX_CONV_WINOGRAD, 3, 1, 2, 1, 16, 8, 8, "dilation 1x2, not 1x1"},
        {RFX_CONV_WINOGRAD, 3, 1, 1, 2, 16, 8, 8, "2 groups, not 1"},
        {RFX_CONV_WINOGRAD, 3, 1, 1, 1, 15, 8, 8,
         "15 input and 16 output channels: not 16 of each"},
        {RFX_CONV_WINOGRAD, 3, 1, 1, 1, 16, 7, 9, "a map of 7x9 has too few whole tiles"},
        {RFX_CONV_WINOGRAD, 3, 1, 1, 1, 16, 1, 500, "a map of 1x500 has too few whole tiles"},
    };
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        struct rfx_node node = {.op = RFX_OP_CONV, .name = "layer"};
        node.attr.conv = (struct rfx_conv_attr){.kh = 3,
                                                .kw = layers[i].kw,
                                                .sh = layers[i].sh,
                                                .sw = 1,
                                                .dh = 1,
                                                .dw = layers[i].dw,
                                                .groups = layers[i].groups,
                                                .ic = layers[i].ic,
                                                .oc = 16,
                                                .bias = -1,
                                                .scale = -1};
        node.out = rfx_tensor_nhwc(16, layers[i].h, layers[i].w);
        refused(node, layers[i].choice, layers[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_named_shapes),
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_factors_made),
        cmocka_unit_test(test_regions_of_stride_2),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_regions_of_moved_tiles),
        cmocka_unit_test(test_moved_tiles),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
