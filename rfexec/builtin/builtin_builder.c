/* The functions that build the built-in networks; see the header.
 *
 * Signals: elements are assumed to be Gaussian with the tracked mean and mean square. The weights
 * of a convolution cancel in pairs of neighbouring input channels (rfx_weight.mirror). So the mean
 * that rectifiers give to all channels, and that does not depend on the image, is not passed on.
 * With weights of variance 2 / fan_in a convolution doubles the variance of its input. Depthwise
 * filters have positive weights on average; the batch norm after them removes the mean. After a
 * batch norm with gamma U(.7, 1.3) and beta U(-.3, .3) the second moment is gain^2 * 1.06. */
#include "rfexec/builtin/builtin_builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/real_math.h"

struct rfx_name rfx_name(const char *format, ...) {
    struct rfx_name name;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(name.text, sizeof name.text, format, args);
    va_end(args);
    return name;
}

void rfx_builder_init(struct rfx_builder *b, struct rfx_graph *graph, uint64_t seed,
                      struct rfx_error *err) {
    *b = (struct rfx_builder){.graph = graph, .seed = seed, .err = err, .status = RFX_OK};
}

void rfx_builder_free(struct rfx_builder *b) {
    rfx_memory_release(b->graph->mem, b->signal);
    b->signal = NULL;
}

int rfx_builder_fail(struct rfx_builder *b, enum rfx_status status) {
    if (b->status == RFX_OK) b->status = status;
    return -1;
}

int64_t rfx_builder_channels(const struct rfx_builder *b, int node) {
    return b->status == RFX_OK ? b->graph->nodes[node].out.c : 1;
}

struct rfx_signal rfx_builder_signal(const struct rfx_builder *b, int node) {
    return b->status == RFX_OK ? b->signal[node] : (struct rfx_signal){.mean = 0, .square = 1};
}

float rfx_builder_variance(const struct rfx_builder *b, int node) {
    struct rfx_signal signal = rfx_builder_signal(b, node);
    return fmaxf(signal.square - signal.mean * signal.mean, 1e-3f * signal.square + 1e-12f);
}

int rfx_builder_add_node(struct rfx_builder *b, const struct rfx_node *node, float mean,
                         float square) {
    if (b->status != RFX_OK) return -1;
    struct rfx_memory *mem = b->graph->mem;
    size_t wanted = (size_t)b->graph->n_nodes + 1;
    struct rfx_signal *signal =
        rfx_memory_reserve(mem, b->signal, &b->signal_capacity, wanted, sizeof *signal);
    if (signal == NULL)
        return rfx_builder_fail(
            b, rfx_memory_fail(mem, "network builder", wanted * sizeof *signal, b->err));
    b->signal = signal;
    int index;
    enum rfx_status status = rfx_graph_add(b->graph, node, &index, b->err);
    if (status != RFX_OK) return rfx_builder_fail(b, status);
    b->signal[index] = (struct rfx_signal){.mean = mean, .square = square};
    return index;
}

/* Adds a node whose output has the expected mean and mean square of the node `like`. */
static int add_like(struct rfx_builder *b, const struct rfx_node *node, int like) {
    struct rfx_signal signal = rfx_builder_signal(b, like);
    return rfx_builder_add_node(b, node, signal.mean, signal.square);
}

/* Returns the seed of a weight: the FNV-1a hash of "layer/part". So a layer's weights do not depend
 * on the layers before it. */
static uint64_t weight_seed(uint64_t seed, const char *layer, const char *part) {
    uint64_t hash = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
    for (const char *p = layer; *p != '\0'; p++) hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    hash = (hash ^ (uint8_t)'/') * 0x100000001b3u;
    for (const char *p = part; *p != '\0'; p++) hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    return hash;
}

/* Adds a weight with values in [lo, hi). mirror: see struct rfx_weight. */
static int add_weight(struct rfx_builder *b, const char *layer, const char *part,
                      struct rfx_shape shape, float lo, float hi, int64_t mirror) {
    if (b->status != RFX_OK) return -1;
    struct rfx_weight weight = {.source = RFX_WEIGHT_GENERATED,
                                .type = RFX_TYPE_FLOAT32,
                                .seed = weight_seed(b->seed, layer, part),
                                .lo = lo,
                                .hi = hi,
                                .mirror = mirror,
                                .shape = shape,
                                .elems = 1};
    for (int i = 0; i < shape.rank; i++) weight.elems *= shape.dims[i];
    int index;
    enum rfx_status status = rfx_graph_add_weight(b->graph, &weight, &index, b->err);
    return status == RFX_OK ? index : rfx_builder_fail(b, status);
}

