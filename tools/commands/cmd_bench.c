/* rfexec bench: measures the median time of one plan and of each of its layers. */
#include <stdio.h>
#include <string.h>

#include "layers/core/clock.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "rfexec/run/run.h"
#include "tiler/cost/cost.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/study/layer_times.h"
#include "tools/study/machine_speed.h"

/* Figures computed from the time of a row; 0 where a figure does not exist. */
struct figures {
    double share, flops_per_second, fma_peak_share, peak_share, bytes_per_second;
};

static struct figures figures_of(const struct rfx_layer_times *times,
                                 const struct rfx_machine_peak *peak,
                                 const struct rfx_layer_row *row) {
    struct figures f = {0};
    if (times->run_seconds > 0) f.share = row->seconds / times->run_seconds;
    if (row->seconds <= 0) return f;
    f.flops_per_second = 2.0 * (double)row->macs / row->seconds;
    f.bytes_per_second = (double)row->bytes / row->seconds;
    if (peak->flops_per_second > 0) f.fma_peak_share = f.flops_per_second / peak->flops_per_second;
    f.peak_share = rfx_layer_peak_share(row, peak);
    return f;
}

enum { N_COLUMNS = 11 };
static const struct rfx_table_column columns[N_COLUMNS] = {
    {"layer", RFX_TABLE_NAMES},  {"op", RFX_TABLE_WORDS},       {"by", RFX_TABLE_WORDS},
    {"output", RFX_TABLE_MARK},  {"ms", RFX_TABLE_NUMBER},      {"share", RFX_TABLE_NUMBER},
    {"MACs", RFX_TABLE_NUMBER},  {"GFLOP/s", RFX_TABLE_NUMBER}, {"of peak", RFX_TABLE_NUMBER},
    {"moved", RFX_TABLE_NUMBER}, {"GB/s", RFX_TABLE_NUMBER},
};

/* Adds the text columns of a row. */
static void put_words(struct rfx_table *table, const char *name, const char *op,
                      const char *backend, const char *shape) {
    rfx_table_cell(table, "%s", name);
    rfx_table_cell(table, "%s", op);
    rfx_table_cell(table, "%s", backend);
    rfx_table_cell(table, "%s", shape);
}

/* Adds the number columns of a row. A row without multiply-accumulates has no speed. */
static void put_numbers(struct rfx_table *table, const struct rfx_layer_times *times,
                        const struct rfx_machine_peak *peak, const struct rfx_layer_row *row) {
    struct figures f = figures_of(times, peak, row);
    char human[RFX_HUMAN_CHARS];
    rfx_table_cell(table, "%.3f", row->seconds * 1e3);
    rfx_table_cell(table, "%.1f%%", f.share * 100);
    if (row->macs > 0) {
        rfx_table_cell(table, "%s", rfx_human_count(row->macs, human));
        rfx_table_cell(table, "%.1f", f.flops_per_second * 1e-9);
        rfx_table_cell(table, "%.1f%%", f.peak_share * 100);
    } else {
        for (int i = 0; i < 3; ++i) rfx_table_cell(table, "-");
    }
    if (row->bytes > 0) {
        rfx_table_cell(table, "%s", rfx_human_bytes(row->bytes, human));
        rfx_table_cell(table, "%.1f", f.bytes_per_second * 1e-9);
    } else {
        for (int i = 0; i < 2; ++i) rfx_table_cell(table, "-");
    }
}

static void put_time(struct rfx_table *table, const struct rfx_layer_times *times, const char *name,
                     double seconds) {
    double share = times->run_seconds > 0 ? seconds / times->run_seconds : 0;
    put_words(table, name, "", "", "");
    rfx_table_cell(table, "%.3f", seconds * 1e3);
    rfx_table_cell(table, "%.1f%%", share * 100);
    for (int i = 6; i < N_COLUMNS; ++i) rfx_table_cell(table, "%s", "");
}

