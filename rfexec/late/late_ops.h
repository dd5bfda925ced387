/* The operators of late nodes, one row each, and what their code shares.
 *
 * Arithmetic: floats are float32 and every operation rounds once; Exp is rfx_exp (real_math.h)
 * rounded to float32. Integers wrap around. Div of integers cuts towards zero, Mod has the sign of
 * the divisor, and both refuse a divisor of 0. Cast from float to an integer cuts towards zero and
 * limits to the type's range; NaN becomes 0. Max, Min, ReduceMax and ReduceMin give NaN if an
 * element is NaN. Floats of 16 and 64 bits are float32, as everywhere in rfexec. */
#ifndef RFX_RFEXEC_LATE_LATE_OPS_H
#define RFX_RFEXEC_LATE_LATE_OPS_H

#include "layers/graph/infer.h"
#include "rfexec/late/late.h"

struct rfx_late_run;

/* A node that is being run. Errors stick: after the first, functions below return NULL or 0. */
struct rfx_late_call {
    struct rfx_late_run *run;
    const struct rfx_late_node *node;
    enum rfx_status status;
    struct rfx_error *err;
};

typedef void rfx_late_fn(struct rfx_late_call *call);

/* Writes why a node's attributes are refused; leaves `why` empty if they are not. */
enum { RFX_LATE_WHY = 120 };
typedef void rfx_late_check(const struct rfx_late_node *node, char why[RFX_LATE_WHY]);

struct rfx_late_attribute {
    const char *name; /* NULL: there are no more */
    int64_t otherwise;
};

/* Attributes of other kinds than integers and lists. */
struct rfx_late_attributes {
    const char *text, *only;           /* a text, and its only value; NULL: none */
    const char *reals[RFX_LATE_REALS]; /* floats that must be there; NULL: there are no more */
};

struct rfx_late_op {
    const char *name;                /* of ONNX's own operator, or of a plugin (onnx_ops.c) */
    rfx_late_fn *run;                /* NULL: the interpreter runs it itself (If) */
    int kind;                        /* of an operator whose code serves several */
    int least_in, most_in, most_out; /* operands that must be there, and most; 0: any number */
    struct rfx_late_attribute ints[RFX_LATE_INTS]; /* attributes that are one integer */
    const char *list;   /* attribute that is a list of integers; NULL: none */
    const char *tensor; /* attribute that is a constant of one element, and becomes the last
                           operand; NULL: none */
    const struct rfx_late_attributes *more; /* NULL: there are none */
    rfx_late_check *check;                  /* of attributes, when a model is loaded; or NULL */
};

/* Returns the operator of this name, or NULL. */
const struct rfx_late_op *rfx_late_op_find(const char *name);

/* Returns row i of the table, or NULL behind the last one. */
const struct rfx_late_op *rfx_late_op_at(int i);

/* --- for operators --- */

/* Records the error "late node 'name' (operator): text", unless there is one. */
void rfx_late_refuse(struct rfx_late_call *call, enum rfx_status status, const char *format, ...)
    RFX_PRINTF(3, 4);

/* Returns operand k; NULL: it is absent, or there was an error. rfx_late_need records an error if
 * it is absent. */
const struct rfx_late_tensor *rfx_late_in(const struct rfx_late_call *call, int k);
const struct rfx_late_tensor *rfx_late_need(struct rfx_late_call *call, int k);

/* Returns whether result k is read. */
bool rfx_late_gives(const struct rfx_late_call *call, int k);

/* Makes result k and returns its elements, which are not initialised; NULL: there was an error. */
void *rfx_late_make(struct rfx_late_call *call, int k, enum rfx_type type,
                    const struct rfx_shape *shape);

/* Makes result 0 from the elements of operand 0, with another shape of as many elements. The memory
 * is taken over if nobody else reads the operand. */
void rfx_late_reshape(struct rfx_late_call *call, const struct rfx_shape *shape);

/* For operators with long loops: records CANCELLED if the work is to stop. */
void rfx_late_check_stop(struct rfx_late_call *call);