int rfx_builder_uniform(struct rfx_builder *b, const char *layer, const char *part,
                        struct rfx_shape shape, float lo, float hi) {
    return add_weight(b, layer, part, shape, lo, hi, 0);
}

int rfx_builder_input(struct rfx_builder *b, int64_t c, int64_t h, int64_t w,
                      const struct rfx_fit_size *fit) {
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "input"}, pad;
    node.attr.input.c = c;
    node.attr.input.h = h;
    node.attr.input.w = w;
    int image = rfx_builder_add_node(b, &node, 0.0f, 1.0f);
    if (!rfx_fit_pad(fit, h, w, &pad)) return image;
    rfx_fit_note(&pad, h, w, b->graph);
    pad.name = "input.padded";
    pad.in = &image;
    pad.n_in = 1;
    return rfx_builder_add_node(b, &pad, 0.0f, 1.0f);
}

struct rfx_conv_spec rfx_spec(int64_t oc, int64_t k) {
    return (struct rfx_conv_spec){.oc = oc, .kh = k, .pad = k / 2};
}

struct rfx_conv_spec rfx_spec_biased(int64_t oc, int64_t k) {
    return (struct rfx_conv_spec){.oc = oc, .kh = k, .pad = k / 2, .bias = true};
}

struct rfx_conv_spec rfx_spec_strided(int64_t oc, int64_t k, int64_t stride) {
    return (struct rfx_conv_spec){.oc = oc, .kh = k, .pad = k / 2, .stride = stride};
}

struct rfx_conv_spec rfx_spec_depthwise(int64_t c, int64_t k, int64_t stride) {
    return (struct rfx_conv_spec){.oc = c, .kh = k, .pad = k / 2, .stride = stride, .groups = c};
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
    bool mirrored = per_group % 2 == 0, depthwise = groups > 1 && per_group == 1 && !spec.bias;
    float taken = mirrored ? rfx_builder_variance(b, in) : rfx_builder_signal(b, in).square;
    /* A convolution with bias has no batch norm after it, so its weights give variance 1. */
    float gain = spec.bias ? 1.0f / taken : 2.0f;
    float bound = sqrtf(3.0f * gain / (float)(per_group * spec.kh * kw));
    float low = -bound, mean = 0.0f, square = gain * taken;
    if (depthwise) { /* one input channel, so no cancelling; track the mean of the random blur */
        struct rfx_signal signal = rfx_builder_signal(b, in);
        float taps = (float)(spec.kh * kw), sum = 0.3f * bound * taps;
        low = -0.4f * bound;
        mean = sum * signal.mean;
        square = mean * mean + 1.4f * sum * sum * rfx_builder_variance(b, in) +
                 taps * 0.163f * bound * bound * signal.square;
    }
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
    if (spec.same)
        node.attr.conv.pads = rfx_builder_same_pads(b, in, spec.kh, kw, stride, dilation);
    node.attr.conv.weight =
        add_weight(b, name, "weight", shape, low, bound, mirrored ? spec.kh * kw : 0);
    if (spec.bias)
        node.attr.conv.bias =
            rfx_builder_uniform(b, name, "bias", (struct rfx_shape){1, {spec.oc}}, -0.1f, 0.1f);
    return rfx_builder_add_node(b, &node, mean, square);
}

int rfx_builder_batch_norm(struct rfx_builder *b, const char *name, int in, float gain) {
    int64_t c = rfx_builder_channels(b, in);
    struct rfx_signal signal = rfx_builder_signal(b, in);
    float deviation = sqrtf(rfx_builder_variance(b, in)), centre = gain * signal.mean / deviation;
    float scale = gain / (deviation + 1e-5f);
    struct rfx_node node = {.op = RFX_OP_AFFINE, .name = name, .n_in = 1, .in = &in};
    struct rfx_shape shape = {1, {c}};
    node.attr.affine.scale =
        rfx_builder_uniform(b, name, "scale", shape, 0.7f * scale, 1.3f * scale);
    node.attr.affine.shift =
        rfx_builder_uniform(b, name, "shift", shape, -0.3f * gain - centre, 0.3f * gain - centre);
    return rfx_builder_add_node(b, &node, 0.0f, gain * gain * 1.06f);
}