/* Prints the table of --layers: a row for each layer, a row for their total, and a row for each
 * other kind of work in a run. */
static void print_layers(const struct rfx_layer_times *times, const struct rfx_machine_peak *peak) {
    const struct rfx_graph *graph = times->plan->graph;
    struct rfx_table *table = rfx_table_create(times->mem, columns, N_COLUMNS);
    char shape[96];
    printf("machine    %s kernels, %d thread%s: %.1f GFLOP/s of multiply-adds, ",
           rfx_kernels()->name, peak->threads, peak->threads == 1 ? "" : "s",
           peak->flops_per_second * 1e-9);
    if (peak->int_ops_per_second > 0)
        printf("%.0f GOP/s of 8-bit ones, ", peak->int_ops_per_second * 1e-9);
    printf("%.1f GB/s of memory\n\n", peak->bytes_per_second * 1e-9);
    for (int i = 0; i < times->n_rows; ++i) {
        const struct rfx_node *node = &graph->nodes[times->rows[i].node];
        const char *backend = rfx_op_backend(graph, node);
        put_words(table, node->name, rfx_op_def(node->op)->name, backend[0] != '\0' ? backend : "-",
                  rfx_human_shape(&node->out.shape, shape));
        put_numbers(table, times, peak, &times->rows[i]);
    }
    struct rfx_layer_row total = rfx_layer_times_total(times);
    put_words(table, "all layers", "", "", "");
    put_numbers(table, times, peak, &total);
    for (int k = 0; k < RFX_REST_COUNT; ++k)
        put_time(table, times, rfx_layer_rest_name((enum rfx_layer_rest)k), times->rest[k]);
    put_time(table, times, "run", times->run_seconds);
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
}

static json_t *numbers_json(const struct rfx_layer_times *times,
                            const struct rfx_machine_peak *peak, const struct rfx_layer_row *row) {
    struct figures f = figures_of(times, peak, row);
    return json_pack("{s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:I, s:f}", "steps",
                     (json_int_t)row->steps, "seconds", row->seconds, "cpu_seconds",
                     row->cpu_seconds, "share", f.share, "macs", (json_int_t)row->macs,
                     "gflops_per_second", f.flops_per_second * 1e-9, "fma_peak_share",
                     f.fma_peak_share, "peak_share", f.peak_share, "bytes", (json_int_t)row->bytes,
                     "gb_per_second", f.bytes_per_second * 1e-9);
}

static json_t *row_json(const struct rfx_layer_times *times, const struct rfx_machine_peak *peak,
                        const struct rfx_layer_row *row) {
    const struct rfx_graph *graph = times->plan->graph;
    const struct rfx_node *node = &graph->nodes[row->node];
    const char *backend = rfx_op_backend(graph, node);
    json_t *item =
        json_pack("{s:s, s:s, s:s?, s:s, s:o}", "name", node->name, "op",
                  rfx_op_def(node->op)->name, "backend", backend[0] != '\0' ? backend : NULL,
                  "class", rfx_layer_class_name(rfx_layer_class_of(node)), "shape",
                  rfx_report_shape(&node->out.shape));
    json_t *numbers = numbers_json(times, peak, row);
    (void)json_object_update(item, numbers);
    json_decref(numbers);
    return item;
}

/* Returns a JSON object with the counts of the cost model that are not 0, by name. */
static json_t *counts_json(const struct rfx_cost_counts *counts) {
    json_t *item = json_object();
    for (int u = 0; u < RFX_COST_UNITS; ++u)
        if (counts->n[u] != 0.0)
            (void)json_object_set_new(item, rfx_cost_unit_name((enum rfx_cost_unit)u),
                                      json_real(counts->n[u]));
    return item;
}

