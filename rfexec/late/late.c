/* Life of a program of late nodes; see late.h. */
#include "rfexec/late/late.h"

#include <string.h>

#include "layers/core/checked.h"

bool rfx_late_elems(const struct rfx_shape *shape, int64_t *elems) {
    int64_t n = 1, bytes; /* n: as if dims of 0 were 1, so that each part of the product fits too */
    bool empty = false;
    for (int i = 0; i < shape->rank; i++) {
        empty = empty || shape->dims[i] == 0;
        if (shape->dims[i] < 0 || !rfx_checked_mul_i64(n, rfx_max_i64(shape->dims[i], 1), &n))
            return false;
    }
    if (!rfx_checked_mul_i64(n, (int64_t)sizeof(int64_t), &bytes)) return false;
    *elems = empty ? 0 : n;
    return true;
}

struct rfx_late *rfx_late_create(struct rfx_memory *mem) {
    struct rfx_late *late = rfx_memory_calloc(mem, 1, sizeof *late);
    if (late != NULL) late->mem = mem;
    return late;
}

/* Branches lie in each other as deep as the import allows (RFX_ONNX_INLINED_DEPTH). */
static void free_block(struct rfx_late *late, struct rfx_late_block *block) {
    for (size_t i = 0; i < block->n; i++) {
        struct rfx_late_node *node = &block->nodes[i];
        for (int b = 0; b < 2; b++) rfx_late_free_branch(late, node->branches[b]);
        rfx_memory_release(late->mem, node->name);
        rfx_memory_release(late->mem, node->in);
        rfx_memory_release(late->mem, node->list);
    }
    rfx_memory_release(late->mem, block->nodes);
    rfx_memory_release(late->mem, block->out);
}

void rfx_late_free_branch(struct rfx_late *late, struct rfx_late_block *block) {
    if (block == NULL) return;
    free_block(late, block);
    rfx_memory_release(late->mem, block);
}

void rfx_late_free(struct rfx_late *late) {
    if (late == NULL) return;
    free_block(late, &late->block);
    for (size_t i = 0; i < late->n_values; i++)
        rfx_memory_release(late->mem, late->values[i].constant.data);
    for (size_t i = 0; i < late->n_outputs; i++)
        rfx_memory_release(late->mem, late->outputs[i].name);
    rfx_memory_release(late->mem, late->values);
    rfx_memory_release(late->mem, late->outputs);
    rfx_memory_release(late->mem, late);
}

int rfx_late_add_value(struct rfx_late *late, int cut) {
    struct rfx_late_value *values = rfx_memory_reserve(
        late->mem, late->values, &late->value_capacity, late->n_values + 1, sizeof *late->values);
    if (values == NULL || late->n_values >= INT32_MAX) return -1;
    late->values = values;
    values[late->n_values] = (struct rfx_late_value){.cut = cut};
    return (int)late->n_values++;
}

int rfx_late_add_constant(struct rfx_late *late, enum rfx_type type, const struct rfx_shape *shape,
                          void **data) {
    struct rfx_late_tensor tensor = {.type = type, .shape = *shape};
    if (!rfx_late_elems(shape, &tensor.elems)) return -1;
    tensor.data = rfx_memory_calloc(late->mem, (size_t)tensor.elems, rfx_type_bytes(type));
    int value = tensor.data != NULL ? rfx_late_add_value(late, -1) : -1;
    if (value < 0) {
        rfx_memory_release(late->mem, tensor.data);
        return -1;
    }
    late->values[value].constant = tensor;
    *data = tensor.data;
    return value;
}

struct rfx_late_node *rfx_late_add_node(struct rfx_late *late, struct rfx_late_block *block,
                                        const struct rfx_late_op *op, const char *name, int n_in,
                                        int n_out) {
    size_t links = (size_t)n_in + (size_t)n_out;
    struct rfx_late_node *nodes =
        rfx_memory_reserve(late->mem, block->nodes, &block->capacity, block->n + 1, sizeof *nodes);
    if (nodes == NULL) return NULL;
    block->nodes = nodes;
    struct rfx_late_node node = {.op = op,
                                 .n_in = n_in,
                                 .n_out = n_out,
                                 .name = rfx_memory_strdup(late->mem, name),
                                 .in = rfx_memory_alloc(late->mem, links * sizeof(int))};
    if (node.name == NULL || node.in == NULL) {
        rfx_memory_release(late->mem, node.name);
        rfx_memory_release(late->mem, node.in);
        return NULL;
    }
    for (size_t i = 0; i < links; i++) node.in[i] = -1;
    node.out = node.in + n_in;
    nodes[block->n] = node;
    late->n_nodes++;
    return &nodes[block->n++];
}

struct rfx_late_block *rfx_late_add_branch(struct rfx_late *late, int n_out) {
    struct rfx_late_block *block = rfx_memory_calloc(late->mem, 1, sizeof *block);
    if (block == NULL) return NULL;
    block->out = rfx_memory_alloc(late->mem, (size_t)n_out * sizeof *block->out);
    if (block->out == NULL) {
        rfx_memory_release(late->mem, block);
        return NULL;
    }
    for (int i = 0; i < n_out; i++) block->out[i] = -1;
    block->n_out = n_out;
    return block;
}

struct rfx_late_output *rfx_late_add_output(struct rfx_late *late, const char *name, int value) {
    struct rfx_late_output *outputs = rfx_memory_reserve(
        late->mem, late->outputs, &late->output_capacity, late->n_outputs + 1, sizeof *outputs);
    char *copy = outputs != NULL ? rfx_memory_strdup(late->mem, name) : NULL;
    if (outputs != NULL) late->outputs = outputs;
    if (copy == NULL) return NULL;
    outputs[late->n_outputs] = (struct rfx_late_output){.name = copy, .value = value, .rank = -1};
    return &outputs[late->n_outputs++];
}
