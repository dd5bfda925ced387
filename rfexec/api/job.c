/* Sources, plans and sessions of the public header's calls; see job.h. */
#include "rfexec/api/job.h"

#include "layers/core/checked.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/late_job.h"
#include "rfexec/api/output_parts.h"
#include "rfexec/api/step_teller.h"
#include "rfexec/late/late.h"
#include "rfexec/shards/masked_run.h"
#include "tiler/plan/plan_file.h"

static const struct rfx_tensor *input_of(const struct rfx_job *job) {
    return &job->graph->nodes[job->graph->input].out;
}

static bool is_stop_wanted(void *user) {
    const struct rfx_run_options *options = user;
    return options->stop(options->user) != 0;
}

/* From here on the job's allocator calls options.stop. */
static void ask_caller(struct rfx_job *job) {
    if (job->options.stop != NULL) rfx_memory_set_stop(job->mem, is_stop_wanted, &job->options);
}

static enum rfx_status read_files(struct rfx_job *job, struct rfx_error *err) {
    if (job->graph->late != NULL) return rfx_late_job_read_files(job, err);
    return rfx_result_files_read(&job->options, job->graph, job->mem, &job->files, err);
}

/* Returns the memory that a run takes besides plan and source. */
static size_t beside_bytes(const struct rfx_job *job) {
    if (job->graph->late != NULL) return rfx_late_job_bytes(job);
    return rfx_result_files_bytes(&job->files, job->graph);
}

enum rfx_status rfx_job_open(struct rfx_job *job, const struct rfx_graph *graph,
                             struct rfx_memory *mem, const struct rfx_run_options *options,
                             struct rfx_error *err) {
    *job = (struct rfx_job){.graph = graph, .mem = mem};
    struct rfx_run_options read;
    enum rfx_status status = rfx_api_read_run_options(options, &read, err);
    if (status != RFX_OK) return status;
    job->options = read;
    job->threads_given = options != NULL && options->threads != 0;
    ask_caller(job);
    return read_files(job, err);
}

/* Refuses a mask in a call that plans the whole output, or runs such a plan. */
static enum rfx_status refuse_mask(const struct rfx_job *job, struct rfx_error *err) {
    if (job->options.mask == NULL) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "mask is for runs of a network: each rectangle of the mask has a plan of its "
                    "own, and this call is about a plan of the whole output");
}

enum rfx_status rfx_job_wake(struct rfx_job *job, const struct rfx_run_options *options,
                             struct rfx_error *err) {
    struct rfx_run_options read;
    enum rfx_status status = rfx_api_read_run_options(options, &read, err);
    if (status != RFX_OK) return status;
    read.memory_bytes = job->options.memory_bytes;
    read.threads = job->options.threads;
    read.spill_folder = job->options.spill_folder;
    job->options = read;
    ask_caller(job);
    rfx_result_files_free(&job->files);
    status = refuse_mask(job, err);
    if (status != RFX_OK) return status;
    return read_files(job, err);
}

/* Closes the source. */
static void drop_source(struct rfx_job *job) {
    rfx_image_free(job->image);
    job->image = NULL;
}

void rfx_job_rest(struct rfx_job *job) {
    drop_source(job);
    if (job->options.stop != NULL) rfx_memory_set_stop(job->mem, NULL, NULL);
    job->options.stop = NULL;
}

void rfx_job_close(struct rfx_job *job) {
    rfx_result_files_free(&job->files);
    rfx_run_release(&job->run);
    rfx_plan_free(job->own_plan);
    rfx_plan_free(job->smallest);
    rfx_job_rest(job);
}

enum rfx_status rfx_job_set_outputs(struct rfx_job *job, float *const *outputs, int n_outputs,
                                    struct rfx_error *err) {
    const struct rfx_late *late = job->graph->late;
    const int n = late != NULL ? (int)late->n_outputs : job->graph->n_outputs;
    job->outputs = outputs;
    for (int k = 0; late != NULL && outputs != NULL && k < n && k < n_outputs; k++)
        if (outputs[k] != NULL)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "an array for output '%.200s', whose size depends on data: such "
                            "outputs go to files or `write`",
                            late->outputs[k].name);
    bool elsewhere = job->options.write != NULL || job->files.n > 0;
    if (outputs != NULL && n_outputs == n) return RFX_OK;
    if (outputs == NULL && n_outputs == 0 && elsewhere) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "room for %d outputs, the network has %d",
                    outputs != NULL ? n_outputs : 0, n);
}

/* Opens a picture. A file that cannot be opened is MALFORMED, like a broken one. */
static enum rfx_status open_picture(struct rfx_memory *mem, const char *picture,
                                    const struct rfx_image_options *options, struct rfx_image **out,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_image_open(mem, picture, options, out, err);
    status = rfx_memory_settle(mem, status, err);
    return status == RFX_STATUS_IO ? rfx_api_opening(status, picture) : status;
}

