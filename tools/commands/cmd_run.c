/* rfexec run: one image, or one after the other those of a batch, through one network; outputs to a
 * file, figures to stdout. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tools/cli/classes.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/lists/run_list.h"
#include "tools/masks/run_masked.h"
#include "tools/overlay/picture_overlay.h"
#include "tools/page/run_page.h"
#include "tools/parts/part_run.h"
#include "tools/program/run_result.h"

struct run {
    struct rfx_cli_job job;
    struct rfx_cli_options *options;
    int64_t images, image; /* of a batch, and the one that is run */
    struct rfx_session *session;
    struct rfx_cli_outputs outputs;
    struct rfx_missing missing; /* of --nodata; zeros: nothing is marked */
    struct rfx_cli_classes classes;
    struct rfx_run_report report;
    struct rfx_run_page page; /* of --report; zeros: none */
    struct rfx_overlay_choice shown;
    bool overlaid;
    struct rfx_overlay overlay; /* of --overlay, and a small one of --report; zeros: none */
};

/* Rows of the picture that go through the network by rows, for the bar; 0: they do not. */
static int64_t streamed_rows(const struct rfx_plan *plan) {
    for (int i = 0; i < plan->n_stages; ++i)
        if (plan->stages[i].spec.band_rows > 0) return plan->graph->nodes[plan->graph->input].out.h;
    return 0;
}

struct batch_progress {
    const struct run *run;
    struct rfx_cli_progress *bar;
};

static int step_of_batch(void *user, int64_t done, int64_t total) {
    const struct batch_progress *progress = user;
    const struct run *run = progress->run;
    return rfx_cli_progress_step(progress->bar, run->image * total + done, run->images * total);
}

/* The images one after the other, in the same memory; the report is that of all. */
static enum rfx_status run_images(struct run *run, struct rfx_cli_progress *bar,
                                  struct rfx_error *err) {
    struct batch_progress progress = {run, bar};
    struct rfx_run_report sum = {0}, one = {0};
    enum rfx_status status = RFX_OK;
    for (run->image = 0; run->image < run->images && status == RFX_OK; ++run->image) {
        if (run->image > 0) status = rfx_cli_outputs_next(&run->outputs, run->session, err);
        if (status != RFX_OK) break;
        rfx_image_select(run->job.image, run->image);
        status = rfx_session_run(run->session, run->job.image, step_of_batch, &progress, &one, err);
        sum.seconds += one.seconds;
        sum.macs += one.macs;
        sum.spill_written += one.spill_written;
        sum.spill_read += one.spill_read;
    }
    sum.arena_high_water_bytes = one.arena_high_water_bytes;
    run->report = sum;
    return status;
}

static enum rfx_status execute(struct run *run, struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_cli_progress progress;
    /* What may end the process, the start of libraries, comes before there are files. */
    enum rfx_status status = rfx_session_create(job->graph, job->plan, &run->session, err);
    if (status == RFX_OK)
        status =
            rfx_cli_outputs_open(job->mem, job->graph, run->options, &job->geo, &run->outputs, err);
    if (run->missing.mem != NULL) run->outputs.missing = &run->missing;
    bool paged = run->options->report != NULL;
    if (status == RFX_OK && paged) status = rfx_run_page_open(&run->page, run->options, job, err);
    bool overlaid = run->overlaid;
    if (status == RFX_OK && overlaid)
        status = rfx_overlay_open(&run->overlay, run->options, job, &run->shown, err);
    if (overlaid) run->page.overlay = &run->overlay;
    if (status != RFX_OK) return status;
    struct rfx_output_sink sink = rfx_cli_outputs_sink(&run->outputs);
    if (paged) rfx_run_page_watch(&run->page, run->session, &sink);
    if (overlaid) rfx_overlay_watch(&run->overlay, &sink);
    rfx_session_set_sink(run->session, &sink);
    rfx_session_set_spill_folder(run->session, run->options->spill);
    rfx_cli_progress_start(&progress, "run");
    progress.rows = streamed_rows(job->plan) * run->images;
    progress.cols = job->graph->nodes[job->graph->input].out.w;
    status = run_images(run, &progress, err);
    rfx_session_set_sink(run->session, NULL);
    if (paged) rfx_run_page_end(&run->page, run->session, &run->report);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK && run->images == 1)
        status = rfx_cli_classes_find(run->session, job->mem, run->options, &run->classes, err);
    if (status == RFX_OK) status = rfx_cli_outputs_finish(&run->outputs, run->session, err);
    if (status == RFX_OK && overlaid) status = rfx_overlay_draw(&run->overlay, run->session, err);
    if (status == RFX_OK && paged)
        status = rfx_run_page_write(&run->page, run->session, &run->outputs, &run->report, err);
    return status;
}

