/* Files that appear on commit. open_target decides where the bytes go, publish gives the file its
 * name. */
#include "rfexec/output/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"

/* Bytes after which written data are pushed to the disk; at most twice as many wait. So the last
 * sync, which nothing can interrupt, is short. */
#define PUSH_BYTES ((uint64_t)16 << 20)

struct rfx_output_file {
    struct rfx_memory *mem;
    char *path;   /* path as the caller gave it */
    char *base;   /* final name in the folder; NULL: no name is given */
    int folder;   /* folder of the temporary file; -1: written in place */
    int fd;       /* descriptor that is written to */
    int receiver; /* descriptor that cannot seek and receives the whole file on commit; -1: none */
    bool failed;  /* a write failed: no commit */
    bool named;   /* the temporary file has a name from the beginning */
    char *shared_path;                  /* absolute path of the temporary file; NULL: not shared */
    char temporary[RFX_TEMP_FILE_NAME]; /* name of the temporary file, if it has one */
    uint64_t written_bytes;
    uint64_t pushed_bytes; /* part of written_bytes that was pushed to the disk */
    size_t filled;
    unsigned char buffer[32768];
};

static enum rfx_status fail_number(struct rfx_output_file *file, const char *doing, int number,
                                   struct rfx_error *err) {
    file->failed = true;
    return rfx_fail(err, RFX_STATUS_IO, "%s: %s after %" PRIu64 " bytes: %s", file->path, doing,
                    file->written_bytes, strerror(number));
}

static enum rfx_status fail_io(struct rfx_output_file *file, const char *doing,
                               struct rfx_error *err) {
    return fail_number(file, doing, errno, err);
}

static enum rfx_status fail_open(const struct rfx_output_file *file, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO, "%s: cannot write: %s", file->path, strerror(errno));
}

/* Returns the number of the process's descriptor that a name such as /dev/fd/N means; -1: none. */
static int own_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], n) != 0 || path[n] < '0' || path[n] > '9') continue;
        long number = strtol(path + n, &end, 10);
        if (*end == '\0' && number <= INT_MAX) return (int)number;
    }
    return -1;
}

/* Opens the temporary file in `folder` and keeps the folder open. */
static enum rfx_status open_temporary(struct rfx_output_file *file, const char *folder,
                                      struct rfx_error *err) {
    file->folder = rfx_descriptor_keep(open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (file->folder >= 0)
        file->fd = rfx_temp_file_open_at(file->folder, 0666, file->named, file->temporary);
    if (file->fd >= 0) return RFX_OK;
    enum rfx_status status = rfx_fail(err, RFX_STATUS_IO, "%s: cannot write into its folder: %s",
                                      file->path, strerror(errno));
    if (file->folder >= 0) (void)close(file->folder);
    file->folder = -1;
    return status;
}

/* Opens a special file, or a descriptor of the process whose position the library must not move. */
static enum rfx_status open_in_place(struct rfx_output_file *file, int fd, struct rfx_error *err) {
    static const char *const folders[] = {".", "/var/tmp", "/tmp"};
    struct stat info;
    if (fd < 0) return fail_open(file, err);
    bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (!regular && (lseek(fd, 0, SEEK_CUR) >= 0 || errno != ESPIPE)) {
        file->fd = fd;
        return RFX_OK;
    }
    file->receiver = fd;
    enum rfx_status status = RFX_STATUS_IO;
    for (int i = 0; i < 3 && status != RFX_OK; i++) status = open_temporary(file, folders[i], err);
    return status;
}

static enum rfx_status open_special(struct rfx_output_file *file, struct rfx_error *err) {
    struct stat info;
    int fd = rfx_descriptor_keep(open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (fd >= 0 && fstat(fd, &info) == 0 && !S_ISREG(info.st_mode))
        return open_in_place(file, fd, err);
    if (fd < 0) return fail_open(file, err);
    (void)close(fd);
    return rfx_fail(err, RFX_STATUS_IO, "%s: was replaced while it was opened", file->path);
}

/* Opens the temporary file beside `path`, which is no link. */
static enum rfx_status open_beside(struct rfx_output_file *file, const char *path,
                                   struct rfx_error *err) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t length = (size_t)(base - path);
    if (length >= sizeof folder || strlen(base) > NAME_MAX) {
        errno = ENAMETOOLONG;
        return fail_open(file, err);
    }
    if (*base == '\0')
        return rfx_fail(err, RFX_STATUS_IO, "%s: names a directory, not a file", file->path);
    memcpy(folder, length > 0 ? path : "./", length > 0 ? length : 2);
    folder[length > 0 ? length : 2] = '\0';
    file->base = rfx_memory_strdup(file->mem, base);
    if (file->base == NULL) return rfx_memory_fail(file->mem, path, strlen(base) + 1, err);
    return open_temporary(file, folder, err);
}

static enum rfx_status open_target(struct rfx_output_file *file, struct rfx_error *err) {
    char resolved[PATH_MAX];
    struct stat info;
    int own = own_descriptor(file->path);
    if (own >= 0) return open_in_place(file, fcntl(own, F_DUPFD_CLOEXEC, 3), err);
    if (stat(file->path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return rfx_fail(err, RFX_STATUS_IO, "%s: is a directory", file->path);
        if (!S_ISREG(info.st_mode)) return open_special(file, err);
    }
    if (lstat(file->path, &info) != 0 || !S_ISLNK(info.st_mode))
        return open_beside(file, file->path, err);
    if (realpath(file->path, resolved) != NULL) return open_beside(file, resolved, err);
    return rfx_fail(err, RFX_STATUS_IO, "%s: a symbolic link that leads to no file: %s", file->path,
                    strerror(errno));
}

static enum rfx_status open_file(struct rfx_memory *mem, const char *path, bool named,
                                 struct rfx_output_file **out, struct rfx_error *err) {
    struct rfx_output_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->folder = file->fd = file->receiver = -1;
    file->named = named;
    file->path = rfx_memory_strdup(mem, path);
    enum rfx_status status = file->path != NULL ? open_target(file, err)
                                                : rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK)
        *out = file;
    else
        rfx_output_file_free(file);
    return status;
}

enum rfx_status rfx_output_file_open(struct rfx_memory *mem, const char *path,
                                     struct rfx_output_file **out, struct rfx_error *err) {
    return open_file(mem, path, false, out, err);
}

bool rfx_output_file_is_regular(const char *path) {
    struct stat info;
    return own_descriptor(path) < 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode));
}

