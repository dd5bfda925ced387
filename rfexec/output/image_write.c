/* libpng's writer on top of an output file or a function. libpng reports errors by longjmp. */
#include "rfexec/output/image_write.h"

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "rfexec/output/output_file.h"
#include "rfexec/output/output_format.h"

#define MAX_SIDE 1000000

struct rfx_png_writer {
    struct rfx_memory *mem;
    struct rfx_output_file *file; /* NULL: bytes go to `put` */
    rfx_png_put *put;
    void *user;
    char *path;
    png_structp png;
    png_infop info;
    int64_t h, w, next_row;
    int channels, bits;
    enum rfx_status io_status;
    struct rfx_error io_error; /* text of the file's or function's failure, if io_status is set */
    char words[200];           /* libpng's */
};

static png_voidp on_alloc(png_structp png, png_alloc_size_t bytes) {
    struct rfx_png_writer *writer = png_get_mem_ptr(png);
    return rfx_memory_alloc(writer->mem, bytes);
}

static void on_release(png_structp png, png_voidp block) {
    struct rfx_png_writer *writer = png_get_mem_ptr(png);
    rfx_memory_release(writer->mem, block);
}

_Noreturn static void on_error(png_structp png, png_const_charp words) {
    struct rfx_png_writer *writer = png_get_error_ptr(png);
    (void)snprintf(writer->words, sizeof writer->words, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words) {
    (void)png;
    (void)words;
}

static void on_write(png_structp png, png_bytep data, size_t bytes) {
    struct rfx_png_writer *writer = png_get_io_ptr(png);
    writer->io_status = writer->file != NULL
                            ? rfx_output_file_append(writer->file, data, bytes, &writer->io_error)
                            : writer->put(writer->user, data, bytes, &writer->io_error);
    if (writer->io_status != RFX_OK) png_error(png, "writing failed");
}

static void on_flush(png_structp png) {
    (void)png;
}

static enum rfx_status failed(const struct rfx_png_writer *writer, struct rfx_error *err) {
    if (writer->io_status != RFX_OK)
        return rfx_fail(err, writer->io_status, "%s", writer->io_error.text);
    return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                    "%s: writing PNG row %" PRId64 " of %" PRId64 ": %s", writer->path,
                    writer->next_row, writer->h, writer->words);
}

static int colours_of(int channels) {
    if (channels == 4) return PNG_COLOR_TYPE_RGB_ALPHA;
    return channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
}

static enum rfx_status start(struct rfx_png_writer *writer, struct rfx_error *err) {
    (void)snprintf(writer->words, sizeof writer->words, "no memory for the PNG encoder");
    writer->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, writer, on_error, on_warning,
                                            writer, on_alloc, on_release);
    if (writer->png == NULL) return failed(writer, err);
    writer->info = png_create_info_struct(writer->png);
    if (writer->info == NULL) return failed(writer, err);
    if (setjmp(png_jmpbuf(writer->png)) != 0) return failed(writer, err);
    png_set_write_fn(writer->png, writer, on_write, on_flush);
    png_set_user_limits(writer->png, MAX_SIDE, MAX_SIDE);
    png_set_compression_level(
        writer->png, 4); /* large pictures: speed matters more than the last percent of size */
    png_set_IHDR(writer->png, writer->info, (png_uint_32)writer->w, (png_uint_32)writer->h,
                 writer->bits, colours_of(writer->channels), PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer->png, writer->info);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (writer->bits == 16) png_set_swap(writer->png);
#endif
    return RFX_OK;
}

/* Opens a writer into the file `path`, or if `put` is not NULL to the function, with `path` as
 * name. */
