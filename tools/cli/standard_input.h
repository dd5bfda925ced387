/* A picture from standard input, which is read in parts and perhaps several times: what cannot be
 * is kept in a nameless file first. */
#ifndef RFX_TOOLS_CLI_STANDARD_INPUT_H
#define RFX_TOOLS_CLI_STANDARD_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/status.h"

#define RFX_STANDARD_INPUT "/dev/stdin"

/* The most bytes that are kept: what has no end would fill the disk. */
#define RFX_STANDARD_INPUT_MOST ((int64_t)16 << 30)

/* Makes RFX_STANDARD_INPUT a file that can be read at any place: as it is where it is one, else
 * from a copy in `folder`, of which *kept are the bytes (0: there is none). `most`: bytes that may
 * come. stopped (NULL: nobody is asked) ends it: CANCELLED. IO: a terminal, a folder without room,
 * more than `most` bytes. */
RFX_NODISCARD enum rfx_status rfx_standard_input(const char *folder, int64_t most,
                                                 bool (*stopped)(void), int64_t *kept,
                                                 struct rfx_error *err);
#endif
