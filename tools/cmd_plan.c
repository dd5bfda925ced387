/* rfexec plan: what a run would do, without doing it. */
#include <stdio.h>

#include "job.h"
#include "report.h"

int rfx_cmd_plan(const struct rfx_cli_options *options) {
    struct rfx_cli_job job;
    int code = rfx_cli_job_open(&job, options, options->n_args > 1 ? options->args[1] : NULL);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&job, options, "plan");
    if (code == RFX_EXIT_DONE && options->json) {
        json_t *document = rfx_report_document("plan", options->args[0]);
        (void)json_object_set_new(document, "input",
                                  rfx_report_shape(&job.graph->nodes[job.graph->input].out.shape));
        (void)json_object_set_new(document, "plan", rfx_report_plan(job.plan));
        code = rfx_report_print(document);
    } else if (code == RFX_EXIT_DONE) {
        rfx_report_plan_text(job.plan);
    }
    rfx_cli_job_free(&job);
    return code;
}
