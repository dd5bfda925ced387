/* An ONNX file as plain structs: names, attributes, shapes, and the file offset of each tensor.
 *
 * All structs are in one arena, which rfx_onnx_model_free frees at once. The bytes of a tensor that
 * the file stores as little-endian values of fixed width are not read; `raw` is their place in the
 * file. Of sub-graphs and functions only the place in the file is stored; they are read when the
 * import needs them. The code in this folder knows the file format, but no operators. */
#ifndef RFX_RFEXEC_ONNX_FILE_ONNX_MODEL_H
#define RFX_RFEXEC_ONNX_FILE_ONNX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "layers/graph/weight.h"

/* The element types of TensorProto that rfexec reads. */
enum rfx_onnx_type {
    RFX_ONNX_FLOAT = 1,
    RFX_ONNX_UINT8 = 2,
    RFX_ONNX_INT8 = 3,
    RFX_ONNX_UINT16 = 4,
    RFX_ONNX_INT16 = 5,
    RFX_ONNX_INT32 = 6,
    RFX_ONNX_INT64 = 7,
    RFX_ONNX_BOOL = 9,
    RFX_ONNX_FLOAT16 = 10,
    RFX_ONNX_DOUBLE = 11,
    RFX_ONNX_UINT32 = 12,
    RFX_ONNX_UINT64 = 13,
    RFX_ONNX_BFLOAT16 = 16,
    RFX_ONNX_UINT4 = 21, /* in files only; the reader converts UINT4 to UINT8 and INT4 to INT8 */
    RFX_ONNX_INT4 = 22,
};

/* Returns whether a domain is ONNX's own, which has two names. */
bool rfx_onnx_is_own_domain(const char *domain);

/* Returns the bytes of one element, or 0 for a type that rfexec does not read. */
size_t rfx_onnx_type_bytes(int32_t type);

/* Bytes in memory (data is not NULL) or in an open file (file is not NULL). Both NULL: no bytes. */
struct rfx_onnx_bytes {
    const uint8_t *data;
    const struct rfx_weight_file *file;
    uint64_t offset;
    size_t size;
};

struct rfx_onnx_span { /* of the model file */
    uint64_t at;
    size_t size;
};

struct rfx_onnx_tensor {
    const char *name;
    int32_t type;
    struct rfx_shape shape;
    int64_t elems;
    struct rfx_onnx_bytes raw; /* the values, unaligned; in memory where the reader had to assemble
                                  them; no bytes: the values are in `ints` */
    const int64_t *ints;       /* values that the file stores as varints */
    bool external;             /* the bytes are in the separate file `location` */
    const char *location;
    int64_t offset, length; /* length -1: not given */
};

enum rfx_onnx_attr_kind {
    RFX_ONNX_ATTR_FLOAT = 1,
    RFX_ONNX_ATTR_INT = 2,
    RFX_ONNX_ATTR_STRING = 3,
    RFX_ONNX_ATTR_TENSOR = 4,
    RFX_ONNX_ATTR_GRAPH = 5,
    RFX_ONNX_ATTR_FLOATS = 6,
    RFX_ONNX_ATTR_INTS = 7,
    RFX_ONNX_ATTR_STRINGS = 8,
    RFX_ONNX_ATTR_OTHER = 99,
};

struct rfx_onnx_body;

struct rfx_onnx_attr {
    const char *name;
    const char *ref; /* in a function: the call's attribute that supplies the value; else NULL */
    enum rfx_onnx_attr_kind kind;
    float f;
    int64_t i;
    const char *s;
    struct rfx_onnx_tensor *t;
    const float *floats;
    const int64_t *ints;
    size_t count;               /* of floats or ints */
    struct rfx_onnx_span graph; /* GRAPH: place of the sub-graph in the file */
    struct rfx_onnx_body *body; /* GRAPH: the sub-graph, once it has been read */
};

struct rfx_onnx_node {
    const char *name, *op, *domain;
    const char **in, **out; /* names of tensors; "": an optional one that is absent */
    size_t n_in, n_out, n_attrs;
    struct rfx_onnx_attr *attrs;
};

struct rfx_onnx_value {
    const char *name;
    int32_t type;               /* 0: not given */
    int rank;                   /* -1: not given */
    int64_t dims[RFX_MAX_RANK]; /* -1: symbolic */
};

/* The nodes that replace a node: a branch of an If, or the body of a function. */
struct rfx_onnx_body {
    struct rfx_onnx_node *nodes;
    struct rfx_onnx_tensor *tensors; /* initialisers; a function has none */
    const char **in, **out;          /* names of tensors; a branch has only `out` */
    size_t n_nodes, n_tensors, n_in, n_out;
    struct rfx_onnx_attr *defaults; /* default values of a function's attributes */
    size_t n_defaults;
    int64_t opset; /* opset of the default domain; 0: that of the model */
};

struct rfx_onnx_function {
    const char *domain, *name;
    struct rfx_onnx_span span;
    struct rfx_onnx_body *body; /* NULL: not read yet */
};

struct rfx_arena;

struct rfx_onnx_model {
    struct rfx_arena *arena;
    const struct rfx_weight_file *file;
    size_t file_bytes;
    int64_t ir_version, opset; /* opset of the default domain */
    const char *graph_name;
    struct rfx_onnx_node *nodes;
    struct rfx_onnx_tensor *tensors; /* initialisers */
    struct rfx_onnx_value *inputs, *outputs;
    struct rfx_onnx_function *functions;
    size_t n_nodes, n_tensors, n_inputs, n_outputs, n_functions;
};

/* Reads the structure of the model in the first `size` bytes of `file`. The file must stay open as
 * long as tensors are read. At most 16 KiB of the file are in memory at a time. Nodes and
 * initialisers that no output needs are left out unless keep_all is true. Statuses: MALFORMED when
 * the file is not a model, is truncated, or contains wrong sizes; UNSUPPORTED for sparse
 * initialisers or a rank above 8; IO when the file cannot be read. */
RFX_NODISCARD enum rfx_status rfx_onnx_model_read(struct rfx_memory *mem,
                                                  const struct rfx_weight_file *file, size_t size,
                                                  bool keep_all, struct rfx_onnx_model *out,
                                                  struct rfx_error *err);

/* Reads the sub-graph of an attribute of kind GRAPH into attr->body, unless it has been read
 * before. Nodes and initialisers that the sub-graph's outputs do not need are left out. Statuses:
 * those of rfx_onnx_model_read. */
RFX_NODISCARD enum rfx_status rfx_onnx_read_branch(const struct rfx_onnx_model *model,
                                                   struct rfx_onnx_attr *attr,
                                                   struct rfx_error *err);

/* Reads all nodes of a function into function->body, unless it has been read before. Statuses:
 * those of rfx_onnx_model_read. */
RFX_NODISCARD enum rfx_status rfx_onnx_read_function(const struct rfx_onnx_model *model,
                                                     struct rfx_onnx_function *function,
                                                     struct rfx_error *err);

/* Frees the model's arena. A model of zeros is allowed. */
void rfx_onnx_model_free(struct rfx_onnx_model *model);

/* Creates an arena for many small allocations that are freed together. Returns NULL when there is
 * no memory. */
struct rfx_arena *rfx_arena_create(struct rfx_memory *mem);
void rfx_arena_free(struct rfx_arena *arena);

/* Returns count * size zeroed bytes, aligned to 16 bytes. The product is overflow-checked. Returns
 * NULL when there is no memory. */
void *rfx_arena_alloc(struct rfx_arena *arena, size_t count, size_t size);
#endif
