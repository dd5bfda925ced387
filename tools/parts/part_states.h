/* Rounds of parts before a global operation: rfexec run --part of a network that has them writes
 * its share of their states, merge adds them up, and where nothing behind them reads the image any
 * more it makes the output. */
#ifndef RFX_TOOLS_PARTS_PART_STATES_H
#define RFX_TOOLS_PARTS_PART_STATES_H

#include "tools/cli/job.h"
#include "tools/parts/part_round.h"

/* Reads --states, which must be of `run`, and finds what is left to do for output k. Prints why
 * there are no parts and returns an exit code. */
RFX_NODISCARD int rfx_part_look_before(const struct rfx_cli_job *job,
                                       const struct rfx_cli_run_options *options, int k,
                                       json_t *run, struct rfx_part_before *before);

/* Makes the states of the next round of output k, unless they are there. The job's graph is the
 * whole one. Returns an exit code. */
RFX_NODISCARD int rfx_part_make_states(struct rfx_cli_job *job,
                                       const struct rfx_cli_run_options *options, int k,
                                       json_t *run, const struct rfx_part_before *before);

struct rfx_merge_options;

/* rfexec merge of files of states. Returns an exit code. */
RFX_NODISCARD int rfx_part_merge_states(const struct rfx_merge_options *options,
                                        struct rfx_memory *mem);
#endif
