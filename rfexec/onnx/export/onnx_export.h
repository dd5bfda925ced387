/* What the files of the ONNX exporter share: one walks the graph (onnx_export.c), one has a row per
 * operator (onnx_export_ops.c), the others write the ONNX nodes of a family of operators. */
#ifndef RFX_RFEXEC_ONNX_EXPORT_ONNX_EXPORT_H
#define RFX_RFEXEC_ONNX_EXPORT_ONNX_EXPORT_H

#include "rfexec/onnx/export/onnx_writer.h"

struct rfx_exporter {
    struct rfx_onnx_writer writer;
    const struct rfx_graph *graph;
    const char **values; /* per node: name of its tensor in the file */
    bool *follows_size;  /* per node: its shape depends on the image's size */
    bool size_is_fixed;  /* some node only works for the size of this graph */
};

/* Writes the ONNX nodes of a node without its fused activation; the last one makes the tensor
 * `output`. What this opset cannot say is refused. */
typedef void (*rfx_export_write)(struct rfx_exporter *x, const struct rfx_node *node,
                                 const char *output);

struct rfx_export_row {
    rfx_export_write write; /* NULL: the image, which is the model's input */

    /* Whether the ONNX form holds sizes of the map that the node is given. NULL: no. */
    bool (*fixes_size)(const struct rfx_node *node);

    bool has_own_size; /* the output's size does not follow the input's */
};

/* The row of an op; never NULL. */
const struct rfx_export_row *rfx_export_row(enum rfx_op op);

/* Records a refusal of a node unless there is an error already. */
void rfx_export_refuse(struct rfx_exporter *x, const struct rfx_node *node, const char *why);

/* The activation node->act of the value `in`, as ONNX nodes of which the last is called `name`. */
void rfx_export_act(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                    const char *output, const char *in);

/* ONNX nodes of one and of two inputs. */
struct rfx_onnx_node *rfx_export_emit1(struct rfx_exporter *x, const char *op, const char *name,
                                       const char *output, const char *in);
struct rfx_onnx_node *rfx_export_emit2(struct rfx_exporter *x, const char *op, const char *name,
                                       const char *output, const char *left, const char *right);

/* a and b joined by the ONNX form of a binary operation, under the name `output`. */
void rfx_export_join(struct rfx_exporter *x, enum rfx_binary_kind kind, const char *name,
                     const char *output, const char *a, const char *b);

/* A float constant of no dimensions, called "node#part". */
const char *rfx_export_scalar(struct rfx_exporter *x, const char *node, const char *part,
                              float value);

/* Booleans, which are numbers in a graph: the value `in` as an ONNX bool, and a bool as numbers
 * under the name `output`. */
const char *rfx_export_as_bool(struct rfx_exporter *x, const char *node, const char *part,
                               const char *in);
void rfx_export_to_float(struct rfx_exporter *x, const char *name, const char *output,
                         const char *in);

/* A reduction of input 0 over `count` axes. */
void rfx_export_reduction(struct rfx_exporter *x, enum rfx_reduce_kind kind,
                          const struct rfx_node *node, const int64_t *axes, int count, bool keep,
                          const char *output);

/* The value of input k of a node. */
static inline const char *rfx_export_in(const struct rfx_exporter *x, const struct rfx_node *node,
                                        int k) {
    return x->values[node->in[k]];
}

#define RFX_EXPORT_WRITE(name) \
    void name(struct rfx_exporter *x, const struct rfx_node *node, const char *output)
RFX_EXPORT_WRITE(rfx_export_conv);
RFX_EXPORT_WRITE(rfx_export_conv_transpose);
RFX_EXPORT_WRITE(rfx_export_pool_max);
RFX_EXPORT_WRITE(rfx_export_pool_place);
RFX_EXPORT_WRITE(rfx_export_pool_avg);
RFX_EXPORT_WRITE(rfx_export_pool_lp);
RFX_EXPORT_WRITE(rfx_export_adaptive);
RFX_EXPORT_WRITE(rfx_export_global);
RFX_EXPORT_WRITE(rfx_export_affine);
RFX_EXPORT_WRITE(rfx_export_activation);
RFX_EXPORT_WRITE(rfx_export_binary);
RFX_EXPORT_WRITE(rfx_export_concat);
RFX_EXPORT_WRITE(rfx_export_select);
RFX_EXPORT_WRITE(rfx_export_pad);
RFX_EXPORT_WRITE(rfx_export_convert);
RFX_EXPORT_WRITE(rfx_export_crop);
RFX_EXPORT_WRITE(rfx_export_resize);
RFX_EXPORT_WRITE(rfx_export_grid_sample);
RFX_EXPORT_WRITE(rfx_export_to_space);
RFX_EXPORT_WRITE(rfx_export_to_depth);
RFX_EXPORT_WRITE(rfx_export_lrn);
RFX_EXPORT_WRITE(rfx_export_softmax);
RFX_EXPORT_WRITE(rfx_export_moments);
RFX_EXPORT_WRITE(rfx_export_normalise);
RFX_EXPORT_WRITE(rfx_export_channel_norm);
RFX_EXPORT_WRITE(rfx_export_channel_reduce);
RFX_EXPORT_WRITE(rfx_export_constant);
RFX_EXPORT_WRITE(rfx_export_same);
RFX_EXPORT_WRITE(rfx_export_nhwc_as_plain);
RFX_EXPORT_WRITE(rfx_export_plain_as_nhwc);
RFX_EXPORT_WRITE(rfx_export_reshape);
RFX_EXPORT_WRITE(rfx_export_transpose);
RFX_EXPORT_WRITE(rfx_export_plain_concat);
RFX_EXPORT_WRITE(rfx_export_join_maps);
RFX_EXPORT_WRITE(rfx_export_slice);
RFX_EXPORT_WRITE(rfx_export_gather);
RFX_EXPORT_WRITE(rfx_export_top_k);
RFX_EXPORT_WRITE(rfx_export_pick);
RFX_EXPORT_WRITE(rfx_export_scatter);
RFX_EXPORT_WRITE(rfx_export_plain_softmax);
RFX_EXPORT_WRITE(rfx_export_reduce);
RFX_EXPORT_WRITE(rfx_export_gemm);
RFX_EXPORT_WRITE(rfx_export_matmul);
RFX_EXPORT_WRITE(rfx_export_attention);
RFX_EXPORT_WRITE(rfx_export_window_attention);
RFX_EXPORT_WRITE(rfx_export_triangle);
RFX_EXPORT_WRITE(rfx_export_repeat);
RFX_EXPORT_WRITE(rfx_export_running_sum);
#endif
