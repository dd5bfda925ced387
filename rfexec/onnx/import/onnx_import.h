/* Conversion of ONNX nodes: the context of an import, named values, constants, and functions that
 * several converters share.
 *
 * A value is a node of the graph under construction, or a constant. A constant's numbers stay in
 * the file until a converter reads them. Operators on small constants are evaluated at load
 * (onnx_fold.c). Constants whose elements repeat are stored as patterns (onnx_repeat.h). Other
 * operators on constants are executed as in a run (onnx_const.c).
 *
 * Errors stick: the first error sets ctx->status and the error text. After an error no function
 * declared here does anything; all return node -1, pointer NULL, number 0 or an empty list. So a
 * converter is a plain list of steps. A converter must check ctx->status only before it uses a
 * number from the file as a size or an index, or dereferences a pointer. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_IMPORT_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_IMPORT_H

#include "layers/graph/graph.h"
#include "layers/graph/infer.h"
#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/onnx/file/onnx_model.h"
#include "rfexec/onnx/import/onnx_pixels.h"

#define RFX_ONNX_OPSET_MAX 28

/* Kernels, strides, pads and sizes above this are refused: no real network has them. */
#define RFX_ONNX_MOST_GIVEN ((int64_t)1 << 24)

/* Constants of floats with more elements are computed as in a run instead of being folded. */
#define RFX_ONNX_FOLDED_ELEMS 64

/* Limits on functions and branches: how deep they lie in each other, and the number of their nodes
 * after each call is replaced by the function's nodes. */
#define RFX_ONNX_INLINED_DEPTH 24
#define RFX_ONNX_MOST_INLINED (1 << 18)

/* Where a constant occurs in a graph: its weight, and its CONST_MAP and CONST_PLAIN nodes. -1: the
 * constant has none. */
struct rfx_onnx_const_place {
    int weight, map_node, plain_node;
};

/* A constant tensor. Exactly one of the members raw, ints, floats, reals, repeat and computed_by
 * holds its value. In addition ints or reals may be a copy that was made on demand; the copy is
 * freed when the current node has been converted. Folding creates ints for integers and booleans,
 * reals for doubles, and floats for all other floats, which are rounded to float32 after every
 * operator. */
struct rfx_onnx_const {
    int32_t type;
    struct rfx_shape shape;
    int64_t elems;
    struct rfx_onnx_bytes raw; /* bytes in memory are freed when loading ends */
    const int64_t *ints;
    const float *floats;
    const double *reals;
    bool filled;                          /* all elements are equal, and one of them is stored */
    const struct rfx_onnx_repeat *repeat; /* a pattern (onnx_repeat.h), or NULL */
    int computed_by; /* node of the graph of constants that computes the numbers; -1: none */
    struct rfx_onnx_const_place in_model, in_constants; /* place in the two graphs of an import */
    int late; /* number of the constant among the values of late nodes, plus 1; 0: it is none */
};

/* An operand of a node. node >= 0: computed from the image; constant != NULL: a constant; late > 0:
 * the result of a late node (rfexec/late/late.h), whose value has the number late - 1; none of
 * them: the optional operand is absent. */
struct rfx_onnx_operand {
    int node;
    struct rfx_onnx_const *constant;
    int late;
};

struct rfx_onnx_names;

/* Output 1 of a MaxPool, the indices. A node for them is created only when an operator other than
 * MaxUnpool reads them. */
struct rfx_onnx_indices {
    const char *name; /* name of the output */
    const char *pool; /* name of the MaxPool */
    int in, out;      /* input and output map of the MaxPool */
    int rank;         /* rank of the MaxPool's operand in the file */
    struct rfx_pool_attr attr;
    const struct rfx_onnx_indices *next;
};

struct rfx_onnx_import {
    struct rfx_memory *mem;
    struct rfx_arena *arena;
    struct rfx_graph *graph;
    struct rfx_error *err;
    enum rfx_status status;        /* of the first error, or RFX_OK */
    struct rfx_onnx_names *values; /* tensor name -> operand */
    struct rfx_onnx_names *used;   /* node names in use */
    int64_t opset;
    enum rfx_int8_choice int8;
    bool dequantizes; /* outputs of bytes become float32 */
    int64_t batch; /* N > 1 when the model is fixed to N images: tensors are those of one image */
    const struct rfx_onnx_model *model;
    struct rfx_onnx_files *files;
    const struct rfx_onnx_node *nodes;    /* of the graph, branch or function that is converted */
    size_t n_before;                      /* index in `nodes` of the current node */
    const struct rfx_onnx_body *function; /* the function that contains `nodes`, or NULL */
    const struct rfx_onnx_node *call;     /* the node that calls `function` */
    const char *prefix;                   /* name of `call`, prefix of node names, or NULL */
    int depth;                            /* nesting depth of branches and functions */
    int64_t n_inlined;                    /* nodes of branches and functions so far */
    const struct rfx_onnx_node *node;     /* the current node */
    uint64_t *attrs_read;                 /* bit i: the converter has read attribute i */
    const char *node_name;                /* name of the current node, or of its first output */
    int *plain_of;                        /* per graph node: the PLAIN form of a map, or -1 */
    int *map_of; /* per graph node: the map that a PLAIN tensor was made from, or -1 */
    size_t form_capacity;
    int order; /* node whose pixel order rfx_onnx_channels_last applies; -1: (1, h, w, c) */
    const struct rfx_onnx_indices *indices; /* list of the MaxPools' indices so far */
    int64_t folded_elems;                   /* elements of all constants that folding has made */
    struct rfx_onnx_scratch *scratch;       /* numbers that were made on demand */
    int repeat_names;                  /* counter for temporary names of constants (fold_repeat) */
    struct rfx_onnx_import *constants; /* the import that builds the graph of constants, or NULL */
    bool is_of_constants;              /* this import builds the graph of constants */
    int first;                         /* graph of constants: the node of input 0, or -1 */
    struct rfx_onnx_late *late;        /* late nodes so far (onnx_late.c); NULL: they are refused */
};

