/* Nodes with random attributes, see random_nodes.h. */
#include "tests/support/random/random_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/graph/op.h"

static bool may_use(const struct random_maker *m, enum rfx_op op) {
    uint64_t ops = m->options->ops;
    return rfx_op_def(op) != NULL && (ops == 0 || (ops >> op & 1) != 0);
}

int random_add(struct random_maker *m, struct rfx_node node) {
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

static int weight(struct random_maker *m, int64_t elems, float lo, float hi) {
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

int random_weight(struct random_maker *m, struct rfx_shape shape, float bound) {
    int64_t elems = 1;
    for (int d = 0; d < shape.rank; d++) elems *= shape.dims[d];
    int index = weight(m, elems, -bound, bound);
    m->graph->weights[index].shape = shape;
    return index;
}

static struct rfx_act draw_act(struct random_maker *m, int64_t c) {
    static const enum rfx_act_kind kinds[] = {
        RFX_ACT_RELU, RFX_ACT_CLIP,         RFX_ACT_LEAKY_RELU, RFX_ACT_PRELU,   RFX_ACT_SIGMOID,
        RFX_ACT_SILU, RFX_ACT_HARD_SIGMOID, RFX_ACT_HARD_SWISH, RFX_ACT_TANH,    RFX_ACT_NEG,
        RFX_ACT_ABS,  RFX_ACT_ELU,          RFX_ACT_SOFTPLUS,   RFX_ACT_ERF,     RFX_ACT_SIN,
        RFX_ACT_COS,  RFX_ACT_SELU,         RFX_ACT_CELU,       RFX_ACT_SOFTSIGN};
    struct rfx_act act = {
        .kind = kinds[random_draw(m, 0, (int64_t)(sizeof kinds / sizeof *kinds) - 1)],
        .alpha = 0.2f,
        .beta = 0.5f,
        .slope = -1};
    static const enum rfx_act_kind rough[] = {
        RFX_ACT_EXP,   RFX_ACT_LOG,   RFX_ACT_SQRT,   RFX_ACT_RECIPROCAL,
        RFX_ACT_POW,   RFX_ACT_FLOOR, RFX_ACT_CEIL,   RFX_ACT_SIGN,
        RFX_ACT_ROUND, RFX_ACT_NOT,   RFX_ACT_SHRINK, RFX_ACT_THRESHOLDED_RELU};
    if (m->options->rough && random_chance(m, 30)) {
        act.kind = rough[random_draw(m, 0, (int64_t)(sizeof rough / sizeof *rough) - 1)];
        act.alpha = random_chance(m, 50) ? 2.0f : 0.5f;
    }
    if (act.kind == RFX_ACT_CLIP) act.alpha = -0.3f;
    if (act.kind == RFX_ACT_PRELU) act.slope = weight(m, random_chance(m, 50) ? c : 1, -0.5f, 0.5f);
    return act;
}

static int64_t draw_channels(struct random_maker *m) {
    if (m->options->wide && random_chance(m, 15)) return random_draw(m, 16, 33);
    return random_draw(m, 1, m->options->max_c);
}

static struct rfx_pads draw_pads(struct random_maker *m, int64_t limit) {
    struct rfx_pads p = {random_draw(m, 0, limit), random_draw(m, 0, limit),
                         random_draw(m, 0, limit), random_draw(m, 0, limit)};
    if (random_chance(m, 40)) p.left = p.bottom = p.right = p.top;
    return p;
}

int random_add_conv(struct random_maker *m, int in, bool transposed) {
    int64_t ic = random_tensor(m, in)->c, largest = transposed ? 4 : 7;
    struct rfx_conv_attr a = {.kh = random_draw(m, 1, largest),
                              .kw = random_draw(m, 1, largest),
                              .sh = random_chance(m, 60) ? 1 : random_draw(m, 2, 3),
                              .sw = random_chance(m, 60) ? 1 : random_draw(m, 2, 3),
                              .dh = random_chance(m, 75) ? 1 : random_draw(m, 2, 3),
                              .dw = random_chance(m, 75) ? 1 : random_draw(m, 2, 3),
                              .groups = 1,
                              .oc = draw_channels(m),
                              .bias = -1,
                              .scale = -1};
    if (random_chance(m, 30)) a.kh = a.kw = 3;
    if (random_chance(m, 20)) a.kh = a.kw = a.sh = a.sw = 1;
    if (random_chance(m, 30)) {
        a.groups = ic;
        a.oc = random_chance(m, 75) ? ic : 2 * ic;
    } else if (ic % 2 == 0 && random_chance(m, 25)) {
        a.groups = 2;
        a.oc += a.oc % 2;
    }
    if (!transposed && m->graph->conv == RFX_CONV_WINOGRAD && random_chance(m, 60)) {
        a.kh = a.kw = 3;
        a.sh = a.sw = a.dh = a.dw = a.groups = 1;
        a.oc = random_draw(m, 16, 35);
        if (random_chance(m, 50)) a.oc = random_draw(m, 32, 40);
        if (ic >= 32 && a.oc >= 32 && random_chance(m, 60)) a.sh = a.sw = 2;
    }
    a.pads = draw_pads(m, a.kh < a.kw ? a.kh : a.kw);
    if (random_chance(m, 25)) a.pads = (struct rfx_pads){0, 0, 0, 0};
    if (transposed) {
        a.out_pad_h = random_draw(m, 0, a.sh - 1);
        a.out_pad_w = random_draw(m, 0, a.sw - 1);
    }
    float bound = 1.7f / sqrtf((float)(ic / a.groups * a.kh * a.kw));
    struct rfx_shape s = {4, {a.oc, ic / a.groups, a.kh, a.kw}};
    if (transposed) s = (struct rfx_shape){4, {ic, a.oc / a.groups, a.kh, a.kw}};
    a.weight = random_weight(m, s, bound);
    if (random_chance(m, 60)) a.bias = weight(m, a.oc, -0.5f, 0.5f);
    if (random_chance(m, 20)) a.scale = weight(m, a.oc, 0.5f, 1.5f);
    struct rfx_node node = {
        .op = transposed ? RFX_OP_CONV_TRANSPOSE : RFX_OP_CONV, .n_in = 1, .in = &in};
    node.attr.conv = a;
    if (random_chance(m, 30)) node.act = draw_act(m, a.oc);
    return random_add(m, node);
}

int random_add_pool(struct random_maker *m, int in, enum rfx_op op) {
    struct rfx_node node = {.op = op, .n_in = 1, .in = &in};
    node.attr.pool = (struct rfx_pool_attr){.kh = random_draw(m, 1, 4),
                                            .kw = random_draw(m, 1, 4),
                                            .sh = random_draw(m, 1, 3),
                                            .sw = random_draw(m, 1, 3),
                                            .dh = random_chance(m, 80) ? 1 : 2,
                                            .dw = random_chance(m, 80) ? 1 : 2,
                                            .ceil_mode = random_chance(m, 40),
                                            .count_include_pad = random_chance(m, 40),
                                            .column_major = random_chance(m, 50),
                                            .p = random_draw(m, 1, 5)};
    struct rfx_pool_attr *a = &node.attr.pool;
    a->pads = (struct rfx_pads){random_draw(m, 0, a->kh / 2), random_draw(m, 0, a->kw / 2),
                                random_draw(m, 0, a->kh / 2), random_draw(m, 0, a->kw / 2)};
    return random_add(m, node);
}

int random_add_convert(struct random_maker *m, int in) {
    static const enum rfx_type types[] = {RFX_TYPE_UINT8, RFX_TYPE_INT8, RFX_TYPE_INT32};
    struct rfx_node node = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &in};
    if (random_tensor(m, in)->type == RFX_TYPE_FLOAT32)
        node.attr.convert.to = types[random_draw(m, 0, 2)];
    return random_add(m, node);
}

int random_add_adaptive(struct random_maker *m, int in) {
    struct rfx_node node = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .n_in = 1, .in = &in};
    node.attr.adaptive.oh = random_draw(m, 1, random_tensor(m, in)->h);
    node.attr.adaptive.ow = random_draw(m, 1, random_tensor(m, in)->w);
    return random_add(m, node);
}

