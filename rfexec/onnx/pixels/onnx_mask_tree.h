/* Masks of shifted windows that are too large to be stored: parts side by side, each of one value.
 */
#ifndef RFX_RFEXEC_ONNX_PIXELS_ONNX_MASK_TREE_H
#define RFX_RFEXEC_ONNX_PIXELS_ONNX_MASK_TREE_H

#include "layers/graph/graph.h"

/* Which masks a tensor may be: of windows that wrap in rows, in columns, in both. */
struct rfx_masks {
    bool rows, cols, both;
};

/* Windows of h x w pixels, `down` below each other and `across` beside each other, on a map that
 * was rolled by shift_h rows and shift_w columns. */
struct rfx_mask_windows {
    int64_t down, across, h, w, shift_h, shift_w;
};

/* Which masks a node's tensor, of windows, queries and keys, may be where it is not 0. It is looked
 * at box by box: its size does not matter. *known: false where it is no such parts. Status: as
 * rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_mask_tree_check(const struct rfx_graph *graph, int node,
                                                  const struct rfx_mask_windows *windows,
                                                  struct rfx_masks *masks, bool *known,
                                                  struct rfx_error *err);

#endif
