/* Models and their plans in the public header.
 *
 * A model holds the open files of an .onnx model, or a built-in name. Every plan loads a graph of
 * its own from them, for its size, into an allocator of its own, and packs the weights. Invariants:
 * 1. model and plan are const once they are created, except for the number of their owners and for
 * external data files, which are opened under the model's lock; 2. a plan keeps its model alive,
 * and a runner keeps its plan alive. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "layers/core/float_env.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/network.h"
#include "rfexec/api/reports.h"
#include "rfexec/api/runner.h"
#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/output/output_file.h"
#include "rfexec/run/model.h"
#include "tiler/plan/plan_file.h"

struct rfx_model {
    struct rfx_memory *mem;
    atomic_int users;
    struct rfx_open_options options;
    char *head_file;              /* copy of options.head_file */
    char *name;                   /* name with which the model was opened; NULL: bytes in memory */
    struct rfx_onnx_files *files; /* NULL: a built-in network */
    pthread_mutex_t loading;      /* held while a graph is loaded from `files` */
};

struct rfx_model_plan {
    struct rfx_model *model;
    struct rfx_memory *mem;
    atomic_int users;
    struct rfx_network *network;
    struct rfx_job job; /* planned, not prepared */
    struct rfx_packed_weights *weights;
    char *spill_folder; /* a copy */
};

static struct rfx_memory_hooks hooks_of(const struct rfx_open_options *options) {
    return (struct rfx_memory_hooks){options->allocate, options->release, options->memory_user};
}

void rfx_model_free(struct rfx_model *model) {
    if (model == NULL || atomic_fetch_sub(&model->users, 1) != 1) return;
    struct rfx_memory *mem = model->mem;
    rfx_onnx_files_free(model->files);
    rfx_memory_release(mem, model->name);
    rfx_memory_release(mem, model->head_file);
    (void)pthread_mutex_destroy(&model->loading);
    rfx_memory_release(mem, model);
    rfx_memory_free(mem);
}

/* Reads the structure once, so that a broken file is refused when it is opened. */
static enum rfx_status check_structure(struct rfx_memory *mem, const struct rfx_onnx_files *files,
                                       struct rfx_error *err) {
    struct rfx_onnx_model structure = {0};
    struct rfx_onnx_bytes file = rfx_onnx_files_model(files);
    enum rfx_status status = rfx_onnx_model_read(mem, file.file, file.size, false, &structure, err);
    rfx_onnx_model_free(&structure);
    return status;
}

static enum rfx_status open_files(struct rfx_model *model, const void *bytes, size_t n_bytes,
                                  struct rfx_error *err) {
    bool builtin = false;
    enum rfx_status status = RFX_OK;
    if (model->name == NULL) {
        status = rfx_onnx_files_open_bytes(model->mem, bytes, n_bytes, &model->files, err);
    } else {
        status = rfx_model_find(model->name, &builtin, err);
        if (status == RFX_OK && !builtin)
            status = rfx_onnx_files_open(model->mem, model->name, &model->files, err);
    }
    if (status == RFX_OK && model->files != NULL)
        status = check_structure(model->mem, model->files, err);
    if (status == RFX_OK) return RFX_OK;
    return model->name != NULL ? rfx_network_name_failure(status, model->name, err)
                               : rfx_fail_within(err, status, "model in memory");
}

/* Opens a model by name, or from bytes if the name is NULL. */
static enum rfx_status open_model(const char *name, const void *bytes, size_t n_bytes,
                                  const struct rfx_open_options *given, struct rfx_model **out,
                                  struct rfx_error *err) {
    struct rfx_open_options options;
    enum rfx_status status = rfx_api_need(out, "out", err);
    if (status == RFX_OK && name == NULL && bytes == NULL)
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "no model is named");
    if (status == RFX_OK) status = rfx_api_read_open_options(given, &options, err);
    if (status != RFX_OK) return status;
    const struct rfx_memory_hooks hooks = hooks_of(&options);
    struct rfx_memory *mem;
    struct rfx_model *model = rfx_api_create(&hooks, sizeof *model, "a model", &mem, err);
    if (model == NULL) return RFX_STATUS_OUT_OF_MEMORY;
    (void)pthread_mutex_init(&model->loading, NULL); /* of default attributes: it cannot fail */
    model->mem = mem;
    model->options = options;
    atomic_init(&model->users, 1);
    if (name != NULL && (model->name = rfx_memory_strdup(mem, name)) == NULL)
        status = rfx_memory_fail(mem, "model's name", strlen(name) + 1, err);
    if (options.head_file != NULL) {
        model->options.head_file = model->head_file = rfx_memory_strdup(mem, options.head_file);
        if (status == RFX_OK && model->head_file == NULL)
            status = rfx_memory_fail(mem, "head file's name", strlen(options.head_file) + 1, err);
    }
    if (status == RFX_OK) status = open_files(model, bytes, n_bytes, err);
    if (status == RFX_OK)
        *out = model;
    else
        rfx_model_free(model);
    return status;
}