/* Lines of rows and of columns, or of one of both, of the size and channels of `in`. */
static int random_add_repeat(struct random_maker *m, int in) {
    const struct rfx_tensor t = *random_tensor(m, in);
    int64_t c[2] = {random_draw(m, 0, 3), random_draw(m, 0, 3)}, map[256];
    if (t.c > (int64_t)(sizeof map / sizeof *map)) return -1;
    if (c[0] + c[1] == 0) c[random_draw(m, 0, 1)] = 1;
    struct rfx_node node = {.op = RFX_OP_REPEAT};
    struct rfx_shape across = {2, {c[0], t.w}}, down = {2, {c[1], t.h}};
    node.attr.repeat.across = c[0] == 0 ? -1 : random_weight(m, across, 1.0f);
    node.attr.repeat.down = c[1] == 0 ? -1 : random_weight(m, down, 1.0f);
    node.attr.repeat.h = t.h;
    node.attr.repeat.w = t.w;
    node.attr.repeat.count = t.c;
    node.attr.repeat.map = map;
    for (int64_t i = 0; i < t.c; i++) map[i] = random_draw(m, 0, c[0] + c[1] - 1);
    return random_add(m, node);
}

static bool fits(const struct rfx_tensor *a, const struct rfx_tensor *b) {
    return (a->h == b->h || a->h == 1 || b->h == 1) && (a->w == b->w || a->w == 1 || b->w == 1) &&
           (a->c == b->c || a->c == 1 || b->c == 1);
}

/* The latest other node that `in` can be joined with, or a constant. */
static int partner(struct random_maker *m, int in, bool concat) {
    const struct rfx_tensor *t = random_tensor(m, in);
    int start = (int)random_draw(m, 0, m->graph->n_nodes - 1);
    for (int i = 0; i < m->graph->n_nodes; i++) {
        int other = (start + i) % m->graph->n_nodes;
        const struct rfx_tensor *o = random_tensor(m, other);
        if (other == in || o->layout != RFX_LAYOUT_NHWC) continue;
        if (concat ? o->h == t->h && o->w == t->w : fits(t, o)) return other;
    }
    struct rfx_tensor shape = *t;
    if (!concat && random_chance(m, 60)) shape = rfx_tensor_nhwc(t->c, 1, 1);
    if (!concat && random_chance(m, 20)) shape = rfx_tensor_nhwc(1, t->h, 1);
    if (shape.h > 1 && shape.w > 1 && random_chance(m, 60)) return random_add_repeat(m, in);
    struct rfx_node node = {.op = RFX_OP_CONST_MAP};
    node.attr.constant.shape = shape.shape;
    node.attr.constant.weight = random_weight(m, shape.shape, 1.0f);
    return random_add(m, node);
}

