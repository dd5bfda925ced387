/* What run --part shares with other commands and with rfexec-mpi. */
#ifndef RFX_TOOLS_COMMANDS_RUN_SHARD_H
#define RFX_TOOLS_COMMANDS_RUN_SHARD_H

#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_rounds.h"
#include "tools/cli/job.h"

/* Finds the output that shards are made of: the one that --part-output names, or the only one. A
 * message has been printed when the exit code is not RFX_EXIT_DONE. */
RFX_NODISCARD int rfx_choose_shard_output(const struct rfx_graph *graph,
                                          const struct rfx_cli_run_options *options, int *k);

/* What the network reads and how, for rfx_shard_identity. Borrows the job, the options and *read.
 */
struct rfx_shard_run rfx_cli_shard_run(const struct rfx_cli_job *job,
                                       const struct rfx_cli_run_options *options,
                                       struct rfx_image_options *read);

/* Runs the planned part of a round with a progress bar that is called `what`, and takes its states.
 * source NULL: the job's image. */
RFX_NODISCARD enum rfx_status rfx_cli_run_round(const struct rfx_cli_job *job,
                                                const struct rfx_shard_source *source,
                                                const char *what, struct rfx_shard_states *states,
                                                struct rfx_shard_round *round,
                                                struct rfx_run_report *report,
                                                struct rfx_error *err);

/* The words of the command without those of one shard (--part, --part-rect, --states, -o, --json;
 * --parts of plan), so that others can make the missing shards: a new list. NULL: they are too
 * long, or a word is not UTF-8. */
json_t *rfx_shard_command_words(const struct rfx_cli_run_options *options);
#endif
