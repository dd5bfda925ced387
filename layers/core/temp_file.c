/* O_TMPFILE where the file system has it, else a random name that is taken away at once. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE, mkostemp */
#endif
#include "layers/core/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "layers/core/descriptor.h"

const char *rfx_temp_folder(const char *folder) {
    if (folder != NULL) return folder;
    const char *named = getenv("TMPDIR");
    return named != NULL && named[0] != '\0' ? named : "/var/tmp";
}

int rfx_temp_file_open(const char *folder) {
    int file = rfx_descriptor_keep(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
    char name[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s/rfexec.XXXXXX", folder);
    if (length < 0 || length >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    file = mkostemp(name, O_CLOEXEC);
    if (file >= 0) (void)unlink(name);
    return rfx_descriptor_keep(file);
}