int random_add_join(struct random_maker *m, int in, enum rfx_op op) {
    int both[2] = {in, partner(m, in, op == RFX_OP_CONCAT)};
    if (both[1] < 0) return -1;
    if (random_chance(m, 50)) {
        int first = both[0];
        both[0] = both[1];
        both[1] = first;
    }
    struct rfx_node node = {.op = op, .n_in = 2, .in = both};
    static const enum rfx_binary_kind kinds[] = {RFX_BINARY_ADD, RFX_BINARY_SUB, RFX_BINARY_MUL,
                                                 RFX_BINARY_MAX, RFX_BINARY_MIN};
    if (op == RFX_OP_BINARY) {
        node.attr.binary.kind = random_chance(m, 50) ? RFX_BINARY_ADD : kinds[random_draw(m, 0, 4)];
        if (m->options->rough && random_chance(m, 15))
            node.attr.binary.kind = random_chance(m, 60) ? RFX_BINARY_DIV : RFX_BINARY_POW;
        else if (m->options->rough && random_chance(m, 20))
            node.attr.binary.kind =
                (enum rfx_binary_kind)random_draw(m, RFX_BINARY_MOD, RFX_BINARY_UNLESS);
        if (random_chance(m, 20)) node.act.kind = RFX_ACT_RELU;
    }
    return random_add(m, node);
}

/* k x k, k odd, of oc channels, keeping the size; without bias. */
static struct rfx_conv_attr square_conv(int64_t k, int64_t oc) {
    int64_t pad = k / 2;
    struct rfx_conv_attr conv = rfx_conv_pointwise(oc);
    conv.kh = conv.kw = k;
    conv.pads = (struct rfx_pads){pad, pad, pad, pad};
    return conv;
}

static int add_square_conv(struct random_maker *m, int in) {
    int64_t c = random_tensor(m, in)->c, k = 2 * random_draw(m, 0, 2) + 1;
    struct rfx_node conv = {.op = RFX_OP_CONV, .n_in = 1, .in = &in};
    conv.attr.conv = square_conv(k, c);
    struct rfx_shape s = {4, {c, c, k, k}};
    conv.attr.conv.weight = random_weight(m, s, 1.7f / sqrtf((float)(c * k * k)));
    return random_add(m, conv);
}

int random_add_residual(struct random_maker *m, int in) {
    int both[2] = {add_square_conv(m, in), in};
    bool more = m->options->bottlenecks > 0 && random_chance(m, m->options->bottlenecks);
    if (more && both[0] >= 0) both[0] = add_square_conv(m, both[0]);
    if (both[0] < 0) return -1;
    struct rfx_node sum = {.op = RFX_OP_BINARY, .n_in = 2, .in = both};
    sum.attr.binary.kind = RFX_BINARY_ADD;
    return random_add(m, sum);
}

int random_add_squeeze_excite(struct random_maker *m, int in) {
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .n_in = 1, .in = &in};
    pool.attr.global_pool.kind = (enum rfx_reduce_kind)random_draw(m, 0, 1);
    int mean = m->options->spatial_only ? -1 : random_add(m, pool);
    if (mean < 0) return -1;
    int64_t c = random_tensor(m, in)->c;
    struct rfx_node conv = {.op = RFX_OP_CONV, .n_in = 1, .in = &mean};
    conv.attr.conv = square_conv(1, c);
    struct rfx_shape s = {4, {c, c, 1, 1}};
    conv.attr.conv.weight = random_weight(m, s, 1.0f);
    conv.act.kind = RFX_ACT_SIGMOID;
    int gate = random_add(m, conv);
    int both[2] = {in, gate < 0 ? mean : gate};
    struct rfx_node mul = {.op = RFX_OP_BINARY, .n_in = 2, .in = both};
    mul.attr.binary.kind = RFX_BINARY_MUL;
    return random_add(m, mul);
}

int random_add_resize(struct random_maker *m, int in) {
    static const float scales[] = {0.5f, 1.5f, 2.0f, 3.0f, 0.75f, 4.0f};
    const struct rfx_tensor *t = random_tensor(m, in);
    struct rfx_node node = {.op = RFX_OP_RESIZE, .n_in = 1, .in = &in};
    struct rfx_resize_attr *a = &node.attr.resize;
    a->mode = (enum rfx_resize_mode)random_draw(m, 0, 2);
    a->coord = (enum rfx_resize_coord)random_draw(m, 0, 3);
    a->nearest = (enum rfx_resize_nearest)random_draw(m, 0, 3);
    a->scale_h = scales[random_draw(m, 0, 5)];
    a->scale_w = random_chance(m, 60) ? a->scale_h : scales[random_draw(m, 0, 5)];
    a->cubic_a = random_chance(m, 50) ? -0.75f : -0.5f;
    a->exclude_outside = a->mode != RFX_RESIZE_NEAREST && random_chance(m, 30);
    if (a->mode != RFX_RESIZE_NEAREST && random_chance(m, 40)) {
        a->antialias = true; /* whole and half scales: all distances are exact in float */
        a->scale_h = random_chance(m, 50) ? 0.5f : 0.25f;
        a->scale_w = random_chance(m, 70) ? 0.5f : 2.0f;
    }
    a->oh = (int64_t)floor((double)t->h * (double)a->scale_h);
    a->ow = (int64_t)floor((double)t->w * (double)a->scale_w);
    return random_add(m, node);
}

