/* rfexec bench: median time of one plan. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *sorted, size_t n) {
    return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static int print_result(const struct rfx_cli_job *job, const struct rfx_cli_options *options,
                        const double *sorted, const struct rfx_run_report *report) {
    size_t n = (size_t)options->runs;
    double middle = median(sorted, n);
    double gmacs = middle > 0 ? (double)report->macs * 1e-9 / middle : 0;
    char a[RFX_HUMAN_CHARS];
    if (!options->json) {
        rfx_report_plan_text(job->plan);
        printf("seconds    %.4f median, %.4f min, %.4f max of %zu\n", middle, sorted[0],
               sorted[n - 1], n);
        printf("rate       %.2f GMAC/s\n", gmacs);
        printf("peak RSS   %s\n", rfx_human_bytes(rfx_peak_rss_bytes(), a));
        return RFX_EXIT_DONE;
    }
    json_t *document = rfx_report_document("bench", options->args[0]);
    rfx_report_conv(document, job->graph);
    json_t *measured = rfx_report_measured(report);
    (void)json_object_update_new(
        measured,
        json_pack("{s:f, s:f, s:f, s:I, s:f}", "seconds", middle, "seconds_min", sorted[0],
                  "seconds_max", sorted[n - 1], "runs", (json_int_t)n, "gmacs_per_second", gmacs));
    (void)json_object_set_new(document, "input",
                              rfx_report_shape(&job->graph->nodes[job->graph->input].out.shape));
    (void)json_object_set_new(document, "plan", rfx_report_plan(job->plan));
    (void)json_object_set_new(document, "measured", measured);
    return rfx_report_print(document);
}

/* Maps that are not stored go nowhere. */
static enum rfx_status discard(void *user, int k, struct rfx_rect rect, const struct rfx_view *view,
                               struct rfx_error *err) {
    (void)user;
    (void)k;
    (void)rect;
    (void)view;
    (void)err;
    return RFX_OK;
}

static int time_runs(struct rfx_cli_job *job, const struct rfx_cli_options *options,
                     struct rfx_session *session, double *seconds) {
    struct rfx_run_report report = {0};
    struct rfx_error err = {{0}};
    struct rfx_cli_progress progress;
    enum rfx_status status = RFX_OK;
    const struct rfx_output_sink sink = {.write = discard, .any_order = true};
    rfx_session_set_sink(session, &sink);
    for (int64_t i = -1; i < options->runs && status == RFX_OK; ++i) {
        rfx_cli_progress_start(&progress, i < 0 ? "warm-up" : "bench");
        status =
            rfx_session_run(session, job->image, rfx_cli_progress_step, &progress, &report, &err);
        rfx_cli_progress_end(&progress);
        if (i >= 0) seconds[i] = report.seconds;
    }
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    qsort(seconds, (size_t)options->runs, sizeof *seconds, compare_seconds);
    return print_result(job, options, seconds, &report);
}

int rfx_cmd_bench(const struct rfx_cli_options *options) {
    struct rfx_cli_job job;
    struct rfx_session *session = NULL;
    struct rfx_error err = {{0}};
    double *seconds = NULL;
    int code = rfx_cli_job_open(&job, options, options->n_args > 1 ? options->args[1] : NULL);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&job, options, "bench");
    if (code != RFX_EXIT_DONE) goto done;
    enum rfx_status status = rfx_session_create(job.graph, job.plan, &session, &err);
    seconds = rfx_memory_calloc(job.mem, (size_t)options->runs, sizeof *seconds);
    if (status == RFX_OK && seconds == NULL)
        status =
            rfx_memory_fail(job.mem, "run times", (size_t)options->runs * sizeof *seconds, &err);
    code =
        status == RFX_OK ? time_runs(&job, options, session, seconds) : rfx_cli_fail(status, &err);
done:
    rfx_memory_release(job.mem, seconds);
    rfx_session_free(session);
    rfx_cli_job_free(&job);
    return code;
}
