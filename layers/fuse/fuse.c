/* Finishes a graph: drops nodes that reach no output, moves batch norms, residual additions and
 * activations into the node that makes their operand, and counts consumers.
 *
 * Invariants: 1. there is one pass in index order, and a node is only ever replaced by an earlier
 * one, so the order stays topological and every input is final when its consumer is processed; 2. a
 * node is moved into its host only if no other node and no output reads the tensor between them; 3.
 * the host keeps its name, and its alias becomes the name of the last node that was moved into
 * it; 4. shapes never change; 5. weights keep their values: folded scales and biases are new
 * vectors. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/fuse/fuse_attention.h"
#include "layers/fuse/heads.h"
#include "layers/graph/graph.h"
#include "layers/graph/op.h"

static const struct rfx_fuse_options fuse_everything = {true, true, true, true, true};

struct fuse_pass {
    struct rfx_graph *graph;
    struct rfx_fuse_options options;
    int *consumers;   /* per node: the number of its readers, outputs included */
    int *replaced_by; /* per node: the node that now makes its tensor; the node itself if it was not
                         fused */
    bool *dropped;
};

static int *node_inputs(struct rfx_node *node) {
    union {
        const int *in;
        int *out;
    } unconst = {node->in};
    return unconst.out;
}

static bool same_shape(const struct rfx_tensor *a, const struct rfx_tensor *b) {
    return a->layout == b->layout && rfx_shape_equal(&a->shape, &b->shape);
}

/* Moves `part` into `host`, whose only consumer it is: `host` now makes the tensor of `part`. */
static enum rfx_status take_in(struct fuse_pass *pass, int host, int part, struct rfx_error *err) {
    const struct rfx_node *node = &pass->graph->nodes[part];
    const char *alias = node->alias != NULL ? node->alias : node->name;
    enum rfx_status status = rfx_graph_set_alias(pass->graph, host, alias, err);
    if (status != RFX_OK) return status;
    pass->replaced_by[part] = host;
    pass->dropped[part] = true;
    pass->consumers[host] = pass->consumers[part];
    pass->consumers[part] = 0;
    return RFX_OK;
}

enum { VECTOR_PIECE = 256 };

/* Reads elements [first, first + n) of a vector. An absent weight counts as `missing`; a weight of
 * one element is repeated. */
static enum rfx_status read_vector(const struct rfx_graph *graph, int weight, int64_t first,
                                   int64_t n, float missing, float *out, struct rfx_error *err) {
    const struct rfx_weight *w = weight < 0 ? NULL : &graph->weights[weight];
    if (w != NULL && w->elems != 1) return rfx_weight_read(w, first, n, out, err);
    float value = missing;
    enum rfx_status status = w == NULL ? RFX_OK : rfx_weight_read(w, 0, 1, &value, err);
    for (int64_t i = 0; i < n; i++) out[i] = value;
    return status;
}

/* Sets *out to the index of a vector of `oc` elements a[i] * factor[i] + addend[i]. An absent
 * factor counts as 1, an absent `a` or addend as 0. If one of the weights already is the result,
 * its own index is returned; without `a` and addend, -1. */
static enum rfx_status fold_vector(struct rfx_graph *graph, int64_t oc, int a, int factor,
                                   int addend, int *out, struct rfx_error *err) {
    bool plain_addend = a < 0 && addend >= 0 && graph->weights[addend].elems == oc;
    bool plain_a = a >= 0 && factor < 0 && addend < 0;
    if (plain_addend || plain_a || (a < 0 && addend < 0)) {
        *out = plain_addend ? addend : a;
        return RFX_OK;
    }
    struct rfx_weight weight = {.source = RFX_WEIGHT_OWNED, .shape = {1, {oc}}, .elems = oc};
    enum rfx_status status = rfx_graph_add_weight(graph, &weight, out, err);
    if (status != RFX_OK) return status;
    float *values = rfx_graph_owned_weight(graph, *out);
    for (int64_t first = 0; first < oc; first += VECTOR_PIECE) {
        float v[VECTOR_PIECE], f[VECTOR_PIECE], s[VECTOR_PIECE];
        int64_t n = rfx_min_i64(VECTOR_PIECE, oc - first);
        status = read_vector(graph, a, first, n, 0.0f, v, err);
        if (status == RFX_OK) status = read_vector(graph, factor, first, n, 1.0f, f, err);
        if (status == RFX_OK) status = read_vector(graph, addend, first, n, 0.0f, s, err);
        if (status != RFX_OK) return status;
        for (int64_t i = 0; i < n; i++) {
            double product = (double)v[i] * f[i];
            values[first + i] = (float)(product + s[i]);
        }
    }
    return RFX_OK;
}

