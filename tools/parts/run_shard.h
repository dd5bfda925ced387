/* Rounds of parts before a global operation: rfexec run --part of a network that has them writes
 * its share of their states, merge adds them up, and where nothing behind them reads the image any
 * more it makes the output. */
/* rfexec run --part: one part of an output, as a file. */
#ifndef RFX_TOOLS_PARTS_RUN_SHARD_H
#define RFX_TOOLS_PARTS_RUN_SHARD_H

#include "tools/cli/job.h"
#include "tools/cli/options.h"
#include "tools/parts/part_round.h"

/* rfexec merge of files of states. Returns an exit code. */
RFX_NODISCARD int rfx_part_merge_states(const struct rfx_cli_options *options,
                                        struct rfx_memory *mem);

/* Makes the part that the options ask for, unless its file is there and of the same run. Returns an
 * exit code. */
int rfx_part_run(const struct rfx_cli_options *options);
#endif
