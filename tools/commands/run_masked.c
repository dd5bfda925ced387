/* rfexec run --mask: computes the rectangles of a mask (rfexec/shards/mask.h) one after the other.
 * Each rectangle is planned and run within the budget, like a shard. After a global operation every
 * rectangle would need the whole image. Then the whole output is computed once, and the mask only
 * decides which pixels are written. */
#include "tools/commands/command_forms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rf_analysis/grid.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/output/output_files.h"
#include "rfexec/run/run.h"
#include "rfexec/shards/mask.h"
#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/run_once.h"
#include "tools/commands/run_shard.h"

struct masked_run {
    struct rfx_cli_job job; /* job.graph: the current rectangle, or else the whole network */
    struct rfx_graph *whole;
    const struct rfx_cli_run_options *options;
    int k; /* number of the output in the whole network */
    bool is_global;
    struct rfx_mask mask;
    struct rfx_mask_rects rects;
    struct rfx_masked_output output;
    int sink_output; /* number of the output in the job's graph */
    uint64_t macs;   /* of all rectangles */
    double seconds;
};

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct masked_run *run = user;
    if (end->output != run->sink_output) return RFX_OK;
    return rfx_masked_output_take(&run->output, rect, view, err);
}

/* Runs the job's plan. */
static enum rfx_status execute(struct masked_run *run, struct rfx_cli_progress *progress,
                               struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_run_report report = {0};
    struct rfx_output_sink sink = {.write = receive, .user = run};
    const struct rfx_cli_run once = {.plan = job->plan,
                                     .image = job->image,
                                     .sink = &sink,
                                     .spill = run->options->plan.spill,
                                     .bar = progress};
    enum rfx_status status = rfx_cli_run_once(&once, &report, err);
    run->macs += job->plan->macs;
    run->seconds += report.seconds;
    return status;
}