/* Converts the current node. Returns the graph node that output 0 is bound to; -1: the converter
 * has bound the outputs itself, or it has failed. */
typedef int rfx_onnx_converter(struct rfx_onnx_import *ctx);

/* How much of its input feature maps an operator needs at a time. */
enum rfx_onnx_way {
    RFX_ONNX_ROWS,     /* a few rows of each map (or whole maps in the cases named in `note`) */
    RFX_ONNX_SUMS,     /* all rows, one after the other: sums, extremes */
    RFX_ONNX_WHOLE,    /* whole tensors */
    RFX_ONNX_CONSTANT, /* nothing: the operator is evaluated when the model is loaded */
    RFX_ONNX_LATE,     /* whole tensors, behind the plan (onnx_late.c) */
};

/* One ONNX operator: `convert` creates graph nodes, `fold` evaluates the operator exactly on small
 * constants; either may be NULL. `way` and `note` are documentation for users. */
struct rfx_onnx_op {
    const char *name;
    rfx_onnx_converter *convert, *fold;
    enum rfx_onnx_way way;
    const char *note;
};

static inline bool rfx_onnx_failed(const struct rfx_onnx_import *ctx) {
    return ctx->status != RFX_OK;
}

/* Records the error "Op 'name' (opset n): why", unless there is one already. Returns -1. */
int rfx_onnx_refuse(struct rfx_onnx_import *ctx, enum rfx_status status, const char *format, ...)
    RFX_PRINTF(3, 4);

/* Records OUT_OF_MEMORY, unless there is an error already. Returns -1. */
int rfx_onnx_out_of_memory(struct rfx_onnx_import *ctx);

/* Returns zeroed memory from the arena; NULL after an error. */
void *rfx_onnx_alloc(struct rfx_onnx_import *ctx, size_t count, size_t size);

/* Return whether the current node's operator has this name, or one name of a NULL-ended list. */
bool rfx_onnx_op_is(const struct rfx_onnx_import *ctx, const char *op);
bool rfx_onnx_op_is_one_of(const struct rfx_onnx_import *ctx, const char *const *ops);

/* Returns the index of `text` among `count` texts, or -1. */
int rfx_onnx_index_of(const char *text, const char *const *texts, int count);

/* --- nodes (onnx_load.c), branches and functions (onnx_inline.c), operators (onnx_ops.c) --- */

/* The first function converts a node of ctx->nodes. The second binds the names of initialisers to
 * constants. */
void rfx_onnx_convert_node(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *node);
void rfx_onnx_add_initialisers(struct rfx_onnx_import *ctx, struct rfx_onnx_tensor *tensors,
                               size_t count);

/* The first function returns whether a node is an If. The second returns whether a node can be
 * converted: it is an If, a call of a function, or an operator of the table. */
bool rfx_onnx_is_branching(const struct rfx_onnx_node *node);
bool rfx_onnx_op_is_known(const struct rfx_onnx_model *model, const struct rfx_onnx_node *node);

/* Sets *image to the first graph input that is not an initialiser, or to NULL when there is none.
 * Returns false when there is no memory. */
bool rfx_onnx_first_image(const struct rfx_onnx_model *model, const struct rfx_onnx_value **image);

/* Returns the function of the model that a node calls, or NULL. */
struct rfx_onnx_function *rfx_onnx_function_of(const struct rfx_onnx_model *model,
                                               const struct rfx_onnx_node *node);

/* Converts the body of the function that the current node calls. */
void rfx_onnx_inline_function(struct rfx_onnx_import *ctx, struct rfx_onnx_function *function);

/* Converts the branch that the condition of the current If selects. UNSUPPORTED: the condition is
 * computed from the image. */
void rfx_onnx_inline_branch(struct rfx_onnx_import *ctx);

/* Returns the table's row of an operator, or NULL. */
const struct rfx_onnx_op *rfx_onnx_op_find(const char *name);

/* Returns whether the table's operator of this name belongs to this domain. The table has operators
 * of ONNX's own domain and of "com.microsoft", and a plugin of TensorRT, whose domain exporters
 * leave empty too. */
bool rfx_onnx_op_is_of(const char *name, const char *domain);

/* Returns whether the operator is of late nodes only: the shape of its result or, of
 * EfficientNMS_TRT, the part of it that counts depends on the values of its operands. */
bool rfx_onnx_op_is_sized_by_values(const char *name);

/* Late nodes (onnx_late.c). _late_begin allows them. _is_late returns whether the current node is
 * one: it reads a late value, or its operator is sized by values that are not constant.
 * _convert_late adds it to the program; an If whose condition is late with both its branches.
 * _late_count returns the number of late nodes so far. */
struct rfx_onnx_late;
void rfx_onnx_late_begin(struct rfx_onnx_import *ctx);
bool rfx_onnx_is_late(const struct rfx_onnx_import *ctx, bool constant);
void rfx_onnx_convert_late(struct rfx_onnx_import *ctx);
size_t rfx_onnx_late_count(const struct rfx_onnx_import *ctx);

