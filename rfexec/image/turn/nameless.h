/* Files without a name for what is read again: nothing is left of them however the process ends. */
#ifndef RFX_RFEXEC_IMAGE_TURN_NAMELESS_H
#define RFX_RFEXEC_IMAGE_TURN_NAMELESS_H

#include <stddef.h>
#include <stdint.h>

/* The folder for them: `folder`, or else that of TMPDIR, or /var/tmp. */
const char *rfx_nameless_folder(const char *folder);

/* A file of no bytes in the folder, to be read and written; -1 with errno. */
int rfx_nameless_open(const char *folder);

/* All of `bytes` bytes at `offset`. 0, or the errno: EIO where the file ends before them. */
int rfx_nameless_write(int fd, const void *from, size_t bytes, int64_t offset);
int rfx_nameless_read(int fd, void *to, size_t bytes, int64_t offset);
#endif
