/* Reads one operator at a time; element-wise operations of two tensors are in head_binary.c. Nodes
 * are copied, because adding nodes may move the graph's table. */
#include "layers/fuse/head_ops.h"

#include <string.h>

/* Makes the value of a map in ONNX order. Axes of pixels are longer than 1: the pixels of a single
 * row or column are cells, and a map of one pixel has channels alone. */
static enum rfx_status read_map(struct rfx_heads *h, int map, struct rfx_head_value *out) {
    const struct rfx_node *node = &h->graph->nodes[map];
    const struct rfx_tensor *t = &node->out;
    struct rfx_head_value like = {
        .n_levels = 1,
        .map = {map},
        .anchors = {1},
        .kind = {RFX_HEAD_CHANNELS, RFX_HEAD_CHANNELS, RFX_HEAD_ROWS, RFX_HEAD_COLUMNS}};
    if (!rfx_node_is_local(node) || rfx_node_is_input(node) || rfx_node_is_constant(node))
        return RFX_OK;
    if (t->h < 2) like.kind[3] = RFX_HEAD_CELLS;
    if (t->w < 2) like.kind[2] = RFX_HEAD_CELLS;
    if (t->h < 2) like.kind[2] = RFX_HEAD_CHANNELS;
    if (t->w < 2) like.kind[3] = RFX_HEAD_CHANNELS;
    return rfx_head_make(h, &like, &t->shape, t->c, out);
}

static enum rfx_status copy(struct rfx_heads *h, const struct rfx_head_value *in,
                            struct rfx_head_value *out) {
    enum rfx_status status = rfx_head_make(h, in, &in->shape, in->n, out);
    if (out->known) memcpy(out->from, in->from, (size_t)in->n * sizeof *in->from);
    return status;
}

/* Makes the value of a node that changes the layout, from a map or to a map. */
static enum rfx_status read_layout(struct rfx_heads *h, const struct rfx_node *node,
                                   struct rfx_head_value *out) {
    static const int to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};
    struct rfx_head_value own = {.known = false}, *in = &h->values[node->in[0]];
    bool leaves = node->op == RFX_OP_TO_PLAIN || node->op == RFX_OP_NHWC_AS_PLAIN;
    enum rfx_status status = RFX_OK;
    if (leaves && !in->known) {
        status = read_map(h, node->in[0], &own);
        in = &own;
    }
    if (status == RFX_OK && in->known) {
        if (node->op == RFX_OP_NHWC_AS_PLAIN)
            status = rfx_head_transpose(h, in, to_last, out);
        else if (node->op == RFX_OP_PLAIN_AS_NHWC)
            status = rfx_head_transpose(h, in, to_first, out);
        else
            status = copy(h, in, out);
    }
    rfx_head_release(h, &own);
    return status;
}

/* Adds a copy of `node` for the map of every level of a value. The value's channels must be the
 * map's channels, in order. */
static enum rfx_status on_levels(struct rfx_heads *h, struct rfx_node node, const char *what,
                                 struct rfx_head_value *value) {
    enum rfx_status status = RFX_OK;
    for (int l = 0; l < value->n_levels && status == RFX_OK && value->known; l++)
        status = rfx_head_add(h, &node, &value->map[l], 1, what, l, &value->map[l], &value->known);
    return status;
}

static bool takes_act(const struct rfx_heads *h, const struct rfx_act *act) {
    return act->kind != RFX_ACT_PRELU || h->graph->weights[act->slope].elems == 1;
}

/* Makes the value of an operator on each element: an activation or a conversion. */
static enum rfx_status read_elements(struct rfx_heads *h, const struct rfx_node *node,
                                     struct rfx_head_value *out) {
    const struct rfx_node each = {.op = node->op, .attr = node->attr, .act = node->act};
    const char *what = node->op == RFX_OP_CONVERT ? "convert" : "activation";
    if (!takes_act(h, &node->act)) return RFX_OK;
    enum rfx_status status = copy(h, &h->values[node->in[0]], out);
    if (status == RFX_OK && out->known && out->n != rfx_head_step(h, out, 0))
        /* The value has fewer channels than the map, or some twice. */
        status = rfx_head_settle(h, out, NULL);
    return status == RFX_OK && out->known ? on_levels(h, each, what, out) : status;
}