int random_add_grid_sample(struct random_maker *m, int in) {
    struct rfx_node conv = {.op = RFX_OP_CONV, .n_in = 1, .in = &in};
    int64_t c = random_tensor(m, in)->c;
    conv.attr.conv = square_conv(random_chance(m, 50) ? 3 : 1, 2);
    conv.attr.conv.sh = conv.attr.conv.sw = random_draw(m, 1, 2);
    struct rfx_shape s = {4, {2, c, conv.attr.conv.kh, conv.attr.conv.kw}};
    conv.attr.conv.weight = random_weight(m, s, 1.0f);
    /* computed places are rounded, which is no matter of a tolerance where pixels differ much */
    bool may = m->options->rough && !m->options->spatial_only;
    int both[2] = {in, may ? random_add(m, conv) : -1};
    if (both[1] < 0) return -1;
    struct rfx_node node = {.op = RFX_OP_GRID_SAMPLE, .n_in = 2, .in = both};
    node.attr.grid.mode = (enum rfx_resize_mode)random_draw(m, 0, 2);
    node.attr.grid.padding = (enum rfx_grid_padding)random_draw(m, 0, 2);
    node.attr.grid.align_corners = random_chance(m, 50);
    return random_add(m, node);
}

int random_add_select(struct random_maker *m, int in) {
    int64_t map[40], c = random_tensor(m, in)->c;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT, .n_in = 1, .in = &in};
    node.attr.select.count = random_draw(m, 1, c < 33 ? c + 1 : 33);
    node.attr.select.map = map;
    int64_t first = random_draw(m, 0, c - 1);
    bool shuffle = random_chance(m, 50);
    for (int64_t i = 0; i < node.attr.select.count; i++)
        map[i] = shuffle ? random_draw(m, 0, c - 1) : (first + i) % c;
    return random_add(m, node);
}

int random_add_geometry(struct random_maker *m, int in, enum rfx_op op) {
    const struct rfx_tensor *t = random_tensor(m, in);
    struct rfx_node node = {.op = op, .n_in = 1, .in = &in};
    if (op == RFX_OP_PAD) {
        node.attr.pad.mode = (enum rfx_pad_mode)random_draw(m, 0, 3);
        node.attr.pad.pads = draw_pads(m, 3);
        node.attr.pad.value = 0.25f;
        if (random_chance(m, 25)) node.attr.pad.pads.top = node.attr.pad.pads.right = -1;
        if (node.attr.pad.mode == RFX_PAD_WRAP && random_chance(m, 30)) { /* a roll */
            int64_t down = random_draw(m, 0, t->h - 1), across = random_draw(m, 0, t->w - 1);
            node.attr.pad.pads = (struct rfx_pads){-down, -across, down, across};
        }
    } else if (op == RFX_OP_CROP) {
        int64_t sy = random_draw(m, 1, 2), sx = random_draw(m, 1, 3);
        int64_t y0 = random_draw(m, 0, t->h / 3), x0 = random_draw(m, 0, t->w / 3);
        node.attr.crop.y0 = y0;
        node.attr.crop.x0 = x0;
        node.attr.crop.sy = sy;
        node.attr.crop.sx = sx;
        node.attr.crop.oh = random_draw(m, 1, (t->h - y0 - 1) / sy + 1);
        node.attr.crop.ow = random_draw(m, 1, (t->w - x0 - 1) / sx + 1);
        if (random_chance(m, 25)) { /* columns from right to left */
            node.attr.crop.x0 = x0 + (node.attr.crop.ow - 1) * sx;
            node.attr.crop.sx = -sx;
        }
        if (random_chance(m, 10)) { /* rows upside down */
            node.attr.crop.y0 = y0 + (node.attr.crop.oh - 1) * sy;
            node.attr.crop.sy = -sy;
        }
    } else {
        node.attr.depth.block = 2;
        node.attr.depth.column_major = op == RFX_OP_DEPTH_TO_SPACE && random_chance(m, 50);
        if (op == RFX_OP_DEPTH_TO_SPACE && t->c % 4 != 0) return -1;
        if (op == RFX_OP_SPACE_TO_DEPTH && (t->c > 9 || t->h % 2 != 0 || t->w % 2 != 0)) return -1;
    }
    return random_add(m, node);
}

