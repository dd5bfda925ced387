/* Crossings of the cut behind each node, from the outputs back; see part_cuts.h. */
#include "rf_analysis/part_cuts.h"

#include "layers/graph/op.h"

/* reads[i]: 1 where node i comes from the image. */
static void find_readers(const struct rfx_graph *graph, int *reads) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        reads[i] = i == graph->input;
        for (int k = 0; k < node->n_in; k++) reads[i] |= reads[node->in[k]];
    }
}

static bool is_inner_map(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_NHWC && !rfx_node_is_input(node) &&
           node->op != RFX_OP_INNER;
}

int rfx_part_cuts_list(const struct rfx_graph *graph, int *cuts) {
    int n = 0, lowest = graph->n_nodes, first_output = graph->n_nodes;
    find_readers(graph, cuts);
    for (int e = 0; e < graph->n_ends; e++)
        if (cuts[graph->ends[e].node] && graph->ends[e].node < first_output)
            first_output = graph->ends[e].node;
    /* cuts[i] has been read when it becomes: is all that is read behind i its own? */
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        bool reads = cuts[i] != 0;
        cuts[i] = reads && lowest >= i && i < first_output && is_inner_map(node);
        for (int k = 0; reads && k < node->n_in; k++)
            if (cuts[node->in[k]] && node->in[k] < lowest) lowest = node->in[k];
    }
    for (int i = 0; i < graph->n_nodes; i++)
        if (cuts[i]) cuts[n++] = i;
    return n;
}
