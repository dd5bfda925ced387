/* Activations of the vocabulary, and what is expected of their results; see builtin_builder.h. */
#include <math.h>

#include "layers/core/real_math.h"
#include "rfexec/builtin/builtin_builder.h"

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

/* The activation of one number; kinds that the networks do not use count as the identity. */
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
    for (int i = -20; i <= 20; i++) { /* a Gaussian, from -5 to 5 deviations */
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

/* x * factor + addend. */
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
    int both[2] = {in, gate};
    struct rfx_node node = {.op = RFX_OP_BINARY, .name = name, .n_in = 2, .in = both};
    node.attr.binary.kind = RFX_BINARY_MUL;
    /* of a Gaussian of mean 0 and variance 1: mean 0.28, square 0.43 */
    float variance = rfx_builder_variance(b, in);
    return rfx_builder_add_node(b, &node, 0.28f * sqrtf(variance), 0.43f * variance);
}