int random_add_pointwise(struct random_maker *m, int in, enum rfx_op op) {
    int64_t c = random_tensor(m, in)->c;
    struct rfx_node node = {.op = op, .n_in = 1, .in = &in};
    if (op == RFX_OP_AFFINE) {
        node.attr.affine.scale = weight(m, c, 0.5f, 1.5f);
        node.attr.affine.shift = weight(m, c, -0.5f, 0.5f);
    } else if (op == RFX_OP_ACTIVATION) {
        node.act = draw_act(m, c);
    } else if (op == RFX_OP_LRN) {
        node.attr.lrn.size = random_draw(m, 1, 5);
        node.attr.lrn.alpha = 0.3f;
        node.attr.lrn.beta = 0.75f;
        node.attr.lrn.bias = 1.0f;
    } else if (op == RFX_OP_TRIANGLE) {
        node.attr.triangle.k = random_draw(m, -4, 4);
        node.attr.triangle.upper = random_chance(m, 50);
    } else if (op == RFX_OP_RUNNING_SUM) {
        node.attr.running.axis = random_chance(m, 50) ? 1 : 3;
        node.attr.running.exclusive = random_chance(m, 50);
        node.attr.running.reverse = random_chance(m, 50);
    } else if (op == RFX_OP_TOP_K) { /* the places, or what is there */
        struct rfx_node pick = {.op = RFX_OP_PICK, .n_in = 2, .attr.index.axis = 1};
        node.attr.top_k.axis = 1;
        node.attr.top_k.k = random_draw(m, 1, c < 6 ? c : 6);
        node.attr.top_k.largest = random_chance(m, 50);
        int both[2] = {in, random_add(m, node)};
        pick.in = both;
        return both[1] < 0 || random_chance(m, 30) ? both[1] : random_add(m, pick);
    } else if (op == RFX_OP_CHANNEL_REDUCE) {
        int64_t last = m->options->rough ? RFX_REDUCE_COUNT - 1 : RFX_REDUCE_PROD;
        node.attr.reduce.kind = (enum rfx_reduce_kind)random_draw(m, 0, last);
    } else if (op == RFX_OP_CHANNEL_NORM) {
        node.attr.channel_norm.kind = (enum rfx_channel_norm)random_draw(m, 0, RFX_NORM_COUNT - 1);
        node.attr.channel_norm.eps = random_chance(m, 50) ? 1e-5f : 1e-3f;
        node.attr.channel_norm.scale = random_chance(m, 70) ? weight(m, c, 0.5f, 1.5f) : -1;
        node.attr.channel_norm.shift = random_chance(m, 70) ? weight(m, c, -0.5f, 0.5f) : -1;
        if (random_chance(m, 30)) node.act = draw_act(m, c);
    } else {
        node.attr.softmax.axis = 1;
        node.attr.softmax.logarithm = random_chance(m, 30);
    }
    return random_add(m, node);
}

int random_add_space_norm(struct random_maker *m, int in) {
    int64_t c = random_tensor(m, in)->c;
    struct rfx_node moments = {.op = RFX_OP_MOMENTS, .n_in = 1, .in = &in};
    moments.attr.moments.groups = random_chance(m, 50) ? c : random_draw(m, 1, c);
    moments.attr.moments.eps = random_chance(m, 50) ? 1e-5f : 1e-3f;
    int both[2] = {in, m->options->spatial_only ? -1 : random_add(m, moments)};
    if (both[1] < 0) return -1;
    struct rfx_node node = {.op = RFX_OP_NORMALISE, .n_in = 2, .in = both};
    node.attr.affine.scale = random_chance(m, 70) ? weight(m, c, 0.5f, 1.5f) : -1;
    node.attr.affine.shift = random_chance(m, 70) ? weight(m, c, -0.5f, 0.5f) : -1;
    if (random_chance(m, 40)) node.act = draw_act(m, c);
    return random_add(m, node);
}

/* --- blocks of one-byte integers --- */

static int64_t least(enum rfx_type type) {
    return type == RFX_TYPE_UINT8 ? 0 : -128;
}

/* Draws a zero point; one in five is an end of the type's range. */
static int32_t draw_zero(struct random_maker *m, enum rfx_type type) {
    int64_t zero = random_draw(m, 0, 255);
    if (random_chance(m, 20)) zero = random_chance(m, 50) ? 0 : 255;
    return (int32_t)(least(type) + zero);
}

static enum rfx_type draw_byte_type(struct random_maker *m) {
    return random_chance(m, 50) ? RFX_TYPE_UINT8 : RFX_TYPE_INT8;
}

static int add_convert_by(struct random_maker *m, int in, enum rfx_type to, enum rfx_type bytes) {
    struct rfx_node node = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &in};
    node.attr.convert.to = to;
    node.attr.convert.scale = test_rng_float(&m->rng, 0.005f, 0.03f);
    node.attr.convert.zero_point = draw_zero(m, bytes);
    return random_add(m, node);
}

/* Adds whole numbers from a byte's range; returns the weight's index. */
static int add_byte_weights(struct random_maker *m, struct rfx_shape shape, int64_t lo) {
    struct rfx_weight w = {.source = RFX_WEIGHT_OWNED, .shape = shape, .elems = 1};
    int index;
    struct rfx_error err = {{0}};
    for (int d = 0; d < shape.rank; d++) w.elems *= shape.dims[d];
    if (rfx_graph_add_weight(m->graph, &w, &index, &err) != RFX_OK) abort();
    float *values = rfx_graph_owned_weight(m->graph, index);
    for (int64_t i = 0; i < w.elems; i++) values[i] = (float)random_draw(m, lo, lo + 255);
    return index;
}

