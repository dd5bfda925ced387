/* Writes PNG files row by row, 8 or 16 bits, grey, RGB or RGB with alpha.
 *
 * Built on rfexec/output/output_file.h: the file appears on commit or not at all. libpng's memory
 * comes from the tracked allocator: about 270 KiB (zlib's deflate) and three rows. */
#ifndef RFX_RFEXEC_OUTPUT_IMAGE_WRITE_H
#define RFX_RFEXEC_OUTPUT_IMAGE_WRITE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

struct rfx_png_writer;

/* Opens a picture of h rows and w columns. channels: 1 (grey), 3 (RGB) or 4 (RGB and alpha, which
 * is not premultiplied); bits of a sample: 8 or 16. INVALID_ARGUMENT: other channels or bits, or a
 * side outside 1 ... 1,000,000; IO: the file cannot be made. */
RFX_NODISCARD enum rfx_status rfx_png_write_open(struct rfx_memory *mem, const char *path,
                                                 int64_t h, int64_t w, int channels, int bits,
                                                 struct rfx_png_writer **out,
                                                 struct rfx_error *err);

/* Receives the next bytes of a picture. */
typedef enum rfx_status rfx_png_put(void *user, const void *data, size_t bytes,
                                    struct rfx_error *err);

/* Like rfx_png_write_open, but passes the bytes to `put` instead of a file. `name` is used in
 * messages. If `put` returns a failure, writing the picture fails with that status. */
RFX_NODISCARD enum rfx_status rfx_png_write_open_to(struct rfx_memory *mem, const char *name,
                                                    rfx_png_put *put, void *user, int64_t h,
                                                    int64_t w, int channels, int bits,
                                                    struct rfx_png_writer **out,
                                                    struct rfx_error *err);

/* Writes the next row: samples [w, channels], uint8 or uint16 in this machine's byte order.
 * INVALID_ARGUMENT: all rows are written. */
RFX_NODISCARD enum rfx_status rfx_png_write_row(struct rfx_png_writer *writer, const void *samples,
                                                struct rfx_error *err);

/* Completes the file. INVALID_ARGUMENT: rows are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_png_write_commit(struct rfx_png_writer *writer,
                                                   struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_png_write_free(struct rfx_png_writer *writer);
#endif
