/* The choice of integers in a network, and their scales. */
#include "rfexec/quantise/quantiser.h"

#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rfexec/run/model.h"

const struct rfx_fuse_options rfx_quantiser_fusing = {.batch_norm = true};

/* --- the choice of nodes --- */

static const struct rfx_node *input_of(const struct rfx_graph *graph, int i, int k) {
    return &graph->nodes[graph->nodes[i].in[k]];
}

static bool is_computed(const struct rfx_node *node) {
    return !rfx_node_is_constant(node) && !rfx_node_is_source(node);
}

/* Returns whether all inputs of a node are computed. */
static bool all_computed(const struct rfx_graph *graph, int i) {
    for (int k = 0; k < graph->nodes[i].n_in; k++)
        if (!is_computed(input_of(graph, i, k))) return false;
    return true;
}

static bool is_sum_or_product(const struct rfx_node *node) {
    return node->op == RFX_OP_BINARY &&
           (node->attr.binary.kind == RFX_BINARY_ADD || node->attr.binary.kind == RFX_BINARY_MUL);
}

/* Returns whether an input of a sum or product has the shape of the result; the other one may be
 * broadcast to it. */
static bool has_whole_input(const struct rfx_graph *graph, int i) {
    int64_t elems = graph->nodes[i].out.elems;
    return input_of(graph, i, 0)->out.elems == elems || input_of(graph, i, 1)->out.elems == elems;
}

static bool is_convolution(const struct rfx_node *node) {
    return node->op == RFX_OP_CONV || node->op == RFX_OP_CONV_TRANSPOSE;
}

/* Returns whether a node's weights and maps become bytes. Products of transposed convolutions are
 * still summed in float32, as in ONNX Runtime. */
static bool has_integer_form(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    if (node->act.kind != RFX_ACT_NONE || !all_computed(graph, i)) return false;
    if (node->op == RFX_OP_GEMM)
        return input_of(graph, i, 0)->out.shape.rank == 2 && node->attr.gemm.alpha == 1.0f &&
               node->attr.gemm.beta == 1.0f;
    if (node->op == RFX_OP_BINARY) return is_sum_or_product(node) && has_whole_input(graph, i);
    if (node->op == RFX_OP_GLOBAL_POOL) return node->attr.global_pool.kind == RFX_REDUCE_MEAN;
    if (node->op == RFX_OP_POOL_AVG) return node->attr.pool.dh == 1 && node->attr.pool.dw == 1;
    if (node->op == RFX_OP_CONV_TRANSPOSE) return node->attr.conv.groups == 1;
    return node->op == RFX_OP_CONV || node->op == RFX_OP_CONCAT;
}

/* Returns whether a node only moves elements of its input or chooses among them. */
static bool moves(const struct rfx_node *node) {
    return node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_RESHAPE ||
           node->op == RFX_OP_TO_PLAIN || node->op == RFX_OP_TO_NHWC;
}

/* Returns the integer operator whose result an activation clamps, if the bytes of the activation's
 * result saturate at the same values, or -1. */
static int clamped(const struct rfx_quantiser *q, int i, bool symmetric) {
    const struct rfx_graph *graph = q->graph;
    const struct rfx_node *node = &graph->nodes[i];
    bool clamp =
        node->op == RFX_OP_ACTIVATION &&
        (node->act.kind == RFX_ACT_RELU ||
         (node->act.kind == RFX_ACT_CLIP && node->act.alpha <= 0.0f && node->act.beta > 0.0f));
    if (!clamp || symmetric) return -1;
    int by = node->in[0];
    const struct rfx_node *maker = &graph->nodes[by];
    bool joins = is_convolution(maker) || maker->op == RFX_OP_GEMM || maker->op == RFX_OP_BINARY;
    return q->integer[by] && joins && graph->n_consumers[by] == 1 ? by : -1;
}

static enum rfx_status leave_float(struct rfx_quantiser *q, const char *name,
                                   struct rfx_error *err) {
    int i = rfx_graph_find(q->graph, name);
    if (i < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "--float '%s': no layer has this name ('rfexec analyze' lists them)", name);
    /* The name of a module is that of its last layer, which may be the activation. */
    if (q->graph->nodes[i].op == RFX_OP_ACTIVATION) i = q->graph->nodes[i].in[0];
    if (!q->integer[i])
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "--float '%s': this layer (%s) is in float32 anyway", name,
                        rfx_op_def(q->graph->nodes[i].op)->name);
    q->integer[i] = false;
    return RFX_OK;
}

