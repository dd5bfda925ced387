/* The one way in which rfexec writes files: complete or not at all.
 *
 * The bytes go to a temporary file in the folder of the final name (layers/core/temp_file.h), which
 * gets the final name on commit. An existing file of that name is replaced. A symbolic link is
 * followed, and its target is replaced. Devices are written in place. An output that cannot seek (a
 * pipe, a terminal) receives the whole file on commit. "-", /dev/stdout, /dev/stderr, /dev/fd/N and
 * /proc/self/fd/N are descriptors of the process: nothing is opened or replaced.
 *
 * Invariants: 1. until commit returns RFX_OK the final name is untouched; 2. freeing without commit
 * leaves no file; the end of the process leaves none either if the file system has files without
 * names; 3. every write, the sync, the close and the renaming are checked; a failure is IO with the
 * name, the system's reason and the number of bytes written; 4. memory is allocated in open only;
 * 5. no name that others can foresee is written to. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FILE_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_output_file;

/* Opens the temporary file for `path`. IO: the folder cannot be written, or `path` is a folder or a
 * symbolic link without a target. */
RFX_NODISCARD enum rfx_status rfx_output_file_open(struct rfx_memory *mem, const char *path,
                                                   struct rfx_output_file **out,
                                                   struct rfx_error *err);

/* Like rfx_output_file_open, for a file that other processes open too. *temporary receives the path
 * by which they open it; it lives as long as the file. With `named` the path is in the output's
 * folder, so processes on other machines that share the folder can use it. Without `named`, and if
 * the file system has files without names, the path is below /proc, for processes of this machine
 * only. IO also: the output is a device, a pipe or a descriptor of the process. */
RFX_NODISCARD enum rfx_status rfx_output_file_open_shared(struct rfx_memory *mem, const char *path,
                                                          bool named, struct rfx_output_file **out,
                                                          const char **temporary,
                                                          struct rfx_error *err);

/* Returns whether the temporary file has no name. */
bool rfx_output_file_is_nameless(const struct rfx_output_file *file);

/* Returns whether the file can be shared: it is neither written in place nor copied on commit. */
bool rfx_output_file_is_regular(const char *path);

/* Returns the path as it was given. It lives as long as the file. */
const char *rfx_output_file_path(const struct rfx_output_file *file);

/* Returns a descriptor for callers that write by themselves from the beginning, instead of append
 * and put. The file still owns it. */
int rfx_output_file_descriptor(const struct rfx_output_file *file);

/* Appends bytes, through a buffer. */
RFX_NODISCARD enum rfx_status rfx_output_file_append(struct rfx_output_file *file, const void *data,
                                                     size_t bytes, struct rfx_error *err);

/* Flushes the buffer and writes bytes at an offset. The position of the next append does not
 * change. */
RFX_NODISCARD enum rfx_status rfx_output_file_put(struct rfx_output_file *file, const void *data,
                                                  size_t bytes, uint64_t offset,
                                                  struct rfx_error *err);

/* Reserves `bytes` of disk space for the file if the file system can, so that a full disk is found
 * before the work. IO, with the number of bytes: the disk is full. Changes nothing else. */
RFX_NODISCARD enum rfx_status rfx_output_file_reserve(struct rfx_output_file *file, uint64_t bytes,
                                                      struct rfx_error *err);

/* Syncs and closes the file and gives it its name, unless the program is to stop. Only free may
 * follow. */
RFX_NODISCARD enum rfx_status rfx_output_file_commit(struct rfx_output_file *file,
                                                     struct rfx_error *err);

/* Frees; without a successful commit, removes the temporary file. NULL is fine. */
void rfx_output_file_free(struct rfx_output_file *file);
#endif
