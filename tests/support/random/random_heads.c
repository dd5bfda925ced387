/* See random_heads.h. */
#include "tests/support/random/random_heads.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LEVELS = 3, MAX_ANCHORS = 3, MAX_MAPS = MAX_LEVELS * MAX_ANCHORS };

/* A tensor of (1, c, n) or, last, (1, n, c) in the making; x < 0: refused. */
struct head {
    int x;
    bool last;
    int64_t c, n;
    int maps; /* levels, times anchors in front of the cells */
    int64_t h[MAX_MAPS], w[MAX_MAPS], inner[MAX_MAPS]; /* inner: cells of a pixel */
};

static int one(struct random_maker *m, struct rfx_node node, int in) {
    if (in < 0) return -1;
    node.n_in = 1;
    node.in = &in;
    return random_add(m, node);
}

static int two(struct random_maker *m, struct rfx_node node, int a, int b) {
    int in[2] = {a, b};
    if (a < 0 || b < 0) return -1;
    node.n_in = 2;
    node.in = in;
    return random_add(m, node);
}

/* A weight of the graph's own; *values are to be filled. */
static int own(struct random_maker *m, struct rfx_shape shape, float **values) {
    struct rfx_weight w = {.source = RFX_WEIGHT_OWNED, .shape = shape, .elems = 1};
    int index;
    for (int i = 0; i < shape.rank; i++) w.elems *= shape.dims[i];
    if (rfx_graph_add_weight(m->graph, &w, &index, NULL) != RFX_OK) abort();
    *values = rfx_graph_owned_weight(m->graph, index);
    return index;
}

static float number(struct random_maker *m) {
    return (float)random_draw(m, -12, 12) / 4.0f;
}

static int conv1(struct random_maker *m, int in, int64_t ic, int64_t oc) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    float *values;
    node.attr.conv = (struct rfx_conv_attr){
        .kh = 1, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .groups = 1, .oc = oc, .scale = -1};
    node.attr.conv.weight = own(m, (struct rfx_shape){4, {oc, ic, 1, 1}}, &values);
    for (int64_t i = 0; i < oc * ic; i++) values[i] = number(m) / 3.0f;
    node.attr.conv.bias = own(m, (struct rfx_shape){1, {oc}}, &values);
    for (int64_t i = 0; i < oc; i++) values[i] = number(m);
    if (random_chance(m, 50)) node.attr.conv.bias = -1;
    return one(m, node, in);
}

/* To bytes, or from bytes to floats. */
static int convert(struct random_maker *m, int in, enum rfx_type to, int32_t zero) {
    struct rfx_node node = {.op = RFX_OP_CONVERT, .attr.convert = {to, 0.03125f, zero, false}};
    return one(m, node, in);
}

/* The same of bytes, with a zero point for each channel, to bytes. */
static int int_conv1(struct random_maker *m, int in, int64_t ic, int64_t oc) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    struct rfx_int_conv_attr *q = &node.attr.int_conv;
    const float factor = 0.0078125f;
    int64_t channels[3 * 3];
    uint32_t bits;
    float *values;
    memcpy(&bits, &factor, sizeof bits);
    for (int64_t i = 0; i < oc; i++) {
        channels[3 * i] = random_draw(m, -200, 200);
        channels[3 * i + 1] = random_draw(m, -4, 4);
        channels[3 * i + 2] = bits;
    }
    *q = (struct rfx_int_conv_attr){.conv = rfx_conv_pointwise(oc),
                                    .in_zero = 3,
                                    .out_zero = 100,
                                    .to = RFX_TYPE_UINT8,
                                    .channels = channels};
    q->conv.weight = own(m, (struct rfx_shape){4, {oc, ic, 1, 1}}, &values);
    for (int64_t i = 0; i < oc * ic; i++) values[i] = (float)random_draw(m, -100, 100);
    return one(m, node, in);
}

static int reshape(struct random_maker *m, int in, struct rfx_shape shape) {
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = shape};
    return one(m, node, in);
}

static int transpose(struct random_maker *m, int in, int a, int b, int c, int d) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {a, b, c, d}};
    return one(m, node, in);
}

static struct rfx_shape shape_of(const struct head *t, int64_t c, int64_t n) {
    return (struct rfx_shape){3, {1, t->last ? n : c, t->last ? c : n}};
}

/* One level as (1, c, cells) or (1, cells, c), in one of the forms that exporters write. */
static int flat_level(struct random_maker *m, const struct head *t, int map, bool turned) {
    int64_t cells = random_tensor(m, map)->h * random_tensor(m, map)->w;
    struct rfx_node plain = {.op = t->last && !turned ? RFX_OP_NHWC_AS_PLAIN : RFX_OP_TO_PLAIN};
    int x = one(m, plain, map);
    if (t->last && turned) x = transpose(m, x, 0, 2, 3, 1);
    return reshape(m, x, shape_of(t, t->c, cells));
}

