/* INPUT: the image. The executor fills its view from the image source; `run` is never called. */
#include "layers/graph/infer.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 0, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_map(node, node->attr.input.c, node->attr.input.h, node->attr.input.w, err);
}

const struct rfx_op_def rfx_op_input = {.name = "Input", .spatial = true, .infer = infer};
