/* Networks of the public header: a graph with an allocator of its own. A run makes image, plan and
 * session, and frees them at its end.
 *
 * Invariants: 1. nothing is kept from one call to the next but the graph; 2. outputs are taken
 * while the run goes on wherever the plan hands them out, so that a budget has no room for them. */
#include "rfexec/api/network.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "layers/graph/graph.h"
#include "rfexec/api/api_support.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/session/model.h"
#include "rfexec/session/session.h"
#include "tiler/plan/plan.h"

struct rfx_network {
    struct rfx_memory *mem;
    bool owns_mem;
    struct rfx_graph *graph;
};

/* What one call makes of a network. */
struct job {
    struct rfx_network *network;
    struct rfx_run_options options;
    struct rfx_image *image;
    struct rfx_source_traits traits;
    struct rfx_plan *plan;
    struct rfx_plan *smallest; /* when none fits */
    struct rfx_session *session;
    float *const *outputs;
};

static const struct rfx_tensor *input_of(const struct rfx_network *network) {
    return &network->graph->nodes[network->graph->input].out;
}

static const struct rfx_tensor *output_of(const struct rfx_network *network, int k) {
    const struct rfx_graph *graph = network->graph;
    if (k < 0 || k >= graph->n_outputs) return NULL;
    return &graph->nodes[graph->outputs[k].node].out;
}

static enum rfx_status open_network(struct rfx_memory *mem, const char *model,
                                    const struct rfx_open_options *given, struct rfx_network **out,
                                    struct rfx_error *err) {
    struct rfx_open_options options;
    struct rfx_network *network = NULL;
    if (model == NULL) return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "no model is named");
    enum rfx_status status = rfx_api_read_open_options(given, &options, err);
    if (status != RFX_OK) return status;
    network = rfx_memory_calloc(mem, 1, sizeof *network);
    if (network == NULL) return rfx_memory_fail(mem, "network", sizeof *network, err);
    network->mem = mem;
    struct rfx_load_options load = {.h = options.rows, .w = options.columns, .seed = options.seed};
    bool known = rfx_api_conv_choice(options.convolution, &load.conv);
    assert(known);
    (void)known;
    status = rfx_model_load(mem, model, &load, &network->graph, err);
    if (status != RFX_OK) {
        rfx_memory_release(mem, network);
        if (!rfx_builtin_exists(model)) status = rfx_api_opening(status, model);
        if (strstr(err->text, model) == NULL)
            status = rfx_fail_within(err, status, "model '%.200s'", model);
        return status;
    }
    *out = network;
    return RFX_OK;
}

enum rfx_code rfx_network_open_in(struct rfx_memory *mem, const char *model,
                                  const struct rfx_open_options *options, struct rfx_network **out,
                                  struct rfx_why *why) {
    struct rfx_error err = {{0}};
    return rfx_api_result(open_network(mem, model, options, out, &err), &err, why);
}

enum rfx_code rfx_network_open(const char *model, const struct rfx_open_options *options,
                               struct rfx_network **out, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    struct rfx_memory *mem = rfx_memory_create(0);
    if (mem == NULL) return rfx_api_result(RFX_STATUS_OUT_OF_MEMORY, &err, why);
    enum rfx_status status = open_network(mem, model, options, out, &err);
    if (status == RFX_OK)
        (*out)->owns_mem = true;
    else
        rfx_memory_free(mem);
    return rfx_api_result(status, &err, why);
}

void rfx_network_free(struct rfx_network *network) {
    if (network == NULL) return;
    struct rfx_memory *mem = network->mem;
    bool owns_mem = network->owns_mem;
    rfx_graph_free(network->graph);
    rfx_memory_release(mem, network);
    if (owns_mem) rfx_memory_free(mem);
}

void rfx_network_input_shape(const struct rfx_network *network, int64_t dims[4]) {
    memcpy(dims, input_of(network)->shape.dims, 4 * sizeof *dims);
}

const char *rfx_network_input_name(const struct rfx_network *network) {
    return network->graph->nodes[network->graph->input].name;
}

int rfx_network_output_count(const struct rfx_network *network) {
    return network->graph->n_outputs;
}

const char *rfx_network_output_name(const struct rfx_network *network, int k) {
    return output_of(network, k) != NULL ? network->graph->outputs[k].name : NULL;
}

_Static_assert(RFX_MAX_DIMS == RFX_MAX_RANK, "shapes have room for every dimension");

int rfx_network_output_shape(const struct rfx_network *network, int k, int64_t dims[RFX_MAX_DIMS]) {
    const struct rfx_tensor *t = output_of(network, k);
    if (t == NULL) return -1;
    memcpy(dims, t->shape.dims, (size_t)t->shape.rank * sizeof *dims);
    return t->shape.rank;
}

