/* Temporary files. They have no name if the file system supports this, so nothing remains on the
 * disk however the process ends. Otherwise they have an unpredictable random name. */
#ifndef RFX_LAYERS_CORE_TEMP_FILE_H
#define RFX_LAYERS_CORE_TEMP_FILE_H

#include <stdbool.h>
#include <sys/types.h>

enum { RFX_TEMP_FILE_NAME = 24 }; /* ".rfexec-" and 15 random letters */

/* Returns the folder for temporary files: `folder` if it is not NULL, else the value of the
 * environment variable TMPDIR, else /var/tmp. */
const char *rfx_temp_folder(const char *folder);

/* Opens a new file without a name in the folder with this path. The owner can read and write it. If
 * the file system requires a name, the name is removed at once. Returns -1 with errno on failure.
 */
int rfx_temp_file_open(const char *folder);

/* As rfx_temp_file_open, in the folder that contains the file `path`. */
int rfx_temp_file_beside(const char *path);

/* Opens a new file for reading and writing in the open folder `folder`, with the access rights
 * `mode` without those that the process's umask removes. If `named`, the file has a name from the
 * beginning. If the file has no name, name[0] is '\0', and rfx_temp_file_link can give it one;
 * otherwise `name` contains its name and the caller removes the file. Returns -1 with errno on
 * failure. */
int rfx_temp_file_open_at(int folder, mode_t mode, bool named, char name[RFX_TEMP_FILE_NAME]);

/* Gives a file without a name the name `name` in the folder. Returns -1 with errno on failure;
 * EEXIST: the folder has a file of this name. */
int rfx_temp_file_link(int file, int folder, const char *name);

/* Writes a new random name into `name`. */
void rfx_temp_file_name(char name[RFX_TEMP_FILE_NAME]);
#endif