int rfx_builder_group_norm(struct rfx_builder *b, const char *name, int in, int64_t groups,
                           float eps) {
    int64_t c = rfx_builder_channels(b, in);
    struct rfx_name statistics = rfx_name("%s.moments", name);
    struct rfx_node moments = {.op = RFX_OP_MOMENTS, .name = statistics.text, .n_in = 1, .in = &in};
    moments.attr.moments.groups = groups;
    moments.attr.moments.eps = eps;
    int both[2] = {in, rfx_builder_add_node(b, &moments, 0.0f, 1.0f)};
    struct rfx_node node = {.op = RFX_OP_NORMALISE, .name = name, .n_in = 2, .in = both};
    struct rfx_shape shape = {1, {c}};
    node.attr.affine.scale = rfx_builder_uniform(b, name, "scale", shape, 0.7f, 1.3f);
    node.attr.affine.shift = rfx_builder_uniform(b, name, "shift", shape, -0.3f, 0.3f);
    return rfx_builder_add_node(b, &node, 0.0f, 1.06f);
}

int rfx_builder_instance_norm(struct rfx_builder *b, const char *name, int in) {
    return rfx_builder_group_norm(b, name, in, rfx_builder_channels(b, in), 1e-5f);
}

/* Adds a node that multiplies by c factors from [lo, hi). */
static int scale_by(struct rfx_builder *b, const char *name, int in, int64_t c, float lo,
                    float hi) {
    struct rfx_node node = {.op = RFX_OP_AFFINE, .name = name, .n_in = 1, .in = &in};
    struct rfx_signal signal = rfx_builder_signal(b, in);
    float middle = (lo + hi) / 2.0f;
    node.attr.affine.scale =
        rfx_builder_uniform(b, name, "scale", (struct rfx_shape){1, {c}}, lo, hi);
    node.attr.affine.shift = -1;
    return rfx_builder_add_node(b, &node, middle * signal.mean, middle * middle * signal.square);
}

int rfx_builder_scale(struct rfx_builder *b, const char *name, int in, float scale) {
    return scale_by(b, name, in, 1, scale, scale);
}

int rfx_builder_channel_scale(struct rfx_builder *b, const char *name, int in, float lo, float hi) {
    return scale_by(b, name, in, rfx_builder_channels(b, in), lo, hi);
}

int rfx_builder_layer_norm(struct rfx_builder *b, const char *name, int in, float eps) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_NORM, .name = name, .n_in = 1, .in = &in};
    struct rfx_shape shape = {1, {rfx_builder_channels(b, in)}};
    node.attr.channel_norm.kind = RFX_NORM_LAYER;
    node.attr.channel_norm.eps = eps;
    node.attr.channel_norm.scale = rfx_builder_uniform(b, name, "scale", shape, 0.7f, 1.3f);
    node.attr.channel_norm.shift = rfx_builder_uniform(b, name, "shift", shape, -0.3f, 0.3f);
    return rfx_builder_add_node(b, &node, 0.0f, 1.06f);
}

int rfx_builder_number(struct rfx_builder *b, const char *name, float value) {
    struct rfx_node node = {.op = RFX_OP_CONST_PLAIN, .name = name};
    node.attr.constant.shape = (struct rfx_shape){1, {1}};
    node.attr.constant.weight =
        rfx_builder_uniform(b, name, "value", node.attr.constant.shape, value, value);
    return rfx_builder_add_node(b, &node, value, value * value);
}

static int binary(struct rfx_builder *b, const char *name, enum rfx_binary_kind kind, int left,
                  int right, float mean, float square) {
    int in[2] = {left, right};
    struct rfx_node node = {.op = RFX_OP_BINARY, .name = name, .n_in = 2, .in = in};
    node.attr.binary.kind = kind;
    return rfx_builder_add_node(b, &node, mean, square);
}

int rfx_builder_add(struct rfx_builder *b, const char *name, int left, int right) {
    struct rfx_signal l = rfx_builder_signal(b, left), r = rfx_builder_signal(b, right);
    return binary(b, name, RFX_BINARY_ADD, left, right, l.mean + r.mean,
                  l.square + r.square + 2.0f * l.mean * r.mean);
}

