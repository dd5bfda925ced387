/* Names of channels from a text file, one a line. */
#ifndef RFX_RFEXEC_OUTPUT_OME_CHANNEL_NAMES_H
#define RFX_RFEXEC_OUTPUT_OME_CHANNEL_NAMES_H

#include <stdint.h>

#include "layers/core/memory.h"

/* Reads as many names as there are channels: printable text, a 0 behind each, that belongs to the
 * caller. INVALID_ARGUMENT: the file has more or fewer lines, or more than 1 MiB; IO. */
RFX_NODISCARD enum rfx_status rfx_channel_names_read(struct rfx_memory *mem, const char *path,
                                                     int64_t channels, char **names,
                                                     struct rfx_error *err);

/* At most so many bytes the names, and what they are read from, take. */
size_t rfx_channel_names_bytes(const char *path);
#endif
