/* The description of an operator: a row of facts, pure functions for analysis, fusing, planning and
 * charts, and the functions pack and run for execution. No other code depends on particular ops,
 * except code that creates nodes of them.
 *
 * To add an op: add its file, its entries in enum rfx_op and RFX_OP_LIST, its ONNX rows
 * (onnx_ops.c, onnx_export.c) and its test. The pure functions depend on node and graph only. `run`
 * computes exactly the rectangle that it is given. The bits of an output element never depend on
 * the rectangle, the views or the number of threads. */
#ifndef RFX_LAYERS_GRAPH_OP_H
#define RFX_LAYERS_GRAPH_OP_H

#include "layers/core/team.h"
#include "layers/graph/axis_map.h"
#include "layers/graph/graph.h"
#include "layers/graph/reduction.h"

struct rfx_run_args {
    const struct rfx_graph *graph;
    const struct rfx_node *node;
    /* n_in views; each contains the rectangle rfx_op_in_rect, clipped to the map. */
    const struct rfx_view *in;
    struct rfx_view out;   /* contains at least `rect`; nothing outside `rect` is written */
    struct rfx_rect rect;  /* within the full output map; PLAIN: 0,1,0,1 */
    const void *packed;    /* the constants that pack wrote, aligned to RFX_ALIGNMENT_BYTES */
    void *scratch;         /* scratch_bytes(node, threads) bytes, aligned, uninitialised */
    int threads;           /* >= 1: the number of threads that work and scratch are divided among */
    struct rfx_team *team; /* the team that runs the work; NULL: the calling thread alone */
};

/* Kernel, stride and padding as tables show them; axis 0 rows, 1 columns. */
struct rfx_window {
    int64_t kernel[2], stride[2], dilation[2];
    struct rfx_pads pads;
};

enum rfx_op_class { /* the class of the op that makes a tensor, for charts and advice */
                    RFX_CLASS_OTHER,
                    RFX_CLASS_CONVOLUTION, /* its attributes are attr.conv */
                    RFX_CLASS_POOLING,
                    RFX_CLASS_JOIN,        /* sum, product, concatenation */
                    RFX_CLASS_ELEMENTWISE, /* norm, activation */
};

enum rfx_fusable { /* bits: kinds of nodes that rfx_graph_finish can move into the node that makes
                      their input */
                   RFX_FUSE_BATCH_NORM = 1, /* scale and shift per channel */
                   RFX_FUSE_ACTIVATION = 2,
                   RFX_FUSE_SUM = 4, /* a residual addition */
                   /* x * sigmoid(x) and similar products; becomes an activation. */
                   RFX_FUSE_GATE = 8,
};

enum rfx_weight_role {
    RFX_WEIGHT_FACTOR, /* filters, matrices; scales if the op itself is a scaling */
    RFX_WEIGHT_BIAS,
    RFX_WEIGHT_SCALE, /* a factor per output channel of the result; for a convolution it is
                         multiplied into the filters when they are packed */
};

/* A weight of an op's nodes. `offset` is the offset in struct rfx_node of the int that holds the
 * weight's index, or -1 for none. */
struct rfx_weight_slot {
    const char *name; /* NULL ends a list */
    enum rfx_weight_role role;
    size_t offset;
};

#define RFX_PACK_TEMP_BYTES \
    ((size_t)1 << 20) /* bytes of temporary memory for packing, for all threads together */
#define RFX_PACK_MIN_TEMP_ELEMS 32768 /* least number of temporary floats of a call of pack */

/* A shard of the weights of a node to pack. The node's units of work (panels, say) are distributed
 * among the shards by rfx_pack_units. An op that cannot divide its work packs everything as shard
 * 0. Shards are packed in any order, several at the same time. */
struct rfx_pack_part {
    int64_t index, count; /* 0 <= index < count */
    float *temp;          /* temp_elems uninitialised floats, aligned, for this call alone */
    int64_t temp_elems;   /* at least RFX_PACK_MIN_TEMP_ELEMS */
};

/* Returns the range of the shard's units, out of `units` units of work. */
static inline struct rfx_range rfx_pack_units(const struct rfx_pack_part *part, int64_t units) {
    struct rfx_range r = {units * part->index / part->count,
                          units * (part->index + 1) / part->count};
    return r;
}