int64_t rfx_network_output_elements(const struct rfx_network *network, int k) {
    const struct rfx_tensor *t = output_of(network, k);
    return t != NULL ? t->elems : -1;
}

static enum rfx_status open_picture(struct rfx_memory *mem, const char *picture,
                                    const struct rfx_image_options *options, struct rfx_image **out,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_image_open(mem, picture, options, out, err);
    return status == RFX_STATUS_IO ? rfx_api_opening(status, picture) : status;
}

enum rfx_code rfx_picture_size(const char *picture, int64_t *rows, int64_t *columns,
                               int64_t *channels, struct rfx_why *why) {
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_error err = {{0}};
    struct rfx_image *image = NULL;
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    struct rfx_memory *mem = rfx_memory_create(0);
    options.channels = 0;   /* as the file has them */
    options.max_pixels = 0; /* only the header is read */
    if (mem != NULL && picture == NULL)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT, "no picture is named");
    else if (mem != NULL)
        status = open_picture(mem, picture, &options, &image, &err);
    if (status == RFX_OK) {
        struct rfx_source_traits traits = rfx_image_traits(image);
        *rows = traits.h;
        *columns = traits.w;
        if (channels != NULL) *channels = traits.c;
    }
    rfx_image_free(image);
    rfx_memory_free(mem);
    return rfx_api_result(status, &err, why);
}

/* Opens the picture with the channels that it has, or else with those that the network takes. */
static enum rfx_status job_open_file(struct job *job, const char *picture, struct rfx_error *err) {
    struct rfx_memory *mem = job->network->mem;
    const struct rfx_tensor *input = input_of(job->network);
    struct rfx_image_options options = rfx_api_image_options(&job->options, 0);
    enum rfx_status status = open_picture(mem, picture, &options, &job->image, err);
    if (status != RFX_OK) return status;
    if (rfx_image_traits(job->image).c != input->c) {
        rfx_image_free(job->image);
        job->image = NULL;
        options.channels = input->c;
        status = open_picture(mem, picture, &options, &job->image, err);
        if (status != RFX_OK) return status;
    }
    job->traits = rfx_image_traits(job->image);
    if (job->traits.h == input->h && job->traits.w == input->w && job->traits.c == input->c)
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "the network takes %lldx%lldx%lld (channels, rows, columns), '%.200s' is "
                    "%lldx%lldx%lld",
                    (long long)input->c, (long long)input->h, (long long)input->w, picture,
                    (long long)job->traits.c, (long long)job->traits.h, (long long)job->traits.w);
}

static enum rfx_status job_open_values(struct job *job, const float *values,
                                       struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(job->network);
    enum rfx_status status = rfx_image_from_array(job->network->mem, values, input->c, input->h,
                                                  input->w, &job->image, err);
    if (status == RFX_OK) job->traits = rfx_image_traits(job->image);
    return status;
}

static enum rfx_status job_plan(struct job *job, struct rfx_error *err) {
    struct rfx_plan_request request = {.source = job->traits,
                                       .threads = job->options.threads,
                                       .memory_bytes = job->options.memory_bytes,
                                       .emit_outputs = true,
                                       .may_spill = job->options.spill_folder != NULL,
                                       .caches = rfx_machine_caches()};
    return rfx_plan_create_or_smallest(job->network->graph, &request, &job->plan, &job->smallest,
                                       err);
}

static bool is_stop_wanted(void *user) {
    const struct rfx_run_options *options = user;
    return options->stop(options->user) != 0;
}

/* From here on the network's allocator asks the caller whether to stop, until job_close. */
static void job_open(struct job *job) {
    if (job->options.stop != NULL)
        rfx_memory_set_stop(job->network->mem, is_stop_wanted, &job->options);
}

static void job_close(struct job *job) {
    rfx_session_free(job->session);
    rfx_plan_free(job->plan);
    rfx_plan_free(job->smallest);
    rfx_image_free(job->image);
    if (job->options.stop != NULL) rfx_memory_set_stop(job->network->mem, NULL, NULL);
}

static struct rfx_forecast forecast_of(const struct rfx_plan *plan) {
    struct rfx_forecast f = {.size = sizeof f,
                             .peak_bytes = plan->peak_bytes,
                             .activation_bytes = plan->bytes.arena,
                             .weight_bytes = plan->bytes.weights,
                             .scratch_bytes = plan->bytes.scratch,
                             .picture_bytes = plan->bytes.source,
                             .reserve_bytes = plan->bytes.reserve,
                             .macs = plan->macs,
                             .macs_whole = plan->macs_untiled,
                             .spilled_bytes = plan->spill.most};
    rfx_plan_describe(plan, f.plan, sizeof f.plan);
    return f;
}

