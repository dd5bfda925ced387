/* An image from standard input. Images are read in parts, perhaps several times; a pipe cannot be,
 * so its bytes are copied to a nameless file first. */
#ifndef RFX_TOOLS_CLI_STANDARD_INPUT_H
#define RFX_TOOLS_CLI_STANDARD_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/status.h"

#define RFX_STANDARD_INPUT "/dev/stdin"

/* The most bytes that are copied: input without an end would fill the disk. */
#define RFX_STANDARD_INPUT_MOST ((int64_t)16 << 30)

/* Makes RFX_STANDARD_INPUT a file that can be read at any offset: standard input itself where it is
 * a file, else a copy of *kept bytes in `folder` (*kept 0: no copy). most: bytes that may come.
 * stopped (may be NULL) is asked whether to end: CANCELLED. IO: standard input is a terminal, the
 * folder has no room, or more than `most` bytes came. */
RFX_NODISCARD enum rfx_status rfx_standard_input(const char *folder, int64_t most,
                                                 bool (*stopped)(void), int64_t *kept,
                                                 struct rfx_error *err);
#endif
