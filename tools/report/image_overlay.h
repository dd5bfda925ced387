/* The image of `run --overlay`: the input with an output over it, half transparent. The report of
 * `--report` shows a small copy of it; for that copy alone not every row is drawn.
 *
 * While the network runs, one value for each pixel of the map is written to a file without a name
 * beside the image. After the run the input is read again (a float image twice, to find its black
 * and white first), and image and values are combined row by row. So the overlay takes a few rows
 * of memory (rfx_overlay_bytes), which belong in the budget, whatever the size of the image.
 * Invariants: 1. no bit of an output changes; 2. the file gets its name only from rfx_overlay_draw;
 * 3. its bytes do not depend on the plan or on the small copy. */
#ifndef RFX_TOOLS_REPORT_IMAGE_OVERLAY_H
#define RFX_TOOLS_REPORT_IMAGE_OVERLAY_H

#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_spool.h"
#include "rfexec/output/output_stream.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"
#include "tools/report/overlay_drawing.h"

struct rfx_overlay_choice {
    int output;      /* of the graph */
    int map;         /* the node whose map is shown; not the output's own node where that is the map
                        reshaped */
    int64_t channel; /* counted from 0; -1: labels */
    struct rfx_output_format format;
};

/* Chooses from the options. The default is the first output that is a map: its labels where it has
 * several channels or comes from an ArgMax, otherwise its values. Returns RFX_EXIT_USAGE after a
 * message. */
RFX_NODISCARD int rfx_overlay_choose(const struct rfx_graph *graph,
                                     const struct rfx_cli_run_options *options,
                                     struct rfx_overlay_choice *choice);

/* The same for a report, for which nobody may have asked for an overlay; *shown: whether there is
 * one. Without --overlay-of and the like there is none, without a message, where no output is a map
 * or the first map may be an image itself (three channels, or larger than the input). Of a map
 * whose channels are independent (sigmoid) the first channel is shown. */
RFX_NODISCARD int rfx_overlay_choose_for_page(const struct rfx_graph *graph,
                                              const struct rfx_cli_run_options *options,
                                              struct rfx_overlay_choice *choice, bool *shown);

struct rfx_overlay { /* all zeros: no overlay */
    struct rfx_memory *mem;
    const struct rfx_cli_run_options *options; /* borrowed, as is `job` */
    const struct rfx_cli_job *job;
    struct rfx_overlay_choice choice;
    struct rfx_map_place rows, cols;
    struct rfx_output_sink sink;      /* of the outputs, which gets everything that comes */
    struct rfx_output_stream *stream; /* NULL: no --overlay */
    struct rfx_small_copy small;      /* zeros: no --report */
    struct rfx_output_spool *spool;
    float *values;  /* [w of the map] */
    float *pixels;  /* [w, c] of the input */
    float *colours; /* [w, 3] of the overlay, 0 to 255 */
    int64_t received;
    struct rfx_value_range range; /* of the values: drawn clear, drawn bright */
};

/* Bytes that the overlay holds while the network runs and after it. */
size_t rfx_overlay_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                         const struct rfx_overlay_choice *choice);

/* Opens options->report.overlay, and the copy for options->report.page, for a planned job. Freed
 * with rfx_overlay_free; zeros need no freeing. */
RFX_NODISCARD enum rfx_status rfx_overlay_open(struct rfx_overlay *overlay,
                                               const struct rfx_cli_run_options *options,
                                               const struct rfx_cli_job *job,
                                               const struct rfx_overlay_choice *choice,
                                               struct rfx_error *err);

/* Before the run: replaces `sink` by one that also keeps the values. */
void rfx_overlay_watch(struct rfx_overlay *overlay, struct rfx_output_sink *sink);

/* After the outputs are complete: draws, and gives the file its name. CANCELLED: a signal came. */
RFX_NODISCARD enum rfx_status rfx_overlay_draw(struct rfx_overlay *overlay, struct rfx_error *err);

/* Describes what is shown: "channel 2 of 'defects': 0.01 clear, 0.98 bright". */
enum { RFX_OVERLAY_TEXT = 320 };
void rfx_overlay_describe(const struct rfx_overlay *overlay, char text[RFX_OVERLAY_TEXT]);

void rfx_overlay_free(struct rfx_overlay *overlay);
#endif
