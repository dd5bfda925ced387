/* See random_graph.h. A node is drawn, offered to rfx_graph_add, and left out when it refuses. */
#include "tests/support/random_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/op.h"
#include "tests/support/test_util.h"

#define MAX_MAP_ELEMS 40000

struct maker {
    struct rfx_graph *graph;
    struct test_rng rng;
    const struct random_graph_options *options;
};

struct random_graph_options random_graph_defaults(void) {
    return (struct random_graph_options){.min_size = 1,
                                         .max_size = 97,
                                         .max_c = 9,
                                         .min_nodes = 3,
                                         .max_nodes = 12,
                                         .spatial_only = false,
                                         .wide = true};
}

static int64_t draw(struct maker *m, int64_t lo, int64_t hi) {
    return test_rng_int(&m->rng, lo, hi);
}

static bool chance(struct maker *m, int percent) {
    return test_rng_chance(&m->rng, percent);
}

static const struct rfx_tensor *tensor(const struct maker *m, int node) {
    return &m->graph->nodes[node].out;
}

static bool may_use(const struct maker *m, enum rfx_op op) {
    uint64_t ops = m->options->ops;
    return rfx_op_def(op) != NULL && (ops == 0 || (ops >> op & 1) != 0);
}

static int add(struct maker *m, struct rfx_node node) {
    char name[32];
    struct rfx_error err = {{0}};
    int index = -1;
    if (!may_use(m, node.op) && node.op != RFX_OP_INPUT) return -1;
    (void)snprintf(name, sizeof name, "n%d", m->graph->n_nodes);
    node.name = name;
    enum rfx_status status = rfx_graph_add(m->graph, &node, &index, &err);
    if (status == RFX_STATUS_OUT_OF_MEMORY) abort();
    return status == RFX_OK ? index : -1;
}

static int weight(struct maker *m, int64_t elems, float lo, float hi) {
    struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED,
                           .seed = test_rng_next(&m->rng),
                           .lo = lo,
                           .hi = hi,
                           .shape = {1, {elems}},
                           .elems = elems};
    int index;
    struct rfx_error err = {{0}};
    if (rfx_graph_add_weight(m->graph, &w, &index, &err) != RFX_OK) abort();
    return index;
}

static int shaped_weight(struct maker *m, struct rfx_shape shape, float bound) {
    int64_t elems = 1;
    for (int d = 0; d < shape.rank; d++) elems *= shape.dims[d];
    int index = weight(m, elems, -bound, bound);
    m->graph->weights[index].shape = shape;
    return index;
}

/* A recent node most of the time. */
static int any_map(struct maker *m) {
    int n = m->graph->n_nodes;
    int from = chance(m, 70) ? n - 1 : (int)draw(m, n > 6 ? n - 6 : 0, n - 1);
    return tensor(m, from)->layout == RFX_LAYOUT_NHWC ? from : m->graph->input;
}

static struct rfx_act draw_act(struct maker *m, int64_t c) {
    static const enum rfx_act_kind kinds[] = {
        RFX_ACT_RELU,     RFX_ACT_CLIP, RFX_ACT_LEAKY_RELU,   RFX_ACT_PRELU,
        RFX_ACT_SIGMOID,  RFX_ACT_SILU, RFX_ACT_HARD_SIGMOID, RFX_ACT_HARD_SWISH,
        RFX_ACT_TANH,     RFX_ACT_NEG,  RFX_ACT_ABS,          RFX_ACT_ELU,
        RFX_ACT_SOFTPLUS, RFX_ACT_ERF,  RFX_ACT_SIN,          RFX_ACT_COS};
    struct rfx_act act = {.kind = kinds[draw(m, 0, (int64_t)(sizeof kinds / sizeof *kinds) - 1)],
                          .alpha = 0.2f,
                          .beta = 0.5f,
                          .slope = -1};
    static const enum rfx_act_kind rough[] = {RFX_ACT_EXP,        RFX_ACT_LOG,  RFX_ACT_SQRT,
                                              RFX_ACT_RECIPROCAL, RFX_ACT_POW,  RFX_ACT_FLOOR,
                                              RFX_ACT_CEIL,       RFX_ACT_SIGN, RFX_ACT_ROUND};
    if (m->options->rough && chance(m, 30)) {
        act.kind = rough[draw(m, 0, (int64_t)(sizeof rough / sizeof *rough) - 1)];
        act.alpha = chance(m, 50) ? 2.0f : 0.5f;
    }
    if (act.kind == RFX_ACT_CLIP) act.alpha = -0.3f;
    if (act.kind == RFX_ACT_PRELU) act.slope = weight(m, chance(m, 50) ? c : 1, -0.5f, 0.5f);
    return act;
}

