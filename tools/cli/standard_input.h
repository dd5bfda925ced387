/* Reads an image from standard input. An image is read in parts and perhaps several times. A pipe
 * can be read only once, so its bytes are copied to a nameless file first. */
#ifndef RFX_TOOLS_CLI_STANDARD_INPUT_H
#define RFX_TOOLS_CLI_STANDARD_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/status.h"

#define RFX_STANDARD_INPUT "/dev/stdin"

/* Limit of the bytes that are copied, because input without an end would fill the disk. */
#define RFX_STANDARD_INPUT_MOST ((int64_t)16 << 30)

/* Makes RFX_STANDARD_INPUT a file that can be read at any offset. A pipe is copied to a nameless
 * file in `folder` and *kept is set to the number of bytes copied. A standard input that is a file
 * is not copied and *kept is 0. most: largest number of bytes to copy. stopped (may be NULL):
 * returns whether to stop copying. Statuses: CANCELLED when `stopped` returned true; IO when
 * standard input is a terminal, the disk of `folder` is full, or more than `most` bytes came. */
RFX_NODISCARD enum rfx_status rfx_standard_input(const char *folder, int64_t most,
                                                 bool (*stopped)(void), int64_t *kept,
                                                 struct rfx_error *err);
#endif
