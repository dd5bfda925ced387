/* rfexec plan --parts N: what every part of an output would take. */
#ifndef RFX_TOOLS_PARTS_PART_PLAN_H
#define RFX_TOOLS_PARTS_PART_PLAN_H

#include "tools/cli/options.h"

/* Plans each part as run --part would, and prints a table or JSON. Returns an exit code. */
int rfx_part_plan(const struct rfx_cli_run_options *options);
#endif