/* Moves a batch norm into the node before it: (x w s + b) scale + shift. */
static enum rfx_status fuse_batch_norm(struct fuse_pass *pass, int index, struct rfx_error *err) {
    struct rfx_graph *graph = pass->graph;
    const struct rfx_node *norm = &graph->nodes[index];
    int host = norm->in[0];
    struct rfx_node *conv = &graph->nodes[host];
    if (!rfx_node_takes_in(conv, RFX_FUSE_BATCH_NORM) || pass->consumers[host] != 1 ||
        conv->residual || conv->act.kind != RFX_ACT_NONE || !same_shape(&conv->out, &norm->out))
        return RFX_OK;
    int *own_scale = rfx_node_weight_rw(conv, rfx_op_weight_slot(conv->op, RFX_WEIGHT_SCALE));
    int *own_bias = rfx_node_weight_rw(conv, rfx_op_weight_slot(conv->op, RFX_WEIGHT_BIAS));
    int scale = *rfx_node_weight_at(norm, rfx_op_weight_slot(norm->op, RFX_WEIGHT_FACTOR));
    int shift = *rfx_node_weight_at(norm, rfx_op_weight_slot(norm->op, RFX_WEIGHT_BIAS));
    int64_t oc = conv->out.c;
    int new_scale = *own_scale, new_bias;
    enum rfx_status status = RFX_OK;
    if (scale >= 0 && new_scale >= 0)
        status = fold_vector(graph, oc, new_scale, scale, -1, &new_scale, err);
    else if (scale >= 0)
        status = fold_vector(graph, oc, -1, -1, scale, &new_scale, err);
    if (status != RFX_OK) return status;
    status = fold_vector(graph, oc, *own_bias, scale, shift, &new_bias, err);
    if (status != RFX_OK) return status;
    *own_scale = new_scale;
    *own_bias = new_bias;
    conv->act = norm->act;
    return take_in(pass, host, index, err);
}

/* Moves an addition of equal shapes into the convolution that makes its later operand. */
static enum rfx_status fuse_residual(struct fuse_pass *pass, int index, struct rfx_error *err) {
    struct rfx_graph *graph = pass->graph;
    const struct rfx_node *add = &graph->nodes[index];
    if (add->attr.binary.kind != RFX_BINARY_ADD || add->in[0] == add->in[1]) return RFX_OK;
    int host = add->in[0] > add->in[1] ? add->in[0] : add->in[1];
    int other = add->in[0] > add->in[1] ? add->in[1] : add->in[0];
    struct rfx_node *conv = &graph->nodes[host];
    if (!rfx_node_takes_in(conv, RFX_FUSE_SUM) || pass->consumers[host] != 1 || conv->residual ||
        conv->act.kind != RFX_ACT_NONE)
        return RFX_OK;
    if (!same_shape(&conv->out, &add->out) || !same_shape(&graph->nodes[other].out, &add->out))
        return RFX_OK;
    int *in = rfx_memory_alloc(graph->mem, 2 * sizeof *in);
    if (in == NULL) return rfx_memory_fail(graph->mem, "node inputs", 2 * sizeof *in, err);
    in[0] = conv->in[0];
    in[1] = other;
    rfx_memory_release(graph->mem, node_inputs(conv));
    conv->in = in;
    conv->n_in = 2;
    conv->residual = true;
    conv->act = add->act;
    return take_in(pass, host, index, err);
}

