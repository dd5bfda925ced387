/* Runners of the public header: a job of a network that is planned and packed once and executed as
 * often as its caller likes. */
#include "layers/core/float_env.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/job.h"
#include "rfexec/api/network.h"
#include "rfexec/api/reports.h"

struct rfx_runner {
    struct rfx_network *network; /* kept until the runner is freed */
    struct rfx_job job;
};

static enum rfx_status create(struct rfx_network *network, const struct rfx_run_options *options,
                              struct rfx_runner **out, struct rfx_error *err) {
    static const float nothing; /* a plan does not look at values */
    struct rfx_graph *graph = rfx_network_graph(network);
    struct rfx_runner *runner = rfx_memory_calloc(graph->mem, 1, sizeof *runner);
    if (runner == NULL) return rfx_memory_fail(graph->mem, "runner", sizeof *runner, err);
    struct rfx_job *job = &runner->job;
    enum rfx_status status = rfx_job_open(job, graph, options, err);
    if (status == RFX_OK && job->files.n > 0)
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                          "a runner writes no files: rfx_network_run_file and its kin do");
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

void rfx_runner_free(struct rfx_runner *runner) {
    if (runner == NULL) return;
    struct rfx_memory *mem = runner->job.graph->mem;
    struct rfx_network *network = runner->network;
    rfx_job_close(&runner->job);
    rfx_memory_release(mem, runner);
    rfx_network_free(network);
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

enum rfx_code rfx_runner_run(struct rfx_runner *runner, const struct rfx_source *source,
                             float *const *outputs, int n_outputs,
                             const struct rfx_run_options *options, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(runner, "runner", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    struct rfx_job *job = &runner->job;
    status = rfx_job_wake(job, options, &err);
    if (status == RFX_OK) status = rfx_job_set_outputs(job, outputs, n_outputs, &err);
    if (status == RFX_OK) status = rfx_job_use_source(job, source, &err);
    if (status == RFX_OK) status = rfx_job_execute(job, &err);
    rfx_job_rest(job);
    return rfx_api_result(status, &err, why);
}
