/* The layer vocabulary of the built-in networks; see the header.
 *
 * Moments: a convolution with He-uniform weights (variance 2 / fan_in) doubles the second moment
 * of its input; a batch norm with gamma U(.5, 1.5) and beta U(-.5, .5) makes it gain^2 * 7/6; a
 * rectifier halves a symmetric signal. */
#include "rfexec/builtin_builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct rfx_name rfx_name(const char *format, ...) {
    struct rfx_name name;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(name.text, sizeof name.text, format, args);
    va_end(args);
    return name;
}

struct rfx_act rfx_act_relu(void) {
    return (struct rfx_act){.kind = RFX_ACT_RELU, .slope = -1};
}

struct rfx_act rfx_act_relu6(void) {
    return (struct rfx_act){.kind = RFX_ACT_CLIP, .alpha = 0.0f, .beta = 6.0f, .slope = -1};
}

void rfx_builder_init(struct rfx_builder *b, struct rfx_graph *graph, uint64_t seed,
                      struct rfx_error *err) {
    *b = (struct rfx_builder){.graph = graph, .seed = seed, .err = err, .status = RFX_OK};
}

void rfx_builder_free(struct rfx_builder *b) {
    rfx_memory_release(b->graph->mem, b->moment);
    b->moment = NULL;
}

int rfx_builder_fail(struct rfx_builder *b, enum rfx_status status) {
    if (b->status == RFX_OK) b->status = status;
    return -1;
}

int64_t rfx_builder_channels(const struct rfx_builder *b, int node) {
    return b->status == RFX_OK ? b->graph->nodes[node].out.c : 1;
}

static float moment_of(const struct rfx_builder *b, int node) {
    return b->status == RFX_OK ? b->moment[node] : 1.0f;
}

static int add_node(struct rfx_builder *b, const struct rfx_node *node, float moment) {
    if (b->status != RFX_OK) return -1;
    struct rfx_memory *mem = b->graph->mem;
    if (b->graph->n_nodes >= b->moment_capacity) {
        int capacity = b->moment_capacity + 256;
        size_t bytes = (size_t)capacity * sizeof *b->moment;
        float *grown = rfx_memory_realloc(mem, b->moment, bytes);
        if (grown == NULL)
            return rfx_builder_fail(b, rfx_memory_fail(mem, "network builder", bytes, b->err));
        b->moment = grown;
        b->moment_capacity = capacity;
    }
    int index;
    enum rfx_status status = rfx_graph_add(b->graph, node, &index, b->err);
    if (status != RFX_OK) return rfx_builder_fail(b, status);
    b->moment[index] = moment;
    return index;
}

/* FNV-1a over "layer/part", so that a layer's weights do not depend on the layers before it. */
static uint64_t weight_seed(uint64_t seed, const char *layer, const char *part) {
    uint64_t hash = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
    for (const char *p = layer; *p != '\0'; p++) hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    hash = (hash ^ (uint8_t)'/') * 0x100000001b3u;
    for (const char *p = part; *p != '\0'; p++) hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    return hash;
}

static int add_uniform(struct rfx_builder *b, const char *layer, const char *part,
                       struct rfx_shape shape, float lo, float hi) {
    if (b->status != RFX_OK) return -1;
    struct rfx_weight weight = {.source = RFX_WEIGHT_GENERATED,
                                .dtype = RFX_DTYPE_F32,
                                .seed = weight_seed(b->seed, layer, part),
                                .lo = lo,
                                .hi = hi,
                                .shape = shape,
                                .elems = 1};
    for (int i = 0; i < shape.rank; i++) weight.elems *= shape.dims[i];
    int index;
    enum rfx_status status = rfx_graph_add_weight(b->graph, &weight, &index, b->err);
    return status == RFX_OK ? index : rfx_builder_fail(b, status);
}

int rfx_builder_input(struct rfx_builder *b, int64_t c, int64_t h, int64_t w) {
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "input"};
    node.attr.input.c = c;
    node.attr.input.h = h;
    node.attr.input.w = w;
    return add_node(b, &node, 1.0f);
}

