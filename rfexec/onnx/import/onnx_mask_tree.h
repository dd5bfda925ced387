/* Recognises the attention masks of shifted windows that are too large to be stored. Such a mask is
 * a tree of concatenated parts, and all elements of a part have one value. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_MASK_TREE_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_MASK_TREE_H

#include "layers/graph/graph.h"

/* Which masks a tensor may be: the mask of windows that wrap around in rows, in columns, or in
 * both.
 */
struct rfx_masks {
    bool rows, cols, both;
};

/* A grid of down x across windows of h x w pixels each, on a map that was rolled by shift_h rows
 * and shift_w columns. */
struct rfx_mask_windows {
    int64_t down, across, h, w, shift_h, shift_w;
};

/* Sets *masks to the masks that the tensor of a node may be, given that nonzero elements mask. The
 * tensor's axes are windows, queries and keys. The cost depends on the number of the tree's parts,
 * not on the size of the tensor. *known is false when the tensor is not a tree of such parts.
 * Statuses: those of rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_mask_tree_check(const struct rfx_graph *graph, int node,
                                                  const struct rfx_mask_windows *windows,
                                                  struct rfx_masks *masks, bool *known,
                                                  struct rfx_error *err);

#endif
