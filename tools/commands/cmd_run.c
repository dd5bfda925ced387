/* rfexec run: one image, or one after the other those of a batch, through one network; outputs to a
 * file, figures to stdout. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tools/cli/classes.h"
#include "tools/cli/command.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/commands/command_forms.h"
#include "tools/program/run_request.h"
#include "tools/program/run_result.h"
#include "tools/report/html_report.h"

struct run {
    struct rfx_run_request asked;
    int64_t image; /* of a batch: the one that is run */
    struct rfx_session *session;
    struct rfx_cli_outputs outputs;
    struct rfx_cli_classes classes;
    struct rfx_run_report report;
    struct rfx_html_report page; /* of --report; zeros: none */
    struct rfx_overlay overlay;  /* of --overlay, and a small one of --report; zeros: none */
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
    return rfx_cli_progress_step(progress->bar, run->image * total + done,
                                 run->asked.images * total);
}

/* The images one after the other, in the same memory; the report is that of all. */
static enum rfx_status run_images(struct run *run, struct rfx_cli_progress *bar,
                                  struct rfx_error *err) {
    struct batch_progress progress = {run, bar};
    struct rfx_run_report sum = {0}, one = {0};
    enum rfx_status status = RFX_OK;
    for (run->image = 0; run->image < run->asked.images && status == RFX_OK; ++run->image) {
        if (run->image > 0) status = rfx_cli_outputs_next(&run->outputs, err);
        if (status != RFX_OK) break;
        rfx_image_select(run->asked.job.image, run->image);
        status = rfx_session_run(run->session, run->asked.job.image, step_of_batch, &progress, &one,
                                 err);
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
    struct rfx_cli_job *job = &run->asked.job;
    struct rfx_cli_progress progress;
    /* What may end the process, the start of libraries, comes before there are files. */
    enum rfx_status status = rfx_session_create(job->graph, job->plan, &run->session, err);
    if (status == RFX_OK)
        status = rfx_cli_outputs_open(job->mem, job->graph, run->asked.options, &job->geo,
                                      &run->outputs, err);
    if (run->asked.missing.mem != NULL) run->outputs.missing = &run->asked.missing;
    if (status == RFX_OK && run->asked.images == 1) {
        status =
            rfx_cli_classes_begin(job->mem, job->graph, run->asked.options, &run->classes, err);
        run->outputs.classes = &run->classes;
    }
    bool paged = run->asked.options->report != NULL;
    if (status == RFX_OK && paged)
        status = rfx_html_report_open(&run->page, run->asked.options, job, err);
    bool overlaid = run->asked.overlaid;
    if (status == RFX_OK && overlaid)
        status = rfx_overlay_open(&run->overlay, run->asked.options, job, &run->asked.shown, err);
    if (overlaid) run->page.overlay = &run->overlay;
    if (status != RFX_OK) return status;
    struct rfx_output_sink sink = rfx_cli_outputs_sink(&run->outputs);
    if (paged) rfx_html_report_watch(&run->page, run->session, &sink);
    if (overlaid) rfx_overlay_watch(&run->overlay, &sink);
    rfx_session_set_sink(run->session, &sink);
    rfx_session_set_spill_folder(run->session, run->asked.options->spill);
    rfx_cli_progress_start(&progress, "run");
    progress.rows = streamed_rows(job->plan) * run->asked.images;
    progress.cols = job->graph->nodes[job->graph->input].out.w;
    status = run_images(run, &progress, err);
    rfx_session_set_sink(run->session, NULL);
    if (paged) rfx_html_report_end(&run->page, run->session, &run->report);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK) status = rfx_cli_classes_finish(run->asked.options, &run->classes, err);
    if (status == RFX_OK) status = rfx_cli_outputs_finish(&run->outputs, err);
    if (status == RFX_OK && overlaid) status = rfx_overlay_draw(&run->overlay, err);
    if (status == RFX_OK && paged)
        status = rfx_html_report_write(&run->page, &run->outputs, &run->report, err);
    return status;
}

static int print_result(const struct run *run) {
    struct rfx_run_result result = {
        .options = run->asked.options,
        .graph = run->asked.job.graph,
        .plan = run->asked.job.plan,
        .report = &run->report,
        .outputs = &run->outputs,
        .classes = &run->classes,
        .overlay = run->asked.options->overlay != NULL ? &run->overlay : NULL};
    return rfx_run_result_print(&result);
}

int rfx_cmd_run(const struct rfx_cli_options *given) {
    bool part = given->part != NULL || given->part_rect != NULL;
    if (part && given->mask == NULL) return rfx_run_shard(given);
    static struct rfx_cli_options of_run; /* large for a stack */
    struct rfx_cli_options *options = &of_run;
    of_run = *given;
    struct run run = {.image = 0};
    struct rfx_error err = {{0}};
    if (options->mask != NULL && (options->n_args == 2 || options->list != NULL))
        return rfx_run_masked(options);
    if (options->n_args != (options->list != NULL ? 1 : 2)) {
        rfx_cli_message("run needs %s, %d given; 'rfexec help run' explains",
                        options->list != NULL ? "1 argument with --list" : "2 arguments",
                        options->n_args);
        return RFX_EXIT_USAGE;
    }
    if (options->list != NULL) return rfx_run_batch(options);
    int code = rfx_run_request_open(&run.asked, options, options->args[1]);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&run.asked.job, options, "run");
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = execute(&run, &err);
        if (status != RFX_OK)
            code = rfx_cli_fail(status, &err);
        else
            code = print_result(&run);
        rfx_cli_job_tell_budget(&run.asked.job, options, status);
    }
    rfx_cli_classes_free(&run.classes);
    rfx_overlay_free(&run.overlay);
    rfx_html_report_free(&run.page);
    rfx_cli_outputs_free(&run.outputs);
    rfx_session_free(run.session);
    rfx_run_request_release(&run.asked);
    return code;
}
