/* rfexec bench: median time of one plan, and of its layers. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/cli/job.h"
#include "tools/cli/layer_report.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/study/layer_times.h"

/* What the runs gave. */
struct bench {
    const struct rfx_cli_options *options;
    struct rfx_cli_job job;
    struct rfx_session *session;
    struct rfx_run_report report;   /* of the last run */
    double *seconds;                /* of the timed runs, sorted */
    double *cpu_seconds;            /* likewise, of all threads together */
    struct rfx_layer_times *layers; /* NULL: not asked for */
    struct rfx_machine_peak peak;   /* likewise */
};

static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Processor time of the process. */
static double cpu_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double median(const double *sorted, size_t n) {
    return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static void print_result(const struct bench *bench) {
    size_t n = (size_t)bench->options->runs;
    double middle = median(bench->seconds, n);
    char a[RFX_HUMAN_CHARS];
    rfx_report_plan_text(bench->job.plan);
    printf("seconds    %.4f median, %.4f min, %.4f max of %zu\n", middle, bench->seconds[0],
           bench->seconds[n - 1], n);
    printf("rate       %.2f GMAC/s\n", middle > 0 ? (double)bench->report.macs * 1e-9 / middle : 0);
    printf("peak RSS   %s\n", rfx_human_bytes(rfx_peak_rss_bytes(), a));
}

static json_t *result_json(const struct bench *bench) {
    size_t n = (size_t)bench->options->runs;
    double middle = median(bench->seconds, n);
    const struct rfx_graph *graph = bench->job.graph;
    json_t *document = rfx_report_document("bench", bench->options->shown[0]);
    rfx_report_conv(document, graph);
    json_t *measured = rfx_report_measured(&bench->report);
    (void)json_object_update_new(
        measured, json_pack("{s:f, s:f, s:f, s:f, s:f, s:I, s:f}", "seconds", middle, "seconds_min",
                            bench->seconds[0], "seconds_max", bench->seconds[n - 1], "cpu_seconds",
                            median(bench->cpu_seconds, n), "cpu_seconds_min", bench->cpu_seconds[0],
                            "runs", (json_int_t)n, "gmacs_per_second",
                            middle > 0 ? (double)bench->report.macs * 1e-9 / middle : 0));
    (void)json_object_set_new(document, "input",
                              rfx_report_shape(&graph->nodes[graph->input].out.shape));
    (void)json_object_set_new(document, "plan", rfx_report_plan(bench->job.plan));
    (void)json_object_set_new(document, "measured", measured);
    return document;
}

/* Maps that are not stored go nowhere. */
static enum rfx_status discard(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    (void)user;
    (void)end;
    (void)rect;
    (void)view;
    (void)err;
    return RFX_OK;
}

static enum rfx_status time_runs(struct bench *bench, struct rfx_error *err) {
    int64_t runs = bench->options->runs;
    struct rfx_cli_progress progress;
    enum rfx_status status = RFX_OK;
    const struct rfx_output_sink sink = {.write = discard};
    rfx_session_set_sink(bench->session, &sink);
    for (int64_t i = -1; i < runs && status == RFX_OK; ++i) {
        bool observed = i >= 0 && bench->layers != NULL;
        rfx_session_set_observer(bench->session, observed ? &bench->layers->observer : NULL);
        rfx_cli_progress_start(&progress, i < 0 ? "warm-up" : "bench");
        double cpu = cpu_now();
        status = rfx_session_run(bench->session, bench->job.image, rfx_cli_progress_step, &progress,
                                 &bench->report, err);
        rfx_cli_progress_end(&progress);
        if (i >= 0) bench->seconds[i] = bench->report.seconds;
        if (i >= 0) bench->cpu_seconds[i] = cpu_now() - cpu;
        if (observed && status == RFX_OK)
            rfx_layer_times_end_run(bench->layers, bench->report.seconds);
    }
    rfx_session_set_observer(bench->session, NULL);
    rfx_session_set_sink(bench->session, NULL);
    if (status == RFX_OK) qsort(bench->seconds, (size_t)runs, sizeof(double), compare_seconds);
    if (status == RFX_OK) qsort(bench->cpu_seconds, (size_t)runs, sizeof(double), compare_seconds);
    return status;
}

/* Allocates, and measures the peak just before the runs. */
static enum rfx_status prepare(struct bench *bench, struct rfx_error *err) {
    const struct rfx_cli_job *job = &bench->job;
    size_t runs = (size_t)bench->options->runs;
    bench->seconds = rfx_memory_calloc(job->mem, runs, sizeof *bench->seconds);
    bench->cpu_seconds = rfx_memory_calloc(job->mem, runs, sizeof *bench->cpu_seconds);
    if (bench->seconds == NULL || bench->cpu_seconds == NULL)
        return rfx_memory_fail(job->mem, "run times", runs * sizeof *bench->seconds, err);
    enum rfx_status status = rfx_session_create(job->graph, job->plan, &bench->session, err);
    if (status == RFX_OK) rfx_session_set_spill_folder(bench->session, bench->options->spill);
    if (status != RFX_OK || !bench->options->layers) return status;
    status = rfx_layer_times_create(job->mem, job->plan, (int64_t)runs, &bench->layers, err);
    if (status != RFX_OK) return status;
    bench->peak.threads = job->plan->threads;
    bench->peak.flops_per_second = rfx_machine_flops_per_second(job->plan->threads);
    return RFX_OK;
}

/* The processor's peak once more, as its clock rate and its neighbours may have changed: the better
 * one counts. The bandwidth only now, when the runs' peak memory has been read, and in the bytes
 * that the session gives back. */
static enum rfx_status finish_layers(struct bench *bench, struct rfx_error *err) {
    const struct rfx_cli_options *options = bench->options;
    rfx_layer_times_finish(bench->layers);
    rfx_session_give_back(bench->session);
    double after = rfx_machine_flops_per_second(bench->peak.threads);
    if (after > bench->peak.flops_per_second) bench->peak.flops_per_second = after;
    enum rfx_status status = rfx_machine_bytes_per_second(bench->job.mem, bench->peak.threads,
                                                          &bench->peak.bytes_per_second, err);
    if (status != RFX_OK || options->plot == NULL) return status;
    return rfx_layer_chart(bench->layers, &bench->peak, options->shown[0], options->plot, err);
}

static int report(struct bench *bench) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    json_t *document = NULL;
    if (bench->options->json)
        document = result_json(bench);
    else
        print_result(bench);
    if (bench->layers != NULL) status = finish_layers(bench, &err);
    if (status != RFX_OK) {
        json_decref(document);
        return rfx_cli_fail(status, &err);
    }
    if (!bench->options->json) {
        if (bench->layers != NULL) rfx_layer_report_text(bench->layers, &bench->peak);
        return RFX_EXIT_DONE;
    }
    if (bench->layers != NULL) rfx_layer_report_json(bench->layers, &bench->peak, document);
    return rfx_report_print(document);
}

int rfx_cmd_bench(const struct rfx_cli_options *options) {
    struct bench bench = {.options = options};
    struct rfx_error err = {{0}};
    if (options->plot != NULL && !options->layers) {
        rfx_cli_message("--plot draws what --layers measures: give both");
        return RFX_EXIT_USAGE;
    }
    int code = rfx_cli_job_open(&bench.job, options, options->n_args > 1 ? options->args[1] : NULL);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&bench.job, options, "bench");
    if (code != RFX_EXIT_DONE) goto done;
    enum rfx_status status = prepare(&bench, &err);
    if (status == RFX_OK) status = time_runs(&bench, &err);
    code = status == RFX_OK ? report(&bench) : rfx_cli_fail(status, &err);
    rfx_cli_job_tell_budget(&bench.job, options, status);
done:
    rfx_layer_times_free(bench.layers);
    rfx_memory_release(bench.job.mem, bench.seconds);
    rfx_memory_release(bench.job.mem, bench.cpu_seconds);
    rfx_session_free(bench.session);
    rfx_cli_job_free(&bench.job);
    return code;
}
