/* A file without a name, or one whose name is removed at once. */
#include "rfexec/output/output_spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"

#define CHUNK_BYTES ((size_t)16384)

struct rfx_output_spool {
    struct rfx_memory *mem;
    struct rfx_tensor map;
    char *path; /* path of the output */
    int fd;
    unsigned char chunk[CHUNK_BYTES];
};
_Static_assert(sizeof(struct rfx_output_spool) + PATH_MAX <= RFX_OUTPUT_SPOOL_BYTES,
               "plans count all memory of an open file");

static enum rfx_status fail_io(const struct rfx_output_spool *spool, const char *doing, int number,
                               struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO, "%s: %s the %" PRId64 " bytes kept beside it: %s",
                    spool->path, doing, (int64_t)rfx_tensor_bytes(&spool->map), strerror(number));
}

/* Gives the file the map's size, with or without disk space. */
static enum rfx_status size_file(const struct rfx_output_spool *spool, bool sparse,
                                 struct rfx_error *err) {
    int64_t bytes = (int64_t)rfx_tensor_bytes(&spool->map);
    int number = sparse ? rfx_descriptor_truncate(spool->fd, bytes)
                        : rfx_descriptor_reserve(spool->fd, 0, bytes);
    /* a file system that cannot reserve is no failure */
    bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    return full || (sparse && number != 0) ? fail_io(spool, "no room for", number, err) : RFX_OK;
}

static enum rfx_status open_file(struct rfx_memory *mem, const char *path,
                                 const struct rfx_tensor *map, bool sparse,
                                 struct rfx_output_spool **out, struct rfx_error *err) {
    struct rfx_output_spool *spool = rfx_memory_calloc(mem, 1, sizeof *spool);
    if (spool == NULL) return rfx_memory_fail(mem, path, sizeof *spool, err);
    spool->mem = mem;
    spool->map = *map;
    spool->fd = -1;
    enum rfx_status status = RFX_OK;
    spool->path = rfx_memory_strdup(mem, path);
    if (spool->path == NULL) {
        status = rfx_memory_fail(mem, path, strlen(path) + 1, err);
        goto fail;
    }
    spool->fd = rfx_temp_file_beside(path);
    if (spool->fd < 0) {
        status = fail_io(spool, "cannot make a file for", errno, err);
        goto fail;
    }
    status = size_file(spool, sparse, err);
    if (status != RFX_OK) goto fail;
    *out = spool;
    return RFX_OK;
fail:
    rfx_output_spool_free(spool);
    return status;
}

enum rfx_status rfx_output_spool_open(struct rfx_memory *mem, const char *path,
                                      const struct rfx_tensor *map, struct rfx_output_spool **out,
                                      struct rfx_error *err) {
    return open_file(mem, path, map, false, out, err);
}

enum rfx_status rfx_output_spool_open_sparse(struct rfx_memory *mem, const char *path,
                                             const struct rfx_tensor *map,
                                             struct rfx_output_spool **out, struct rfx_error *err) {
    return open_file(mem, path, map, true, out, err);
}

static enum rfx_status put(const struct rfx_output_spool *spool, const void *elements, size_t bytes,
                           int64_t offset, struct rfx_error *err) {
    int number = rfx_descriptor_write_at(spool->fd, elements, bytes, offset);
    return number == 0 ? RFX_OK : fail_io(spool, "cannot write", number, err);
}

/* Writes columns [rect.x0, rect.x1) of row y of a view that has more channels than the map. */
static enum rfx_status put_wide_row(struct rfx_output_spool *spool, struct rfx_rect rect, int64_t y,
                                    const struct rfx_view *view, struct rfx_error *err) {
    size_t bytes = rfx_type_bytes(view->type), filled = 0;
    int64_t c = spool->map.c;
    int64_t offset = (int64_t)rfx_tensor_pixel_bytes(&spool->map, y * spool->map.w + rect.x0);
    for (int64_t i = 0, n = rfx_rect_cols(rect) * c; i < n; i++) {
        const unsigned char *pixel = rfx_view_at(view, y, rect.x0 + i / c);
        memcpy(spool->chunk + filled, pixel + (size_t)(i % c) * bytes, bytes);
        filled += bytes;
        if (filled + bytes <= CHUNK_BYTES && i + 1 < n) continue;
        enum rfx_status status = put(spool, spool->chunk, filled, offset, err);
        if (status != RFX_OK) return status;
        offset += (int64_t)filled;
        filled = 0;
    }
    return RFX_OK;
}

enum rfx_status rfx_output_spool_write(struct rfx_output_spool *spool, struct rfx_rect rect,
                                       const struct rfx_view *view, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    assert(view->type == spool->map.type);
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++)
        status =
            view->c == spool->map.c
                ? put(spool, rfx_view_at(view, y, rect.x0),
                      rfx_tensor_pixel_bytes(&spool->map, rfx_rect_cols(rect)),
                      (int64_t)rfx_tensor_pixel_bytes(&spool->map, y * spool->map.w + rect.x0), err)
                : put_wide_row(spool, rect, y, view, err);
    return status;
}

enum rfx_status rfx_output_spool_read_part(struct rfx_output_spool *spool, int64_t y, int64_t x0,
                                           int64_t x1, void *part, struct rfx_error *err) {
    size_t bytes = rfx_tensor_pixel_bytes(&spool->map, x1 - x0);
    int64_t offset = (int64_t)rfx_tensor_pixel_bytes(&spool->map, y * spool->map.w + x0);
    int number = rfx_descriptor_read_at(spool->fd, part, bytes, offset);
    return number == 0 ? RFX_OK : fail_io(spool, "cannot read", number, err);
}

enum rfx_status rfx_output_spool_read(struct rfx_output_spool *spool, int64_t y, void *row,
                                      struct rfx_error *err) {
    return rfx_output_spool_read_part(spool, y, 0, spool->map.w, row, err);
}

void rfx_output_spool_free(struct rfx_output_spool *spool) {
    if (spool == NULL) return;
    if (spool->fd >= 0) (void)close(spool->fd);
    rfx_memory_release(spool->mem, spool->path);
    rfx_memory_release(spool->mem, spool);
}
