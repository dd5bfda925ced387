/* The end of a classifier, from its output upwards; see class_map.h. */
#include "rfexec/run/class_map.h"

#include "rfexec/run/keep_tensors.h"

static bool only_reshapes(enum rfx_op op) {
    return op == RFX_OP_RESHAPE || op == RFX_OP_TO_PLAIN;
}

/* Whether a node changes no order of classes. */
static bool is_behind_layer(enum rfx_op op) {
    return only_reshapes(op) || op == RFX_OP_PLAIN_SOFTMAX || op == RFX_OP_SOFTMAX ||
           op == RFX_OP_ACTIVATION;
}

static enum rfx_status refuse(const struct rfx_graph *graph, int node, const char *expected,
                              struct rfx_error *err) {
    return rfx_fail(
        err, RFX_STATUS_UNSUPPORTED,
        "class map: '%.100s' is no classifier that ends in a global average pooling and "
        "one fully connected layer: node '%.100s' is not the %s",
        graph->name, graph->nodes[node].name, expected);
}

/* Whether a node is a copy of the tensor of `of`, as rfx_graph_keep makes it. */
static bool is_copy(const struct rfx_graph *graph, int node, int of) {
    const struct rfx_node *copy = &graph->nodes[node];
    return copy->op == RFX_OP_ACTIVATION && copy->in[0] == of &&
           copy->act.kind == RFX_ACT_LEAKY_RELU && copy->act.alpha == 1.0F;
}

static void find_output(const struct rfx_graph *graph, struct rfx_class_map *map) {
    map->output = -1;
    for (int k = 0; k < graph->n_outputs; k++) {
        int node = graph->outputs[k].node;
        bool added = is_copy(graph, node, map->map);
        if (node != map->map && !added) continue;
        map->output = k;
        map->added = added;
        return;
    }
}

enum rfx_status rfx_class_map_find(const struct rfx_graph *graph, struct rfx_class_map *out,
                                   struct rfx_error *err) {
    int i = graph->outputs[0].node;
    while (is_behind_layer(graph->nodes[i].op)) i = graph->nodes[i].in[0];
    const struct rfx_node *layer = &graph->nodes[i];
    if (layer->op == RFX_OP_GLOBAL_POOL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "class map: '%.100s' has no fully connected layer; its map '%.100s', which "
                        "'%.100s' pools, has a channel for each class itself",
                        graph->name, graph->nodes[layer->in[0]].name, layer->name);
    if (layer->op != RFX_OP_GEMM) return refuse(graph, i, "fully connected layer", err);
    struct rfx_class_map found = {
        .layer = i, .channels = layer->attr.gemm.k, .classes = layer->attr.gemm.m};
    for (i = layer->in[0]; only_reshapes(graph->nodes[i].op);) i = graph->nodes[i].in[0];
    const struct rfx_node *pool = &graph->nodes[i];
    if (pool->op != RFX_OP_GLOBAL_POOL || pool->attr.global_pool.kind != RFX_REDUCE_MEAN ||
        pool->act.kind != RFX_ACT_NONE || pool->out.c != found.channels)
        return refuse(graph, i, "global average pooling", err);
    found.map = pool->in[0];
    find_output(graph, &found);
    *out = found;
    return RFX_OK;
}

enum rfx_status rfx_class_map_keep(struct rfx_graph *graph, struct rfx_error *err) {
    struct rfx_class_map map;
    enum rfx_status status = rfx_class_map_find(graph, &map, err);
    if (status != RFX_OK || map.output >= 0) return status;
    const char *name = graph->nodes[map.map].name;
    return rfx_graph_keep(graph, &name, 1, RFX_KEEP_COPIES, err);
}

enum rfx_status rfx_class_map_weights(const struct rfx_graph *graph,
                                      const struct rfx_class_map *map, int64_t label, float *out,
                                      struct rfx_error *err) {
    const struct rfx_node *layer = &graph->nodes[map->layer];
    const struct rfx_weight *weight = &graph->weights[layer->attr.gemm.weight];
    bool rows = layer->attr.gemm.weight_is_mk; /* the weights of a class lie side by side */
    enum rfx_status status = RFX_OK;
    if (rows) status = rfx_weight_read(weight, label * map->channels, map->channels, out, err);
    for (int64_t c = 0; c < map->channels && status == RFX_OK; c++) {
        if (!rows) status = rfx_weight_read(weight, c * map->classes + label, 1, out + c, err);
        out[c] *= layer->attr.gemm.alpha;
    }
    return status;
}