enum rfx_status rfx_job_picture_traits(const char *picture, const struct rfx_run_options *read,
                                       struct rfx_source_traits *traits, struct rfx_error *err) {
    struct rfx_image_bands bands;
    struct rfx_image_options options = rfx_api_image_options(read, 0, &bands);
    struct rfx_image *image = NULL;
    struct rfx_memory *mem = rfx_memory_create(0);
    if (mem == NULL)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "no memory for the header of a picture");
    options.max_pixels = 0; /* reads only the header */
    enum rfx_status status = open_picture(mem, picture, &options, &image, err);
    if (status == RFX_OK) *traits = rfx_image_traits(image);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status;
}

/* Opens the picture with the number of channels that it has. If that is not the network's number,
 * or if mean or std have a number for each channel, opens the picture once more with the network's
 * number of channels. MALFORMED: the picture's size is not the network's. */
enum rfx_status rfx_job_use_picture(struct rfx_job *job, const char *picture,
                                    struct rfx_error *err) {
    struct rfx_memory *mem = job->mem;
    const struct rfx_tensor *input = input_of(job);
    struct rfx_image_bands bands;
    struct rfx_image_options options = rfx_api_image_options(&job->options, 0, &bands);
    enum rfx_status status = open_picture(mem, picture, &options, &job->image, err);
    if (status != RFX_OK) return status;
    bool counted =
        options.n_mean > 1 || options.n_std > 1; /* the counts must match the network's channels */
    if (rfx_image_traits(job->image).c != input->c || counted) {
        drop_source(job);
        options.channels = input->c;
        status = open_picture(mem, picture, &options, &job->image, err);
        if (status != RFX_OK) return status;
    }
    job->traits = rfx_image_traits(job->image);
    if (job->traits.h == input->h && job->traits.w == input->w && job->traits.c == input->c)
        return job->files.n == 0 && job->options.mask == NULL
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
    enum rfx_status status =
        rfx_image_from_array(job->mem, values, input->c, input->h, input->w, &job->image, err);
    if (status == RFX_OK) job->traits = rfx_image_traits(job->image);
    return status;
}

/* Calls the caller's read function for a rectangle. */
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

static enum rfx_status use_samples(struct rfx_job *job, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(job);
    const struct rfx_source *source = &job->source;
    struct rfx_image_bands bands;
    const struct rfx_image_options options = rfx_api_image_options(&job->options, 0, &bands);
    struct rfx_image_samples samples = {.samples = source->samples,
                                        .bits = source->sample_bits,
                                        .steps = {.row = source->row_step,
                                                  .column = source->column_step,
                                                  .channel = source->channel_step}};
    if (source->row_step == 0 && source->column_step == 0 && source->channel_step == 0)
        samples.steps =
            (struct rfx_image_steps){.row = input->w, .column = 1, .channel = input->h * input->w};
    return rfx_image_from_samples(job->mem, &samples, &options, input->c, input->h, input->w,
                                  &job->image, err);
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
        status = rfx_image_from_reader(job->mem, &reader, input->c, input->h, input->w, &job->image,
                                       err);
    } else if (source->samples != NULL) {
        status = use_samples(job, err);
    } else if (source->row_step == 0 && source->column_step == 0 && source->channel_step == 0) {
        return rfx_job_use_values(job, source->values, err);
    } else {
        const struct rfx_image_steps steps = {.row = source->row_step,
                                              .column = source->column_step,
                                              .channel = source->channel_step};
        status = rfx_image_from_steps(job->mem, source->values, steps, input->c, input->h, input->w,
                                      &job->image, err);
    }
    if (status == RFX_OK) job->traits = rfx_image_traits(job->image);
    return status;
}

void rfx_job_follow(struct rfx_job *job, const struct rfx_plan *plan,
                    const struct rfx_packed_weights *weights) {
    job->plan = plan;
    job->weights = weights;
}

/* Sets the request to the plan of options.plan_file, if there is one. */
static enum rfx_status read_plan_file(const struct rfx_job *job, struct rfx_plan_request *request,
                                      struct rfx_plan_file **file, struct rfx_error *err) {
    if (job->options.plan_file == NULL) return RFX_OK;
    int threads = request->threads;
    enum rfx_status status = rfx_plan_file_read(job->graph, job->options.plan_file, file, err);
    if (status != RFX_OK) return status;
    rfx_plan_file_apply(*file, request);
    if (job->threads_given) request->threads = threads;
    return RFX_OK;
}

