/* What the conversion of ONNX nodes works with: the context, named values, constants, and helpers.
 *
 * A value is a node of the graph being built, or a constant. Constants stay in the file until
 * somebody asks for their numbers; the ones that are small are folded (onnx_fold.c). */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_IMPORT_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_IMPORT_H

#include "layers/graph/graph.h"
#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/onnx/file/onnx_model.h"
#include "rfexec/onnx/pixels/onnx_pixels.h"

/* Where a constant is in a graph: its weight, and the CONST_MAP and CONST_PLAIN nodes made of it.
 * -1: not there. */
struct rfx_onnx_const_place {
    int weight, map_node, plain_node;
};

#define RFX_ONNX_OPSET_MAX 28

/* A constant tensor. Exactly one of raw, ints, floats, reals holds it; ints and reals are made of
 * the others on demand and last until the node that asked for them is converted. What folding makes
 * has ints (integers and booleans), reals (doubles) or floats (all other floats: they are rounded
 * to float32 after every operator). A filled one holds a single element, which all are like. One
 * that operators compute holds nothing until somebody asks for its numbers (onnx_computed.c); then
 * it has floats. */
struct rfx_onnx_const {
    int32_t type;
    struct rfx_shape shape;
    int64_t elems;
    struct rfx_onnx_bytes raw; /* what is in memory is gone when loading ends */
    const int64_t *ints;
    const float *floats;
    const double *reals;
    bool filled;
    const struct rfx_onnx_repeat *repeat; /* NULL: the above holds it (fold/onnx_repeat.h) */
    int computed_by; /* node of the graph of constants; -1: the numbers are there */
    struct rfx_onnx_const_place in_model, in_constants; /* in the two graphs of an import */
};

/* node >= 0: computed; constant != NULL: constant; neither: left out. */
struct rfx_onnx_operand {
    int node;
    struct rfx_onnx_const *constant;
};

struct rfx_onnx_names;

/* What a MaxPool's output of indices is known by: they are worked out where a MaxUnpool asks. */
struct rfx_onnx_indices {
    const char *name; /* of the output */
    const char *pool; /* the node's */
    int in, out;      /* the maps before and after it */
    int rank;         /* of the tensors that they are in the file */
    struct rfx_pool_attr attr;
    const struct rfx_onnx_indices *next;
};

struct rfx_onnx_import {
    struct rfx_memory *mem;
    struct rfx_arena *arena;
    struct rfx_graph *graph;
    struct rfx_onnx_names *values; /* tensor name -> operand */
    struct rfx_onnx_names *used;   /* node names that are taken */
    int64_t opset;
    int64_t batch; /* N > 1 that the model is fixed to: its tensors are those of one image */
    const struct rfx_onnx_model *model;
    struct rfx_onnx_files *files;
    const struct rfx_onnx_node
        *nodes;      /* of the graph, branch or function that is being converted */
    size_t n_before; /* of them that come before the current one */
    const struct rfx_onnx_body *function; /* that the nodes are in, or NULL */
    const struct rfx_onnx_node *call;     /* of it */
    const char *prefix;                   /* of node names in it: its call's */
    int depth;                            /* of bodies within bodies */
    int64_t n_inlined;                    /* nodes of bodies so far */
    const struct rfx_onnx_node *node;     /* being converted */
    uint64_t *attrs_read;  /* bit i: its conversion has asked for attribute i (onnx_attributes.c) */
    const char *node_name; /* its name, or its first output's */
    struct rfx_error *err;
    int *plain_of; /* per graph node: its PLAIN form or -1; and the map it was made from */
    int *map_of;
    size_t form_capacity;
    int order;                              /* rfx_onnx_channels_last: as this node's, or -1 */
    const struct rfx_onnx_indices *indices; /* of the MaxPools so far */
    int64_t folded_elems;                   /* of all constants that folding has made */
    struct rfx_onnx_scratch *scratch;       /* numbers made on demand */
    int repeat_names;                       /* of operands that stand for others (onnx_repeat.h) */
    struct rfx_onnx_import *constants; /* the conversion to the graph of constants; NULL: no such */
    bool is_of_constants;              /* this is that conversion */
    int first;                         /* of constants: the node that input 0 is, or -1 */
    bool out_of_memory;    /* why rfx_onnx_const_new gave nothing: memory, not the limit */
    int64_t refused_elems; /* of what it did not give; INT64_MAX: they cannot be counted */
};