/* Settles the value with the channels along `axis` next to each other. */
static enum rfx_status settle_along(struct rfx_heads *h, struct rfx_head_value *value, int axis) {
    struct rfx_memory *mem = h->graph->mem;
    size_t bytes = (size_t)value->n * sizeof(int64_t);
    int64_t at[RFX_MAX_RANK], n = value->shape.dims[axis], *order = rfx_memory_alloc(mem, bytes);
    if (order == NULL) return rfx_memory_fail(mem, "heads", bytes, h->err);
    for (int64_t e = 0, next = 0; e < value->n; e++) {
        rfx_head_unravel(value, e, at);
        if (at[axis] != 0) continue;
        for (; at[axis] < n; at[axis]++) order[next++] = rfx_head_ravel(value, at);
    }
    enum rfx_status status = rfx_head_settle(h, value, order);
    rfx_memory_release(mem, order);
    return status;
}

static enum rfx_status read_softmax(struct rfx_heads *h, const struct rfx_node *node,
                                    struct rfx_head_value *out) {
    const struct rfx_head_value *in = &h->values[node->in[0]];
    int axis = node->op == RFX_OP_SOFTMAX ? 1 : node->attr.softmax.axis;
    if (in->kind[axis] != RFX_HEAD_CHANNELS) return RFX_OK;
    enum rfx_status status = copy(h, in, out);
    if (status == RFX_OK && out->known) status = settle_along(h, out, axis);
    if (status != RFX_OK || !out->known) return status;
    struct rfx_node softmax = {.op = RFX_OP_SOFTMAX};
    softmax.attr.softmax.logarithm = node->attr.softmax.logarithm;
    softmax.attr.softmax.steps = node->attr.softmax.steps;
    softmax.attr.softmax.group = out->shape.dims[axis];
    return on_levels(h, softmax, "softmax", out);
}

/* Makes the value of the largest or smallest of all channels, or of its index. These do not depend
 * on an order of operations, as sums do. */
static enum rfx_status read_reduce(struct rfx_heads *h, const struct rfx_node *node,
                                   struct rfx_head_value *out) {
    const struct rfx_head_value *in = &h->values[node->in[0]];
    enum rfx_reduce_kind kind = node->attr.reduce.kind;
    struct rfx_node reduce = {.op = RFX_OP_CHANNEL_REDUCE, .attr.reduce.kind = kind};
    struct rfx_head_value like = {.known = false};
    int axis = -1, n = 0;
    for (int i = 0; i < in->shape.rank; i++) {
        if (node->attr.reduce.axes[i]) axis = i;
        n += node->attr.reduce.axes[i];
    }
    if (n != 1 || in->kind[axis] != RFX_HEAD_CHANNELS || in->n != in->shape.dims[axis] ||
        rfx_head_has_anchors(in) ||
        !(kind == RFX_REDUCE_MAX || kind == RFX_REDUCE_MIN || rfx_reduce_is_arg(kind)))
        return RFX_OK;
    enum rfx_status status = copy(h, in, &like);
    if (status == RFX_OK && like.known) status = rfx_head_settle(h, &like, NULL);
    if (status == RFX_OK && like.known) status = on_levels(h, reduce, "best", &like);
    for (int i = axis; !node->attr.reduce.keep_dims && i + 1 < in->shape.rank; i++)
        like.kind[i] = like.kind[i + 1];
    if (status == RFX_OK && like.known) status = rfx_head_make(h, &like, &node->out.shape, 1, out);
    rfx_head_release(h, &like);
    return status;
}

/* Replaces the weight by a new one with `times` copies of it, one after the other. */
static enum rfx_status repeat(struct rfx_heads *h, int64_t times, int *index) {
    struct rfx_graph *graph = h->graph;
    if (*index < 0 || times == 1) return RFX_OK;
    struct rfx_weight weight = graph->weights[*index];
    struct rfx_weight copies = {.source = RFX_WEIGHT_OWNED, .shape = {1, {weight.elems * times}}};
    if (weight.shape.rank > 0) {
        copies.shape = weight.shape;
        copies.shape.dims[0] *= times;
    }
    copies.elems = weight.elems * times;
    enum rfx_status status = rfx_graph_add_weight(graph, &copies, index, h->err);
    if (status != RFX_OK) return status;
    float *values = rfx_graph_owned_weight(graph, *index);
    for (int64_t k = 0; k < times && status == RFX_OK; k++)
        status = rfx_weight_read(&weight, 0, weight.elems, values + k * weight.elems, h->err);
    return status;
}

