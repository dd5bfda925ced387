/* File descriptors of the library, as guests in another program's process.
 *
 * Invariants: 1. every descriptor that stays open lies above 2. A program that closed its standard
 * streams still writes to numbers 0 to 2, and that text must not land in a file of ours. 2.
 * Reaching the limit on file sizes (`ulimit -f`) is an error EFBIG of the call, never the signal
 * SIGXFSZ, which ends a process that does not handle it. The caller's signal mask is as before
 * after each call. 3. Calls go on after an interruption (EINTR).
 *
 * Not covered: descriptors that other libraries open by themselves (OpenSlide, the C library's
 * loader). */
#ifndef RFX_LAYERS_CORE_DESCRIPTOR_H
#define RFX_LAYERS_CORE_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Takes a descriptor that open() or the like has just returned and returns it, or a copy above 2
 * of it, closing the original. -1 with errno when fd is -1 or when no descriptor is left. */
int rfx_descriptor_keep(int fd);

/* Opens a file for reading, as fopen(path, "rb") does, on a descriptor above 2. NULL with errno. */
FILE *rfx_descriptor_stream(const char *path);

/* Writes all bytes at the descriptor's place. Returns 0 or an errno; *written (may be NULL) is how
 * many bytes were written in either case. */
int rfx_descriptor_write(int fd, const void *from, size_t bytes, size_t *written);

/* Writes all bytes at an offset. Returns 0 or an errno. */
int rfx_descriptor_write_at(int fd, const void *from, size_t bytes, int64_t offset);

/* Reads all bytes from an offset. Returns 0 or an errno; EIO when the file ends before. */
int rfx_descriptor_read_at(int fd, void *to, size_t bytes, int64_t offset);

/* Reserves room on the disk for bytes [0, bytes), as fallocate(fd, mode, 0, bytes). Returns 0 or an
 * errno. */
int rfx_descriptor_reserve(int fd, int mode, int64_t bytes);

/* Sets the file's size. Returns 0 or an errno. */
int rfx_descriptor_truncate(int fd, int64_t bytes);
#endif
