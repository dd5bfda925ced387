/* The interpreter: values, their memory, and the order of nodes; see late_run.h. */
#include "rfexec/late/late_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/late/late_ops.h"
#include "rfexec/output/output_sink.h"

struct rfx_late_run {
    const struct rfx_late *late;
    const struct rfx_graph *graph;
    struct rfx_memory *mem;
    size_t most, held, high;        /* bytes of tensors and working memory, without cut tensors */
    struct rfx_late_tensor *values; /* constants belong to the program; data NULL: not made yet */
    int *readers;                   /* that have not run yet */
};

static struct rfx_late_tensor cut_tensor(const struct rfx_graph *graph, int k) {
    struct rfx_late_tensor tensor = {.type = graph->outputs[k].stored.type,
                                     .shape = rfx_output_shape(graph, k),
                                     .elems = graph->nodes[graph->outputs[k].node].out.elems};
    return tensor;
}

static size_t tensor_bytes(const struct rfx_late_tensor *tensor) {
    return (size_t)tensor->elems * rfx_type_bytes(tensor->type);
}

size_t rfx_late_cut_bytes(const struct rfx_graph *graph) {
    size_t sum = 0;
    for (int k = 0; k < graph->late->n_cuts; k++) {
        const struct rfx_late_tensor tensor = cut_tensor(graph, k);
        if (!rfx_checked_add_size(sum, tensor_bytes(&tensor), &sum)) return SIZE_MAX;
    }
    return sum;
}

/* Counts the readers of values in a block: operands of nodes, and results of branches. */
static void count_readers(struct rfx_late_run *run, const struct rfx_late_block *block) {
    for (size_t i = 0; i < block->n; i++) {
        const struct rfx_late_node *node = &block->nodes[i];
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] >= 0) run->readers[node->in[k]]++;
        for (int b = 0; b < 2; b++)
            if (node->branches[b] != NULL) count_readers(run, node->branches[b]);
    }
    for (int k = 0; k < block->n_out; k++)
        if (block->out[k] >= 0) run->readers[block->out[k]]++;
}

enum rfx_status rfx_late_run_create(const struct rfx_graph *graph, struct rfx_memory *mem,
                                    size_t most_bytes, struct rfx_late_run **out,
                                    struct rfx_error *err) {
    const struct rfx_late *late = graph->late;
    size_t n = late->n_values, bytes = sizeof(struct rfx_late_run);
    struct rfx_late_run *run = rfx_memory_calloc(mem, 1, bytes);
    if (run == NULL) return rfx_memory_fail(mem, "late nodes", bytes, err);
    *run = (struct rfx_late_run){.late = late, .graph = graph, .mem = mem, .most = most_bytes};
    run->values = rfx_memory_calloc(mem, n, sizeof *run->values);
    run->readers = rfx_memory_calloc(mem, n, sizeof *run->readers);
    bool room = run->values != NULL && run->readers != NULL;
    bytes = n * (sizeof *run->values + sizeof *run->readers);
    for (size_t i = 0; room && i < n; i++) {
        const struct rfx_late_value *value = &late->values[i];
        run->values[i] = value->constant;
        if (value->cut < 0) continue;
        run->values[i] = cut_tensor(graph, value->cut);
        bytes = tensor_bytes(&run->values[i]);
        run->values[i].data = rfx_memory_alloc(mem, bytes);
        room = run->values[i].data != NULL;
    }
    if (!room) {
        rfx_late_run_free(run);
        return rfx_memory_fail(mem, "tensors of late nodes", bytes, err);
    }
    count_readers(run, &late->block);
    for (size_t i = 0; i < late->n_outputs; i++) run->readers[late->outputs[i].value]++;
    *out = run;
    return RFX_OK;
}

static bool is_constant(const struct rfx_late_run *run, size_t value) {
    return run->late->values[value].constant.data != NULL;
}

void rfx_late_run_free(struct rfx_late_run *run) {
    if (run == NULL) return;
    for (size_t i = 0; run->values != NULL && i < run->late->n_values; i++)
        if (!is_constant(run, i)) rfx_memory_release(run->mem, run->values[i].data);
    rfx_memory_release(run->mem, run->values);
    rfx_memory_release(run->mem, run->readers);
    rfx_memory_release(run->mem, run);
}

void rfx_late_run_take(struct rfx_late_run *run, const struct rfx_end *end, struct rfx_rect rect,
                       const struct rfx_view *view) {
    for (size_t i = 0; i < run->late->n_values; i++)
        if (run->late->values[i].cut == end->output)
            rfx_end_scatter(end, run->values[i].type, run->values[i].data, rect, view);
}

/* --- memory --- */