/* Draws a window; `same`: one that keeps the size. */
static struct rfx_conv_attr draw_byte_window(struct random_maker *m, int64_t oc, bool same) {
    if (same) return square_conv(2 * random_draw(m, 0, 2) + 1, oc);
    struct rfx_conv_attr a = rfx_conv_pointwise(oc);
    a.kh = random_draw(m, 1, 5);
    a.kw = random_draw(m, 1, 5);
    a.sh = random_chance(m, 60) ? 1 : random_draw(m, 2, 3);
    a.sw = random_chance(m, 60) ? 1 : random_draw(m, 2, 3);
    a.dh = random_chance(m, 75) ? 1 : random_draw(m, 2, 3);
    a.dw = random_chance(m, 75) ? 1 : random_draw(m, 2, 3);
    a.pads = draw_pads(m, a.kh < a.kw ? a.kh : a.kw);
    return a;
}

/* Adds a map of one element that depends on all of the map `in` of bytes, in its type. */
static int add_computed_zero(struct random_maker *m, int in) {
    struct rfx_node mean = {.op = RFX_OP_INT_MEAN, .n_in = 1, .in = &in};
    enum rfx_type type = random_tensor(m, in)->type;
    mean.attr.int_mean.to = type;
    mean.attr.int_mean.in_scale = mean.attr.int_mean.out_scale = 1.0f;
    mean.attr.int_mean.out_zero = draw_zero(m, type);
    int64_t first = 0;
    int made = random_add(m, mean);
    if (made < 0) return -1;
    struct rfx_node floats = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &made};
    int number = random_add(m, floats);
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT, .n_in = 1, .in = &number};
    select.attr.select.count = 1;
    select.attr.select.map = &first;
    int one = number < 0 ? -1 : random_add(m, select);
    struct rfx_node bytes = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &one, .attr.convert.to = type};
    return one < 0 ? -1 : random_add(m, bytes);
}

/* Adds a convolution of bytes to `to`: dense, in two groups, or depthwise. `same`: it keeps the
 * map's size and, if depthwise, channels. */
static int add_int_conv(struct random_maker *m, int in, enum rfx_type to, int64_t oc, bool same) {
    int64_t ic = random_tensor(m, in)->c, channels[3 * 40], lo = least(draw_byte_type(m));
    enum rfx_type from = random_tensor(m, in)->type;
    struct rfx_node node = {.op = RFX_OP_INT_CONV, .n_in = 1, .in = &in};
    struct rfx_int_conv_attr *q = &node.attr.int_conv;
    int64_t groups = 1, zero = lo + random_draw(m, 0, 255);
    if (ic <= 40 && (oc == ic || !same) && random_chance(m, 40))
        groups = oc = ic;
    else if (ic % 2 == 0 && oc % 2 == 0 && random_chance(m, 30))
        groups = 2;
    if (oc > 40) return -1;
    q->conv = draw_byte_window(m, oc, same);
    q->conv.groups = groups;
    q->to = to;
    q->in_zero = draw_zero(m, from);
    q->out_zero = to == RFX_TYPE_INT32 ? 0 : draw_zero(m, to);
    q->channels = channels;
    const struct rfx_shape shape = {4, {oc, ic / groups, q->conv.kh, q->conv.kw}};
    float spread = sqrtf((float)(ic / groups * q->conv.kh * q->conv.kw));
    bool per_channel = random_chance(m, 50);
    for (int64_t i = 0; i < oc; i++) {
        float factor = test_rng_float(&m->rng, 0.3f, 2.0f) / (90.0f * spread);
        uint32_t bits;
        memcpy(&bits, &factor, sizeof bits);
        channels[3 * i] = random_draw(m, -2000, 2000);
        channels[3 * i + 1] = per_channel ? lo + random_draw(m, 0, 255) : zero;
        channels[3 * i + 2] = bits;
    }
    q->conv.weight = add_byte_weights(m, shape, lo);
    int both[2] = {in, -1};
    if (!m->options->spatial_only && random_chance(m, 10)) both[1] = add_computed_zero(m, in);
    node.in = both;
    node.n_in = both[1] >= 0 ? 2 : 1;
    return random_add(m, node);
}

/* Adds a convolution of bytes to sums of int32, which become bytes again. */
static int add_int_sums(struct random_maker *m, int in) {
    int sums = add_int_conv(m, in, RFX_TYPE_INT32, draw_channels(m), false);
    struct rfx_node floats = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &sums};
    if (sums < 0) return -1;
    int made = random_add(m, floats);
    if (made < 0) return -1;
    struct rfx_node bytes = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &made};
    bytes.attr.convert.to = draw_byte_type(m);
    bytes.attr.convert.scale = test_rng_float(&m->rng, 20.0f, 2000.0f);
    bytes.attr.convert.zero_point = draw_zero(m, bytes.attr.convert.to);
    return random_add(m, bytes);
}