typedef enum rfx_status (*rfx_onnx_convert)(struct rfx_onnx_import *ctx);

/* What an operator needs of feature maps to be computed. */
enum rfx_onnx_way {
    RFX_ONNX_ROWS,  /* of each map a few rows at a time (or whole, where the row's note says so) */
    RFX_ONNX_SUMS,  /* all rows, but one after the other: sums, extremes */
    RFX_ONNX_WHOLE, /* whole tensors */
    RFX_ONNX_CONSTANT, /* nothing: it is evaluated when the model is loaded */
};

/* One ONNX operator: its conversion to graph nodes and its exact evaluation on small constants
 * (either may be NULL: other constants are computed by the nodes), and what users are told of it.
 */
struct rfx_onnx_op {
    const char *name;
    rfx_onnx_convert convert, fold;
    enum rfx_onnx_way way;
    const char *note;
};

/* Converts node i of ctx->nodes (onnx_load.c), and binds initialisers to constants. */
RFX_NODISCARD enum rfx_status rfx_onnx_convert_node(struct rfx_onnx_import *ctx,
                                                    const struct rfx_onnx_node *node);
RFX_NODISCARD enum rfx_status rfx_onnx_add_initialisers(struct rfx_onnx_import *ctx,
                                                        struct rfx_onnx_tensor *tensors,
                                                        size_t count);

/* --- bodies in the place of nodes (onnx_inline.c) --- */

/* Whether a node is an If; whether it is that, a call of a function, or of an operator with a row.
 */
bool rfx_onnx_is_branching(const struct rfx_onnx_node *node);
bool rfx_onnx_op_is_known(const struct rfx_onnx_model *model, const struct rfx_onnx_node *node);

/* The function of the model that a node calls, or NULL. */
struct rfx_onnx_function *rfx_onnx_function_of(const struct rfx_onnx_model *model,
                                               const struct rfx_onnx_node *node);

/* Converts the body of the function that the current node calls. */
RFX_NODISCARD enum rfx_status rfx_onnx_inline_function(struct rfx_onnx_import *ctx,
                                                       struct rfx_onnx_function *function);

/* Converts the branch of the current If that its condition names. UNSUPPORTED: the condition is
 * computed from the image. */
RFX_NODISCARD enum rfx_status rfx_onnx_inline_branch(struct rfx_onnx_import *ctx);

/* The row of an operator, or NULL. */
const struct rfx_onnx_op *rfx_onnx_op_find(const char *name);

/* Whether an operator of the table is one of that domain: ONNX's own, or the only other one that
 * has operators here, "com.microsoft". */
bool rfx_onnx_op_is_of(const char *name, const char *domain);

/* Whether only a run could say how large its result is, of what is computed. */
bool rfx_onnx_op_is_sized_by_values(const char *name);

/* Fails with "Op 'name' (opset n): why". */
enum rfx_status rfx_onnx_refuse(struct rfx_onnx_import *ctx, enum rfx_status status,
                                const char *format, ...) RFX_PRINTF(3, 4);

/* --- operands and results (onnx_context.c) --- */

/* Operand k; {-1, NULL} when the node has no such input. In the graph of constants input 0 and what
 * is computed are nodes, as behind an image, and only rfx_onnx_in_const gives them as constants. */
struct rfx_onnx_operand rfx_onnx_in(const struct rfx_onnx_import *ctx, size_t k);

/* The same as what its name is bound to. */
struct rfx_onnx_operand rfx_onnx_in_as_named(const struct rfx_onnx_import *ctx, size_t k);

/* Whether operand k is there at all. */
bool rfx_onnx_has(const struct rfx_onnx_import *ctx, size_t k);

