/* Forms of run, plan and merge, each implemented in a separate file. All functions return an exit
 * code. */
#ifndef RFX_TOOLS_COMMANDS_COMMAND_FORMS_H
#define RFX_TOOLS_COMMANDS_COMMAND_FORMS_H

#include "layers/core/memory.h"
#include "rfexec/shards/shard_merge.h"
#include "tools/cli/options.h"

/* Options of rfexec merge. */
struct rfx_merge_options {
    struct rfx_cli_words words;
    size_t memory_bytes; /* 0: no budget */
    struct rfx_cli_output_options output;
    const char *status; /* folder of shards; NULL: not given */
    bool json;
};

/* run --part: computes the shard that the options name and writes its file. Does nothing when a
 * file of the same shard and the same run exists already. When global operations precede the output
 * and --states does not contain their results, the function instead computes the shard's states of
 * the next round. */
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

/* merge of shards of cut tensors (rfexec/run/join_cuts.h): runs the late nodes of the network on
 * them, and writes what a run of the whole image writes. */
int rfx_merge_late(const struct rfx_merge_options *options, struct rfx_shards *shards);

/* merge --status DIR: reports which shards exist in the folder, and which commands compute the
 * missing ones. DONE: all shards that the last merge needs exist. REFUSED: a shard is missing or
 * damaged, or it is not known which shards are needed. */
int rfx_merge_status(const struct rfx_merge_options *options, struct rfx_memory *mem);
#endif