#define MOST_REPEATED ((int64_t)1 << 20) /* elements */

static bool is_pointwise(const struct rfx_node *node) {
    const struct rfx_conv_attr *c = &node->attr.conv;
    return c->kh == 1 && c->kw == 1 && c->sh == 1 && c->sw == 1 && c->groups == 1 &&
           c->pads.top == 0 && c->pads.left == 0 && c->pads.bottom == 0 && c->pads.right == 0 &&
           !node->residual;
}

/* Repeats the constants of the channels of an integer convolution; release them. */
static enum rfx_status repeat_channels(struct rfx_heads *h, int64_t times, int64_t n,
                                       int64_t **channels) {
    size_t bytes = (size_t)(3 * n) * sizeof **channels;
    int64_t *copies = rfx_memory_alloc(h->graph->mem, (size_t)times * bytes);
    if (copies == NULL)
        return rfx_memory_fail(h->graph->mem, "heads", (size_t)times * bytes, h->err);
    for (int64_t k = 0; k < times; k++) memcpy(copies + 3 * n * k, *channels, bytes);
    *channels = copies;
    return RFX_OK;
}

/* Makes the value of a 1x1 convolution of (1, k, ...), of floats or of bytes. All other axes of
 * channels become groups, each with the same weights. */
static enum rfx_status read_conv(struct rfx_heads *h, const struct rfx_node *node,
                                 struct rfx_head_value *out) {
    const struct rfx_head_value *in = &h->values[node->in[0]];
    int64_t k = in->shape.dims[1], groups = in->n / k, oc = node->attr.conv.oc;
    struct rfx_head_value taken = {.known = false};
    if (in->kind[1] != RFX_HEAD_CHANNELS || !is_pointwise(node) || !takes_act(h, &node->act) ||
        groups * k * oc > MOST_REPEATED || rfx_head_has_anchors(in))
        return RFX_OK;
    enum rfx_status status = copy(h, in, &taken);
    if (status == RFX_OK && taken.known) status = settle_along(h, &taken, 1);
    if (status != RFX_OK || !taken.known) goto done;
    struct rfx_node conv = {.op = node->op, .attr = node->attr, .act = node->act};
    int64_t *copies = NULL;
    if (node->op == RFX_OP_INT_CONV) {
        status = repeat_channels(h, groups, oc, &conv.attr.int_conv.channels);
        if (status != RFX_OK) goto done;
        copies = conv.attr.int_conv.channels;
    }
    conv.attr.conv.groups = groups;
    conv.attr.conv.oc = groups * oc;
    status = repeat(h, groups, &conv.attr.conv.weight);
    if (status == RFX_OK) status = repeat(h, groups, &conv.attr.conv.bias);
    if (status == RFX_OK) status = repeat(h, groups, &conv.attr.conv.scale);
    if (status == RFX_OK) status = on_levels(h, conv, "conv", &taken);
    rfx_memory_release(h->graph->mem, copies);
    if (status == RFX_OK && taken.known)
        status = rfx_head_make(h, &taken, &node->out.shape, groups * oc, out);
    for (int64_t e = 0; out->known && e < out->n; e++) out->from[e] = e % groups * oc + e / groups;
done:
    rfx_head_release(h, &taken);
    return status;
}

