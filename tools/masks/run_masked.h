/* rfexec run --mask: an output where it is wanted. */
#ifndef RFX_TOOLS_MASKS_RUN_MASKED_H
#define RFX_TOOLS_MASKS_RUN_MASKED_H

#include "tools/cli/options.h"

/* Computes the rectangles that the mask leaves, each as a part, and writes the whole output.
 * Returns an exit code. */
int rfx_run_masked(const struct rfx_cli_run_options *options);
#endif
