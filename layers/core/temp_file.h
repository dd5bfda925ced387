/* Temporary files: without a name where the file system can, so that nothing is left however the
 * process ends, else under a name that nobody can foresee. */
#ifndef RFX_LAYERS_CORE_TEMP_FILE_H
#define RFX_LAYERS_CORE_TEMP_FILE_H

#include <stdbool.h>
#include <sys/types.h>

enum { RFX_TEMP_FILE_NAME = 24 }; /* ".rfexec-" and 15 random letters */

/* The folder for temporary files: `folder`, or where it is NULL that of TMPDIR, or /var/tmp. */
const char *rfx_temp_folder(const char *folder);

/* Opens a new file without a name in the folder of this path, readable and writable for its owner.
 * Where the file system needs a name, the file has one that is removed at once. -1 with errno. */
int rfx_temp_file_open(const char *folder);

/* The same in the folder of the file `path`. */
int rfx_temp_file_beside(const char *path);

/* Opens a new file in the open folder `folder` for reading and writing, with the rights `mode` less
 * the process's mask; `named`: with a name from the beginning. name[0] is '\0' when the file has no
 * name, else the caller removes it. rfx_temp_file_link can name the file. -1 with errno. */
int rfx_temp_file_open_at(int folder, mode_t mode, bool named, char name[RFX_TEMP_FILE_NAME]);

/* Gives a file without a name the name `name` in the folder, which must not be taken. -1 with
 * errno; EEXIST: it is. */
int rfx_temp_file_link(int file, int folder, const char *name);

/* Writes a new unforeseeable name into `name`. */
void rfx_temp_file_name(char name[RFX_TEMP_FILE_NAME]);
#endif
