/* rfexec plan: what a run would do, without doing it; -o writes it as a file for --plan. */
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "report.h"
#include "rfexec/output_write.h"

static int write_plan(const struct rfx_cli_job *job, const struct rfx_cli_options *options) {
    struct rfx_output_file *file = NULL;
    struct rfx_error err = {{0}};
    char *text = NULL;
    enum rfx_status status = rfx_plan_file_text(job->plan, options->args[0], &text, &err);
    if (status == RFX_OK) status = rfx_output_file_open(job->mem, options->output, &file, &err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), &err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, &err);
    rfx_output_file_free(file);
    rfx_memory_release(job->mem, text);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int print_json(const struct rfx_cli_job *job, const struct rfx_cli_options *options,
                      bool checked) {
    json_t *document = rfx_report_document("plan", options->args[0]);
    (void)json_object_set_new(document, "input",
                              rfx_report_shape(&job->graph->nodes[job->graph->input].out.shape));
    (void)json_object_set_new(document, "plan", rfx_report_plan(job->plan));
    if (checked) (void)json_object_set_new(document, "checked", json_true());
    return rfx_report_print(document);
}

int rfx_cmd_plan(const struct rfx_cli_options *options) {
    struct rfx_cli_job job;
    bool checked = options->check || options->plan_file != NULL;
    int code = rfx_cli_job_open(&job, options, options->n_args > 1 ? options->args[1] : NULL);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&job, options, "plan");
    if (code == RFX_EXIT_DONE && options->output != NULL) code = write_plan(&job, options);
    if (code == RFX_EXIT_DONE && options->json) {
        code = print_json(&job, options, checked);
    } else if (code == RFX_EXIT_DONE) {
        rfx_report_plan_text(job.plan);
        if (checked) puts("checked    sound");
    }
    rfx_cli_job_free(&job);
    return code;
}