static enum rfx_status allocate(struct rfx_quantiser *q, struct rfx_error *err) {
    struct rfx_memory *mem = q->graph->mem;
    size_t n = (size_t)q->graph->n_nodes;
    q->nodes = rfx_memory_calloc(mem, n, sizeof *q->nodes);
    q->sources = rfx_memory_calloc(mem, n, sizeof *q->sources);
    q->integer = rfx_memory_calloc(mem, n, sizeof *q->integer);
    q->noise = rfx_memory_calloc(mem, n, sizeof *q->noise);
    if (q->nodes == NULL || q->sources == NULL || q->integer == NULL || q->noise == NULL)
        return rfx_memory_fail(mem, "quantiser", n * sizeof *q->nodes, err);
    return RFX_OK;
}

static bool has_integers(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].out.type != RFX_TYPE_FLOAT32) return true;
    return false;
}

/* Marks the tensors that are stored as bytes. INVALID_ARGUMENT: there are none. */
static enum rfx_status mark_bytes(struct rfx_quantiser *q, bool symmetric, struct rfx_error *err) {
    const struct rfx_graph *graph = q->graph;
    memset(q->nodes, 0, (size_t)graph->n_nodes * sizeof *q->nodes);
    q->counted = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        int by = clamped(q, i, symmetric);
        q->sources[i] = moves(node) ? q->sources[node->in[0]] : i;
        if (q->integer[i]) {
            for (int k = 0; k < node->n_in; k++) q->nodes[q->sources[node->in[k]]].bytes = true;
            q->nodes[i].bytes = true;
        }
        if (by < 0) continue;
        q->nodes[i].folded = q->nodes[i].bytes = true;
        q->nodes[by].bytes = false;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        q->nodes[i].bytes = q->nodes[q->sources[i]].bytes;
        const struct rfx_node *node = &graph->nodes[i];
        q->nodes[i].weights = q->integer[i] && (is_convolution(node) || node->op == RFX_OP_GEMM);
        q->counted += rfx_quantiser_counts(q, i);
    }
    if (q->counted == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "'%s' has no layer that can be computed on bytes", graph->name);
    return RFX_OK;
}

enum rfx_status rfx_quantiser_choose(struct rfx_quantiser *q, const struct rfx_graph *graph,
                                     const struct rfx_quantiser_request *request,
                                     struct rfx_error *err) {
    *q = (struct rfx_quantiser){.graph = graph};
    if (has_integers(graph))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "'%s' computes on bytes already", graph->name);
    enum rfx_status status = allocate(q, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < graph->n_nodes; i++) q->integer[i] = has_integer_form(graph, i);
    for (int k = 0; status == RFX_OK && k < request->n_left_float; k++)
        status = leave_float(q, request->left_float[k], err);
    return status == RFX_OK ? mark_bytes(q, request->range.symmetric, err) : status;
}

bool rfx_quantiser_counts(const struct rfx_quantiser *q, int node) {
    return q->nodes[node].bytes && q->sources[node] == node;
}

const char *rfx_quantiser_name(const struct rfx_quantiser *q, int node) {
    const struct rfx_node *n = &q->graph->nodes[node];
    return n->alias != NULL && rfx_graph_find(q->graph, n->alias) == node ? n->alias : n->name;
}

/* --- scales --- */

/* The weights of a layer: output channel of element i is (i / block) % channels. */
struct layer {
    int weight, bias, factor; /* indices of weights; -1: none */
    int64_t block, channels;
    float in_scale;
};

static struct layer layer_of(const struct rfx_quantiser *q, int i) {
    const struct rfx_node *node = &q->graph->nodes[i];
    const struct rfx_conv_attr *a = &node->attr.conv;
    float scale = q->nodes[node->in[0]].scale;
    if (is_convolution(node)) { /* transposed weights are (ic, oc, kh, kw) */
        int64_t taps = a->kh * a->kw;
        int64_t block = node->op == RFX_OP_CONV ? a->ic / a->groups * taps : taps;
        return (struct layer){a->weight, a->bias, a->scale, block, a->oc, scale};
    }
    return (struct layer){node->attr.gemm.weight,
                          node->attr.gemm.bias,
                          -1,
                          node->attr.gemm.weight_is_mk ? node->attr.gemm.k : 1,
                          node->attr.gemm.m,
                          scale};
}

/* Receives weights of one output channel, with the channel's factor. */
typedef void take_weights(void *user, int64_t channel, const float *values, int64_t n);