int rfx_builder_conv(struct rfx_builder *b, const char *name, int in, struct rfx_conv_spec spec) {
    if (b->status != RFX_OK) return -1;
    int64_t kw = spec.kw != 0 ? spec.kw : spec.kh;
    int64_t stride = spec.stride != 0 ? spec.stride : 1;
    int64_t groups = spec.groups != 0 ? spec.groups : 1;
    int64_t dilation = spec.dilation != 0 ? spec.dilation : 1;
    int64_t pad_h = spec.pad_h != 0 ? spec.pad_h : spec.pad;
    int64_t pad_w = spec.pad_w != 0 ? spec.pad_w : spec.pad;
    int64_t per_group = rfx_builder_channels(b, in) / groups;
    float bound = sqrtf(6.0f / (float)(per_group * spec.kh * kw));
    struct rfx_shape shape = {4, {spec.oc, per_group, spec.kh, kw}};
    struct rfx_node node = {.op = RFX_OP_CONV, .name = name, .n_in = 1, .in = &in};
    node.attr.conv = (struct rfx_conv_attr){.kh = spec.kh,
                                            .kw = kw,
                                            .sh = stride,
                                            .sw = stride,
                                            .dh = dilation,
                                            .dw = dilation,
                                            .pads = {pad_h, pad_w, pad_h, pad_w},
                                            .groups = groups,
                                            .oc = spec.oc,
                                            .bias = -1,
                                            .scale = -1};
    node.attr.conv.weight = add_uniform(b, name, "weight", shape, -bound, bound);
    if (spec.bias)
        node.attr.conv.bias =
            add_uniform(b, name, "bias", (struct rfx_shape){1, {spec.oc}}, -0.1f, 0.1f);
    return add_node(b, &node, 2.0f * moment_of(b, in));
}

int rfx_builder_batch_norm(struct rfx_builder *b, const char *name, int in, float gain) {
    int64_t c = rfx_builder_channels(b, in);
    float scale = gain / sqrtf(moment_of(b, in) + 1e-5f);
    struct rfx_node node = {.op = RFX_OP_AFFINE, .name = name, .n_in = 1, .in = &in};
    struct rfx_shape shape = {1, {c}};
    node.attr.affine.scale = add_uniform(b, name, "scale", shape, 0.5f * scale, 1.5f * scale);
    node.attr.affine.shift = add_uniform(b, name, "shift", shape, -0.5f * gain, 0.5f * gain);
    return add_node(b, &node, gain * gain * (7.0f / 6.0f));
}

/* A rectifier halves a symmetric signal; of a sum with a rectified operand it takes little. */
static float rectified_moment(const struct rfx_builder *b, int in) {
    const struct rfx_node *node = &b->graph->nodes[in];
    if (node->op != RFX_OP_BINARY) return 0.5f * b->moment[in];
    for (int k = 0; k < 2; k++)
        if (b->graph->nodes[node->in[k]].op != RFX_OP_AFFINE)
            return b->moment[node->in[k]] + 0.75f * b->moment[node->in[1 - k]];
    return 0.5f * b->moment[in];
}

int rfx_builder_act(struct rfx_builder *b, const char *name, int in, struct rfx_act act) {
    if (b->status != RFX_OK) return -1;
    float moment = rectified_moment(b, in);
    struct rfx_node node = {
        .op = RFX_OP_ACTIVATION, .name = name, .n_in = 1, .in = &in, .act = act};
    return add_node(b, &node, moment);
}

int rfx_builder_relu(struct rfx_builder *b, const char *name, int in) {
    return rfx_builder_act(b, name, in, rfx_act_relu());
}

int rfx_builder_relu6(struct rfx_builder *b, const char *name, int in) {
    return rfx_builder_act(b, name, in, rfx_act_relu6());
}

