/* rfexec merge --status DIR: which parts are there, and what makes the others. */
#ifndef RFX_TOOLS_COMMANDS_MERGE_STATUS_H
#define RFX_TOOLS_COMMANDS_MERGE_STATUS_H

#include "layers/core/memory.h"
#include "tools/cli/options.h"

/* Prints it. DONE: all that the last merge takes is there; REFUSED: something is missing, damaged
 * or unknown. */
int rfx_merge_status(const struct rfx_cli_options *options, struct rfx_memory *mem);
#endif