/* Counts `bytes` more. BUDGET_IMPOSSIBLE: they are too many. */
static bool count_in(struct rfx_late_call *call, size_t bytes) {
    struct rfx_late_run *run = call->run;
    size_t sum;
    if (!rfx_checked_add_size(run->held, bytes, &sum)) sum = SIZE_MAX;
    if (run->most > 0 && sum > run->most) {
        rfx_late_refuse(call, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "%zu bytes are needed beside the cut tensors, %zu are allowed "
                        "(--answer-memory)",
                        sum, run->most);
        return false;
    }
    run->held = sum;
    if (sum > run->high) run->high = sum;
    return true;
}

void *rfx_late_alloc(struct rfx_late_call *call, int64_t count, size_t size) {
    size_t bytes = (size_t)count * size;
    if (call->status != RFX_OK || !count_in(call, bytes)) return NULL;
    void *block = rfx_memory_alloc(call->run->mem, bytes);
    if (block != NULL) return block;
    call->run->held -= bytes;
    call->status = rfx_memory_fail(call->run->mem, call->node->name, bytes, call->err);
    return NULL;
}

void rfx_late_release(struct rfx_late_call *call, void *block, int64_t count, size_t size) {
    if (block == NULL) return;
    call->run->held -= (size_t)count * size;
    rfx_memory_release(call->run->mem, block);
}

/* Notes that a reader of a value has run; frees the value behind the last one. */
static void let_go(struct rfx_late_run *run, int value) {
    if (value < 0 || --run->readers[value] > 0 || is_constant(run, (size_t)value)) return;
    struct rfx_late_tensor *tensor = &run->values[value];
    if (tensor->data == NULL) return;
    if (run->late->values[value].cut < 0) run->held -= tensor_bytes(tensor);
    rfx_memory_release(run->mem, tensor->data);
    tensor->data = NULL;
}

/* Notes that the nodes of a branch do not run. */
static void let_go_block(struct rfx_late_run *run, const struct rfx_late_block *block) {
    for (size_t i = 0; i < block->n; i++) {
        const struct rfx_late_node *node = &block->nodes[i];
        for (int k = 0; k < node->n_in; k++) let_go(run, node->in[k]);
        for (int b = 0; b < 2; b++)
            if (node->branches[b] != NULL) let_go_block(run, node->branches[b]);
    }
    for (int k = 0; k < block->n_out; k++) let_go(run, block->out[k]);
}

/* --- for operators (late_ops.h) --- */

void rfx_late_refuse(struct rfx_late_call *call, enum rfx_status status, const char *format, ...) {
    char text[300];
    va_list args;
    if (call->status != RFX_OK) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    call->status = rfx_fail(call->err, status, "late node '%.80s' (%s): %s", call->node->name,
                            call->node->op->name, text);
}

void rfx_late_check_stop(struct rfx_late_call *call) {
    if (call->status == RFX_OK) call->status = rfx_memory_check_stop(call->run->mem, call->err);
}

const struct rfx_late_tensor *rfx_late_in(const struct rfx_late_call *call, int k) {
    if (call->status != RFX_OK || k >= call->node->n_in || call->node->in[k] < 0) return NULL;
    return &call->run->values[call->node->in[k]];
}

const struct rfx_late_tensor *rfx_late_need(struct rfx_late_call *call, int k) {
    const struct rfx_late_tensor *tensor = rfx_late_in(call, k);
    if (tensor == NULL) rfx_late_refuse(call, RFX_STATUS_MALFORMED, "operand %d is missing", k);
    return tensor;
}

bool rfx_late_gives(const struct rfx_late_call *call, int k) {
    return k < call->node->n_out && call->node->out[k] >= 0;
}

void *rfx_late_make(struct rfx_late_call *call, int k, enum rfx_type type,
                    const struct rfx_shape *shape) {
    struct rfx_late_tensor tensor = {.type = type, .shape = *shape};
    char text[RFX_SHAPE_TEXT];
    if (call->status != RFX_OK) return NULL;
    if (!rfx_late_elems(shape, &tensor.elems)) {
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "a result of shape %s is not possible",
                        rfx_shape_text(shape, "x", text));
        return NULL;
    }
    tensor.data = rfx_late_alloc(call, tensor.elems, rfx_type_bytes(type));
    if (tensor.data != NULL) call->run->values[call->node->out[k]] = tensor;
    return tensor.data;
}