/* One level of (anchors, c) channels as (1, anchors * cells, c): YOLOv5's. */
static int anchor_level(struct random_maker *m, const struct head *t, int map, int64_t anchors) {
    int64_t h = random_tensor(m, map)->h, w = random_tensor(m, map)->w;
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 1, 3, 4, 2}};
    int x = one(m, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, map);
    x = reshape(m, x, (struct rfx_shape){5, {1, anchors, t->c, h, w}});
    x = one(m, turn, x);
    return reshape(m, x, shape_of(t, t->c, anchors * h * w));
}

/* One level of (anchors, c) channels as (1, cells * anchors, c): SSD's. */
static int inner_level(struct random_maker *m, const struct head *t, int map, int64_t anchors) {
    int64_t h = random_tensor(m, map)->h, w = random_tensor(m, map)->w;
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 3, 4, 1, 2}};
    struct rfx_node planes = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 3, 4, 1}};
    bool channels_last = random_chance(m, 50), by_planes = random_chance(m, 50);
    struct rfx_node leave = {.op = channels_last ? RFX_OP_NHWC_AS_PLAIN : RFX_OP_TO_PLAIN};
    int x = one(m, leave, map);
    if (channels_last) return reshape(m, x, shape_of(t, t->c, h * w * anchors));
    x = reshape(m, x, (struct rfx_shape){5, {1, anchors, t->c, h, w}});
    x = one(m, by_planes ? planes : turn, x);
    if (!by_planes) return reshape(m, x, shape_of(t, t->c, h * w * anchors));
    x = reshape(m, x, (struct rfx_shape){3, {1, t->c, h * w * anchors}});
    return transpose(m, x, 0, 2, 1, 3);
}

static struct head draw_levels(struct random_maker *m, int in) {
    int levels = (int)random_draw(m, 1, MAX_LEVELS);
    int64_t anchors = random_chance(m, 25) ? random_draw(m, 2, MAX_ANCHORS) : 1;
    bool inner = anchors == 1 && random_chance(m, 25);
    struct head t = {.last = inner || anchors > 1 || random_chance(m, 50)};
    struct rfx_node pool = {.op = RFX_OP_POOL_MAX,
                            .attr.pool = {.kh = 2, .kw = 2, .sh = 2, .sw = 2, .dh = 1, .dw = 1}};
    struct rfx_node concat = {.op = RFX_OP_PLAIN_CONCAT};
    bool turned = random_chance(m, 50);
    int flat[MAX_LEVELS];
    t.c = random_draw(m, 1, 4) * random_draw(m, 1, 5);
    for (int l = 0; l < levels; l++) {
        if (l > 0) in = one(m, pool, in);
        int64_t behind = inner ? random_draw(m, 1, MAX_ANCHORS) : 1;
        int map = in < 0 ? -1 : conv1(m, in, random_tensor(m, in)->c, t.c * anchors * behind);
        if (map < 0)
            flat[l] = -1;
        else if (inner)
            flat[l] = inner_level(m, &t, map, behind);
        else
            flat[l] =
                anchors > 1 ? anchor_level(m, &t, map, anchors) : flat_level(m, &t, map, turned);
        t.x = flat[l];
        if (t.x < 0) return t;
        for (int64_t a = 0; a < anchors; a++, t.maps++) {
            t.h[t.maps] = random_tensor(m, map)->h;
            t.w[t.maps] = random_tensor(m, map)->w;
            t.inner[t.maps] = behind;
            t.n += t.h[t.maps] * t.w[t.maps] * behind;
        }
    }
    if (levels == 1 && random_chance(m, 50)) return t;
    concat.attr.concat.axis = t.last ? 1 : 2;
    concat.n_in = levels;
    concat.in = flat;
    t.x = random_add(m, concat);
    return t;
}

/* The channels [first, first + step, ...) of the head. */
static int slice(struct random_maker *m, const struct head *t, int64_t first, int64_t step,
                 int64_t count) {
    int axis = t->last ? 2 : 1;
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE};
    node.attr.slice =
        (struct rfx_slice_attr){.steps = {1, 1, 1}, .shape = shape_of(t, count, t->n)};
    node.attr.slice.starts[axis] = first;
    node.attr.slice.steps[axis] = step;
    return one(m, node, t->x);
}