static int64_t draw_channels(struct maker *m) {
    if (m->options->wide && chance(m, 15)) return draw(m, 16, 33);
    return draw(m, 1, m->options->max_c);
}

static struct rfx_pads draw_pads(struct maker *m, int64_t limit) {
    struct rfx_pads p = {draw(m, 0, limit), draw(m, 0, limit), draw(m, 0, limit),
                         draw(m, 0, limit)};
    if (chance(m, 40)) p.left = p.bottom = p.right = p.top;
    return p;
}

static int add_conv(struct maker *m, int in, bool transposed) {
    int64_t ic = tensor(m, in)->c, largest = transposed ? 4 : 7;
    struct rfx_conv_attr a = {.kh = draw(m, 1, largest),
                              .kw = draw(m, 1, largest),
                              .sh = chance(m, 60) ? 1 : draw(m, 2, 3),
                              .sw = chance(m, 60) ? 1 : draw(m, 2, 3),
                              .dh = chance(m, 75) ? 1 : draw(m, 2, 3),
                              .dw = chance(m, 75) ? 1 : draw(m, 2, 3),
                              .groups = 1,
                              .oc = draw_channels(m),
                              .bias = -1,
                              .scale = -1};
    if (chance(m, 30)) a.kh = a.kw = 3;
    if (chance(m, 20)) a.kh = a.kw = a.sh = a.sw = 1;
    if (chance(m, 30)) {
        a.groups = ic;
        a.oc = chance(m, 75) ? ic : 2 * ic;
    } else if (ic % 2 == 0 && chance(m, 25)) {
        a.groups = 2;
        a.oc += a.oc % 2;
    }
    a.pads = draw_pads(m, a.kh < a.kw ? a.kh : a.kw);
    if (chance(m, 25)) a.pads = (struct rfx_pads){0, 0, 0, 0};
    if (transposed) {
        a.out_pad_h = draw(m, 0, a.sh - 1);
        a.out_pad_w = draw(m, 0, a.sw - 1);
    }
    float bound = 1.7f / sqrtf((float)(ic / a.groups * a.kh * a.kw));
    struct rfx_shape s = {4, {a.oc, ic / a.groups, a.kh, a.kw}};
    if (transposed) s = (struct rfx_shape){4, {ic, a.oc / a.groups, a.kh, a.kw}};
    a.weight = shaped_weight(m, s, bound);
    if (chance(m, 60)) a.bias = weight(m, a.oc, -0.5f, 0.5f);
    if (chance(m, 20)) a.scale = weight(m, a.oc, 0.5f, 1.5f);
    struct rfx_node node = {
        .op = transposed ? RFX_OP_CONV_TRANSPOSE : RFX_OP_CONV, .n_in = 1, .in = &in};
    node.attr.conv = a;
    if (chance(m, 30)) node.act = draw_act(m, a.oc);
    return add(m, node);
}

static int add_pool(struct maker *m, int in, enum rfx_op op) {
    struct rfx_node node = {.op = op, .n_in = 1, .in = &in};
    node.attr.pool = (struct rfx_pool_attr){.kh = draw(m, 1, 4),
                                            .kw = draw(m, 1, 4),
                                            .sh = draw(m, 1, 3),
                                            .sw = draw(m, 1, 3),
                                            .dh = chance(m, 80) ? 1 : 2,
                                            .dw = chance(m, 80) ? 1 : 2,
                                            .ceil_mode = chance(m, 40),
                                            .count_include_pad = chance(m, 40),
                                            .p = (int64_t)1 << draw(m, 0, 2)};
    struct rfx_pool_attr *a = &node.attr.pool;
    a->pads = (struct rfx_pads){draw(m, 0, a->kh / 2), draw(m, 0, a->kw / 2), draw(m, 0, a->kh / 2),
                                draw(m, 0, a->kw / 2)};
    return add(m, node);
}