enum rfx_status rfx_job_plan(struct rfx_job *job, struct rfx_error *err) {
    struct rfx_plan_file *file = NULL;
    enum rfx_status status = refuse_mask(job, err);
    if (status != RFX_OK) return status;
    if (!rfx_checked_add_size(job->traits.fixed_bytes, beside_bytes(job), &job->traits.fixed_bytes))
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                        "the outputs need more bytes than there are addresses");
    struct rfx_plan_request request = {.source = job->traits,
                                       .threads = job->options.threads,
                                       .memory_bytes = job->options.memory_bytes,
                                       .emit_outputs = true,
                                       .may_spill = job->options.spill_folder != NULL,
                                       .caches = rfx_machine_caches()};
    status = read_plan_file(job, &request, &file, err);
    if (status == RFX_OK)
        status =
            rfx_plan_create_or_smallest(job->graph, &request, &job->own_plan, &job->smallest, err);
    rfx_plan_file_free(file);
    job->plan = job->own_plan;
    return rfx_memory_settle(job->mem, status, err);
}

enum rfx_status rfx_job_prepare(struct rfx_job *job, struct rfx_error *err) {
    job->run = (struct rfx_run){.plan = job->plan, .weights = job->weights, .mem = job->mem};
    return rfx_run_prepare(&job->run, err);
}

/* Called between the steps of a run. The allocator cannot call options.stop there, because a run
 * allocates nothing. */
static int is_cancelled(void *user, int64_t done, int64_t total) {
    const struct rfx_step_teller *teller = user;
    const struct rfx_run_options *options = teller->options;
    if (teller->ends) return 1;
    if (options->stop != NULL && options->stop(options->user) != 0) return 1;
    return options->progress != NULL ? options->progress(options->user, done, total) : 0;
}

/* Checks, under a budget, that source and files need no more memory than the plan reserved: the
 * plan may have been made for another source. */
static enum rfx_status check_room(const struct rfx_job *job, struct rfx_error *err) {
    struct rfx_source_traits traits = rfx_image_traits(job->image);
    size_t rows = (size_t)rfx_max_i64(job->plan->window_rows, 1);
    size_t source = traits.fixed_bytes + rows * traits.window_row_bytes;
    size_t files = beside_bytes(job);
    if (job->options.memory_bytes == 0 || source + files <= job->plan->bytes.source) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "the plan was made with %.2f MiB for the image and the files of outputs; these "
                    "take %.2f and %.2f MiB: plan with the picture and the files",
                    (double)job->plan->bytes.source / (1 << 20), (double)source / (1 << 20),
                    (double)files / (1 << 20));
}

/* Takes an output of a round of states: its result goes nowhere, only its state counts. */
static enum rfx_status take_nothing(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                    const struct rfx_view *view, struct rfx_error *err) {
    (void)user, (void)end, (void)rect, (void)view, (void)err;
    return RFX_OK;
}

/* Opens the files that receive outputs. */
static enum rfx_status begin_outputs(void *user, struct rfx_error *err) {
    struct rfx_job *job = user;
    if (job->graph->late != NULL) return rfx_late_job_begin(job, err);
    enum rfx_status status =
        rfx_result_files_open(&job->files, job->graph, job->options.as_stored != 0, err);
    for (int i = 0; job->options.mask != NULL && i < job->files.n && status == RFX_OK; i++)
        status = rfx_output_stream_any_order(job->files.items[i].stream, err);
    return status;
}

/* Completes the files, unless the observer has stopped the run after its last step. */
static enum rfx_status end_outputs(void *user, struct rfx_error *err) {
    struct rfx_job *job = user;
    enum rfx_status status = RFX_OK;
    if (job->teller != NULL && job->teller->ends)
        return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped after the last of %lld steps",
                        (long long)job->teller->steps);
    if (job->graph->late != NULL) status = rfx_late_job_end(job, err);
    if (status != RFX_OK) return status;
    return rfx_result_files_commit(&job->files, job->options.stop, job->options.user, err);
}

enum rfx_status rfx_job_execute(struct rfx_job *job, struct rfx_error *err) {
    enum rfx_status status = check_room(job, err);
    if (status != RFX_OK) return status;
    const bool late = job->graph->late != NULL;
    const struct rfx_output_sink sink = {.begin = begin_outputs,
                                         .look = late ? NULL : rfx_output_look,
                                         .write = job->states != NULL ? take_nothing
                                                  : late              ? rfx_late_job_take
                                                                      : rfx_output_take_part,
                                         .end = end_outputs,
                                         .user = job};
    struct rfx_step_teller teller;
    struct rfx_run *run = &job->run;
    rfx_step_teller_begin(&teller, &job->options, job->graph, job->plan, job->mem);
    teller.no_outputs = job->states != NULL || late;
    job->teller = &teller;
    run->sink = &sink;
    run->states = job->states;
    run->sums = job->sums;
    run->spill_folder = job->options.spill_folder;
    run->observer = job->options.observe != NULL ? &teller.observer : NULL;
    run->progress = is_cancelled;
    run->user = &teller;
    status = rfx_run_image(run, job->image, NULL, err);
    run->sink = NULL;
    run->observer = NULL;
    job->teller = NULL;
    rfx_result_files_close(&job->files);
    rfx_late_job_release(job);
    return rfx_memory_settle(job->mem, status, err);
}