/* Adds INT_ADD or CONCAT of a map and a convolution of it that keeps its size. */
static int add_byte_join(struct random_maker *m, int in, enum rfx_op op) {
    const struct rfx_tensor t = *random_tensor(m, in);
    int both[2] = {in, add_int_conv(m, in, t.type, t.c, true)};
    struct rfx_node node = {.op = op, .n_in = 2, .in = both};
    if (both[1] < 0) return -1;
    if (op == RFX_OP_INT_ADD) {
        node.attr.int_add.to = t.type;
        node.attr.int_add.a_scale = test_rng_float(&m->rng, 0.2f, 1.2f);
        node.attr.int_add.b_scale = random_chance(m, 30) ? 0.5f : test_rng_float(&m->rng, 0.2f, 1);
        node.attr.int_add.shift = (float)random_draw(m, -60, 60) * 0.5f;
    }
    if (random_chance(m, 50)) {
        both[0] = both[1];
        both[1] = in;
    }
    return random_add(m, node);
}

static int add_byte_node(struct random_maker *m, int in) {
    int64_t pick = random_draw(m, 0, 99), c = random_tensor(m, in)->c;
    if (pick < 10) return add_int_sums(m, in);
    if (pick < 45) return add_int_conv(m, in, draw_byte_type(m), draw_channels(m), false);
    if (pick < 65) return add_byte_join(m, in, RFX_OP_INT_ADD);
    if (pick < 75) return c <= 20 ? add_byte_join(m, in, RFX_OP_CONCAT) : -1;
    if (pick < 88) return random_add_pool(m, in, RFX_OP_POOL_MAX);
    return random_add_geometry(m, in, RFX_OP_CROP);
}

/* Multiplies the map of bytes by its mean over space, both as float32. */
static int add_byte_gate(struct random_maker *m, int in) {
    struct rfx_node mean = {.op = RFX_OP_INT_MEAN, .n_in = 1, .in = &in};
    enum rfx_type from = random_tensor(m, in)->type, to = draw_byte_type(m);
    mean.attr.int_mean.to = to;
    mean.attr.int_mean.in_scale = test_rng_float(&m->rng, 0.5f, 4.0f);
    mean.attr.int_mean.out_scale = 1.0f;
    mean.attr.int_mean.in_zero = draw_zero(m, from);
    mean.attr.int_mean.out_zero = draw_zero(m, to);
    int made = random_add(m, mean);
    int both[2] = {add_convert_by(m, in, RFX_TYPE_FLOAT32, from), -1};
    if (made >= 0) both[1] = add_convert_by(m, made, RFX_TYPE_FLOAT32, to);
    if (both[0] < 0 || both[1] < 0) return -1;
    if (from == to && random_chance(m, 50)) { /* the same product on bytes */
        const int bytes[2] = {in, made};
        struct rfx_node gate = {.op = RFX_OP_INT_MUL, .n_in = 2, .in = bytes};
        gate.attr.int_mul.to = to;
        gate.attr.int_mul.factor = test_rng_float(&m->rng, 0.002f, 0.02f);
        gate.attr.int_mul.a_zero = draw_zero(m, from);
        gate.attr.int_mul.b_zero = draw_zero(m, to);
        gate.attr.int_mul.out_zero = draw_zero(m, to);
        int product = random_add(m, gate);
        return product < 0 ? -1 : add_convert_by(m, product, RFX_TYPE_FLOAT32, to);
    }
    struct rfx_node mul = {.op = RFX_OP_BINARY, .n_in = 2, .in = both};
    mul.attr.binary.kind = RFX_BINARY_MUL;
    return random_add(m, mul);
}

int random_add_quantised(struct random_maker *m, int in) {
    enum rfx_type type = draw_byte_type(m);
    int last = in;
    int64_t n = random_draw(m, 1, 4);
    if (random_tensor(m, in)->c > 40) return -1;
    if (random_tensor(m, in)->type == RFX_TYPE_INT32) return -1;
    if (random_tensor(m, in)->type == RFX_TYPE_FLOAT32) last = add_convert_by(m, in, type, type);
    if (last < 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        int made = add_byte_node(m, last);
        if (made >= 0) last = made;
    }
    if (!m->options->spatial_only && random_chance(m, 25)) return add_byte_gate(m, last);
    if (random_chance(m, 20)) return last;
    return add_convert_by(m, last, RFX_TYPE_FLOAT32, random_tensor(m, last)->type);
}

/* Multiplies a map of bytes by a convolution of it that keeps its size. */
static int add_byte_product(struct random_maker *m, int in) {
    const struct rfx_tensor t = *random_tensor(m, in);
    int both[2] = {in, add_int_conv(m, in, t.type, t.c, true)};
    struct rfx_node node = {.op = RFX_OP_INT_MUL, .n_in = 2, .in = both};
    if (both[1] < 0) return -1;
    node.attr.int_mul.to = t.type;
    node.attr.int_mul.factor = test_rng_float(&m->rng, 0.002f, 0.02f);
    node.attr.int_mul.a_zero = draw_zero(m, t.type);
    node.attr.int_mul.b_zero = draw_zero(m, t.type);
    node.attr.int_mul.out_zero = draw_zero(m, t.type);
    return random_add(m, node);
}

