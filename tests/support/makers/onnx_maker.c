/* Small ONNX models, byte by byte. */
#include "tests/support/makers/onnx_maker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct maker *m, const void *data, size_t size) {
    if (m->size + size > sizeof m->bytes) abort();
    if (size != 0) memcpy(m->bytes + m->size, data, size);
    m->size += size;
}

static void put_varint(struct maker *m, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(m, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

void maker_int(struct maker *m, int field, int64_t value) {
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, (uint64_t)value);
}

void maker_bytes(struct maker *m, int field, const void *data, size_t size) {
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, size);
    put(m, data, size);
}

void maker_float(struct maker *m, int field, float value) {
    put_varint(m, (uint64_t)field << 3 | 5);
    put(m, &value, sizeof value);
}

void maker_text(struct maker *m, int field, const char *text) {
    maker_bytes(m, field, text, strlen(text));
}

void maker_message(struct maker *m, int field, const struct maker *inner) {
    maker_bytes(m, field, inner->bytes, inner->size);
}

void maker_value(struct maker *graph, int field, const char *name, const int64_t *dims, int rank) {
    maker_typed_value(graph, field, name, 1, dims, rank);
}

void maker_typed_value(struct maker *graph, int field, const char *name, int of_type,
                       const int64_t *dims, int rank) {
    static struct maker shape, tensor, type, value;
    shape.size = tensor.size = type.size = value.size = 0;
    for (int i = 0; i < rank; i++) {
        static struct maker dim;
        dim.size = 0;
        if (dims[i] > 0)
            maker_int(&dim, 1, dims[i]);
        else
            maker_text(&dim, 2, "s");
        maker_message(&shape, 1, &dim);
    }
    maker_int(&tensor, 1, of_type);
    maker_message(&tensor, 2, &shape);
    maker_message(&type, 1, &tensor);
    maker_text(&value, 1, name);
    maker_message(&value, 2, &type);
    maker_message(graph, field, &value);
}

void maker_floats(struct maker *graph, const char *name, const int64_t *dims, int rank,
                  const float *values) {
    static struct maker tensor;
    size_t count = 1;
    tensor.size = 0;
    for (int i = 0; i < rank; i++) {
        maker_int(&tensor, 1, dims[i]);
        count *= (size_t)dims[i];
    }
    maker_int(&tensor, 2, 1);
    maker_text(&tensor, 8, name);
    maker_bytes(&tensor, 9, values, count * sizeof *values);
    maker_message(graph, 5, &tensor);
}

void maker_ints(struct maker *graph, const char *name, const int64_t *values, int count) {
    const int64_t dim = count;
    maker_int_tensor(graph, name, &dim, 1, values);
}

void maker_int_tensor(struct maker *graph, const char *name, const int64_t *dims, int rank,
                      const int64_t *values) {
    static struct maker tensor, packed;
    int64_t count = 1;
    tensor.size = packed.size = 0;
    for (int i = 0; i < rank; i++) {
        maker_int(&tensor, 1, dims[i]);
        count *= dims[i];
    }
    maker_int(&tensor, 2, 7);
    for (int64_t i = 0; i < count; i++) put_varint(&packed, (uint64_t)values[i]);
    maker_message(&tensor, 7, &packed);
    maker_text(&tensor, 8, name);
    maker_message(graph, 5, &tensor);
}

static void put_names(struct maker *node, int field, const char *names) {
    while (*names != '\0') {
        size_t n = strcspn(names, " ");
        maker_bytes(node, field, names, n == 1 && names[0] == '_' ? 0 : n);
        names += n + (names[n] == ' ');
    }
}

void maker_node(struct maker *node, const char *op, const char *in, const char *out) {
    node->size = 0;
    put_names(node, 1, in);
    put_names(node, 2, out);
    maker_text(node, 4, op);
}