static enum rfx_status open_writer(struct rfx_memory *mem, const char *path, rfx_png_put *put,
                                   void *user, int64_t h, int64_t w, int channels, int bits,
                                   struct rfx_png_writer **out, struct rfx_error *err) {
    if ((channels != 1 && channels != 3 && channels != 4) || (bits != 8 && bits != 16) || h < 1 ||
        w < 1 || h > MAX_SIDE || w > MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a PNG of %" PRId64 " x %" PRId64 " pixels and %d channels of %d bits",
                        path, h, w, channels, bits);
    struct rfx_png_writer *writer = rfx_memory_calloc(mem, 1, sizeof *writer);
    if (writer == NULL) return rfx_memory_fail(mem, path, sizeof *writer, err);
    writer->mem = mem;
    writer->h = h;
    writer->w = w;
    writer->channels = channels;
    writer->bits = bits;
    writer->put = put;
    writer->user = user;
    enum rfx_status status;
    writer->path = rfx_memory_strdup(mem, path);
    if (writer->path == NULL) {
        status = rfx_memory_fail(mem, path, strlen(path) + 1, err);
        goto fail;
    }
    status = put != NULL ? RFX_OK : rfx_output_file_open(mem, path, &writer->file, err);
    if (status != RFX_OK) goto fail;
    status = start(writer, err);
    if (status != RFX_OK) goto fail;
    *out = writer;
    return RFX_OK;
fail:
    rfx_png_write_free(writer);
    return status;
}

enum rfx_status rfx_png_write_open(struct rfx_memory *mem, const char *path, int64_t h, int64_t w,
                                   int channels, int bits, struct rfx_png_writer **out,
                                   struct rfx_error *err) {
    return open_writer(mem, path, NULL, NULL, h, w, channels, bits, out, err);
}

enum rfx_status rfx_png_write_open_to(struct rfx_memory *mem, const char *name, rfx_png_put *put,
                                      void *user, int64_t h, int64_t w, int channels, int bits,
                                      struct rfx_png_writer **out, struct rfx_error *err) {
    return open_writer(mem, name, put, user, h, w, channels, bits, out, err);
}

enum rfx_status rfx_png_write_row(struct rfx_png_writer *writer, const void *samples,
                                  struct rfx_error *err) {
    if (writer->next_row >= writer->h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: all %" PRId64 " rows are written",
                        writer->path, writer->h);
    if (writer->io_status != RFX_OK) return failed(writer, err);
    if (setjmp(png_jmpbuf(writer->png)) != 0) return failed(writer, err);
    png_write_row(writer->png, samples);
    writer->next_row++;
    return RFX_OK;
}

enum rfx_status rfx_png_write_commit(struct rfx_png_writer *writer, struct rfx_error *err) {
    if (writer->next_row != writer->h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRId64 " of %" PRId64 " rows written", writer->path,
                        writer->next_row, writer->h);
    if (writer->io_status != RFX_OK) return failed(writer, err);
    if (setjmp(png_jmpbuf(writer->png)) != 0) return failed(writer, err);
    png_write_end(writer->png, NULL);
    if (writer->io_status != RFX_OK) return failed(writer, err);
    return writer->file == NULL ? RFX_OK : rfx_output_file_commit(writer->file, err);
}

void rfx_png_write_free(struct rfx_png_writer *writer) {
    if (writer == NULL) return;
    if (writer->png != NULL) png_destroy_write_struct(&writer->png, &writer->info);
    rfx_output_file_free(writer->file);
    rfx_memory_release(writer->mem, writer->path);
    rfx_memory_release(writer->mem, writer);
}

static size_t kind_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    enum { DEFLATE_BYTES = 384 * 1024 };
    return DEFLATE_BYTES + 4 * (size_t)(map->w * map->c) * (size_t)rfx_output_bits(format) / 8;
}

static enum rfx_status kind_open(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct rfx_tensor *map, void **writer,
                                 struct rfx_error *err) {
    struct rfx_png_writer *png = NULL;
    enum rfx_status status = rfx_png_write_open(mem, path, map->h, map->w, (int)map->c,
                                                rfx_output_bits(format), &png, err);
    *writer = png;
    return status;
}

static enum rfx_status kind_write_row(void *writer, const void *samples, struct rfx_error *err) {
    return rfx_png_write_row(writer, samples, err);
}

static enum rfx_status kind_commit(void *writer, struct rfx_error *err) {
    return rfx_png_write_commit(writer, err);
}

static void kind_free(void *writer) {
    rfx_png_write_free(writer);
}

const struct rfx_output_kind rfx_output_png = {
    .name = "PNG",
    .ends = {".png"},
    .samples = 1U << RFX_TYPE_UINT8 | 1U << RFX_TYPE_UINT16,
    .most_side = 1000000, /* limit of libpng */
    .black_and_white = true,
    .bytes = kind_bytes,
    .open = kind_open,
    .write_row = kind_write_row,
    .commit = kind_commit,
    .free = kind_free,
};
