/* Temporary-and-rename files on descriptors, and the streaming .npy writer. */
#include "rfexec/output/output_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rfexec/image/npy_format.h"
#include "rfexec/output/output_sink.h"

#define SUFFIX_BYTES 12 /* ".tmp-XXXXXX" and the end */

struct rfx_output_file {
    struct rfx_memory *mem;
    char *path;
    char *temp_path; /* NULL: written in place */
    int fd;
    bool failed; /* a write failed: no commit */
    uint64_t written_bytes;
    size_t filled;
    unsigned char buffer[32768];
};

static enum rfx_status fail_io(struct rfx_output_file *file, const char *doing,
                               struct rfx_error *err) {
    int number = errno;
    file->failed = true;
    return rfx_fail(err, RFX_STATUS_IO, "%s: %s after %" PRIu64 " bytes: %s", file->path, doing,
                    file->written_bytes, strerror(number));
}

/* Creates the temporary with the permissions that a plain new file would get. */
static enum rfx_status create_temporary(struct rfx_output_file *file, struct rfx_error *err) {
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345";
    char *suffix = file->temp_path + strlen(file->path);
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t bits = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid() << 7;
    for (int attempt = 0; attempt < 64; attempt++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        (void)snprintf(suffix, SUFFIX_BYTES, ".tmp-");
        for (int i = 0; i < 6; i++) suffix[5 + i] = digits[bits >> (34 + 5 * i) & 31];
        suffix[11] = '\0';
        file->fd = open(file->temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) return RFX_OK;
        if (errno != EEXIST) break;
    }
    return rfx_fail(err, RFX_STATUS_IO, "%s: cannot write beside it: %s", file->path,
                    strerror(errno));
}

static enum rfx_status open_target(struct rfx_output_file *file, struct rfx_error *err) {
    struct stat info;
    if (stat(file->path, &info) != 0 || S_ISREG(info.st_mode)) return create_temporary(file, err);
    rfx_memory_release(file->mem, file->temp_path);
    file->temp_path = NULL;
    file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
    if (file->fd >= 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_IO, "%s: cannot write: %s", file->path, strerror(errno));
}

