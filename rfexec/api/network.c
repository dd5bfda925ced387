/* Networks of the public header: a graph with an allocator of its own. A run makes a source, a plan
 * and a session, and frees them at its end (job.h). A runner keeps plan and session (runner.c).
 *
 * Invariants: 1. a network keeps nothing but its graph from one call to the next; 2. outputs are
 * passed to the caller during the run wherever the plan allows that, so that the budget holds no
 * copy of them. */
#include "rfexec/api/network.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/float_env.h"
#include "layers/graph/graph.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/job.h"
#include "rfexec/image/image_source.h"
#include "rfexec/late/late.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/head_file.h"
#include "rfexec/run/model.h"

struct rfx_network {
    struct rfx_memory *mem;
    bool owns_mem;
    struct rfx_graph *graph;
    struct rfx_fit_size fit; /* padding that the graph was loaded with */
    char hash[RFX_FINGERPRINT_CHARS];
    /* in a part: the network whose graph and memory it uses; else NULL */
    struct rfx_network *whole;
    /* number of users (the caller, parts and runners); the last one frees the network */
    atomic_int users;
};

static struct rfx_network *create_network(struct rfx_memory *mem, struct rfx_error *err) {
    struct rfx_network *network = rfx_memory_calloc(mem, 1, sizeof *network);
    if (network == NULL) {
        (void)rfx_memory_fail(mem, "network", sizeof *network, err);
        return NULL;
    }
    network->mem = mem;
    atomic_init(&network->users, 1);
    return network;
}

void rfx_network_keep(struct rfx_network *network) {
    (void)atomic_fetch_add(&network->users, 1);
}

static const struct rfx_tensor *input_of(const struct rfx_network *network) {
    return &network->graph->nodes[network->graph->input].out;
}

/* Returns output k; NULL: there is none, or it is one of late nodes. */
static const struct rfx_tensor *output_of(const struct rfx_network *network, int k) {
    if (network == NULL || network->graph->late != NULL || k < 0 || k >= network->graph->n_outputs)
        return NULL;
    return &network->graph->nodes[network->graph->outputs[k].node].out;
}

enum rfx_status rfx_network_name_failure(enum rfx_status status, const char *model,
                                         struct rfx_error *err) {
    if (!rfx_builtin_exists(model)) status = rfx_api_opening(status, model);
    return strstr(err->text, model) != NULL ? status
                                            : rfx_fail_within(err, status, "model '%.200s'", model);
}

static enum rfx_status load_graph(struct rfx_memory *mem, const struct rfx_network_origin *origin,
                                  const struct rfx_load_options *options, struct rfx_graph **out,
                                  struct rfx_error *err) {
    enum rfx_status status;
    if (origin->files != NULL)
        status = rfx_onnx_load_files(mem, origin->files, options, out, err);
    else if (origin->name != NULL)
        status = rfx_model_load(mem, origin->name, options, out, err);
    else
        status = rfx_onnx_load_bytes(mem, origin->bytes, origin->n_bytes, options, out, err);
    if (status == RFX_OK) return RFX_OK;
    return origin->name != NULL ? rfx_network_name_failure(status, origin->name, err)
                                : rfx_fail_within(err, status, "model in memory");
}

enum rfx_status rfx_network_load(struct rfx_memory *mem, const struct rfx_network_origin *origin,
                                 const struct rfx_open_options *options, struct rfx_network **out,
                                 struct rfx_error *err) {
    struct rfx_load_options load = {
        .h = options->rows, .w = options->columns, .seed = options->seed};
    bool known = rfx_api_conv_choice(options->convolution, &load.conv) &&
                 rfx_api_int8_choice(options->int8, &load.int8) &&
                 rfx_api_pad_mode(options->padding, &load.fit.mode);
    load.fit.multiple = options->pad_to;
    load.dequantize = options->dequantize != 0;
    load.join_heads = options->join_heads != 0;
    load.late = options->late_nodes != 0;
    assert(known);
    (void)known;
    struct rfx_detector detector;
    enum rfx_status status = RFX_OK;
    if (options->head_file != NULL) {
        status = rfx_head_file_read(mem, options->head_file, &detector, err);
        if (status != RFX_OK) return status;
        load.detector = &detector;
        load.head_only = true;
    }
    struct rfx_network *network = create_network(mem, err);
    if (network == NULL) return RFX_STATUS_OUT_OF_MEMORY;
    status = load_graph(mem, origin, &load, &network->graph, err);
    if (status != RFX_OK) {
        rfx_memory_release(mem, network);
        return status;
    }
    network->fit = load.fit;
    *out = network;
    return RFX_OK;
}