static void take_channels(struct random_maker *m, struct head *t) {
    int64_t count = random_draw(m, 1, t->c < 20 ? t->c : 20), map[20];
    struct rfx_node gather = {.op = RFX_OP_PLAIN_GATHER};
    if (random_chance(m, 50)) {
        bool back = random_chance(m, 30);
        t->x = slice(m, t, back ? count - 1 : t->c - count, back ? -1 : 1, count);
    } else {
        for (int i = 0; i < count; i++) map[i] = random_draw(m, 0, t->c - 1);
        gather.attr.gather.axis = t->last ? 2 : 1;
        gather.attr.gather.count = count;
        gather.attr.gather.map = map;
        t->x = one(m, gather, t->x);
    }
    t->c = count;
}

static struct rfx_node draw_join(struct random_maker *m) {
    static const enum rfx_binary_kind kinds[] = {RFX_BINARY_ADD, RFX_BINARY_SUB,    RFX_BINARY_MUL,
                                                 RFX_BINARY_DIV, RFX_BINARY_MAX,    RFX_BINARY_SUB,
                                                 RFX_BINARY_MIN, RFX_BINARY_GREATER};
    struct rfx_node node = {.op = RFX_OP_PLAIN_BINARY};
    node.attr.binary.kind = kinds[random_draw(m, 0, 7)];
    return node;
}

/* What a constant's channel is of a cell's row and column: nothing, one of them or both. */
static float cell_value(int64_t kind, float base, int64_t y, int64_t x) {
    float a = kind & 1 ? (float)x + 0.5f : 0.0f, b = kind & 2 ? 3.0f * (float)y - 0.25f : 0.0f;
    return base + a + b;
}

/* Joins the head with a constant: a number, one per channel, per cell, or per element. */
static void join_constant(struct random_maker *m, struct head *t) {
    int64_t c = random_chance(m, 50) ? t->c : 1, n = random_chance(m, 60) ? t->n : 1;
    struct rfx_node node = {.op = RFX_OP_CONST_PLAIN}, join = draw_join(m);
    int64_t mixed = random_draw(m, 0, 9), step = t->last ? 1 : n;
    float *values;
    node.attr.constant.shape = shape_of(t, c, n);
    if (c * n == 1 && random_chance(m, 50)) node.attr.constant.shape = (struct rfx_shape){0, {0}};
    node.attr.constant.weight = own(m, node.attr.constant.shape, &values);
    for (int64_t e = 0; e < c; e++) {
        int64_t kind = mixed < 3 ? mixed : mixed < 9 ? random_draw(m, 0, 2) : 3, cell = 0;
        float base = number(m);
        for (int l = 0; l < t->maps; l++)
            for (int64_t p = 0; p < t->h[l] * t->w[l] * t->inner[l] && cell < n; p++, cell++) {
                int64_t pixel = p / t->inner[l], anchor = p % t->inner[l];
                float at = base + (float)((8 << l) + 5 * anchor);
                values[e * step + cell * (t->last ? c : 1)] =
                    n == 1 ? base : cell_value(kind, at, pixel / t->w[l], pixel % t->w[l]);
            }
    }
    int constant = random_add(m, node);
    t->x = random_chance(m, 50) ? two(m, join, t->x, constant) : two(m, join, constant, t->x);
}

/* Two cuts of the head joined element by element, one of them perhaps of a single channel. */
static void join_cuts(struct random_maker *m, struct head *t) {
    int64_t count = random_draw(m, 1, t->c), other = random_chance(m, 30) ? 1 : count;
    int a = slice(m, t, 0, 1, count), b = slice(m, t, t->c - other, 1, other);
    t->x = random_chance(m, 50) ? two(m, draw_join(m), a, b) : two(m, draw_join(m), b, a);
    t->c = count;
}

static void act(struct random_maker *m, struct head *t) {
    static const enum rfx_act_kind kinds[] = {RFX_ACT_SIGMOID, RFX_ACT_RELU, RFX_ACT_TANH,
                                              RFX_ACT_NEG};
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .act = {.slope = -1}};
    node.act.kind = kinds[random_draw(m, 0, 3)];
    t->x = one(m, node, t->x);
}

/* The head's two parts, one of them changed, and together again. */
static void join_parts(struct random_maker *m, struct head *t) {
    int64_t cut = random_draw(m, 1, t->c), count = random_draw(m, 1, t->c);
    struct head part = *t;
    struct rfx_node concat = {.op = RFX_OP_PLAIN_CONCAT};
    part.x = slice(m, t, 0, 1, cut);
    part.c = cut;
    if (random_chance(m, 60)) act(m, &part);
    concat.attr.concat.axis = t->last ? 2 : 1;
    t->x = two(m, concat, part.x, slice(m, t, t->c - count, 1, count));
    t->c = cut + count;
}

