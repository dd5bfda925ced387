/* Networks of the public header: a graph with an allocator of its own. A run makes source, plan and
 * session, and frees them at its end (job.h); runners keep the latter two (runner.c).
 *
 * Invariants: 1. nothing is kept from one call to the next but the graph; 2. outputs are taken
 * while the run goes on wherever the plan hands them out, so that a budget has no room for them. */
#include "rfexec/api/network.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "layers/graph/graph.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/job.h"
#include "rfexec/image/image_source.h"
#include "rfexec/session/model.h"

struct rfx_network {
    struct rfx_memory *mem;
    bool owns_mem;
    struct rfx_graph *graph;
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
        status = rfx_job_open_picture(mem, picture, &options, &image, &err);
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

enum rfx_code rfx_network_predict(struct rfx_network *network, const char *picture,
                                  const struct rfx_run_options *options,
                                  struct rfx_forecast *forecast, struct rfx_why *why) {
    static const float nothing; /* a plan does not look at values */
    struct rfx_job job = {0};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_check_forecast(forecast, &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    status = rfx_job_open(&job, network->graph, options, &err);
    if (status == RFX_OK)
        status = picture != NULL ? rfx_job_use_picture(&job, picture, &err)
                                 : rfx_job_use_values(&job, &nothing, &err);
    if (status == RFX_OK) status = rfx_job_plan(&job, &err);
    const struct rfx_plan *plan = status == RFX_OK ? job.plan : job.smallest;
    if (plan != NULL) rfx_api_write_forecast_of(plan, forecast);
    rfx_job_close(&job);
    return rfx_api_result(status, &err, why);
}

/* Runs on the first of the three that is not NULL. */
static enum rfx_code run(struct rfx_network *network, const char *picture, const float *values,
                         const struct rfx_source *source, float *const *outputs, int n_outputs,
                         const struct rfx_run_options *options, struct rfx_why *why) {
    struct rfx_job job;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_job_open(&job, network->graph, options, &err);
    if (status == RFX_OK) status = rfx_job_set_outputs(&job, outputs, n_outputs, &err);
    if (status == RFX_OK) {
        if (picture != NULL)
            status = rfx_job_use_picture(&job, picture, &err);
        else if (values != NULL)
            status = rfx_job_use_values(&job, values, &err);
        else if (source != NULL)
            status = rfx_job_use_source(&job, source, &err);
        else
            status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT,
                              "neither a picture nor values nor a source");
    }
    if (status == RFX_OK) status = rfx_job_plan(&job, &err);
    if (status == RFX_OK) status = rfx_job_prepare(&job, &err);
    if (status == RFX_OK) status = rfx_job_execute(&job, &err);
    rfx_job_close(&job);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_network_run_file(struct rfx_network *network, const char *picture,
                                   float *const *outputs, int n_outputs,
                                   const struct rfx_run_options *options, struct rfx_why *why) {
    return run(network, picture, NULL, NULL, outputs, n_outputs, options, why);
}

enum rfx_code rfx_network_run_values(struct rfx_network *network, const float *values,
                                     float *const *outputs, int n_outputs,
                                     const struct rfx_run_options *options, struct rfx_why *why) {
    return run(network, NULL, values, NULL, outputs, n_outputs, options, why);
}

enum rfx_code rfx_network_run_source(struct rfx_network *network, const struct rfx_source *source,
                                     float *const *outputs, int n_outputs,
                                     const struct rfx_run_options *options, struct rfx_why *why) {
    return run(network, NULL, NULL, source, outputs, n_outputs, options, why);
}

struct rfx_graph *rfx_network_graph(struct rfx_network *network) {
    return network->graph;
}
