/* Region maps against brute force: on small maps each input pixel is poked and the output pixels
 * that move are compared with what in_rect says. Weights and inputs are positive and the ops
 * monotone, so that nothing cancels. Per op the map must cover every influence and be minimal:
 * the clamped rectangle is the box around the pixels that move the output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/random_graph.h"
#include "tests/support/run/run_tiles.h"
#include "tests/support/test_util.h"

#define CHANNELS 4

struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
};

static struct net begin(int64_t h, int64_t w) {
    struct net net = {rfx_memory_create(0), NULL};
    assert_int_equal(rfx_graph_create(net.mem, "poke", &net.graph, NULL), RFX_OK);
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "x"};
    node.attr.input.c = CHANNELS;
    node.attr.input.h = h;
    node.attr.input.w = w;
    int index;
    assert_int_equal(rfx_graph_add(net.graph, &node, &index, NULL), RFX_OK);
    return net;
}

static int positive(struct rfx_graph *graph, const struct rfx_shape *shape) {
    struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED,
                           .seed = 7,
                           .lo = 0.5f,
                           .hi = 1,
                           .shape = *shape,
                           .elems = 1};
    for (int d = 0; d < shape->rank; d++) w.elems *= shape->dims[d];
    int index;
    assert_int_equal(rfx_graph_add_weight(graph, &w, &index, NULL), RFX_OK);
    return index;
}

/* Appends the op on the last node; false when it refuses this size. */
static bool append(struct net *net, struct rfx_node node) {
    int in = net->graph->n_nodes - 1, index;
    char name[24];
    (void)snprintf(name, sizeof name, "n%d", in + 1);
    node.name = name;
    node.in = &in;
    node.n_in = 1;
    if (node.op == RFX_OP_CONV || node.op == RFX_OP_CONV_TRANSPOSE) {
        node.attr.conv.oc = CHANNELS;
        node.attr.conv.groups = 2;
        node.attr.conv.bias = node.attr.conv.scale = -1;
        struct rfx_shape s = {4, {CHANNELS, CHANNELS / 2, node.attr.conv.kh, node.attr.conv.kw}};
        node.attr.conv.weight = positive(net->graph, &s);
    }
    return rfx_graph_add(net->graph, &node, &index, NULL) == RFX_OK;
}

static void finish(struct net *net) {
    static const struct rfx_fuse_options nothing = {0};
    int last = net->graph->n_nodes - 1;
    assert_int_equal(rfx_graph_add_output(net->graph, last, "y", NULL), RFX_OK);
    assert_int_equal(rfx_graph_finish(net->graph, &nothing, NULL), RFX_OK);
}

static void end(struct net *net) {
    rfx_graph_free(net->graph);
    rfx_memory_free(net->mem);
}

/* The whole output of the last node. */
static void run(const struct test_prepared *p, const float *input, float *out) {
    const struct rfx_graph *graph = p->graph;
    int last = graph->n_nodes - 1;
    float *outs[16];
    assert_true(graph->n_nodes <= 16);
    test_run_whole(p, input, outs);
    memcpy(out, outs[last], (size_t)graph->nodes[last].out.elems * sizeof *out);
    test_run_whole_free(graph, outs);
}

static bool pixel_differs(const float *a, const float *b, int64_t pixel, int64_t c) {
    return memcmp(a + pixel * c, b + pixel * c, (size_t)c * sizeof *a) != 0;
}

/* moved[o * in_pixels + i]: whether output pixel o moves with input pixel i; *pixels: of out. */
static bool *influence(const struct rfx_graph *graph, int64_t *in_pixels, int64_t *out_pixels) {
    const struct rfx_tensor *it = &graph->nodes[0].out, *ot = &graph->nodes[graph->n_nodes - 1].out;
    int64_t n = it->h * it->w, m = ot->h * ot->w;
    struct test_prepared p;
    assert_true(test_prepare(graph, 1, &p));
    float *input = test_floats(it->elems), *base = test_floats(ot->elems);
    float *poked = test_floats(ot->elems);
    bool *moved = calloc((size_t)(n * m), sizeof *moved);
    assert_non_null(moved);
    struct test_rng rng = test_rng_make(3);
    test_rng_fill(&rng, input, it->elems, 1.0f, 1.25f);
    run(&p, input, base);
    for (int64_t i = 0; i < n; i++) {
        float kept[CHANNELS];
        memcpy(kept, input + i * CHANNELS, sizeof kept);
        for (int c = 0; c < CHANNELS; c++) input[i * CHANNELS + c] = 50.0f + (float)c;
        run(&p, input, poked);
        memcpy(input + i * CHANNELS, kept, sizeof kept);
        for (int64_t o = 0; o < m; o++) moved[o * n + i] = pixel_differs(base, poked, o, ot->c);
    }
    free(input);
    free(base);
    free(poked);
    test_prepared_free(&p);
    *in_pixels = n;
    *out_pixels = m;
    return moved;
}

