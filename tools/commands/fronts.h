/* `curve --pareto`: the front of all kinds of plans of one network, and beside it that of the
 * paper's kind alone, one cut with tiles before it. */
#ifndef RFX_TOOLS_COMMANDS_FRONTS_H
#define RFX_TOOLS_COMMANDS_FRONTS_H

#include "tools/cli/command.h"

/* Calculates, draws (-o) and prints; an exit code. Models beyond the first are refused. */
int rfx_cli_fronts(const struct rfx_cli_options *options);
#endif