/* Replaces x * sigmoid(x) by SILU(x), and x * hardsigmoid(x) with slope 1/6 by HARD_SWISH(x). */
static void rewrite_gate(struct fuse_pass *pass, int index) {
    struct rfx_graph *graph = pass->graph;
    struct rfx_node *mul = &graph->nodes[index];
    if (mul->attr.binary.kind != RFX_BINARY_MUL || mul->act.kind != RFX_ACT_NONE) return;
    for (int k = 0; k < 2; k++) {
        int gate_index = mul->in[k], x = mul->in[1 - k];
        const struct rfx_node *gate = &graph->nodes[gate_index];
        if (!rfx_node_fuses_as(gate, RFX_FUSE_ACTIVATION) || gate->in[0] != x) continue;
        if (pass->consumers[gate_index] != 1) continue;
        bool silu = gate->act.kind == RFX_ACT_SIGMOID;
        bool hard = gate->act.kind == RFX_ACT_HARD_SIGMOID && gate->act.beta == 0.5f &&
                    fabsf(gate->act.alpha - 1.0f / 6.0f) < 1e-6f;
        if (!silu && !hard) continue;
        pass->dropped[gate_index] = true;
        pass->consumers[gate_index] = 0;
        pass->consumers[x]--; /* x had two readers, the gate and the product; now it has one */
        mul->op = RFX_OP_ACTIVATION;
        mul->act = (struct rfx_act){.kind = silu ? RFX_ACT_SILU : RFX_ACT_HARD_SWISH, .slope = -1};
        mul->n_in = 1;
        node_inputs(mul)[0] = x;
        return;
    }
}

/* Replaces two matrix products with a softmax between them by one ATTENTION node. It has the place
 * and the name of the last product. The matrix of all scores is then never stored. With OpenBLAS
 * the products are kept. */
static enum rfx_status fuse_attention(struct fuse_pass *pass, int index, struct rfx_error *err) {
    struct rfx_graph *graph = pass->graph;
    struct rfx_node *node = &graph->nodes[index];
    struct rfx_found_attention found;
    if (graph->conv == RFX_CONV_OPENBLAS ||
        !rfx_find_attention(graph, pass->consumers, index, &found))
        return RFX_OK;
    size_t bytes = (size_t)found.n_in * sizeof *found.in;
    int *in = rfx_memory_alloc(graph->mem, bytes);
    if (in == NULL) return rfx_memory_fail(graph->mem, "node inputs", bytes, err);
    memcpy(in, found.in, bytes);
    rfx_memory_release(graph->mem, node_inputs(node));
    node->op = RFX_OP_ATTENTION;
    node->attr.attention = found.attr;
    node->in = in;
    node->n_in = found.n_in;
    for (int i = 0; i < found.n_parts; i++) {
        pass->dropped[found.parts[i]] = true;
        pass->consumers[found.parts[i]] = 0;
    }
    return RFX_OK;
}

static bool takes_activation(const struct rfx_graph *graph, const struct rfx_node *host,
                             const struct rfx_act *act) {
    bool takes = rfx_node_takes_in(host, RFX_FUSE_ACTIVATION);
    if (!takes || host->act.kind != RFX_ACT_NONE || act->kind == RFX_ACT_NONE) return false;
    /* A slope per channel is defined on maps only. */
    return act->kind != RFX_ACT_PRELU || host->out.layout == RFX_LAYOUT_NHWC ||
           graph->weights[act->slope].elems == 1;
}

static enum rfx_status fuse_activation(struct fuse_pass *pass, int index, struct rfx_error *err) {
    const struct rfx_node *activation = &pass->graph->nodes[index];
    int host = activation->in[0];
    struct rfx_node *producer = &pass->graph->nodes[host];
    if (pass->consumers[host] != 1 || !takes_activation(pass->graph, producer, &activation->act))
        return RFX_OK;
    producer->act = activation->act;
    return take_in(pass, host, index, err);
}

