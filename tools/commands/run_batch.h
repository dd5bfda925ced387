/* rfexec run --list: one network, many images, one result for each. */
#ifndef RFX_TOOLS_COMMANDS_RUN_BATCH_H
#define RFX_TOOLS_COMMANDS_RUN_BATCH_H

#include "tools/cli/options.h"

/* Runs args[0] on every image of options->list and writes results into options->out_dir. A failure
 * of one image does not stop the others. Returns the exit code of the first failure. */
int rfx_run_batch(const struct rfx_cli_options *options);
#endif