/* Called in place of adding the model's outputs to the graph, if there are late nodes: the graph's
 * outputs become the cut tensors, and graph->late gets the program with the model's outputs. */
void rfx_onnx_late_outputs(struct rfx_onnx_import *ctx);

/* Frees what the import has of late nodes. */
void rfx_onnx_late_free(struct rfx_onnx_import *ctx);

/* Makes an operand an output of the graph, with this element type (onnx_load.c). */
void rfx_onnx_add_output(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value,
                         const char *name, int32_t type);

/* Converts the nodes of the branch `name` of the current If, and sets out[] to the values of its
 * outputs, at most n_out of them. Returns their number (onnx_inline.c). */
size_t rfx_onnx_late_branch(struct rfx_onnx_import *ctx, const char *name,
                            struct rfx_onnx_operand *out, int32_t *types, size_t n_out);

/* Fixed batches (onnx_batch.c). Called before a computed node is converted when the model is fixed
 * to a batch of N images. Changes the node's sizes and constants from N images to one image.
 * UNSUPPORTED: the node mixes images. */
void rfx_onnx_batch_node(struct rfx_onnx_import *ctx);

/* --- operands and results (onnx_context.c) --- */

static inline struct rfx_onnx_operand rfx_onnx_of(int node) {
    return (struct rfx_onnx_operand){node, NULL, 0};
}
static inline struct rfx_onnx_operand rfx_onnx_of_const(struct rfx_onnx_const *c) {
    return (struct rfx_onnx_operand){-1, c, 0};
}
static inline bool rfx_onnx_is_there(struct rfx_onnx_operand x) {
    return x.node >= 0 || x.constant != NULL || x.late > 0;
}

/* Returns operand k, or {-1, NULL} when the node has no such input. In the graph of constants,
 * input 0 and computed constants are returned as nodes; only rfx_onnx_in_const returns them as
 * constants. */
struct rfx_onnx_operand rfx_onnx_in(const struct rfx_onnx_import *ctx, size_t k);

/* Returns operand k. MALFORMED: the operand is absent. */
struct rfx_onnx_operand rfx_onnx_need(struct rfx_onnx_import *ctx, size_t k);

/* Returns operand 0. UNSUPPORTED: it is a constant or absent, not computed from the image. */
struct rfx_onnx_operand rfx_onnx_need_computed(struct rfx_onnx_import *ctx);

/* Returns the operand to which the name of input k is bound. */
struct rfx_onnx_operand rfx_onnx_in_as_named(const struct rfx_onnx_import *ctx, size_t k);

/* The first function returns whether the current node has input k. The second returns whether its
 * output k has a name, so that another node may read it. */
bool rfx_onnx_has(const struct rfx_onnx_import *ctx, size_t k);
bool rfx_onnx_gives(const struct rfx_onnx_import *ctx, size_t k);

/* Return the tensor of a node and the shape of an operand. Node -1 gives a tensor of one element.
 */
const struct rfx_tensor *rfx_onnx_tensor_of(const struct rfx_onnx_import *ctx, int node);

/* Returns whether a node makes floats of a tensor of one-byte integers: a DequantizeLinear. */
bool rfx_onnx_is_of_bytes(const struct rfx_onnx_import *ctx, int node);
const struct rfx_shape *rfx_onnx_shape(const struct rfx_onnx_import *ctx,
                                       struct rfx_onnx_operand value);
bool rfx_onnx_is_map(const struct rfx_onnx_import *ctx, int node); /* its layout is NHWC */
bool rfx_onnx_same_shape(const struct rfx_shape *a, const struct rfx_shape *b);

/* Returns the shape as rank 4, by removing or adding leading axes of size 1. */
struct rfx_shape rfx_onnx_rank_4(const struct rfx_shape *shape);

/* Bind output k of the current node and return -1. rfx_onnx_set binds it to a value that is first
 * kept in the range of the output's element type. rfx_onnx_bind_as binds it to a value of type
 * `type` without a change. rfx_onnx_set_const binds it to a constant. */
int rfx_onnx_set(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_operand value);
int rfx_onnx_bind_as(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_operand value,
                     int32_t type);
int rfx_onnx_set_const(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_const *c);

/* Adds `node` with inputs in[0..n_in) to the graph and returns its index. Its name is that of the
 * current node plus `suffix`, made unique. */
int rfx_onnx_emit(struct rfx_onnx_import *ctx, struct rfx_node *node, const char *suffix,
                  const int *in, int n_in);
int rfx_onnx_emit1(struct rfx_onnx_import *ctx, struct rfx_node *node, const char *suffix, int in);
int rfx_onnx_emit2(struct rfx_onnx_import *ctx, struct rfx_node *node, const char *suffix, int a,
                   int b);

/* Return a node for an operand, which is created if needed. rfx_onnx_map returns an NHWC map
 * (UNSUPPORTED: the rank is not 4, or there are several images). rfx_onnx_plain returns a PLAIN
 * tensor. rfx_onnx_any keeps the operand's layout; a constant becomes PLAIN. */
int rfx_onnx_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value);
int rfx_onnx_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value);
int rfx_onnx_any(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value);

/* Returns the map that a PLAIN (1, c, h, w) tensor equals, if reshapes and transposes lead back to
 * one; else the node itself. */
int rfx_onnx_map_itself(const struct rfx_onnx_import *ctx, int node);