static int add_adaptive(struct maker *m, int in) {
    struct rfx_node node = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .n_in = 1, .in = &in};
    node.attr.adaptive.oh = draw(m, 1, tensor(m, in)->h);
    node.attr.adaptive.ow = draw(m, 1, tensor(m, in)->w);
    return add(m, node);
}

static bool fits(const struct rfx_tensor *a, const struct rfx_tensor *b) {
    return (a->h == b->h || a->h == 1 || b->h == 1) && (a->w == b->w || a->w == 1 || b->w == 1) &&
           (a->c == b->c || a->c == 1 || b->c == 1);
}

/* The latest other node that `in` can be joined with, or a constant. */
static int partner(struct maker *m, int in, bool concat) {
    const struct rfx_tensor *t = tensor(m, in);
    int start = (int)draw(m, 0, m->graph->n_nodes - 1);
    for (int i = 0; i < m->graph->n_nodes; i++) {
        int other = (start + i) % m->graph->n_nodes;
        const struct rfx_tensor *o = tensor(m, other);
        if (other == in || o->layout != RFX_LAYOUT_NHWC) continue;
        if (concat ? o->h == t->h && o->w == t->w : fits(t, o)) return other;
    }
    struct rfx_tensor shape = *t;
    if (!concat && chance(m, 60)) shape = rfx_tensor_nhwc(t->c, 1, 1);
    if (!concat && chance(m, 20)) shape = rfx_tensor_nhwc(1, t->h, 1);
    struct rfx_node node = {.op = RFX_OP_CONST_MAP};
    node.attr.constant.shape = shape.shape;
    node.attr.constant.weight = shaped_weight(m, shape.shape, 1.0f);
    return add(m, node);
}

static int add_join(struct maker *m, int in, enum rfx_op op) {
    int both[2] = {in, partner(m, in, op == RFX_OP_CONCAT)};
    if (both[1] < 0) return -1;
    if (chance(m, 50)) {
        int first = both[0];
        both[0] = both[1];
        both[1] = first;
    }
    struct rfx_node node = {.op = op, .n_in = 2, .in = both};
    static const enum rfx_binary_kind kinds[] = {RFX_BINARY_ADD, RFX_BINARY_SUB, RFX_BINARY_MUL,
                                                 RFX_BINARY_MAX, RFX_BINARY_MIN};
    if (op == RFX_OP_BINARY) {
        node.attr.binary.kind = chance(m, 50) ? RFX_BINARY_ADD : kinds[draw(m, 0, 4)];
        if (m->options->rough && chance(m, 15))
            node.attr.binary.kind = chance(m, 60) ? RFX_BINARY_DIV : RFX_BINARY_POW;
        if (chance(m, 20)) node.act.kind = RFX_ACT_RELU;
    }
    return add(m, node);
}

/* A convolution that keeps the size, and the sum with what went in: what fusing looks for. */
static int add_residual(struct maker *m, int in) {
    int64_t c = tensor(m, in)->c, k = 2 * draw(m, 0, 2) + 1;
    struct rfx_node conv = {.op = RFX_OP_CONV, .n_in = 1, .in = &in};
    conv.attr.conv = (struct rfx_conv_attr){.kh = k,
                                            .kw = k,
                                            .sh = 1,
                                            .sw = 1,
                                            .dh = 1,
                                            .dw = 1,
                                            .groups = 1,
                                            .oc = c,
                                            .bias = -1,
                                            .scale = -1,
                                            .pads = {k / 2, k / 2, k / 2, k / 2}};
    struct rfx_shape s = {4, {c, c, k, k}};
    conv.attr.conv.weight = shaped_weight(m, s, 1.7f / sqrtf((float)(c * k * k)));
    int both[2] = {add(m, conv), in};
    if (both[0] < 0) return -1;
    struct rfx_node sum = {.op = RFX_OP_BINARY, .n_in = 2, .in = both};
    sum.attr.binary.kind = RFX_BINARY_ADD;
    return add(m, sum);
}