/* Plans the graph of a rectangle. Runs the plan unless only_plan is true. */
static int make_rect(struct masked_run *run, struct rfx_rect rect, bool only_plan,
                     struct rfx_cli_progress *progress) {
    struct rfx_error err = {{0}};
    struct rfx_graph *part = NULL;
    enum rfx_status status = RFX_OK;
    if (!run->is_global) status = rfx_part_graph_create(run->whole, run->k, rect, &part, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    run->job.graph = part != NULL ? part : run->whole;
    run->sink_output = part != NULL ? 0 : run->k;
    int code = rfx_cli_job_plan(&run->job, run->options, "run");
    if (code == RFX_EXIT_DONE && !only_plan) {
        status = execute(run, progress, &err);
        if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    }
    rfx_plan_free(run->job.plan);
    run->job.plan = NULL;
    rfx_graph_free(part);
    run->job.graph = run->whole;
    return code;
}

static int by_area(const void *a, const void *b) {
    const struct rfx_rect *left = a, *right = b;
    int64_t more = rfx_rect_area(*right), less = rfx_rect_area(*left);
    return (more > less) - (more < less);
}

/* Checks, before any rectangle is computed, that all rectangles fit the budget. The largest one is
 * checked first. */
static int check_budget(struct masked_run *run) {
    struct rfx_mask_rects sorted = run->rects;
    int code = RFX_EXIT_DONE;
    if (run->options->plan.memory_bytes == 0 || sorted.n < 2) return RFX_EXIT_DONE;
    qsort(sorted.rects, (size_t)sorted.n, sizeof sorted.rects[0], by_area);
    for (int i = 0; i < sorted.n && code == RFX_EXIT_DONE; i++)
        code = make_rect(run, sorted.rects[i], true, NULL);
    return code;
}

/* Finds the output, and whether its rectangles can be computed independently of each other. */
static int look_at_output(struct masked_run *run) {
    const struct rfx_graph *graph = run->job.graph;
    struct rfx_part_rounds rounds;
    struct rfx_error err = {{0}};
    int code = rfx_choose_shard_output(graph, run->options, &run->k);
    if (code != RFX_EXIT_DONE) return code;
    const struct rfx_output *output = &graph->outputs[run->k];
    run->output.map = graph->nodes[output->node].out;
    run->output.end =
        (struct rfx_end){.channels = run->output.map.c,
                         .at = rfx_stored_spread(&output->stored, output->part, run->output.map.c)};
    if (run->output.map.layout != RFX_LAYOUT_NHWC) {
        rfx_cli_message("output '%s' is not a map of rows and columns: --mask does not apply to it",
                        output->name);
        return RFX_EXIT_REFUSED;
    }
    enum rfx_status status = rfx_part_graph_rounds(graph, run->k, NULL, 0, &rounds, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    run->is_global = rounds.rounds > 0 || rounds.blocking >= 0;
    int node = rounds.blocking >= 0 ? rounds.blocking : rounds.first;
    if (run->is_global && node >= 0)
        rfx_cli_message(
            "output '%s' comes after '%s', which needs the whole image: all of it is "
            "computed, and the mask says what is written",
            output->name, graph->nodes[node].name);
    return RFX_EXIT_DONE;
}

/* Reads the mask and finds the rectangles. */
static int look_at_mask(struct masked_run *run) {
    struct rfx_error err = {{0}};
    struct rfx_grid grid;
    const struct rfx_graph *graph = run->job.graph;
    const struct rfx_tensor *map = &run->output.map;
    enum rfx_status status = rfx_mask_open(run->job.mem, run->options->part.mask,
                                           run->options->plan.memory_bytes, &run->mask, &err);
    if (status != RFX_OK) status = rfx_fail_within(&err, status, "--mask");
    if (status == RFX_OK) status = rfx_grid_find(graph, graph->outputs[run->k].node, &grid, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    double halo[2] = {0.0, 0.0}; /* without a known grid the halo is counted as 0 */
    for (int axis = 0; axis < 2 && grid.known; axis++)
        halo[axis] = (grid.axis[axis].size_px - 1.0) / fabs(grid.axis[axis].step);
    rfx_mask_find_rects(&run->mask, map->h, map->w, halo[0], halo[1], &run->rects);
    if (run->is_global && run->rects.n > 0)
        run->rects = (struct rfx_mask_rects){1, {rfx_rect_full(map->h, map->w)}};
    return RFX_EXIT_DONE;
}

/* Returns the value for pixels outside of the mask: the image's no-data value, or else 0. */
static float fill_of(const struct rfx_geo_source *source) {
    char *end = NULL;
    const char *text = source->geo.no_data;
    double value = text == NULL ? 0.0 : strtod(text, &end);
    return end != NULL && end != text ? (float)value : 0.0f;
}

/* Returns the description of the output file, which contains the image's no-data value too. */
static struct rfx_output_files files_of(const struct masked_run *run) {
    return (struct rfx_output_files){.graph = run->job.graph,
                                     .source = &run->job.geo,
                                     .as_stored = run->options->input.no_orient,
                                     .no_data = run->job.geo.geo.no_data};
}

static enum rfx_status open_output(struct masked_run *run, const struct rfx_output_format *format,
                                   struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    const struct rfx_output_files files = files_of(run);
    char words[RFX_GEOREFERENCED_WORDS];
    run->output.mem = job->mem;
    run->output.mask = &run->mask;
    run->output.fill = fill_of(&job->geo);
    enum rfx_status status = rfx_masked_output_open(&run->output, err);
    if (status != RFX_OK || run->options->output.file == NULL) return status;
    status = rfx_output_files_open(&files, run->k, run->options->output.file, format,
                                   &run->output.stream, words, err);
    if (words[0] != '\0') rfx_cli_message("%s", words);
    if (status == RFX_OK) status = rfx_output_stream_any_order(run->output.stream, err);
    return status;
}

/* Computes all rectangles, then fills the pixels between them. */
static int make_all(struct masked_run *run) {
    struct rfx_error err = {{0}};
    struct rfx_cli_progress progress;
    int code = RFX_EXIT_DONE;
    rfx_cli_progress_start(&progress, "run");
    for (int i = 0; i < run->rects.n && code == RFX_EXIT_DONE; i++)
        code = make_rect(run, run->rects.rects[i], false, &progress);
    rfx_cli_progress_end(&progress);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = rfx_masked_output_fill(&run->output, &run->rects, &err);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(&err, RFX_STATUS_CANCELLED, "stopped by a signal");
    rfx_memory_set_stop(run->job.mem, NULL,
                        NULL); /* a signal must not stop the file's completion */
    if (status == RFX_OK && run->output.stream != NULL)
        status = rfx_output_stream_commit(run->output.stream, NULL, NULL, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int print_result(const struct masked_run *run) {
    const struct rfx_output *output = &run->whole->outputs[run->k];
    const struct rfx_shape declared = rfx_output_shape(run->whole, run->k);
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    int64_t area = 0, all = run->output.map.h * run->output.map.w;
    for (int i = 0; i < run->rects.n; i++) area += rfx_rect_area(run->rects.rects[i]);
    rfx_fingerprint_hex(&run->output.fingerprint, hash);
    if (run->options->json) {
        json_t *document = rfx_report_document("run", run->options->words.shown[0]);
        rfx_report_conv(document, run->whole);
        json_t *rects = json_array();
        for (int i = 0; i < run->rects.n; i++) {
            const struct rfx_rect *r = &run->rects.rects[i];
            (void)json_array_append_new(rects,
                                        json_pack("[I,I,I,I]", (json_int_t)r->y0, (json_int_t)r->x0,
                                                  (json_int_t)r->y1, (json_int_t)r->x1));
        }
        (void)json_object_update_new(
            document,
            json_pack("{s:s, s:{s:o, s:f, s:I, s:o}, s:{s:s, s:o, s:s}, s:{s:f, s:I}}", "input",
                      run->options->words.shown[1], "mask", "rectangles", rects, "computed",
                      (double)area / (double)all, "macs", (json_int_t)run->macs, "fill",
                      rfx_report_number((double)run->output.fill), "output", "name", output->name,
                      "shape", rfx_report_shape(&declared), "hash", hash, "measured", "seconds",
                      run->seconds, "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes()));
        return rfx_report_print(document);
    }
    printf("mask       %d rectangle%s, %.1f %% of the output; %g where nothing is wanted\n",
           run->rects.n, run->rects.n == 1 ? "" : "s", 100.0 * (double)area / (double)all,
           (double)run->output.fill);
    printf("MACs       %.3f G\n", (double)run->macs / 1e9);
    printf("measured   %s peak RSS, %.3f s\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak),
           run->seconds);
    printf("output     %s %s, hash %s\n", output->name, rfx_human_shape(&declared, shape), hash);
    return RFX_EXIT_DONE;
}

/* Adds the memory that the run holds besides the network to the plan request. */
static int count_bytes(struct masked_run *run, struct rfx_output_format *format) {
    struct rfx_error err = {{0}};
    const struct rfx_tensor *map = &run->output.map;
    size_t *fixed = &run->job.request.source.fixed_bytes;
    *fixed += rfx_mask_bytes(&run->mask) + rfx_masked_output_bytes(map);
    run->job.request.emit_outputs = true;
    if (run->options->output.file == NULL) return RFX_EXIT_DONE;
    if (!rfx_cli_output_format(&run->options->output, run->options->images,
                               run->options->output.file, format)) {
        char ends[RFX_OUTPUT_ENDS];
        rfx_cli_message("-o '%s': the name must end in %s", run->options->output.file,
                        rfx_output_ends(ends));
        return RFX_EXIT_USAGE;
    }
    rfx_output_declare(format, run->job.graph, run->k);
    if (rfx_output_is_scaled(format) && !format->has_range) {
        rfx_cli_message(
            "-o '%s': --mask with samples of 8 and 16 bits needs --range, because the extremes of "
            "the pixels that are not computed are not known",
            run->options->output.file);
        return RFX_EXIT_USAGE;
    }
    enum rfx_status status = rfx_output_format_check(format, map, run->options->output.file, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    const struct rfx_output_files files = files_of(run);
    struct rfx_output_files_bytes sum = {0};
    rfx_output_files_add(&sum, &files, run->k, format);
    *fixed += rfx_output_files_sum(&sum, &files);
    return RFX_EXIT_DONE;
}

int rfx_run_masked(const struct rfx_cli_run_options *options) {
    struct masked_run run = {.options = options};
    struct rfx_output_format format = {.kind = &rfx_output_npy};
    struct rfx_error err = {{0}};
    int code = rfx_cli_job_open(&run.job, options, options->words.args[1]);
    run.whole = run.job.graph;
    if (code == RFX_EXIT_DONE) code = look_at_output(&run);
    if (code == RFX_EXIT_DONE) code = look_at_mask(&run);
    if (code == RFX_EXIT_DONE) code = count_bytes(&run, &format);
    if (code == RFX_EXIT_DONE) code = check_budget(&run);
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = open_output(&run, &format, &err);
        code = status == RFX_OK ? make_all(&run) : rfx_cli_fail(status, &err);
    }
    if (code == RFX_EXIT_DONE) code = print_result(&run);
    rfx_output_stream_free(run.output.stream);
    rfx_masked_output_release(&run.output);
    rfx_mask_release(&run.mask);
    rfx_cli_job_free(&run.job);
    return code;
}
