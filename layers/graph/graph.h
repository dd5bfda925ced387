/* The network as a graph of nodes for one concrete image size.
 *
 * Invariants: 1. a node makes exactly one tensor, so node index == tensor index; 2. inputs have
 * smaller indices than their consumer (topological order); 3. every shape is concrete and its byte
 * size fits size_t; 4. after rfx_graph_finish every node reaches an output, and the graph is const.
 * The graph contains no tiles, no plans and no activations. */
#ifndef RFX_LAYERS_GRAPH_GRAPH_H
#define RFX_LAYERS_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"
#include "layers/core/type.h"
#include "layers/graph/act.h"
#include "layers/graph/attr.h"
#include "layers/graph/tensor.h"
#include "layers/graph/weight.h"

enum rfx_op {
    /* on feature maps (NHWC in, NHWC out) */
    RFX_OP_INPUT,     /* the image; exactly one per graph */
    RFX_OP_CONST_MAP, /* a constant NHWC tensor (broadcast operand) */
    RFX_OP_REPEAT,    /* a map of constants that change only along rows or only along columns; no
                         inputs */
    RFX_OP_CONV,      /* any kernel, groups, depthwise; in[1]: residual when node.residual */
    RFX_OP_CONV_TRANSPOSE,
    RFX_OP_POOL_MAX,
    RFX_OP_POOL_PLACE, /* positions of the maxima of POOL_MAX in the map, as numbers */
    RFX_OP_POOL_AVG,
    RFX_OP_POOL_LP, /* p-th root of the sum of |x|^p */
    RFX_OP_POOL_ADAPTIVE_AVG,
    RFX_OP_GLOBAL_POOL, /* over space, no L1 or L2; out 1 x 1 */
    RFX_OP_MOMENTS,     /* over space: means and inverse deviations; out 1 x 1 of 2 c */
    RFX_OP_NORMALISE,   /* normalises a map by its MOMENTS, which are in[1] */
    RFX_OP_AFFINE,      /* x * scale[c] + shift[c] */
    RFX_OP_ACTIVATION,  /* either layout */
    RFX_OP_BINARY,      /* two maps; a dimension (c, h or w) of 1 is broadcast */
    RFX_OP_CONCAT,      /* along channels */
    RFX_OP_CONVERT,     /* either layout: elements of another type */
    RFX_OP_INT_CONV, /* one-byte integers: a convolution; in[1], if there is one: the zero point of
                           in[0], a map of one element */
    RFX_OP_INT_ADD,  /* one-byte integers: the sum of two maps or PLAIN tensors; in[1] is broadcast
                           to in[0] */
    RFX_OP_INT_MUL,  /* one-byte integers: the product, with operands as in INT_ADD */
    RFX_OP_INT_MEAN, /* one-byte integers: the mean over space; out 1 x 1 */
    RFX_OP_CHANNEL_SELECT, /* out channel i = in channel map[i], -1: zero; slice, shuffle, pad */
    RFX_OP_PAD,            /* rows and columns; negative pads crop */
    RFX_OP_CROP,           /* rows and columns with a start and a step */
    RFX_OP_RESIZE,
    RFX_OP_GRID_SAMPLE, /* samples in[0] at the coordinates in in[1], a map of two channels */
    RFX_OP_DEPTH_TO_SPACE,
    RFX_OP_SPACE_TO_DEPTH,
    RFX_OP_LRN,
    RFX_OP_SOFTMAX,        /* over channels */
    RFX_OP_CHANNEL_REDUCE, /* reduces all channels of a pixel to one */
    RFX_OP_CHANNEL_NORM,   /* normalises a pixel by the statistics of its channels */
    RFX_OP_TRIANGLE,    /* either layout: keeps the elements above or below a diagonal, all others
                           become 0 */
    RFX_OP_RUNNING_SUM, /* either layout: sums along an axis; for a map, channels or columns */
    RFX_OP_WINDOW_ATTENTION, /* attention of each pixel to the pixels of its window */
    RFX_OP_GROUP,            /* several nodes, computed depth first (graph/group.h) */
    RFX_OP_INNER,            /* replaces a node that a group computes; no node reads it */
    /* whole tensors (PLAIN unless said otherwise) */
    RFX_OP_CONST_PLAIN,
    RFX_OP_TO_PLAIN,      /* NHWC -> PLAIN in NCHW order */
    RFX_OP_TO_NHWC,       /* PLAIN rank 4, n = 1 -> NHWC */
    RFX_OP_NHWC_AS_PLAIN, /* NHWC -> PLAIN (1, h, w, c): the same bytes */
    RFX_OP_PLAIN_AS_NHWC, /* PLAIN (1, h, w, c) -> NHWC: the same bytes */
    RFX_OP_RESHAPE,       /* the same bytes, another shape */
    RFX_OP_TRANSPOSE,
    RFX_OP_PLAIN_CONCAT,
    RFX_OP_JOIN_MAPS,    /* the pixels of several maps one after the other: (1, c, pixels) or (1,
                            pixels * anchors, c) */
    RFX_OP_PLAIN_SLICE,  /* start and step per axis */
    RFX_OP_PLAIN_GATHER, /* along one axis with constant indices */
    RFX_OP_TOP_K, /* positions of the k largest or smallest elements along an axis, in this order */
    RFX_OP_PICK,  /* the elements of in[0] selected by the computed indices in[1] */
    RFX_OP_SCATTER, /* in[0] with the updates in[2] at the indices in[1] */
    RFX_OP_PLAIN_SOFTMAX,
    RFX_OP_PLAIN_BINARY, /* numpy broadcasting */
    RFX_OP_REDUCE,       /* over a set of axes */
    RFX_OP_GEMM,         /* (rows, k) x constant weights + bias -> (rows, m) */
    RFX_OP_MATMUL,       /* two computed tensors, batched */
    RFX_OP_ATTENTION,    /* softmax(in[0] x in[1], changed by further inputs) x in[2], row by row */
    RFX_OP_COUNT
};

