/* rfexec run --mask: the command around rfexec/shards/masked_run.h. It plans and runs each
 * rectangle with the program's messages, and writes and reports the output. */
#include "tools/commands/command_forms.h"

#include <stdio.h>
#include <string.h>

#include "rfexec/output/output_files.h"
#include "rfexec/run/run.h"
#include "rfexec/shards/masked_run.h"
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
    struct rfx_masked_run masked;
    int plan_code; /* exit code of planning; its failures are printed at once */
    struct rfx_cli_progress progress;
    struct rfx_output_format format;
    struct rfx_output_stream *stream; /* NULL: no file */
    struct rfx_fingerprint fingerprint;
    uint64_t macs; /* of all rectangles */
    double seconds;
};

/* Runs the job's plan. */
static enum rfx_status execute(struct masked_run *run, const struct rfx_output_sink *sink,
                               struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_run_report report = {0};
    const struct rfx_cli_run once = {.plan = job->plan,
                                     .image = job->image,
                                     .sink = sink,
                                     .spill = run->options->plan.spill,
                                     .bar = &run->progress};
    enum rfx_status status = rfx_cli_run_once(&once, &report, err);
    run->macs += job->plan->macs;
    run->seconds += report.seconds;
    return status;
}

/* The function rfx_masked_run.make. */
static enum rfx_status make_rect(void *user, struct rfx_graph *part,
                                 const struct rfx_output_sink *sink, struct rfx_error *err) {
    struct masked_run *run = user;
    enum rfx_status status = RFX_OK;
    run->job.graph = part != NULL ? part : run->whole;
    run->plan_code = rfx_cli_job_plan(&run->job, run->options, "run");
    if (run->plan_code != RFX_EXIT_DONE)
        status = RFX_STATUS_INTERNAL;
    else if (sink != NULL)
        status = execute(run, sink, err);
    rfx_plan_free(run->job.plan);
    run->job.plan = NULL;
    run->job.graph = run->whole;
    return status;
}

