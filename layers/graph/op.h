/* What an operation is: a row of facts and pure functions for analysis, fusing, planning and
 * charts, two for execution. Nobody else knows ops by name, except who makes nodes of them.
 *
 * Adding an op touches: its file, enum rfx_op and RFX_OP_LIST, its ONNX rows (onnx_ops.c,
 * onnx_export.c), its test. Pure functions depend on node and graph only. `run` computes
 * exactly the rectangle it is given; the bits of an output element never depend on the rectangle,
 * the views, or the thread count. */
#ifndef RFX_LAYERS_GRAPH_OP_H
#define RFX_LAYERS_GRAPH_OP_H

#include "layers/core/team.h"
#include "layers/graph/axis_map.h"
#include "layers/graph/graph.h"
#include "layers/graph/reduction.h"

struct rfx_run_args {
    const struct rfx_graph *graph;
    const struct rfx_node *node;
    const struct rfx_view *in; /* n_in views; each holds what rfx_op_in_rect, clamped, asks for */
    struct rfx_view out;       /* holds `rect` at least; nothing outside rect is written */
    struct rfx_rect rect;      /* within the full output map; PLAIN: 0,1,0,1 */
    const void *packed;        /* what pack wrote, aligned to RFX_ALIGNMENT_BYTES */
    void *scratch;             /* scratch_bytes(node, threads), aligned; contents are garbage */
    int threads;               /* >= 1: for how many work is cut up; scratch is for as many */
    struct rfx_team *team;     /* that shares out the work; NULL: the calling thread alone */
};

/* Kernel, stride and padding as tables show them; axis 0 rows, 1 columns. */
struct rfx_window {
    int64_t kernel[2], stride[2], dilation[2];
    struct rfx_pads pads;
};

enum rfx_op_class { /* what a tensor is made by, in charts and advice */
                    RFX_CLASS_OTHER,
                    RFX_CLASS_CONVOLUTION, /* its attributes are attr.conv */
                    RFX_CLASS_POOLING,
                    RFX_CLASS_JOIN,        /* sum, product, concatenation */
                    RFX_CLASS_ELEMENTWISE, /* norm, activation */
};

enum rfx_fusable { /* bits: parts that rfx_graph_finish moves into the node that makes their input
                    */
                   RFX_FUSE_BATCH_NORM = 1, /* scale and shift per channel */
                   RFX_FUSE_ACTIVATION = 2,
                   RFX_FUSE_SUM = 4,  /* a residual addition */
                   RFX_FUSE_GATE = 8, /* x * sigmoid(x) and the like: becomes an activation */
};

enum rfx_weight_role {
    RFX_WEIGHT_FACTOR, /* filters, matrices, scales of an op of their own */
    RFX_WEIGHT_BIAS,
    RFX_WEIGHT_SCALE, /* per output channel, of what is computed; of a convolution it is multiplied
                         into the filters when they are packed */
};

/* A weight that nodes of an op have: `offset` is that of the int in struct rfx_node which holds its
 * index, or -1. */
struct rfx_weight_slot {
    const char *name; /* NULL ends a list */
    enum rfx_weight_role role;
    size_t offset;
};

#define RFX_PACK_TEMP_BYTES \
    ((size_t)1 << 20)                 /* what packing holds beside its result, all threads */
#define RFX_PACK_MIN_TEMP_ELEMS 32768 /* floats that a call of pack has of it at least */

/* A share of packing a node: units of its work (panels, say) are shared out as rfx_pack_units says.
 * Who cannot cut it packs all of it as part 0. Parts are packed in any order, several at a time. */
struct rfx_pack_part {
    int64_t index, count; /* 0 <= index < count */
    float *temp;          /* temp_elems floats of garbage, aligned; of this call alone */
    int64_t temp_elems;   /* at least RFX_PACK_MIN_TEMP_ELEMS */
};

/* Which of `units` units of work are the part's. */
static inline struct rfx_range rfx_pack_units(const struct rfx_pack_part *part, int64_t units) {
    struct rfx_range r = {units * part->index / part->count,
                          units * (part->index + 1) / part->count};
    return r;
}

#define RFX_TYPE_BIT(type) (1U << (type))

struct rfx_op_def {
    const char *name; /* "Conv" */
    bool spatial;     /* false: needs its inputs whole and makes its output whole */
    bool view;        /* the input's bytes under another shape */
    enum rfx_op_class kind;
    unsigned fuses_as; /* enum rfx_fusable: which part of another node it may become */
    unsigned takes_in; /* and which parts may become part of it; BATCH_NORM needs slots of role
                          SCALE and BIAS, of as many elements as the output has channels */

