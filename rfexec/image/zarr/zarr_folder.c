/* Opens files below a folder, one part of the path at a time. */
#include "rfexec/image/zarr/zarr_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/descriptor.h"

#define MOST_JSON_BYTES ((int64_t)1 << 20)
#define JSON_GROWTH ((size_t)16) /* memory of jansson's values in relation to their text */
enum { PART_CHARS = 256 };

enum rfx_status rfx_zarr_folder_open(const char *name, int *folder, struct rfx_error *err) {
    *folder = rfx_descriptor_keep(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return *folder >= 0
               ? RFX_OK
               : rfx_fail(err, RFX_STATUS_IO, "%s: cannot open: %s", name, strerror(errno));
}

/* Opens a path below the folder. Returns a descriptor, or -1 with errno; EXDEV: the path leaves the
 * folder. */
static int open_beneath(int folder, const char *path, int flags) {
    for (int at = folder;;) {
        char part[PART_CHARS];
        size_t n = strcspn(path, "/");
        bool last = path[n] == '\0';
        int next = -1, number = EXDEV;
        if (n > 0 && n < sizeof part) {
            memcpy(part, path, n);
            part[n] = '\0';
            if (strcmp(part, ".") != 0 && strcmp(part, "..") != 0) {
                int how = (last ? flags : O_RDONLY | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC;
                next = rfx_descriptor_keep(openat(at, part, how));
                number = errno;
            }
        }
        if (at != folder) (void)close(at);
        errno = number;
        if (next < 0 || last) return next;
        at = next;
        path += n + 1;
    }
}

/* Returns the failure for a path that could not be opened, from errno. */
static enum rfx_status fail_open(const char *path, struct rfx_error *err) {
    if (errno == EXDEV || errno == ENAMETOOLONG)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "'%.200s' is no path inside the folder", path);
    if (errno == ELOOP || errno == ENOTDIR)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "'%.200s' has a symbolic link, which are not followed, or a file where a "
                        "folder should be",
                        path);
    return rfx_fail(err, RFX_STATUS_IO, "'%.200s': %s", path, strerror(errno));
}

enum rfx_status rfx_zarr_folder_enter(int folder, const char *path, int *inner,
                                      struct rfx_error *err) {
    *inner = open_beneath(folder, path, O_RDONLY | O_DIRECTORY);
    if (*inner >= 0) return RFX_OK;
    if (errno == ENOENT) return rfx_fail(err, RFX_STATUS_MALFORMED, "'%.200s' is not there", path);
    return fail_open(path, err);
}

enum rfx_status rfx_zarr_file_open(int folder, const char *path, int *fd, int64_t *bytes,
                                   struct rfx_error *err) {
    struct stat info;
    *fd = open_beneath(folder, path, O_RDONLY | O_NONBLOCK);
    if (*fd < 0) return errno == ENOENT ? RFX_OK : fail_open(path, err);
    enum rfx_status status = RFX_OK;
    if (fstat(*fd, &info) != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "'%.200s': %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "'%.200s' is not a regular file", path);
    if (status != RFX_OK) {
        (void)close(*fd);
        *fd = -1;
        return status;
    }
    *bytes = (int64_t)info.st_size;
    return RFX_OK;
}

enum rfx_status rfx_zarr_file_read(int fd, const char *path, void *to, size_t bytes,
                                   struct rfx_error *err) {
    unsigned char *dst = to;
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, dst + done, bytes - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return rfx_fail(err, RFX_STATUS_IO, "'%.200s': %s", path, strerror(errno));
        if (got == 0)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "'%.200s' ends after %zu of %zu bytes", path,
                            done, bytes);
        done += (size_t)got;
    }
    return RFX_OK;
}

/* Parses JSON text twice. If jansson gets no memory for a token, it drops characters or reports a
 * wrong token, without an error of its own. If both results differ, memory was short. */
static enum rfx_status parse(const char *path, const char *text, size_t bytes, json_t **out,
                             struct rfx_error *err) {
    json_error_t where;
    json_t *again = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    json_t *made = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    bool same = made == NULL ? again == NULL : json_equal(made, again) != 0;
    json_decref(again);
    if (same && json_is_object(made)) {
        *out = made;
        return RFX_OK;
    }
    enum json_error_code code = made == NULL ? json_error_code(&where) : json_error_wrong_type;
    bool no_memory = !same || code == json_error_out_of_memory || code == json_error_unknown;
    json_decref(made);
    if (no_memory) return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "'%.200s': no memory", path);
    return rfx_fail(err, RFX_STATUS_MALFORMED, "'%.200s': line %d: %.120s", path,
                    made == NULL ? where.line : 1, made == NULL ? where.text : "no JSON object");
}

enum rfx_status rfx_zarr_file_json(struct rfx_memory *mem, int folder, const char *path,
                                   json_t **out, size_t *held, struct rfx_error *err) {
    int fd;
    int64_t bytes = 0;
    *out = NULL;
    enum rfx_status status = rfx_zarr_file_open(folder, path, &fd, &bytes, err);
    if (status != RFX_OK || fd < 0) return status;
    char *text = NULL;
    if (bytes > MOST_JSON_BYTES)
        status =
            rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                     "'%.200s' has %" PRId64 " bytes of metadata, at most %" PRId64 " are read",
                     path, bytes, MOST_JSON_BYTES);
    else if ((text = rfx_memory_alloc(mem, (size_t)bytes)) == NULL)
        status = rfx_memory_fail(mem, path, (size_t)bytes, err);
    if (status == RFX_OK) status = rfx_zarr_file_read(fd, path, text, (size_t)bytes, err);
    if (status == RFX_OK) status = parse(path, text, (size_t)bytes, out, err);
    if (status == RFX_OK) *held += (size_t)bytes * JSON_GROWTH;
    rfx_memory_release(mem, text);
    (void)close(fd);
    return status;
}
