/* Reads text files that others have written. */
#ifndef RFX_RFEXEC_OUTPUT_TEXT_READ_H
#define RFX_RFEXEC_OUTPUT_TEXT_READ_H

#include "layers/core/memory.h"

#define RFX_TEXT_END 2 /* bytes behind the text of rfx_text_read */

/* Reads a regular file. *bytes: its size; a 0 follows. The text belongs to the caller.
 * INVALID_ARGUMENT: the file has more than `most` bytes; IO. `what` begins messages. */
RFX_NODISCARD enum rfx_status rfx_text_read(struct rfx_memory *mem, const char *path,
                                            const char *what, size_t most, char **text,
                                            size_t *bytes, struct rfx_error *err);
#endif
