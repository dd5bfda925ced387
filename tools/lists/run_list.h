/* rfexec run --list: one network, many pictures, one result each. */
#ifndef RFX_TOOLS_LISTS_RUN_LIST_H
#define RFX_TOOLS_LISTS_RUN_LIST_H

#include "tools/cli/options.h"

/* Runs args[0] on every picture of options->list.list and writes results into
 * options->list.out_dir. The failure of one picture does not stop the others; returns the exit code
 * of the first one. */
int rfx_run_list(const struct rfx_cli_run_options *options);
#endif
