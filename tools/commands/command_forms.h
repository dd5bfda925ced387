/* Forms of run, plan and merge that have files of their own. All return an exit code. */
#ifndef RFX_TOOLS_COMMANDS_COMMAND_FORMS_H
#define RFX_TOOLS_COMMANDS_COMMAND_FORMS_H

#include "layers/core/memory.h"
#include "tools/cli/options.h"

/* What merge is asked. */
struct rfx_merge_options {
    struct rfx_cli_words words;
    size_t memory_bytes; /* 0: no budget */
    struct rfx_cli_output_options output;
    const char *status; /* folder of shards; NULL: not given */
    bool json;
};

/* run --part: makes the shard that the options ask for, unless its file is there and of the same
 * run. Where global operations come before the output, and --states does not give their results,
 * the shard's states of the next round are made instead. */
int rfx_run_shard(const struct rfx_cli_run_options *options);

/* run --mask: computes the rectangles that cover the mask, each as a shard, and writes the whole
 * output. */
int rfx_run_masked(const struct rfx_cli_run_options *options);

/* run --list: runs args[0] on every image of options->list.list and writes results into
 * options->list.out_dir. A failure of one image does not stop the others; the exit code is that of
 * the first failure. */
int rfx_run_batch(const struct rfx_cli_run_options *options);

/* plan --parts: plans each shard as run --part would, and prints a table or JSON. */
int rfx_plan_shards(const struct rfx_cli_run_options *options);

/* merge --status DIR: reports which shards are there, and which commands make the missing ones.
 * DONE: everything that the last merge needs is there; REFUSED: something is missing, damaged or
 * not known. */
int rfx_merge_status(const struct rfx_merge_options *options, struct rfx_memory *mem);
#endif