static enum rfx_status open_network(struct rfx_memory *mem, const struct rfx_network_origin *origin,
                                    const struct rfx_open_options *given, struct rfx_network **out,
                                    struct rfx_error *err) {
    struct rfx_open_options options;
    if (origin->name == NULL && origin->bytes == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "no model is named");
    enum rfx_status status = rfx_api_read_open_options(given, &options, err);
    return status == RFX_OK ? rfx_network_load(mem, origin, &options, out, err) : status;
}

enum rfx_code rfx_network_open_in(struct rfx_memory *mem, const char *model,
                                  const struct rfx_open_options *options, struct rfx_network **out,
                                  struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    const struct rfx_network_origin named = {.name = model};
    return rfx_api_result(open_network(mem, &named, options, out, &err), &err, why);
}

/* Opens a network in an allocator of its own, which takes its blocks from the options' functions.
 */
static enum rfx_code open_alone(const struct rfx_network_origin *model,
                                const struct rfx_open_options *options, struct rfx_network **out,
                                struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_open_options known;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) status = rfx_api_read_open_options(options, &known, &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    const struct rfx_memory_hooks hooks = {known.allocate, known.release, known.memory_user};
    struct rfx_memory *mem = rfx_memory_create_with(&hooks);
    if (mem == NULL) return rfx_api_result(RFX_STATUS_OUT_OF_MEMORY, &err, why);
    status = open_network(mem, model, options, out, &err);
    if (status == RFX_OK)
        (*out)->owns_mem = true;
    else
        rfx_memory_free(mem);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_network_open(const char *model, const struct rfx_open_options *options,
                               struct rfx_network **out, struct rfx_why *why) {
    const struct rfx_network_origin named = {.name = model};
    return open_alone(&named, options, out, why);
}

enum rfx_code rfx_network_open_memory(const void *bytes, size_t n_bytes,
                                      const struct rfx_open_options *options,
                                      struct rfx_network **out, struct rfx_why *why) {
    const struct rfx_network_origin model = {.bytes = bytes, .n_bytes = n_bytes};
    return open_alone(&model, options, out, why);
}

void rfx_network_free(struct rfx_network *network) {
    while (network != NULL && atomic_fetch_sub(&network->users, 1) == 1) {
        struct rfx_network *whole = network->whole;
        struct rfx_memory *mem = network->mem;
        bool owns_mem = network->owns_mem;
        rfx_graph_free(network->graph);
        rfx_memory_release(mem, network);
        if (owns_mem) rfx_memory_free(mem);
        network = whole;
    }
}

void rfx_network_input_shape(const struct rfx_network *network, int64_t dims[4]) {
    if (dims == NULL) return;
    memset(dims, 0, 4 * sizeof *dims);
    if (network != NULL) memcpy(dims, input_of(network)->shape.dims, 4 * sizeof *dims);
}

const char *rfx_network_input_name(const struct rfx_network *network) {
    return network != NULL ? network->graph->nodes[network->graph->input].name : NULL;
}

/* Returns output k of late nodes, or NULL if the network has none. */
static const struct rfx_late_output *late_output_of(const struct rfx_network *network, int k) {
    const struct rfx_late *late = network != NULL ? network->graph->late : NULL;
    return late != NULL && k >= 0 && (size_t)k < late->n_outputs ? &late->outputs[k] : NULL;
}

int rfx_network_output_count(const struct rfx_network *network) {
    if (network == NULL) return 0;
    const struct rfx_late *late = network->graph->late;
    return late != NULL ? (int)late->n_outputs : network->graph->n_outputs;
}

const char *rfx_network_output_name(const struct rfx_network *network, int k) {
    const struct rfx_late_output *late = late_output_of(network, k);
    if (late != NULL) return late->name;
    return output_of(network, k) != NULL ? network->graph->outputs[k].name : NULL;
}

_Static_assert(RFX_MAX_DIMS == RFX_MAX_RANK, "shapes have room for every dimension");

int rfx_network_output_shape(const struct rfx_network *network, int k, int64_t dims[RFX_MAX_DIMS]) {
    const struct rfx_tensor *t = output_of(network, k);
    const struct rfx_late_output *late = late_output_of(network, k);
    if (t == NULL && late == NULL) return -1;
    struct rfx_shape shape = {.rank = 1, .dims = {-1}};
    if (late == NULL) {
        shape = rfx_output_shape(network->graph, k);
    } else if (late->rank >= 0) {
        shape.rank = late->rank;
        memcpy(shape.dims, late->dims, sizeof late->dims);
    }
    if (dims != NULL) memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
    return shape.rank;
}

const char *rfx_network_output_type(const struct rfx_network *network, int k) {
    const struct rfx_late_output *late = late_output_of(network, k);
    if (late != NULL) return rfx_type_name(late->type);
    if (output_of(network, k) == NULL) return NULL;
    return rfx_type_name(network->graph->outputs[k].stored.type);
}

int rfx_network_output_map(const struct rfx_network *network, int k, struct rfx_area *area) {
    const struct rfx_tensor *t = output_of(network, k);
    if (t == NULL || t->layout != RFX_LAYOUT_NHWC || area == NULL) return 0;
    const struct rfx_output *output = &network->graph->outputs[k];
    const struct rfx_spread at = rfx_stored_spread(&output->stored, output->part, t->c);
    *area = (struct rfx_area){.rows = rfx_rect_rows(output->part),
                              .columns = rfx_rect_cols(output->part),
                              .channels = t->c,
                              .row_step = at.row_step,
                              .column_step = at.column_step,
                              .channel_step = at.channel_step};
    return 1;
}

int64_t rfx_network_output_elements(const struct rfx_network *network, int k) {
    const struct rfx_tensor *t = output_of(network, k);
    if (t == NULL) return -1;
    bool map = t->layout == RFX_LAYOUT_NHWC;
    return map ? rfx_rect_area(network->graph->outputs[k].part) * t->c : t->elems;
}

enum rfx_status rfx_network_of_graph(struct rfx_network *whole, struct rfx_graph *graph,
                                     struct rfx_network **out, struct rfx_error *err) {
    struct rfx_network *network = create_network(whole->mem, err);
    if (network == NULL) {
        rfx_graph_free(graph);
        return RFX_STATUS_OUT_OF_MEMORY;
    }
    network->graph = graph;
    network->whole = whole;
    rfx_network_keep(whole);
    *out = network;
    return RFX_OK;
}

bool rfx_network_is_part(const struct rfx_network *network) {
    return network->whole != NULL;
}

const struct rfx_fit_size *rfx_network_fit(const struct rfx_network *network) {
    return &network->fit;
}

char *rfx_network_hash(struct rfx_network *network) {
    return network->hash;
}

enum rfx_status rfx_network_refuse_late(const struct rfx_network *network, struct rfx_error *err) {
    if (network->graph->late == NULL) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "the sizes of the network's outputs depend on data: they have no parts");
}

