/* The late nodes of a network: those whose sizes depend on data, such as NonMaxSuppression and
 * NonZero, and all nodes behind them. No plan can contain them. A file with such nodes is cut
 * before them: the network in front ends with the cut tensors, which are its outputs, and is
 * planned and run as any other. After its run, late_run.h computes the late nodes from the cut
 * tensors, with sizes that are known only then.
 *
 * A program is a list of nodes in the order of the file, over values that are numbered. A value is
 * a constant, a cut tensor, or the result of one node. An If has two blocks of nodes, one of which
 * is run. Invariants: 1. each value is made once; 2. a node reads only values that are made before
 * it, in its own block or in one around it. The import checks both
 * (rfexec/onnx/import/onnx_late.c).
 */
#ifndef RFX_RFEXEC_LATE_LATE_H
#define RFX_RFEXEC_LATE_LATE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

/* A tensor in row-major order. Its dims may be 0. Types: FLOAT32, INT64, INT32 and BOOL. */
struct rfx_late_tensor {
    enum rfx_type type;
    struct rfx_shape shape;
    int64_t elems;
    void *data; /* of a tensor without elements too; NULL: there is no tensor */
};

/* Returns whether late nodes compute with elements of this type. */
static inline bool rfx_late_has_type(enum rfx_type type) {
    return type == RFX_TYPE_FLOAT32 || type == RFX_TYPE_INT64 || type == RFX_TYPE_INT32 ||
           type == RFX_TYPE_BOOL;
}

struct rfx_late_op;
struct rfx_late_block;

enum { RFX_LATE_INTS = 5, RFX_LATE_REALS = 2 };

struct rfx_late_node {
    const struct rfx_late_op *op; /* late_ops.h */
    char *name;                   /* for messages */
    int n_in, n_out;
    int *in, *out;               /* values; -1: the operand is absent, or nobody reads the result */
    int64_t ints[RFX_LATE_INTS]; /* attributes, in the order of the operator's row */
    float reals[RFX_LATE_REALS];
    int64_t *list; /* the attribute that is a list; NULL: the node has none */
    int n_list;
    struct rfx_late_block *branches[2]; /* of an If: run if the condition is true, if it is false */
};

/* Nodes that are run one after the other. */
struct rfx_late_block {
    struct rfx_late_node *nodes;
    size_t n, capacity;
    int *out; /* values that an If takes over; NULL: the block is no branch */
    int n_out;
};

struct rfx_late_value {
    int cut; /* output of the graph in front that is the value; -1: it is none */
    struct rfx_late_tensor constant; /* data NULL: it is none */
};

/* An output of the model. */
struct rfx_late_output {
    char *name;
    int value;
    enum rfx_type type;         /* as declared */
    int rank;                   /* as declared; -1: not declared */
    int64_t dims[RFX_MAX_RANK]; /* as declared; -1: not declared, or known after a run only */
    bool boxes;                 /* it is a list of boxes, 1 x N x 6 (late_boxes.h) */
};

struct rfx_late {
    struct rfx_memory *mem;
    struct rfx_late_value *values;
    struct rfx_late_output *outputs;
    struct rfx_late_block block;
    size_t n_values, n_outputs, value_capacity, output_capacity;
    int n_cuts;     /* the first n_cuts outputs of the graph in front are the cut tensors */
    size_t n_nodes; /* of all blocks */
};

/* Creates an empty program; NULL: no memory. `mem` must outlive it. */
struct rfx_late *rfx_late_create(struct rfx_memory *mem);

/* Frees a program; NULL is fine. */
void rfx_late_free(struct rfx_late *late);

/* Adds a value and returns its number; -1: no memory. cut: output of the graph in front, or -1. */
int rfx_late_add_value(struct rfx_late *late, int cut);

/* Adds a constant of this type and shape and returns its number. *data receives its elements, which
 * the caller sets. -1: no memory, or the size overflows. */
int rfx_late_add_constant(struct rfx_late *late, enum rfx_type type, const struct rfx_shape *shape,
                          void **data);

/* Appends a node to a block. Its operands and results are -1, its attributes 0. The pointer is
 * valid until the next node is added to the block. NULL: no memory. */
struct rfx_late_node *rfx_late_add_node(struct rfx_late *late, struct rfx_late_block *block,
                                        const struct rfx_late_op *op, const char *name, int n_in,
                                        int n_out);

/* Returns a new block for a branch with n_out results, which are -1; NULL: no memory. A node of the
 * program has to take it over. */
struct rfx_late_block *rfx_late_add_branch(struct rfx_late *late, int n_out);
void rfx_late_free_branch(struct rfx_late *late, struct rfx_late_block *block);

/* Adds an output of the model; NULL: no memory. */
struct rfx_late_output *rfx_late_add_output(struct rfx_late *late, const char *name, int value);

/* Sets *elems to the number of elements of a shape. Returns false if bytes of that many elements
 * of 8 bytes overflow, or a dim is negative. */
bool rfx_late_elems(const struct rfx_shape *shape, int64_t *elems);
#endif
