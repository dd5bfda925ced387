/* Reads names of channels or classes from a text file with one name a line. */
#ifndef RFX_RFEXEC_OUTPUT_NAME_LIST_H
#define RFX_RFEXEC_OUTPUT_NAME_LIST_H

#include <stdint.h>

#include "layers/core/memory.h"

/* Reads all names of the file: printable text, each name followed by a 0. The text belongs to the
 * caller. *lines: their number. INVALID_ARGUMENT: the file has more than 1 MiB; IO. `what` begins
 * messages, "class names". */
RFX_NODISCARD enum rfx_status rfx_names_read(struct rfx_memory *mem, const char *path,
                                             const char *what, char **names, int64_t *lines,
                                             struct rfx_error *err);

/* Returns name k of `lines` names, or NULL if there is none. */
const char *rfx_name_at(const char *names, int64_t lines, int64_t k);

/* Reads as many names as there are channels: printable text, each name followed by a 0. The text
 * belongs to the caller. INVALID_ARGUMENT: the file has more or fewer lines than channels, or more
 * than 1 MiB; IO. */
RFX_NODISCARD enum rfx_status rfx_channel_names_read(struct rfx_memory *mem, const char *path,
                                                     int64_t channels, char **names,
                                                     struct rfx_error *err);

/* Returns an upper bound of the memory for reading and holding the names. */
size_t rfx_channel_names_bytes(const char *path);
#endif