    /* The element types of inputs: bit RFX_TYPE_BIT(t) for each that `run` computes, all inputs
     * being of one. 0: FLOAT32 alone. rfx_graph_add puts a CONVERT before inputs of other types.
     * The output: of the inputs' type, with their quant, where `keeps_type`; else what infer sets,
     * which is FLOAT32 by rfx_infer_set_map and rfx_infer_set_plain. */
    unsigned types;
    bool keeps_type;

    /* Its parameters, beside what act has. NULL: none. */
    const struct rfx_weight_slot *weights;

    /* The table of indices that a node of it carries, and its length. NULL: none. */
    int64_t **(*index_table)(struct rfx_node *node, int64_t *count);

    /* Checks attributes against the inputs' shapes and sets node->out (and attr.conv.ic). */
    enum rfx_status (*infer)(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err);

    /* Sets the members of *window (ones and no pads) in which the op differs. NULL: none. */
    void (*window)(const struct rfx_node *node, struct rfx_window *window);

    /* How rows (axis 0) or columns (axis 1) follow from those of input `k`: every spatial op with
     * inputs says so, also when they are the same ones (rfx_op_map_identity). */
    struct rfx_axis_map (*axis_map)(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis);

    /* Unclamped region map of one axis: which rows or columns of input `k` the output range `out`
     * needs. May reach outside the map: that is padding. Minimal: no smaller range would do. NULL:
     * as axis_map says; needed where positions are rounded, sized or read over the border, or where
     * a pixel's bits depend on more than its window. */
    struct rfx_range (*in_range)(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out);

    /* The same as if no map had a border. NULL: as axis_map says; needed where it is ROUNDED. */
    struct rfx_range (*endless_range)(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out);

    /* Where pixels of the output lie among those of input `k`. NULL: as axis_map says; needed where
     * it is ROUNDED, and of windows that follow the map's size. */
    struct rfx_axis_place (*axis_place)(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis);

    /* Whether run may be given an output view over exactly the bytes of input k's (equal sizes):
     * every element is read before it is written, and no other output reads it. NULL: never; nor
     * where the two are of different element types. */
    bool (*in_place)(const struct rfx_graph *graph, const struct rfx_node *node, int k);

    /* How the op takes in its input part by part, when its output is one pixel for a whole map.
     * NULL: it is no reduction over space. */
    const struct rfx_reduction *reduction;

    /* Multiply-accumulates for `area` output pixels (PLAIN: the whole tensor). NULL: none. */
    uint64_t (*macs)(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area);

    /* The same for a rectangle, where that is no matter of its area alone. NULL: as macs says. */
    uint64_t (*rect_macs)(const struct rfx_graph *graph, const struct rfx_node *node,
                          struct rfx_rect out);

    /* Scratch needed by run, for any rectangle. NULL: none. */
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads);

    /* Whether run calls OpenBLAS (layers/conv/blas.h) and needs its buffers. NULL: never. */
    bool (*calls_blas)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Bytes of packed constants. NULL: none. */
    size_t (*packed_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Packs a part of the node's constants into `packed`, which all parts are given alike.
     * IO: a model file cannot be read any more. */
    enum rfx_status (*pack)(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, const struct rfx_pack_part *part, struct rfx_error *err);

    void (*run)(const struct rfx_run_args *args);

    /* The name of what computes the node, where there are several ways. NULL: the op itself. */
    const char *(*backend)(const struct rfx_graph *graph, const struct rfx_node *node);
};

/* The row of an op; never NULL. */
const struct rfx_op_def *rfx_op_def(enum rfx_op op);

/* Whether an op takes inputs of the element type as they are. */
bool rfx_op_takes(enum rfx_op op, enum rfx_type type);

/* Whether a node's map can be made in parts, rectangle by rectangle: by rows, tiles or strips. */
bool rfx_node_is_local(const struct rfx_node *node);

/* The same for a node that is computed, not read (the image is at hand in any parts), and costs no
 * more row by row. */
bool rfx_node_runs_by_rows(const struct rfx_node *node);

/* Wrappers that treat NULL members as documented. */
struct rfx_axis_map rfx_op_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis); /* identity for ops that are not spatial */
struct rfx_range rfx_op_in_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out); /* unclamped; whole input for
                                                                     non-spatial ops; a broadcast
                                                                     dimension gives [0, 1) */
struct rfx_axis_place rfx_op_axis_place(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis); /* unknown for ops that are not spatial
                                                             and inputs that are no maps */
struct rfx_rect rfx_op_in_rect(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                               struct rfx_rect out); /* rfx_op_in_range of both axes */