enum rfx_code rfx_model_open(const char *name, const struct rfx_open_options *options,
                             struct rfx_model **out, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    return rfx_api_result(open_model(name, NULL, 0, options, out, &err), &err, why);
}

enum rfx_code rfx_model_open_memory(const void *bytes, size_t n_bytes,
                                    const struct rfx_open_options *options, struct rfx_model **out,
                                    struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    return rfx_api_result(open_model(NULL, bytes, n_bytes, options, out, &err), &err, why);
}

void rfx_model_plan_keep(struct rfx_model_plan *plan) {
    (void)atomic_fetch_add(&plan->users, 1);
}

const struct rfx_job *rfx_model_plan_job(const struct rfx_model_plan *plan) {
    return &plan->job;
}

struct rfx_memory_hooks rfx_model_plan_hooks(const struct rfx_model_plan *plan) {
    return hooks_of(&plan->model->options);
}

void rfx_model_plan_free(struct rfx_model_plan *plan) {
    if (plan == NULL || atomic_fetch_sub(&plan->users, 1) != 1) return;
    struct rfx_model *model = plan->model;
    struct rfx_memory *mem = plan->mem;
    rfx_packed_weights_free(plan->weights);
    rfx_job_close(&plan->job);
    rfx_network_free(plan->network);
    rfx_memory_release(mem, plan->spill_folder);
    rfx_memory_release(mem, plan);
    rfx_memory_free(mem);
    rfx_model_free(model);
}

/* Sets the size of images: the caller's, else the picture's, else the one of the model's options
 * (0: the size in the model). */
static enum rfx_status choose_size(struct rfx_open_options *options, int64_t rows, int64_t columns,
                                   const char *picture, const struct rfx_run_options *run,
                                   struct rfx_error *err) {
    struct rfx_run_options read;
    struct rfx_source_traits traits;
    if (rows < 0 || columns < 0 || (rows == 0) != (columns == 0))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "an image of %lld rows and %lld columns: both must be positive, or both 0",
                        (long long)rows, (long long)columns);
    if (rows > 0) {
        options->rows = rows;
        options->columns = columns;
        return RFX_OK;
    }
    if (picture == NULL) return RFX_OK;
    enum rfx_status status = rfx_api_read_run_options(run, &read, err);
    if (status == RFX_OK) status = rfx_job_picture_traits(picture, &read, &traits, err);
    if (status != RFX_OK) return status;
    options->rows = traits.h;
    options->columns = traits.w;
    return RFX_OK;
}

static enum rfx_status load_network(struct rfx_model_plan *plan,
                                    const struct rfx_open_options *options, struct rfx_error *err) {
    struct rfx_model *model = plan->model;
    const struct rfx_network_origin origin = {.name = model->name, .files = model->files};
    (void)pthread_mutex_lock(&model->loading);
    enum rfx_status status = rfx_network_load(plan->mem, &origin, options, &plan->network, err);
    (void)pthread_mutex_unlock(&model->loading);
    return status;
}

/* Copies the members of the caller's options that runs need later; the caller's pointers are valid
 * during one call only. */
static enum rfx_status own_options(struct rfx_model_plan *plan, struct rfx_error *err) {
    struct rfx_run_options *options = &plan->job.options;
    *options = (struct rfx_run_options){.size = options->size,
                                        .memory_bytes = options->memory_bytes,
                                        .threads = options->threads,
                                        .scale = options->scale,
                                        .spill_folder = options->spill_folder};
    if (options->spill_folder == NULL) return RFX_OK;
    const char *caller = options->spill_folder;
    plan->spill_folder = rfx_memory_strdup(plan->mem, caller);
    options->spill_folder = plan->spill_folder;
    if (plan->spill_folder != NULL) return RFX_OK;
    return rfx_memory_fail(plan->mem, "spill folder", strlen(caller) + 1, err);
}

