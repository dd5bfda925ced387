/* See late_outputs.h. */
#include "rfexec/late/late_outputs.h"

#include "layers/core/checked.h"
#include "rfexec/late/late_boxes.h"
#include "rfexec/output/answer_options.h"
#include "rfexec/output/output_file.h"

/* Describes output k: as it was computed or, without a run, as it is declared. */
static struct rfx_tensor tensor_of(const struct rfx_late *late, const struct rfx_late_run *run,
                                   size_t k, enum rfx_type *type) {
    const struct rfx_late_output *output = &late->outputs[k];
    struct rfx_shape shape = {.rank = output->rank < 0 ? 1 : output->rank};
    int64_t elems = 1;
    *type = output->type;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = output->rank < 0 ? 1 : rfx_max_i64(output->dims[i], 1);
    if (run != NULL) {
        shape = rfx_late_run_output(run, k)->shape;
        *type = rfx_late_run_output(run, k)->type;
    }
    if (!rfx_late_elems(&shape, &elems)) shape = (struct rfx_shape){1, {elems = 1}};
    return rfx_tensor_plain(&shape, elems);
}

void rfx_late_outputs_release(struct rfx_graph *outputs) {
    if (outputs->mem == NULL) return;
    rfx_memory_release(outputs->mem, outputs->nodes);
    rfx_memory_release(outputs->mem, outputs->outputs);
    rfx_memory_release(outputs->mem, outputs->ends);
    *outputs = (struct rfx_graph){0};
}

enum rfx_status rfx_late_outputs_describe(const struct rfx_graph *graph,
                                          const struct rfx_late_run *run, struct rfx_memory *mem,
                                          struct rfx_graph *out, struct rfx_error *err) {
    const struct rfx_late *late = graph->late;
    size_t n = late->n_outputs;
    *out = *graph;
    out->mem = mem;
    out->late = NULL;
    out->late_free = NULL;
    out->n_nodes = (int)n + 1;
    out->n_outputs = out->n_ends = out->input = (int)n;
    out->nodes = rfx_memory_calloc(mem, n + 1, sizeof *out->nodes);
    out->outputs = rfx_memory_calloc(mem, n, sizeof *out->outputs);
    out->ends = rfx_memory_calloc(mem, n, sizeof *out->ends);
    if (out->nodes == NULL || out->outputs == NULL || out->ends == NULL) {
        rfx_late_outputs_release(out);
        return rfx_memory_fail(mem, "outputs", (n + 1) * sizeof *out->nodes, err);
    }
    out->nodes[n] = graph->nodes[graph->input];
    for (size_t k = 0; k < n; ++k) {
        struct rfx_node *node = &out->nodes[k];
        struct rfx_output *output = &out->outputs[k];
        *node = (struct rfx_node){.op = RFX_OP_CONST_PLAIN, .name = late->outputs[k].name};
        *output = (struct rfx_output){.node = (int)k, .name = node->name};
        node->out = tensor_of(late, run, k, &output->stored.type);
        output->part = rfx_rect_make(0, 1, 0, 1);
        if (late->outputs[k].boxes) output->stored.head = RFX_LATE_BOXES_HEAD;
        out->ends[k] = (struct rfx_end){(int)k, (int)k, node->out.elems, {.channel_step = 1}};
    }
    return RFX_OK;
}

enum rfx_status rfx_late_outputs_pass(const struct rfx_graph *outputs,
                                      const struct rfx_late_run *run,
                                      const struct rfx_output_sink *sink, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < outputs->n_outputs && status == RFX_OK; ++k) {
        const struct rfx_late_tensor *tensor = rfx_late_run_output(run, (size_t)k);
        struct rfx_view view = {.data = tensor->data,
                                .rect = rfx_rect_make(0, 1, 0, 1),
                                .c = tensor->elems,
                                .row_stride = tensor->elems,
                                .type = tensor->type};
        status = sink->write(sink->user, &outputs->ends[k], view.rect, &view, err);
    }
    return status;
}

enum rfx_status rfx_late_outputs_try(struct rfx_memory *mem, const char *path,
                                     struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    if (path == NULL) return RFX_OK;
    enum rfx_status status = rfx_output_file_open(mem, path, &file, err);
    rfx_output_file_free(file);
    return status;
}

size_t rfx_late_most_bytes(const struct rfx_graph *graph, size_t chosen, bool budget) {
    struct rfx_answer_options answer = {.most_bytes = chosen};
    rfx_answer_limit(&answer, budget);
    if (chosen > 0 || answer.most_bytes == 0) return answer.most_bytes;
    /* The first late nodes make tensors as large as the cut tensors, and indices of elements. */
    size_t sum = answer.most_bytes, cut = rfx_late_cut_bytes(graph);
    bool fits = rfx_checked_add_size(sum, cut, &sum) && rfx_checked_add_size(sum, cut, &sum);
    return fits ? sum : SIZE_MAX;
}

size_t rfx_late_beside_bytes(const struct rfx_graph *graph, size_t most_bytes) {
    size_t sum = rfx_late_cut_bytes(graph);
    if (most_bytes == 0) most_bytes = RFX_ANSWER_BYTES;
    return rfx_checked_add_size(sum, most_bytes, &sum) ? sum : SIZE_MAX;
}