void maker_attr_float(struct maker *node, const char *name, float value) {
    static struct maker attr;
    attr.size = 0;
    maker_text(&attr, 1, name);
    maker_float(&attr, 2, value);
    maker_int(&attr, 20, 1); /* FLOAT */
    maker_message(node, 5, &attr);
}

void maker_attr_int(struct maker *node, const char *name, int64_t value) {
    static struct maker attr;
    attr.size = 0;
    maker_text(&attr, 1, name);
    maker_int(&attr, 3, value);
    maker_int(&attr, 20, 2);
    maker_message(node, 5, &attr);
}

void maker_attr_text(struct maker *node, const char *name, const char *value) {
    static struct maker attr;
    attr.size = 0;
    maker_text(&attr, 1, name);
    maker_text(&attr, 4, value);
    maker_int(&attr, 20, 3);
    maker_message(node, 5, &attr);
}

void maker_attr_ints(struct maker *node, const char *name, const int64_t *values, int count) {
    static struct maker attr;
    attr.size = 0;
    maker_text(&attr, 1, name);
    for (int i = 0; i < count; i++) maker_int(&attr, 8, values[i]);
    maker_int(&attr, 20, 7);
    maker_message(node, 5, &attr);
}

void maker_add(struct maker *graph, const char *op, const char *in, const char *out) {
    static struct maker node;
    maker_node(&node, op, in, out);
    maker_message(graph, MAKER_NODE, &node);
}

void maker_add_int(struct maker *graph, const char *op, const char *in, const char *out,
                   const char *name, int64_t value) {
    static struct maker node;
    maker_node(&node, op, in, out);
    maker_attr_int(&node, name, value);
    maker_message(graph, MAKER_NODE, &node);
}

void maker_add_ints(struct maker *graph, const char *op, const char *in, const char *out,
                    const char *name, const int64_t *values, int count) {
    static struct maker node;
    maker_node(&node, op, in, out);
    maker_attr_ints(&node, name, values, count);
    maker_message(graph, MAKER_NODE, &node);
}

void maker_model(const struct maker *graph, int64_t opset, struct maker *model) {
    static struct maker import;
    import.size = model->size = 0;
    maker_int(&import, 2, opset);
    maker_int(model, 1, 8);
    maker_message(model, 7, graph);
    maker_message(model, 8, &import);
}

void maker_save(const struct maker *model, const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(model->bytes, 1, model->size, file) != model->size) abort();
    if (fclose(file) != 0) abort();
}

void maker_conv_model(const struct maker *weights, struct maker *model) {
    static struct maker graph, node;
    static const int64_t image[] = {1, 1, 5, 5};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_message(&graph, MAKER_INITIALISER, weights);
    maker_node(&node, "Conv", "image k", "y");
    maker_message(&graph, MAKER_NODE, &node);
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, 13, model);
}

void maker_save_repeated(const struct maker *graph, int64_t opset, const struct maker *piece,
                         int count, const char *path) {
    static struct maker head, import;
    static const char zeros[] = "00000000";
    size_t size = graph->size + (size_t)count * piece->size, digits = sizeof zeros - 1;
    head.size = import.size = 0;
    maker_int(&import, 2, opset);
    maker_int(&head, 1, 8);
    maker_message(&head, 8, &import);
    put_varint(&head, 7 << 3 | 2);
    put_varint(&head, size);
    put(&head, graph->bytes, graph->size);
    maker_save(&head, path);
    FILE *file = fopen(path, "ab");
    if (file == NULL) abort();
    for (int i = 0; i < count; i++) {
        static struct maker copy;
        char number[16];
        memcpy(copy.bytes, piece->bytes, piece->size);
        copy.size = piece->size;
        (void)snprintf(number, sizeof number, "%08d", i);
        for (size_t at = 0; at + digits <= piece->size; at++)
            if (memcmp(piece->bytes + at, zeros, digits) == 0)
                memcpy(copy.bytes + at, number, digits);
        if (fwrite(copy.bytes, 1, copy.size, file) != copy.size) abort();
    }
    if (fclose(file) != 0) abort();
}
