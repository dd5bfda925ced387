/* Private: a file that is read forwards through one fixed buffer, without the hidden allocation of
 * stdio. Short reads and system errors can be distinguished: after a short read at the end of the
 * file `error_number` is 0. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_FILE_H
#define RFX_RFEXEC_IMAGE_IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

struct rfx_image_file {
    int fd; /* -1: closed */
    _Atomic int
        error_number; /* errno of the last failure, else 0; several threads may call pread */
    bool past_end;    /* bytes after the end were read or skipped */
    int64_t bytes;    /* size of the file at open */
    size_t at, filled;
    unsigned char buffer[16384];
};

/* Opens a regular file. IO: the file does not exist, cannot be read, or is no regular file. */
RFX_NODISCARD enum rfx_status rfx_image_file_open(struct rfx_image_file *file, const char *name,
                                                  struct rfx_error *err);

/* Closes the file; a closed file (fd -1) is fine. */
void rfx_image_file_close(struct rfx_image_file *file);

/* Reads up to `bytes` bytes. Returns the number of bytes read. */
size_t rfx_image_file_read(struct rfx_image_file *file, void *to, size_t bytes);

/* Moves the reading position by `bytes` bytes, back if negative. */
void rfx_image_file_skip(struct rfx_image_file *file, int64_t bytes);

/* Moves the reading position to the first byte and clears past_end and error_number. */
void rfx_image_file_rewind(struct rfx_image_file *file);

/* Reads up to `bytes` bytes at `offset`, without moving the reading position. Returns the number of
 * bytes read. */
size_t rfx_image_file_pread(struct rfx_image_file *file, void *to, size_t bytes, int64_t offset);
#endif