void rfx_late_reshape(struct rfx_late_call *call, const struct rfx_shape *shape) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    char a[RFX_SHAPE_TEXT], b[RFX_SHAPE_TEXT];
    int64_t elems = 0;
    if (x == NULL) return;
    if (!rfx_late_elems(shape, &elems) || elems != x->elems) {
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "%s cannot become %s",
                        rfx_shape_text(&x->shape, "x", a), rfx_shape_text(shape, "x", b));
        return;
    }
    struct rfx_late_run *run = call->run;
    const int from = call->node->in[0];
    bool own = run->late->values[from].cut < 0 && !is_constant(run, (size_t)from);
    if (own && run->readers[from] == 1) {
        run->values[call->node->out[0]] = *x;
        run->values[call->node->out[0]].shape = *shape;
        run->values[from].data = NULL;
        return;
    }
    void *out = rfx_late_make(call, 0, x->type, shape);
    if (out != NULL) memcpy(out, x->data, tensor_bytes(x));
}

/* --- nodes --- */

/* Makes result k of an If a copy of a value of its branch. */
static void take_result(struct rfx_late_call *call, int k, int value) {
    const struct rfx_late_tensor *x = &call->run->values[value];
    if (!rfx_late_gives(call, k)) return;
    void *out = rfx_late_make(call, k, x->type, &x->shape);
    if (out != NULL) memcpy(out, x->data, tensor_bytes(x));
}

static enum rfx_status run_block(struct rfx_late_run *run, const struct rfx_late_block *block,
                                 struct rfx_error *err);

/* Branches lie in each other as deep as the import allows (RFX_ONNX_INLINED_DEPTH). */
static void run_branch(struct rfx_late_call *call) {
    const struct rfx_late_tensor *condition = rfx_late_need(call, 0);
    if (condition != NULL && (condition->type != RFX_TYPE_BOOL || condition->elems != 1))
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "the condition has %lld elements of %s: one bool is needed",
                        (long long)condition->elems, rfx_type_name(condition->type));
    if (call->status != RFX_OK) return;
    const int other = *(const unsigned char *)condition->data != 0 ? 1 : 0;
    const struct rfx_late_block *taken = call->node->branches[1 - other];
    call->status = run_block(call->run, taken, call->err);
    if (call->status != RFX_OK) return;
    for (int k = 0; k < taken->n_out; k++) take_result(call, k, taken->out[k]);
    for (int k = 0; k < taken->n_out; k++) let_go(call->run, taken->out[k]);
    let_go_block(call->run, call->node->branches[other]);
}

/* Frees results that nobody reads. */
static void drop_unread(struct rfx_late_run *run, const struct rfx_late_node *node) {
    for (int k = 0; k < node->n_out; k++) {
        if (node->out[k] < 0 || run->readers[node->out[k]] > 0) continue;
        run->readers[node->out[k]] = 1;
        let_go(run, node->out[k]);
    }
}

static enum rfx_status run_block(struct rfx_late_run *run, const struct rfx_late_block *block,
                                 struct rfx_error *err) {
    for (size_t i = 0; i < block->n; i++) {
        const struct rfx_late_node *node = &block->nodes[i];
        struct rfx_late_call call = {.run = run, .node = node, .err = err};
        rfx_late_check_stop(&call);
        if (call.status == RFX_OK && node->op->run != NULL) node->op->run(&call);
        if (call.status == RFX_OK && node->op->run == NULL) run_branch(&call);
        if (call.status != RFX_OK) return call.status;
        for (int k = 0; k < node->n_in; k++) let_go(run, node->in[k]);
        drop_unread(run, node);
    }
    return RFX_OK;
}

enum rfx_status rfx_late_run_nodes(struct rfx_late_run *run, struct rfx_error *err) {
    return run_block(run, &run->late->block, err);
}

const struct rfx_late_tensor *rfx_late_run_output(const struct rfx_late_run *run, size_t k) {
    return &run->values[run->late->outputs[k].value];
}

enum rfx_status rfx_late_run_floats(const struct rfx_late_run *run, size_t k, float **floats,
                                    struct rfx_error *err) {
    const struct rfx_late_tensor *tensor = rfx_late_run_output(run, k);
    const char *name = run->late->outputs[k].name;
    size_t bytes = (size_t)tensor->elems * sizeof(float);
    if (run->most > 0 && bytes > run->most - run->held)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "output '%.80s': %zu bytes are needed beside the cut tensors, %zu are "
                        "allowed (--answer-memory)",
                        name, run->held + bytes, run->most);
    *floats = rfx_memory_alloc(run->mem, bytes);
    if (*floats == NULL) return rfx_memory_fail(run->mem, name, bytes, err);
    rfx_type_gather(tensor->type, tensor->data, 1, tensor->elems, RFX_TYPE_FLOAT32, *floats);
    return RFX_OK;
}

size_t rfx_late_run_high_water_bytes(const struct rfx_late_run *run) {
    return run->high;
}
