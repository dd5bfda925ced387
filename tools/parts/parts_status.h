/* rfexec merge --status DIR: which parts are there, and what makes the others. */
#ifndef RFX_TOOLS_PARTS_PARTS_STATUS_H
#define RFX_TOOLS_PARTS_PARTS_STATUS_H

#include "layers/core/memory.h"

struct rfx_merge_options;

/* Prints it. DONE: all that the last merge takes is there; REFUSED: something is missing, damaged
 * or unknown. */
int rfx_parts_status(const struct rfx_merge_options *options, struct rfx_memory *mem);
#endif
