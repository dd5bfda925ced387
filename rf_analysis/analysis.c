/* The per-layer table: receptive fields, MACs, parameters and what is alive in an untiled run. */
#include "rf_analysis/analysis.h"

#include "layers/graph/op.h"
#include "rf_analysis/receptive_field.h"

void rfx_last_uses(const struct rfx_graph *graph, int *last_use) {
    for (int i = 0; i < graph->n_nodes; i++) last_use[i] = i;
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_in; k++) last_use[graph->nodes[i].in[k]] = i;
    for (int e = 0; e < graph->n_ends; e++) last_use[graph->ends[e].node] = graph->n_nodes;
}

/* Each tensor is alive from its own node to its last use. */
static void fill_live_bytes(const struct rfx_graph *graph, const int *last_use,
                            struct rfx_layer_info *info) {
    size_t live = 0;
    for (int i = 0; i < graph->n_nodes; i++) info[i].live_bytes = 0;
    for (int i = 0; i < graph->n_nodes; i++) { /* first: what dies before node i */
        live += info[i].output_bytes - info[i].live_bytes;
        info[i].live_bytes = live;
        if (last_use[i] + 1 < graph->n_nodes)
            info[last_use[i] + 1].live_bytes += info[i].output_bytes;
    }
}

enum rfx_status rfx_analysis_create(const struct rfx_graph *graph, struct rfx_analysis **out,
                                    struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_analysis *analysis = rfx_memory_calloc(mem, 1, sizeof *analysis);
    struct rfx_layer_info *layers = rfx_memory_calloc(mem, n, sizeof *layers);
    struct rfx_range *ranges = rfx_memory_calloc(mem, n, sizeof *ranges);
    int *last_use = rfx_memory_calloc(mem, n, sizeof *last_use);
    if (analysis == NULL || layers == NULL || ranges == NULL || last_use == NULL) {
        rfx_memory_release(mem, analysis);
        rfx_memory_release(mem, layers);
        rfx_memory_release(mem, ranges);
        rfx_memory_release(mem, last_use);
        return rfx_memory_fail(mem, "analysis", n * sizeof *layers, err);
    }
    analysis->mem = mem;
    analysis->n_layers = graph->n_nodes;
    analysis->layers = layers;
    analysis->params = rfx_graph_param_count(graph);
    rfx_receptive_fields(graph, layers, ranges);
    enum rfx_status status = rfx_memory_check_stop(mem, err);
    rfx_last_uses(graph, last_use);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        layers[i].macs = rfx_op_macs(graph, node, rfx_node_full_rect(node));
        layers[i].params = rfx_node_param_count(graph, node);
        layers[i].output_bytes = rfx_node_is_joined(node) ? 0 : rfx_node_out_bytes(node);
        analysis->macs += layers[i].macs;
    }
    fill_live_bytes(graph, last_use, layers);
    for (int i = 0; i < graph->n_nodes; i++)
        if (layers[i].live_bytes > analysis->peak_live_bytes) {
            analysis->peak_live_bytes = layers[i].live_bytes;
            analysis->peak_layer = i;
        }
    rfx_memory_release(mem, ranges);
    rfx_memory_release(mem, last_use);
    if (status == RFX_OK)
        *out = analysis;
    else
        rfx_analysis_free(analysis);
    return status;
}

void rfx_analysis_free(struct rfx_analysis *analysis) {
    if (analysis == NULL) return;
    rfx_memory_release(analysis->mem, analysis->layers);
    rfx_memory_release(analysis->mem, analysis);
}