/* Shape of an operand. */
const struct rfx_shape *rfx_onnx_shape(const struct rfx_onnx_import *ctx,
                                       struct rfx_onnx_operand value);

/* Binds output k of the current node. */
RFX_NODISCARD enum rfx_status rfx_onnx_set(struct rfx_onnx_import *ctx, size_t k,
                                           struct rfx_onnx_operand value);
RFX_NODISCARD enum rfx_status rfx_onnx_set_node(struct rfx_onnx_import *ctx, int node);

/* Adds `node` with inputs in[0..n_in) under the current name plus `suffix`, made unique. */
RFX_NODISCARD enum rfx_status rfx_onnx_emit(struct rfx_onnx_import *ctx, struct rfx_node *node,
                                            const char *suffix, const int *in, int n_in, int *out);

/* The operand as an NHWC map (UNSUPPORTED when its rank is not 4) or as a PLAIN tensor. */
RFX_NODISCARD enum rfx_status rfx_onnx_map(struct rfx_onnx_import *ctx,
                                           struct rfx_onnx_operand value, int *out);
RFX_NODISCARD enum rfx_status rfx_onnx_plain(struct rfx_onnx_import *ctx,
                                             struct rfx_onnx_operand value, int *out);

/* The operand, computed, in whatever layout it has; constants become PLAIN. */
RFX_NODISCARD enum rfx_status rfx_onnx_any(struct rfx_onnx_import *ctx,
                                           struct rfx_onnx_operand value, int *out);

/* The map that a PLAIN (1, c, h, w) tensor is, after all that was done to it; else the node. */
int rfx_onnx_map_itself(const struct rfx_onnx_import *ctx, int node);

/* Channels last: the map whose bytes a PLAIN (1, h, w, c) tensor is, or -1. Then the map whose
 * tokens a tensor holds, of any shape and in any order, with all channels of a pixel in its last
 * axis (onnx_pixels.h). */
int rfx_onnx_map_behind(struct rfx_onnx_import *ctx, int node);
int rfx_onnx_tokens_behind(struct rfx_onnx_import *ctx, int node);

/* The map whose elements a tensor has, for what works element by element: tokens, or the map in its
 * own order without or with more axes of 1, as (h, w) or (c, h, w); -1: none. */
int rfx_onnx_elements_behind(struct rfx_onnx_import *ctx, int node);

/* Whether the tokens of two nodes are in one order. */
bool rfx_onnx_same_order(const struct rfx_onnx_import *ctx, int a, int b);

/* A map in the order and shape of the tensor for which one of these found a map last. */
RFX_NODISCARD enum rfx_status rfx_onnx_channels_last(struct rfx_onnx_import *ctx, int map,
                                                     int *out);

/* The tensor that is described. */
RFX_NODISCARD enum rfx_status rfx_onnx_emit_pixels(struct rfx_onnx_import *ctx,
                                                   const struct rfx_pixels *p, int *out);

/* Operand 0 of what works element by element: as rfx_onnx_any, but of a map's elements in another
 * shape or order the map, and *last is true: the result is then to be bound with rfx_onnx_set_as.
 */
RFX_NODISCARD enum rfx_status rfx_onnx_elements(struct rfx_onnx_import *ctx, int *out, bool *last);

/* Binds output 0 to a node; `last`: to it with its channels last. */
RFX_NODISCARD enum rfx_status rfx_onnx_set_as(struct rfx_onnx_import *ctx, int node, bool last);

/* A PLAIN tensor with the same bytes and another shape. */
RFX_NODISCARD enum rfx_status rfx_onnx_reshape(struct rfx_onnx_import *ctx, int plain,
                                               const struct rfx_shape *shape, int *out);

/* The tensor of that shape that `node` was reshaped from, as a map if it was one; -1: none. */
int rfx_onnx_shaped_before(const struct rfx_onnx_import *ctx, int node,
                           const struct rfx_shape *shape);

