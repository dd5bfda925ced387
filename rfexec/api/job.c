/* Sources, plans and sessions of the public header's calls; see job.h. */
#include "rfexec/api/job.h"

#include "rfexec/api/api_support.h"
#include "rfexec/api/output_parts.h"
#include "rfexec/api/step_teller.h"

static const struct rfx_tensor *input_of(const struct rfx_job *job) {
    return &job->graph->nodes[job->graph->input].out;
}

static bool is_stop_wanted(void *user) {
    const struct rfx_run_options *options = user;
    return options->stop(options->user) != 0;
}

/* From here on the graph's allocator asks the caller whether to stop. */
static void ask_caller(struct rfx_job *job) {
    if (job->options.stop != NULL)
        rfx_memory_set_stop(job->graph->mem, is_stop_wanted, &job->options);
}

enum rfx_status rfx_job_open(struct rfx_job *job, struct rfx_graph *graph,
                             const struct rfx_run_options *options, struct rfx_error *err) {
    *job = (struct rfx_job){.graph = graph};
    struct rfx_run_options read;
    enum rfx_status status = rfx_api_read_run_options(options, &read, err);
    if (status != RFX_OK) return status;
    job->options = read;
    ask_caller(job);
    return rfx_result_files_read(&job->options, graph, &job->files, err);
}

enum rfx_status rfx_job_wake(struct rfx_job *job, const struct rfx_run_options *options,
                             struct rfx_error *err) {
    struct rfx_run_options read;
    enum rfx_status status = rfx_api_read_run_options(options, &read, err);
    if (status != RFX_OK) return status;
    job->options.progress = read.progress;
    job->options.observe = read.observe;
    job->options.stop = read.stop;
    job->options.write = read.write;
    job->options.user = read.user;
    job->options.typed_outputs = read.typed_outputs;
    ask_caller(job);
    return RFX_OK;
}

void rfx_job_drop_source(struct rfx_job *job) {
    rfx_image_free(job->image);
    job->image = NULL;
}

void rfx_job_rest(struct rfx_job *job) {
    rfx_job_drop_source(job);
    if (job->options.stop != NULL) rfx_memory_set_stop(job->graph->mem, NULL, NULL);
    job->options.stop = NULL;
}

void rfx_job_close(struct rfx_job *job) {
    rfx_result_files_free(&job->files);
    rfx_session_free(job->session);
    rfx_plan_free(job->plan);
    rfx_plan_free(job->smallest);
    rfx_job_rest(job);
}

enum rfx_status rfx_job_set_outputs(struct rfx_job *job, float *const *outputs, int n_outputs,
                                    struct rfx_error *err) {
    job->outputs = outputs;
    if (outputs != NULL && n_outputs == job->graph->n_outputs) return RFX_OK;
    bool elsewhere = job->options.write != NULL || job->files.n > 0;
    if (outputs == NULL && n_outputs == 0 && elsewhere) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "room for %d outputs, the network has %d",
                    outputs != NULL ? n_outputs : 0, job->graph->n_outputs);
}

enum rfx_status rfx_job_open_picture(struct rfx_memory *mem, const char *picture,
                                     const struct rfx_image_options *options,
                                     struct rfx_image **out, struct rfx_error *err) {
    enum rfx_status status = rfx_image_open(mem, picture, options, out, err);
    status = rfx_memory_settle(mem, status, err);
    return status == RFX_STATUS_IO ? rfx_api_opening(status, picture) : status;
}

/* Opens the picture with the channels that it has, or else with those that the network takes. */
enum rfx_status rfx_job_use_picture(struct rfx_job *job, const char *picture,
                                    struct rfx_error *err) {
    struct rfx_memory *mem = job->graph->mem;
    const struct rfx_tensor *input = input_of(job);
    struct rfx_image_bands bands;
    struct rfx_image_options options = rfx_api_image_options(&job->options, 0, &bands);
    enum rfx_status status = rfx_job_open_picture(mem, picture, &options, &job->image, err);
    if (status != RFX_OK) return status;
    bool counted = options.n_mean > 1 || options.n_std > 1; /* held against the network's */
    if (rfx_image_traits(job->image).c != input->c || counted) {
        rfx_job_drop_source(job);
        options.channels = input->c;
        status = rfx_job_open_picture(mem, picture, &options, &job->image, err);
        if (status != RFX_OK) return status;
    }
    job->traits = rfx_image_traits(job->image);
    if (job->traits.h == input->h && job->traits.w == input->w && job->traits.c == input->c)
        return job->files.n == 0
                   ? RFX_OK
                   : rfx_geo_source_of(mem, job->image, picture, options.page, options.region.y0,
                                       options.region.x0, &job->files.geo, err);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "the network takes %lldx%lldx%lld (channels, rows, columns), '%.200s' is "
                    "%lldx%lldx%lld",
                    (long long)input->c, (long long)input->h, (long long)input->w, picture,
                    (long long)job->traits.c, (long long)job->traits.h, (long long)job->traits.w);
}

