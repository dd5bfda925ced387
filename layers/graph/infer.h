/* Helpers of shape inference: they check an op's inputs and set its output.
 *
 * rfx_infer_set_map and rfx_infer_set_plain check that dimensions are positive and that sizes do
 * not overflow. rfx_graph_add checks the result again, also of ops that set the output themselves.
 */
#ifndef RFX_LAYERS_GRAPH_INFER_H
#define RFX_LAYERS_GRAPH_INFER_H

#include "layers/graph/op.h"

/* Returns the tensor that input k of the node reads. */
static inline const struct rfx_tensor *rfx_infer_in(const struct rfx_graph *graph,
                                                    const struct rfx_node *node, int k) {
    return &graph->nodes[node->in[k]].out;
}

/* Returns MALFORMED unless the node has exactly `n_in` inputs, all with layout `layout`. */
RFX_NODISCARD enum rfx_status rfx_infer_inputs(const struct rfx_graph *graph,
                                               const struct rfx_node *node, int n_in,
                                               enum rfx_layout layout, struct rfx_error *err);

/* Returns the element type in which the node reads its inputs. If all inputs have one type and the
 * op takes it, it is this type. Otherwise it is float32 if the op takes float32, else the first
 * type that the op takes. rfx_graph_add converts inputs of other types. */
enum rfx_type rfx_infer_type(const struct rfx_graph *graph, const struct rfx_node *node);

/* Returns UNSUPPORTED unless each of the two weights (-1: none) has c elements or one. */
RFX_NODISCARD enum rfx_status rfx_infer_scale_shift(const struct rfx_graph *graph,
                                                    const struct rfx_node *node, int scale,
                                                    int shift, int64_t c, struct rfx_error *err);

/* Sets the output to a map of c channels, h rows, w columns. Returns UNSUPPORTED, with the numbers
 * in the text, if a size is below 1 or the product does not fit. */
RFX_NODISCARD enum rfx_status rfx_infer_set_map(struct rfx_node *node, int64_t c, int64_t h,
                                                int64_t w, struct rfx_error *err);

/* All whole numbers up to this one are exact floats: the limit for indices that an output gives. */
#define RFX_FLOAT_COUNT_MAX ((int64_t)1 << 24)

/* Sets the output to a PLAIN tensor; statuses as rfx_infer_set_map. */
RFX_NODISCARD enum rfx_status rfx_infer_set_plain(struct rfx_node *node,
                                                  const struct rfx_shape *shape,
                                                  struct rfx_error *err);

/* Returns UNSUPPORTED unless `zero` is a value of the integer type `type`. */
RFX_NODISCARD enum rfx_status rfx_infer_zero_point(const struct rfx_node *node, enum rfx_type type,
                                                   int32_t zero, struct rfx_error *err);

/* Writes the text "Op 'name': why" for a node that cannot be run and returns UNSUPPORTED. */
enum rfx_status rfx_infer_refuse(const struct rfx_node *node, struct rfx_error *err,
                                 const char *format, ...) RFX_PRINTF(3, 4);

/* Sets strides[] to the row-major strides of a shape, in elements. */
static inline void rfx_shape_strides(const struct rfx_shape *shape, int64_t *strides) {
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape->dims[i];
    }
}

/* Returns the product of dims [from, to). */
static inline int64_t rfx_shape_product(const struct rfx_shape *shape, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= shape->dims[i];
    return product;
}
#endif