/* Working memory of an operator, counted as the tensors are; NULL: there was an error. */
void *rfx_late_alloc(struct rfx_late_call *call, int64_t count, size_t size);
void rfx_late_release(struct rfx_late_call *call, void *block, int64_t count, size_t size);

/* Returns element i of an operand of integers. Records an error if it has other elements. */
int64_t rfx_late_int(struct rfx_late_call *call, const struct rfx_late_tensor *tensor, int64_t i);

/* Copies operand k, a list of integers of rank 0 or 1, to out[RFX_MAX_RANK] and returns their
 * number, at most RFX_MAX_RANK. */
int rfx_late_ints(struct rfx_late_call *call, int k, int64_t *out);

/* Returns an axis of a tensor of this rank, counted from the end if it is negative. */
int rfx_late_axis(struct rfx_late_call *call, int64_t axis, int rank);

/* Sets axes[i] to whether axis i is in the list attribute or, without one, in operand k. Returns
 * whether there is a list. */
bool rfx_late_axes(struct rfx_late_call *call, int k, int rank, bool axes[RFX_MAX_RANK]);

/* Goes through a shape row by row, in several tensors at a time. A row is the last axis. */
enum { RFX_LATE_WALKED = 3 };
struct rfx_late_rows {
    struct rfx_shape shape;
    int n; /* tensors */
    int64_t rows, columns;
    int64_t strides[RFX_LATE_WALKED][RFX_MAX_RANK]; /* in elements; 0: broadcast */
    int64_t at[RFX_LATE_WALKED];                    /* element at which the current row begins */
    int64_t step[RFX_LATE_WALKED];                  /* along the row */
    int64_t index[RFX_MAX_RANK];                    /* of the current row */
};

/* Begins with the first row. The caller has set shape, n, strides and at; the rest is 0. */
void rfx_late_rows_begin(struct rfx_late_rows *rows);

/* Begins with the first row of the shape to which n tensors of these shapes are broadcast. Records
 * an error if the shapes do not match. */
void rfx_late_rows_broadcast(struct rfx_late_call *call, const struct rfx_shape *const *shapes,
                             int n, struct rfx_late_rows *rows);
void rfx_late_rows_next(struct rfx_late_rows *rows);

/* --- operators, in the order of their files --- */
rfx_late_fn rfx_late_identity, rfx_late_shape, rfx_late_reshape_op, rfx_late_flatten,
    rfx_late_squeeze, rfx_late_unsqueeze, rfx_late_transpose, rfx_late_concat, rfx_late_slice,
    rfx_late_split, rfx_late_expand, rfx_late_constant_of_shape, rfx_late_pad, rfx_late_gather,
    rfx_late_gather_nd, rfx_late_scatter_nd;
rfx_late_fn rfx_late_binary, rfx_late_compare, rfx_late_logic, rfx_late_not, rfx_late_unary,
    rfx_late_clip, rfx_late_cast, rfx_late_where, rfx_late_reduce;
rfx_late_fn rfx_late_non_zero, rfx_late_top_k, rfx_late_non_max_suppression, rfx_late_efficient_nms;
rfx_late_check rfx_late_efficient_nms_check;

/* Kinds of operators that share code. */
enum rfx_late_kind {
    RFX_LATE_ADD,
    RFX_LATE_SUB,
    RFX_LATE_MUL,
    RFX_LATE_DIV,
    RFX_LATE_MOD,
    RFX_LATE_MAX,
    RFX_LATE_MIN,
    RFX_LATE_PROD,
    RFX_LATE_EQUAL,
    RFX_LATE_LESS,
    RFX_LATE_LESS_OR_EQUAL,
    RFX_LATE_GREATER,
    RFX_LATE_GREATER_OR_EQUAL,
    RFX_LATE_AND,
    RFX_LATE_OR,
    RFX_LATE_XOR,
    RFX_LATE_EXP,
    RFX_LATE_SQRT,
};
#endif