/* Reads the weights of a layer, in runs of one output channel. UNSUPPORTED: one is not finite. */
static enum rfx_status read_layer(const struct rfx_graph *graph, const struct layer *layer,
                                  const float *factors, take_weights *take, void *user,
                                  struct rfx_error *err) {
    enum { PIECE = 4096 };
    float values[PIECE];
    const struct rfx_weight *weight = &graph->weights[layer->weight];
    for (int64_t first = 0; first < weight->elems; first += PIECE) {
        int64_t n = rfx_min_i64(weight->elems - first, PIECE);
        enum rfx_status status = rfx_weight_read(weight, first, n, values, err);
        if (status != RFX_OK) return status;
        for (int64_t at = 0, run; at < n; at += run) {
            int64_t c = (first + at) / layer->block % layer->channels;
            run = rfx_min_i64(layer->block - (first + at) % layer->block, n - at);
            for (int64_t i = at; i < at + run; i++) {
                if (factors != NULL) values[i] *= factors[c];
                if (!isfinite(values[i]))
                    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                                    "a weight of output channel %lld is not finite", (long long)c);
            }
            take(user, c, values + at, run);
        }
    }
    return RFX_OK;
}

/* Raises most[channel] to the largest magnitude. */
static void take_magnitudes(void *user, int64_t channel, const float *values, int64_t n) {
    float *most = user;
    for (int64_t i = 0; i < n; i++) most[channel] = fmaxf(most[channel], fabsf(values[i]));
}

/* Sets the scales of a layer's weights. They are so large that the bias, in units of input scale
 * times weight scale, is at most 2^30 and leaves room for the sum of products in int32. */
static enum rfx_status find_weight_scales(const struct rfx_quantiser *q, int i, float *scales,
                                          float *factors, float *bias, bool one_scale,
                                          struct rfx_error *err) {
    struct layer layer = layer_of(q, i);
    const struct rfx_weight *weights = q->graph->weights;
    enum rfx_status status = RFX_OK;
    if (layer.factor >= 0)
        status = rfx_weight_read(&weights[layer.factor], 0, layer.channels, factors, err);
    if (status == RFX_OK && layer.bias >= 0)
        status = rfx_weight_read(&weights[layer.bias], 0, layer.channels, bias, err);
    if (status == RFX_OK)
        status = read_layer(q->graph, &layer, layer.factor >= 0 ? factors : NULL, take_magnitudes,
                            scales, err);
    if (status != RFX_OK)
        return rfx_fail_within(err, status, "layer '%s'", q->graph->nodes[i].name);
    float most = 0.0f;
    for (int64_t c = 0; c < layer.channels; c++) {
        scales[c] /= 127.0f;
        if (layer.bias >= 0)
            scales[c] = fmaxf(scales[c], fabsf(bias[c]) / layer.in_scale * 0x1p-30f);
        most = fmaxf(most, scales[c]);
    }
    for (int64_t c = 0; c < layer.channels; c++) {
        if (one_scale) scales[c] = most;
        if (!(scales[c] >= 0x1p-126f)) scales[c] = 1.0f; /* weights of zeros */
    }
    return RFX_OK;
}

static enum rfx_status find_all_weight_scales(struct rfx_quantiser *q, bool one_scale,
                                              struct rfx_error *err) {
    const struct rfx_graph *graph = q->graph;
    int64_t total = 0, largest = 0, at = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!q->nodes[i].weights) continue;
        int64_t n = layer_of(q, i).channels;
        total += 2 * n;
        if (n > largest) largest = n;
    }
    rfx_memory_release(graph->mem, q->floats);
    q->floats = rfx_memory_calloc(graph->mem, (size_t)(total + largest), sizeof *q->floats);
    if (q->floats == NULL)
        return rfx_memory_fail(graph->mem, "scales of weights", (size_t)total * sizeof(float), err);
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!q->nodes[i].weights) continue;
        struct layer layer = layer_of(q, i);
        float *scales = q->floats + at, *factors = scales + layer.channels;
        enum rfx_status status =
            find_weight_scales(q, i, scales, factors, q->floats + total, one_scale, err);
        if (status != RFX_OK) return status;
        q->nodes[i].weight_scales = scales;
        q->nodes[i].factors = layer.factor >= 0 ? factors : NULL;
        at += 2 * layer.channels;
    }
    return RFX_OK;
}