/* The smallest rectangle around the input pixels that move output pixels of `rect`. */
static struct rfx_rect bounding(const struct rfx_graph *graph, const bool *moved,
                                struct rfx_rect rect) {
    const struct rfx_tensor *it = &graph->nodes[0].out, *ot = &graph->nodes[graph->n_nodes - 1].out;
    struct rfx_rect box = {0, 0, 0, 0};
    int64_t n = it->h * it->w;
    for (int64_t o = 0; o < ot->h * ot->w; o++) {
        int64_t y = o / ot->w, x = o % ot->w;
        if (!rfx_rect_contains(rect, rfx_rect_make(y, y + 1, x, x + 1))) continue;
        for (int64_t i = 0; i < n; i++)
            if (moved[o * n + i])
                box = rfx_rect_union(
                    box, rfx_rect_make(i / it->w, i / it->w + 1, i % it->w, i % it->w + 1));
    }
    return box;
}

static bool same_range(int64_t lo, int64_t hi, int64_t want_lo, int64_t want_hi) {
    return (lo == want_lo && hi == want_hi) || (lo >= hi && want_lo >= want_hi);
}

/* Whether `need` is the box of what moves. Where a dilated window hangs over the border its clamped
 * range may end in a gap between taps, so there only covering is asked for. */
static bool is_minimal(const struct rfx_graph *graph, struct rfx_rect rect, struct rfx_rect need,
                       struct rfx_rect box) {
    const struct rfx_node *node = &graph->nodes[1];
    struct rfx_rect wide = rfx_op_in_rect(graph, node, 0, rect);
    const struct rfx_tensor *it = &graph->nodes[0].out;
    bool conv = node->op == RFX_OP_CONV || node->op == RFX_OP_CONV_TRANSPOSE;
    bool pool = node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_PLACE ||
                node->op == RFX_OP_POOL_AVG || node->op == RFX_OP_POOL_LP;
    int64_t dh = conv ? node->attr.conv.dh : pool ? node->attr.pool.dh : 1;
    int64_t dw = conv ? node->attr.conv.dw : pool ? node->attr.pool.dw : 1;
    bool loose_y = dh > 1 && (wide.y0 < 0 || wide.y1 > it->h);
    bool loose_x = dw > 1 && (wide.x0 < 0 || wide.x1 > it->w);
    if (rfx_rect_is_empty(box)) return loose_y || loose_x || rfx_rect_is_empty(need);
    return (loose_y || same_range(need.y0, need.y1, box.y0, box.y1)) &&
           (loose_x || same_range(need.x0, need.x1, box.x0, box.x1));
}

/* All output rectangles of up to 3 x 3 pixels. exact: minimal as well as covering. */
static bool check_rects(const struct rfx_graph *graph, const bool *moved, bool exact) {
    const struct rfx_tensor *ot = &graph->nodes[graph->n_nodes - 1].out;
    for (int64_t t = 0; t < ot->h * ot->w * 9; t++) {
        int64_t y = t / 9 / ot->w, x = t / 9 % ot->w;
        struct rfx_rect rect = {y, y + 1 + t % 3, x, x + 1 + t / 3 % 3}, need[16];
        if (rect.y1 > ot->h || rect.x1 > ot->w) continue;
        test_back_regions(graph, graph->n_nodes - 1, rect, need);
        struct rfx_rect box = bounding(graph, moved, rect);
        bool covers = rfx_rect_contains(need[0], box);
        if (covers && (!exact || is_minimal(graph, rect, need[0], box))) continue;
        fprintf(stderr,
                "out [%lld, %lld) x [%lld, %lld): says [%lld, %lld) x [%lld, %lld), moves with "
                "[%lld, %lld) x [%lld, %lld)\n",
                (long long)rect.y0, (long long)rect.y1, (long long)rect.x0, (long long)rect.x1,
                (long long)need[0].y0, (long long)need[0].y1, (long long)need[0].x0,
                (long long)need[0].x1, (long long)box.y0, (long long)box.y1, (long long)box.x0,
                (long long)box.x1);
        random_graph_print(graph, stderr);
        return false;
    }
    return true;
}