enum rfx_code rfx_network_predict(struct rfx_network *network, const char *picture,
                                  const struct rfx_run_options *options,
                                  struct rfx_forecast *forecast, struct rfx_why *why) {
    static const float nothing; /* a plan does not look at values */
    struct job job = {.network = network};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_check_forecast(forecast, &err);
    if (status == RFX_OK) status = rfx_api_read_run_options(options, &job.options, &err);
    if (status == RFX_OK) job_open(&job);
    if (status == RFX_OK)
        status = picture != NULL ? job_open_file(&job, picture, &err)
                                 : job_open_values(&job, &nothing, &err);
    if (status == RFX_OK) status = job_plan(&job, &err);
    const struct rfx_plan *plan = status == RFX_OK ? job.plan : job.smallest;
    if (plan != NULL) {
        struct rfx_forecast known = forecast_of(plan);
        rfx_api_write_forecast(&known, forecast);
    }
    job_close(&job);
    return rfx_api_result(status, &err, why);
}

/* Scatters a part of a map into the caller's values, rows x columns x channels to ONNX order. */
static enum rfx_status take_part(void *user, int k, struct rfx_rect rect,
                                 const struct rfx_view *view, struct rfx_error *err) {
    const struct job *job = user;
    const struct rfx_tensor *t = output_of(job->network, k);
    float *out = job->outputs[k]; /* [c, h, w] */
    (void)err;
    if (out == NULL) return RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t c = 0; c < t->c; c++)
            for (int64_t x = rect.x0; x < rect.x1; x++)
                out[(c * t->h + y) * t->w + x] = rfx_one_nan(rfx_view_at(view, y, x)[c]);
    return RFX_OK;
}

/* Between the steps of a run, which allocates nothing and so is not asked by the allocator. */
static int is_cancelled(void *user, int64_t done, int64_t total) {
    const struct rfx_run_options *options = user;
    if (options->stop != NULL && options->stop(options->user) != 0) return 1;
    return options->progress != NULL ? options->progress(options->user, done, total) : 0;
}

static enum rfx_status job_execute(struct job *job, struct rfx_error *err) {
    const struct rfx_output_sink sink = {.write = take_part, .user = job, .any_order = true};
    const struct rfx_network *network = job->network;
    enum rfx_status status = rfx_session_create(network->graph, job->plan, &job->session, err);
    if (status != RFX_OK) return status;
    rfx_session_set_sink(job->session, &sink);
    rfx_session_set_spill_folder(job->session, job->options.spill_folder);
    status = rfx_session_run(job->session, job->image, is_cancelled, &job->options, NULL, err);
    rfx_session_set_sink(job->session, NULL);
    for (int k = 0; k < network->graph->n_outputs && status == RFX_OK; k++)
        if (job->outputs[k] != NULL && rfx_session_output_is_stored(job->session, k))
            rfx_session_output_read(job->session, k, 0, output_of(network, k)->elems,
                                    job->outputs[k]);
    return status;
}

/* Runs on `picture`, or on `values` when it is NULL. */
static enum rfx_code run(struct rfx_network *network, const char *picture, const float *values,
                         float *const *outputs, int n_outputs,
                         const struct rfx_run_options *options, struct rfx_why *why) {
    struct job job = {.network = network, .outputs = outputs};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_read_run_options(options, &job.options, &err);
    if (status == RFX_OK && (outputs == NULL || n_outputs != network->graph->n_outputs))
        status =
            rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT, "room for %d outputs, the network has %d",
                     outputs != NULL ? n_outputs : 0, network->graph->n_outputs);
    if (status == RFX_OK) job_open(&job);
    if (status == RFX_OK && picture == NULL && values == NULL)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT, "neither a picture nor values");
    if (status == RFX_OK)
        status = picture != NULL ? job_open_file(&job, picture, &err)
                                 : job_open_values(&job, values, &err);
    if (status == RFX_OK) status = job_plan(&job, &err);
    if (status == RFX_OK) status = job_execute(&job, &err);
    job_close(&job);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_network_run_file(struct rfx_network *network, const char *picture,
                                   float *const *outputs, int n_outputs,
                                   const struct rfx_run_options *options, struct rfx_why *why) {
    return run(network, picture, NULL, outputs, n_outputs, options, why);
}

enum rfx_code rfx_network_run_values(struct rfx_network *network, const float *values,
                                     float *const *outputs, int n_outputs,
                                     const struct rfx_run_options *options, struct rfx_why *why) {
    return run(network, NULL, values, outputs, n_outputs, options, why);
}
