/* rfexec merge --status DIR: which shards are there, and which commands make the missing ones. */
#ifndef RFX_TOOLS_COMMANDS_MERGE_STATUS_H
#define RFX_TOOLS_COMMANDS_MERGE_STATUS_H

#include "layers/core/memory.h"
#include "tools/cli/options.h"

/* Prints the report. DONE: everything that the last merge needs is there; REFUSED: something is
 * missing, damaged or not known. */
int rfx_merge_status(const struct rfx_cli_options *options, struct rfx_memory *mem);
#endif
