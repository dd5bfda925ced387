/* Folders of files that appear whole or not at all, as single files do by output_file.h.
 *
 * All goes into a folder under a temporary name beside the final one (temporary.h), which is
 * renamed on commit. What is there under the final name is never replaced: a folder could hold
 * anything.
 *
 * Invariants: 1. until commit returns RFX_OK there is nothing under the final name; 2. freeing
 * without commit removes everything; a process that is killed leaves its folder, ".rfexec-" and 15
 * letters, as no file system has folders without a name; 3. every write, the sync, each close and
 * the renaming are checked, a failure is IO with the name and the system's words; 4. memory is
 * allocated in open only. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FOLDER_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FOLDER_H

#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_output_folder;

/* IO: something has that name already, or no folder can be made there. */
RFX_NODISCARD enum rfx_status rfx_output_folder_open(struct rfx_memory *mem, const char *path,
                                                     struct rfx_output_folder **out,
                                                     struct rfx_error *err);

/* Whether the file system has `bytes` free, so that a full disk is found before the work where it
 * can be: IO with the number of bytes. Takes nothing. */
RFX_NODISCARD enum rfx_status rfx_output_folder_room(struct rfx_output_folder *folder,
                                                     uint64_t bytes, struct rfx_error *err);

/* Writes a file "c/0/12", whose name is new, and the folders above it. IO. */
RFX_NODISCARD enum rfx_status rfx_output_folder_put(struct rfx_output_folder *folder,
                                                    const char *name, const void *data,
                                                    size_t bytes, struct rfx_error *err);

/* Syncs and gives the name, unless the program is to stop. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_folder_commit(struct rfx_output_folder *folder,
                                                       struct rfx_error *err);

/* Frees; without a successful commit before, removes all files. NULL is fine. */
void rfx_output_folder_free(struct rfx_output_folder *folder);
#endif