int rfx_builder_mul(struct rfx_builder *b, const char *name, int left, int right) {
    struct rfx_signal l = rfx_builder_signal(b, left), r = rfx_builder_signal(b, right);
    return binary(b, name, RFX_BINARY_MUL, left, right, l.mean * r.mean, l.square * r.square);
}

int rfx_builder_concat(struct rfx_builder *b, const char *name, const int *in, int n_in) {
    struct rfx_node node = {.op = RFX_OP_CONCAT, .name = name, .n_in = n_in, .in = in};
    float mean = 0.0f, square = 0.0f, channels = 0.0f;
    for (int k = 0; k < n_in; k++) {
        struct rfx_signal signal = rfx_builder_signal(b, in[k]);
        float c = (float)rfx_builder_channels(b, in[k]);
        mean += c * signal.mean;
        square += c * signal.square;
        channels += c;
    }
    return rfx_builder_add_node(b, &node, mean / channels, square / channels);
}

int rfx_builder_prelu(struct rfx_builder *b, const char *name, int in) {
    struct rfx_shape shape = {1, {rfx_builder_channels(b, in)}};
    struct rfx_act act = {.kind = RFX_ACT_PRELU,
                          .slope = rfx_builder_uniform(b, name, "weight", shape, 0.1f, 0.4f)};
    return rfx_builder_act(b, name, in, act);
}

int rfx_builder_conv_transpose(struct rfx_builder *b, const char *name, int in, int64_t oc,
                               struct rfx_upsample_spec spec) {
    if (b->status != RFX_OK) return -1;
    int64_t ic = rfx_builder_channels(b, in);
    float taps = (float)(spec.k * spec.k) / (float)(spec.stride * spec.stride);
    float bound = sqrtf(3.0f / ((float)ic * taps * rfx_builder_signal(b, in).square));
    struct rfx_shape shape = {4, {ic, oc, spec.k, spec.k}};
    struct rfx_node node = {.op = RFX_OP_CONV_TRANSPOSE, .name = name, .n_in = 1, .in = &in};
    node.attr.conv = (struct rfx_conv_attr){
        .kh = spec.k,
        .kw = spec.k,
        .sh = spec.stride,
        .sw = spec.stride,
        .dh = 1,
        .dw = 1,
        .pads = {spec.pad, spec.pad, spec.pad + spec.cut_bottom, spec.pad + spec.cut_right},
        .out_pad_h = spec.out_pad_h,
        .out_pad_w = spec.out_pad_w,
        .groups = 1,
        .oc = oc,
        .scale = -1};
    node.attr.conv.weight = rfx_builder_uniform(b, name, "weight", shape, -bound, bound);
    node.attr.conv.bias =
        rfx_builder_uniform(b, name, "bias", (struct rfx_shape){1, {oc}}, -0.1f, 0.1f);
    return rfx_builder_add_node(b, &node, 0.0f, 1.0f);
}

struct rfx_pool_attr rfx_square_pool(int64_t k, int64_t stride, int64_t pad) {
    return (struct rfx_pool_attr){
        .kh = k, .kw = k, .sh = stride, .sw = stride, .pads = {pad, pad, pad, pad}};
}

static int avg_pool(struct rfx_builder *b, const char *name, int in, struct rfx_pool_attr pool,
                    bool count_padding) {
    struct rfx_node node = {.op = RFX_OP_POOL_AVG, .name = name, .n_in = 1, .in = &in};
    pool.dh = pool.dw = 1;
    pool.count_include_pad = count_padding;
    node.attr.pool = pool;
    return add_like(b, &node, in);
}

int rfx_builder_avg_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool) {
    return avg_pool(b, name, in, pool, true);
}

int rfx_builder_avg_pool_inside(struct rfx_builder *b, const char *name, int in,
                                struct rfx_pool_attr pool) {
    return avg_pool(b, name, in, pool, false);
}

