/* See late_job.h. */
#include "rfexec/api/late_job.h"

#include "layers/core/checked.h"
#include "rfexec/api/output_parts.h"
#include "rfexec/late/late_outputs.h"

enum rfx_status rfx_late_job_read_files(struct rfx_job *job, struct rfx_error *err) {
    struct rfx_graph declared;
    enum rfx_status status = rfx_late_outputs_describe(job->graph, NULL, job->mem, &declared, err);
    if (status == RFX_OK)
        status = rfx_result_files_read(&job->options, &declared, job->mem, &job->files, err);
    rfx_late_outputs_release(&declared);
    return status;
}

static size_t most_bytes(const struct rfx_job *job) {
    return rfx_late_most_bytes(job->graph, job->files.answer_bytes, job->options.memory_bytes > 0);
}

/* Returns the memory of .npy files for outputs that have no file. */
static size_t npy_bytes(const struct rfx_job *job, const struct rfx_graph *declared) {
    const struct rfx_output_files files = {.graph = declared, .mem = job->mem};
    struct rfx_output_files_bytes sum = {0};
    for (int k = 0; k < declared->n_outputs; k++) {
        struct rfx_output_format format = {.kind = &rfx_output_npy};
        if (rfx_result_files_item(&job->files, k) != NULL) continue;
        rfx_output_declare(&format, declared, k);
        rfx_output_files_add(&sum, &files, k, &format);
    }
    return rfx_output_files_sum(&sum, &files);
}

size_t rfx_late_job_bytes(const struct rfx_job *job) {
    struct rfx_graph declared;
    size_t sum = rfx_late_beside_bytes(job->graph, most_bytes(job));
    if (rfx_late_outputs_describe(job->graph, NULL, job->mem, &declared, NULL) != RFX_OK)
        return SIZE_MAX;
    size_t files = rfx_result_files_bytes(&job->files, &declared) + npy_bytes(job, &declared);
    rfx_late_outputs_release(&declared);
    return rfx_checked_add_size(sum, files, &sum) ? sum : SIZE_MAX;
}

enum rfx_status rfx_late_job_begin(struct rfx_job *job, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < job->files.n && status == RFX_OK; i++)
        status = rfx_late_outputs_try(job->mem, job->files.items[i].path, err);
    if (status != RFX_OK) return status;
    return rfx_late_run_create(job->graph, job->mem, most_bytes(job), &job->late, err);
}

enum rfx_status rfx_late_job_take(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    const struct rfx_job *job = user;
    (void)err;
    rfx_late_run_take(job->late, end, rect, view);
    return RFX_OK;
}

/* Passes an output on. options.write receives floats for every type. */
static enum rfx_status pass(void *user, const struct rfx_end *end, struct rfx_rect rect,
                            const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_job *outputs = user;
    float *floats = NULL;
    bool shown = outputs->options.write != NULL &&
                 rfx_result_files_item(&outputs->files, end->output) == NULL;
    if (!shown || view->type == RFX_TYPE_FLOAT32)
        return rfx_output_take_part(outputs, end, rect, view, err);
    enum rfx_status status = rfx_late_run_floats(outputs->late, (size_t)end->output, &floats, err);
    if (status != RFX_OK) return status;
    struct rfx_view converted = *view;
    converted.data = floats;
    converted.type = RFX_TYPE_FLOAT32;
    status = rfx_output_take_part(outputs, end, rect, &converted, err);
    rfx_memory_release(outputs->mem, floats);
    return status;
}

enum rfx_status rfx_late_job_end(struct rfx_job *job, struct rfx_error *err) {
    struct rfx_graph found = {0};
    struct rfx_job outputs = {.graph = &found,
                              .mem = job->mem,
                              .options = job->options,
                              .files = job->files,
                              .late = job->late};
    const struct rfx_output_sink sink = {.write = pass, .user = &outputs};
    enum rfx_status status = rfx_late_run_nodes(job->late, err);
    if (status == RFX_OK)
        status = rfx_late_outputs_describe(job->graph, job->late, job->mem, &found, err);
    for (int i = 0; i < job->files.n && status == RFX_OK; i++)
        rfx_output_declare(&job->files.items[i].format, &found, job->files.items[i].output);
    if (status == RFX_OK)
        status = rfx_result_files_open(&job->files, &found, job->options.as_stored != 0, err);
    if (status == RFX_OK) status = rfx_late_outputs_pass(&found, job->late, &sink, err);
    rfx_late_outputs_release(&found);
    return status;
}

void rfx_late_job_release(struct rfx_job *job) {
    rfx_late_run_free(job->late);
    job->late = NULL;
}
