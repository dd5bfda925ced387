/* rfexec merge, of parts that are cells of an output joined of several maps. */
#ifndef RFX_TOOLS_PARTS_MERGE_CELLS_H
#define RFX_TOOLS_PARTS_MERGE_CELLS_H

#include "layers/core/memory.h"
#include "tools/cli/options.h"

/* Whether the JSON of `path` says that it has cells. */
bool rfx_part_is_cells(const char *path);

/* Puts the parts that the options name together, which are of cells. Returns an exit code. */
int rfx_part_merge_cells(const struct rfx_cli_options *options, struct rfx_memory *mem);
#endif
