/* Private: a file read forwards through one fixed buffer, without stdio's hidden allocation.
 * Short reads and system errors are told apart: `error_number` is 0 when the file just ends. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_FILE_H
#define RFX_RFEXEC_IMAGE_IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

struct rfx_image_file {
    int fd;                   /* -1: closed */
    _Atomic int error_number; /* several threads may pread */
    bool past_end;            /* somebody asked for bytes after the last, or skipped them */
    int64_t bytes;            /* size at open */
    size_t at, filled;
    unsigned char buffer[16384];
};

/* Opens a regular file. IO: not there, not readable, not a regular file. */
RFX_NODISCARD enum rfx_status rfx_image_file_open(struct rfx_image_file *file, const char *name,
                                                  struct rfx_error *err);

/* Closes; a closed file (fd -1) is fine. */
void rfx_image_file_close(struct rfx_image_file *file);

/* Copies up to `bytes` bytes and returns how many there were. */
size_t rfx_image_file_read(struct rfx_image_file *file, void *to, size_t bytes);

/* Moves `bytes` bytes on (or back when negative). */
void rfx_image_file_skip(struct rfx_image_file *file, int64_t bytes);

/* Back to the first byte; clears past_end and error_number. */
void rfx_image_file_rewind(struct rfx_image_file *file);

/* Copies `bytes` bytes from `offset` and leaves the reading position alone; how many there were. */
size_t rfx_image_file_pread(struct rfx_image_file *file, void *to, size_t bytes, int64_t offset);
#endif