enum rfx_status rfx_output_file_open(struct rfx_memory *mem, const char *path,
                                     struct rfx_output_file **out, struct rfx_error *err) {
    struct rfx_output_file *file = rfx_memory_calloc(mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(mem, path, sizeof *file, err);
    file->mem = mem;
    file->fd = -1;
    enum rfx_status status;
    file->path = rfx_memory_strdup(mem, path);
    file->temp_path = rfx_memory_alloc(mem, strlen(path) + SUFFIX_BYTES);
    if (file->path == NULL || file->temp_path == NULL) {
        status = rfx_memory_fail(mem, path, 2 * strlen(path) + SUFFIX_BYTES, err);
        goto fail;
    }
    (void)snprintf(file->temp_path, strlen(path) + SUFFIX_BYTES, "%s", path);
    status = open_target(file, err);
    if (status != RFX_OK) goto fail;
    *out = file;
    return RFX_OK;
fail:
    rfx_output_file_free(file);
    return status;
}

static enum rfx_status write_all(struct rfx_output_file *file, const void *data, size_t bytes,
                                 struct rfx_error *err) {
    const unsigned char *p = data;
    while (bytes > 0) {
        ssize_t done = write(file->fd, p, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_io(file, "writing failed", err);
        p += done;
        bytes -= (size_t)done;
        file->written_bytes += (uint64_t)done;
    }
    return RFX_OK;
}

static enum rfx_status flush(struct rfx_output_file *file, struct rfx_error *err) {
    size_t bytes = file->filled;
    file->filled = 0;
    return write_all(file, file->buffer, bytes, err);
}

enum rfx_status rfx_output_file_append(struct rfx_output_file *file, const void *data, size_t bytes,
                                       struct rfx_error *err) {
    if (bytes > sizeof file->buffer - file->filled) {
        enum rfx_status status = flush(file, err);
        if (status != RFX_OK) return status;
    }
    if (bytes >= sizeof file->buffer) return write_all(file, data, bytes, err);
    if (bytes > 0) memcpy(file->buffer + file->filled, data, bytes);
    file->filled += bytes;
    return RFX_OK;
}

enum rfx_status rfx_output_file_put(struct rfx_output_file *file, const void *data, size_t bytes,
                                    uint64_t offset, struct rfx_error *err) {
    enum rfx_status status = flush(file, err);
    if (status != RFX_OK) return status;
    const unsigned char *p = data;
    while (bytes > 0) {
        ssize_t done = pwrite(file->fd, p, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_io(file, "writing failed", err);
        p += done;
        bytes -= (size_t)done;
        offset += (uint64_t)done;
        file->written_bytes += (uint64_t)done;
    }
    return RFX_OK;
}

enum rfx_status rfx_output_file_reserve(struct rfx_output_file *file, uint64_t bytes,
                                        struct rfx_error *err) {
    if (file->temp_path == NULL || bytes == 0) return RFX_OK;
    if (fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0) return RFX_OK;
    /* Where it is not possible, the writes will tell. */
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) return RFX_OK;
    file->failed = true;
    return rfx_fail(err, RFX_STATUS_IO, "%s: no room for its %" PRIu64 " bytes: %s", file->path,
                    bytes, strerror(errno));
}

/* Gives back what was reserved beyond the end of the file. */
static enum rfx_status trim(struct rfx_output_file *file, struct rfx_error *err) {
    struct stat info;
    if (file->temp_path == NULL) return RFX_OK;
    if (fstat(file->fd, &info) != 0 || ftruncate(file->fd, info.st_size) != 0)
        return fail_io(file, "setting the size failed", err);
    return RFX_OK;
}

enum rfx_status rfx_output_file_commit(struct rfx_output_file *file, struct rfx_error *err) {
    if (file->failed)
        return rfx_fail(err, RFX_STATUS_IO, "%s: an earlier write failed after %" PRIu64 " bytes",
                        file->path, file->written_bytes);
    enum rfx_status status = flush(file, err);
    if (status == RFX_OK) status = trim(file, err);
    if (status != RFX_OK) return status;
    if (file->temp_path != NULL && fsync(file->fd) != 0 && errno != EINVAL)
        return fail_io(file, "syncing failed", err);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0) return fail_io(file, "closing failed", err);
    if (file->temp_path == NULL) return RFX_OK;
    if (rename(file->temp_path, file->path) != 0) return fail_io(file, "renaming failed", err);
    rfx_memory_release(file->mem, file->temp_path);
    file->temp_path = NULL;
    return RFX_OK;
}

void rfx_output_file_free(struct rfx_output_file *file) {
    if (file == NULL) return;
    bool created = file->fd >= 0 || file->failed;
    if (file->fd >= 0) (void)close(file->fd);
    if (created && file->temp_path != NULL) (void)unlink(file->temp_path);
    rfx_memory_release(file->mem, file->temp_path);
    rfx_memory_release(file->mem, file->path);
    rfx_memory_release(file->mem, file);
}

#define CHUNK_ELEMS 16384

struct rfx_npy_writer {
    struct rfx_output_file *file;
    struct rfx_memory *mem;
    struct rfx_shape shape;
    uint64_t elems, done_elems;
    size_t data_offset;
    float chunk[CHUNK_ELEMS];
};

static bool count_elems(const struct rfx_shape *shape, uint64_t *out) {
    int64_t elems = 1, bytes;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0 || !rfx_checked_mul_i64(elems, shape->dims[i], &elems)) return false;
    if (!rfx_checked_mul_i64(elems, 4, &bytes) || !rfx_checked_add_i64(bytes, 512, &bytes))
        return false;
    *out = (uint64_t)elems;
    return true;
}

enum rfx_status rfx_npy_write_open(struct rfx_memory *mem, const char *path,
                                   const struct rfx_shape *shape, struct rfx_npy_writer **out,
                                   struct rfx_error *err) {
    uint64_t elems = 0;
    if (shape->rank < 0 || shape->rank > RFX_MAX_RANK || !count_elems(shape, &elems))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a shape without a size", path);
    struct rfx_npy_writer *writer = rfx_memory_calloc(mem, 1, sizeof *writer);
    if (writer == NULL) return rfx_memory_fail(mem, path, sizeof *writer, err);
    writer->mem = mem;
    writer->shape = *shape;
    writer->elems = elems;
    unsigned char header[512];
    enum rfx_status status = rfx_output_file_open(mem, path, &writer->file, err);
    if (status == RFX_OK)
        status = rfx_output_file_reserve(writer->file,
                                         rfx_floats_bytes((int64_t)elems) + sizeof header, err);
    if (status == RFX_OK)
        status = rfx_npy_format(shape, header, sizeof header, &writer->data_offset, err);
    if (status == RFX_OK)
        status = rfx_output_file_append(writer->file, header, writer->data_offset, err);
    if (status != RFX_OK) {
        rfx_npy_write_free(writer);
        return status;
    }
    *out = writer;
    return RFX_OK;
}