int rfx_builder_add(struct rfx_builder *b, const char *name, int left, int right) {
    int in[2] = {left, right};
    struct rfx_node node = {.op = RFX_OP_BINARY, .name = name, .n_in = 2, .in = in};
    node.attr.binary.kind = RFX_BINARY_ADD;
    return add_node(b, &node, moment_of(b, left) + moment_of(b, right));
}

int rfx_builder_max_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool) {
    struct rfx_node node = {.op = RFX_OP_POOL_MAX, .name = name, .n_in = 1, .in = &in};
    node.attr.pool = pool;
    if (node.attr.pool.dh == 0) node.attr.pool.dh = 1;
    if (node.attr.pool.dw == 0) node.attr.pool.dw = 1;
    return add_node(b, &node, 1.5f * moment_of(b, in));
}

int rfx_builder_adaptive_avg(struct rfx_builder *b, const char *name, int in, int64_t oh,
                             int64_t ow) {
    struct rfx_node node = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .name = name, .n_in = 1, .in = &in};
    node.attr.adaptive.oh = oh;
    node.attr.adaptive.ow = ow;
    return add_node(b, &node, moment_of(b, in));
}

int rfx_builder_global_mean(struct rfx_builder *b, const char *name, int in) {
    struct rfx_node node = {.op = RFX_OP_GLOBAL_POOL, .name = name, .n_in = 1, .in = &in};
    node.attr.global_pool.kind = RFX_REDUCE_MEAN;
    return add_node(b, &node, moment_of(b, in));
}

int rfx_builder_flatten(struct rfx_builder *b, const char *name, int in) {
    struct rfx_name plain_name = rfx_name("%s.nchw", name);
    struct rfx_node plain = {.op = RFX_OP_TO_PLAIN, .name = plain_name.text, .n_in = 1, .in = &in};
    int middle = add_node(b, &plain, moment_of(b, in));
    if (b->status != RFX_OK) return -1;
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .name = name, .n_in = 1, .in = &middle};
    node.attr.reshape.shape = (struct rfx_shape){2, {1, b->graph->nodes[middle].out.elems}};
    return add_node(b, &node, moment_of(b, in));
}

int rfx_builder_linear(struct rfx_builder *b, const char *name, int in, int64_t m) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_shape *shape = &b->graph->nodes[in].out.shape;
    int64_t k = shape->dims[shape->rank - 1];
    float bound = sqrtf(6.0f / (float)k);
    struct rfx_node node = {.op = RFX_OP_GEMM, .name = name, .n_in = 1, .in = &in};
    node.attr.gemm.k = k;
    node.attr.gemm.m = m;
    node.attr.gemm.weight_is_mk = true;
    node.attr.gemm.alpha = 1.0f;
    node.attr.gemm.beta = 1.0f;
    node.attr.gemm.weight =
        add_uniform(b, name, "weight", (struct rfx_shape){2, {m, k}}, -bound, bound);
    node.attr.gemm.bias = add_uniform(b, name, "bias", (struct rfx_shape){1, {m}}, -0.1f, 0.1f);
    return add_node(b, &node, 2.0f * moment_of(b, in));
}

int rfx_builder_conv_bn_act(struct rfx_builder *b, int in, const char *conv, const char *bn,
                            const char *act_name, struct rfx_act act, struct rfx_conv_spec spec) {
    int x = rfx_builder_conv(b, conv, in, spec);
    x = rfx_builder_batch_norm(b, bn, x, 1.0f);
    return act.kind == RFX_ACT_NONE ? x : rfx_builder_act(b, act_name, x, act);
}

void rfx_builder_alias(struct rfx_builder *b, int node, const char *alias) {
    if (b->status != RFX_OK) return;
    b->status = rfx_graph_set_alias(b->graph, node, alias, b->err);
}

void rfx_builder_output(struct rfx_builder *b, int node, const char *name) {
    if (b->status != RFX_OK) return;
    b->status = rfx_graph_add_output(b->graph, node, name, b->err);
}