static enum rfx_status make_plan(struct rfx_model_plan *plan, int64_t rows, int64_t columns,
                                 const char *picture, const struct rfx_run_options *options,
                                 struct rfx_error *err) {
    static const float nothing; /* a plan does not look at values */
    struct rfx_job *job = &plan->job;
    struct rfx_open_options open = plan->model->options;
    enum rfx_status status = choose_size(&open, rows, columns, picture, options, err);
    if (status == RFX_OK) status = load_network(plan, &open, err);
    if (status != RFX_OK) return status;
    status = rfx_job_open(job, rfx_network_graph(plan->network), plan->mem, options, err);
    if (status == RFX_OK)
        status = picture != NULL ? rfx_job_use_picture(job, picture, err)
                                 : rfx_job_use_values(job, &nothing, err);
    if (status == RFX_OK) status = rfx_job_plan(job, err);
    if (status == RFX_OK)
        status = rfx_packed_weights_create(job->plan, plan->mem, &plan->weights, err);
    status = rfx_memory_settle(plan->mem, status, err);
    rfx_job_rest(job);
    rfx_result_files_free(&job->files);
    if (status != RFX_OK) return status;
    rfx_job_follow(job, job->plan, plan->weights);
    return own_options(plan, err);
}

enum rfx_code rfx_model_plan_create(struct rfx_model *model, int64_t rows, int64_t columns,
                                    const char *picture, const struct rfx_run_options *options,
                                    struct rfx_model_plan **out, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(model, "model", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    const struct rfx_memory_hooks hooks = hooks_of(&model->options);
    struct rfx_memory *mem;
    struct rfx_model_plan *plan = rfx_api_create(&hooks, sizeof *plan, "a plan", &mem, &err);
    if (plan == NULL) return rfx_api_result(RFX_STATUS_OUT_OF_MEMORY, &err, why);
    plan->mem = mem;
    plan->model = model;
    atomic_init(&plan->users, 1);
    (void)atomic_fetch_add(&model->users, 1);
    status = make_plan(plan, rows, columns, picture, options, &err);
    if (status == RFX_OK)
        *out = plan;
    else
        rfx_model_plan_free(plan);
    return rfx_api_result(status, &err, why);
}

const struct rfx_network *rfx_model_plan_network(const struct rfx_model_plan *plan) {
    return plan != NULL ? plan->network : NULL;
}

enum rfx_code rfx_model_plan_forecast(const struct rfx_model_plan *plan,
                                      struct rfx_forecast *forecast, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(plan, "plan", &err);
    if (status == RFX_OK) status = rfx_api_check_forecast(forecast, &err);
    if (status == RFX_OK) rfx_api_write_forecast_of(plan->job.plan, forecast);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_model_plan_stages(const struct rfx_model_plan *plan,
                                    struct rfx_stage_report *stages, size_t stage_bytes, int most,
                                    int *count, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(plan, "plan", &err);
    if (status == RFX_OK)
        status = rfx_report_stages(plan->job.plan, plan->job.graph, stages, stage_bytes, most,
                                   count, &err);
    return rfx_api_result(status, &err, why);
}

static enum rfx_status save(const struct rfx_model_plan *plan, const char *path,
                            struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    char *text = NULL;
    const char *name = plan->model->name != NULL ? plan->model->name : plan->job.graph->name;
    enum rfx_status status = rfx_plan_file_text(plan->job.plan, name, &text, err);
    if (status == RFX_OK) status = rfx_output_file_open(plan->mem, path, &file, err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    rfx_memory_release(plan->mem, text);
    return status;
}

enum rfx_code rfx_model_plan_save(const struct rfx_model_plan *plan, const char *path,
                                  struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(plan, "plan", &err);
    if (status == RFX_OK) status = rfx_api_need(path, "path", &err);
    if (status == RFX_OK) status = save(plan, path, &err);
    return rfx_api_result(status, &err, why);
}