/* Return the map from which a PLAIN tensor was made by moving elements only (onnx_pixels.h), or -1.
 * All set ctx->order. _map_behind: the tensor is (1, h, w, c), with the map's bytes.
 * _tokens_behind: the tensor may have any shape and order of pixels, but all channels of a pixel
 * are in its last axis. _elements_behind: tokens as before, or the map in its own order with fewer
 * or more axes of size 1, such as (h, w) or (c, h, w). */
int rfx_onnx_map_behind(struct rfx_onnx_import *ctx, int node);
int rfx_onnx_tokens_behind(struct rfx_onnx_import *ctx, int node);
int rfx_onnx_elements_behind(struct rfx_onnx_import *ctx, int node);

/* If axis `axis` of tensor `in` is the channel axis of a map, returns the map; else -1. *last is
 * set to true when `in` holds tokens (all channels of a pixel in the last axis), and to false when
 * it is a map with its channels in axis 1. */
int rfx_onnx_map_of_channels(struct rfx_onnx_import *ctx, int in, int axis, bool *last);

/* Returns whether the tokens of two nodes are in the same order. */
bool rfx_onnx_same_order(const struct rfx_onnx_import *ctx, int a, int b);

/* Returns the map as a tensor in the order and shape of ctx->order: the tensor for which one of the
 * functions _map_behind, _tokens_behind, _elements_behind was called last. */
int rfx_onnx_channels_last(struct rfx_onnx_import *ctx, int map);

/* Returns rfx_onnx_channels_last(ctx, map) if `last` is true, else the map itself. */
int rfx_onnx_ordered(struct rfx_onnx_import *ctx, int map, bool last);

/* Returns a map of the channels that `p` describes, if it is a tensor (1, channels, h, w) of some
 * channels of a map; else -1. */
int rfx_onnx_channels(struct rfx_onnx_import *ctx, const struct rfx_pixels *p);

/* Creates the tensor that `p` describes, and returns its node (onnx_import_matmul.c). */
int rfx_onnx_emit_pixels(struct rfx_onnx_import *ctx, const struct rfx_pixels *p);

/* Returns the node of operand 0 for an operator that works element by element. If operand 0 is a
 * reordered map, returns the map and sets *last to true. The caller passes its result and *last to
 * rfx_onnx_ordered. */
int rfx_onnx_elements(struct rfx_onnx_import *ctx, bool *last);

/* Returns the map to compute for an operator that works element by element on operand `x`. If x is
 * a tensor that holds all or some channels of a map in another order, such as windows or the heads
 * of attention, returns a map of these channels and sets *order; else returns the node of x and
 * sets order->map to -1. The caller passes its result and *order to rfx_onnx_move_back, which gives
 * the result the order and shape of x. */
int rfx_onnx_moved_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                       struct rfx_pixels *order);
int rfx_onnx_move_back(struct rfx_onnx_import *ctx, int made, const struct rfx_pixels *order);

/* Return a PLAIN tensor with the same bytes and another shape. rfx_onnx_plain_as also accepts a
 * node of another layout, which it first converts to PLAIN. */
int rfx_onnx_reshape(struct rfx_onnx_import *ctx, int plain, const struct rfx_shape *shape);
int rfx_onnx_plain_as(struct rfx_onnx_import *ctx, int node, const struct rfx_shape *shape);

/* Returns the tensor of shape `shape` from which `node` was made by reshapes alone, as a map if it
 * was one; -1: there is none. */
int rfx_onnx_shaped_before(const struct rfx_onnx_import *ctx, int node,
                           const struct rfx_shape *shape);

/* Add an ACTIVATION of `in` and return its node. rfx_onnx_apply is for kinds without numbers alpha
 * and beta. */
int rfx_onnx_act(struct rfx_onnx_import *ctx, const char *suffix, int in, enum rfx_act_kind kind,
                 float alpha, float beta);
int rfx_onnx_apply(struct rfx_onnx_import *ctx, const char *suffix, int in, enum rfx_act_kind kind);

/* Returns the node of in * scale + shift, for two numbers and a tensor of either layout. */
int rfx_onnx_scale_shift(struct rfx_onnx_import *ctx, const char *suffix, int in, float scale,
                         float shift);

/* Return the channels map[0..count) of a map, and the positions map[0..count) along an axis of a
 * PLAIN tensor. The list `map` must be in the arena. With map NULL (no memory) they do nothing. */
int rfx_onnx_select(struct rfx_onnx_import *ctx, const char *suffix, int in, int64_t *map,
                    int64_t count);
int rfx_onnx_gather_along(struct rfx_onnx_import *ctx, const char *suffix, int in, int axis,
                          int64_t *map, int64_t count);

/* rfx_onnx_axis returns `axis` converted to the range [0, rank). MALFORMED: it is outside of
 * [-rank, rank). rfx_onnx_axis_attr does the same for the value of the attribute "axis". Both
 * return 0 after an error. */
int rfx_onnx_axis(struct rfx_onnx_import *ctx, int64_t axis, int rank);
int rfx_onnx_axis_attr(struct rfx_onnx_import *ctx, int64_t otherwise, int rank);

/* --- names (onnx_context.c): a growing table from text to an operand, in the arena --- */

/* Creates a table. Searches continue in the table `outer` (may be NULL). The names must outlive the
 * table. */
struct rfx_onnx_names *rfx_onnx_names_create(struct rfx_arena *arena,
                                             const struct rfx_onnx_names *outer);