#define RFX_TYPE_BIT(type) (1U << (type))
#define RFX_TYPES_OF_BYTES (RFX_TYPE_BIT(RFX_TYPE_UINT8) | RFX_TYPE_BIT(RFX_TYPE_INT8))
#define RFX_TYPES_FLOATS_AND_BYTES (RFX_TYPE_BIT(RFX_TYPE_FLOAT32) | RFX_TYPES_OF_BYTES)

struct rfx_op_def {
    const char *name; /* "Conv" */
    bool spatial;     /* false: reads its inputs whole and makes its output whole */
    bool view;        /* the output is the input's bytes with another shape */
    enum rfx_op_class kind;
    unsigned fuses_as; /* enum rfx_fusable: the kinds as which it can move into another node */
    unsigned takes_in; /* the kinds that can move into it; BATCH_NORM requires slots of role SCALE
                          and BIAS, with as many elements as the output has channels */

    /* Element types of inputs: bit RFX_TYPE_BIT(t) for each type that `run` computes; all inputs
     * have the same type. 0: FLOAT32 only. rfx_graph_add puts a CONVERT before inputs of other
     * types. If `keeps_type`, the output has the inputs' type and quant. Otherwise infer sets the
     * type, which is FLOAT32 with rfx_infer_set_map and rfx_infer_set_plain. */
    unsigned types;
    bool keeps_type;

    /* The op's weights, except those of `act`. NULL: none. */
    const struct rfx_weight_slot *weights;

    /* Returns the address of the table of indices or other integers that a node of the op has, and
     * sets *count to its length. NULL: no table. */
    int64_t **(*index_table)(struct rfx_node *node, int64_t *count);

    /* Checks attributes against the inputs' shapes and sets node->out (and attr.conv.ic). */
    enum rfx_status (*infer)(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err);

    /* Changes the members of *window in which the op differs from a 1x1 window with stride 1 and no
     * pads. NULL: none. */
    void (*window)(const struct rfx_node *node, struct rfx_window *window);

    /* Returns how rows (axis 0) or columns (axis 1) of the output depend on those of input `k`.
     * Every spatial op with inputs defines it; rfx_op_map_identity if they are the same ones. */
    struct rfx_axis_map (*axis_map)(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis);

    /* Returns the range of rows or columns of input `k` that the output range `out` needs, for one
     * axis. The range is not clipped: the part outside the map is padding. It is minimal: no
     * smaller range would do. NULL: follows from axis_map. Needed if positions are rounded, if
     * sizes depend on the map, if the map is read over its border, or if a pixel's bits depend on
     * more than its window. */
    struct rfx_range (*in_range)(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out);

    /* As in_range, as if no map had a border. NULL: follows from axis_map. Needed if the axis map
     * is ROUNDED. */
    struct rfx_range (*endless_range)(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out);

    /* Returns the positions of the output's pixels in the coordinates of input `k`. NULL: follows
     * from axis_map. Needed if the axis map is ROUNDED and for windows whose size depends on the
     * map's size. */
    struct rfx_axis_place (*axis_place)(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis);

    /* Whether run may overwrite input k with the output (equal sizes, the same bytes): run reads
     * every element before it writes it, and no other output element reads it. NULL: never. Also
     * never if the two have different element types. */
    bool (*in_place)(const struct rfx_graph *graph, const struct rfx_node *node, int k);

    /* The reduction that reads the input part by part, for ops whose output is one pixel for a
     * whole map. NULL: the op is no reduction over space. */
    const struct rfx_reduction *reduction;

    /* Returns the multiply-accumulates for `area` output pixels (PLAIN: for the whole tensor).
     * NULL: none. */
    uint64_t (*macs)(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area);

    /* Returns the multiply-accumulates for a rectangle if they do not depend on its area alone.
     * NULL: use macs. */
    uint64_t (*rect_macs)(const struct rfx_graph *graph, const struct rfx_node *node,
                          struct rfx_rect out);