/* Adds "counts" to each item, and "image_counts" to the document. */
static void add_counts(const struct rfx_layer_times *times, json_t *layers, json_t *document) {
    const struct rfx_graph *graph = times->plan->graph;
    struct rfx_caches caches = rfx_machine_caches();
    size_t bytes = (size_t)graph->n_nodes * sizeof(struct rfx_cost_counts);
    struct rfx_cost_counts *counts = rfx_memory_alloc(times->mem, bytes);
    struct rfx_error err;
    if (counts != NULL && rfx_cost_count_plan(times->plan, &caches, counts, &err) == RFX_OK) {
        for (int i = 0; i < times->n_rows; ++i)
            (void)json_object_set_new(json_array_get(layers, (size_t)i), "counts",
                                      counts_json(&counts[times->rows[i].node]));
        if (graph->input >= 0)
            (void)json_object_set_new(document, "image_counts", counts_json(&counts[graph->input]));
    }
    rfx_memory_release(times->mem, counts);
}

/* Adds "machine", "layers", "layers_total" and "rest" to a document. */
static void add_layers_json(const struct rfx_layer_times *times,
                            const struct rfx_machine_peak *peak, json_t *document) {
    json_t *layers = json_array(), *rest = json_array();
    for (int i = 0; i < times->n_rows; ++i)
        (void)json_array_append_new(layers, row_json(times, peak, &times->rows[i]));
    for (int k = 0; k < RFX_REST_COUNT; ++k)
        (void)json_array_append_new(
            rest, json_pack("{s:s, s:f, s:f}", "name", rfx_layer_rest_name((enum rfx_layer_rest)k),
                            "seconds", times->rest[k], "cpu_seconds", times->rest_cpu[k]));
    add_counts(times, layers, document);
    struct rfx_layer_row total = rfx_layer_times_total(times);
    const double int_rate = peak->int_ops_per_second;
    (void)json_object_set_new(
        document, "machine",
        json_pack("{s:s, s:i, s:f, s:o, s:f}", "kernels", rfx_kernels()->name, "threads",
                  peak->threads, "fma_gflops_per_second", peak->flops_per_second * 1e-9,
                  "int_gops_per_second", int_rate > 0 ? json_real(int_rate * 1e-9) : json_null(),
                  "memory_gb_per_second", peak->bytes_per_second * 1e-9));
    (void)json_object_set_new(document, "layers", layers);
    (void)json_object_set_new(document, "layers_total", numbers_json(times, peak, &total));
    (void)json_object_set_new(document, "rest", rest);
}

struct bench_options {
    struct rfx_cli_run_options run;
    int64_t runs; /* 0: not given */
    bool layers;
    const char *plot;
};

enum { DEFAULT_RUNS = 5 }; /* the help says so */

/* State and results of the timed runs. */
struct bench {
    const struct rfx_cli_run_options *options;
    const struct bench_options *asked;
    int64_t runs;
    struct rfx_cli_job job;
    struct rfx_run run;
    struct rfx_run_report report;   /* of the last run */
    double *seconds;                /* of the timed runs, sorted */
    double *cpu_seconds;            /* CPU time of all threads in each timed run, sorted */
    double median, cpu_median;      /* of these times */
    struct rfx_layer_times *layers; /* NULL without --layers */
    struct rfx_machine_peak peak;   /* set only with --layers */
};

static void print_result(const struct bench *bench) {
    size_t n = (size_t)bench->runs;
    double middle = bench->median;
    char a[RFX_HUMAN_CHARS];
    rfx_report_plan_text(bench->job.plan);
    printf("seconds    %.4f median, %.4f min, %.4f max of %zu\n", middle, bench->seconds[0],
           bench->seconds[n - 1], n);
    printf("rate       %.2f GMAC/s\n", middle > 0 ? (double)bench->report.macs * 1e-9 / middle : 0);
    printf("peak RSS   %s\n", rfx_human_bytes(rfx_peak_rss_bytes(), a));
}