struct rfx_node {
    enum rfx_op op;
    const char *name; /* unique; the model's name (printable); for a fused node, the name of its
                         first part */
    /* Second name of its output (a module's, or the name of the last fused part). */
    const char *alias;
    int n_in;
    const int *in; /* producers */
    union rfx_attr attr;
    struct rfx_act act; /* applied to the result by ops that can be fused with an activation
                           (rfx_op_def); for ACTIVATION, the operation itself */
    bool residual;      /* CONV: in[1], of the output's shape, is added before act */
    struct rfx_tensor out;
    /* wanted: the ROI of the map that is computed, the whole map unless a part graph
     * (rf_analysis/part_graph.h) needs less. taken: for a reduction over space, the ROI of its
     * input that it reduces. */
    struct rfx_rect wanted, taken;
};

struct rfx_detector; /* rfexec/output/detector.h */
struct rfx_late;     /* rfexec/late/late.h */

/* The declared form of an output. Image files contain the map itself; arrays have the declared
 * shape, axis order and type. rfx_graph_add_output initialises it with the type, shape and axis
 * order of the node's tensor. */
struct rfx_stored {
    enum rfx_type type;
    bool reshaped; /* for a map: its shape is `shape`; false: its shape is (1, channels, rows,
                      columns) */
    /* For a reshaped map: true: rows, columns and channels are the last three axes; false: rows and
     * columns are the last two, and the channels are one of the axes before them. */
    bool last;
    /* All other axes have extent 1; rows and columns are those of the whole map. */
    struct rfx_shape shape;
    int64_t most; /* for integers: all values are in [0, most]; 0: the largest value is unknown */
    const char *head; /* name of the detector's head whose outputs are joined to this one
                         (rfexec/run/join_heads.h); NULL: the network's own output */
    const struct rfx_detector *detector; /* its description by a file (graph->detector); NULL: a
                                            head that join_heads.h knows */
};

struct rfx_output {
    int node;
    const char *name;
    struct rfx_rect part; /* the ROI of the node's map that is the output; the whole map unless a
                             part graph needs less */
    struct rfx_stored stored;
};

