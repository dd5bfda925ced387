/* The page of `run --report`: one HTML file that needs nothing else, of what ran, its plan in a
 * picture, memory and time as they were, and the outputs.
 *
 * Its memory is of a fixed size for a graph (rfx_run_page_bytes) and belongs into the budget; the
 * file itself is written piece by piece. Invariants: 1. the file is opened before the run and gets
 * its name by rfx_run_page_write alone; 2. a page changes no bit of an output; 3. figures are those
 * of the run reported, none is measured again. */
#ifndef RFX_TOOLS_PAGE_RUN_PAGE_H
#define RFX_TOOLS_PAGE_RUN_PAGE_H

#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/measure/layer_times.h"
#include "tools/overlay/picture_overlay.h"
#include "tools/page/html.h"
#include "tools/page/map_preview.h"
#include "tools/page/run_timeline.h"
#include "tools/page/value_sketch.h"

/* Outputs of which there are pictures; values of all are counted. */
enum { RFX_PAGE_PREVIEWS = 4 };

struct rfx_page_output {
    struct rfx_value_sketch values;
    struct rfx_map_preview preview; /* zeros: none */
};

struct rfx_run_page {
    struct rfx_memory *mem;
    const struct rfx_cli_run_options *options; /* borrowed, as the following */
    const struct rfx_cli_job *job;
    struct rfx_output_sink sink; /* of the outputs; everything that comes is passed on to it */
    struct rfx_output_file *file;
    struct rfx_html html;
    struct rfx_arena_use *use;
    struct rfx_layer_times *times;
    struct rfx_run_timeline timeline;
    int n_outputs;
    struct rfx_page_output *outputs;
    const struct rfx_overlay *overlay; /* borrowed, drawn before the page is; NULL: none */
};

/* Bytes that a page holds while the network runs and after it. */
size_t rfx_run_page_bytes(const struct rfx_graph *graph);

/* Opens options->report.page for a planned job. Freed with rfx_run_page_free, of which zeros are
 * none.
 */
RFX_NODISCARD enum rfx_status rfx_run_page_open(struct rfx_run_page *page,
                                                const struct rfx_cli_run_options *options,
                                                const struct rfx_cli_job *job,
                                                struct rfx_error *err);

/* Before and after the run: watches its steps, and what goes to `sink`, which is replaced. */
void rfx_run_page_watch(struct rfx_run_page *page, struct rfx_session *session,
                        struct rfx_output_sink *sink);
void rfx_run_page_end(struct rfx_run_page *page, struct rfx_session *session,
                      const struct rfx_run_report *report);

/* When the outputs are complete: writes the page and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_run_page_write(struct rfx_run_page *page,
                                                 const struct rfx_cli_outputs *outputs,
                                                 const struct rfx_run_report *report,
                                                 struct rfx_error *err);

void rfx_run_page_free(struct rfx_run_page *page);
#endif
