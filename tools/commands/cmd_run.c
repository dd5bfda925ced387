/* rfexec run: one image through one network; outputs to a file, figures to stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/classes.h"
#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/page/run_page.h"

struct run {
    struct rfx_cli_job job;
    const struct rfx_cli_options *options;
    struct rfx_session *session;
    struct rfx_cli_outputs outputs;
    struct rfx_cli_classes classes;
    struct rfx_run_report report;
    struct rfx_run_page page; /* of --report; zeros: none */
};

/* A list of another length is said, not refused: it may name the first classes alone, or one more
 * for the background. */
static void tell_label_count(const struct run *run) {
    int64_t classes = run->outputs.items[0].tensor->elems, names = run->classes.n_labels;
    if (run->classes.labels == NULL || names == classes) return;
    rfx_cli_message("labels '%s': %lld names for %lld classes", run->options->labels,
                    (long long)names, (long long)classes);
}

static int print_json(const struct run *run) {
    const struct rfx_cli_options *options = run->options;
    json_t *document = rfx_report_document("run", options->shown[0]);
    rfx_report_conv(document, run->job.graph);
    json_t *outputs = json_array();
    for (int k = 0; k < run->outputs.count; ++k) {
        const struct rfx_cli_output *output = &run->outputs.items[k];
        (void)json_array_append_new(
            outputs, json_pack("{s:s, s:o, s:s}", "name", output->name, "shape",
                               rfx_report_shape(&output->tensor->shape), "hash", output->hash));
    }
    (void)json_object_set_new(document, "input", json_string(options->shown[1]));
    (void)json_object_set_new(document, "plan", rfx_report_plan(run->job.plan));
    (void)json_object_set_new(document, "measured", rfx_report_measured(&run->report));
    (void)json_object_set(document, "output", json_array_get(outputs, 0));
    (void)json_object_set_new(document, "outputs", outputs);
    if (run->classes.count > 0) {
        json_t *top = json_array();
        for (int i = 0; i < run->classes.count; ++i) {
            const struct rfx_cli_class *c = &run->classes.items[i];
            (void)json_array_append_new(
                top, json_pack("{s:I, s:s?, s:o}", "class", (json_int_t)c->index, "label", c->label,
                               "value", rfx_report_number((double)c->value)));
        }
        (void)json_object_set_new(document, "top", top);
    }
    return rfx_report_print(document);
}

static int print_text(const struct run *run) {
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS], shape[96];
    rfx_report_plan_text(run->job.plan);
    printf("measured   %s peak RSS, %s of activations, %.3f s\n",
           rfx_human_bytes(rfx_peak_rss_bytes(), a),
           rfx_human_bytes(run->report.arena_high_water_bytes, b), run->report.seconds);
    for (int k = 0; k < run->outputs.count; ++k) {
        const struct rfx_cli_output *output = &run->outputs.items[k];
        printf("output     %s %s, hash %s\n", output->name,
               rfx_human_shape(&output->tensor->shape, shape), output->hash);
    }
    if (rfx_builtin_exists(run->options->args[0]))
        printf(
            "weights    seeded (--seed %llu), not trained: times, memory and bits are real, "
            "classes "
            "are not\n",
            (unsigned long long)run->options->seed);
    for (int i = 0; i < run->classes.count; ++i) {
        const struct rfx_cli_class *c = &run->classes.items[i];
        printf("%-10s %6lld  %12.6g  %s\n", i == 0 ? "top" : "", (long long)c->index,
               (double)c->value, c->label != NULL ? c->label : "");
    }
    return RFX_EXIT_DONE;
}

/* Rows of the picture that go through the network by rows, for the bar; 0: they do not. */
static int64_t streamed_rows(const struct rfx_plan *plan) {
    for (int i = 0; i < plan->n_stages; ++i)
        if (plan->stages[i].spec.band_rows > 0) return plan->graph->nodes[plan->graph->input].out.h;
    return 0;
}

static enum rfx_status execute(struct run *run, struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_cli_progress progress;
    /* What may end the process, the start of libraries, comes before there are files. */
    enum rfx_status status = rfx_session_create(job->graph, job->plan, &run->session, err);
    if (status == RFX_OK)
        status = rfx_cli_outputs_open(job->mem, job->graph, run->options, &run->outputs, err);
    bool paged = run->options->report != NULL;
    if (status == RFX_OK && paged) status = rfx_run_page_open(&run->page, run->options, job, err);
    if (status != RFX_OK) return status;
    struct rfx_output_sink sink = rfx_cli_outputs_sink(&run->outputs);
    if (paged) rfx_run_page_watch(&run->page, run->session, &sink);
    rfx_session_set_sink(run->session, &sink);
    rfx_session_set_spill_folder(run->session, run->options->spill);
    rfx_cli_progress_start(&progress, "run");
    progress.rows = streamed_rows(job->plan);
    progress.cols = job->graph->nodes[job->graph->input].out.w;
    status = rfx_session_run(run->session, job->image, rfx_cli_progress_step, &progress,
                             &run->report, err);
    rfx_session_set_sink(run->session, NULL);
    if (paged) rfx_run_page_end(&run->page, run->session, &run->report);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK)
        status = rfx_cli_classes_find(run->session, job->mem, run->options, &run->classes, err);
    if (status == RFX_OK) status = rfx_cli_outputs_finish(&run->outputs, run->session, err);
    if (status == RFX_OK && paged)
        status = rfx_run_page_write(&run->page, run->session, &run->outputs, &run->report, err);
    return status;
}

int rfx_cmd_run(const struct rfx_cli_options *options) {
    struct run run = {.options = options};
    struct rfx_error err = {{0}};
    int code = rfx_cli_job_open(&run.job, options, options->args[1]);
    if (code == RFX_EXIT_DONE) code = rfx_cli_outputs_check(run.job.graph, options);
    if (code == RFX_EXIT_DONE) {
        /* Encoders and buffers of the files are within the budget too. */
        run.job.request.source.fixed_bytes += rfx_cli_outputs_bytes(run.job.graph, options);
        if (options->report != NULL)
            run.job.request.source.fixed_bytes += rfx_run_page_bytes(run.job.graph);
        code = rfx_cli_job_plan(&run.job, options, "run");
    }
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = execute(&run, &err);
        if (status != RFX_OK)
            code = rfx_cli_fail(status, &err);
        else
            code = options->json ? print_json(&run) : print_text(&run);
        if (code == RFX_EXIT_DONE) tell_label_count(&run);
    }
    rfx_cli_classes_free(&run.classes);
    rfx_run_page_free(&run.page);
    rfx_cli_outputs_free(&run.outputs);
    rfx_session_free(run.session);
    rfx_cli_job_free(&run.job);
    return code;
}