/* Returns 1 when checked, 0 when the op refuses the size. */
static int check_one(struct rfx_node node, int64_t h, int64_t w) {
    struct net net = begin(h, w);
    bool taken = append(&net, node);
    if (taken) {
        int64_t n, m;
        finish(&net);
        bool *moved = influence(net.graph, &n, &m);
        bool ok = check_rects(net.graph, moved, true);
        free(moved);
        assert_true(ok);
    }
    end(&net);
    return taken ? 1 : 0;
}

static const int64_t windows[][10] = {
    /* kh kw sh sw dh dw top left bottom right */
    {3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 3, 2, 2, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
    {1, 1, 2, 3, 1, 1, 0, 0, 0, 0}, {2, 4, 1, 2, 1, 1, 0, 1, 1, 2}, {3, 2, 1, 1, 2, 3, 2, 0, 1, 3},
    {5, 1, 3, 1, 1, 1, 2, 0, 0, 0}, {4, 4, 2, 2, 1, 1, 1, 2, 0, 1}, {2, 2, 3, 3, 1, 1, 0, 0, 1, 1},
    {3, 3, 1, 2, 3, 2, 3, 2, 3, 0}, {2, 3, 2, 1, 1, 1, 0, 0, 0, 0}, {7, 5, 2, 2, 1, 1, 3, 2, 3, 2}};
#define WINDOWS (sizeof windows / sizeof *windows)

static void test_convolutions(void **state) {
    (void)state;
    int done = 0;
    for (size_t i = 0; i < 2 * WINDOWS; i++) {
        const int64_t *v = windows[i / 2];
        struct rfx_node node = {.op = i % 2 == 0 ? RFX_OP_CONV : RFX_OP_CONV_TRANSPOSE};
        struct rfx_conv_attr *a = &node.attr.conv;
        a->kh = v[0], a->kw = v[1], a->sh = v[2], a->sw = v[3], a->dh = v[4], a->dw = v[5];
        a->pads = (struct rfx_pads){v[6], v[7], v[8], v[9]};
        a->out_pad_h = i % 2 == 0 ? 0 : v[2] - 1;
        done += check_one(node, 7, 6) + check_one(node, 5, 9);
    }
    assert_true(done >= 36);
}

static void test_pools(void **state) {
    (void)state;
    int done = 0;
    for (size_t i = 0; i < 4 * WINDOWS; i++) {
        const int64_t *v = windows[i / 4];
        struct rfx_node node = {.op = i % 2 == 0 ? RFX_OP_POOL_MAX : RFX_OP_POOL_AVG};
        struct rfx_pool_attr *a = &node.attr.pool;
        a->kh = v[0], a->kw = v[1], a->sh = v[2], a->sw = v[3], a->dh = v[4], a->dw = v[5];
        a->pads = (struct rfx_pads){v[6] < v[0] ? v[6] : v[0] - 1, v[7] < v[1] ? v[7] : v[1] - 1,
                                    v[8] < v[0] ? v[8] : v[0] - 1, v[9] < v[1] ? v[9] : v[1] - 1};
        a->ceil_mode = i / 2 % 2 == 1;
        a->count_include_pad = i % 3 == 0;
        done += check_one(node, 7, 6) + check_one(node, 5, 9);
    }
    struct rfx_node node = {.op = RFX_OP_POOL_ADAPTIVE_AVG};
    for (int64_t n = 1; n < 9; n++) {
        node.attr.adaptive.oh = n;
        node.attr.adaptive.ow = 9 - n;
        if (rfx_op_def(node.op)->spatial) done += check_one(node, 7, 6);
    }
    assert_true(done >= 80);
}

static void test_resizes(void **state) {
    (void)state;
    static const float scales[] = {2.0f, 3.0f, 0.5f, 1.5f, 0.75f};
    int done = 0;
    for (int i = 0; i < 5 * 4 * 5; i++) {
        struct rfx_node node = {.op = RFX_OP_RESIZE};
        struct rfx_resize_attr *a = &node.attr.resize;
        a->scale_h = scales[i % 5];
        a->scale_w = scales[(i + i / 5) % 5];
        a->coord = (enum rfx_resize_coord)(i / 5 % 4);
        a->mode = i / 20 == 4 ? RFX_RESIZE_LINEAR : RFX_RESIZE_NEAREST;
        a->nearest = (enum rfx_resize_nearest)(i / 20 % 4);
        a->oh = (int64_t)(7.0f * a->scale_h);
        a->ow = (int64_t)(6.0f * a->scale_w);
        done += check_one(node, 7, 6);
    }
    assert_true(done >= 90);
}

static void test_borders_and_blocks(void **state) {
    (void)state;
    static const struct rfx_pads pads[] = {{1, 2, 3, 0},   {2, 2, 2, 2},     {0, 0, 1, 3},
                                           {-1, 0, 2, -2}, {-1, -1, -1, -1}, {3, -1, 0, 3}};
    int done = 0;
    for (int i = 0; i < 24; i++) {
        struct rfx_node node = {.op = RFX_OP_PAD};
        node.attr.pad.pads = pads[i / 4];
        node.attr.pad.mode = (enum rfx_pad_mode)(i % 4);
        done += check_one(node, 6, 7);
    }
    for (int i = 0; i < 9; i++) {
        struct rfx_node node = {.op = RFX_OP_CROP};
        node.attr.crop.y0 = i % 3;
        node.attr.crop.x0 = i / 3;
        node.attr.crop.sy = 1 + i % 2;
        node.attr.crop.sx = 1 + i / 3;
        node.attr.crop.oh = node.attr.crop.ow = 2;
        done += check_one(node, 6, 7);
    }
    struct rfx_node depth = {.op = RFX_OP_DEPTH_TO_SPACE}, space = {.op = RFX_OP_SPACE_TO_DEPTH};
    depth.attr.depth.block = space.attr.depth.block = 2;
    done += check_one(depth, 3, 5) + check_one(space, 6, 8);
    assert_true(done >= 25);
}

/* Attention in windows: each output moves with all pixels of its window, cut off at the borders. */
static void test_attention_windows(void **state) {
    (void)state;
    static const int64_t forms[][6] = {/* h w shift_h shift_w, of a map of: h w */
                                       {2, 3, 0, 0, 6, 9}, {2, 3, 1, 2, 6, 9}, {3, 2, 2, 0, 9, 6},
                                       {4, 4, 0, 1, 4, 8}, {4, 4, 3, 3, 8, 4}, {1, 5, 0, 2, 3, 10},
                                       {5, 1, 4, 0, 10, 3}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const int64_t *v = forms[i];
        struct rfx_node three = {.op = RFX_OP_CHANNEL_SELECT};
        struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION};
        int64_t map[6] = {0, 1, 2, 3, 0, 1}, n, m;
        three.attr.select.count = 6;
        three.attr.select.map = map;
        node.attr.window_attention = (struct rfx_window_attention_attr){.h = v[0],
                                                                        .w = v[1],
                                                                        .shift_h = v[2],
                                                                        .shift_w = v[3],
                                                                        .heads = 1,
                                                                        .scale = 0.01f,
                                                                        .bias = -1};
        struct net net = begin(v[4], v[5]);
        assert_true(append(&net, three) && append(&net, node));
        finish(&net);
        bool *moved = influence(net.graph, &n, &m);
        assert_true(check_rects(net.graph, moved, true));
        free(moved);
        end(&net);
    }
}