bool rfx_output_file_is_nameless(const struct rfx_output_file *file) {
    return file->base != NULL && file->temporary[0] == '\0';
}

enum rfx_status rfx_output_file_open_shared(struct rfx_memory *mem, const char *path, bool named,
                                            struct rfx_output_file **out, const char **temporary,
                                            struct rfx_error *err) {
    char name[PATH_MAX], link[64];
    struct rfx_output_file *file = NULL;
    enum rfx_status status = open_file(mem, path, named, &file, err);
    if (status != RFX_OK) return status;
    (void)snprintf(link, sizeof link, "/proc/%lld/fd/%d", (long long)getpid(), file->fd);
    memcpy(name, link, strlen(link) + 1);
    if (file->base == NULL || (!rfx_output_file_is_nameless(file) && realpath(link, name) == NULL))
        status = rfx_fail(err, RFX_STATUS_IO, "%s: no file that several processes can write", path);
    else if ((file->shared_path = rfx_memory_strdup(mem, name)) == NULL)
        status = rfx_memory_fail(mem, path, strlen(name) + 1, err);
    if (status != RFX_OK) {
        rfx_output_file_free(file);
        return status;
    }
    *temporary = file->shared_path;
    *out = file;
    return RFX_OK;
}

const char *rfx_output_file_path(const struct rfx_output_file *file) {
    return file->path;
}

int rfx_output_file_descriptor(const struct rfx_output_file *file) {
    return file->fd;
}

/* Waits until data pushed before are on the disk, and pushes data written since. The last sync does
 * not report an error again that is reported here. */
static enum rfx_status push(struct rfx_output_file *file, struct rfx_error *err) {
    if (file->folder < 0 || file->receiver >= 0) return RFX_OK;
    if (file->written_bytes - file->pushed_bytes < PUSH_BYTES) return RFX_OK;
    file->pushed_bytes = file->written_bytes;
    const unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE;
    if (sync_file_range(file->fd, 0, 0, how) == 0) return RFX_OK;
    /* If the system cannot do this, the last sync does all. */
    if (errno != EIO && errno != ENOSPC && errno != EDQUOT) return RFX_OK;
    return fail_io(file, "syncing failed", err);
}

static enum rfx_status write_all(struct rfx_output_file *file, int fd, const void *data,
                                 size_t bytes, struct rfx_error *err) {
    size_t written = 0;
    int number = rfx_descriptor_write(fd, data, bytes, &written);
    file->written_bytes += written;
    return number == 0 ? push(file, err) : fail_number(file, "writing failed", number, err);
}

static enum rfx_status flush(struct rfx_output_file *file, struct rfx_error *err) {
    size_t bytes = file->filled;
    file->filled = 0;
    return write_all(file, file->fd, file->buffer, bytes, err);
}

enum rfx_status rfx_output_file_append(struct rfx_output_file *file, const void *data, size_t bytes,
                                       struct rfx_error *err) {
    if (bytes > sizeof file->buffer - file->filled) {
        enum rfx_status status = flush(file, err);
        if (status != RFX_OK) return status;
    }
    if (bytes >= sizeof file->buffer) return write_all(file, file->fd, data, bytes, err);
    if (bytes > 0) memcpy(file->buffer + file->filled, data, bytes);
    file->filled += bytes;
    return RFX_OK;
}

enum rfx_status rfx_output_file_put(struct rfx_output_file *file, const void *data, size_t bytes,
                                    uint64_t offset, struct rfx_error *err) {
    enum rfx_status status = flush(file, err);
    if (status != RFX_OK) return status;
    int number = rfx_descriptor_write_at(file->fd, data, bytes, (int64_t)offset);
    if (number != 0) return fail_number(file, "writing failed", number, err);
    file->written_bytes += bytes;
    return push(file, err);
}

