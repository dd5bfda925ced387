/* rfexec plan --parts N: what every shard of an output would take. */
#ifndef RFX_TOOLS_COMMANDS_PLAN_SHARDS_H
#define RFX_TOOLS_COMMANDS_PLAN_SHARDS_H

#include "rfexec/shards/shard_rounds.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"

/* Plans each shard as run --part would, and prints a table or JSON. Returns an exit code. */
int rfx_plan_shards(const struct rfx_cli_options *options);
#endif