static int print_result(const struct run *run) {
    struct rfx_run_result result = {
        .options = run->options,
        .graph = run->job.graph,
        .plan = run->job.plan,
        .report = &run->report,
        .outputs = &run->outputs,
        .classes = &run->classes,
        .overlay = run->options->overlay != NULL ? &run->overlay : NULL};
    return rfx_run_result_print(&result);
}

/* Opens model and picture, whose images are counted. */
static int open_job(struct run *run) {
    struct rfx_cli_options *options = run->options;
    options->images = INT64_MAX;
    int code = rfx_cli_job_open(&run->job, options, options->args[1]);
    if (code != RFX_EXIT_DONE) return code;
    options->images = run->images = rfx_image_facts(run->job.image).images;
    const char *why = run->images > 1 ? rfx_cli_options_not_of_batch(options) : NULL;
    if (why != NULL) {
        rfx_cli_message("'%s' is a batch of %lld images: %s", options->shown[1],
                        (long long)run->images, why);
        return RFX_EXIT_USAGE;
    }
    return rfx_cli_outputs_check(run->job.graph, options);
}

/* Finds the output pixels that --nodata marks. */
static int find_missing(struct run *run) {
    const struct rfx_cli_options *options = run->options;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    bool middle = options->nodata_mark != NULL && strcmp(options->nodata_mark, "centre") == 0;
    if (!rfx_cli_options_mark(options)) return RFX_EXIT_DONE;
    if (run->images > 1) {
        rfx_cli_message(
            "--nodata marks the outputs of one image, not of a batch: --nodata-mark "
            "none fills the images alone");
        return RFX_EXIT_USAGE;
    }
    int code = rfx_cli_job_open_flags(&run->job, options, options->args[1], &image);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = rfx_missing_find(run->job.mem, run->job.graph, image, middle,
                                              options->memory_bytes, &run->missing, &err);
    rfx_image_free(image);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    run->job.request.source.fixed_bytes += rfx_missing_bytes(&run->missing);
    rfx_cli_message("'%s': %lld of its pixels %s missing", options->shown[1],
                    (long long)run->missing.pixels, run->missing.pixels == 1 ? "is" : "are");
    for (int k = 0; k < run->missing.n; ++k)
        if (run->missing.maps[k].h == 0)
            rfx_cli_message("output '%s' is no map with a place in the picture: it is not marked",
                            run->job.graph->outputs[k].name);
    return RFX_EXIT_DONE;
}

int rfx_cmd_run(const struct rfx_cli_options *given) {
    bool part = given->part != NULL || given->part_rect != NULL;
    if (part && given->mask == NULL) return rfx_part_run(given);
    static struct rfx_cli_options of_run; /* large for a stack */
    struct rfx_cli_options *options = &of_run;
    of_run = *given;
    struct run run = {.options = options};
    struct rfx_error err = {{0}};
    if (options->mask != NULL && (options->n_args == 2 || options->list != NULL))
        return rfx_run_masked(options);
    if (options->n_args != (options->list != NULL ? 1 : 2)) {
        rfx_cli_message("run needs %s, %d given; 'rfexec help run' explains",
                        options->list != NULL ? "1 argument with --list" : "2 arguments",
                        options->n_args);
        return RFX_EXIT_USAGE;
    }
    if (options->list != NULL) return rfx_run_list(options);
    int code = open_job(&run);
    run.overlaid = options->overlay != NULL;
    if (code == RFX_EXIT_DONE) code = find_missing(&run);
    if (code == RFX_EXIT_DONE && run.overlaid)
        code = rfx_overlay_choose(run.job.graph, options, &run.shown);
    else if (code == RFX_EXIT_DONE && options->report != NULL)
        code = rfx_overlay_choose_for_page(run.job.graph, options, &run.shown, &run.overlaid);
    if (code == RFX_EXIT_DONE) {
        /* Encoders and buffers of the files are within the budget too. */
        run.job.request.source.fixed_bytes +=
            rfx_cli_outputs_bytes(run.job.graph, options, &run.job.geo);
        if (options->report != NULL)
            run.job.request.source.fixed_bytes += rfx_run_page_bytes(run.job.graph);
        if (run.overlaid)
            run.job.request.source.fixed_bytes +=
                rfx_overlay_bytes(run.job.graph, options, &run.shown);
        code = rfx_cli_job_plan(&run.job, options, "run");
    }
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = execute(&run, &err);
        if (status != RFX_OK)
            code = rfx_cli_fail(status, &err);
        else
            code = print_result(&run);
        rfx_cli_job_tell_budget(&run.job, options, status);
    }
    rfx_cli_classes_free(&run.classes);
    rfx_overlay_free(&run.overlay);
    rfx_run_page_free(&run.page);
    rfx_cli_outputs_free(&run.outputs);
    rfx_missing_release(&run.missing);
    rfx_session_free(run.session);
    rfx_cli_job_free(&run.job);
    return code;
}