enum rfx_status rfx_job_use_values(struct rfx_job *job, const float *values,
                                   struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(job);
    enum rfx_status status = rfx_image_from_array(job->graph->mem, values, input->c, input->h,
                                                  input->w, &job->image, err);
    if (status == RFX_OK) job->traits = rfx_image_traits(job->image);
    return status;
}

/* Asks the caller's source for a rectangle. */
static int read_part(void *user, struct rfx_rect rect, struct rfx_image_steps steps,
                     float *values) {
    const struct rfx_job *job = user;
    const struct rfx_area part = {.row = rect.y0,
                                  .column = rect.x0,
                                  .rows = rfx_rect_rows(rect),
                                  .columns = rfx_rect_cols(rect),
                                  .channels = input_of(job)->c,
                                  .row_step = steps.row,
                                  .column_step = steps.column,
                                  .channel_step = steps.channel};
    return job->source.read(job->source.user, &part, values);
}

enum rfx_status rfx_job_use_source(struct rfx_job *job, const struct rfx_source *source,
                                   struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(job);
    enum rfx_status status = rfx_api_read_source(source, &job->source, err);
    if (status != RFX_OK) return status;
    source = &job->source;
    if (source->read != NULL) {
        const struct rfx_image_reader reader = {
            .read = read_part, .user = job, .concurrent = source->concurrent != 0};
        status = rfx_image_from_reader(job->graph->mem, &reader, input->c, input->h, input->w,
                                       &job->image, err);
    } else if (source->row_step == 0 && source->column_step == 0 && source->channel_step == 0) {
        return rfx_job_use_values(job, source->values, err);
    } else {
        const struct rfx_image_steps steps = {.row = source->row_step,
                                              .column = source->column_step,
                                              .channel = source->channel_step};
        status = rfx_image_from_steps(job->graph->mem, source->values, steps, input->c, input->h,
                                      input->w, &job->image, err);
    }
    if (status == RFX_OK) job->traits = rfx_image_traits(job->image);
    return status;
}

enum rfx_status rfx_job_plan(struct rfx_job *job, struct rfx_error *err) {
    job->traits.fixed_bytes += rfx_result_files_bytes(&job->files, job->graph);
    struct rfx_plan_request request = {.source = job->traits,
                                       .threads = job->options.threads,
                                       .memory_bytes = job->options.memory_bytes,
                                       .emit_outputs = true,
                                       .may_spill = job->options.spill_folder != NULL,
                                       .caches = rfx_machine_caches()};
    enum rfx_status status =
        rfx_plan_create_or_smallest(job->graph, &request, &job->plan, &job->smallest, err);
    return rfx_memory_settle(job->graph->mem, status, err);
}

enum rfx_status rfx_job_prepare(struct rfx_job *job, struct rfx_error *err) {
    enum rfx_status status = rfx_session_create(job->graph, job->plan, &job->session, err);
    return rfx_memory_settle(job->graph->mem, status, err);
}

/* Between the steps of a run, which allocates nothing and so is not asked by the allocator. */
static int is_cancelled(void *user, int64_t done, int64_t total) {
    const struct rfx_step_teller *teller = user;
    const struct rfx_run_options *options = teller->options;
    if (teller->ends) return 1;
    if (options->stop != NULL && options->stop(options->user) != 0) return 1;
    return options->progress != NULL ? options->progress(options->user, done, total) : 0;
}

enum rfx_status rfx_job_execute(struct rfx_job *job, struct rfx_error *err) {
    const struct rfx_output_sink sink = {
        .look = rfx_output_look, .write = rfx_output_take_part, .user = job};
    struct rfx_step_teller teller;
    rfx_step_teller_begin(&teller, &job->options, job->graph, job->plan);
    rfx_session_set_sink(job->session, &sink);
    rfx_session_set_spill_folder(job->session, job->options.spill_folder);
    rfx_session_set_observer(job->session, job->options.observe != NULL ? &teller.observer : NULL);
    enum rfx_status status =
        rfx_result_files_open(&job->files, job->graph, job->options.as_stored != 0, err);
    if (status == RFX_OK)
        status = rfx_session_run(job->session, job->image, is_cancelled, &teller, NULL, err);
    rfx_session_set_observer(job->session, NULL);
    rfx_session_set_sink(job->session, NULL);
    if (status == RFX_OK && teller.ends)
        status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped after the last of %lld steps",
                          (long long)teller.steps);
    if (status == RFX_OK)
        status = rfx_result_files_commit(&job->files, job->options.stop, job->options.user, err);
    rfx_result_files_close(&job->files);
    return rfx_memory_settle(job->graph->mem, status, err);
}