/* Output strides: the places of a map's elements in a tensor in ONNX order. Element (y, x, channel)
 * has index first + y * row_step + x * column_step + channel * channel_step. */
struct rfx_spread {
    int64_t first, row_step, column_step, channel_step;
};

/* An output piece: a map that a run has to compute. It is an output's tensor, or one of the input
 * maps of a JOIN_MAPS output. The JOIN_MAPS node itself is never computed by a plan. */
struct rfx_end {
    int node, output;
    int64_t channels; /* channels of the node's map; for a tensor that is no map, its elements */
    struct rfx_spread at; /* place in the output */
};

/* The arithmetic of convolutions (layers/conv/conv_backend.h). The bits of results depend on it, so
 * it belongs to the network and not to a plan. */
enum rfx_conv_choice {
    RFX_CONV_DIRECT,   /* rfexec's kernels if the processor can run them, else as OPENBLAS */
    RFX_CONV_OPENBLAS, /* matrix products of OpenBLAS */
    RFX_CONV_WINOGRAD, /* Winograd's fewer products, with other roundings, for convolutions that
                          gain from it; else as DIRECT */
    RFX_CONV_COUNT
};

/* The arithmetic of 8-bit networks (docs/exactness.md). The bits of results depend on it. */
enum rfx_int8_choice {
    RFX_INT8_ORT,  /* the integer arithmetic of ONNX Runtime */
    RFX_INT8_SPEC, /* as the ONNX standard: DequantizeLinear, float32, QuantizeLinear */
    RFX_INT8_COUNT
};

/* Returns "ort" or "spec". */
const char *rfx_int8_choice_name(enum rfx_int8_choice choice);

/* Finds a choice by its name. Returns false and changes nothing if there is none. */
bool rfx_int8_choice_find(const char *name, enum rfx_int8_choice *choice);

struct rfx_graph {
    struct rfx_memory *mem;
    int n_nodes, n_weights, n_outputs, input; /* input: the INPUT node's index, or -1 */
    struct rfx_node *nodes;
    struct rfx_weight *weights;
    struct rfx_output *outputs;
    int n_ends;
    struct rfx_end *ends;      /* in the order of outputs, set by rfx_graph_finish */
    int *n_consumers;          /* per node, set by rfx_graph_finish; outputs count as consumers */
    enum rfx_conv_choice conv; /* set before rfx_graph_finish; initially DIRECT */
    enum rfx_int8_choice int8; /* of a model with operators of bytes; ORT for all others */
    bool dequantized; /* outputs that the model declares as bytes are float32 (load option) */
    const char *name; /* the model's name, for messages */
    struct rfx_detector *detector; /* description of the head whose outputs are joined, a block of
                                      the graph's; NULL: none */
    struct rfx_late *late; /* nodes of the model behind the graph's outputs, which run after a plan;
                              NULL: none. Freed by late_free. */
    void (*late_free)(struct rfx_late *late);
    void *files; /* files kept open for FILE weights; closed by files_free */
    void (*files_free)(void *files);
    size_t load_bytes;  /* for a model file: the maximum of the bytes that loading took from the
                           system */
    size_t held_bytes;  /* bytes of the graph, including its owned weights */
    size_t model_bytes; /* for a model in memory: bytes of the model, which the caller holds */
    int node_capacity, weight_capacity, output_capacity;
    bool halves;         /* the model declares half precision; it is computed in float32 */
    int64_t declared[2]; /* rows and columns that the model declares, if it was loaded for other
                            sizes; 0: it was not, or it declares none */
    int64_t filled[2];   /* for a built-in network: rows and columns to which images are padded, and
                            from which outputs are computed; 0: images are not padded */
    int64_t padded[2];   /* rows and columns to which images are padded at their right and below
                            before   the network's first operator; 0: images are not padded */
    int64_t batch; /* the batch size that the model is fixed to; its images are run one by one; 0:
                      none */
    uint64_t param_count; /* number of parameters in the model; rfx_graph_finish sets it before it
                             fuses nodes */
    /* The original graph, if this graph is a variant with the same node indices (with groups, see
     * group.h, or for a part of the outputs); else NULL. */
    const struct rfx_graph *base;
};