int rfx_builder_max_pool(struct rfx_builder *b, const char *name, int in,
                         struct rfx_pool_attr pool) {
    struct rfx_node node = {.op = RFX_OP_POOL_MAX, .name = name, .n_in = 1, .in = &in};
    node.attr.pool = pool;
    if (node.attr.pool.dh == 0) node.attr.pool.dh = 1;
    if (node.attr.pool.dw == 0) node.attr.pool.dw = 1;
    struct rfx_signal signal = rfx_builder_signal(b, in);
    return rfx_builder_add_node(b, &node, signal.mean + 0.3f * sqrtf(signal.square),
                                1.5f * signal.square);
}

int rfx_builder_adaptive_avg(struct rfx_builder *b, const char *name, int in, int64_t oh,
                             int64_t ow) {
    struct rfx_node node = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .name = name, .n_in = 1, .in = &in};
    node.attr.adaptive.oh = oh;
    node.attr.adaptive.ow = ow;
    return add_like(b, &node, in);
}

int rfx_builder_global_mean(struct rfx_builder *b, const char *name, int in) {
    struct rfx_node node = {.op = RFX_OP_GLOBAL_POOL, .name = name, .n_in = 1, .in = &in};
    node.attr.global_pool.kind = RFX_REDUCE_MEAN;
    return add_like(b, &node, in);
}

int rfx_builder_flatten(struct rfx_builder *b, const char *name, int in) {
    struct rfx_name plain_name = rfx_name("%s.nchw", name);
    struct rfx_node plain = {.op = RFX_OP_TO_PLAIN, .name = plain_name.text, .n_in = 1, .in = &in};
    int middle = add_like(b, &plain, in);
    if (b->status != RFX_OK) return -1;
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .name = name, .n_in = 1, .in = &middle};
    node.attr.reshape.shape = (struct rfx_shape){2, {1, b->graph->nodes[middle].out.elems}};
    return add_like(b, &node, in);
}

int rfx_builder_linear(struct rfx_builder *b, const char *name, int in, int64_t m) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_shape *shape = &b->graph->nodes[in].out.shape;
    int64_t k = shape->dims[shape->rank - 1];
    /* The results would have variance 4 if the features were not averages. */
    float bound = sqrtf(12.0f / ((float)k * rfx_builder_variance(b, in)));
    struct rfx_node node = {.op = RFX_OP_GEMM, .name = name, .n_in = 1, .in = &in};
    node.attr.gemm.k = k;
    node.attr.gemm.m = m;
    node.attr.gemm.weight_is_mk = true;
    node.attr.gemm.alpha = 1.0f;
    node.attr.gemm.beta = 1.0f;
    node.attr.gemm.weight =
        add_weight(b, name, "weight", (struct rfx_shape){2, {m, k}}, -bound, bound, k % 2 == 0);
    node.attr.gemm.bias =
        rfx_builder_uniform(b, name, "bias", (struct rfx_shape){1, {m}}, -0.1f, 0.1f);
    return rfx_builder_add_node(b, &node, 0.0f, 4.0f);
}

int rfx_builder_conv_bn_act(struct rfx_builder *b, int in, const char *conv, const char *bn,
                            const char *act_name, struct rfx_act act, struct rfx_conv_spec spec) {
    int x = rfx_builder_conv(b, conv, in, spec);
    x = rfx_builder_batch_norm(b, bn, x, 1.0f);
    return act.kind == RFX_ACT_NONE ? x : rfx_builder_act(b, act_name, x, act);
}

/* --- layers that usually come together --- */

const char *const rfx_suffixes_numbers[3] = {".0", ".1", ".2"};
const char *const rfx_suffixes_words[3] = {".conv", ".bn", ".act"};

int rfx_builder_conv_bn_act_named(struct rfx_builder *b, int in, const char *name,
                                  const char *const suffixes[3], struct rfx_act act,
                                  struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act(b, in, rfx_name("%s%s", name, suffixes[0]).text,
                                   rfx_name("%s%s", name, suffixes[1]).text,
                                   rfx_name("%s%s", name, suffixes[2]).text, act, spec);
}

