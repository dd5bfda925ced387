/* Files of what is found in the outputs of a run: --regions and --boxes. */
#ifndef RFX_TOOLS_CLI_ANSWERS_H
#define RFX_TOOLS_CLI_ANSWERS_H

#include "rfexec/answers/boxes_file.h"
#include "rfexec/output/output_files.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"

struct rfx_cli_answers { /* all zero: none */
    int regions_output;
    struct rfx_output_stream *regions; /* NULL: none */
    int64_t n_regions;                 /* regions that were written; set by finish */
    struct rfx_boxes_file *boxes;      /* NULL: none */
    struct rfx_boxes_source source;    /* of the boxes */
    int64_t n_boxes;
};

/* Checks before the run that --regions and --boxes suit the outputs. Prints why they do not. */
RFX_NODISCARD int rfx_cli_answers_check(const struct rfx_graph *graph,
                                        const struct rfx_cli_run_options *options);

/* Returns the output in which --regions are found, or -1: there is no such option. Call
 * rfx_cli_answers_check before. */
int rfx_cli_answers_regions(const struct rfx_graph *graph,
                            const struct rfx_cli_run_options *options);

/* Returns the largest number of boxes of --boxes, or 0: there is no such option. */
int64_t rfx_cli_answers_most_boxes(const struct rfx_cli_run_options *options);

/* Adds the memory of the files to the sum. */
void rfx_cli_answers_add(struct rfx_output_files_bytes *sum, const struct rfx_output_files *files,
                         const struct rfx_cli_run_options *options);

/* Opens the files under temporary names. */
RFX_NODISCARD enum rfx_status rfx_cli_answers_open(const struct rfx_output_files *files,
                                                   const struct rfx_cli_run_options *options,
                                                   struct rfx_cli_answers *answers,
                                                   struct rfx_error *err);

/* Takes a piece of an output. */
RFX_NODISCARD enum rfx_status rfx_cli_answers_write(struct rfx_cli_answers *answers,
                                                    const struct rfx_end *end, struct rfx_rect rect,
                                                    const struct rfx_view *view,
                                                    struct rfx_error *err);

/* Completes the files and gives them their names. */
RFX_NODISCARD enum rfx_status rfx_cli_answers_finish(struct rfx_cli_answers *answers,
                                                     struct rfx_cli_progress *progress,
                                                     struct rfx_error *err);

void rfx_cli_answers_free(struct rfx_cli_answers *answers);
#endif