enum rfx_status rfx_network_read_part(const struct rfx_network *network, int k,
                                      const struct rfx_area *part, struct rfx_rect *out,
                                      struct rfx_error *err) {
    const struct rfx_tensor *map = output_of(network, k);
    enum rfx_status status = rfx_network_refuse_late(network, err);
    if (status != RFX_OK) return status;
    if (part == NULL) return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "no part is named");
    if (map == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "output %d of %d does not exist", k,
                        network->graph->n_outputs);
    bool fits = part->rows > 0 && part->rows <= map->h && part->columns > 0 &&
                part->columns <= map->w && part->row >= 0 && part->row <= map->h - part->rows &&
                part->column >= 0 && part->column <= map->w - part->columns;
    if (!fits)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%lld rows from row %lld, %lld columns from column %lld are no part of an "
                        "output of %lld rows and %lld columns",
                        (long long)part->rows, (long long)part->row, (long long)part->columns,
                        (long long)part->column, (long long)map->h, (long long)map->w);
    *out = rfx_rect_make(part->row, part->row + part->rows, part->column,
                         part->column + part->columns);
    return RFX_OK;
}

static enum rfx_status open_part(struct rfx_network *whole, int k, const struct rfx_area *part,
                                 struct rfx_network **out, struct rfx_error *err) {
    struct rfx_rect rect;
    struct rfx_graph *graph;
    enum rfx_status status = rfx_network_read_part(whole, k, part, &rect, err);
    if (status == RFX_OK) status = rfx_part_graph_create(whole->graph, k, rect, &graph, err);
    return status == RFX_OK ? rfx_network_of_graph(whole, graph, out, err) : status;
}

