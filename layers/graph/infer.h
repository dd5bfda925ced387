/* Small helpers of shape inference: what an op expects of its inputs, and setting its output.
 *
 * Sizes are overflow-checked here; that dimensions are positive is checked by rfx_graph_add. */
#ifndef RFX_LAYERS_GRAPH_INFER_H
#define RFX_LAYERS_GRAPH_INFER_H

#include "layers/graph/op.h"

/* The tensor that input k of the node reads. */
static inline const struct rfx_tensor *rfx_infer_in(const struct rfx_graph *graph,
                                                    const struct rfx_node *node, int k) {
    return &graph->nodes[node->in[k]].out;
}

/* MALFORMED unless the node has exactly `n_in` inputs, all of `layout`. */
RFX_NODISCARD enum rfx_status rfx_infer_inputs(const struct rfx_graph *graph,
                                               const struct rfx_node *node, int n_in,
                                               enum rfx_layout layout, struct rfx_error *err);

/* The element type that the node reads its inputs in: their own where they agree and its op takes
 * it, else float32 where the op takes that, else the first type that it takes. rfx_graph_add
 * converts inputs of other types. */
enum rfx_type rfx_infer_type(const struct rfx_graph *graph, const struct rfx_node *node);

/* UNSUPPORTED unless each of the two weights (-1: none) has c elements or one. */
RFX_NODISCARD enum rfx_status rfx_infer_scale_shift(const struct rfx_graph *graph,
                                                    const struct rfx_node *node, int scale,
                                                    int shift, int64_t c, struct rfx_error *err);

/* Sets the output to a map of c channels, h rows, w columns. UNSUPPORTED: a size below 1 or a
 * product that does not fit, with the numbers. */
RFX_NODISCARD enum rfx_status rfx_infer_set_map(struct rfx_node *node, int64_t c, int64_t h,
                                                int64_t w, struct rfx_error *err);

#define RFX_FLOAT_COUNT_MAX ((int64_t)1 << 24) /* all whole numbers up to it are floats */

/* Sets the output to a PLAIN tensor; statuses as rfx_infer_set_map. */
RFX_NODISCARD enum rfx_status rfx_infer_set_plain(struct rfx_node *node,
                                                  const struct rfx_shape *shape,
                                                  struct rfx_error *err);

/* The status and text "Op 'name': why" for a node that cannot be run. */
enum rfx_status rfx_infer_refuse(const struct rfx_node *node, struct rfx_error *err,
                                 const char *format, ...) RFX_PRINTF(3, 4);

/* Row-major strides of a shape in elements. */
static inline void rfx_shape_strides(const struct rfx_shape *shape, int64_t *strides) {
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape->dims[i];
    }
}
#endif