struct rfx_onnx_operand *rfx_onnx_names_find(const struct rfx_onnx_names *names, const char *name);
bool rfx_onnx_names_put(struct rfx_onnx_names *names, const char *name,
                        struct rfx_onnx_operand value); /* false: no memory */

/* Returns the element type of the tensor with this name; FLOAT when none was set. */
int32_t rfx_onnx_names_type(const struct rfx_onnx_names *names, const char *name);
void rfx_onnx_names_set_type(struct rfx_onnx_names *names, const char *name, int32_t type);

/* --- attributes (onnx_attributes.c) --- */

/* Called when a node has been converted. Fails with UNSUPPORTED, naming attribute and value, when
 * the converter did not read an attribute that may not be ignored (see attrs_read). */
void rfx_onnx_attrs_are_read(struct rfx_onnx_import *ctx);

/* Returns an attribute of any kind, or NULL. The functions below return the attribute's value, or
 * `otherwise` when the node has no such attribute of their kind. An attribute of another kind
 * counts as unread, and so does a flag other than 0 and 1. */
const struct rfx_onnx_attr *rfx_onnx_attr_find(const struct rfx_onnx_import *ctx, const char *name);
int64_t rfx_onnx_attr_int(const struct rfx_onnx_import *ctx, const char *name, int64_t otherwise);
bool rfx_onnx_attr_flag(const struct rfx_onnx_import *ctx, const char *name, bool otherwise);
float rfx_onnx_attr_float(const struct rfx_onnx_import *ctx, const char *name, float otherwise);
const char *rfx_onnx_attr_string(const struct rfx_onnx_import *ctx, const char *name,
                                 const char *otherwise);

/* Returns the index of the attribute's text among `count` texts. UNSUPPORTED, and 0 is returned:
 * the text is none of them. */
int rfx_onnx_attr_choice(struct rfx_onnx_import *ctx, const char *name, const char *otherwise,
                         const char *const *texts, int count);

/* Copies the attribute's `count` integers to `out`. Leaves `out` unchanged when the attribute is
 * absent. UNSUPPORTED: the attribute has another number of integers. */
void rfx_onnx_attr_ints(struct rfx_onnx_import *ctx, const char *name, size_t count, int64_t *out);

/* Sets perm[rank] to the attribute "perm"; by default to the reverse order. MALFORMED: the
 * attribute is not a permutation. */
void rfx_onnx_perm(struct rfx_onnx_import *ctx, int rank, int *perm);

/* Returns the attribute "p", by default 2. Before opset 2 it is a float (onnx_import_reduce.c). */
int64_t rfx_onnx_power(struct rfx_onnx_import *ctx);

/* Reads the integers of the attribute `name` or, without it, of the constant input k. Returns false
 * and sets *count to 0 when the node has neither. */
bool rfx_onnx_list_ints(struct rfx_onnx_import *ctx, const char *name, size_t k,
                        const int64_t **out, int64_t *count);

/* --- constants (onnx_const.c) --- */

/* Returns a new constant without numbers. */
struct rfx_onnx_const *rfx_onnx_const_bare(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, int64_t elems);

/* Returns the number of elements that all constants computed at load may have together: at 8 bytes
 * each they take a quarter of the machine's memory. A memory budget for loading is enforced by the
 * allocator, not here. */
int64_t rfx_onnx_most_stored(void);

/* Records UNSUPPORTED for a constant of `elems` elements, which are too many. Returns -1. */
int rfx_onnx_refuse_size(struct rfx_onnx_import *ctx, int64_t elems);

/* Return a new constant with memory for its numbers, or, if `filled`, for the one number of all its
 * elements. rfx_onnx_const_number returns a constant of one element. UNSUPPORTED: the constant is
 * too large. */
struct rfx_onnx_const *rfx_onnx_const_new(struct rfx_onnx_import *ctx, int32_t type,
                                          const struct rfx_shape *shape);
struct rfx_onnx_const *rfx_onnx_const_new_filled(struct rfx_onnx_import *ctx, int32_t type,
                                                 const struct rfx_shape *shape, bool filled);
struct rfx_onnx_const *rfx_onnx_const_number(struct rfx_onnx_import *ctx, double value);

/* Return the numbers of a new constant for writing. */
int64_t *rfx_onnx_const_ints_rw(struct rfx_onnx_const *constant);
double *rfx_onnx_const_reals_rw(struct rfx_onnx_const *constant);

/* Set element i of a new constant. rfx_onnx_const_put sets it to `value`, rounded to the constant's
 * type or saturated to int64 (NaN becomes 0). rfx_onnx_copy_elem sets it to element `at` of `reals`
 * or, if that is NULL, of `ints`. rfx_onnx_to_int returns the saturated value. */
void rfx_onnx_const_put(struct rfx_onnx_const *out, int64_t i, double value);
void rfx_onnx_copy_elem(struct rfx_onnx_const *out, int64_t i, const double *reals,
                        const int64_t *ints, int64_t at);
int64_t rfx_onnx_to_int(double value);

/* rfx_onnx_const_settle is called when a node has been converted. It frees the numbers that were
 * made on demand. Numbers of constants made by folding are kept, in the smallest type that can hold
 * them. rfx_onnx_const_forget frees all numbers in ctx->scratch. */
void rfx_onnx_const_settle(struct rfx_onnx_import *ctx);
void rfx_onnx_const_forget(struct rfx_onnx_import *ctx);