enum rfx_code rfx_network_open_part(struct rfx_network *network, int k, const struct rfx_area *part,
                                    struct rfx_network **out, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) status = open_part(network, k, part, out, &err);
    return rfx_api_result(status, &err, why);
}

void rfx_network_input_area(const struct rfx_network *network, struct rfx_area *area) {
    if (area == NULL) return;
    *area = (struct rfx_area){0};
    if (network == NULL) return;
    struct rfx_rect image = rfx_part_graph_image(network->graph);
    *area = (struct rfx_area){.row = image.y0,
                              .column = image.x0,
                              .rows = rfx_rect_rows(image),
                              .columns = rfx_rect_cols(image),
                              .channels = input_of(network)->c};
}

enum rfx_code rfx_picture_size(const char *picture, int64_t *rows, int64_t *columns,
                               int64_t *channels, struct rfx_why *why) {
    return rfx_picture_size_with(picture, NULL, rows, columns, channels, why);
}

enum rfx_code rfx_picture_size_with(const char *picture, const struct rfx_run_options *given,
                                    int64_t *rows, int64_t *columns, int64_t *channels,
                                    struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_run_options options;
    struct rfx_source_traits traits;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_read_run_options(given, &options, &err);
    if (status == RFX_OK) status = rfx_api_need(rows, "rows", &err);
    if (status == RFX_OK) status = rfx_api_need(columns, "columns", &err);
    if (status == RFX_OK && picture == NULL)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT, "no picture is named");
    if (status == RFX_OK) status = rfx_job_picture_traits(picture, &options, &traits, &err);
    if (status == RFX_OK) {
        *rows = traits.h;
        *columns = traits.w;
        if (channels != NULL) *channels = traits.c;
    }
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_network_predict(struct rfx_network *network, const char *picture,
                                  const struct rfx_run_options *options,
                                  struct rfx_forecast *forecast, struct rfx_why *why) {
    static const float nothing; /* a plan does not look at values */
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_job job = {0};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_check_forecast(forecast, &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    status = rfx_job_open(&job, network->graph, network->graph->mem, options, &err);
    if (status == RFX_OK)
        status = picture != NULL ? rfx_job_use_picture(&job, picture, &err)
                                 : rfx_job_use_values(&job, &nothing, &err);
    if (status == RFX_OK) status = rfx_job_plan(&job, &err);
    const struct rfx_plan *plan = status == RFX_OK ? job.plan : job.smallest;
    if (plan != NULL) rfx_api_write_forecast_of(plan, forecast);
    rfx_job_close(&job);
    return rfx_api_result(status, &err, why);
}

/* Runs on the first of picture, values and source that is not NULL. All three may be NULL if the
 * network reads no pixels. */
static enum rfx_code run(struct rfx_network *network, const char *picture, const float *values,
                         const struct rfx_source *source, float *const *outputs, int n_outputs,
                         const struct rfx_run_options *options, struct rfx_why *why) {
    static const float nothing;
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_job job = {0};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    status = rfx_job_open(&job, network->graph, network->graph->mem, options, &err);
    if (status == RFX_OK) status = rfx_job_set_outputs(&job, outputs, n_outputs, &err);
    if (status == RFX_OK) {
        if (picture != NULL)
            status = rfx_job_use_picture(&job, picture, &err);
        else if (values != NULL)
            status = rfx_job_use_values(&job, values, &err);
        else if (source != NULL)
            status = rfx_job_use_source(&job, source, &err);
        else if (rfx_rect_is_empty(rfx_part_graph_image(network->graph)))
            status = rfx_job_use_values(&job, &nothing, &err);
        else
            status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT,
                              "neither a picture nor values nor a source");
    }
    if (status == RFX_OK && job.options.mask != NULL) {
        status = rfx_job_run_masked(&job, &err);
    } else if (status == RFX_OK) {
        status = rfx_job_plan(&job, &err);
        if (status == RFX_OK) status = rfx_job_prepare(&job, &err);
        if (status == RFX_OK) status = rfx_job_execute(&job, &err);
    }
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

const struct rfx_graph *rfx_network_graph_of(const struct rfx_network *network) {
    return network->graph;
}
