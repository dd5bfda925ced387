/* The plans of all parts, as plan --parts makes them one after the other: of rounds of states
 * (plan_rounds.c), then of the output (part_plan.c). */
/* rfexec plan --parts N: what every part of an output would take. */
#ifndef RFX_TOOLS_PARTS_PLAN_SHARDS_H
#define RFX_TOOLS_PARTS_PLAN_SHARDS_H

#include "tools/cli/job.h"
#include "tools/cli/options.h"
#include "tools/parts/part_round.h"

/* Plans each part as run --part would, and prints a table or JSON. Returns an exit code. */
int rfx_part_plan(const struct rfx_cli_options *options);
#endif
