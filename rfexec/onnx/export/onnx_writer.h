/* Collects the nodes and constants of an ONNX model and writes them into a file.
 *
 * The first error stays in the writer, and rfx_onnx_writer_save returns it. Weights are read from
 * the graph in small pieces while the file is written. The file appears under its name only when it
 * is complete. Strings that are passed in are copied. */
#ifndef RFX_RFEXEC_ONNX_EXPORT_ONNX_WRITER_H
#define RFX_RFEXEC_ONNX_EXPORT_ONNX_WRITER_H

#include "rfexec/onnx/export/quantisation.h"

enum { RFX_ONNX_MAX_INPUTS = 6, RFX_ONNX_MAX_ATTRS = 8, RFX_ONNX_MAX_INTS = 2 * RFX_MAX_RANK };

struct rfx_onnx_attr {
    const char *name; /* a literal */
    enum { RFX_ONNX_INT, RFX_ONNX_INTS, RFX_ONNX_FLOAT, RFX_ONNX_STRING } kind;
    int count;
    int64_t ints[RFX_ONNX_MAX_INTS];
    float value;
    const char *text; /* a literal */
};

struct rfx_onnx_node {
    const char *op; /* a literal */
    const char *name;
    const char *output;
    const char *unused; /* an unread output of the node that precedes `output`, or NULL */
    int n_in, n_attrs;
    const char **in;
    struct rfx_onnx_attr attrs[RFX_ONNX_MAX_ATTRS + 1]; /* the last one is never written */
};

/* Weights as integers in [-127, 127]. Element i belongs to output channel (i / block) % channels.
 * Its integer is the weight times the channel's factor (NULL: 1), divided by the channel's scale,
 * rounded to the nearest, halves to the even one. */
struct rfx_onnx_rounding {
    int64_t block, channels;
    const float *factors, *scales; /* borrowed as long as the writer */
};

/* A constant: a weight of the graph, as it is or rounded to int8; owned values; or one float
 * repeated. */
struct rfx_onnx_constant {
    const char *name;
    struct rfx_shape shape;
    enum rfx_type type;
    enum { RFX_ONNX_WEIGHT, RFX_ONNX_ROUNDED, RFX_ONNX_VALUES, RFX_ONNX_FILL } kind;
    int weight;
    int64_t elems;
    const void *values; /* VALUES: little endian */
    float fill;
    struct rfx_onnx_rounding rounding;
};

struct rfx_onnx_value { /* an input or output; a dimension name replaces the number */
    const char *name;
    struct rfx_shape shape;
    enum rfx_type type;
    const char *dim_names[RFX_MAX_RANK];
};

struct rfx_onnx_writer {
    const struct rfx_graph *graph;
    struct rfx_memory *mem;
    struct rfx_error *err;
    enum rfx_status status;
    struct rfx_onnx_node unwritten; /* rfx_onnx_node returns this node after an error */
    struct rfx_onnx_text *texts;    /* all strings and tables, freed together */
    struct rfx_onnx_node **nodes;
    struct rfx_onnx_constant *constants;
    struct rfx_onnx_value *inputs, *outputs;
    int n_nodes, n_constants, n_inputs, n_outputs;
    int node_capacity, constant_capacity, input_capacity, output_capacity;
};

void rfx_onnx_writer_init(struct rfx_onnx_writer *w, const struct rfx_graph *graph,
                          struct rfx_error *err);
void rfx_onnx_writer_free(struct rfx_onnx_writer *w);

/* Returns a string formatted as by printf. The string is valid as long as the writer. Returns ""
 * after an error. */
const char *rfx_onnx_text(struct rfx_onnx_writer *w, const char *format, ...) RFX_PRINTF(2, 3);

/* Adds a node with up to RFX_ONNX_MAX_INPUTS inputs (NULL ends the list) and returns it. The
 * pointer stays valid as long as the writer. It is never NULL: after an error the function returns
 * a node that is not written. */
struct rfx_onnx_node *rfx_onnx_node(struct rfx_onnx_writer *w, const char *op, const char *name,
                                    const char *output, const char *const *in, int n_in);
void rfx_onnx_int(struct rfx_onnx_node *node, const char *name, int64_t value);
void rfx_onnx_ints(struct rfx_onnx_node *node, const char *name, const int64_t *values, int count);
void rfx_onnx_float(struct rfx_onnx_node *node, const char *name, float value);
void rfx_onnx_string(struct rfx_onnx_node *node, const char *name, const char *text);

/* Add a constant and return its name. A constant whose name exists already is not added. */
const char *rfx_onnx_weight(struct rfx_onnx_writer *w, const char *name, int weight,
                            struct rfx_shape shape);
const char *rfx_onnx_int64(struct rfx_onnx_writer *w, const char *name, const int64_t *values,
                           int64_t count);
const char *rfx_onnx_fill(struct rfx_onnx_writer *w, const char *name, struct rfx_shape shape,
                          float value);
/* Copies the values, elements of `type`. */
const char *rfx_onnx_values(struct rfx_onnx_writer *w, const char *name, enum rfx_type type,
                            struct rfx_shape shape, const void *values);
const char *rfx_onnx_rounded(struct rfx_onnx_writer *w, const char *name, int weight,
                             struct rfx_shape shape, const struct rfx_onnx_rounding *rounding);

void rfx_onnx_value(struct rfx_onnx_writer *w, bool output, const struct rfx_onnx_value *value);

/* Writes the model to `path`. The bytes go to a temporary file in the same folder, which is renamed
 * when it is complete. Statuses: UNSUPPORTED when the model exceeds the 2 GiB that a protobuf file
 * can hold; IO with the system's reason. */
RFX_NODISCARD enum rfx_status rfx_onnx_writer_save(struct rfx_onnx_writer *w, const char *path);

/* Makes the model without writing it (quantisation.h). The graph must outlive it, and what the
 * roundings borrow; the writer need not. */
RFX_NODISCARD enum rfx_status rfx_onnx_writer_make(struct rfx_onnx_writer *w,
                                                   struct rfx_onnx_made **out);
#endif
