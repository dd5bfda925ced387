/* Decides which outputs become joins of maps; see heads.h. */
#include "layers/fuse/heads.h"

#include <string.h>

#include "layers/fuse/head_ops.h"

/* Returns the axis of cells of an output that can be a join of maps, or -1. */
static int cells_axis(const struct rfx_heads *h, const struct rfx_head_value *value) {
    bool rows = false; /* some level has rows and columns */
    for (int l = 0; value->known && l < value->n_levels; l++) {
        const struct rfx_tensor *map = &h->graph->nodes[value->map[l]].out;
        rows = rows || (map->h > 1 && map->w > 1);
    }
    if (!rows || value->shape.rank != 3 || value->shape.dims[0] != 1) return -1;
    for (int i = 1; i < 3; i++)
        if (value->kind[i] == RFX_HEAD_CELLS && value->kind[3 - i] == RFX_HEAD_CHANNELS)
            return i == 2 && rfx_head_has_anchors(value) ? -1 : i;
    return -1;
}

/* Marks a node and all nodes that it is computed from. */
static void mark_needed(const struct rfx_graph *graph, int node, bool *needed) {
    needed[node] = true;
    for (int i = node; i >= 0; i--)
        for (int k = 0; needed[i] && k < graph->nodes[i].n_in; k++)
            needed[graph->nodes[i].in[k]] = true;
}

/* Whether a node between an output and the maps that it is made of is marked. seen: temporary. */
static bool meets(const struct rfx_heads *h, int node, const bool *needed, bool *seen) {
    memset(seen, 0, (size_t)h->n_nodes * sizeof *seen);
    seen[node] = true;
    for (int i = node; i >= 0; i--) {
        if (!seen[i] || !h->values[i].known) continue; /* these are the maps, and constants */
        if (needed[i]) return true;
        for (int k = 0; k < h->graph->nodes[i].n_in; k++) seen[h->graph->nodes[i].in[k]] = true;
    }
    return false;
}

/* Sets join[k] to the axis of cells of output k, or to -1 for an output that stays whole. */
static enum rfx_status choose(const struct rfx_heads *h, int *join) {
    const struct rfx_graph *graph = h->graph;
    size_t n = (size_t)h->n_nodes;
    bool *needed = rfx_memory_calloc(graph->mem, 2 * n, sizeof *needed);
    if (needed == NULL) return rfx_memory_fail(graph->mem, "heads", 2 * n, h->err);
    for (int k = 0; k < graph->n_outputs; k++) {
        join[k] = cells_axis(h, &h->values[graph->outputs[k].node]);
        if (join[k] < 0) mark_needed(graph, graph->outputs[k].node, needed);
    }
    for (int k = 0; k < graph->n_outputs; k++) {
        int node = graph->outputs[k].node;
        if (join[k] < 0 || !meets(h, node, needed, needed + n)) continue;
        join[k] = -1;
        mark_needed(graph, node, needed);
        k = -1; /* start again: nodes marked now may belong to another output */
    }
    rfx_memory_release(graph->mem, needed);
    return RFX_OK;
}

/* Replaces output k by a JOIN_MAPS node of its maps, settled first. */
static enum rfx_status join_output(struct rfx_heads *h, int k, int axis) {
    struct rfx_graph *graph = h->graph;
    int old = graph->outputs[k].node, made;
    struct rfx_head_value *value = &h->values[old];
    struct rfx_node join = {.op = RFX_OP_JOIN_MAPS,
                            .name = graph->nodes[old].name,
                            .alias = graph->nodes[old].alias,
                            .n_in = value->n_levels,
                            .in = value->map};
    join.attr.concat.axis = axis;
    if (axis == 1) join.attr.concat.channels = value->n;
    h->name = join.name;
    enum rfx_status status = rfx_head_settle(h, value, NULL);
    if (status != RFX_OK || !value->known) return status;
    status = rfx_graph_add(graph, &join, &made, h->err);
    if (status == RFX_OK) graph->outputs[k].node = made;
    return rfx_head_is_refusal(status) ? RFX_OK : status;
}

static enum rfx_status split(struct rfx_heads *h) {
    struct rfx_graph *graph = h->graph;
    size_t bytes = (size_t)graph->n_outputs * sizeof(int);
    int *join = rfx_memory_alloc(graph->mem, bytes);
    enum rfx_status status =
        join == NULL ? rfx_memory_fail(graph->mem, "heads", bytes, h->err) : RFX_OK;
    for (int i = 0; i < h->n_nodes && status == RFX_OK; i++) status = rfx_head_read(h, i);
    if (status == RFX_OK) status = choose(h, join);
    for (int k = 0; k < graph->n_outputs && status == RFX_OK; k++)
        if (join[k] >= 0) status = join_output(h, k, join[k]);
    rfx_memory_release(graph->mem, join);
    return status;
}

/* Whether any output has the shape of a head. Most networks have none, and the pass is skipped. */
static bool has_candidates(const struct rfx_graph *graph) {
    bool any = false;
    for (int k = 0; k < graph->n_outputs; k++) {
        const struct rfx_tensor *t = &graph->nodes[graph->outputs[k].node].out;
        any |= t->layout == RFX_LAYOUT_PLAIN && t->shape.rank == 3 && t->shape.dims[0] == 1;
    }
    return any;
}

enum rfx_status rfx_split_heads(struct rfx_graph *graph, struct rfx_error *err) {
    struct rfx_heads h = {.graph = graph, .err = err, .n_nodes = graph->n_nodes};
    if (!has_candidates(graph)) return RFX_OK;
    h.values = rfx_memory_calloc(graph->mem, (size_t)h.n_nodes, sizeof *h.values);
    if (h.values == NULL)
        return rfx_memory_fail(graph->mem, "heads", (size_t)h.n_nodes * sizeof *h.values, err);
    enum rfx_status status = split(&h);
    for (int i = 0; i < h.n_nodes; i++) rfx_head_release(&h, &h.values[i]);
    rfx_memory_release(graph->mem, h.values);
    return status;
}

/* Whether a node reads a weight. */
static bool reads(const struct rfx_node *node, int weight) {
    const struct rfx_weight_slot *slot = rfx_op_def(node->op)->weights;
    if (rfx_node_is_constant(node) && node->attr.constant.weight == weight) return true;
    if (node->op == RFX_OP_REPEAT &&
        (node->attr.repeat.across == weight || node->attr.repeat.down == weight))
        return true;
    if (node->act.kind == RFX_ACT_PRELU && node->act.slope == weight) return true;
    for (; slot != NULL && slot->name != NULL; slot++)
        if (*rfx_node_weight_at(node, slot) == weight) return true;
    return false;
}

#define SMALL_ELEMS 256 /* elements; smaller weights are not worth the search for readers */

void rfx_drop_unread_weights(struct rfx_graph *graph) {
    bool joined = false;
    for (int i = 0; i < graph->n_nodes; i++) joined |= rfx_node_is_joined(&graph->nodes[i]);
    if (!joined) return; /* no head was split */
    for (int w = 0; w < graph->n_weights; w++) {
        struct rfx_weight *weight = &graph->weights[w];
        bool read = false;
        if (weight->source != RFX_WEIGHT_OWNED || weight->elems <= SMALL_ELEMS) continue;
        for (int i = 0; i < graph->n_nodes && !read; i++) read = reads(&graph->nodes[i], w);
        if (read) continue;
        rfx_memory_release(graph->mem, rfx_graph_owned_weight(graph, w));
        weight->source = RFX_WEIGHT_FILLED; /* no node reads it */
        weight->data = NULL;
    }
}