/* Bytes of code, libraries and stacks of a process that loads a model. 6.1 MiB were measured; this
 * is 6.5 MiB. */
#define RFX_LOAD_PROCESS_BYTES ((size_t)13 << 19)

/* Creates an empty graph. `mem` must outlive it. To be freed with rfx_graph_free. */
RFX_NODISCARD enum rfx_status rfx_graph_create(struct rfx_memory *mem, const char *name,
                                               struct rfx_graph **out, struct rfx_error *err);

/* Frees the graph and its owned weights and closes its files; NULL is fine. */
void rfx_graph_free(struct rfx_graph *graph);

/* Sets *out to a node that holds the elements of `node` as float32 numbers, without scale and zero
 * point: the node itself, or a CONVERT node behind it. Statuses: as rfx_graph_add. */
RFX_NODISCARD enum rfx_status rfx_graph_as_numbers(struct rfx_graph *graph, int node, int *out,
                                                   struct rfx_error *err);

/* Appends a copy of `node` (names, `in` and tables included), after checking it and inferring its
 * shape into the copy's `out`. *out_index is the new node's index. If an input has an element type
 * that the op does not take, a CONVERT node is added before it; an existing CONVERT node of the
 * same input and type is used again. A quantised tensor (rfx_tensor.quant) is refused and not
 * converted. A zeroed act means no activation; its slope is ignored unless it is PRELU. Refuses a
 * node with RFX_STATUS_UNSUPPORTED or MALFORMED and a text "op 'name': why". */
RFX_NODISCARD enum rfx_status rfx_graph_add(struct rfx_graph *graph, const struct rfx_node *node,
                                            int *out_index, struct rfx_error *err);

/* Appends a weight record. The data of an OWNED weight are copied; if weight->data is NULL, they
 * are zeros, to be filled in through rfx_graph_owned_weight. The data and places of a REPEATED
 * weight are copied too. */
RFX_NODISCARD enum rfx_status rfx_graph_add_weight(struct rfx_graph *graph,
                                                   const struct rfx_weight *weight, int *out_index,
                                                   struct rfx_error *err);

/* Returns the writable values of an OWNED weight, or the stored values of a REPEATED one. */
float *rfx_graph_owned_weight(struct rfx_graph *graph, int index);

/* Gives the node's output a second name, its alias (a module's name for --split). */
RFX_NODISCARD enum rfx_status rfx_graph_set_alias(struct rfx_graph *graph, int node,
                                                  const char *alias, struct rfx_error *err);

/* Declares the tensor of `node` an output of the network under `name`. */
RFX_NODISCARD enum rfx_status rfx_graph_add_output(struct rfx_graph *graph, int node,
                                                   const char *name, struct rfx_error *err);

/* Makes output k no output any more; the numbers of later ones fall by one. */
void rfx_graph_remove_output(struct rfx_graph *graph, int k);

/* Whether `shape` is the shape of `map` in the order (channels, rows, columns) or, if `last`,
 * (rows, columns, channels). Axes of extent 1 may stand anywhere in front; rows and columns must be
 * axes of their own. */
bool rfx_shape_is_of_map(const struct rfx_shape *shape, const struct rfx_tensor *map, bool last);

/* Declares that the map of output k is stored with `shape`: in the order (channels, rows, columns)
 * or, if `last`, (rows, columns, channels), with axes of extent 1 anywhere in front. Returns false
 * and changes nothing if the node is no map of several pixels or `shape` is not its shape in this
 * order. */
bool rfx_graph_reshape_output(struct rfx_graph *graph, int k, const struct rfx_shape *shape,
                              bool last);

/* Returns the rows (axis 0) or columns (axis 1) of the image, its padding included; 0: the graph
 * has no image. */
int64_t rfx_graph_image_extent(const struct rfx_graph *graph, int axis);

