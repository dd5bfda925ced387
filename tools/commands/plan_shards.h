/* The plans of all parts, as plan --parts makes them one after the other: of rounds of states
 * (plan_rounds.c), then of the output (part_plan.c). */
/* rfexec plan --parts N: what every part of an output would take. */
#ifndef RFX_TOOLS_COMMANDS_PLAN_SHARDS_H
#define RFX_TOOLS_COMMANDS_PLAN_SHARDS_H

#include "rfexec/shards/shard_rounds.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"

/* Plans each part as run --part would, and prints a table or JSON. Returns an exit code. */
int rfx_plan_shards(const struct rfx_cli_options *options);
#endif
