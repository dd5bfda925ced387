/* Attention within windows, found in the tensors that exporters write it with. */
#ifndef RFX_RFEXEC_ONNX_PIXELS_ONNX_WINDOWS_H
#define RFX_RFEXEC_ONNX_PIXELS_ONNX_WINDOWS_H

#include "rfexec/onnx/pixels/onnx_pixels.h"

struct rfx_found_windows {
    bool found;
    struct rfx_window_attention_attr attr;
    int64_t channels; /* of the result */
    struct rfx_pixels
        parts[3];          /* queries, keys, values: `channels` of a map each, from `first` on */
    struct rfx_pixels out; /* the product, of a map that is still to be made */
};

/* Whether softmax x values is attention within windows of a map, of the shape `product`: windows of
 * equal size on a map that was rolled by less than a window, or not; heads side by side; a scale; a
 * bias per head; and, where the map was rolled, exactly the mask that goes with it: 0, or -100 and
 * less between what the roll has brought together. Then *out says all of it. Anything else is not
 * found. Status: as rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_find_windows(const struct rfx_graph *graph, int softmax,
                                               int values, const struct rfx_shape *product,
                                               struct rfx_found_windows *out,
                                               struct rfx_error *err);

#endif