/* Return the number of elements that a constant stores, and the stored element that is element i of
 * its shape. */
static inline int64_t rfx_onnx_const_stored(const struct rfx_onnx_const *c) {
    return c->filled ? 1 : c->elems;
}
static inline int64_t rfx_onnx_const_at(const struct rfx_onnx_const *c, int64_t i) {
    return c->filled ? 0 : i;
}

/* Refuses a constant with integers that float32 cannot represent exactly, because the graph of
 * constants computes with float32. Does nothing in the model's graph. */
void rfx_onnx_const_check_exact(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);

/* Returns a filled constant if all elements of the constant in the file are equal, else the
 * constant itself. The elements are read but not kept in memory. */
struct rfx_onnx_const *rfx_onnx_const_as_filled(struct rfx_onnx_import *ctx,
                                                struct rfx_onnx_const *constant);

/* rfx_onnx_const_of returns the constant of a tensor in the file. rfx_onnx_const_view returns a
 * constant with the same elements and another shape. */
struct rfx_onnx_const *rfx_onnx_const_of(struct rfx_onnx_import *ctx,
                                         const struct rfx_onnx_tensor *tensor);
struct rfx_onnx_const *rfx_onnx_const_view(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_const *constant,
                                           const struct rfx_shape *shape);

/* Return the numbers of a constant. The functions named _ints return integers (MALFORMED: the
 * constant has floats); those named _reals convert any type to doubles. The functions named _stored
 * return only the stored elements, the others all elements of the shape. The functions named
 * _numbers set *reals for floats and *ints for all other types. */
const int64_t *rfx_onnx_const_stored_ints(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
const double *rfx_onnx_const_stored_reals(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
const int64_t *rfx_onnx_const_ints(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
const double *rfx_onnx_const_reals(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
void rfx_onnx_stored_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                             const double **reals, const int64_t **ints);
void rfx_onnx_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, const double **reals,
                      const int64_t **ints);

/* Add a weight to the graph and return its index. rfx_onnx_const_weight adds a constant, and leaves
 * its values in the file if possible. rfx_onnx_const_weight_transposed adds a constant matrix
 * [k][m] as [m][k]. rfx_onnx_own_weight adds a copy of `count` values (an OWNED weight). */
int rfx_onnx_const_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant);
int rfx_onnx_const_weight_transposed(struct rfx_onnx_import *ctx, struct rfx_onnx_const *constant);
int rfx_onnx_own_weight(struct rfx_onnx_import *ctx, const float *values, int64_t count);

/* Return the constant of input k, its integers (their number is in *count), or its only number.
 * UNSUPPORTED: the input is computed from the image. MALFORMED: the input is missing. */
struct rfx_onnx_const *rfx_onnx_in_const(struct rfx_onnx_import *ctx, size_t k);
const int64_t *rfx_onnx_in_ints(struct rfx_onnx_import *ctx, size_t k, int64_t *count);
double rfx_onnx_in_number(struct rfx_onnx_import *ctx, size_t k);

/* Returns rfx_onnx_in_number(ctx, k) if the node has input k, else `otherwise`. */
double rfx_onnx_in_number_or(struct rfx_onnx_import *ctx, size_t k, double otherwise);

/* Returns the place of a constant in the graph that this import builds. */
static inline struct rfx_onnx_const_place *rfx_onnx_const_place(const struct rfx_onnx_import *ctx,
                                                                struct rfx_onnx_const *c) {
    return ctx->is_of_constants ? &c->in_constants : &c->in_model;
}

/* --- constants that operators compute (onnx_computed.c) --- */

/* Converts the current node, whose operands are all constants, to nodes of the graph of constants,
 * and binds its outputs to constants that those nodes compute. Nothing is computed yet. Returns
 * -1. */
int rfx_onnx_compute(struct rfx_onnx_import *ctx, rfx_onnx_converter *convert);

/* If the computed constant `c` is larger than all constants from which it is computed, returns a
 * node of the model's graph that computes it in each run, as a map (`map`) or a PLAIN tensor.
 * Otherwise computes its numbers now and returns -1. */
int rfx_onnx_computed_node(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, bool map);

/* Compute a constant's numbers. rfx_onnx_computed_numbers stores them in memory of the import,
 * rfx_onnx_computed_weight in a weight of the graph. */
void rfx_onnx_computed_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
void rfx_onnx_computed_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);

/* Returns the computed constant `c` with another shape. */
struct rfx_onnx_const *rfx_onnx_computed_view(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* Frees the graph of constants. */
void rfx_onnx_computed_free(struct rfx_onnx_import *ctx);

/* --- element types (onnx_import_logic.c) --- */
bool rfx_onnx_type_is_real(int32_t type);

/* Return the element type of operand k and of output k of the current node. */
int32_t rfx_onnx_in_type(const struct rfx_onnx_import *ctx, size_t k);
int32_t rfx_onnx_result_type(const struct rfx_onnx_import *ctx, size_t k);

/* Returns a result of the current node, wrapped around to the range of its type if needed.
 * UNSUPPORTED: the import does not know the operator's effect on integers of this type. */
int rfx_onnx_keep_type(struct rfx_onnx_import *ctx, int32_t type, int node);

/* Returns the type in which an output of this ONNX type is stored. */
enum rfx_type rfx_onnx_stored_type(int32_t type);

/* Returns the largest value (at least 1) of a map of channel indices, or 0 when the node is not
 * such a map. */
int64_t rfx_onnx_most_index(const struct rfx_onnx_import *ctx, int node);

/* Returns whether the operator of a node guarantees that its elements are whole numbers. */
bool rfx_onnx_is_whole(const struct rfx_onnx_import *ctx, int node);

/* Returns the node of numbers rounded towards zero, as in a cast to integers. */
int rfx_onnx_towards_zero(struct rfx_onnx_import *ctx, const char *suffix, int in);

/* --- what converters share --- */

/* Returns the node of `a kind b` for two operands, with broadcasting. At least one operand is
 * computed (onnx_import_elementwise.c). */
int rfx_onnx_combine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                     struct rfx_onnx_operand a, struct rfx_onnx_operand b);