int rfx_builder_squeeze_excite(struct rfx_builder *b, int x, const char *name, int64_t squeeze,
                               struct rfx_act inner, struct rfx_act outer) {
    struct rfx_conv_spec down = {.oc = squeeze, .kh = 1, .bias = true}, up = down;
    up.oc = rfx_builder_channels(b, x);
    int gate = rfx_builder_global_mean(b, rfx_name("%s.avgpool", name).text, x);
    gate = rfx_builder_conv(b, rfx_name("%s.fc1", name).text, gate, down);
    gate = rfx_builder_act(b, rfx_name("%s.activation", name).text, gate, inner);
    gate = rfx_builder_conv(b, rfx_name("%s.fc2", name).text, gate, up);
    gate = rfx_builder_act(b, rfx_name("%s.scale_activation", name).text, gate, outer);
    return rfx_builder_mul(b, rfx_name("%s.mul", name).text, gate, x);
}

void rfx_builder_classify(struct rfx_builder *b, int x, const char *mean, const char *flatten,
                          const char *linear) {
    x = rfx_builder_global_mean(b, mean, x);
    x = rfx_builder_flatten(b, flatten, x);
    x = rfx_builder_linear(b, linear, x, 1000);
    rfx_builder_output(b, x, "output");
}

void rfx_builder_alias(struct rfx_builder *b, int node, const char *alias) {
    if (b->status != RFX_OK) return;
    b->status = rfx_graph_set_alias(b->graph, node, alias, b->err);
}

void rfx_builder_output(struct rfx_builder *b, int node, const char *name) {
    if (b->status != RFX_OK) return;
    b->status = rfx_graph_add_output(b->graph, node, name, b->err);
}

/* --- activations --- */

struct rfx_act rfx_act_relu(void) {
    return (struct rfx_act){.kind = RFX_ACT_RELU, .slope = -1};
}

struct rfx_act rfx_act_relu6(void) {
    return (struct rfx_act){.kind = RFX_ACT_CLIP, .alpha = 0.0f, .beta = 6.0f, .slope = -1};
}

struct rfx_act rfx_act_silu(void) {
    return (struct rfx_act){.kind = RFX_ACT_SILU, .slope = -1};
}

struct rfx_act rfx_act_sigmoid(void) {
    return (struct rfx_act){.kind = RFX_ACT_SIGMOID, .slope = -1};
}

struct rfx_act rfx_act_leaky_relu(float slope) {
    return (struct rfx_act){.kind = RFX_ACT_LEAKY_RELU, .alpha = slope, .slope = -1};
}

struct rfx_act rfx_act_tanh(void) {
    return (struct rfx_act){.kind = RFX_ACT_TANH, .slope = -1};
}

struct rfx_act rfx_act_hard_sigmoid(void) {
    return (struct rfx_act){
        .kind = RFX_ACT_HARD_SIGMOID, .alpha = 1.0f / 6.0f, .beta = 0.5f, .slope = -1};
}

struct rfx_act rfx_act_hard_swish(void) {
    return (struct rfx_act){.kind = RFX_ACT_HARD_SWISH, .slope = -1};
}

/* Returns the activation of one number. Kinds that no built-in network uses return x. */
static double act_value(struct rfx_act act, double x) {
    double sigmoid = 1.0 / (1.0 + rfx_exp(-x));
    if (act.kind == RFX_ACT_RELU) return x > 0 ? x : 0;
    if (act.kind == RFX_ACT_CLIP) return fmin(fmax(x, act.alpha), act.beta);
    if (act.kind == RFX_ACT_LEAKY_RELU) return x < 0 ? act.alpha * x : x;
    if (act.kind == RFX_ACT_PRELU) return x < 0 ? 0.25 * x : x;
    if (act.kind == RFX_ACT_SIGMOID) return sigmoid;
    if (act.kind == RFX_ACT_SILU) return x * sigmoid;
    if (act.kind == RFX_ACT_TANH) return rfx_tanh(x);
    if (act.kind == RFX_ACT_HARD_SIGMOID)
        return fmin(fmax((double)act.alpha * x + (double)act.beta, 0.0), 1.0);
    if (act.kind == RFX_ACT_HARD_SWISH) return x * fmin(fmax(x / 6.0 + 0.5, 0.0), 1.0);
    return x;
}

int rfx_builder_act(struct rfx_builder *b, const char *name, int in, struct rfx_act act) {
    if (b->status != RFX_OK) return -1;
    double centre = b->signal[in].mean, deviation = sqrt((double)rfx_builder_variance(b, in));
    double total = 0, mean = 0, square = 0;
    for (int i = -20; i <= 20; i++) { /* sum over a Gaussian from -5 to 5 standard deviations */
        double z = 0.25 * i, weight = rfx_exp(-0.5 * z * z);
        double y = act_value(act, centre + deviation * z);
        total += weight;
        mean += weight * y;
        square += weight * y * y;
    }
    struct rfx_node node = {
        .op = RFX_OP_ACTIVATION, .name = name, .n_in = 1, .in = &in, .act = act};
    return rfx_builder_add_node(b, &node, (float)(mean / total), (float)(square / total));
}