static enum rfx_status fuse_node(struct fuse_pass *pass, int index, struct rfx_error *err) {
    struct rfx_node *node = &pass->graph->nodes[index];
    for (int k = 0; k < node->n_in; k++) node_inputs(node)[k] = pass->replaced_by[node->in[k]];
    if (rfx_node_fuses_as(node, RFX_FUSE_BATCH_NORM) && pass->options.batch_norm)
        return fuse_batch_norm(pass, index, err);
    if (rfx_node_fuses_as(node, RFX_FUSE_SUM) && pass->options.residual) {
        enum rfx_status status = fuse_residual(pass, index, err);
        if (status != RFX_OK || pass->dropped[index]) return status;
    }
    if (pass->options.attention) {
        enum rfx_status status = fuse_attention(pass, index, err);
        if (status != RFX_OK) return status;
    }
    if (!pass->options.activation) return RFX_OK;
    if (rfx_node_fuses_as(node, RFX_FUSE_GATE)) rewrite_gate(pass, index);
    bool activation = rfx_node_fuses_as(node, RFX_FUSE_ACTIVATION);
    return activation ? fuse_activation(pass, index, err) : RFX_OK;
}

/* Marks nodes that no output depends on as dropped. */
static void drop_unused(struct fuse_pass *pass) {
    const struct rfx_graph *graph = pass->graph;
    for (int i = 0; i < graph->n_nodes; i++) pass->dropped[i] = true;
    for (int i = 0; i < graph->n_outputs; i++) pass->dropped[graph->outputs[i].node] = false;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        if (pass->dropped[i]) continue;
        const struct rfx_node *node = &graph->nodes[i];
        for (int k = 0; k < node->n_in; k++) pass->dropped[node->in[k]] = false;
    }
}

static void count_consumers(struct fuse_pass *pass) {
    const struct rfx_graph *graph = pass->graph;
    memset(pass->consumers, 0, (size_t)graph->n_nodes * sizeof *pass->consumers);
    for (int i = 0; i < graph->n_nodes; i++) {
        if (pass->dropped[i]) continue;
        const struct rfx_node *node = &graph->nodes[i];
        for (int k = 0; k < node->n_in; k++) pass->consumers[node->in[k]]++;
    }
    for (int i = 0; i < graph->n_outputs; i++) pass->consumers[graph->outputs[i].node]++;
}

/* Removes dropped nodes from the table. replaced_by[i] becomes the new index of node i. */
static void compact(struct fuse_pass *pass) {
    struct rfx_graph *graph = pass->graph;
    int kept = 0;
    graph->input = -1;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct rfx_node *node = &graph->nodes[i];
        if (pass->dropped[i]) {
            /* The tensor of a fused node is its host's. The host comes before it and has its new
             * index already. */
            int host = pass->replaced_by[i];
            pass->replaced_by[i] = host == i ? -1 : pass->replaced_by[host];
            rfx_node_release(graph->mem, node);
            continue;
        }
        for (int k = 0; k < node->n_in; k++) node_inputs(node)[k] = pass->replaced_by[node->in[k]];
        pass->replaced_by[i] = kept;
        pass->consumers[kept] = pass->consumers[i];
        if (rfx_node_is_input(node)) graph->input = kept;
        if (kept != i) graph->nodes[kept] = *node;
        kept++;
    }
    graph->n_nodes = kept;
    for (int i = 0; i < graph->n_outputs; i++)
        graph->outputs[i].node = pass->replaced_by[graph->outputs[i].node];
}

