/* Additional outputs by name; see keep_tensors.h. */
#include "rfexec/run/keep_tensors.h"

#include <stdio.h>
#include <string.h>

#include "layers/graph/near_names.h"
#include "tiler/plan/splits.h"

static int find_tensor(const struct rfx_graph *graph, const char *name) {
    int exact = rfx_graph_find(graph, name);
    if (exact >= 0) return exact;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        if (rfx_name_is_below(node->name, name) || rfx_name_is_below(node->alias, name)) return i;
    }
    return -1;
}

static bool is_output(const struct rfx_graph *graph, int node) {
    for (int k = 0; k < graph->n_outputs; k++)
        if (graph->outputs[k].node == node) return true;
    return false;
}

/* Returns whether one of the first n outputs has this name. */
static bool is_named(const struct rfx_graph *graph, const char *name, int n) {
    for (int k = 0; k < n; k++)
        if (strcmp(graph->outputs[k].name, name) == 0) return true;
    return false;
}

enum rfx_status rfx_graph_copy_tensor(struct rfx_graph *graph, const char *name, int *node,
                                      struct rfx_error *err) {
    char copied[256];
    (void)snprintf(copied, sizeof copied, "%.200s#%d", name, graph->n_nodes);
    const struct rfx_node copy = {.op = RFX_OP_ACTIVATION,
                                  .name = copied,
                                  .n_in = 1,
                                  .in = node,
                                  .act = {.kind = RFX_ACT_LEAKY_RELU, .alpha = 1.0f}};
    return rfx_graph_add(graph, &copy, node, err);
}

static enum rfx_status keep_one(struct rfx_graph *graph, const char *name, int n_own, unsigned how,
                                struct rfx_error *err) {
    bool known = (how & RFX_KEEP_KNOWN) != 0;
    if (graph->late != NULL && is_named(graph, name, n_own)) return RFX_OK; /* a cut tensor */
    int node = known ? rfx_graph_find(graph, name) : find_tensor(graph, name);
    if (known && (node < 0 || rfx_node_is_constant(&graph->nodes[node]) || is_output(graph, node)))
        return RFX_OK;
    if (node < 0) {
        char near[RFX_NEAR_NAMES_TEXT];
        rfx_graph_near_names(graph, name, near);
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "keep '%s': no such tensor%s", name,
                        near);
    }
    if (rfx_node_is_constant(&graph->nodes[node]))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "keep '%s': '%s' is a constant", name,
                        graph->nodes[node].name);
    enum rfx_type type = graph->nodes[node].out.type;
    enum rfx_status status = rfx_graph_as_numbers(graph, node, &node, err);
    if (status != RFX_OK) return status;
    for (int k = 0; k < graph->n_outputs; k++) {
        if (graph->outputs[k].node != node) continue;
        if (k >= n_own && strcmp(graph->outputs[k].name, name) == 0) return RFX_OK;
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "keep '%s': '%s' is output '%s' already",
                        name, graph->nodes[node].name, graph->outputs[k].name);
    }
    if ((how & RFX_KEEP_COPIES) != 0) status = rfx_graph_copy_tensor(graph, name, &node, err);
    if (status == RFX_OK) status = rfx_graph_add_output(graph, node, name, err);
    if (status == RFX_OK) graph->outputs[graph->n_outputs - 1].stored.type = type;
    return status;
}

enum rfx_status rfx_graph_keep(struct rfx_graph *graph, const char *const *names, int n,
                               unsigned how, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int n_own = graph->n_outputs;
    for (int i = 0; status == RFX_OK && i < n; i++)
        status = keep_one(graph, names[i], n_own, how, err);
    return status;
}
