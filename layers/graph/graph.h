/* The network as a graph of nodes for one concrete image size.
 *
 * Invariants: 1. a node makes exactly one tensor, so node index == tensor index; 2. inputs have
 * smaller indices than their consumer (topological order); 3. every shape is concrete and its byte
 * size fits size_t; 4. after rfx_graph_finish every node reaches an output, and the graph is const.
 * It does not know about tiles, plans or memory, and holds no activations. */
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
    RFX_OP_REPEAT,    /* a map of constants that change along rows or along columns; no inputs */
    RFX_OP_CONV,      /* any kernel, groups, depthwise; in[1]: residual when node.residual */
    RFX_OP_CONV_TRANSPOSE,
    RFX_OP_POOL_MAX,
    RFX_OP_POOL_PLACE, /* where in the map the maxima of POOL_MAX are, as numbers */
    RFX_OP_POOL_AVG,
    RFX_OP_POOL_LP, /* p-th root of the sum of |x|^p */
    RFX_OP_POOL_ADAPTIVE_AVG,
    RFX_OP_GLOBAL_POOL,    /* over space, no L1 or L2; out 1 x 1 */
    RFX_OP_MOMENTS,        /* over space: means and inverse deviations; out 1 x 1 of 2 c */
    RFX_OP_NORMALISE,      /* a map by its MOMENTS, in[1] */
    RFX_OP_AFFINE,         /* x * scale[c] + shift[c] */
    RFX_OP_ACTIVATION,     /* either layout */
    RFX_OP_BINARY,         /* two maps; a dimension (c, h or w) of 1 is broadcast */
    RFX_OP_CONCAT,         /* along channels */
    RFX_OP_CONVERT,        /* either layout: elements of another type */
    RFX_OP_CHANNEL_SELECT, /* out channel i = in channel map[i], -1: zero; slice, shuffle, pad */
    RFX_OP_PAD,            /* rows and columns; negative pads crop */
    RFX_OP_CROP,           /* rows and columns with a start and a step */
    RFX_OP_RESIZE,
    RFX_OP_GRID_SAMPLE, /* in[0] where in[1], a map of two channels, says */
    RFX_OP_DEPTH_TO_SPACE,
    RFX_OP_SPACE_TO_DEPTH,
    RFX_OP_LRN,
    RFX_OP_SOFTMAX,          /* over channels */
    RFX_OP_CHANNEL_REDUCE,   /* all channels of a pixel to one */
    RFX_OP_CHANNEL_NORM,     /* a pixel by the statistics of its channels */
    RFX_OP_TRIANGLE,         /* either layout: above or below a diagonal, else 0 */
    RFX_OP_RUNNING_SUM,      /* either layout: along an axis; of a map channels or columns */
    RFX_OP_WINDOW_ATTENTION, /* each pixel to those of its window */
    RFX_OP_GROUP,            /* several nodes, computed depth first (graph/group.h) */
    RFX_OP_INNER, /* what stands where a node was that a group computes: nobody reads it */
    /* whole tensors (PLAIN unless said otherwise) */
    RFX_OP_CONST_PLAIN,
    RFX_OP_TO_PLAIN,      /* NHWC -> PLAIN in NCHW order */
    RFX_OP_TO_NHWC,       /* PLAIN rank 4, n = 1 -> NHWC */
    RFX_OP_NHWC_AS_PLAIN, /* NHWC -> PLAIN (1, h, w, c): the same bytes */
    RFX_OP_PLAIN_AS_NHWC, /* PLAIN (1, h, w, c) -> NHWC: the same bytes */
    RFX_OP_RESHAPE,       /* the same bytes, another shape */
    RFX_OP_TRANSPOSE,
    RFX_OP_PLAIN_CONCAT,
    RFX_OP_JOIN_MAPS,   /* the pixels of several maps in a row: (1, c, pixels), or (1, pixels, c) */
    RFX_OP_PLAIN_SLICE, /* start and step per axis */
    RFX_OP_PLAIN_GATHER, /* along one axis with constant indices */
    RFX_OP_TOP_K,   /* where along an axis the k largest or smallest are, the first ones first */
    RFX_OP_PICK,    /* of in[0] what the computed indices in[1] say */
    RFX_OP_SCATTER, /* in[0], with the updates in[2] where the indices in[1] say */
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
    const char *name;  /* unique, as in the model (printable); of a fused node: its first part */
    const char *alias; /* second name under which its output is known (module, last fused part) */
    int n_in;
    const int *in; /* producers */
    union rfx_attr attr;
    struct rfx_act act; /* applied to the result of ops that take one in (rfx_op_def); the operation
                           itself for ACTIVATION */
    bool residual;      /* CONV: in[1], of the output's shape, is added before act */
    struct rfx_tensor out;
    /* What is computed of the map: all of it, unless a part graph (rf_analysis/part_graph.h) wants
     * less. `taken`: of a reduction over space, what it takes of its input's map. */
    struct rfx_rect wanted, taken;
};

