/* Buffered forward reading and positioned reading of an image file, on file descriptors. */
#include "rfexec/image/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/descriptor.h"

enum rfx_status rfx_image_file_open(struct rfx_image_file *file, const char *name,
                                    struct rfx_error *err) {
    file->at = file->filled = 0;
    file->error_number = 0;
    file->past_end = false;
    /* O_NONBLOCK: a pipe without a writer is refused below, not waited for. */
    file->fd = rfx_descriptor_keep(open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file->fd < 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: cannot open: %s", name, strerror(errno));
    struct stat info;
    enum rfx_status status = RFX_OK;
    if (fstat(file->fd, &info) != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "%s: cannot stat: %s", name, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = rfx_fail(err, RFX_STATUS_IO, "%s: is a directory, not an image", name);
    else if (!S_ISREG(info.st_mode))
        status = rfx_fail(err, RFX_STATUS_IO, "%s: is not a regular file", name);
    if (status != RFX_OK) {
        rfx_image_file_close(file);
        return status;
    }
    file->bytes = (int64_t)info.st_size;
    return RFX_OK;
}

void rfx_image_file_close(struct rfx_image_file *file) {
    if (file->fd >= 0) (void)close(file->fd);
    file->fd = -1;
}

/* Reads once and repeats interrupted calls. Returns 0 at the end of the file or on an error, which
 * sets error_number. */
static size_t read_once(struct rfx_image_file *file, void *to, size_t bytes) {
    ssize_t got;
    do {
        got = read(file->fd, to, bytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) file->error_number = errno;
    return got > 0 ? (size_t)got : 0;
}

size_t rfx_image_file_read(struct rfx_image_file *file, void *to, size_t bytes) {
    unsigned char *dst = to;
    size_t done = 0;
    while (done < bytes) {
        if (file->at == file->filled) {
            file->at = 0;
            file->filled = read_once(file, file->buffer, sizeof file->buffer);
            if (file->filled == 0) break;
        }
        size_t there = file->filled - file->at;
        size_t take = bytes - done < there ? bytes - done : there;
        memcpy(dst + done, file->buffer + file->at, take);
        file->at += take;
        done += take;
    }
    if (done == 0 && bytes > 0) file->past_end = true;
    return done;
}

void rfx_image_file_skip(struct rfx_image_file *file, int64_t bytes) {
    int64_t there = (int64_t)(file->filled - file->at);
    if (bytes >= 0 && bytes <= there) {
        file->at += (size_t)bytes;
        return;
    }
    file->at = file->filled = 0;
    off_t now = lseek(file->fd, (off_t)(bytes - there), SEEK_CUR);
    if (now < 0) file->error_number = errno;
    if (now > file->bytes) file->past_end = true;
}

void rfx_image_file_rewind(struct rfx_image_file *file) {
    file->at = file->filled = 0;
    file->error_number = 0;
    file->past_end = false;
    if (lseek(file->fd, 0, SEEK_SET) < 0) file->error_number = errno;
}

size_t rfx_image_file_pread(struct rfx_image_file *file, void *to, size_t bytes, int64_t offset) {
    unsigned char *dst = to;
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(file->fd, dst + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) file->error_number = errno;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}