/* Whether the node needs of every input just the rows and columns that are asked of it: then nobody
 * has to ask for each of its inputs, of which there may be thousands. */
bool rfx_op_needs_same(const struct rfx_node *node);
struct rfx_range rfx_op_endless_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out); /* spatial ops only */
struct rfx_window rfx_op_window(const struct rfx_node *node);

/* Where a node keeps the index of that weight. */
static inline const int *rfx_node_weight_at(const struct rfx_node *node,
                                            const struct rfx_weight_slot *slot) {
    return (const int *)(const void *)((const char *)node + slot->offset);
}
static inline int *rfx_node_weight_rw(struct rfx_node *node, const struct rfx_weight_slot *slot) {
    return (int *)(void *)((char *)node + slot->offset);
}

/* The op's first slot of that role, or NULL. */
const struct rfx_weight_slot *rfx_op_weight_slot(enum rfx_op op, enum rfx_weight_role role);

/* Number of elements of a node's weight of that role; 0: it has none. */
int64_t rfx_node_weight_elems(const struct rfx_graph *graph, const struct rfx_node *node,
                              enum rfx_weight_role role);

/* Whether outputs that are moved evenly, by whole blocks, read inputs that are moved evenly, away
 * from borders: not where positions are rounded or follow the size of the map. */
bool rfx_op_shifts(const struct rfx_graph *graph, const struct rfx_node *node);

/* Whether one output position sees all of an endless input. */
bool rfx_op_sees_all(const struct rfx_graph *graph, const struct rfx_node *node);

uint64_t rfx_op_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                     struct rfx_rect out);
size_t rfx_op_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads);
bool rfx_op_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node);
size_t rfx_op_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);

/* "direct", or "" where the op has but one way to be computed. */
const char *rfx_op_backend(const struct rfx_graph *graph, const struct rfx_node *node);

/* Bytes that computing `out` moves at least: what it needs of the inputs once, the rectangle of the
 * output once, packed constants once; none for a view. */
uint64_t rfx_op_moved_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            struct rfx_rect out);

/* The axis_map of ops that work position by position; of those with a window, and transposed. */
struct rfx_axis_map rfx_op_map_identity(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis);
struct rfx_axis_map rfx_op_map_window(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis);
struct rfx_axis_map rfx_op_map_transposed(const struct rfx_graph *graph,
                                          const struct rfx_node *node, int k, int axis);

/* An in_place of ops that work element by element: any input of the output's shape. */
bool rfx_op_in_place_elementwise(const struct rfx_graph *graph, const struct rfx_node *node, int k);

/* Packs a part of the node's constants; a whole node with temp of its own. pack.h: with a team. */
RFX_NODISCARD enum rfx_status rfx_op_pack_part(const struct rfx_graph *graph,
                                               const struct rfx_node *node, void *packed,
                                               const struct rfx_pack_part *part,
                                               struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_op_pack(const struct rfx_graph *graph,
                                          const struct rfx_node *node, void *packed,
                                          struct rfx_error *err);

/* Runs a node with a team of args->threads of its own (args->team is not read). */
void rfx_op_run(const struct rfx_run_args *args);

/* For run: calls work(args, index) for all 0 <= index < count, shared out to the team. */
void rfx_op_share(const struct rfx_run_args *args, int64_t count,
                  void (*work)(const struct rfx_run_args *args, int64_t index));

/* For run: calls row(args, y) for every row y of args->rect, shared out to the team if `share`
 * (little work is done sooner by one thread): then with the columns of a part of it. */
void rfx_op_share_rows(const struct rfx_run_args *args, bool share,
                       void (*row)(const struct rfx_run_args *args, int64_t y));

/* The full output map of a node as a rectangle (PLAIN: 0,1,0,1). */
static inline struct rfx_rect rfx_node_full_rect(const struct rfx_node *node) {
    return rfx_rect_full(node->out.h, node->out.w);
}

/* Whether a node is of that class; whether it may take in such a part, or become one (bits). */
static inline bool rfx_node_is_class(const struct rfx_node *node, enum rfx_op_class kind) {
    return rfx_op_def(node->op)->kind == kind;
}
static inline bool rfx_node_takes_in(const struct rfx_node *node, enum rfx_fusable part) {
    return (rfx_op_def(node->op)->takes_in & (unsigned)part) != 0;
}
static inline bool rfx_node_fuses_as(const struct rfx_node *node, enum rfx_fusable part) {
    return (rfx_op_def(node->op)->fuses_as & (unsigned)part) != 0;
}

/* One rfx_op_def per op, each in its operator's file. */
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
