/* Finds attention within windows of a map among the ONNX nodes that files write it with. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_WINDOWS_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_WINDOWS_H

#include "rfexec/onnx/import/onnx_pixels.h"

struct rfx_found_windows {
    bool found;
    struct rfx_window_attention_attr attr;
    int64_t channels; /* of the result */
    struct rfx_pixels
        parts[3];          /* queries, keys, values: `channels` of a map each, from `first` on */
    struct rfx_pixels out; /* the product, of a map that is still to be made */
};

/* Looks whether the matrix product of `softmax` and `values`, of the shape `product`, is attention
 * within windows of a map. The windows must be of equal size, on a map that may be rolled by less
 * than a window. There may be heads, which lie side by side in the channels, a scale, and a bias
 * per head. A rolled map needs exactly the mask that goes with it: 0 for neighbours, and -100 or
 * less between pixels that only the roll has brought together. Anything else is not found. Status:
 * as rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_find_windows(const struct rfx_graph *graph, int softmax,
                                               int values, const struct rfx_shape *product,
                                               struct rfx_found_windows *out,
                                               struct rfx_error *err);

#endif
