/* File descriptors of the library, which shares its process with the program that calls it.
 *
 * Invariants: 1. Every descriptor that stays open has a number above 2. A program that has closed
 * its standard streams still writes to the numbers 0 to 2, and this text must not land in one of
 * the library's files. 2. Reaching the limit on file sizes (`ulimit -f`) makes the call fail with
 * EFBIG. It never raises the signal SIGXFSZ, which would end a process that does not handle it. The
 * caller's signal mask is restored after each call. 3. A call that is interrupted (EINTR) is
 * repeated.
 *
 * Not covered: descriptors that other libraries open themselves (OpenSlide, the C library's
 * loader). */
#ifndef RFX_LAYERS_CORE_DESCRIPTOR_H
#define RFX_LAYERS_CORE_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns `fd`, which open() or a similar call has just returned, if its number is above 2.
 * Otherwise copies it to a number above 2, closes the original and returns the copy. Returns -1
 * with errno when fd is -1 or when no descriptor is left. */
int rfx_descriptor_keep(int fd);

/* Opens a file for reading, as fopen(path, "rb") does, on a descriptor above 2. Returns NULL with
 * errno on failure. */
FILE *rfx_descriptor_stream(const char *path);

/* Writes all bytes at the descriptor's current file offset. Returns 0 or an errno. Sets *written
 * (may be NULL) to the number of bytes written, also on failure. */
int rfx_descriptor_write(int fd, const void *from, size_t bytes, size_t *written);

/* Writes all bytes at an offset. Returns 0 or an errno. */
int rfx_descriptor_write_at(int fd, const void *from, size_t bytes, int64_t offset);

/* Reads `bytes` bytes from an offset. Returns 0 or an errno; EIO when the file ends before the last
 * byte. */
int rfx_descriptor_read_at(int fd, void *to, size_t bytes, int64_t offset);

/* Reserves disk space for bytes [0, bytes) of the file, as fallocate(fd, mode, 0, bytes) does.
 * Returns 0 or an errno. */
int rfx_descriptor_reserve(int fd, int mode, int64_t bytes);

/* Sets the file's size. Returns 0 or an errno. */
int rfx_descriptor_truncate(int fd, int64_t bytes);
#endif