static void softmax(struct random_maker *m, struct head *t) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_SOFTMAX};
    node.attr.softmax.axis = t->last ? 2 : 1;
    node.attr.softmax.logarithm = random_chance(m, 30);
    t->x = one(m, node, t->x);
}

static void best(struct random_maker *m, struct head *t) {
    static const enum rfx_reduce_kind kinds[] = {RFX_REDUCE_MAX, RFX_REDUCE_MIN, RFX_REDUCE_ARG_MAX,
                                                 RFX_REDUCE_ARG_MIN_LAST};
    struct rfx_node node = {.op = RFX_OP_REDUCE, .attr.reduce.keep_dims = true};
    node.attr.reduce.kind = kinds[random_draw(m, 0, 3)];
    node.attr.reduce.axes[t->last ? 2 : 1] = true;
    t->x = one(m, node, t->x);
    t->c = 1;
}

static void turn(struct random_maker *m, struct head *t) {
    t->x = transpose(m, t->x, 0, 2, 1, 3);
    t->last = !t->last;
}

/* Bins of distributions: softmax over k of (sides, k) channels, and perhaps 1x1 convolution. */
static void bins(struct random_maker *m, struct head *t) {
    int64_t k = random_draw(m, 1, t->c), oc = random_draw(m, 1, 3);
    struct rfx_node node = {.op = RFX_OP_PLAIN_SOFTMAX};
    while (t->c % k != 0) k--; /* 1 does */
    if (t->last) turn(m, t);
    int64_t sides = t->c / k;
    int x = reshape(m, t->x, (struct rfx_shape){4, {1, sides, k, t->n}});
    x = transpose(m, x, 0, 2, 1, 3);
    node.attr.softmax.axis = 1;
    x = one(m, node, x);
    if (random_chance(m, 60)) {
        bool integers = random_chance(m, 40);
        if (integers) x = convert(m, x, RFX_TYPE_UINT8, 3);
        x = one(m, (struct rfx_node){.op = RFX_OP_TO_NHWC}, x);
        if (x >= 0) x = integers ? int_conv1(m, x, k, oc) : conv1(m, x, k, oc);
        x = one(m, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, x);
        if (integers) x = convert(m, x, RFX_TYPE_FLOAT32, 100);
        k = oc;
    }
    t->c = k * sides;
    t->x = reshape(m, x, shape_of(t, t->c, t->n));
}

/* To bytes and back, perhaps with other channels between. */
static void bytes(struct random_maker *m, struct head *t) {
    int32_t zero = (int32_t)random_draw(m, -40, 40);
    t->x = convert(m, t->x, RFX_TYPE_INT8, zero);
    if (t->x >= 0 && random_chance(m, 50)) take_channels(m, t);
    t->x = convert(m, t->x, RFX_TYPE_FLOAT32, zero);
}

int random_add_head(struct random_maker *m, int in) {
    static void (*const steps[])(struct random_maker *, struct head *) = {
        take_channels, join_constant, join_constant, join_cuts, act,  join_parts,
        softmax,       turn,          bins,          best,      bytes};
    struct head t = draw_levels(m, in);
    int64_t n = random_draw(m, 0, 6);
    for (int64_t i = 0; i < n && t.x >= 0; i++) {
        if (t.c > 20) take_channels(m, &t);
        if (t.x >= 0) steps[random_draw(m, 0, 10)](m, &t);
    }
    return t.x;
}

int random_add_best(struct random_maker *m, int in) {
    const struct rfx_shape *shape = &random_tensor(m, in)->shape;
    struct rfx_node top = {.op = RFX_OP_TOP_K}, pick = {.op = RFX_OP_PICK};
    struct rfx_node scatter = {.op = RFX_OP_SCATTER};
    int axis = (int)random_draw(m, 1, shape->rank - 1);
    int64_t n = shape->dims[axis], form = random_draw(m, 0, 3);
    top.attr.top_k.axis = pick.attr.index.axis = scatter.attr.index.axis = axis;
    top.attr.top_k.k = random_draw(m, 1, n < 60 ? n : 60);
    top.attr.top_k.largest = random_chance(m, 70);
    scatter.attr.index.scatter = (enum rfx_scatter_kind)random_draw(m, 0, 4);
    int places = one(m, top, in);
    if (form == 0) return places;
    int values = two(m, pick, in, places);
    if (form < 3 || values < 0) return values;
    int all[3] = {in, places, values};
    scatter.n_in = 3;
    scatter.in = all;
    return random_add(m, scatter);
}