/* Refuses models with errors. (Errors of this library itself are asserted in assert_finished.) */
static enum rfx_status check_graph(const struct rfx_graph *graph, struct rfx_error *err) {
    if (graph->n_outputs == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "model '%s': it has no outputs", graph->name);
    for (int i = 0; i < graph->n_outputs; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(graph->outputs[i].name, graph->outputs[j].name) == 0)
                return rfx_fail(err, RFX_STATUS_MALFORMED,
                                "model '%s': outputs %d and %d are both called '%s'", graph->name,
                                j, i, graph->outputs[i].name);
    return RFX_OK;
}

static void assert_finished(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        assert(graph->n_consumers[i] > 0);
        for (int k = 0; k < node->n_in; k++) assert(node->in[k] >= 0 && node->in[k] < i);
        (void)node;
    }
}

/* Drops nodes that reach no output and counts the parameters of the model. */
static enum rfx_status run_drop(struct fuse_pass *pass, struct rfx_error *err) {
    drop_unused(pass);
    for (int i = 0; i < pass->graph->n_nodes; i++) pass->replaced_by[i] = i;
    count_consumers(pass);
    compact(pass);
    if (pass->graph->input < 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "model '%s': no output depends on the image",
                        pass->graph->name);
    pass->graph->param_count = rfx_graph_param_count(pass->graph);
    return RFX_OK;
}

/* Runs the whole pass. Fusing changes nodes in place, so after a failure the graph can only be
 * freed with rfx_graph_free. */
static enum rfx_status run_pass(struct fuse_pass *pass, struct rfx_error *err) {
    enum rfx_status status = run_drop(pass, err);
    for (int i = 0; i < pass->graph->n_nodes; i++) {
        pass->replaced_by[i] = i;
        pass->dropped[i] = false;
    }
    for (int i = 0; i < pass->graph->n_nodes && status == RFX_OK; i++)
        if (!pass->dropped[i]) status = fuse_node(pass, i, err);
    if (status != RFX_OK) return status;
    compact(pass);
    pass->graph->n_consumers = pass->consumers;
    pass->consumers = NULL;
    for (int i = 0; i < pass->graph->n_nodes; i++)
        rfx_node_want_all(pass->graph, &pass->graph->nodes[i]);
    assert_finished(pass->graph);
    return RFX_OK;
}

/* Allocates the tables of a pass and calls `run`. */
static enum rfx_status run_over(struct rfx_graph *graph, const struct rfx_fuse_options *options,
                                enum rfx_status (*run)(struct fuse_pass *, struct rfx_error *),
                                struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct fuse_pass pass = {.graph = graph, .options = *options};
    pass.consumers = rfx_memory_calloc(mem, n, sizeof *pass.consumers);
    pass.replaced_by = rfx_memory_calloc(mem, n, sizeof *pass.replaced_by);
    pass.dropped = rfx_memory_calloc(mem, n, sizeof *pass.dropped);
    enum rfx_status status = RFX_OK;
    if (pass.consumers == NULL || pass.replaced_by == NULL || pass.dropped == NULL)
        status = rfx_memory_fail(mem, "fusing", n * sizeof *pass.consumers, err);
    else
        status = run(&pass, err);
    rfx_memory_release(mem, pass.dropped);
    rfx_memory_release(mem, pass.replaced_by);
    rfx_memory_release(mem, pass.consumers);
    return status;
}

enum rfx_status rfx_graph_finish(struct rfx_graph *graph, const struct rfx_fuse_options *fuse,
                                 struct rfx_error *err) {
    const struct rfx_fuse_options *options = fuse != NULL ? fuse : &fuse_everything;
    bool heads = options->heads && graph->conv != RFX_CONV_OPENBLAS;
    enum rfx_status status = check_graph(graph, err);
    graph->param_count = 0;
    if (status == RFX_OK && heads) status = run_over(graph, options, run_drop, err);
    if (status == RFX_OK && heads) status = rfx_split_heads(graph, err);
    if (status == RFX_OK) status = run_over(graph, options, run_pass, err);
    if (status == RFX_OK && heads) rfx_drop_unread_weights(graph);
    return status == RFX_OK ? rfx_graph_list_ends(graph, err) : status;
}