enum rfx_status rfx_quantiser_find_scales(struct rfx_quantiser *q,
                                          const struct rfx_value_counts *counts,
                                          const struct rfx_quantiser_request *request,
                                          struct rfx_error *err) {
    for (int i = 0; i < q->graph->n_nodes; i++) {
        int from = q->sources[i];
        if (!q->nodes[i].bytes) continue;
        if (from == i) {
            struct rfx_value_range range = rfx_range_of(&counts[i], &request->range);
            q->nodes[i].scale = range.scale;
            q->nodes[i].zero_point = range.zero_point;
        } else {
            q->nodes[i].scale = q->nodes[from].scale;
            q->nodes[i].zero_point = q->nodes[from].zero_point;
        }
    }
    return find_all_weight_scales(q, request->one_weight_scale, err);
}

/* --- noise --- */

/* Sums of a layer's weights, as they are written (onnx_writer.h). */
struct weight_noise {
    const float *scales;
    struct rfx_noise sum;
};

static void take_noise(void *user, int64_t channel, const float *values, int64_t n) {
    struct weight_noise *w = user;
    float scale = w->scales[channel];
    for (int64_t i = 0; i < n; i++) {
        float integer = fminf(fmaxf(nearbyintf(values[i] / scale), -127.0f), 127.0f);
        double error = (double)integer * (double)scale - (double)values[i];
        w->sum.signal += (double)values[i] * (double)values[i];
        w->sum.noise += error * error;
    }
}

static void note_noise(struct rfx_layer_noise *noise, double db, const char *part) {
    if (noise->part == NULL || db < noise->db) *noise = (struct rfx_layer_noise){db, part};
}

/* Measures the noise of one integer node. `tensors`: dB of each counted tensor. */
static enum rfx_status measure_layer(struct rfx_quantiser *q, int i, const double *tensors,
                                     struct rfx_error *err) {
    const struct rfx_node *node = &q->graph->nodes[i];
    struct rfx_layer_noise *noise = &q->noise[i];
    *noise = (struct rfx_layer_noise){.part = NULL};
    for (int k = 0; k < node->n_in; k++)
        note_noise(noise, tensors[q->sources[node->in[k]]], "input");
    if (q->nodes[i].weights) {
        const struct layer layer = layer_of(q, i);
        struct weight_noise w = {.scales = q->nodes[i].weight_scales};
        enum rfx_status status =
            read_layer(q->graph, &layer, q->nodes[i].factors, take_noise, &w, err);
        if (status != RFX_OK) return rfx_fail_within(err, status, "layer '%s'", node->name);
        note_noise(noise, rfx_noise_db(&w.sum), "weights");
    }
    if (q->nodes[i].bytes) note_noise(noise, tensors[i], "result");
    return RFX_OK;
}

/* Measures all integer nodes. The result of a node may be that of the activation behind it. */
static enum rfx_status measure(struct rfx_quantiser *q, const double *tensors, bool symmetric,
                               struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i < q->graph->n_nodes; i++) {
        int by = clamped(q, i, symmetric);
        if (q->integer[i]) status = measure_layer(q, i, tensors, err);
        if (by >= 0) note_noise(&q->noise[by], tensors[i], "result");
    }
    return status;
}

enum rfx_status rfx_quantiser_leave_noisy(struct rfx_quantiser *q,
                                          const struct rfx_value_counts *counts,
                                          const struct rfx_quantiser_request *request, double least,
                                          struct rfx_error *err) {
    size_t n = (size_t)q->graph->n_nodes;
    double *tensors = rfx_memory_calloc(q->graph->mem, n, sizeof *tensors);
    if (tensors == NULL) return rfx_memory_fail(q->graph->mem, "noise", n * sizeof *tensors, err);
    for (size_t i = 0; i < n; i++) {
        if (!rfx_quantiser_counts(q, (int)i)) continue;
        const struct rfx_value_range range = rfx_range_of(&counts[i], &request->range);
        const struct rfx_noise noise = rfx_range_noise(&counts[i], &range, request->range.type);
        tensors[i] = rfx_noise_db(&noise);
    }
    enum rfx_status status = measure(q, tensors, request->range.symmetric, err);
    rfx_memory_release(q->graph->mem, tensors);
    if (status != RFX_OK) return status;
    for (size_t i = 0; i < n; i++)
        if (q->noise[i].part != NULL && q->noise[i].db < least) q->integer[i] = false;
    return mark_bytes(q, request->range.symmetric, err);
}

void rfx_quantiser_release(struct rfx_quantiser *q) {
    if (q->graph == NULL) return;
    rfx_memory_release(q->graph->mem, q->floats);
    rfx_memory_release(q->graph->mem, q->noise);
    rfx_memory_release(q->graph->mem, q->integer);
    rfx_memory_release(q->graph->mem, q->sources);
    rfx_memory_release(q->graph->mem, q->nodes);
    *q = (struct rfx_quantiser){.graph = NULL};
}
