/* rfexec run --part: one part of an output, as a file. */
#ifndef RFX_TOOLS_PARTS_PART_RUN_H
#define RFX_TOOLS_PARTS_PART_RUN_H

#include "tools/cli/options.h"

/* Makes the part that the options ask for, unless its file is there and of the same run. Returns an
 * exit code. */
int rfx_part_run(const struct rfx_cli_run_options *options);
#endif
