/* Adds a reshape for each cut tensor and one concatenation; see join_cuts.h. */
#include "rfexec/run/join_cuts.h"

#include "rfexec/late/late.h"
#include "rfexec/run/join_heads.h"

static enum rfx_status add(struct rfx_graph *graph, const char *base, struct rfx_node *node,
                           int *out, struct rfx_error *err) {
    char name[RFX_JOIN_NAME];
    int in = *out;
    rfx_join_free_name(graph, base, name);
    node->name = name;
    node->n_in = 1;
    node->in = &in;
    return rfx_graph_add(graph, node, out, err);
}

/* Sets *out to the elements of output k in ONNX order, as 1 x elements x 1. */
static enum rfx_status flatten(struct rfx_graph *graph, int k, int *out, struct rfx_error *err) {
    const struct rfx_stored *stored = &graph->outputs[k].stored;
    bool last = stored->reshaped && stored->last;
    struct rfx_node plain = {.op = last ? RFX_OP_NHWC_AS_PLAIN : RFX_OP_TO_PLAIN};
    struct rfx_node flat = {.op = RFX_OP_RESHAPE};
    enum rfx_status status = rfx_graph_as_numbers(graph, graph->outputs[k].node, out, err);
    if (status == RFX_OK && graph->nodes[*out].out.layout == RFX_LAYOUT_NHWC)
        status = add(graph, "values", &plain, out, err);
    if (status != RFX_OK) return status;
    flat.attr.reshape.shape = (struct rfx_shape){3, {1, graph->nodes[*out].out.elems, 1}};
    return add(graph, "flat", &flat, out, err);
}

enum rfx_status rfx_graph_join_cuts(struct rfx_graph *graph, struct rfx_error *err) {
    size_t bytes = (size_t)graph->n_outputs * sizeof(int);
    int n = graph->late->n_cuts, node = -1, *in = rfx_memory_alloc(graph->mem, bytes);
    enum rfx_status status =
        in != NULL ? RFX_OK : rfx_memory_fail(graph->mem, "cut tensors", bytes, err);
    for (int k = 0; k < n && status == RFX_OK; k++) status = flatten(graph, k, &in[k], err);
    if (status == RFX_OK && n == 1) node = in[0];
    if (status == RFX_OK && n > 1) status = rfx_join_concat(graph, "cuts", 1, in, n, &node, err);
    while (status == RFX_OK && graph->n_outputs > 0) rfx_graph_remove_output(graph, 0);
    if (status == RFX_OK) status = rfx_graph_add_output(graph, node, "cut tensors", err);
    if (status == RFX_OK) graph->outputs[0].stored.head = RFX_CUTS_HEAD;
    rfx_memory_release(graph->mem, in);
    graph->late_free(graph->late);
    graph->late = NULL;
    return status;
}