/* Returns the node of `a kind b` for two nodes of the same layout, with broadcasting. */
int rfx_onnx_binary_of(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                       int a, int b);

/* Returns the node of `a` where the condition holds and `b` elsewhere (onnx_import_logic.c). */
int rfx_onnx_choose(struct rfx_onnx_import *ctx, struct rfx_onnx_operand condition,
                    struct rfx_onnx_operand a, struct rfx_onnx_operand b);

/* Indices of MaxPools (onnx_import_conv.c). rfx_onnx_indices_of returns the recorded indices with
 * this name, or NULL. rfx_onnx_make_indices creates a map of the indices and binds their name to
 * it, unless the name is bound already. */
const struct rfx_onnx_indices *rfx_onnx_indices_of(const struct rfx_onnx_import *ctx,
                                                   const char *name);
void rfx_onnx_make_indices(struct rfx_onnx_import *ctx, const struct rfx_onnx_indices *indices);

/* Returns the region that the current Slice takes from a tensor (onnx_import_shape.c). */
struct rfx_slice_attr rfx_onnx_read_cut(struct rfx_onnx_import *ctx, const struct rfx_shape *in);

/* Returns the size of output k of the current Split along the split axis. `extent`: size of the
 * axis; `at`: where output k begins. 0: the Split has no such output. */
int64_t rfx_onnx_split_size(const int64_t *sizes, size_t n, int64_t extent, size_t k, int64_t at);

/* Returns the transposed operand, whose axis i is axis perm[i] of x (onnx_import_shape.c). */
struct rfx_onnx_operand rfx_onnx_permute(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                         const int *perm);

/* Matrix products (onnx_import_matmul.c). rfx_onnx_by_matrix returns the node of x [..., k] times a
 * constant matrix [k, m] ([m, k] if `turned`), of shape [..., m]. If x holds the tokens of a map
 * (rfx_onnx_tokens_behind), the node is a 1x1 convolution of the map. rfx_shape_product_of
 * multiplies two tensors of rank 2 or more. */
int rfx_onnx_by_matrix(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                       struct rfx_onnx_const *b, bool turned);
int rfx_shape_product_of(struct rfx_onnx_import *ctx, const char *suffix, int a, int b);

/* Returns the node of the sum over the axes marked in axes[], which the result no longer has
 * (onnx_import_reduce.c). */
int rfx_onnx_sum_over(struct rfx_onnx_import *ctx, const char *suffix, const bool *axes, int in);

/* Returns the node of a reduction over all axes, which stay as axes of 1 (onnx_import_reduce.c). */
int rfx_onnx_reduce_all(struct rfx_onnx_import *ctx, const char *suffix, enum rfx_reduce_kind kind,
                        int in);

/* Softmax and LogSoftmax of a node, by the attribute "axis". `old`: as before opset 13, all axes
 * from it on together are one vector. steps: of bytes, or zeros (onnx_import_norm.c). */
int rfx_onnx_softmax_of(struct rfx_onnx_import *ctx, const char *suffix, int in, bool old,
                        struct rfx_softmax_steps steps);

/* Return the number k of the current Trilu, and the axis of the current CumSum for a tensor of this
 * rank (onnx_import_elementwise.c). */
int64_t rfx_onnx_diagonal(struct rfx_onnx_import *ctx);
int rfx_onnx_sum_axis(struct rfx_onnx_import *ctx, int rank);

/* Broadcasting (onnx_fold.c). The first function sets *out to the broadcast shape of two shapes, or
 * returns false when they do not match. The second returns the index into a tensor of shape `in`
 * for element `flat` of the broadcast shape `out`. */
bool rfx_onnx_broadcast(const struct rfx_shape *a, const struct rfx_shape *b,
                        struct rfx_shape *out);
int64_t rfx_onnx_broadcast_index(const struct rfx_shape *in, const struct rfx_shape *out,
                                 int64_t flat);

/* Reads the window, the weights (input `weight`) and the channels of a convolution of a map,
 * without bias, into *a. Returns the node of operand 0 as a map (onnx_import_conv.c). */
int rfx_onnx_conv_window(struct rfx_onnx_import *ctx, size_t weight, struct rfx_conv_attr *a);

/* QLinearAveragePool of a map, by the window that `node` has (onnx_import_quantised.c). */
int rfx_onnx_quantised_average(struct rfx_onnx_import *ctx, struct rfx_node *node);

/* QuantizeLinear of operand 0 with any scales, before its elements are limited to their type: the
 * node of round(x / scale) + zero point (onnx_import_elementwise.c). */
int rfx_onnx_whole_steps(struct rfx_onnx_import *ctx);

/* DequantizeLinear of a tensor of bytes with one scale (onnx_import_quantised.c). */
int rfx_onnx_dequantise_bytes(struct rfx_onnx_import *ctx);

