/* Functions of run --part that other commands and rfexec-mpi use too. */
#ifndef RFX_TOOLS_COMMANDS_RUN_SHARD_H
#define RFX_TOOLS_COMMANDS_RUN_SHARD_H

#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_rounds.h"
#include "tools/cli/job.h"

/* Sets *k to the output that is divided into shards: the output that --part-output names, or the
 * network's only output. Prints a message when the exit code is not RFX_EXIT_DONE. */
RFX_NODISCARD int rfx_choose_shard_output(const struct rfx_graph *graph,
                                          const struct rfx_cli_run_options *options, int *k);

/* Returns a description of the run's input and how it is read, for rfx_shard_identity. The result
 * points into the job, the options and *read. */
struct rfx_shard_run rfx_cli_shard_run(const struct rfx_cli_job *job,
                                       const struct rfx_cli_run_options *options,
                                       struct rfx_image_options *read);

/* Runs the planned shard of a round and stores its states in `states`. what: word before the
 * progress bar. source NULL: reads the job's image. */
RFX_NODISCARD enum rfx_status rfx_cli_run_round(const struct rfx_cli_job *job,
                                                const struct rfx_shard_source *source,
                                                const char *what, struct rfx_shard_states *states,
                                                struct rfx_shard_round *round,
                                                struct rfx_run_report *report,
                                                struct rfx_error *err);

/* Returns a new JSON list of the command's words, from which commands for other shards can be made.
 * Options that concern one shard are left out (--part, --part-rect, --states, -o, --json, and
 * --parts of plan). Returns NULL when the words are too long or a word is not UTF-8. */
json_t *rfx_shard_command_words(const struct rfx_cli_run_options *options);
#endif