static enum rfx_status count_in(struct rfx_npy_writer *writer, uint64_t count,
                                struct rfx_error *err) {
    if (count > writer->elems - writer->done_elems)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRIu64 " elements after %" PRIu64 " of %" PRIu64,
                        writer->file->path, count, writer->done_elems, writer->elems);
    writer->done_elems += count;
    return RFX_OK;
}

enum rfx_status rfx_npy_write_append(struct rfx_npy_writer *writer, const float *values,
                                     size_t count, struct rfx_error *err) {
    enum rfx_status status = count_in(writer, count, err);
    if (status != RFX_OK) return status;
    return rfx_output_file_append(writer->file, values, count * sizeof *values, err);
}

/* Gathers columns [x, x + count) of one row and channel. */
static void gather_plane(float *to, const struct rfx_view *view, int64_t channel, int64_t y,
                         int64_t x, int64_t count) {
    const float *from = rfx_view_at(view, y, x) + channel;
    for (int64_t k = 0; k < count; k++) to[k] = rfx_one_nan(from[k * view->c]);
}

/* Rows of the array's full width of one channel, as many a write as fit the chunk; `plane`: the
 * element at row 0, column 0. */
static enum rfx_status put_plane_rows(struct rfx_npy_writer *writer, struct rfx_rect rect,
                                      const struct rfx_view *view, int64_t channel, int64_t plane,
                                      struct rfx_error *err) {
    int64_t w = rfx_rect_cols(rect), together = CHUNK_ELEMS / w;
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += together) {
        int64_t rows = rfx_min_i64(together, rect.y1 - y);
        for (int64_t r = 0; r < rows; r++)
            gather_plane(writer->chunk + r * w, view, channel, y + r, rect.x0, w);
        status = rfx_output_file_put(writer->file, writer->chunk, rfx_floats_bytes(rows * w),
                                     writer->data_offset + rfx_floats_bytes(plane + y * w), err);
    }
    return status;
}

/* Part of a row of one channel; `first`: the element at the row's column 0. */
static enum rfx_status put_plane_row(struct rfx_npy_writer *writer, struct rfx_rect row,
                                     const struct rfx_view *view, int64_t channel, int64_t first,
                                     struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t x = row.x0; x < row.x1 && status == RFX_OK; x += CHUNK_ELEMS) {
        int64_t cols = rfx_min_i64(CHUNK_ELEMS, row.x1 - x);
        gather_plane(writer->chunk, view, channel, row.y0, x, cols);
        status = rfx_output_file_put(writer->file, writer->chunk, rfx_floats_bytes(cols),
                                     writer->data_offset + rfx_floats_bytes(first + x), err);
    }
    return status;
}

enum rfx_status rfx_npy_write_rect(struct rfx_npy_writer *writer, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    if (rfx_rect_is_empty(rect)) return RFX_OK;
    int skip = writer->shape.rank - 3;
    const int64_t *dims = writer->shape.dims + (skip == 1 ? 1 : 0);
    if ((skip != 0 && (skip != 1 || writer->shape.dims[0] != 1)) ||
        !rfx_rect_contains(rfx_rect_full(dims[1], dims[2]), rect) ||
        !rfx_rect_contains(view->rect, rect) || view->c < dims[0])
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " do not fit the array or the view",
                        writer->file->path, rect.y0, rect.y1, rect.x0, rect.x1);
    enum rfx_status status = count_in(writer, (uint64_t)(rfx_rect_area(rect) * dims[0]), err);
    bool together = rfx_rect_cols(rect) == dims[2] && dims[2] <= CHUNK_ELEMS;
    for (int64_t channel = 0; channel < dims[0] && status == RFX_OK; channel++) {
        int64_t plane = channel * dims[1] * dims[2];
        if (together) {
            status = put_plane_rows(writer, rect, view, channel, plane, err);
            continue;
        }
        for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++)
            status = put_plane_row(writer, rfx_rect_make(y, y + 1, rect.x0, rect.x1), view, channel,
                                   plane + y * dims[2], err);
    }
    return status;
}

enum rfx_status rfx_npy_write_commit(struct rfx_npy_writer *writer, struct rfx_error *err) {
    if (writer->done_elems != writer->elems)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRIu64 " of %" PRIu64 " elements written", writer->file->path,
                        writer->done_elems, writer->elems);
    return rfx_output_file_commit(writer->file, err);
}

void rfx_npy_write_free(struct rfx_npy_writer *writer) {
    if (writer == NULL) return;
    rfx_output_file_free(writer->file);
    rfx_memory_release(writer->mem, writer);
}
