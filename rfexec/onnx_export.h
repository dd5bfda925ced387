/* What the two halves of the ONNX exporter share: one part walks the graph and writes operations on
 * maps, the other those on plain tensors. */
#ifndef RFX_RFEXEC_ONNX_EXPORT_H
#define RFX_RFEXEC_ONNX_EXPORT_H

#include "rfexec/onnx_writer.h"

struct rfx_exporter {
    struct rfx_onnx_writer writer;
    const struct rfx_graph *graph;
    const char **values; /* per node: name of its tensor in the file */
    bool *follows_size;  /* per node: its shape depends on the image's size */
    bool size_is_fixed;  /* some node only works for the size of this graph */
};

/* Emits the operations on whole tensors; false when the op is none of them. *result receives the
 * ONNX node whose output is to be the tensor. */
bool rfx_export_plain(struct rfx_exporter *x, int index, const char *output, const char *name);

/* Records a refusal of a node unless there is an error already. */
void rfx_export_refuse(struct rfx_exporter *x, const struct rfx_node *node, const char *why);

/* The value of input k of a node. */
static inline const char *rfx_export_in(const struct rfx_exporter *x, const struct rfx_node *node,
                                        int k) {
    return x->values[node->in[k]];
}
#endif
