/* Runners of the public header. A runner is a job that is planned and packed once and executed any
 * number of times. */
#include "rfexec/api/runner.h"

#include "layers/core/float_env.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/network.h"
#include "rfexec/api/reports.h"

static enum rfx_status create(struct rfx_network *network, const struct rfx_run_options *options,
                              struct rfx_runner **out, struct rfx_error *err) {
    static const float nothing; /* a plan does not look at values */
    struct rfx_graph *graph = rfx_network_graph(network);
    struct rfx_runner *runner = rfx_memory_calloc(graph->mem, 1, sizeof *runner);
    if (runner == NULL) return rfx_memory_fail(graph->mem, "runner", sizeof *runner, err);
    struct rfx_job *job = &runner->job;
    runner->mem = graph->mem;
    enum rfx_status status = rfx_job_open(job, graph, graph->mem, options, err);
    if (status == RFX_OK) status = rfx_job_use_values(job, &nothing, err);
    if (status == RFX_OK) status = rfx_job_plan(job, err);
    if (status == RFX_OK) status = rfx_job_prepare(job, err);
    if (status != RFX_OK) {
        rfx_job_close(job);
        rfx_memory_release(graph->mem, runner);
        return status;
    }
    rfx_job_rest(job);
    runner->network = network;
    rfx_network_keep(network);
    *out = runner;
    return RFX_OK;
}

enum rfx_code rfx_runner_create(struct rfx_network *network, const struct rfx_run_options *options,
                                struct rfx_runner **out, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) status = create(network, options, out, &err);
    return rfx_api_result(status, &err, why);
}

/* Makes a runner with an allocator of its own, so that its runs are stopped and their memory is
 * counted separately. */
static enum rfx_status create_of_plan(struct rfx_model_plan *plan,
                                      const struct rfx_memory_hooks *hooks, struct rfx_runner **out,
                                      struct rfx_error *err) {
    const struct rfx_job *planned = rfx_model_plan_job(plan);
    struct rfx_memory *mem;
    struct rfx_runner *runner = rfx_api_create(hooks, sizeof *runner, "a runner", &mem, err);
    if (runner == NULL) return RFX_STATUS_OUT_OF_MEMORY;
    runner->mem = mem;
    struct rfx_job *job = &runner->job;
    *job = (struct rfx_job){.graph = planned->graph, .mem = mem, .options = planned->options};
    job->options.stop = NULL;
    rfx_job_follow(job, planned->plan, planned->weights);
    enum rfx_status status = rfx_job_prepare(job, err);
    if (status != RFX_OK) {
        rfx_job_close(job);
        rfx_memory_release(mem, runner);
        rfx_memory_free(mem);
        return status;
    }
    runner->model_plan = plan;
    rfx_model_plan_keep(plan);
    *out = runner;
    return RFX_OK;
}

enum rfx_code rfx_model_plan_runner(struct rfx_model_plan *plan, struct rfx_runner **out,
                                    struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(plan, "plan", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) {
        const struct rfx_memory_hooks hooks = rfx_model_plan_hooks(plan);
        status = create_of_plan(plan, &hooks, out, &err);
    }
    return rfx_api_result(status, &err, why);
}

void rfx_runner_free(struct rfx_runner *runner) {
    if (runner == NULL) return;
    struct rfx_memory *mem = runner->mem;
    struct rfx_network *network = runner->network;
    struct rfx_model_plan *plan = runner->model_plan;
    rfx_job_close(&runner->job);
    rfx_memory_release(mem, runner);
    if (plan != NULL) rfx_memory_free(mem);
    rfx_network_free(network);
    rfx_model_plan_free(plan);
}

enum rfx_code rfx_runner_forecast(const struct rfx_runner *runner, struct rfx_forecast *forecast,
                                  struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(runner, "runner", &err);
    if (status == RFX_OK) status = rfx_api_check_forecast(forecast, &err);
    if (status == RFX_OK) rfx_api_write_forecast_of(runner->job.plan, forecast);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_runner_stages(const struct rfx_runner *runner, struct rfx_stage_report *stages,
                                size_t stage_bytes, int most, int *count, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(runner, "runner", &err);
    if (status == RFX_OK)
        status = rfx_report_stages(runner->job.plan, runner->job.graph, stages, stage_bytes, most,
                                   count, &err);
    return rfx_api_result(status, &err, why);
}

/* Runs on the picture, or if it is NULL on the source. */
static enum rfx_code run(struct rfx_runner *runner, const char *picture,
                         const struct rfx_source *source, float *const *outputs, int n_outputs,
                         const struct rfx_run_options *options, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(runner, "runner", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    struct rfx_job *job = &runner->job;
    status = rfx_job_wake(job, options, &err);
    if (status == RFX_OK) status = rfx_job_set_outputs(job, outputs, n_outputs, &err);
    if (status == RFX_OK)
        status = picture != NULL ? rfx_job_use_picture(job, picture, &err)
                                 : rfx_job_use_source(job, source, &err);
    if (status == RFX_OK) status = rfx_job_execute(job, &err);
    rfx_job_rest(job);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_runner_run(struct rfx_runner *runner, const struct rfx_source *source,
                             float *const *outputs, int n_outputs,
                             const struct rfx_run_options *options, struct rfx_why *why) {
    return run(runner, NULL, source, outputs, n_outputs, options, why);
}

enum rfx_code rfx_runner_run_file(struct rfx_runner *runner, const char *picture,
                                  float *const *outputs, int n_outputs,
                                  const struct rfx_run_options *options, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(picture, "picture", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    return run(runner, picture, NULL, outputs, n_outputs, options, why);
}