/* Chains: the composed map covers every influence, and a chain of convolutions without gaps is
 * exact as well. */
static void test_chains(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make((uint64_t)test_env_int("RFX_SEED", 1));
    int done = 0;
    for (int i = 0; i < 40; i++) {
        struct net net = begin(test_rng_int(&rng, 5, 12), test_rng_int(&rng, 5, 12));
        for (int depth = 0; depth < 3; depth++) {
            const int64_t *v = windows[test_rng_int(&rng, 0, (int64_t)WINDOWS - 1)];
            struct rfx_node node = {.op = RFX_OP_CONV};
            struct rfx_conv_attr *a = &node.attr.conv;
            a->kh = v[0], a->kw = v[1], a->sh = v[2], a->sw = v[3], a->dh = v[4], a->dw = v[5];
            a->pads = (struct rfx_pads){v[6], v[7], v[8], v[9]};
            done += append(&net, node) ? 1 : 0;
        }
        if (net.graph->n_nodes > 1) {
            int64_t n, m;
            finish(&net);
            bool *moved = influence(net.graph, &n, &m);
            assert_true(check_rects(net.graph, moved, false));
            free(moved);
        }
        end(&net);
    }
    assert_true(done >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),      cmocka_unit_test(test_pools),
        cmocka_unit_test(test_resizes),           cmocka_unit_test(test_borders_and_blocks),
        cmocka_unit_test(test_attention_windows), cmocka_unit_test(test_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
