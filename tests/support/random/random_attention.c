/* Random attention, in windows and of all pixels; see random_nodes.h. */
#include <math.h>

#include "tests/support/random/random_nodes.h"

/* A size of windows up to 9 that divides the extent. */
static int64_t draw_window(struct random_maker *m, int64_t extent) {
    int64_t size = random_draw(m, 2, 9);
    while (extent % size != 0) size--;
    return size;
}

/* A 1x1 convolution to c channels: queries, keys and values. */
static int three_maps(struct random_maker *m, int in, int64_t c) {
    int64_t ic = random_tensor(m, in)->c;
    struct rfx_node conv = {.op = RFX_OP_CONV, .n_in = 1, .in = &in};
    struct rfx_shape s = {4, {c, ic, 1, 1}};
    conv.attr.conv = rfx_conv_pointwise(c);
    conv.attr.conv.weight = random_weight(m, s, 1.0f / sqrtf((float)ic));
    return random_add(m, conv);
}

int random_add_window_attention(struct random_maker *m, int in) {
    const struct rfx_tensor *t = random_tensor(m, in);
    struct rfx_window_attention_attr a = {.h = draw_window(m, t->h), .w = draw_window(m, t->w)};
    if (a.h * a.w == 1) return -1; /* nothing to attend to */
    a.shift_h = random_chance(m, 50) ? random_draw(m, 0, a.h - 1) : 0;
    a.shift_w = random_chance(m, 50) ? random_draw(m, 0, a.w - 1) : 0;
    a.heads = random_draw(m, 1, 3);
    a.scale = random_chance(m, 50) ? 0.5f : 0.2f;
    a.by_table = random_chance(m, 50);
    a.bias = -1;
    int64_t size = random_draw(m, 1, 5), n = a.h * a.w;
    a.value_size = random_chance(m, 40) ? random_draw(m, 1, 9) : 0;
    int64_t table = (2 * a.h - 1) * (2 * a.w - 1);
    struct rfx_shape s = {1, {a.heads * (a.by_table ? table : n * n)}};
    if (random_chance(m, 80)) a.bias = random_weight(m, s, 1.0f);
    if (m->options->rough && random_chance(m, 50)) {
        a.round_scores =
            (struct rfx_rounding){RFX_TYPE_INT8, 0.04f, (int32_t)random_draw(m, -9, 9)};
        a.round_weights = (struct rfx_rounding){RFX_TYPE_UINT8, 1.0f / 255, 0};
        if (random_chance(m, 50)) a.steps = (struct rfx_softmax_steps){0.04f, 1.0f / 255};
    }
    struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION, .n_in = 1};
    int maps = three_maps(m, in, a.heads * (2 * size + (a.value_size > 0 ? a.value_size : size)));
    if (maps < 0) return -1;
    node.in = &maps;
    node.attr.window_attention = a;
    return random_add(m, node);
}

#define MOST_TOKENS 300 /* scores are their square */

static int one_input(struct random_maker *m, struct rfx_node node, int in) {
    node.in = &in;
    node.n_in = 1;
    return in < 0 ? -1 : random_add(m, node);
}

static int two_inputs(struct random_maker *m, struct rfx_node node, int left, int right) {
    int in[2] = {left, right};
    node.in = in;
    node.n_in = 2;
    return left < 0 || right < 0 ? -1 : random_add(m, node);
}

/* A 1x1 convolution to c channels, as (1, pixels, c). */
static int tokens(struct random_maker *m, int in, int64_t c) {
    const struct rfx_tensor *t = random_tensor(m, in);
    struct rfx_node conv = {.op = RFX_OP_CONV};
    struct rfx_node rows = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = {3, {1, t->h * t->w, c}}};
    struct rfx_shape s = {4, {c, t->c, 1, 1}};
    conv.attr.conv = rfx_conv_pointwise(c);
    conv.attr.conv.weight = random_weight(m, s, 1.0f / sqrtf((float)t->c));
    int map = one_input(m, conv, in);
    int plain = one_input(m, (struct rfx_node){.op = RFX_OP_NHWC_AS_PLAIN}, map);
    return one_input(m, rows, plain);
}

int random_add_attention(struct random_maker *m, int in) {
    int64_t h = random_tensor(m, in)->h, w = random_tensor(m, in)->w;
    if (m->options->spatial_only || h * w > MOST_TOKENS) return -1;
    int64_t c = random_draw(m, 1, 9), values = random_draw(m, 1, 9);
    struct rfx_node product = {.op = RFX_OP_MATMUL}, turn = {.op = RFX_OP_TRANSPOSE};
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 2};
    struct rfx_node back = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = {4, {1, h, w, values}}};
    const int perm[3] = {0, 2, 1};
    for (int i = 0; i < 3; i++) turn.attr.transpose.perm[i] = perm[i];
    int keys = one_input(m, turn, tokens(m, in, c));
    int scores = two_inputs(m, product, tokens(m, in, c), keys);
    int mixed = two_inputs(m, product, one_input(m, softmax, scores), tokens(m, in, values));
    return one_input(m, (struct rfx_node){.op = RFX_OP_PLAIN_AS_NHWC}, one_input(m, back, mixed));
}