int rfx_builder_relu(struct rfx_builder *b, const char *name, int in) {
    return rfx_builder_act(b, name, in, rfx_act_relu());
}

/* Adds the node x * factor + addend. */
static int scale_shift(struct rfx_builder *b, const char *name, int in, float factor,
                       float addend) {
    struct rfx_node node = {.op = RFX_OP_AFFINE, .name = name, .n_in = 1, .in = &in};
    struct rfx_signal signal = rfx_builder_signal(b, in);
    const struct rfx_shape one = {1, {1}};
    float mean = factor * signal.mean + addend;
    node.attr.affine.scale = rfx_builder_uniform(b, name, "scale", one, factor, factor);
    node.attr.affine.shift =
        addend == 0.0f ? -1 : rfx_builder_uniform(b, name, "shift", one, addend, addend);
    return rfx_builder_add_node(b, &node, mean,
                                mean * mean + factor * factor * rfx_builder_variance(b, in));
}

/* x * (0.5 + 0.5 * erf(x / sqrt 2)) */
int rfx_builder_gelu(struct rfx_builder *b, const char *name, int in) {
    const struct rfx_act erf = {.kind = RFX_ACT_ERF, .slope = -1};
    int gate = scale_shift(b, rfx_name("%s.scaled", name).text, in, 0.70710678118654752f, 0.0f);
    gate = rfx_builder_act(b, rfx_name("%s.erf", name).text, gate, erf);
    gate = scale_shift(b, rfx_name("%s.gate", name).text, gate, 0.5f, 0.5f);
    /* of a Gaussian of mean 0 and variance 1: mean 0.28, square 0.43 */
    float variance = rfx_builder_variance(b, in);
    return binary(b, name, RFX_BINARY_MUL, in, gate, 0.28f * sqrtf(variance), 0.43f * variance);
}

/* --- layers that move numbers instead of making them --- */

static void same_axis(int64_t size, int64_t k, int64_t stride, int64_t dilation, int64_t *before,
                      int64_t *after) {
    int64_t window = (k - 1) * dilation + 1;
    int64_t total = (rfx_ceil_div(size, stride) - 1) * stride + window - size;
    if (total < 0) total = 0;
    *before = total / 2;
    *after = total - total / 2;
}

struct rfx_pads rfx_builder_same_pads(const struct rfx_builder *b, int in, int64_t kh, int64_t kw,
                                      int64_t stride, int64_t dilation) {
    struct rfx_pads pads = {0, 0, 0, 0};
    if (b->status != RFX_OK) return pads;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    same_axis(map->h, kh, stride, dilation, &pads.top, &pads.bottom);
    same_axis(map->w, kw, stride, dilation, &pads.left, &pads.right);
    return pads;
}

static int resize(struct rfx_builder *b, const char *name, int in, struct rfx_resize_attr attr) {
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    struct rfx_node node = {.op = RFX_OP_RESIZE, .name = name, .n_in = 1, .in = &in};
    attr.nearest = RFX_NEAREST_FLOOR;
    attr.scale_h = (float)attr.oh / (float)map->h;
    attr.scale_w = (float)attr.ow / (float)map->w;
    node.attr.resize = attr;
    return add_like(b, &node, in);
}

int rfx_builder_resize(struct rfx_builder *b, const char *name, int in, int64_t oh, int64_t ow) {
    if (b->status != RFX_OK) return -1;
    struct rfx_resize_attr attr = {
        .mode = RFX_RESIZE_LINEAR, .coord = RFX_COORD_ALIGN_CORNERS, .oh = oh, .ow = ow};
    return resize(b, name, in, attr);
}

int rfx_builder_enlarge(struct rfx_builder *b, const char *name, int in, int64_t times) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    struct rfx_resize_attr attr = {.mode = RFX_RESIZE_NEAREST,
                                   .coord = RFX_COORD_ASYMMETRIC,
                                   .oh = times * map->h,
                                   .ow = times * map->w};
    return resize(b, name, in, attr);
}