/* Concatenates along the cells: the levels of the first input, then those of the others. */
static enum rfx_status join_cells(struct rfx_heads *h, const struct rfx_node *node,
                                  struct rfx_head_value *out) {
    int axis = node->attr.concat.axis, n_levels = 0;
    struct rfx_head_value all = h->values[node->in[0]];
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < node->n_in && status == RFX_OK; k++) {
        struct rfx_head_value *in = &h->values[node->in[k]], part = {.known = false};
        if (!in->known || n_levels + in->n_levels > RFX_HEAD_MAX_LEVELS) return RFX_OK;
        status = copy(h, in, &part);
        if (status == RFX_OK && part.known) status = rfx_head_as_cells(h, &part, axis);
        if (status == RFX_OK && part.known) status = rfx_head_settle(h, &part, NULL);
        bool fits = part.known;
        for (int i = 0; fits && i < in->shape.rank; i++) fits = part.kind[i] == all.kind[i];
        for (int l = 0; fits && l < in->n_levels; l++, n_levels++) {
            all.map[n_levels] = part.map[l];
            all.anchors[n_levels] = part.anchors[l];
        }
        rfx_head_release(h, &part);
        if (!fits) return status;
    }
    all.n_levels = n_levels;
    return status == RFX_OK ? rfx_head_make(h, &all, &node->out.shape, all.n, out) : status;
}

/* Returns which input of a concatenation along `axis` contains index `at`; at[axis] becomes the
 * index in this input. */
static int find_part(const struct rfx_heads *h, const struct rfx_node *node, int axis,
                     int64_t *at) {
    int k = 0;
    while (at[axis] >= h->values[node->in[k]].shape.dims[axis])
        at[axis] -= h->values[node->in[k++]].shape.dims[axis];
    return k;
}

/* Sorts the channels of a level's concatenated maps, `n` for each anchor: those of the first anchor
 * from all parts come first. */
static enum rfx_status sort_anchors(struct rfx_heads *h, const struct rfx_head_value *parts,
                                    int n_parts, int64_t n, int l, struct rfx_head_value *out) {
    struct rfx_memory *mem = h->graph->mem;
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT};
    int64_t anchors = out->anchors[l], next = 0;
    size_t bytes = (size_t)(anchors * n) * sizeof(int64_t);
    int64_t *list = rfx_memory_alloc(mem, bytes);
    if (list == NULL) return rfx_memory_fail(mem, "heads", bytes, h->err);
    for (int64_t a = 0; a < anchors; a++)
        for (int64_t k = 0, first = 0; k < n_parts; first += anchors * parts[k++].n)
            for (int64_t e = 0; e < parts[k].n; e++) list[next++] = first + a * parts[k].n + e;
    select.attr.select.count = anchors * n;
    select.attr.select.map = list;
    enum rfx_status status =
        rfx_head_add(h, &select, &out->map[l], 1, "anchors", l, &out->map[l], &out->known);
    rfx_memory_release(mem, list);
    return status;
}

/* Makes the maps of a concatenation of channels. If all inputs have the same maps, the result has
 * these; otherwise the inputs' maps are concatenated. first[k] becomes the channel at which input k
 * begins. */
static enum rfx_status join_maps(struct rfx_heads *h, const struct rfx_node *node,
                                 struct rfx_head_value *parts, int64_t *first,
                                 struct rfx_head_value *out) {
    bool shared = true;
    for (int k = 0; k < node->n_in; k++)
        for (int l = 0; l < parts[0].n_levels; l++) shared &= parts[k].map[l] == parts[0].map[l];
    for (int k = 0; k < node->n_in; k++) first[k] = 0;
    if (shared) return RFX_OK;
    size_t bytes = (size_t)node->n_in * sizeof(int);
    int *in = rfx_memory_alloc(h->graph->mem, bytes);
    enum rfx_status status =
        in != NULL ? RFX_OK : rfx_memory_fail(h->graph->mem, "heads", bytes, h->err);
    for (int k = 0; k < node->n_in && status == RFX_OK; k++) {
        status = rfx_head_settle(h, &parts[k], NULL);
        out->known = out->known && parts[k].known;
        if (k > 0) first[k] = first[k - 1] + parts[k - 1].n;
    }
    for (int l = 0; l < out->n_levels && status == RFX_OK && out->known; l++) {
        struct rfx_node concat = {.op = RFX_OP_CONCAT};
        for (int k = 0; k < node->n_in; k++) in[k] = parts[k].map[l];
        status = rfx_head_add(h, &concat, in, node->n_in, "concat", l, &out->map[l], &out->known);
        if (status == RFX_OK && out->known && out->anchors[l] > 1)
            status = sort_anchors(h, parts, node->n_in, out->n, l, out);
    }
    rfx_memory_release(h->graph->mem, in);
    return status;
}