/* An ACTIVATION of `in`. */
RFX_NODISCARD enum rfx_status rfx_onnx_act(struct rfx_onnx_import *ctx, const char *suffix, int in,
                                           enum rfx_act_kind kind, float alpha, float beta,
                                           int *out);

/* in * scale + shift with two numbers, in either layout. */
RFX_NODISCARD enum rfx_status rfx_onnx_scale_shift(struct rfx_onnx_import *ctx, const char *suffix,
                                                   int in, float scale, float shift, int *out);

/* `a kind b` of any two operands, at least one of them computed, with broadcasting
 * (onnx_import_elementwise.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_combine(struct rfx_onnx_import *ctx,
                                               enum rfx_binary_kind kind, const char *suffix,
                                               struct rfx_onnx_operand a, struct rfx_onnx_operand b,
                                               int *out);

static inline const struct rfx_tensor *rfx_onnx_tensor_of(const struct rfx_onnx_import *ctx,
                                                          int node) {
    return &ctx->graph->nodes[node].out;
}

/* --- attributes (onnx_attributes.c) --- */

/* To be called when a node is converted: UNSUPPORTED, with name and value, where it has an
 * attribute that nobody asked for since *attrs_read was 0 and that may not be passed over. */
RFX_NODISCARD enum rfx_status rfx_onnx_attrs_are_read(struct rfx_onnx_import *ctx);

/* An attribute of any kind, or NULL. Those of a kind that is not the one of the reader count as
 * absent, and are refused in the end. */

const struct rfx_onnx_attr *rfx_onnx_attr_find(const struct rfx_onnx_import *ctx, const char *name);
int64_t rfx_onnx_attr_int(const struct rfx_onnx_import *ctx, const char *name, int64_t otherwise);
bool rfx_onnx_attr_flag(const struct rfx_onnx_import *ctx, const char *name,
                        bool otherwise); /* 0 or 1; other integers are refused in the end */
float rfx_onnx_attr_float(const struct rfx_onnx_import *ctx, const char *name, float otherwise);
const char *rfx_onnx_attr_string(const struct rfx_onnx_import *ctx, const char *name,
                                 const char *otherwise);

/* Copies exactly `count` integers into out; absent: leaves out alone. MALFORMED: another count. */
RFX_NODISCARD enum rfx_status rfx_onnx_attr_ints(struct rfx_onnx_import *ctx, const char *name,
                                                 size_t count, int64_t *out);

/* The integers of attribute `name`, or of constant input k; *found says whether there are any. */
RFX_NODISCARD enum rfx_status rfx_onnx_list_ints(struct rfx_onnx_import *ctx, const char *name,
                                                 size_t k, const int64_t **out, int64_t *count,
                                                 bool *found);

/* Makes a negative axis positive. MALFORMED: outside of [-rank, rank). */
RFX_NODISCARD enum rfx_status rfx_onnx_axis(struct rfx_onnx_import *ctx, int64_t axis, int rank,
                                            int *out);

/* Remembers the indices of the current MaxPool from map `in` to map `out`, and the ones with that
 * name, or NULL; makes them of the map, for who is no MaxUnpool (onnx_import_unpool.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_keep_indices(struct rfx_onnx_import *ctx, int in, int out,
                                                    const struct rfx_pool_attr *attr);
const struct rfx_onnx_indices *rfx_onnx_indices_of(const struct rfx_onnx_import *ctx,
                                                   const char *name);
RFX_NODISCARD enum rfx_status rfx_onnx_make_indices(struct rfx_onnx_import *ctx,
                                                    const struct rfx_onnx_indices *indices);

/* --- constants (onnx_const.c) --- */

/* A new constant without numbers; NULL: no memory. */
struct rfx_onnx_const *rfx_onnx_const_bare(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, int64_t elems);

/* Elements that constants computed while loading may have together: 8 bytes each, a quarter of the
 * machine's memory. A budget for loading is the allocator's. */
int64_t rfx_onnx_most_stored(void);

/* Refuses a constant of so many elements: UNSUPPORTED. */
enum rfx_status rfx_onnx_refuse_size(struct rfx_onnx_import *ctx, int64_t elems);

