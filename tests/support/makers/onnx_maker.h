/* A minimal protocol buffer writer that makes small ONNX models in memory, independent of the
 * library's reader: field numbers are written out by hand from onnx.proto. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_ONNX_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_ONNX_MAKER_H

#include <stddef.h>
#include <stdint.h>

struct maker {
    uint8_t bytes[65536]; /* asserted to be enough */
    size_t size;
};

/* Appends `field` as a varint, as bytes, as text, or as a finished message. */
void maker_int(struct maker *m, int field, int64_t value);
void maker_bytes(struct maker *m, int field, const void *data, size_t size);
void maker_text(struct maker *m, int field, const char *text);
void maker_message(struct maker *m, int field, const struct maker *inner);

/* Appends `field` as a fixed 32-bit value. */
void maker_float(struct maker *m, int field, float value);

/* Into a graph: an input or output of `rank` dims (0: symbolic), of floats or of an element type of
 * ONNX, a float tensor as raw_data, an int64 tensor as int64_data. */
void maker_value(struct maker *graph, int field, const char *name, const int64_t *dims, int rank);
void maker_typed_value(struct maker *graph, int field, const char *name, int of_type,
                       const int64_t *dims, int rank);
void maker_floats(struct maker *graph, const char *name, const int64_t *dims, int rank,
                  const float *values);
void maker_ints(struct maker *graph, const char *name, const int64_t *values, int count);
void maker_int_tensor(struct maker *graph, const char *name, const int64_t *dims, int rank,
                      const int64_t *values);

/* Starts a node: its inputs and outputs are space-separated; "_" is an empty name. */
void maker_node(struct maker *node, const char *op, const char *in, const char *out);
void maker_attr_int(struct maker *node, const char *name, int64_t value);
void maker_attr_float(struct maker *node, const char *name, float value);
void maker_attr_text(struct maker *node, const char *name, const char *value);
void maker_attr_ints(struct maker *node, const char *name, const int64_t *values, int count);

/* Adds a node to a graph: without attributes, with one integer, with a list of them. */
void maker_add(struct maker *graph, const char *op, const char *in, const char *out);
void maker_add_int(struct maker *graph, const char *op, const char *in, const char *out,
                   const char *name, int64_t value);
void maker_add_ints(struct maker *graph, const char *op, const char *in, const char *out,
                    const char *name, const int64_t *values, int count);

/* Wraps a graph as a model of that opset and writes it to `path`. */
void maker_model(const struct maker *graph, int64_t opset, struct maker *model);
void maker_save(const struct maker *model, const char *path);

/* Makes the model of one convolution, from image (1, 1, 5, 5) to y. `weights`: the TensorProto of
 * its weights, whose name must be "k". */
void maker_conv_model(const struct maker *weights, struct maker *model);

/* Writes the model of a graph that is followed by `count` pieces, in each of which every "00000000"
 * is replaced by the piece's number: for models that do not fit struct maker. */
void maker_save_repeated(const struct maker *graph, int64_t opset, const struct maker *piece,
                         int count, const char *path);

enum {
    MAKER_NODE = 1,
    MAKER_INITIALISER = 5,
    MAKER_INPUT = 11,
    MAKER_OUTPUT = 12
}; /* fields of GraphProto */
#endif
