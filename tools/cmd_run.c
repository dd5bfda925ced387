/* rfexec run: one image through one network; outputs to a file, figures to stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "outputs.h"
#include "progress.h"
#include "report.h"

static int print_json(const struct rfx_cli_job *job, const struct rfx_cli_options *options,
                      const struct rfx_session *session, const struct rfx_run_report *report,
                      const struct rfx_cli_classes *classes) {
    json_t *document = rfx_report_document("run", options->args[0]);
    json_t *outputs = json_array();
    struct rfx_error err = {{0}};
    for (int k = 0; k < rfx_session_output_count(session); ++k) {
        char hash[RFX_FINGERPRINT_CHARS];
        enum rfx_status status = rfx_cli_output_hash(session, job->mem, k, hash, &err);
        if (status != RFX_OK) {
            json_decref(outputs);
            json_decref(document);
            return rfx_cli_fail(status, &err);
        }
        (void)json_array_append_new(
            outputs,
            json_pack("{s:s, s:o, s:s}", "name", rfx_session_output_name(session, k), "shape",
                      rfx_report_shape(&rfx_session_output_tensor(session, k)->shape), "hash",
                      hash));
    }
    (void)json_object_set_new(document, "input", json_string(options->args[1]));
    (void)json_object_set_new(document, "plan", rfx_report_plan(job->plan));
    (void)json_object_set_new(document, "measured", rfx_report_measured(report));
    (void)json_object_set(document, "output", json_array_get(outputs, 0));
    (void)json_object_set_new(document, "outputs", outputs);
    if (classes->count > 0) {
        json_t *top = json_array();
        for (int i = 0; i < classes->count; ++i) {
            const struct rfx_cli_class *c = &classes->items[i];
            (void)json_array_append_new(
                top, json_pack("{s:I, s:s?, s:o}", "class", (json_int_t)c->index, "label", c->label,
                               "value", rfx_report_number((double)c->value)));
        }
        (void)json_object_set_new(document, "top", top);
    }
    return rfx_report_print(document);
}

static int print_text(const struct rfx_cli_job *job, const struct rfx_session *session,
                      const struct rfx_run_report *report, const struct rfx_cli_classes *classes) {
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS], shape[96], hash[RFX_FINGERPRINT_CHARS];
    struct rfx_error err = {{0}};
    rfx_report_plan_text(job->plan);
    printf("measured   %s peak RSS, %s of activations, %.3f s\n",
           rfx_human_bytes(rfx_peak_rss_bytes(), a),
           rfx_human_bytes(report->arena_high_water_bytes, b), report->seconds);
    for (int k = 0; k < rfx_session_output_count(session); ++k) {
        enum rfx_status status = rfx_cli_output_hash(session, job->mem, k, hash, &err);
        if (status != RFX_OK) return rfx_cli_fail(status, &err);
        printf("output     %s %s, hash %s\n", rfx_session_output_name(session, k),
               rfx_human_shape(&rfx_session_output_tensor(session, k)->shape, shape), hash);
    }
    for (int i = 0; i < classes->count; ++i) {
        const struct rfx_cli_class *c = &classes->items[i];
        printf("%-10s %6lld  %12.6g  %s\n", i == 0 ? "top" : "", (long long)c->index,
               (double)c->value, c->label != NULL ? c->label : "");
    }
    return RFX_EXIT_DONE;
}

static int finish(const struct rfx_cli_job *job, const struct rfx_cli_options *options,
                  const struct rfx_session *session, const struct rfx_run_report *report) {
    struct rfx_cli_classes classes = {0};
    struct rfx_error err = {{0}};
    int code;
    enum rfx_status status = options->output != NULL
                                 ? rfx_cli_outputs_write(session, job->mem, options->output, &err)
                                 : RFX_OK;
    if (status == RFX_OK) status = rfx_cli_classes_find(session, job->mem, options, &classes, &err);
    if (status != RFX_OK)
        code = rfx_cli_fail(status, &err);
    else if (options->json)
        code = print_json(job, options, session, report, &classes);
    else
        code = print_text(job, session, report, &classes);
    rfx_cli_classes_free(&classes);
    return code;
}

int rfx_cmd_run(const struct rfx_cli_options *options) {
    struct rfx_cli_job job;
    struct rfx_session *session = NULL;
    struct rfx_run_report report = {0};
    struct rfx_cli_progress progress;
    struct rfx_error err = {{0}};
    int code = rfx_cli_job_open(&job, options, options->args[1]);
    if (code == RFX_EXIT_DONE) code = rfx_cli_outputs_check(job.graph, options);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&job, options, "run");
    if (code != RFX_EXIT_DONE) goto done;
    enum rfx_status status = rfx_session_create(job.graph, job.plan, &session, &err);
    rfx_cli_progress_start(&progress, "run");
    if (status == RFX_OK)
        status =
            rfx_session_run(session, job.image, rfx_cli_progress_step, &progress, &report, &err);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(&err, RFX_STATUS_CANCELLED, "stopped by a signal");
    code = status == RFX_OK ? finish(&job, options, session, &report) : rfx_cli_fail(status, &err);
done:
    rfx_session_free(session);
    rfx_cli_job_free(&job);
    return code;
}