/* How an output is declared, beside the map that makes it. Picture files hold the map; arrays have
 * the declared shape, order and type. rfx_graph_add_output sets the type of the node's tensor, and
 * its shape and order. */
struct rfx_stored {
    enum rfx_type type;
    bool reshaped; /* of a map: it has `shape`, else (1, channels, rows, columns) */
    bool last;     /* of a reshaped map: rows, columns and channels are the last three axes; else
                      rows and columns are the last two, channels one of the axes before them */
    struct rfx_shape shape; /* other axes are 1; rows and columns are those of the whole map */
    int64_t most;           /* of integers: no value is above it, nor below 0; 0: unknown */
};

struct rfx_output {
    int node;
    const char *name;
    struct rfx_rect part; /* what is handed out of the node's map: all of it, as above */
    struct rfx_stored stored;
};

/* Where the elements of a map lie in a tensor, in ONNX order: element (y, x, channel) is number
 * first + y * row_step + x * column_step + channel * channel_step. */
struct rfx_spread {
    int64_t first, row_step, column_step, channel_step;
};

/* What a run has to make: an output's tensor, or each of the maps that a JOIN_MAPS output is made
 * of, which itself is never computed by a plan. */
struct rfx_end {
    int node, output;
    int64_t channels;     /* of the node's map; of what is no map its elements */
    struct rfx_spread at; /* in the output */
};

/* Whose arithmetic convolutions have (layers/conv/conv_backend.h). Bits depend on it, so it belongs
 * to the network, not to a plan. */
enum rfx_conv_choice {
    RFX_CONV_DIRECT,   /* own kernels where the processor has them, else as OPENBLAS */
    RFX_CONV_OPENBLAS, /* matrix products of OpenBLAS */
    RFX_CONV_WINOGRAD, /* fewer products, other roundings, where that helps; else as DIRECT */
    RFX_CONV_COUNT
};

struct rfx_graph {
    struct rfx_memory *mem;
    int n_nodes, n_weights, n_outputs, input; /* input: the INPUT node's index, or -1 */
    struct rfx_node *nodes;
    struct rfx_weight *weights;
    struct rfx_output *outputs;
    int n_ends;
    struct rfx_end *ends;      /* in the order of outputs, set by rfx_graph_finish */
    int *n_consumers;          /* per node, set by rfx_graph_finish; outputs count as consumers */
    enum rfx_conv_choice conv; /* set before rfx_graph_finish; DIRECT at first */
    const char *name;          /* of the model, for messages */
    void *files;               /* kept open for FILE weights; closed by files_free */
    void (*files_free)(void *files);
    size_t load_bytes;  /* of a model file: the most that loading has taken from the system */
    size_t held_bytes;  /* what the graph takes, its owned weights included */
    size_t model_bytes; /* of a model in memory: its own, which others hold */
    int node_capacity, weight_capacity, output_capacity;
    bool halves;         /* the model states half precision; it is computed in float32 */
    int64_t declared[2]; /* rows and columns that the model states, where it was loaded for others;
                          * 0: it was not, or states none */
    int64_t filled[2];   /* of a built-in: rows and columns that images are filled up to and outputs
                          * are made of; 0: images are taken as they are */
    int64_t batch;       /* of images that the model is fixed to, run one by one; 0: none */
    uint64_t param_count; /* as the model states it: set by rfx_graph_finish before it fuses */
    const struct rfx_graph *base; /* the graph of which this one is another form under the same
                                     indices: with groups (group.h), for a part; or NULL */
};

/* Code, libraries and stacks of a process that loads a model; 6.1 MiB were measured. */
#define RFX_LOAD_PROCESS_BYTES ((size_t)13 << 19)

/* An empty graph; `mem` must outlive it. Freed with rfx_graph_free. */
RFX_NODISCARD enum rfx_status rfx_graph_create(struct rfx_memory *mem, const char *name,
                                               struct rfx_graph **out, struct rfx_error *err);

/* Frees graph and owned weights, closes its files; NULL is fine. */
void rfx_graph_free(struct rfx_graph *graph);

/* Appends a copy of `node` (names, `in`, tables included) after checking it and inferring its
 * shape into the copy's `out`; *out_index is its index. Before it come CONVERT nodes for inputs
 * whose element type its op does not take; one that is there already is used again. A quantised
 * tensor (rfx_tensor.quant) is not converted but refused. Zeroed act means none (slope is ignored
 * unless PRELU). Refuses with RFX_STATUS_UNSUPPORTED or MALFORMED and a text "op 'name': why". */
RFX_NODISCARD enum rfx_status rfx_graph_add(struct rfx_graph *graph, const struct rfx_node *node,
                                            int *out_index, struct rfx_error *err);

/* Appends a weight record; OWNED data is copied (weight->data may be NULL: zeros, to be filled
 * through rfx_graph_owned_weight), and so are the data and places of a REPEATED one. */
RFX_NODISCARD enum rfx_status rfx_graph_add_weight(struct rfx_graph *graph,
                                                   const struct rfx_weight *weight, int *out_index,
                                                   struct rfx_error *err);

