/* Recognises attention within windows of a map. ONNX files write this attention as many small
 * nodes.
 */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_WINDOWS_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_WINDOWS_H

#include "rfexec/onnx/import/onnx_pixels.h"

struct rfx_found_windows {
    bool found;
    struct rfx_window_attention_attr attr;
    int64_t size[3];            /* channels of a head: of queries, keys and values */
    int64_t stride[3];          /* channels of a part's map from one head to the next */
    struct rfx_pixels parts[3]; /* queries, keys, values: the channels of a map that begin at
                                   channel parts[i].first */
    struct rfx_pixels out;      /* the product; its map does not exist yet */
};

/* Tests whether the matrix product of the nodes `softmax` and `values`, of shape `product`, is
 * attention within windows of a map. The product of queries and keys may become bytes, and floats
 * again, before the softmax. Sets out->found, and the other members if true. All windows
 * must have the same size. The map may be rolled by less than a window. Several heads (consecutive
 * channels each), values of another size than keys, a scale, and a bias for each head are allowed.
 * A rolled map must have exactly the mask of its roll: 0 between pixels that are neighbours in the
 * map, and -100 or less between pixels that only the roll has brought together. Everything else
 * gives out->found false. Statuses: those of rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_find_windows(const struct rfx_graph *graph, int softmax,
                                               int values, const struct rfx_shape *product,
                                               struct rfx_found_windows *out,
                                               struct rfx_error *err);

/* If node `bytes` is a QuantizeLinear and node `floats` a DequantizeLinear with the same scale and
 * zero point, sets *rounding and returns the operand of the former; else returns -1. */
int rfx_find_rounding(const struct rfx_graph *graph, int bytes, int floats,
                      struct rfx_rounding *rounding);

#endif
