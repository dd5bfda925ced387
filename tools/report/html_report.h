/* The report of `run --report`: one HTML file that needs no other file. It shows what ran, the
 * plan, memory and time of the run, and the outputs.
 *
 * Collecting takes a fixed number of bytes for a graph (rfx_html_report_bytes), which belong in the
 * budget; the file is written piece by piece. Invariants: 1. the file is opened before the run and
 * gets its name only from rfx_html_report_write; 2. a report changes no bit of an output; 3. all
 * figures are of the reported run; nothing is measured again. */
#ifndef RFX_TOOLS_REPORT_HTML_REPORT_H
#define RFX_TOOLS_REPORT_HTML_REPORT_H

#include "rfexec/run/run.h"
#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/report/html.h"
#include "tools/report/image_overlay.h"
#include "tools/report/output_summary.h"
#include "tools/report/run_timeline.h"
#include "tools/study/layer_times.h"

struct rfx_report_output {
    struct rfx_value_sketch values;
    struct rfx_map_preview preview; /* zeros: no preview */
};

struct rfx_html_report {
    struct rfx_memory *mem;
    const struct rfx_cli_run_options *options; /* borrowed, as is `job` */
    const struct rfx_cli_job *job;
    struct rfx_output_sink sink; /* the outputs' own sink; receives all pieces too */
    struct rfx_output_file *file;
    struct rfx_html html;
    struct rfx_arena_use *use;
    struct rfx_layer_times *times;
    struct rfx_run_timeline timeline;
    int n_outputs;
    struct rfx_report_output *outputs;
    const struct rfx_overlay
        *overlay; /* borrowed, drawn before the report is written; NULL: none */
};

/* Returns the bytes of memory that the report takes during and after the run. */
size_t rfx_html_report_bytes(const struct rfx_graph *graph);

/* Opens the file of --report for a planned job. The caller frees the report with
 * rfx_html_report_free; a report of zeros needs no freeing. */
RFX_NODISCARD enum rfx_status rfx_html_report_open(struct rfx_html_report *page,
                                                   const struct rfx_cli_run_options *options,
                                                   const struct rfx_cli_job *job,
                                                   struct rfx_error *err);

/* Called before the run. Sets the observer of `run`, and replaces *sink by a sink that also
 * collects figures and previews of the outputs. */
void rfx_html_report_watch(struct rfx_html_report *page, struct rfx_run *run,
                           struct rfx_output_sink *sink);

/* Called after the run. */
void rfx_html_report_end(struct rfx_html_report *page, const struct rfx_run_report *report);

/* Called after the outputs are complete. Writes the report and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_html_report_write(struct rfx_html_report *page,
                                                    const struct rfx_cli_outputs *outputs,
                                                    const struct rfx_run_report *report,
                                                    struct rfx_error *err);

void rfx_html_report_free(struct rfx_html_report *page);
#endif
