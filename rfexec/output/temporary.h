/* Temporary files in a folder: without a name where the file system can, so that nothing is left
 * however the process ends, else under a name that nobody can foresee. */
#ifndef RFX_RFEXEC_OUTPUT_TEMPORARY_H
#define RFX_RFEXEC_OUTPUT_TEMPORARY_H

#include <stdbool.h>
#include <sys/types.h>

enum { RFX_TEMPORARY_NAME = 24 }; /* ".rfexec-" and 15 random letters */

/* Writes a new unforeseeable name into `name`. */
void rfx_temporary_name(char name[RFX_TEMPORARY_NAME]);

/* Opens a new file in the open folder `folder` for reading and writing, with the rights `mode` less
 * the process's mask; `named`: with a name from the beginning. name[0] is '\0' when it has no name,
 * else it is for the caller to remove. It can be linked from rfx_temporary_link. -1 with errno. */
int rfx_temporary_open(int folder, mode_t mode, bool named, char name[RFX_TEMPORARY_NAME]);

/* Opens a new file in the folder of this path, readable and writable for its owner, that has no
 * name: where the file system needs one it is removed at once. -1 with errno. */
int rfx_temporary_nameless(const char *folder);

/* The same in the folder of the file `path`. */
int rfx_temporary_beside(const char *path);

/* Gives a nameless file the name `name` in the folder, which must not be taken. -1 with errno;
 * EEXIST: it is. */
int rfx_temporary_link(int file, int folder, const char *name);
#endif
