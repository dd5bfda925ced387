/* A temporary folder that is renamed; see output_folder.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2, syncfs */
#endif
#include "rfexec/output/output_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"

enum { MOST_DEPTH = 16, MOST_NAME = 256 };

struct rfx_output_folder {
    struct rfx_memory *mem;
    char *path;       /* path as the caller gave it */
    const char *base; /* last part of the path */
    int above;        /* descriptor of the parent folder */
    int fd;           /* descriptor of the temporary folder */
    bool failed;      /* a write failed: no commit */
    char temporary[RFX_TEMP_FILE_NAME];
};

static enum rfx_status fail_io(struct rfx_output_folder *folder, const char *name,
                               const char *doing, struct rfx_error *err) {
    int number = errno;
    folder->failed = true;
    return rfx_fail(err, RFX_STATUS_IO, "%s%s%s: %s: %s", folder->path, name[0] != '\0' ? "/" : "",
                    name, doing, strerror(number));
}

static int make_temporary(struct rfx_output_folder *folder) {
    for (int attempt = 0; attempt < 64; attempt++) {
        rfx_temp_file_name(folder->temporary);
        if (mkdirat(folder->above, folder->temporary, 0777) == 0)
            return rfx_descriptor_keep(openat(folder->above, folder->temporary,
                                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (errno != EEXIST) break;
    }
    folder->temporary[0] = '\0';
    return -1;
}

static enum rfx_status open_beside(struct rfx_output_folder *folder, struct rfx_error *err) {
    char above[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(folder->path, '/');
    folder->base = slash != NULL ? slash + 1 : folder->path;
    size_t length = (size_t)(folder->base - folder->path);
    errno = ENAMETOOLONG;
    if (length + 2 > sizeof above || strlen(folder->base) > NAME_MAX)
        return fail_io(folder, "", "cannot write", err);
    if (lstat(folder->path, &info) == 0)
        return rfx_fail(err, RFX_STATUS_IO,
                        "%s: is there already, and a folder is not replaced: remove it, or name "
                        "another",
                        folder->path);
    memcpy(above, folder->path, length);
    memcpy(above + length, ".", 2);
    folder->above = rfx_descriptor_keep(open(above, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (folder->above >= 0) folder->fd = make_temporary(folder);
    return folder->fd >= 0 ? RFX_OK : fail_io(folder, "", "cannot write into its folder", err);
}

enum rfx_status rfx_output_folder_open(struct rfx_memory *mem, const char *path,
                                       struct rfx_output_folder **out, struct rfx_error *err) {
    struct rfx_output_folder *folder = rfx_memory_calloc(mem, 1, sizeof *folder);
    if (folder == NULL) return rfx_memory_fail(mem, path, sizeof *folder, err);
    folder->mem = mem;
    folder->above = folder->fd = -1;
    folder->path = rfx_memory_strdup(mem, path);
    enum rfx_status status = folder->path != NULL
                                 ? open_beside(folder, err)
                                 : rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK)
        *out = folder;
    else
        rfx_output_folder_free(folder);
    return status;
}

enum rfx_status rfx_output_folder_room(struct rfx_output_folder *folder, uint64_t bytes,
                                       struct rfx_error *err) {
    struct statvfs info;
    uint64_t free_bytes;
    if (fstatvfs(folder->fd, &info) != 0 ||
        __builtin_mul_overflow((uint64_t)info.f_bavail, (uint64_t)info.f_frsize, &free_bytes) ||
        bytes <= free_bytes)
        return RFX_OK; /* if the free space is not known, the writes report a full disk */
    folder->failed = true;
    return rfx_fail(err, RFX_STATUS_IO,
                    "%s: no room for its %" PRIu64 " bytes: the disk has %" PRIu64, folder->path,
                    bytes, free_bytes);
}

/* Makes the folders above a file. Returns 0, or -1 with errno. */
static int make_folders(int fd, const char *name) {
    char above[MOST_NAME];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - name);
        memcpy(above, name, length);
        above[length] = '\0';
        if (mkdirat(fd, above, 0777) != 0 && errno != EEXIST) return -1;
    }
    return 0;
}

static int open_to_write(int fd, const char *name, int how) {
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | how;
    int file = rfx_descriptor_keep(openat(fd, name, flags, 0666));
    if (file >= 0 || errno != ENOENT || make_folders(fd, name) != 0) return file;
    return rfx_descriptor_keep(openat(fd, name, flags, 0666));
}

/* Writes bytes to a new file (how: O_EXCL) or to the end of a file (O_APPEND). */
static enum rfx_status write_bytes(struct rfx_output_folder *folder, const char *name,
                                   const void *data, size_t bytes, int how, struct rfx_error *err) {
    errno = ENAMETOOLONG;
    if (strlen(name) >= MOST_NAME) return fail_io(folder, name, "cannot write", err);
    int file = open_to_write(folder->fd, name, how);
    if (file < 0) return fail_io(folder, name, "cannot write", err);
    int number = rfx_descriptor_write(file, data, bytes, NULL);
    if (number != 0) {
        (void)close(file);
        errno = number;
        return fail_io(folder, name, "writing failed", err);
    }
    return close(file) == 0 ? RFX_OK : fail_io(folder, name, "closing failed", err);
}

enum rfx_status rfx_output_folder_put(struct rfx_output_folder *folder, const char *name,
                                      const void *data, size_t bytes, struct rfx_error *err) {
    return write_bytes(folder, name, data, bytes, O_EXCL, err);
}

enum rfx_status rfx_output_folder_append(struct rfx_output_folder *folder, const char *name,
                                         const void *data, size_t bytes, struct rfx_error *err) {
    return write_bytes(folder, name, data, bytes, O_APPEND, err);
}

/* Renames the folder to its final name, without replacing anything. If the file system cannot
 * rename without replacing, checks before that nothing has the name. */
static int rename_new(const struct rfx_output_folder *folder) {
    struct stat info;
    if (renameat2(folder->above, folder->temporary, folder->above, folder->base,
                  RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    if (fstatat(folder->above, folder->base, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(folder->above, folder->temporary, folder->above, folder->base);
}

enum rfx_status rfx_output_folder_commit(struct rfx_output_folder *folder, struct rfx_error *err) {
    if (folder->failed)
        return rfx_fail(err, RFX_STATUS_IO, "%s: an earlier write failed", folder->path);
    /* one call for all files: syncing each file would wait for the disk thousands of times */
    if (syncfs(folder->fd) != 0) return fail_io(folder, "", "syncing failed", err);
    enum rfx_status status = rfx_memory_check_stop(folder->mem, err);
    if (status != RFX_OK) return status;
    if (rename_new(folder) != 0) return fail_io(folder, "", "renaming failed", err);
    folder->temporary[0] = '\0';
    return RFX_OK;
}

/* Removes the folder `name` of `above` and everything in it, as deep as this file makes folders. */
static void remove_all(int above, const char *name, int depth) {
    int fd =
        rfx_descriptor_keep(openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0) (void)close(fd);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(fd, entry->d_name, 0) != 0 && depth < MOST_DEPTH)
            remove_all(fd, entry->d_name, depth + 1);
    }
    if (dir != NULL) (void)closedir(dir);
    (void)unlinkat(above, name, AT_REMOVEDIR);
}

void rfx_output_folder_free(struct rfx_output_folder *folder) {
    if (folder == NULL) return;
    if (folder->fd >= 0) (void)close(folder->fd);
    if (folder->temporary[0] != '\0') remove_all(folder->above, folder->temporary, 0);
    if (folder->above >= 0) (void)close(folder->above);
    rfx_memory_release(folder->mem, folder->path);
    rfx_memory_release(folder->mem, folder);
}
