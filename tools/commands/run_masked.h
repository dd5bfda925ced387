/* rfexec run --mask: computes an output only where it is wanted. */
#ifndef RFX_TOOLS_COMMANDS_RUN_MASKED_H
#define RFX_TOOLS_COMMANDS_RUN_MASKED_H

#include "tools/cli/options.h"

/* Computes the rectangles that cover the mask, each as a shard, and writes the whole output.
 * Returns an exit code. */
int rfx_run_masked(const struct rfx_cli_options *options);
#endif