    /* Returns those of a rectangle's multiply-accumulates that integer kernels make. NULL: none. */
    uint64_t (*int_macs)(const struct rfx_graph *graph, const struct rfx_node *node,
                         struct rfx_rect out);

    /* Returns the bytes of scratch that run needs, for any rectangle. NULL: none. */
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads);

    /* Whether run calls OpenBLAS (layers/conv/blas.h), which needs its own buffers. NULL: never. */
    bool (*calls_blas)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Returns the bytes of the node's packed constants. NULL: none. */
    size_t (*packed_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Packs one shard of the node's constants into `packed`; all shards are given the same
     * `packed`. Returns IO if a model file cannot be read any more. */
    enum rfx_status (*pack)(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, const struct rfx_pack_part *part, struct rfx_error *err);

    void (*run)(const struct rfx_run_args *args);

    /* Returns the name of the implementation that computes the node, if there are several. NULL:
     * there is one. */
    const char *(*backend)(const struct rfx_graph *graph, const struct rfx_node *node);
};

/* Returns the row of an op; never NULL. */
const struct rfx_op_def *rfx_op_def(enum rfx_op op);

/* Whether an op takes inputs of this element type without conversion. */
bool rfx_op_takes(enum rfx_op op, enum rfx_type type);

/* Whether a node's map can be computed in parts, rectangle by rectangle: by rows, tiles or strips.
 */
bool rfx_node_is_local(const struct rfx_node *node);

/* Whether a node is attention in windows of more than RFX_WINDOW_MOST_BIASED pixels. Rows behind it
 * need all rows of a window. */
bool rfx_node_has_large_windows(const struct rfx_node *node);

/* Whether a node is local, is computed (the image is read instead), and costs no more if computed
 * row by row. */
bool rfx_node_runs_by_rows(const struct rfx_node *node);

/* Wrappers of the functions above; they apply the rules for NULL members. */
struct rfx_axis_map rfx_op_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis); /* identity for ops that are not spatial */
/* Not clipped; the whole input for ops that are not spatial; [0, 1) for a broadcast dimension. */
struct rfx_range rfx_op_in_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out);
/* Unknown for ops that are not spatial, or if input k or the output is no map. */
struct rfx_axis_place rfx_op_axis_place(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis);
struct rfx_rect rfx_op_in_rect(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                               struct rfx_rect out); /* rfx_op_in_range of both axes */

/* Whether the node needs exactly the requested rows and columns of every input. Callers then need
 * not compute the range of each input, of which there may be thousands. */
bool rfx_op_needs_same(const struct rfx_node *node);
struct rfx_range rfx_op_endless_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out); /* spatial ops only */
struct rfx_window rfx_op_window(const struct rfx_node *node);

/* Returns the address of the weight's index in a node. */
static inline const int *rfx_node_weight_at(const struct rfx_node *node,
                                            const struct rfx_weight_slot *slot) {
    return (const int *)(const void *)((const char *)node + slot->offset);
}
static inline int *rfx_node_weight_rw(struct rfx_node *node, const struct rfx_weight_slot *slot) {
    return (int *)(void *)((char *)node + slot->offset);
}

/* Returns the op's first slot of this role, or NULL. */
const struct rfx_weight_slot *rfx_op_weight_slot(enum rfx_op op, enum rfx_weight_role role);

/* Returns the number of elements of a node's weight of this role; 0 if it has none. */
int64_t rfx_node_weight_elems(const struct rfx_graph *graph, const struct rfx_node *node,
                              enum rfx_weight_role role);

/* Whether moving an output range by whole blocks, away from borders, moves the range that it reads
 * by a proportional distance. False if positions are rounded or depend on the map's size. */
bool rfx_op_shifts(const struct rfx_graph *graph, const struct rfx_node *node);

/* Whether one output position reads all of an endless input. */
bool rfx_op_sees_all(const struct rfx_graph *graph, const struct rfx_node *node);

uint64_t rfx_op_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                     struct rfx_rect out);
uint64_t rfx_op_int_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                         struct rfx_rect out);
size_t rfx_op_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads);
bool rfx_op_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node);
size_t rfx_op_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);

/* Returns the name of the implementation, such as "direct", or "" if the op has only one. */
const char *rfx_op_backend(const struct rfx_graph *graph, const struct rfx_node *node);