static int add_nearest(struct random_maker *m, int in) {
    static const float scales[] = {0.5f, 2.0f, 3.0f, 1.5f};
    const struct rfx_tensor *t = random_tensor(m, in);
    struct rfx_node node = {.op = RFX_OP_RESIZE, .n_in = 1, .in = &in};
    struct rfx_resize_attr *a = &node.attr.resize;
    if (t->elems * 9 > 40000) return -1;
    a->mode = RFX_RESIZE_NEAREST;
    a->coord = (enum rfx_resize_coord)random_draw(m, 0, 3);
    a->nearest = (enum rfx_resize_nearest)random_draw(m, 0, 3);
    a->scale_h = scales[random_draw(m, 0, 3)];
    a->scale_w = scales[random_draw(m, 0, 3)];
    a->oh = (int64_t)floor((double)t->h * (double)a->scale_h);
    a->ow = (int64_t)floor((double)t->w * (double)a->scale_w);
    return a->oh < 1 || a->ow < 1 ? -1 : random_add(m, node);
}

/* Adds a function of one element that is not made of exponentials. */
static int add_plain_act(struct random_maker *m, int in) {
    static const enum rfx_act_kind kinds[] = {RFX_ACT_RELU, RFX_ACT_CLIP, RFX_ACT_LEAKY_RELU,
                                              RFX_ACT_HARD_SIGMOID, RFX_ACT_HARD_SWISH};
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .n_in = 1, .in = &in};
    node.act = (struct rfx_act){
        .kind = kinds[random_draw(m, 0, 4)], .alpha = 0.2f, .beta = 0.5f, .slope = -1};
    if (node.act.kind == RFX_ACT_CLIP) node.act.alpha = -0.3f;
    return random_add(m, node);
}

/* Adds an operator of float32 between two conversions; it may be none, for another scale. */
static int add_between(struct random_maker *m, int in) {
    enum rfx_type from = random_tensor(m, in)->type, to = draw_byte_type(m);
    int64_t pick = random_draw(m, 0, 99);
    int made = add_convert_by(m, in, RFX_TYPE_FLOAT32, from), last = made;
    if (made < 0) return -1;
    if (pick < 25)
        made = add_plain_act(m, made);
    else if (pick < 50)
        made = random_add_pool(m, made, RFX_OP_POOL_AVG);
    else if (pick < 65)
        made = add_nearest(m, made);
    else if (pick < 80)
        made = random_add_geometry(m, made, RFX_OP_PAD);
    else if (pick < 90)
        made = random_add_geometry(
            m, made, random_chance(m, 50) ? RFX_OP_SPACE_TO_DEPTH : RFX_OP_DEPTH_TO_SPACE);
    if (made < 0 || random_tensor(m, made)->c > 40) made = last;
    struct rfx_node node = {.op = RFX_OP_CONVERT, .n_in = 1, .in = &made};
    node.attr.convert.to = to;
    node.attr.convert.scale = test_rng_float(&m->rng, 0.005f, 0.03f);
    node.attr.convert.zero_point = draw_zero(m, to);
    node.attr.convert.shifted = random_chance(m, 30);
    return random_add(m, node);
}

/* Multiplies a map of bytes by its mean over space. */
static int add_mean_product(struct random_maker *m, int in) {
    enum rfx_type type = random_tensor(m, in)->type;
    int both[2] = {in, -1};
    struct rfx_node mean = {.op = RFX_OP_INT_MEAN, .n_in = 1, .in = &in};
    mean.attr.int_mean.to = type;
    mean.attr.int_mean.in_scale = test_rng_float(&m->rng, 0.5f, 4.0f);
    mean.attr.int_mean.out_scale = 1.0f;
    mean.attr.int_mean.in_zero = draw_zero(m, type);
    mean.attr.int_mean.out_zero = draw_zero(m, type);
    both[1] = random_add(m, mean);
    struct rfx_node mul = {.op = RFX_OP_INT_MUL, .n_in = 2, .in = both};
    if (both[1] < 0) return -1;
    mul.attr.int_mul.to = type;
    mul.attr.int_mul.factor = test_rng_float(&m->rng, 0.002f, 0.02f);
    mul.attr.int_mul.a_zero = draw_zero(m, type);
    mul.attr.int_mul.b_zero = draw_zero(m, type);
    mul.attr.int_mul.out_zero = draw_zero(m, type);
    return random_add(m, mul);
}

/* Returns one of the latest maps of bytes. */
static int recent_bytes(struct random_maker *m) {
    int n = m->graph->n_nodes, from = (int)random_draw(m, n > 5 ? n - 5 : 1, n - 1);
    if (random_chance(m, 60)) from = n - 1;
    while (from > 1 && !(rfx_type_is_byte(random_tensor(m, from)->type) &&
                         random_tensor(m, from)->layout == RFX_LAYOUT_NHWC))
        from--;
    return from;
}

void random_add_only_bytes(struct random_maker *m, int64_t steps) {
    enum rfx_type type = draw_byte_type(m);
    if (add_convert_by(m, m->graph->input, type, type) < 0) abort();
    for (int64_t i = 0; i < steps; i++) {
        int in = recent_bytes(m);
        int64_t pick = random_draw(m, 0, 99);
        if (pick < 60)
            (void)add_byte_node(m, in);
        else if (pick < 70)
            (void)add_byte_product(m, in);
        else if (pick < 90)
            (void)add_between(m, in);
        else if (!m->options->spatial_only)
            (void)add_mean_product(m, in);
    }
    int last = recent_bytes(m);
    if (random_chance(m, 70))
        (void)add_convert_by(m, last, RFX_TYPE_FLOAT32, random_tensor(m, last)->type);
}
