/* Recognises the attention masks of shifted windows that are too large to be stored. Such a mask is
 * a tree of concatenated parts, and all elements of a part have one value. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_MASK_TREE_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_MASK_TREE_H

#include "layers/graph/graph.h"

/* Which masks a tensor may be: that of windows that wrap around in rows, in columns, or in both. */
struct rfx_masks {
    bool rows, cols, both;
};

/* Windows of h x w pixels, `down` below each other and `across` beside each other, on a map that
 * was rolled by shift_h rows and shift_w columns. */
struct rfx_mask_windows {
    int64_t down, across, h, w, shift_h, shift_w;
};

/* Which masks the tensor of a node may be, if it masks where it is not 0. Its axes are windows,
 * queries and keys. It is looked at part by part, so its size does not matter. *known is false
 * where it does not consist of such parts. Status: as rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_mask_tree_check(const struct rfx_graph *graph, int node,
                                                  const struct rfx_mask_windows *windows,
                                                  struct rfx_masks *masks, bool *known,
                                                  struct rfx_error *err);

#endif
