/* The one way in which rfexec writes files: whole or not at all.
 *
 * What is written goes to a temporary file in the folder of the final name (temporary.h), which
 * gets the final name on commit. A name that is there is replaced; a symbolic link is followed, and
 * the file it leads to is replaced. Devices are written in place. What cannot seek (a pipe, a
 * terminal) gets the whole file on commit. "-", /dev/stdout, /dev/stderr, /dev/fd/N and
 * /proc/self/fd/N are descriptors that the process has: nothing is opened or replaced.
 *
 * Invariants: 1. until commit returns RFX_OK the final name is untouched; 2. freeing without commit
 * leaves nothing, nor does the end of the process where the file system has nameless files; 3.
 * every write, the sync, the close and the renaming are checked, a failure is IO with the name, the
 * system's words and the bytes written; 4. memory is allocated in open only; 5. no name that others
 * can foresee is written to. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FILE_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_output_file;

/* IO: the folder cannot be written, `path` is a folder, or a symbolic link to nothing. */
RFX_NODISCARD enum rfx_status rfx_output_file_open(struct rfx_memory *mem, const char *path,
                                                   struct rfx_output_file **out,
                                                   struct rfx_error *err);

/* The same for a file that other processes open too, by the path *temporary, which lives as long as
 * the file: with `named` in the folder, where they may be on any machine that has it; else, where
 * the file system has nameless files, below /proc, for processes of this machine alone. IO also
 * where there is nothing to name: a device, a pipe, a descriptor of the process. */
RFX_NODISCARD enum rfx_status rfx_output_file_open_shared(struct rfx_memory *mem, const char *path,
                                                          bool named, struct rfx_output_file **out,
                                                          const char **temporary,
                                                          struct rfx_error *err);

/* Whether the file's temporary is one without a name. */
bool rfx_output_file_is_nameless(const struct rfx_output_file *file);

/* Whether such a file can be shared: it is none that is written in place or handed over. */
bool rfx_output_file_is_regular(const char *path);

/* The name as it was given; lives as long as the file. */
const char *rfx_output_file_path(const struct rfx_output_file *file);

/* A descriptor for those who write by themselves from the beginning, instead of append and put. It
 * stays the file's. */
int rfx_output_file_descriptor(const struct rfx_output_file *file);

/* Appends bytes, through a buffer. */
RFX_NODISCARD enum rfx_status rfx_output_file_append(struct rfx_output_file *file, const void *data,
                                                     size_t bytes, struct rfx_error *err);

/* Writes bytes at an offset, after the buffer; the place of the next append does not move. */
RFX_NODISCARD enum rfx_status rfx_output_file_put(struct rfx_output_file *file, const void *data,
                                                  size_t bytes, uint64_t offset,
                                                  struct rfx_error *err);

/* Takes `bytes` of the disk for the file at once, where the file system can, so that a full disk is
 * found before the work and not after it: IO with the number of bytes. Changes nothing else. */
RFX_NODISCARD enum rfx_status rfx_output_file_reserve(struct rfx_output_file *file, uint64_t bytes,
                                                      struct rfx_error *err);

/* Syncs, closes and gives the name, unless the program is to stop. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_file_commit(struct rfx_output_file *file,
                                                     struct rfx_error *err);

/* Frees; without a successful commit before, removes the temporary. NULL is fine. */
void rfx_output_file_free(struct rfx_output_file *file);
#endif