static enum rfx_status join_channels(struct rfx_heads *h, const struct rfx_node *node,
                                     struct rfx_head_value *out) {
    struct rfx_memory *mem = h->graph->mem;
    size_t n_in = (size_t)node->n_in;
    struct rfx_head_value *parts = rfx_memory_calloc(mem, n_in, sizeof *parts);
    int64_t *first = rfx_memory_calloc(mem, n_in, sizeof *first), n = 0;
    enum rfx_status status = RFX_OK;
    if (parts == NULL || first == NULL)
        status = rfx_memory_fail(mem, "heads", n_in * sizeof *parts, h->err);
    for (int k = 0; k < node->n_in && status == RFX_OK; k++) {
        status = copy(h, &h->values[node->in[k]], &parts[k]);
        n += h->values[node->in[k]].n;
    }
    if (status == RFX_OK)
        status = rfx_head_make(h, &h->values[node->in[0]], &node->out.shape, n, out);
    if (status == RFX_OK && out->known) status = join_maps(h, node, parts, first, out);
    for (int64_t e = 0; status == RFX_OK && out->known && e < out->n; e++) {
        int64_t at[RFX_MAX_RANK];
        rfx_head_unravel(out, e, at);
        int k = find_part(h, node, node->attr.concat.axis, at);
        out->from[e] = first[k] + parts[k].from[rfx_head_ravel(&parts[k], at)];
    }
    for (int k = 0; parts != NULL && k < node->n_in; k++) rfx_head_release(h, &parts[k]);
    rfx_memory_release(mem, first);
    rfx_memory_release(mem, parts);
    return status;
}

static enum rfx_status read_concat(struct rfx_heads *h, const struct rfx_node *node,
                                   struct rfx_head_value *out) {
    const struct rfx_head_value *first = &h->values[node->in[0]];
    if (!first->known) return RFX_OK;
    if (first->kind[node->attr.concat.axis] == RFX_HEAD_CELLS) return join_cells(h, node, out);
    for (int k = 1; k < node->n_in; k++) {
        const struct rfx_head_value *in = &h->values[node->in[k]];
        if (!in->known || !rfx_head_same_pixels(h, first, in)) return RFX_OK;
    }
    return join_channels(h, node, out);
}

enum rfx_status rfx_head_read(struct rfx_heads *h, int i) {
    const struct rfx_node node = h->graph->nodes[i];
    struct rfx_head_value *out = &h->values[i];
    bool known = node.n_in > 0 && h->values[node.in[0]].known;
    enum rfx_status status = RFX_OK;
    h->name = node.name;
    if (node.op == RFX_OP_TO_PLAIN || node.op == RFX_OP_NHWC_AS_PLAIN)
        return read_layout(h, &node, out);
    if (node.op == RFX_OP_PLAIN_BINARY) return rfx_head_binary(h, &node, out);
    if (!known) return RFX_OK;
    if (node.op == RFX_OP_TO_NHWC || node.op == RFX_OP_PLAIN_AS_NHWC)
        status = read_layout(h, &node, out);
    else if (node.op == RFX_OP_RESHAPE)
        status = rfx_head_reshape(h, &h->values[node.in[0]], &node.out.shape, out);
    else if (node.op == RFX_OP_TRANSPOSE)
        status = rfx_head_transpose(h, &h->values[node.in[0]], node.attr.transpose.perm, out);
    else if (node.op == RFX_OP_PLAIN_SLICE || node.op == RFX_OP_PLAIN_GATHER)
        status = rfx_head_take(h, &h->values[node.in[0]], &node, out);
    else if (node.op == RFX_OP_PLAIN_CONCAT)
        status = read_concat(h, &node, out);
    else if (node.op == RFX_OP_REDUCE)
        status = read_reduce(h, &node, out);
    else if (node.op == RFX_OP_PLAIN_SOFTMAX || node.op == RFX_OP_SOFTMAX)
        status = read_softmax(h, &node, out);
    else if (node.op == RFX_OP_ACTIVATION || node.op == RFX_OP_CONVERT)
        status = read_elements(h, &node, out);
    else if ((node.op == RFX_OP_CONV || node.op == RFX_OP_INT_CONV) && node.n_in == 1)
        status = read_conv(h, &node, out);
    return status;
}