/* If the contract of 8-bit networks is RFX_INT8_SPEC and the current node is an operator of bytes,
 * converts it as DequantizeLinear, the float32 operator, QuantizeLinear, and returns true
 * (onnx_int8_spec.c). */
bool rfx_onnx_int8_spec(struct rfx_onnx_import *ctx);

/* Returns the name of a new tensor, the model's output `name` as float32 numbers (q - zero point) *
 * scale. Returns `name` if its scale is not known: the node that makes it is no operator of bytes
 * with a constant scale, behind operators that only move or select elements. */
const char *rfx_onnx_dequantised(struct rfx_onnx_import *ctx, const char *name);

/* Joins DequantizeLinear, operator, QuantizeLinear to an operator on bytes (onnx_qdq.c). _find
 * marks such groups in the model's nodes; with RFX_INT8_SPEC there are none. _is_later returns
 * whether a node is converted only with the QuantizeLinear behind it. _convert converts a
 * QuantizeLinear, with the operators that it ends. */
struct rfx_onnx_joins;
struct rfx_onnx_joins *rfx_onnx_joins_find(struct rfx_onnx_import *ctx);
bool rfx_onnx_joins_is_later(const struct rfx_onnx_joins *joins, size_t node);
void rfx_onnx_joins_convert(struct rfx_onnx_import *ctx, const struct rfx_onnx_joins *joins,
                            size_t node);

/* --- converters, in the order of their files --- */
rfx_onnx_converter rfx_onnx_conv, rfx_onnx_fused_conv, rfx_onnx_conv_transpose, rfx_onnx_col2im,
    rfx_onnx_pool, rfx_onnx_global_pool, rfx_onnx_max_unpool;
rfx_onnx_converter rfx_onnx_batch_norm, rfx_onnx_lrn, rfx_onnx_layer_norm, rfx_onnx_rms_norm,
    rfx_onnx_lp_norm, rfx_onnx_instance_norm, rfx_onnx_group_norm, rfx_onnx_mean_variance,
    rfx_onnx_softmax;
rfx_onnx_converter rfx_onnx_gemm, rfx_onnx_matmul, rfx_onnx_attention, rfx_onnx_einsum;
rfx_onnx_converter rfx_onnx_reduce, rfx_onnx_reduce_log, rfx_onnx_arg, rfx_onnx_global_lp_pool,
    rfx_onnx_hardmax;
rfx_onnx_converter rfx_onnx_activation, rfx_onnx_selu, rfx_onnx_shrink, rfx_onnx_clip,
    rfx_onnx_prelu, rfx_onnx_swish, rfx_onnx_gelu, rfx_onnx_mish, rfx_onnx_binary,
    rfx_onnx_variadic, rfx_onnx_identity, rfx_onnx_trilu, rfx_onnx_cum_sum, rfx_onnx_dequantise;
rfx_onnx_converter rfx_onnx_quantise, rfx_onnx_quantised_conv, rfx_onnx_quantised_gemm,
    rfx_onnx_quantised_matmul, rfx_onnx_quantised_add, rfx_onnx_quantised_mul,
    rfx_onnx_quantised_act, rfx_onnx_quantised_concat, rfx_onnx_quantised_mean,
    rfx_onnx_quantised_softmax, rfx_onnx_conv_integer, rfx_onnx_matmul_integer,
    rfx_onnx_dynamic_quantise;
rfx_onnx_converter rfx_onnx_not, rfx_onnx_is_nan, rfx_onnx_is_inf, rfx_onnx_where, rfx_onnx_mod,
    rfx_onnx_div, rfx_onnx_cast, rfx_onnx_cast_like, rfx_onnx_dropout;
rfx_onnx_converter rfx_onnx_concat, rfx_onnx_flatten, rfx_onnx_reshape_op, rfx_onnx_squeeze,
    rfx_onnx_unsqueeze, rfx_onnx_transpose, rfx_onnx_expand, rfx_onnx_depth, rfx_onnx_slice,
    rfx_onnx_split, rfx_onnx_gather, rfx_onnx_pad, rfx_onnx_center_crop_pad;
rfx_onnx_converter rfx_onnx_tile, rfx_onnx_top_k, rfx_onnx_gather_elements, rfx_onnx_gather_nd,
    rfx_onnx_gather_computed, rfx_onnx_scatter_elements, rfx_onnx_scatter_nd, rfx_onnx_one_hot;
rfx_onnx_converter rfx_onnx_resize, rfx_onnx_upsample, rfx_onnx_grid_sample, rfx_onnx_affine_grid;

/* Evaluation on constants. */
rfx_onnx_converter rfx_onnx_fold_unary, rfx_onnx_fold_binary, rfx_onnx_fold_variadic,
    rfx_onnx_fold_clip, rfx_onnx_fold_cast, rfx_onnx_fold_shape, rfx_onnx_fold_constant,
    rfx_onnx_fold_constant_of_shape, rfx_onnx_fold_range, rfx_onnx_fold_where,
    rfx_onnx_fold_scatter_nd, rfx_onnx_fold_gather, rfx_onnx_fold_concat, rfx_onnx_fold_expand,
    rfx_onnx_fold_transpose, rfx_onnx_fold_reduce, rfx_onnx_fold_trilu, rfx_onnx_fold_cum_sum,
    rfx_onnx_fold_non_zero, rfx_onnx_fold_slice, rfx_onnx_fold_affine_grid,
    rfx_onnx_fold_dequantise;
#endif