/* Returns the shape of output k: the declared one, with the rows and columns of its part. */
struct rfx_shape rfx_output_shape(const struct rfx_graph *graph, int k);

/* Returns the output strides of the elements of `rect`, a part of a map of c channels, in an array
 * that contains only this rectangle. */
struct rfx_spread rfx_stored_spread(const struct rfx_stored *stored, struct rfx_rect rect,
                                    int64_t c);

/* The rewrites that rfx_graph_finish does. */
struct rfx_fuse_options {
    bool batch_norm; /* moves AFFINE into the convolution before it */
    bool activation; /* moves ACTIVATION into the node before it if this node's op allows it;
                        replaces x * sigmoid(x) by SILU */
    bool residual;   /* moves a BINARY addition of equal shapes into the CONV that makes its later
                        operand */
    bool attention;  /* replaces MATMUL - PLAIN_SOFTMAX - MATMUL by ATTENTION (not with OpenBLAS) */
    bool heads; /* rewrites tensors after the last maps as maps, if each is computed pixel by pixel
                   (not with OpenBLAS) */
};

/* Fuses nodes (fuse NULL: all rewrites), drops nodes that reach no output, counts consumers, and
 * checks the invariants above. To be called once, after all other changes. */
RFX_NODISCARD enum rfx_status rfx_graph_finish(struct rfx_graph *graph,
                                               const struct rfx_fuse_options *fuse,
                                               struct rfx_error *err);

/* Builds the list of output pieces again from outputs and nodes. */
RFX_NODISCARD enum rfx_status rfx_graph_list_ends(struct rfx_graph *graph, struct rfx_error *err);

/* Returns the rectangle of an output piece's map that is written: the output's part if the output
 * itself is the map, else the whole map. */
struct rfx_rect rfx_end_part(const struct rfx_graph *graph, const struct rfx_end *end);

/* Returns the output strides of input k of a JOIN_MAPS in its tensor. */
struct rfx_spread rfx_join_spread(const struct rfx_graph *graph, const struct rfx_node *join,
                                  int k);

/* Sets `wanted` of a node to its whole map and, for a reduction, `taken` to its input's whole map.
 */
void rfx_node_want_all(const struct rfx_graph *graph, struct rfx_node *node);

/* Frees the strings and tables that a node of a graph owns (for passes that remove nodes). */
void rfx_node_release(struct rfx_memory *mem, struct rfx_node *node);

/* Returns the index of the node with this name or alias, or -1. O(n). */
int rfx_graph_find(const struct rfx_graph *graph, const char *name);

/* Whether a node's tensor is a packed constant, which is never computed. */
static inline bool rfx_node_is_constant(const struct rfx_node *node) {
    return node->op == RFX_OP_CONST_MAP || node->op == RFX_OP_CONST_PLAIN;
}

/* Whether a node's map is computed only from constants, at any place where it is read. */
static inline bool rfx_node_is_source(const struct rfx_node *node) {
    return node->op == RFX_OP_REPEAT;
}

/* Whether a node is an output that consists of several maps, which are not copied: no plan computes
 * it. */
static inline bool rfx_node_is_joined(const struct rfx_node *node) {
    return node->op == RFX_OP_JOIN_MAPS;
}

/* Whether a node is the image, which is read from its source and never computed. */
static inline bool rfx_node_is_input(const struct rfx_node *node) {
    return node->op == RFX_OP_INPUT;
}

/* Returns how many of the network's output pieces are this node's tensor. */
int rfx_graph_count_outputs(const struct rfx_graph *graph, int node);

/* Returns the bytes of a node's whole output. */
size_t rfx_node_out_bytes(const struct rfx_node *node);

/* Returns the number of parameters of one node: its weights, biases and (batch norm) scales. */
uint64_t rfx_node_param_count(const struct rfx_graph *graph, const struct rfx_node *node);

/* Returns the number of the network's parameters: weights and biases; for a batch norm its scale
 * and shift. */
uint64_t rfx_graph_param_count(const struct rfx_graph *graph);
#endif