/* A new constant with room for its ints (reals when `real`), to be written through the result. */
struct rfx_onnx_const *rfx_onnx_const_new(struct rfx_onnx_import *ctx, int32_t type,
                                          const struct rfx_shape *shape);
/* As rfx_onnx_const_new, of elements that are all the same: one is to be written. */
struct rfx_onnx_const *rfx_onnx_const_new_filled(struct rfx_onnx_import *ctx, int32_t type,
                                                 const struct rfx_shape *shape);

/* Frees the numbers that were made on demand; of constants that folding made, keeps them in the
 * smallest type that holds them. False: no memory. To be called when a node is converted. */
bool rfx_onnx_const_settle(struct rfx_onnx_import *ctx);

/* Frees them whatever the constants need; the last call. */
void rfx_onnx_const_forget(struct rfx_onnx_import *ctx);

/* How many elements a constant holds, and where element i of its shape is among them. */
static inline int64_t rfx_onnx_const_stored(const struct rfx_onnx_const *c) {
    return c->filled ? 1 : c->elems;
}
static inline int64_t rfx_onnx_const_at(const struct rfx_onnx_const *c, int64_t i) {
    return c->filled ? 0 : i;
}

int64_t *rfx_onnx_const_ints_rw(struct rfx_onnx_const *constant);
double *rfx_onnx_const_reals_rw(struct rfx_onnx_const *constant);

/* In the graph of constants integers are float32: refuses those that are not exact there. */
RFX_NODISCARD enum rfx_status rfx_onnx_const_check_exact(struct rfx_onnx_import *ctx,
                                                         struct rfx_onnx_const *c);

/* A constant whose elements in the file are all the same, as one that is filled; any other one as
 * it is. Its elements are read, and not kept. */
RFX_NODISCARD enum rfx_status rfx_onnx_const_filled(struct rfx_onnx_import *ctx,
                                                    struct rfx_onnx_const *constant,
                                                    struct rfx_onnx_const **out);

struct rfx_onnx_const *rfx_onnx_const_of(struct rfx_onnx_import *ctx,
                                         const struct rfx_onnx_tensor *tensor);

/* The same values under another shape of as many elements. */
struct rfx_onnx_const *rfx_onnx_const_view(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_const *constant,
                                           const struct rfx_shape *shape);

bool rfx_onnx_type_is_real(int32_t type);

/* The numbers of a constant: integers (UNSUPPORTED for floats), or any type as doubles. The ones
 * that are stored, and all elements. */
RFX_NODISCARD enum rfx_status rfx_onnx_const_stored_ints(struct rfx_onnx_import *ctx,
                                                         struct rfx_onnx_const *constant,
                                                         const int64_t **out);
RFX_NODISCARD enum rfx_status rfx_onnx_const_stored_reals(struct rfx_onnx_import *ctx,
                                                          struct rfx_onnx_const *constant,
                                                          const double **out);
RFX_NODISCARD enum rfx_status rfx_onnx_const_ints(struct rfx_onnx_import *ctx,
                                                  struct rfx_onnx_const *constant,
                                                  const int64_t **out);
RFX_NODISCARD enum rfx_status rfx_onnx_const_reals(struct rfx_onnx_import *ctx,
                                                   struct rfx_onnx_const *constant,
                                                   const double **out);

/* Where a constant is in the graph that is being built. */
static inline struct rfx_onnx_const_place *rfx_onnx_const_place(const struct rfx_onnx_import *ctx,
                                                                struct rfx_onnx_const *c) {
    return ctx->is_of_constants ? &c->in_constants : &c->in_model;
}

/* What the current Slice takes of a tensor (onnx_import_slice.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_read_cut(struct rfx_onnx_import *ctx,
                                                const struct rfx_shape *in,
                                                struct rfx_slice_attr *cut);

/* --- constants that operators compute (onnx_computed.c) --- */

/* Elements of floats up to which constants are folded: sizes and scales. */
#define RFX_ONNX_FOLDED_ELEMS 64

