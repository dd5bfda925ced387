/* What an operation is: a row of pure functions for analysis and planning, two for execution.
 *
 * Adding an op touches: its file, enum rfx_op and its row in op.c, the ONNX import row, its test.
 * Pure functions depend on node and graph only. `run` computes exactly the rectangle it is given;
 * the bits of an output element never depend on the rectangle, the views, or the thread count. */
#ifndef RFX_LAYERS_OP_H
#define RFX_LAYERS_OP_H

#include "layers/graph.h"

struct rfx_run_args {
    const struct rfx_graph *graph;
    const struct rfx_node *node;
    const struct rfx_view *in; /* n_in views; each holds what rfx_op_in_rect, clamped, asks for */
    struct rfx_view out;       /* holds `rect` at least; nothing outside rect is written */
    struct rfx_rect rect;      /* within the full output map; PLAIN: 0,1,0,1 */
    const void *packed;        /* what pack wrote, aligned to RFX_ALIGNMENT_BYTES */
    void *scratch;             /* scratch_bytes(node, threads), aligned; contents are garbage */
    int threads;               /* >= 1 */
};

#define RFX_PACK_TEMP_BYTES ((size_t)1 << 20) /* the most that pack holds beside its result */

struct rfx_op_def {
    const char *name; /* "Conv" */
    bool spatial;     /* false: needs its inputs whole and makes its output whole */

    /* Checks attributes against the inputs' shapes and sets node->out (and attr.conv.ic). */
    enum rfx_status (*infer)(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err);

    /* Unclamped region map of one axis: which rows (axis 0) or columns (axis 1) of input `k` the
     * output rows or columns `out` need. May reach outside the map: that is padding. Minimal: no
     * smaller range would do. NULL: the same range as the output's. */
    struct rfx_range (*in_range)(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out);

    /* Whether run may be given an output view over exactly the bytes of input k's (equal sizes):
     * every element is read before it is written, and no other output reads it. NULL: never. */
    bool (*in_place)(const struct rfx_graph *graph, const struct rfx_node *node, int k);

    /* Multiply-accumulates for `area` output pixels (PLAIN: the whole tensor). NULL: none. */
    uint64_t (*macs)(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area);

    /* Scratch needed by run, for any rectangle. NULL: none. */
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads);

    /* Bytes of packed constants. NULL: none. */
    size_t (*packed_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Packs the node's constants into `packed`, by way of `temp` (RFX_PACK_TEMP_BYTES, garbage).
     * IO: a model file cannot be read any more. */
    enum rfx_status (*pack)(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, void *temp, struct rfx_error *err);

    void (*run)(const struct rfx_run_args *args);
};

/* The row of an op; never NULL. */
const struct rfx_op_def *rfx_op_def(enum rfx_op op);

/* Wrappers that treat NULL members as documented. */
struct rfx_rect rfx_op_in_rect(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                               struct rfx_rect out); /* unclamped; whole input for non-spatial ops;
                                                        a broadcast dimension gives [0, 1) */
uint64_t rfx_op_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                     struct rfx_rect out);
size_t rfx_op_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads);
size_t rfx_op_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);

/* An in_place of ops that work element by element: any input of the output's shape. */
bool rfx_op_in_place_elementwise(const struct rfx_graph *graph, const struct rfx_node *node, int k);
RFX_NODISCARD enum rfx_status rfx_op_pack(const struct rfx_graph *graph,
                                          const struct rfx_node *node, void *packed, void *temp,
                                          struct rfx_error *err); /* temp NULL: allocates it */

/* The full output map of a node as a rectangle (PLAIN: 0,1,0,1). */
static inline struct rfx_rect rfx_node_full_rect(const struct rfx_node *node) {
    return rfx_rect_full(node->out.h, node->out.w);
}

/* One rfx_op_def per op, defined in op_<name>.c. */
#define RFX_OP_LIST(X)                                    \
    X(RFX_OP_INPUT, rfx_op_input)                         \
    X(RFX_OP_CONST_MAP, rfx_op_const_map)                 \
    X(RFX_OP_CONV, rfx_op_conv)                           \
    X(RFX_OP_CONV_TRANSPOSE, rfx_op_conv_transpose)       \
    X(RFX_OP_POOL_MAX, rfx_op_pool_max)                   \
    X(RFX_OP_POOL_AVG, rfx_op_pool_avg)                   \
    X(RFX_OP_POOL_ADAPTIVE_AVG, rfx_op_pool_adaptive_avg) \
    X(RFX_OP_GLOBAL_POOL, rfx_op_global_pool)             \
    X(RFX_OP_AFFINE, rfx_op_affine)                       \
    X(RFX_OP_ACTIVATION, rfx_op_activation)               \
    X(RFX_OP_BINARY, rfx_op_binary)                       \
    X(RFX_OP_CONCAT, rfx_op_concat)                       \
    X(RFX_OP_CHANNEL_SELECT, rfx_op_channel_select)       \
    X(RFX_OP_PAD, rfx_op_pad)                             \
    X(RFX_OP_CROP, rfx_op_crop)                           \
    X(RFX_OP_RESIZE, rfx_op_resize)                       \
    X(RFX_OP_DEPTH_TO_SPACE, rfx_op_depth_to_space)       \
    X(RFX_OP_SPACE_TO_DEPTH, rfx_op_space_to_depth)       \
    X(RFX_OP_LRN, rfx_op_lrn)                             \
    X(RFX_OP_SOFTMAX, rfx_op_softmax)                     \
    X(RFX_OP_CONST_PLAIN, rfx_op_const_plain)             \
    X(RFX_OP_TO_PLAIN, rfx_op_to_plain)                   \
    X(RFX_OP_TO_NHWC, rfx_op_to_nhwc)                     \
    X(RFX_OP_NHWC_AS_PLAIN, rfx_op_nhwc_as_plain)         \
    X(RFX_OP_PLAIN_AS_NHWC, rfx_op_plain_as_nhwc)         \
    X(RFX_OP_RESHAPE, rfx_op_reshape)                     \
    X(RFX_OP_TRANSPOSE, rfx_op_transpose)                 \
    X(RFX_OP_PLAIN_CONCAT, rfx_op_plain_concat)           \
    X(RFX_OP_PLAIN_SLICE, rfx_op_plain_slice)             \
    X(RFX_OP_PLAIN_GATHER, rfx_op_plain_gather)           \
    X(RFX_OP_PLAIN_SOFTMAX, rfx_op_plain_softmax)         \
    X(RFX_OP_PLAIN_BINARY, rfx_op_plain_binary)           \
    X(RFX_OP_REDUCE, rfx_op_reduce)                       \
    X(RFX_OP_GEMM, rfx_op_gemm)                           \
    X(RFX_OP_MATMUL, rfx_op_matmul)

#define RFX_OP_DECLARE(op, def) extern const struct rfx_op_def def;
RFX_OP_LIST(RFX_OP_DECLARE)
#undef RFX_OP_DECLARE
#endif