/* Writable values of an OWNED weight, or those that a REPEATED one repeats. */
float *rfx_graph_owned_weight(struct rfx_graph *graph, int index);

/* Gives the node's output a second name (module name for --split). */
RFX_NODISCARD enum rfx_status rfx_graph_set_alias(struct rfx_graph *graph, int node,
                                                  const char *alias, struct rfx_error *err);

/* Declares the tensor of `node` an output of the network under `name`. */
RFX_NODISCARD enum rfx_status rfx_graph_add_output(struct rfx_graph *graph, int node,
                                                   const char *name, struct rfx_error *err);

/* Whether a map in the order (channels, rows, columns) or, `last`, (rows, columns, channels) has
 * this shape with axes of 1 anywhere in front, rows and columns being axes of their own. */
bool rfx_shape_is_of_map(const struct rfx_shape *shape, const struct rfx_tensor *map, bool last);

/* Declares how an output's map is stored: `shape`, in the order (channels, rows, columns) or,
 * `last`, (rows, columns, channels) with axes of 1 anywhere in front. False, and nothing is
 * changed: the node is no map of several pixels, or its shape in that order is another one. */
bool rfx_graph_reshape_output(struct rfx_graph *graph, int k, const struct rfx_shape *shape,
                              bool last);

/* The shape of what output k hands out: as declared, of a part fewer rows and columns. */
struct rfx_shape rfx_output_shape(const struct rfx_graph *graph, int k);

/* Where the elements of `rect` of a map of c channels lie in an array of that rectangle alone. */
struct rfx_spread rfx_stored_spread(const struct rfx_stored *stored, struct rfx_rect rect,
                                    int64_t c);

/* Which rewrites rfx_graph_finish does. */
struct rfx_fuse_options {
    bool batch_norm; /* AFFINE into the convolution before it */
    bool activation; /* ACTIVATION into what takes one in; x * sigmoid(x) -> SILU */
    bool residual;   /* BINARY add of equal shapes into the CONV that makes its later operand */
    bool attention;  /* MATMUL - PLAIN_SOFTMAX - MATMUL into ATTENTION (not with OpenBLAS) */
    bool heads;      /* tensors behind the last maps into maps, where they are made of pixels one by
                        one (not with OpenBLAS) */
};

/* Fuses (NULL: everything), drops nodes that reach no output, counts consumers, and checks the
 * invariants above. To be called once, last. */
RFX_NODISCARD enum rfx_status rfx_graph_finish(struct rfx_graph *graph,
                                               const struct rfx_fuse_options *fuse,
                                               struct rfx_error *err);

/* Lists the ends anew, from outputs and nodes. */
RFX_NODISCARD enum rfx_status rfx_graph_list_ends(struct rfx_graph *graph, struct rfx_error *err);

/* What is handed out of an end's map: all of it, or of an output that is a map itself its part. */
struct rfx_rect rfx_end_part(const struct rfx_graph *graph, const struct rfx_end *end);

/* Where input k of a JOIN_MAPS lies in its tensor. */
struct rfx_spread rfx_join_spread(const struct rfx_graph *graph, const struct rfx_node *join,
                                  int k);

/* Lets a node want all of its map, and a reduction take all of its input's. */
void rfx_node_want_all(const struct rfx_graph *graph, struct rfx_node *node);

/* Frees the strings and tables that a node of a graph owns (for passes that remove nodes). */
void rfx_node_release(struct rfx_memory *mem, struct rfx_node *node);

/* Index of the node with this name or alias, or -1. O(n). */
int rfx_graph_find(const struct rfx_graph *graph, const char *name);

/* Whether a node's tensor is a packed constant: always there, never computed. */
static inline bool rfx_node_is_constant(const struct rfx_node *node) {
    return node->op == RFX_OP_CONST_MAP || node->op == RFX_OP_CONST_PLAIN;
}

/* Whether a node's map is computed from constants alone, wherever it is read. */
static inline bool rfx_node_is_source(const struct rfx_node *node) {
    return node->op == RFX_OP_REPEAT;
}

/* Whether a node is an output whose maps are made and left where they are: no plan computes it. */
static inline bool rfx_node_is_joined(const struct rfx_node *node) {
    return node->op == RFX_OP_JOIN_MAPS;
}

/* Whether a node is the image: read from its source, never computed. */
static inline bool rfx_node_is_input(const struct rfx_node *node) {
    return node->op == RFX_OP_INPUT;
}

/* How many of the network's ends a node's tensor is. */
int rfx_graph_count_outputs(const struct rfx_graph *graph, int node);

/* Bytes of a node's whole output. */
size_t rfx_node_out_bytes(const struct rfx_node *node);

/* Parameters of one node: its weights, biases and (batch norm) scales. */
uint64_t rfx_node_param_count(const struct rfx_graph *graph, const struct rfx_node *node);

/* Number of parameters (weights and biases; of a batch norm its scale and shift). */
uint64_t rfx_graph_param_count(const struct rfx_graph *graph);
#endif
