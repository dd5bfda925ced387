/* Files of what is found in the outputs of a run, besides those of -o: --regions, --points,
 * --summary and --boxes. */
#ifndef RFX_TOOLS_CLI_ANSWERS_H
#define RFX_TOOLS_CLI_ANSWERS_H

#include "rfexec/output/detector.h"
#include "rfexec/output/output_files.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"

/* A file of one of these options. */
struct rfx_cli_answer {
    int output;
    int prototypes; /* output whose pieces the file takes too (rfx_output_declare_prototypes), or
                       the same one */
    struct rfx_output_stream *stream; /* NULL: the option is not given */
    struct rfx_found found;           /* set by rfx_cli_answers_finish */
    struct rfx_answer_watch watch;    /* who sees points and text; may be set until the run */
};

enum {
    RFX_CLI_REGIONS,
    RFX_CLI_POINTS,
    RFX_CLI_SUMMARY,
    RFX_CLI_TEXT_BOXES,
    RFX_CLI_BOXES,
    RFX_CLI_ANSWERS
};

struct rfx_cli_answers { /* all zero: none */
    struct rfx_cli_answer items[RFX_CLI_ANSWERS];
};

/* Returns whether the outputs of a head have to be joined (rfx_load_options): --boxes, or a file of
 * boxes in --for-output or -o, asks for boxes, and not for those of a certain output; or there are
 * parts and a --head. */
bool rfx_cli_answers_join(const struct rfx_cli_run_options *options);

/* Sets the members of *model that say how the head is joined. If --head is a file, reads it into
 * *detector, which must live while the network is loaded. Call it with model->join_heads set. */
RFX_NODISCARD int rfx_cli_answers_head(struct rfx_memory *mem,
                                       const struct rfx_cli_run_options *options,
                                       struct rfx_detector *detector,
                                       struct rfx_cli_model_options *model);

/* Makes -o the option --boxes if its file can have nothing but boxes (.json, .boxes.csv ...): a
 * file has the boxes of one output, where -o is about each. Call it before the network is loaded.
 */
void rfx_cli_answers_settle(struct rfx_cli_output_options *options);

/* Checks before the run that the options suit the outputs. Prints why they do not. */
RFX_NODISCARD int rfx_cli_answers_check(const struct rfx_graph *graph,
                                        const struct rfx_cli_run_options *options);

/* Returns the output in which the answer `which`, such as RFX_CLI_REGIONS, is found, or -1: there
 * is no such option. Call rfx_cli_answers_check before. */
int rfx_cli_answers_output(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                           int which);

/* Returns the largest number of boxes of --boxes, or 0: there is no such option. */
int64_t rfx_cli_answers_most_boxes(const struct rfx_cli_run_options *options);

/* Returns whether the shape of output k is that of a detector's boxes. */
bool rfx_cli_answers_may_have_boxes(const struct rfx_graph *graph, int k);

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

/* Says how many areas of --within hold no pixel, if there are any. */
void rfx_cli_answers_notice(const struct rfx_found *found);

/* Returns whether one of the options is given. */
bool rfx_cli_answers_any(const struct rfx_cli_answer_options *options);

void rfx_cli_answers_free(struct rfx_cli_answers *answers);
#endif