int rfx_builder_pixel_shuffle(struct rfx_builder *b, const char *name, int in, int64_t block) {
    struct rfx_node node = {.op = RFX_OP_DEPTH_TO_SPACE, .name = name, .n_in = 1, .in = &in};
    node.attr.depth.block = block;
    node.attr.depth.column_major = true;
    return add_like(b, &node, in);
}

/* Adds a node with `count` channels: the channels of `in` from `first` on, then zeros. */
static int select_channels(struct rfx_builder *b, const char *name, int in, int64_t first,
                           int64_t count) {
    if (b->status != RFX_OK) return -1;
    int64_t given = rfx_builder_channels(b, in) - first;
    int64_t *map = rfx_memory_calloc(b->graph->mem, (size_t)count, sizeof *map);
    if (map == NULL)
        return rfx_builder_fail(
            b, rfx_memory_fail(b->graph->mem, "channel map", (size_t)count * sizeof *map, b->err));
    for (int64_t i = 0; i < count; i++) map[i] = i < given ? first + i : -1;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT, .name = name, .n_in = 1, .in = &in};
    node.attr.select.count = count;
    node.attr.select.map = map;
    struct rfx_signal signal = rfx_builder_signal(b, in);
    float share = given < count ? (float)given / (float)count : 1.0f;
    int index = rfx_builder_add_node(b, &node, signal.mean * share, signal.square * share);
    rfx_memory_release(b->graph->mem, map);
    return index;
}

int rfx_builder_pad_channels(struct rfx_builder *b, const char *name, int in, int64_t c) {
    return select_channels(b, name, in, 0, c);
}

int rfx_builder_pick_channels(struct rfx_builder *b, const char *name, int in, int64_t first,
                              int64_t count) {
    return select_channels(b, name, in, first, count);
}

int rfx_builder_pad_to(struct rfx_builder *b, const char *name, int in, int64_t multiple) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    struct rfx_node node = {.op = RFX_OP_PAD, .name = name, .n_in = 1, .in = &in};
    node.attr.pad.pads.bottom = rfx_ceil_div(map->h, multiple) * multiple - map->h;
    node.attr.pad.pads.right = rfx_ceil_div(map->w, multiple) * multiple - map->w;
    bool fits = node.attr.pad.pads.bottom == 0 && node.attr.pad.pads.right == 0;
    b->graph->filled[0] = fits ? 0 : map->h + node.attr.pad.pads.bottom;
    b->graph->filled[1] = fits ? 0 : map->w + node.attr.pad.pads.right;
    rfx_fit_note(&node, map->h, map->w, b->graph);
    return fits ? in : add_like(b, &node, in);
}

int rfx_builder_crop_like(struct rfx_builder *b, const char *name, int in, int like) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out, *wanted = &b->graph->nodes[like].out;
    struct rfx_node node = {.op = RFX_OP_CROP, .name = name, .n_in = 1, .in = &in};
    b->graph->filled[0] = b->graph->filled[1] = 0; /* outputs have the image's size again */
    node.attr.crop.sy = node.attr.crop.sx = 1;
    node.attr.crop.oh = wanted->h;
    node.attr.crop.ow = wanted->w;
    return map->h == wanted->h && map->w == wanted->w ? in : add_like(b, &node, in);
}

int rfx_builder_rows(struct rfx_builder *b, const char *name, int in, int64_t k) {
    struct rfx_name plain_name = rfx_name("%s.nhwc", name);
    struct rfx_node plain = {
        .op = RFX_OP_NHWC_AS_PLAIN, .name = plain_name.text, .n_in = 1, .in = &in};
    int middle = add_like(b, &plain, in);
    if (b->status != RFX_OK) return -1;
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .name = name, .n_in = 1, .in = &middle};
    int64_t rows = b->graph->nodes[middle].out.elems / k;
    node.attr.reshape.shape = (struct rfx_shape){3, {1, rows, k}};
    return add_like(b, &node, in);
}

int rfx_builder_join_rows(struct rfx_builder *b, const char *name, int left, int right) {
    int in[2] = {left, right};
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT, .name = name, .n_in = 2, .in = in};
    node.attr.concat.axis = 1;
    return add_like(b, &node, left);
}