/* Squeeze and excite: x * sigmoid(conv1x1(mean(x))). */
static int add_squeeze_excite(struct maker *m, int in) {
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .n_in = 1, .in = &in};
    pool.attr.global_pool.kind = (enum rfx_reduce_kind)draw(m, 0, 1);
    int mean = m->options->spatial_only ? -1 : add(m, pool);
    if (mean < 0) return -1;
    int64_t c = tensor(m, in)->c;
    struct rfx_node conv = {.op = RFX_OP_CONV, .n_in = 1, .in = &mean};
    conv.attr.conv = (struct rfx_conv_attr){.kh = 1,
                                            .kw = 1,
                                            .sh = 1,
                                            .sw = 1,
                                            .dh = 1,
                                            .dw = 1,
                                            .groups = 1,
                                            .oc = c,
                                            .bias = -1,
                                            .scale = -1};
    struct rfx_shape s = {4, {c, c, 1, 1}};
    conv.attr.conv.weight = shaped_weight(m, s, 1.0f);
    conv.act.kind = RFX_ACT_SIGMOID;
    int gate = add(m, conv);
    int both[2] = {in, gate < 0 ? mean : gate};
    struct rfx_node mul = {.op = RFX_OP_BINARY, .n_in = 2, .in = both};
    mul.attr.binary.kind = RFX_BINARY_MUL;
    return add(m, mul);
}

static int add_resize(struct maker *m, int in) {
    static const float scales[] = {0.5f, 1.5f, 2.0f, 3.0f, 0.75f, 4.0f};
    const struct rfx_tensor *t = tensor(m, in);
    struct rfx_node node = {.op = RFX_OP_RESIZE, .n_in = 1, .in = &in};
    struct rfx_resize_attr *a = &node.attr.resize;
    a->mode = (enum rfx_resize_mode)draw(m, 0, 1);
    a->coord = (enum rfx_resize_coord)draw(m, 0, 3);
    a->nearest = (enum rfx_resize_nearest)draw(m, 0, 3);
    a->scale_h = scales[draw(m, 0, 5)];
    a->scale_w = chance(m, 60) ? a->scale_h : scales[draw(m, 0, 5)];
    a->oh = (int64_t)floor((double)t->h * (double)a->scale_h);
    a->ow = (int64_t)floor((double)t->w * (double)a->scale_w);
    return add(m, node);
}

static int add_select(struct maker *m, int in) {
    int64_t map[40], c = tensor(m, in)->c;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT, .n_in = 1, .in = &in};
    node.attr.select.count = draw(m, 1, c < 33 ? c + 1 : 33);
    node.attr.select.map = map;
    int64_t first = draw(m, 0, c - 1);
    bool shuffle = chance(m, 50);
    for (int64_t i = 0; i < node.attr.select.count; i++)
        map[i] = shuffle ? draw(m, 0, c - 1) : (first + i) % c;
    return add(m, node);
}

static int add_geometry(struct maker *m, int in, enum rfx_op op) {
    const struct rfx_tensor *t = tensor(m, in);
    struct rfx_node node = {.op = op, .n_in = 1, .in = &in};
    if (op == RFX_OP_PAD) {
        node.attr.pad.mode = (enum rfx_pad_mode)draw(m, 0, 2);
        node.attr.pad.pads = draw_pads(m, 3);
        node.attr.pad.value = 0.25f;
        if (chance(m, 25)) node.attr.pad.pads.top = node.attr.pad.pads.right = -1;
    } else if (op == RFX_OP_CROP) {
        int64_t sy = draw(m, 1, 2), sx = draw(m, 1, 3);
        int64_t y0 = draw(m, 0, t->h / 3), x0 = draw(m, 0, t->w / 3);
        node.attr.crop.y0 = y0;
        node.attr.crop.x0 = x0;
        node.attr.crop.sy = sy;
        node.attr.crop.sx = sx;
        node.attr.crop.oh = draw(m, 1, (t->h - y0 - 1) / sy + 1);
        node.attr.crop.ow = draw(m, 1, (t->w - x0 - 1) / sx + 1);
    } else {
        node.attr.depth.block = 2;
        node.attr.depth.column_major = op == RFX_OP_DEPTH_TO_SPACE && chance(m, 50);
        if (op == RFX_OP_DEPTH_TO_SPACE && t->c % 4 != 0) return -1;
        if (op == RFX_OP_SPACE_TO_DEPTH && (t->c > 9 || t->h % 2 != 0 || t->w % 2 != 0)) return -1;
    }
    return add(m, node);
}