enum rfx_status rfx_output_file_reserve(struct rfx_output_file *file, uint64_t bytes,
                                        struct rfx_error *err) {
    if (file->folder < 0 || bytes == 0) return RFX_OK;
    int number = rfx_descriptor_reserve(file->fd, FALLOC_FL_KEEP_SIZE, (int64_t)bytes);
    /* If the system cannot reserve, the writes report a full disk. */
    if (number != ENOSPC && number != EDQUOT && number != EFBIG) return RFX_OK;
    file->failed = true;
    return rfx_fail(err, RFX_STATUS_IO, "%s: no room for its %" PRIu64 " bytes: %s", file->path,
                    bytes, strerror(number));
}

/* Releases disk space reserved beyond the end, and syncs the file. */
static enum rfx_status settle(struct rfx_output_file *file, struct rfx_error *err) {
    struct stat info;
    if (file->folder < 0 || file->receiver >= 0) return RFX_OK;
    int number = fstat(file->fd, &info) != 0 ? errno : 0;
    if (number == 0) number = rfx_descriptor_truncate(file->fd, info.st_size);
    if (number != 0) return fail_number(file, "setting the size failed", number, err);
    if (fsync(file->fd) != 0 && errno != EINVAL) return fail_io(file, "syncing failed", err);
    return RFX_OK;
}

/* Copies the whole file to an output that cannot seek. */
static enum rfx_status hand_over(struct rfx_output_file *file, struct rfx_error *err) {
    off_t at = 0;
    if (file->receiver < 0) return RFX_OK;
    file->written_bytes = 0;
    for (;;) {
        ssize_t n = pread(file->fd, file->buffer, sizeof file->buffer, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_io(file, "reading the temporary file failed", err);
        if (n == 0) return RFX_OK;
        enum rfx_status status = write_all(file, file->receiver, file->buffer, (size_t)n, err);
        if (status != RFX_OK) return status;
        at += n;
    }
}

/* Checks for late errors: some systems report a failed write only when a descriptor of the file is
 * closed. Closes a copy of the descriptor, because the file must stay open to get its name. */
static enum rfx_status check_close(struct rfx_output_file *file, struct rfx_error *err) {
    int copy = fcntl(file->receiver >= 0 ? file->receiver : file->fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0 && close(copy) == 0) return RFX_OK;
    return fail_io(file, "closing failed", err);
}

/* Gives a file without a name a temporary name in its folder; used if the final name exists. */
static int name_temporary(struct rfx_output_file *file) {
    for (int attempt = 0; attempt < 64; attempt++) {
        rfx_temp_file_name(file->temporary);
        if (rfx_temp_file_link(file->fd, file->folder, file->temporary) == 0) return 0;
        if (errno != EEXIST) break;
    }
    file->temporary[0] = '\0';
    return -1;
}

static enum rfx_status publish(struct rfx_output_file *file, struct rfx_error *err) {
    struct stat info;
    if (file->base == NULL) return RFX_OK;
    if (file->temporary[0] == '\0') {
        if (rfx_temp_file_link(file->fd, file->folder, file->base) == 0) return RFX_OK;
        if (errno != EEXIST || name_temporary(file) != 0)
            return fail_io(file, "naming the file failed", err);
    }
    if (fstatat(file->folder, file->base, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(info.st_mode))
        return rfx_fail(err, RFX_STATUS_IO,
                        "%s: has become something else than a file; it is left alone", file->path);
    if (renameat(file->folder, file->temporary, file->folder, file->base) != 0)
        return fail_io(file, "renaming failed", err);
    file->temporary[0] = '\0';
    return RFX_OK;
}

enum rfx_status rfx_output_file_commit(struct rfx_output_file *file, struct rfx_error *err) {
    if (file->failed)
        return rfx_fail(err, RFX_STATUS_IO, "%s: an earlier write failed after %" PRIu64 " bytes",
                        file->path, file->written_bytes);
    enum rfx_status status = flush(file, err);
    if (status == RFX_OK) status = settle(file, err);
    if (status == RFX_OK) status = rfx_memory_check_stop(file->mem, err); /* syncing takes long */
    if (status == RFX_OK) status = hand_over(file, err);
    if (status == RFX_OK) status = check_close(file, err);
    return status == RFX_OK ? publish(file, err) : status;
}

void rfx_output_file_free(struct rfx_output_file *file) {
    if (file == NULL) return;
    if (file->temporary[0] != '\0') (void)unlinkat(file->folder, file->temporary, 0);
    if (file->fd >= 0) (void)close(file->fd);
    if (file->receiver >= 0) (void)close(file->receiver);
    if (file->folder >= 0) (void)close(file->folder);
    rfx_memory_release(file->mem, file->shared_path);
    rfx_memory_release(file->mem, file->base);
    rfx_memory_release(file->mem, file->path);
    rfx_memory_release(file->mem, file);
}
