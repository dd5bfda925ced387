/* Folders of files that appear complete or not at all, like single files by output_file.h.
 *
 * All files go into a folder under a temporary name (layers/core/temp_file.h) beside the final
 * name. The folder is renamed on commit. Something that already has the final name is never
 * replaced: a folder could hold anything.
 *
 * Invariants: 1. until commit returns RFX_OK, nothing has the final name; 2. freeing without commit
 * removes everything; a process that is killed leaves its folder, named ".rfexec-" and 15 letters,
 * because no file system has folders without names; 3. every write, the sync, each close and the
 * renaming are checked; a failure is IO with the name and the system's reason; 4. memory is
 * allocated in open only. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FOLDER_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FOLDER_H

#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_output_folder;

/* Makes the temporary folder. IO: something has the name `path` already, or no folder can be made
 * there. */
RFX_NODISCARD enum rfx_status rfx_output_folder_open(struct rfx_memory *mem, const char *path,
                                                     struct rfx_output_folder **out,
                                                     struct rfx_error *err);

/* Checks that the file system has `bytes` free, so that a full disk is found before the work if
 * possible. Reserves nothing. IO, with the number of bytes: the disk has less free space. */
RFX_NODISCARD enum rfx_status rfx_output_folder_room(struct rfx_output_folder *folder,
                                                     uint64_t bytes, struct rfx_error *err);

/* Writes a file such as "c/0/12" and makes the folders above it. No file may have that name yet.
 * IO. */
RFX_NODISCARD enum rfx_status rfx_output_folder_put(struct rfx_output_folder *folder,
                                                    const char *name, const void *data,
                                                    size_t bytes, struct rfx_error *err);

/* Adds bytes to the end of a file, which is made if there is none of that name. IO. */
RFX_NODISCARD enum rfx_status rfx_output_folder_append(struct rfx_output_folder *folder,
                                                       const char *name, const void *data,
                                                       size_t bytes, struct rfx_error *err);

/* Syncs the files and renames the folder to its final name, unless the program is to stop. Only
 * free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_folder_commit(struct rfx_output_folder *folder,
                                                       struct rfx_error *err);

/* Frees; without a successful commit before, removes all files. NULL is fine. */
void rfx_output_folder_free(struct rfx_output_folder *folder);
#endif
