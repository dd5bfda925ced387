/* Passes are written to the file in the order in which they come, without seeking. Eight rows of
 * the picture need at most four rows of each pass, which are contiguous: seven reads. */
#include "rfexec/image/decode/interlaced_png.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"

#define GROUP 8     /* rows after which the passes repeat */
#define PASS_ROWS 4 /* most rows of a pass in a group: those of the last two passes */

/* Adam7 (PNG specification, 8.2): first column and row of a pass, and the steps between its columns
 * and rows. */
static const struct {
    int x0, y0, dx, dy;
} grids[RFX_PASSES] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                       {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

static int64_t count(int64_t n, int first, int step) {
    return n > first ? (n - first - 1) / step + 1 : 0;
}

int64_t rfx_passes_rows(const struct rfx_passes *passes, int pass) {
    return count(passes->h, grids[pass].y0, grids[pass].dy);
}

int64_t rfx_passes_columns(const struct rfx_passes *passes, int pass) {
    return count(passes->w, grids[pass].x0, grids[pass].dx);
}

int64_t rfx_passes_row_of(int pass, int64_t row) {
    return grids[pass].y0 + row * grids[pass].dy;
}

static size_t row_bytes(const struct rfx_passes *passes) {
    return (size_t)passes->w * passes->pixel_bytes;
}

static size_t pass_row_bytes(const struct rfx_passes *passes, int pass) {
    return (size_t)rfx_passes_columns(passes, pass) * passes->pixel_bytes;
}

void rfx_passes_init(struct rfx_passes *passes, int64_t h, int64_t w, size_t pixel_bytes,
                     const char *folder) {
    *passes = (struct rfx_passes){
        .h = h, .w = w, .pixel_bytes = pixel_bytes, .folder = folder, .fd = -1, .held = -1};
    for (int pass = 0; pass < RFX_PASSES; pass++)
        passes->start[pass + 1] = passes->start[pass] + rfx_passes_rows(passes, pass) *
                                                            (int64_t)pass_row_bytes(passes, pass);
}

size_t rfx_passes_bytes(const struct rfx_passes *passes) {
    return (GROUP + PASS_ROWS) * row_bytes(passes);
}

static enum rfx_status failed(const struct rfx_passes *passes, const char *doing, int number,
                              const char *name, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO,
                    "%s: is interlaced, and its passes are put together in a file of %.1f MiB: %s "
                    "in '%.150s': %s (--spill or TMPDIR is another folder)",
                    name, (double)passes->start[RFX_PASSES] / 1048576.0, doing,
                    rfx_temp_folder(passes->folder), strerror(number));
}

enum rfx_status rfx_passes_open(struct rfx_memory *mem, struct rfx_passes *passes, const char *name,
                                struct rfx_error *err) {
    passes->held = -1;
    if (passes->rows == NULL) passes->rows = rfx_memory_alloc(mem, rfx_passes_bytes(passes));
    if (passes->rows == NULL) return rfx_memory_fail(mem, name, rfx_passes_bytes(passes), err);
    if (passes->fd < 0) passes->fd = rfx_temp_file_open(rfx_temp_folder(passes->folder));
    return passes->fd >= 0 ? RFX_OK : failed(passes, "cannot make it", errno, name, err);
}

unsigned char *rfx_passes_room(struct rfx_passes *passes) {
    return passes->rows;
}

enum rfx_status rfx_passes_put(struct rfx_passes *passes, int pass, int64_t row, const char *name,
                               struct rfx_error *err) {
    size_t bytes = pass_row_bytes(passes, pass);
    int number = rfx_descriptor_write_at(passes->fd, passes->rows, bytes,
                                         passes->start[pass] + row * (int64_t)bytes);
    return number == 0 ? RFX_OK : failed(passes, "cannot write", number, name, err);
}

/* Puts the pixels of one pass into the rows from `top` on. Returns an errno, or 0. */
static int put_together(struct rfx_passes *passes, int pass, int64_t top) {
    const size_t pixel = passes->pixel_bytes, bytes = pass_row_bytes(passes, pass);
    const int64_t columns = rfx_passes_columns(passes, pass);
    const int x0 = grids[pass].x0, y0 = grids[pass].y0, dx = grids[pass].dx, dy = grids[pass].dy;
    const int64_t first = top / dy; /* no remainder: top is a multiple of eight, and eight of dy */
    const int64_t rows = rfx_min_i64(GROUP / dy, rfx_passes_rows(passes, pass) - first);
    unsigned char *from = passes->rows + GROUP * row_bytes(passes);
    if (rows <= 0 || columns == 0) return 0;
    int number = rfx_descriptor_read_at(passes->fd, from, (size_t)rows * bytes,
                                        passes->start[pass] + first * (int64_t)bytes);
    for (int64_t row = 0; row < rows && number == 0; row++) {
        unsigned char *to = passes->rows + (size_t)(y0 + row * dy) * row_bytes(passes);
        for (int64_t i = 0; i < columns; i++, from += pixel)
            memcpy(to + (size_t)(x0 + i * dx) * pixel, from, pixel);
    }
    return number;
}

enum rfx_status rfx_passes_row(struct rfx_passes *passes, int64_t y, const unsigned char **row,
                               const char *name, struct rfx_error *err) {
    const int64_t top = y - y % GROUP;
    if (passes->held != top) {
        passes->held = -1;
        for (int pass = 0; pass < RFX_PASSES; pass++) {
            int number = put_together(passes, pass, top);
            if (number != 0) return failed(passes, "cannot read", number, name, err);
        }
        passes->held = top;
    }
    *row = passes->rows + (size_t)(y - top) * row_bytes(passes);
    return RFX_OK;
}

void rfx_passes_close(struct rfx_memory *mem, struct rfx_passes *passes) {
    rfx_memory_release(mem, passes->rows);
    if (passes->fd >= 0) (void)close(passes->fd);
    passes->rows = NULL;
    passes->fd = -1;
}
