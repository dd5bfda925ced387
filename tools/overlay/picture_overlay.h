/* The picture of `run --overlay`: the input with an output over it, half transparent. Of
 * `--report` a small copy of it, for which alone not every row is drawn.
 *
 * While the network runs, one value of each of the map's pixels is put down in a nameless file
 * beside the picture; after the run the input is read once more (of floats twice: what is black and
 * white is not known before), and picture and values are put together row by row. So it takes some
 * rows of memory (rfx_overlay_bytes), which belong into the budget, whatever the size.
 * Invariants: 1. bits of outputs are not touched; 2. the file gets its name by rfx_overlay_draw
 * alone; 3. its bytes do not depend on the plan, nor on there being a copy. */
#ifndef RFX_TOOLS_OVERLAY_PICTURE_OVERLAY_H
#define RFX_TOOLS_OVERLAY_PICTURE_OVERLAY_H

#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_spool.h"
#include "tools/cli/job.h"
#include "tools/overlay/map_place.h"
#include "tools/overlay/overlay_choice.h"
#include "tools/overlay/small_copy.h"

struct rfx_overlay { /* all zero: none */
    struct rfx_memory *mem;
    const struct rfx_cli_run_options *options; /* borrowed, as the job */
    const struct rfx_cli_job *job;
    struct rfx_overlay_choice choice;
    struct rfx_map_place rows, cols;
    struct rfx_output_sink sink;      /* of the outputs; everything that comes is passed on to it */
    struct rfx_output_stream *stream; /* NULL: no --overlay */
    struct rfx_small_copy small;      /* zeros: no --report */
    struct rfx_output_spool *spool;
    float *values;  /* [w of the map]: a row */
    float *pixels;  /* [w, c] of the input */
    float *colours; /* [w, 3] of the picture, 0 to 255 */
    int64_t received;
    struct rfx_value_range range; /* of values, clear and bright */
};

/* Bytes that the overlay holds while the network runs and after it. */
size_t rfx_overlay_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                         const struct rfx_overlay_choice *choice);

/* Opens options->report.overlay and the copy for options->report.page, for a planned job. Freed
 * with rfx_overlay_free, of which zeros are none.
 */
RFX_NODISCARD enum rfx_status rfx_overlay_open(struct rfx_overlay *overlay,
                                               const struct rfx_cli_run_options *options,
                                               const struct rfx_cli_job *job,
                                               const struct rfx_overlay_choice *choice,
                                               struct rfx_error *err);

/* Before the run: watches what goes to `sink`, which is replaced. */
void rfx_overlay_watch(struct rfx_overlay *overlay, struct rfx_output_sink *sink);

/* When the outputs are complete: draws and gives the file its name. CANCELLED: a signal came. */
RFX_NODISCARD enum rfx_status rfx_overlay_draw(struct rfx_overlay *overlay, struct rfx_error *err);

/* What is shown, in words: "channel 2 of 'defects': 0.01 clear, 0.98 bright". */
enum { RFX_OVERLAY_TEXT = 320 };
void rfx_overlay_describe(const struct rfx_overlay *overlay, char text[RFX_OVERLAY_TEXT]);

void rfx_overlay_free(struct rfx_overlay *overlay);
#endif