/* Finds the output of a mask: the only one that goes to an array, a file or options.write. */
static enum rfx_status choose_output(const struct rfx_job *job, int *out, struct rfx_error *err) {
    int n = 0;
    for (int k = 0; k < job->graph->n_outputs; k++) {
        bool wanted = job->options.write != NULL ||
                      (job->outputs != NULL && job->outputs[k] != NULL) ||
                      rfx_result_files_item(&job->files, k) != NULL;
        n += wanted;
        if (wanted) *out = k;
    }
    if (n == 1) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "mask is of one output: of %d outputs %d have an array, a file or `write`",
                    job->graph->n_outputs, n);
}

static enum rfx_status check_masked(const struct rfx_job *job, struct rfx_error *err) {
    const char *other = job->options.observe != NULL     ? "observe"
                        : job->options.plan_file != NULL ? "plan_file"
                                                         : NULL;
    if (other != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "mask excludes %s: each rectangle of the mask has a plan of its own",
                        other);
    if (job->graph->late != NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "mask is of a map, and the sizes of the outputs depend on data");
    if (job->graph->base == NULL) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "mask is of a whole output, and this network is a part of one");
}

/* A run with options.mask. */
struct masked_job {
    struct rfx_job *job;
    struct rfx_masked_run run;
};

/* Called between the steps of a rectangle. Progress counts the pixels of all rectangles. */
static int tell_masked(void *user, int64_t done, int64_t total) {
    const struct masked_job *masked = user;
    const struct rfx_run_options *options = &masked->job->options;
    if (options->stop != NULL && options->stop(options->user) != 0) return 1;
    if (options->progress == NULL || total == 0) return 0;
    double share = (double)done / (double)total * (double)rfx_rect_area(masked->run.rect);
    return options->progress(options->user, masked->run.done_pixels + (int64_t)share,
                             masked->run.pixels);
}

/* The function rfx_masked_run.make. */
static enum rfx_status make_rect(void *user, struct rfx_graph *part,
                                 const struct rfx_output_sink *sink, struct rfx_error *err) {
    struct masked_job *masked = user;
    struct rfx_job job = {.graph = part != NULL ? part : masked->job->graph,
                          .mem = masked->job->mem,
                          .options = masked->job->options,
                          .threads_given = masked->job->threads_given,
                          .traits = masked->job->traits};
    job.options.mask = NULL;
    enum rfx_status status = rfx_job_plan(&job, err);
    if (status == RFX_OK && sink != NULL) status = rfx_job_prepare(&job, err);
    if (status == RFX_OK && sink != NULL) {
        job.run.sink = sink;
        job.run.spill_folder = job.options.spill_folder;
        job.run.progress = tell_masked;
        job.run.user = masked;
        status = rfx_run_image(&job.run, masked->job->image, NULL, err);
    }
    rfx_run_release(&job.run);
    rfx_plan_free(job.own_plan);
    rfx_plan_free(job.smallest);
    return rfx_memory_settle(job.mem, status, err);
}

enum rfx_status rfx_job_run_masked(struct rfx_job *job, struct rfx_error *err) {
    const struct rfx_output_sink sink = {
        .begin = begin_outputs, .write = rfx_output_take_part, .end = end_outputs, .user = job};
    struct masked_job masked = {.job = job,
                                .run = {.mem = job->mem,
                                        .graph = job->graph,
                                        .path = job->options.mask,
                                        .no_data = job->files.geo.geo.no_data,
                                        .memory_bytes = job->options.memory_bytes,
                                        .make = make_rect,
                                        .user = &masked,
                                        .to = &sink}};
    job->files.no_data = masked.run.no_data;
    enum rfx_status status = check_masked(job, err);
    if (status == RFX_OK) status = choose_output(job, &masked.run.k, err);
    if (status == RFX_OK) status = rfx_masked_run_open(&masked.run, err);
    if (status == RFX_OK) {
        job->traits.fixed_bytes +=
            rfx_masked_run_bytes(&masked.run) + rfx_result_files_bytes(&job->files, job->graph);
        status = rfx_masked_run_execute(&masked.run, err);
    }
    rfx_masked_run_release(&masked.run);
    rfx_result_files_close(&job->files);
    return rfx_memory_settle(job->mem, status, err);
}