/* The largest integer up to which float32 holds all. */
#define RFX_ONNX_MOST_EXACT ((int64_t)1 << 24)

/* Converts the current node, whose operands are all constants, to nodes of the graph of constants,
 * and binds its outputs to constants that they compute. Nothing is computed yet. */
RFX_NODISCARD enum rfx_status rfx_onnx_compute(struct rfx_onnx_import *ctx,
                                               rfx_onnx_convert convert);

/* The node of a computed constant, as a map or PLAIN: in the model's graph where it is larger than
 * all that it is made of; otherwise its numbers are computed, and *out stays -1. */
RFX_NODISCARD enum rfx_status rfx_onnx_computed_node(struct rfx_onnx_import *ctx,
                                                     struct rfx_onnx_const *c, bool map, int *out);

/* Computes a constant's numbers: into memory of the import, or into a weight of the graph. */
RFX_NODISCARD enum rfx_status rfx_onnx_computed_numbers(struct rfx_onnx_import *ctx,
                                                        struct rfx_onnx_const *c);
RFX_NODISCARD enum rfx_status rfx_onnx_computed_weight(struct rfx_onnx_import *ctx,
                                                       struct rfx_onnx_const *c);

/* A constant that is `c`, which operators compute, under another shape; NULL: no memory. */
struct rfx_onnx_const *rfx_onnx_computed_view(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* Frees the graph of constants. */
void rfx_onnx_computed_free(struct rfx_onnx_import *ctx);

/* The constant input k as a weight of the graph, left in the file where possible. */
RFX_NODISCARD enum rfx_status rfx_onnx_const_weight(struct rfx_onnx_import *ctx,
                                                    struct rfx_onnx_const *constant, int *out);

/* The same of a matrix [k][m], read as [m][k]. */
RFX_NODISCARD enum rfx_status rfx_onnx_const_weight_transposed(struct rfx_onnx_import *ctx,
                                                               struct rfx_onnx_const *constant,
                                                               int *out);

/* Constant input k, required. UNSUPPORTED: it is computed; MALFORMED: it is missing. */
RFX_NODISCARD enum rfx_status rfx_onnx_in_const(struct rfx_onnx_import *ctx, size_t k,
                                                struct rfx_onnx_const **out);

/* Constant input k as one number. */
RFX_NODISCARD enum rfx_status rfx_onnx_in_number(struct rfx_onnx_import *ctx, size_t k,
                                                 double *out);

/* An OWNED weight of `count` values. */
RFX_NODISCARD enum rfx_status rfx_onnx_own_weight(struct rfx_onnx_import *ctx, const float *values,
                                                  int64_t count, int *out);

/* Product of dims [from, to). */
static inline int64_t rfx_onnx_product(const struct rfx_shape *shape, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= shape->dims[i];
    return product;
}

/* Binds output 0 to a where the condition holds, else to b (onnx_import_logic.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_choose(struct rfx_onnx_import *ctx,
                                              struct rfx_onnx_operand condition,
                                              struct rfx_onnx_operand a, struct rfx_onnx_operand b);

/* Whether a node's elements are whole numbers because of what they are made of; and the whole
 * numbers that a cast to integers makes. */
bool rfx_onnx_is_whole(const struct rfx_onnx_import *ctx, int node);
RFX_NODISCARD enum rfx_status rfx_onnx_towards_zero(struct rfx_onnx_import *ctx, const char *suffix,
                                                    int in, int *out);

/* The current LayerNormalization of a map over channels and space. */
RFX_NODISCARD enum rfx_status rfx_onnx_layer_norm_of_map(struct rfx_onnx_import *ctx, int map,
                                                         float eps);

/* softmax(scores) x values as attention within windows of a map, where it is that; *out stays -1
 * where it is not (onnx_import_attention.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_window_attention(struct rfx_onnx_import *ctx, int softmax,
                                                        int values, int *out);

/* x [..., k] times a constant matrix [k, m], or [m, k] if `turned`: [..., m]; of a map's tokens by
 * rows. Then two tensors of rank 2 or more (onnx_import_matmul.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_by_matrix(struct rfx_onnx_import *ctx,
                                                 struct rfx_onnx_operand x,
                                                 struct rfx_onnx_const *b, bool turned, int *out);
RFX_NODISCARD enum rfx_status rfx_onnx_product_of(struct rfx_onnx_import *ctx, const char *suffix,
                                                  const int *in, int *out);

/* The sum over some axes, which go (onnx_import_reduce.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_sum_over(struct rfx_onnx_import *ctx, const char *suffix,
                                                const bool *axes, int in, int *out);

/* Axis i is axis perm[i] of x (onnx_import_shape.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_permute(struct rfx_onnx_import *ctx,
                                               struct rfx_onnx_operand x, const int *perm,
                                               struct rfx_onnx_operand *out);

/* Whether a node is a softmax with its last two axes exchanged; in[0] times such a one
 * (onnx_import_attention.c). */
bool rfx_onnx_is_turned_softmax(const struct rfx_onnx_import *ctx, int in);
RFX_NODISCARD enum rfx_status rfx_onnx_by_turned_softmax(struct rfx_onnx_import *ctx, const int *in,
                                                         int *out);

/* Of a model that is fixed to a batch, before the current node is converted that is computed: what
 * it says of N becomes 1, or UNSUPPORTED where images would see each other (batch/onnx_batch.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_batch_node(struct rfx_onnx_import *ctx);

/* Attribute p, 2 where it is not given; a float before opset 2 (onnx_import_reduce.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_power(struct rfx_onnx_import *ctx, int64_t *p);

/* --- element types of computed tensors (onnx_types.c) --- */
bool rfx_onnx_type_is_integer(int32_t type);

/* Of operand k of the current node, and of its output k. */
int32_t rfx_onnx_in_type(const struct rfx_onnx_import *ctx, size_t k);
int32_t rfx_onnx_result_type(const struct rfx_onnx_import *ctx, size_t k);

/* Whole numbers as those of 8 or 16 bits that they are modulo 2^8 or 2^16. */
RFX_NODISCARD enum rfx_status rfx_onnx_wrap(struct rfx_onnx_import *ctx, int32_t type, int in,
                                            int *out);

/* Lets a result of the current node stay in the range of its type. UNSUPPORTED: what the operator
 * makes of such integers is not known here. */
RFX_NODISCARD enum rfx_status rfx_onnx_keep_type(struct rfx_onnx_import *ctx, int32_t type,
                                                 int *node);

/* What an output of the type is stored as. */
enum rfx_type rfx_onnx_stored_type(int32_t type);

/* The largest value of a map of indices of channels, at least 1; 0: it is none. */
int64_t rfx_onnx_most_index(const struct rfx_onnx_import *ctx, int node);

/* Binds output k to a value of that type as it is. */
RFX_NODISCARD enum rfx_status rfx_onnx_bind_as(struct rfx_onnx_import *ctx, size_t k,
                                               struct rfx_onnx_operand value, int32_t type);

/* --- names (onnx_names.c): a growing table from text to an operand --- */
struct rfx_onnx_names *rfx_onnx_names_create(struct rfx_arena *arena);
struct rfx_onnx_names *rfx_onnx_names_within(struct rfx_arena *arena,
                                             const struct rfx_onnx_names *outer); /* seen too */
struct rfx_onnx_operand *rfx_onnx_names_find(const struct rfx_onnx_names *names, const char *name);
bool rfx_onnx_names_put(struct rfx_onnx_names *names, const char *name,
                        struct rfx_onnx_operand value); /* false: no memory */

/* The element type of a name's tensor, FLOAT where none was set; that of a name which is there. */
int32_t rfx_onnx_names_type(const struct rfx_onnx_names *names, const char *name);
void rfx_onnx_names_set_type(struct rfx_onnx_names *names, const char *name, int32_t type);

#include "rfexec/onnx/import/onnx_converters.h"
#endif