static int add_pointwise(struct maker *m, int in, enum rfx_op op) {
    int64_t c = tensor(m, in)->c;
    struct rfx_node node = {.op = op, .n_in = 1, .in = &in};
    if (op == RFX_OP_AFFINE) {
        node.attr.affine.scale = weight(m, c, 0.5f, 1.5f);
        node.attr.affine.shift = weight(m, c, -0.5f, 0.5f);
    } else if (op == RFX_OP_ACTIVATION) {
        node.act = draw_act(m, c);
    } else if (op == RFX_OP_LRN) {
        node.attr.lrn.size = draw(m, 1, 5);
        node.attr.lrn.alpha = 0.3f;
        node.attr.lrn.beta = 0.75f;
        node.attr.lrn.bias = 1.0f;
    } else {
        node.attr.softmax.axis = 1;
        node.attr.softmax.logarithm = chance(m, 30);
    }
    return add(m, node);
}

static void add_something(struct maker *m) {
    int in = any_map(m);
    const struct rfx_tensor *t = tensor(m, in);
    int64_t most = m->options->max_elems > 0 ? m->options->max_elems : MAX_MAP_ELEMS;
    bool small = t->elems * 9 <= most;
    int64_t pick = draw(m, 0, 99);
    if (t->elems > most && pick >= 50) return;
    if (pick < 28)
        (void)add_conv(m, in, false);
    else if (pick < 36)
        (void)add_residual(m, in);
    else if (pick < 41)
        (void)(small ? add_conv(m, in, true) : -1);
    else if (pick < 46)
        (void)add_pool(m, in, RFX_OP_POOL_MAX);
    else if (pick < 50)
        (void)(chance(m, 80) ? add_pool(m, in, chance(m, 60) ? RFX_OP_POOL_AVG : RFX_OP_POOL_LP)
                             : add_adaptive(m, in));
    else if (pick < 58)
        (void)add_join(m, in, RFX_OP_BINARY);
    else if (pick < 64)
        (void)(t->c <= 33 ? add_join(m, in, RFX_OP_CONCAT) : -1);
    else if (pick < 67)
        (void)add_select(m, in);
    else if (pick < 71)
        (void)add_geometry(m, in, RFX_OP_PAD);
    else if (pick < 74)
        (void)add_geometry(m, in, RFX_OP_CROP);
    else if (pick < 76)
        (void)add_geometry(m, in, RFX_OP_DEPTH_TO_SPACE);
    else if (pick < 79)
        (void)add_geometry(m, in, RFX_OP_SPACE_TO_DEPTH);
    else if (pick < 84)
        (void)(small ? add_resize(m, in) : -1);
    else if (pick < 88)
        (void)add_pointwise(m, in, RFX_OP_AFFINE);
    else if (pick < 93)
        (void)add_pointwise(m, in, RFX_OP_ACTIVATION);
    else if (pick < 95)
        (void)add_pointwise(m, in, RFX_OP_LRN);
    else if (pick < 97)
        (void)add_pointwise(m, in, RFX_OP_SOFTMAX);
    else
        (void)add_squeeze_excite(m, in);
}

/* The last node that depends on the image: a network must. */
static int last_dependent(const struct rfx_graph *graph) {
    bool *depends = calloc((size_t)graph->n_nodes, sizeof *depends);
    int last = 0;
    if (depends == NULL) abort();
    for (int i = 0; i < graph->n_nodes; i++) {
        depends[i] = i == graph->input;
        for (int k = 0; k < graph->nodes[i].n_in; k++)
            depends[i] = depends[i] || depends[graph->nodes[i].in[k]];
        if (depends[i]) last = i;
    }
    free(depends);
    return last;
}