static json_t *result_json(const struct bench *bench) {
    size_t n = (size_t)bench->runs;
    double middle = bench->median;
    const struct rfx_graph *graph = bench->job.graph;
    json_t *document = rfx_report_document("bench", bench->options->words.shown[0]);
    rfx_report_conv(document, graph);
    json_t *measured = rfx_report_measured(&bench->report);
    (void)json_object_update_new(
        measured, json_pack("{s:f, s:f, s:f, s:f, s:f, s:I, s:f}", "seconds", middle, "seconds_min",
                            bench->seconds[0], "seconds_max", bench->seconds[n - 1], "cpu_seconds",
                            bench->cpu_median, "cpu_seconds_min", bench->cpu_seconds[0], "runs",
                            (json_int_t)n, "gmacs_per_second",
                            middle > 0 ? (double)bench->report.macs * 1e-9 / middle : 0));
    (void)json_object_set_new(document, "input",
                              rfx_report_shape(&graph->nodes[graph->input].out.shape));
    (void)json_object_set_new(document, "plan", rfx_report_plan(bench->job.plan));
    (void)json_object_set_new(document, "measured", measured);
    return document;
}

/* Sink that discards outputs. */
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
    int64_t runs = bench->runs;
    struct rfx_cli_progress progress;
    enum rfx_status status = RFX_OK;
    const struct rfx_output_sink sink = {.write = discard};
    bench->run.sink = &sink;
    bench->run.progress = rfx_cli_progress_step;
    bench->run.user = &progress;
    for (int64_t i = -1; i < runs && status == RFX_OK; ++i) {
        bool observed = i >= 0 && bench->layers != NULL;
        bench->run.observer = observed ? &bench->layers->observer : NULL;
        rfx_cli_progress_start(&progress, i < 0 ? "warm-up" : "bench");
        double cpu = rfx_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        status = rfx_run_image(&bench->run, bench->job.image, &bench->report, err);
        rfx_cli_progress_end(&progress);
        if (i >= 0) bench->seconds[i] = bench->report.seconds;
        if (i >= 0) bench->cpu_seconds[i] = rfx_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        if (observed && status == RFX_OK)
            rfx_layer_times_end_run(bench->layers, bench->report.seconds);
    }
    if (status != RFX_OK) return status;
    bench->median = rfx_median_of_times(bench->seconds, (size_t)runs);
    bench->cpu_median = rfx_median_of_times(bench->cpu_seconds, (size_t)runs);
    return RFX_OK;
}

/* Measures the processor's peak speed and keeps the best results, because the clock rate or other
 * load may change. */
static void measure_peak(struct bench *bench) {
    struct rfx_machine_peak *peak = &bench->peak;
    double rate = rfx_machine_flops_per_second(peak->threads);
    if (rate > peak->flops_per_second) peak->flops_per_second = rate;
    if (!rfx_layers_have_int(bench->job.plan->graph)) return;
    rate = rfx_machine_int_ops_per_second(peak->threads);
    if (rate > peak->int_ops_per_second) peak->int_ops_per_second = rate;
}

/* Allocates the arrays, and measures the processor's peak speed just before the runs. */
static enum rfx_status prepare(struct bench *bench, struct rfx_error *err) {
    const struct rfx_cli_job *job = &bench->job;
    size_t runs = (size_t)bench->runs;
    bench->seconds = rfx_memory_calloc(job->mem, runs, sizeof *bench->seconds);
    bench->cpu_seconds = rfx_memory_calloc(job->mem, runs, sizeof *bench->cpu_seconds);
    if (bench->seconds == NULL || bench->cpu_seconds == NULL)
        return rfx_memory_fail(job->mem, "run times", runs * sizeof *bench->seconds, err);
    bench->run = (struct rfx_run){.plan = job->plan, .spill_folder = bench->options->plan.spill};
    enum rfx_status status = rfx_run_prepare(&bench->run, err);
    if (status != RFX_OK || !bench->asked->layers) return status;
    status = rfx_layer_times_create(job->mem, job->plan, (int64_t)runs, &bench->layers, err);
    if (status != RFX_OK) return status;
    bench->peak.threads = job->plan->threads;
    measure_peak(bench);
    return RFX_OK;
}