/* Returns a lower bound on the bytes moved to compute `out`: the needed part of each input once,
 * the rectangle of the output once, the packed constants once. 0 for a view. */
uint64_t rfx_op_moved_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            struct rfx_rect out);

/* Functions for the member axis_map: for ops that work position by position, those of them that
 * broadcast rows and columns of inputs, ops with a window, and transposed convolutions. */
struct rfx_axis_map rfx_op_map_identity(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis);
struct rfx_axis_map rfx_op_map_broadcast(const struct rfx_graph *graph, const struct rfx_node *node,
                                         int k, int axis);
struct rfx_axis_map rfx_op_map_window(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis);
struct rfx_axis_map rfx_op_map_transposed(const struct rfx_graph *graph,
                                          const struct rfx_node *node, int k, int axis);

/* A function for the member in_place, for ops that work element by element: true for every input
 * with the output's shape and type. */
bool rfx_op_in_place_elementwise(const struct rfx_graph *graph, const struct rfx_node *node, int k);

/* rfx_op_pack_part packs one shard of the node's constants. rfx_op_pack packs all of them and
 * allocates the temporary buffer itself. pack.h packs with a team. */
RFX_NODISCARD enum rfx_status rfx_op_pack_part(const struct rfx_graph *graph,
                                               const struct rfx_node *node, void *packed,
                                               const struct rfx_pack_part *part,
                                               struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_op_pack(const struct rfx_graph *graph,
                                          const struct rfx_node *node, void *packed,
                                          struct rfx_error *err);

/* Runs a node with its own team of args->threads threads (args->team is not read). */
void rfx_op_run(const struct rfx_run_args *args);

/* For run: calls work(args, index) for all 0 <= index < count, distributed over the team. */
void rfx_op_share(const struct rfx_run_args *args, int64_t count,
                  void (*work)(const struct rfx_run_args *args, int64_t index));

/* For run: calls row(args, y) for every row y of args->rect. If `share`, the calls are distributed
 * over the team, and each call gets a part of the row's columns in args->rect. Little work is
 * faster on one thread: then `share` is false. */
void rfx_op_share_rows(const struct rfx_run_args *args, bool share,
                       void (*row)(const struct rfx_run_args *args, int64_t y));

/* Returns the rectangle of a node's whole output map (PLAIN: 0,1,0,1). */
static inline struct rfx_rect rfx_node_full_rect(const struct rfx_node *node) {
    return rfx_rect_full(node->out.h, node->out.w);
}

/* Whether a node is of class `kind`; whether nodes of kind `part` can move into it; whether it can
 * move into another node as kind `part`. */
static inline bool rfx_node_is_class(const struct rfx_node *node, enum rfx_op_class kind) {
    return rfx_op_def(node->op)->kind == kind;
}
static inline bool rfx_node_takes_in(const struct rfx_node *node, enum rfx_fusable part) {
    return (rfx_op_def(node->op)->takes_in & (unsigned)part) != 0;
}
static inline bool rfx_node_fuses_as(const struct rfx_node *node, enum rfx_fusable part) {
    return (rfx_op_def(node->op)->fuses_as & (unsigned)part) != 0;
}

/* One rfx_op_def per op, each defined in the operator's file. */
#define RFX_OP_LIST(X)                                    \
    X(RFX_OP_INPUT, rfx_op_input)                         \
    X(RFX_OP_CONST_MAP, rfx_op_const_map)                 \
    X(RFX_OP_REPEAT, rfx_op_repeat)                       \
    X(RFX_OP_CONV, rfx_op_conv)                           \
    X(RFX_OP_CONV_TRANSPOSE, rfx_op_conv_transpose)       \
    X(RFX_OP_POOL_MAX, rfx_op_pool_max)                   \
    X(RFX_OP_POOL_PLACE, rfx_op_pool_place)               \
    X(RFX_OP_POOL_AVG, rfx_op_pool_avg)                   \
    X(RFX_OP_POOL_LP, rfx_op_pool_lp)                     \
    X(RFX_OP_POOL_ADAPTIVE_AVG, rfx_op_pool_adaptive_avg) \
    X(RFX_OP_GLOBAL_POOL, rfx_op_global_pool)             \
    X(RFX_OP_MOMENTS, rfx_op_moments)                     \
    X(RFX_OP_NORMALISE, rfx_op_normalise)                 \
    X(RFX_OP_AFFINE, rfx_op_affine)                       \
    X(RFX_OP_ACTIVATION, rfx_op_activation)               \
    X(RFX_OP_BINARY, rfx_op_binary)                       \
    X(RFX_OP_CONCAT, rfx_op_concat)                       \
    X(RFX_OP_CONVERT, rfx_op_convert)                     \
    X(RFX_OP_INT_CONV, rfx_op_int_conv)                   \
    X(RFX_OP_INT_ADD, rfx_op_int_add)                     \
    X(RFX_OP_INT_MUL, rfx_op_int_mul)                     \
    X(RFX_OP_INT_MEAN, rfx_op_int_mean)                   \
    X(RFX_OP_CHANNEL_SELECT, rfx_op_channel_select)       \
    X(RFX_OP_PAD, rfx_op_pad)                             \
    X(RFX_OP_CROP, rfx_op_crop)                           \
    X(RFX_OP_RESIZE, rfx_op_resize)                       \
    X(RFX_OP_GRID_SAMPLE, rfx_op_grid_sample)             \
    X(RFX_OP_DEPTH_TO_SPACE, rfx_op_depth_to_space)       \
    X(RFX_OP_SPACE_TO_DEPTH, rfx_op_space_to_depth)       \
    X(RFX_OP_LRN, rfx_op_lrn)                             \
    X(RFX_OP_SOFTMAX, rfx_op_softmax)                     \
    X(RFX_OP_CHANNEL_REDUCE, rfx_op_channel_reduce)       \
    X(RFX_OP_CHANNEL_NORM, rfx_op_channel_norm)           \
    X(RFX_OP_TRIANGLE, rfx_op_triangle)                   \
    X(RFX_OP_RUNNING_SUM, rfx_op_running_sum)             \
    X(RFX_OP_WINDOW_ATTENTION, rfx_op_window_attention)   \
    X(RFX_OP_GROUP, rfx_op_group)                         \
    X(RFX_OP_INNER, rfx_op_inner)                         \
    X(RFX_OP_CONST_PLAIN, rfx_op_const_plain)             \
    X(RFX_OP_TO_PLAIN, rfx_op_to_plain)                   \
    X(RFX_OP_TO_NHWC, rfx_op_to_nhwc)                     \
    X(RFX_OP_NHWC_AS_PLAIN, rfx_op_nhwc_as_plain)         \
    X(RFX_OP_PLAIN_AS_NHWC, rfx_op_plain_as_nhwc)         \
    X(RFX_OP_RESHAPE, rfx_op_reshape)                     \
    X(RFX_OP_TRANSPOSE, rfx_op_transpose)                 \
    X(RFX_OP_PLAIN_CONCAT, rfx_op_plain_concat)           \
    X(RFX_OP_JOIN_MAPS, rfx_op_join_maps)                 \
    X(RFX_OP_PLAIN_SLICE, rfx_op_plain_slice)             \
    X(RFX_OP_PLAIN_GATHER, rfx_op_plain_gather)           \
    X(RFX_OP_TOP_K, rfx_op_top_k)                         \
    X(RFX_OP_PICK, rfx_op_pick)                           \
    X(RFX_OP_SCATTER, rfx_op_scatter)                     \
    X(RFX_OP_PLAIN_SOFTMAX, rfx_op_plain_softmax)         \
    X(RFX_OP_PLAIN_BINARY, rfx_op_plain_binary)           \
    X(RFX_OP_REDUCE, rfx_op_reduce)                       \
    X(RFX_OP_GEMM, rfx_op_gemm)                           \
    X(RFX_OP_MATMUL, rfx_op_matmul)                       \
    X(RFX_OP_ATTENTION, rfx_op_attention)

#define RFX_OP_DECLARE(op, def) extern const struct rfx_op_def def;
RFX_OP_LIST(RFX_OP_DECLARE)
#undef RFX_OP_DECLARE
#endif