/* Finds the output, reads the mask and finds the rectangles. */
static int look(struct masked_run *run) {
    struct rfx_masked_run *masked = &run->masked;
    struct rfx_error err = {{0}};
    *masked = (struct rfx_masked_run){.mem = run->job.mem,
                                      .graph = run->whole,
                                      .path = run->options->part.mask,
                                      .no_data = run->job.geo.geo.no_data,
                                      .memory_bytes = run->options->plan.memory_bytes,
                                      .make = make_rect,
                                      .user = run};
    int code = rfx_choose_shard_output(run->whole, run->options, &masked->k);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = rfx_masked_run_open(masked, &err);
    if (masked->global_node >= 0)
        rfx_cli_message(
            "output '%s' comes after '%s', which needs the whole image: all of it is "
            "computed, and the mask says what is written",
            run->whole->outputs[masked->k].name, run->whole->nodes[masked->global_node].name);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Returns the description of the output file, which contains the image's no-data value too. */
static struct rfx_output_files files_of(const struct masked_run *run) {
    return (struct rfx_output_files){.graph = run->whole,
                                     .source = &run->job.geo,
                                     .as_stored = run->options->input.no_orient,
                                     .no_data = run->job.geo.geo.no_data};
}

static enum rfx_status begin(void *user, struct rfx_error *err) {
    struct masked_run *run = user;
    const struct rfx_output_files files = files_of(run);
    const char *path = run->options->output.file;
    char words[RFX_GEOREFERENCED_WORDS] = "";
    enum rfx_status status = RFX_OK;
    if (path != NULL)
        status = rfx_output_files_open(&files, run->masked.k, path, &run->format, &run->stream,
                                       words, err);
    if (words[0] != '\0') rfx_cli_message("%s", words);
    if (status == RFX_OK && path != NULL) status = rfx_output_stream_any_order(run->stream, err);
    rfx_cli_progress_start(&run->progress, "run");
    return status;
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct masked_run *run = user;
    rfx_fingerprint_add_end(&run->fingerprint, end, rect, view);
    return run->stream == NULL ? RFX_OK : rfx_output_stream_write(run->stream, rect, view, err);
}

static enum rfx_status end(void *user, struct rfx_error *err) {
    struct masked_run *run = user;
    rfx_cli_progress_end(&run->progress);
    if (rfx_cli_progress_cancelled())
        return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    /* a signal must not stop the file's completion */
    rfx_memory_set_stop(run->job.mem, NULL, NULL);
    return run->stream == NULL ? RFX_OK : rfx_output_stream_commit(run->stream, NULL, NULL, err);
}

static int make_all(struct masked_run *run) {
    const struct rfx_output_sink to = {.begin = begin, .write = receive, .end = end, .user = run};
    struct rfx_error err = {{0}};
    run->masked.to = &to;
    enum rfx_status status = rfx_masked_run_execute(&run->masked, &err);
    rfx_cli_progress_end(&run->progress);
    if (run->plan_code != RFX_EXIT_DONE) return run->plan_code;
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int print_result(const struct masked_run *run) {
    const struct rfx_masked_run *masked = &run->masked;
    const struct rfx_mask_rects *rects = &masked->rects;
    const struct rfx_output *output = &run->whole->outputs[masked->k];
    const struct rfx_shape declared = rfx_output_shape(run->whole, masked->k);
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    int64_t area = masked->pixels, all = masked->map.h * masked->map.w;
    rfx_fingerprint_hex(&run->fingerprint, hash);
    if (run->options->json) {
        json_t *document = rfx_report_document("run", run->options->words.shown[0]);
        rfx_report_conv(document, run->whole);
        json_t *list = json_array();
        for (int i = 0; i < rects->n; i++) {
            const struct rfx_rect *r = &rects->rects[i];
            (void)json_array_append_new(list,
                                        json_pack("[I,I,I,I]", (json_int_t)r->y0, (json_int_t)r->x0,
                                                  (json_int_t)r->y1, (json_int_t)r->x1));
        }
        (void)json_object_update_new(
            document,
            json_pack("{s:s, s:{s:o, s:f, s:I, s:o}, s:{s:s, s:o, s:s}, s:{s:f, s:I}}", "input",
                      run->options->words.shown[1], "mask", "rectangles", list, "computed",
                      (double)area / (double)all, "macs", (json_int_t)run->macs, "fill",
                      rfx_report_number((double)masked->fill), "output", "name", output->name,
                      "shape", rfx_report_shape(&declared), "hash", hash, "measured", "seconds",
                      run->seconds, "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes()));
        return rfx_report_print(document);
    }
    printf("mask       %d rectangle%s, %.1f %% of the output; %g where nothing is wanted\n",
           rects->n, rects->n == 1 ? "" : "s", 100.0 * (double)area / (double)all,
           (double)masked->fill);
    printf("MACs       %.3f G\n", (double)run->macs / 1e9);
    printf("measured   %s peak RSS, %.3f s\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak),
           run->seconds);
    printf("output     %s %s, hash %s\n", output->name, rfx_human_shape(&declared, shape), hash);
    return RFX_EXIT_DONE;
}

/* Adds the memory that the run holds besides the network to the plan request. */
static int count_bytes(struct masked_run *run) {
    struct rfx_error err = {{0}};
    struct rfx_output_format *format = &run->format;
    const char *path = run->options->output.file;
    const int k = run->masked.k;
    size_t *fixed = &run->job.request.source.fixed_bytes;
    *fixed += rfx_masked_run_bytes(&run->masked);
    run->job.request.emit_outputs = true;
    if (path == NULL) return RFX_EXIT_DONE;
    if (!rfx_cli_run_format(run->options, path, format)) {
        char ends[RFX_OUTPUT_ENDS];
        rfx_cli_message("-o '%s': the name must end in %s", path, rfx_output_ends(ends));
        return RFX_EXIT_USAGE;
    }
    rfx_output_declare(format, run->whole, k);
    if (rfx_output_is_scaled(format) && !format->has_range) {
        rfx_cli_message(
            "-o '%s': --mask with samples of 8 and 16 bits needs --range, because the extremes of "
            "the pixels that are not computed are not known",
            path);
        return RFX_EXIT_USAGE;
    }
    enum rfx_status status = rfx_output_format_check(format, &run->masked.map, path, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    const struct rfx_output_files files = files_of(run);
    struct rfx_output_files_bytes sum = {0};
    rfx_output_files_add(&sum, &files, k, format);
    *fixed += rfx_output_files_sum(&sum, &files);
    return RFX_EXIT_DONE;
}

int rfx_run_masked(const struct rfx_cli_run_options *options) {
    struct masked_run run = {.options = options, .format = {.kind = &rfx_output_npy}};
    int code = rfx_cli_job_open(&run.job, options, options->words.args[1]);
    run.whole = run.job.graph;
    if (code == RFX_EXIT_DONE) code = look(&run);
    if (code == RFX_EXIT_DONE) code = count_bytes(&run);
    if (code == RFX_EXIT_DONE) code = make_all(&run);
    if (code == RFX_EXIT_DONE) code = print_result(&run);
    rfx_output_stream_free(run.stream);
    rfx_masked_run_release(&run.masked);
    rfx_cli_job_free(&run.job);
    return code;
}
