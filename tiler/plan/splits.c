/* Legal aggregation points, and the names that users give them. */
#include "tiler/plan/splits.h"

#include <stdio.h>
#include <string.h>

#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"

/* Computes low[d]: the first node whose tensor an output or a node after d needs. It tells whether
 * d's tensor is the only one that crosses a cut after d. Every tensor has a reader (graph.h). */
static void find_lowest(const struct rfx_graph *graph, int *low) {
    int lowest = graph->n_nodes;
    for (int e = 0; e < graph->n_ends; e++)
        if (graph->ends[e].node < lowest) lowest = graph->ends[e].node;
    for (int d = graph->n_nodes - 1; d >= 0; d--) {
        low[d] = lowest;
        for (int k = 0; k < graph->nodes[d].n_in; k++) {
            int in = graph->nodes[d].in[k];
            if (in < lowest && !rfx_node_is_constant(&graph->nodes[in])) lowest = in;
        }
    }
}

int rfx_splits_list(const struct rfx_graph *graph, int *splits) {
    int n = 0;
    find_lowest(graph, splits); /* splits[d] is read before a split overwrites it */
    for (int d = 0; d < graph->n_nodes; d++) {
        const struct rfx_node *node = &graph->nodes[d];
        if (rfx_node_is_constant(node)) continue;
        if (node->op == RFX_OP_INNER) continue;
        if (!rfx_node_is_local(node)) break;
        if (rfx_node_is_input(node) || d < graph->input) continue;
        if (splits[d] >= d) splits[n++] = d;
    }
    return n;
}

const char *rfx_split_label(const struct rfx_graph *graph, int split) {
    const struct rfx_node *node = &graph->nodes[split];
    return node->alias != NULL ? node->alias : node->name;
}

static bool names_match(const char *candidate, const char *name) {
    return candidate != NULL && strcmp(candidate, name) == 0;
}

bool rfx_name_is_below(const char *candidate, const char *name) {
    size_t length = strlen(name);
    if (candidate == NULL || strncmp(candidate, name, length) != 0) return false;
    return candidate[length] == '.' || candidate[length] == '/';
}

static enum rfx_status fail_no_split(const struct rfx_graph *graph, const char *name, int node,
                                     const int *splits, int n, struct rfx_error *err) {
    const char *before = NULL;
    const char *after = NULL;
    for (int i = 0; i < n; i++) {
        if (splits[i] < node) before = rfx_split_label(graph, splits[i]);
        if (splits[i] > node && after == NULL) after = rfx_split_label(graph, splits[i]);
    }
    if (n == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "split '%s': this network has no point where a single tensor is alive",
                        name);
    if (node < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "split '%s': no such layer; legal splits run from '%s' to '%s' "
                        "(rfexec analyze lists them)",
                        name, rfx_split_label(graph, splits[0]),
                        rfx_split_label(graph, splits[n - 1]));
    if (graph->nodes[node].op == RFX_OP_INNER)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "split '%s': it lies inside a group of layers, which is never stored",
                        name);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "split '%s': more than one tensor is alive there, or the head before it is "
                    "not local in space; nearest legal splits: before '%s', after '%s'",
                    name, before == NULL ? "none" : before, after == NULL ? "none" : after);
}

enum rfx_status rfx_split_find(const struct rfx_graph *graph, const char *name, int *out,
                               struct rfx_error *err) {
    size_t bytes = (size_t)graph->n_nodes * sizeof(int);
    int *splits = rfx_memory_alloc(graph->mem, bytes);
    if (splits == NULL) return rfx_memory_fail(graph->mem, "splits", bytes, err);
    int n = rfx_splits_list(graph, splits);
    int found = -1;
    for (int i = 0; i < n && found < 0; i++) {
        const struct rfx_node *node = &graph->nodes[splits[i]];
        if (names_match(node->name, name) || names_match(node->alias, name)) found = splits[i];
    }
    for (int i = n - 1; i >= 0 && found < 0; i--) {
        const struct rfx_node *node = &graph->nodes[splits[i]];
        if (rfx_name_is_below(node->name, name) || rfx_name_is_below(node->alias, name))
            found = splits[i];
    }
    int nearest = rfx_graph_find(graph, name);
    enum rfx_status status = RFX_OK;
    if (found < 0)
        status = fail_no_split(graph, name, nearest, splits, n, err);
    else
        *out = found;
    rfx_memory_release(graph->mem, splits);
    return status;
}