struct rfx_graph *random_graph_make(struct rfx_memory *mem, uint64_t seed,
                                    const struct random_graph_options *options) {
    struct maker m = {NULL, test_rng_make(seed), options};
    struct rfx_error err = {{0}};
    if (rfx_graph_create(mem, "random", &m.graph, &err) != RFX_OK) abort();
    struct rfx_node image = {.op = RFX_OP_INPUT};
    image.attr.input.c = draw(&m, 1, 4);
    image.attr.input.h = draw(&m, options->min_size, options->max_size);
    image.attr.input.w = draw(&m, options->min_size, options->max_size);
    if (add(&m, image) < 0) abort();
    int64_t n = draw(&m, options->min_nodes, options->max_nodes);
    for (int64_t i = 0; i < n; i++) add_something(&m);
    int last = last_dependent(m.graph);
    if (rfx_graph_add_output(m.graph, last, "out", &err) != RFX_OK) abort();
    if (last > 2 && chance(&m, 30) &&
        rfx_graph_add_output(m.graph, (int)draw(&m, 1, last - 1), "side", &err) != RFX_OK)
        abort();
    struct rfx_fuse_options fuse = {chance(&m, 70), chance(&m, 70), chance(&m, 70)};
    if (rfx_graph_finish(m.graph, &fuse, &err) != RFX_OK) {
        fprintf(stderr, "random graph of seed %llu: %s\n", (unsigned long long)seed, err.text);
        abort();
    }
    return m.graph;
}

static void print_window(FILE *out, const int64_t *v, const struct rfx_pads *p) {
    fprintf(out, " kernel %lldx%lld stride %lldx%lld dilation %lldx%lld pads %lld,%lld,%lld,%lld",
            (long long)v[0], (long long)v[1], (long long)v[2], (long long)v[3], (long long)v[4],
            (long long)v[5], (long long)p->top, (long long)p->left, (long long)p->bottom,
            (long long)p->right);
}

static void print_attr(const struct rfx_node *node, FILE *out) {
    const union rfx_attr *a = &node->attr;
    if (node->op == RFX_OP_CONV || node->op == RFX_OP_CONV_TRANSPOSE) {
        const struct rfx_conv_attr *c = &a->conv;
        print_window(out, (const int64_t[]){c->kh, c->kw, c->sh, c->sw, c->dh, c->dw}, &c->pads);
        fprintf(out, " out_pad %lldx%lld groups %lld bias %d scale %d residual %d",
                (long long)c->out_pad_h, (long long)c->out_pad_w, (long long)c->groups, c->bias,
                c->scale, node->residual);
    } else if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_AVG ||
               node->op == RFX_OP_POOL_LP) {
        const struct rfx_pool_attr *p = &a->pool;
        print_window(out, (const int64_t[]){p->kh, p->kw, p->sh, p->sw, p->dh, p->dw}, &p->pads);
        fprintf(out, " ceil %d count_pad %d", p->ceil_mode, p->count_include_pad);
    } else if (node->op == RFX_OP_RESIZE) {
        fprintf(out, " mode %d coord %d nearest %d scale %gx%g", (int)a->resize.mode,
                (int)a->resize.coord, (int)a->resize.nearest, (double)a->resize.scale_h,
                (double)a->resize.scale_w);
    } else if (node->op == RFX_OP_PAD) {
        fprintf(out, " mode %d pads %lld,%lld,%lld,%lld", (int)a->pad.mode,
                (long long)a->pad.pads.top, (long long)a->pad.pads.left,
                (long long)a->pad.pads.bottom, (long long)a->pad.pads.right);
    } else if (node->op == RFX_OP_CROP) {
        fprintf(out, " from %lld,%lld step %lld,%lld", (long long)a->crop.y0, (long long)a->crop.x0,
                (long long)a->crop.sy, (long long)a->crop.sx);
    }
    if (node->act.kind != RFX_ACT_NONE) fprintf(out, " act %d", (int)node->act.kind);
}

void random_graph_print(const struct rfx_graph *graph, FILE *out) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        fprintf(out, "%3d '%s' %s(", i, node->name, rfx_op_def(node->op)->name);
        for (int k = 0; k < node->n_in; k++) fprintf(out, k == 0 ? "%d" : ", %d", node->in[k]);
        fprintf(out, ") -> %lld x %lld x %lld", (long long)node->out.c, (long long)node->out.h,
                (long long)node->out.w);
        print_attr(node, out);
        fputc('\n', out);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        fprintf(out, "output '%s' = %d\n", graph->outputs[i].name, graph->outputs[i].node);
}