/* Measures the processor's peak speed again, then the memory bandwidth. That comes last because its
 * buffers must not count in the peak memory of the runs; they use the memory that the session gives
 * back. */
static enum rfx_status finish_layers(struct bench *bench, struct rfx_error *err) {
    const struct rfx_cli_run_options *options = bench->options;
    rfx_layer_times_finish(bench->layers);
    rfx_session_give_back(bench->run.session);
    measure_peak(bench);
    enum rfx_status status = rfx_machine_bytes_per_second(bench->job.mem, bench->peak.threads,
                                                          &bench->peak.bytes_per_second, err);
    if (status != RFX_OK || bench->asked->plot == NULL) return status;
    return rfx_layer_chart(bench->layers, &bench->peak, options->words.shown[0], bench->asked->plot,
                           err);
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
        if (bench->layers != NULL) print_layers(bench->layers, &bench->peak);
        return RFX_EXIT_DONE;
    }
    if (bench->layers != NULL) add_layers_json(bench->layers, &bench->peak, document);
    return rfx_report_print(document);
}

static int run(void *given) {
    const struct bench_options *asked = given;
    const struct rfx_cli_run_options *options = &asked->run;
    struct bench bench = {
        .options = options, .asked = asked, .runs = asked->runs != 0 ? asked->runs : DEFAULT_RUNS};
    struct rfx_error err = {{0}};
    const char *spec = options->words.n_args > 1 ? options->words.args[1] : NULL;
    int code = rfx_cli_job_open(&bench.job, options, spec);
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
    rfx_run_release(&bench.run);
    rfx_cli_job_free(&bench.job);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(bench_options, "runs", COUNT, runs, "N", "number of timed runs (default 5)",
                   .letter = 'n', .most = RFX_CLI_MOST),
    RFX_CLI_OPTION(bench_options, "layers", FLAG, layers, NULL,
                   "show time, speed and memory traffic of every layer, and the machine's limits"),
    RFX_CLI_OPTION(bench_options, "plot", RESULT, plot, "FILE",
                   "draw the roofline and the time of every layer", .ends = ".svg .png",
                   .needs = "layers"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("bench options", rows);

static struct bench_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USE(size, bench_options, run.model),
    RFX_CLI_USES_OF_JOB,
    RFX_CLI_USE(json, bench_options, run.json),
};

const struct rfx_cli_command rfx_cmd_bench = {
    .name = "bench",
    .args =
        "MODEL [INPUT] [--size HxW] [PLAN OPTIONS] [--runs N] [--layers [--plot FILE]] [--json]",
    .summary = "measure the time of a network",
    .details =
        "Makes one run that is not timed and then --runs timed ones, and shows the median.\n"
        "--layers adds a row for each layer: the time of all its steps in a run (median), its\n"
        "share of the run, its multiply-accumulates (halos count as often as they are computed),\n"
        "GFLOP/s (two operations for each multiply-accumulate), the share of the processor's\n"
        "peak, and the bytes of the inputs, outputs and packed weights of its steps, which is the\n"
        "least that is moved. The peak of fused multiply-adds, and that of 8-bit ones if there\n"
        "are any, is measured before and after the runs with the same number of threads, the\n"
        "memory bandwidth after them. This takes 64 MiB, which the peak RSS shown does not\n"
        "contain.\n",
    .examples =
        "rfexec bench resnet50 --size 1024x1024 --threads 2\n"
        "rfexec bench mobilenet_v2 --size 2048x2048 --memory 64MiB --layers --plot layers.svg\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 2,
    .input = 2,
    .values = &values,
    .run = run,
};
