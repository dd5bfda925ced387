/* libtiff's writer on top of an output file.
 *
 * libtiff writes strips one after the other, then the directory, then goes back to the header once.
 * So positions are either the end, or before it, where bytes are replaced. */
#include "rfexec/output/tiff_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/tiff_library.h"
#include "rfexec/output/output_file.h"

#define STRIP_BYTES ((size_t)256 * 1024)
#define DIRECTORY_BYTES 65536 /* header and tags, generously */

struct rfx_tiff_writer {
    struct rfx_memory *mem;
    struct rfx_output_file *file;
    char *path;
    struct rfx_tiff_library lib;
    TIFF *tiff;
    int64_t h, next_row;
    uint64_t at, end; /* libtiff's position; bytes appended so far */
    enum rfx_status io_status;
    struct rfx_error io_error; /* of the output file, when io_status is set */
    char words[200];           /* libtiff's */
};

static int64_t strip_rows(int64_t h, size_t row_bytes) {
    int64_t rows = row_bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / row_bytes) : 1;
    return rfx_min_i64(rows, h);
}

static int64_t strip_count(int64_t h, size_t row_bytes) {
    int64_t rows = strip_rows(h, row_bytes);
    return h / rows + (h % rows != 0);
}

bool rfx_tiff_write_is_big(int64_t h, size_t row_bytes) {
    int64_t pixels, bytes;
    if (!rfx_checked_mul_i64(h, (int64_t)row_bytes, &pixels)) return true;
    return !rfx_checked_add_i64(pixels, strip_count(h, row_bytes) * 16 + DIRECTORY_BYTES, &bytes) ||
           bytes > UINT32_MAX;
}

size_t rfx_tiff_write_bytes(int64_t h, size_t row_bytes) {
    size_t strip = (size_t)strip_rows(h, row_bytes) * row_bytes;
    return strip + strip / 8 + (size_t)strip_count(h, row_bytes) * 32 + DIRECTORY_BYTES;
}

static tmsize_t on_read(thandle_t handle, void *data, tmsize_t bytes) {
    (void)handle;
    (void)data;
    (void)bytes;
    return 0; /* a new file is never read */
}

static enum rfx_status write_at(struct rfx_tiff_writer *writer, const void *data, size_t bytes) {
    static const char zeros[64];
    struct rfx_error *err = &writer->io_error;
    while (writer->end < writer->at) { /* the directory starts at an even place */
        size_t gap = (size_t)(writer->at - writer->end);
        gap = gap < sizeof zeros ? gap : sizeof zeros;
        enum rfx_status status = rfx_output_file_append(writer->file, zeros, gap, err);
        if (status != RFX_OK) return status;
        writer->end += gap;
    }
    size_t replaced = 0;
    if (writer->at < writer->end) {
        replaced = writer->end - writer->at < bytes ? (size_t)(writer->end - writer->at) : bytes;
        enum rfx_status status = rfx_output_file_put(writer->file, data, replaced, writer->at, err);
        if (status != RFX_OK) return status;
    }
    enum rfx_status status = rfx_output_file_append(
        writer->file, (const unsigned char *)data + replaced, bytes - replaced, err);
    if (status != RFX_OK) return status;
    writer->end += bytes - replaced;
    writer->at += bytes;
    return RFX_OK;
}

static tmsize_t on_write(thandle_t handle, void *data, tmsize_t bytes) {
    struct rfx_tiff_writer *writer = handle;
    if (writer->io_status == RFX_OK) writer->io_status = write_at(writer, data, (size_t)bytes);
    return writer->io_status == RFX_OK ? bytes : 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
    struct rfx_tiff_writer *writer = handle;
    if (whence == SEEK_SET) writer->at = offset;
    if (whence == SEEK_CUR) writer->at += offset;
    if (whence == SEEK_END) writer->at = writer->end + offset;
    return writer->at;
}

static toff_t on_size(thandle_t handle) {
    const struct rfx_tiff_writer *writer = handle;
    return writer->end;
}

static int on_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static int on_words(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
    RFX_PRINTF(4, 0);

/* Keeps the first message; 1: nothing else is to be done with it. */
static int on_words(TIFF *tiff, void *user, const char *module, const char *format, va_list args) {
    struct rfx_tiff_writer *writer = user;
    (void)tiff;
    (void)module;
    if (writer->words[0] == '\0')
        (void)vsnprintf(writer->words, sizeof writer->words, format, args);
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
    RFX_PRINTF(4, 0);

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format,
                      va_list args) {
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static enum rfx_status failed(const struct rfx_tiff_writer *writer, struct rfx_error *err) {
    if (writer->io_status != RFX_OK)
        return rfx_fail(err, writer->io_status, "%s", writer->io_error.text);
    return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                    "%s: writing TIFF row %" PRId64 " of %" PRId64 ": %s", writer->path,
                    writer->next_row, writer->h,
                    writer->words[0] != '\0' ? writer->words : "no memory for the encoder");
}

static enum rfx_status open_tiff(struct rfx_tiff_writer *writer, bool big, struct rfx_error *err) {
    TIFFOpenOptions *options = writer->lib.TIFFOpenOptionsAlloc();
    if (options == NULL) return failed(writer, err);
    writer->lib.TIFFOpenOptionsSetErrorHandlerExtR(options, on_words, writer);
    writer->lib.TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, writer);
    writer->tiff =
        writer->lib.TIFFClientOpenExt(writer->path, big ? "w8" : "w4", writer, on_read, on_write,
                                      on_seek, on_close, on_size, NULL, NULL, options);
    writer->lib.TIFFOpenOptionsFree(options);
    return writer->tiff != NULL ? RFX_OK : failed(writer, err);
}

/* Channels beyond colour are marked as being of no stated kind. */
static enum rfx_status set_channels(struct rfx_tiff_writer *writer, int64_t channels,
                                    struct rfx_error *err) {
    bool colour = channels == 3;
    size_t extra = colour ? 0 : (size_t)channels - 1;
    bool done =
        writer->lib.TIFFSetField(writer->tiff, TIFFTAG_SAMPLESPERPIXEL, (int)channels) != 0 &&
        writer->lib.TIFFSetField(writer->tiff, TIFFTAG_PHOTOMETRIC,
                                 colour ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK) != 0;
    if (!done) return failed(writer, err);
    if (extra == 0) return RFX_OK;
    uint16_t *kinds = rfx_memory_calloc(writer->mem, extra, sizeof *kinds);
    if (kinds == NULL)
        return rfx_memory_fail(writer->mem, writer->path, extra * sizeof *kinds, err);
    done = writer->lib.TIFFSetField(writer->tiff, TIFFTAG_EXTRASAMPLES, (int)extra, kinds) != 0;
    rfx_memory_release(writer->mem, kinds);
    return done ? RFX_OK : failed(writer, err);
}

static enum rfx_status set_fields(struct rfx_tiff_writer *writer, int64_t w, int64_t channels,
                                  int bits, int64_t rows_per_strip, struct rfx_error *err) {
    const struct rfx_tiff_library *lib = &writer->lib;
    TIFF *tiff = writer->tiff;
    bool done = lib->TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, (uint32_t)w) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, (uint32_t)writer->h) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT,
                                  bits == 32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT) != 0 &&
                lib->TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, (uint32_t)rows_per_strip) != 0;
    return done ? set_channels(writer, channels, err) : failed(writer, err);
}

enum rfx_status rfx_tiff_write_open(struct rfx_memory *mem, const char *path, int64_t h, int64_t w,
                                    int64_t channels, int bits, struct rfx_tiff_writer **out,
                                    struct rfx_error *err) {
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX || channels < 1 ||
        channels > RFX_TIFF_MAX_CHANNELS || (bits != 8 && bits != 16 && bits != 32))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a TIFF of %" PRId64 " x %" PRId64 " pixels and %" PRId64
                        " channels of %d bits",
                        path, h, w, channels, bits);
    struct rfx_tiff_writer *writer = rfx_memory_calloc(mem, 1, sizeof *writer);
    if (writer == NULL) return rfx_memory_fail(mem, path, sizeof *writer, err);
    writer->mem = mem;
    writer->h = h;
    size_t row_bytes = (size_t)w * (size_t)channels * (size_t)(bits / 8); /* below 2^50 */
    enum rfx_status status = RFX_OK;
    writer->path = rfx_memory_strdup(mem, path);
    if (writer->path == NULL) status = rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK) {
        status = rfx_tiff_library_load(&writer->lib, err);
        if (status != RFX_OK) (void)rfx_fail_within(err, status, "%s", path);
    }
    if (status == RFX_OK) status = rfx_output_file_open(mem, path, &writer->file, err);
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)h, row_bytes, &bytes)) bytes = INT64_MAX;
    if (status == RFX_OK) status = rfx_output_file_reserve(writer->file, bytes, err);
    if (status == RFX_OK) status = open_tiff(writer, rfx_tiff_write_is_big(h, row_bytes), err);
    if (status == RFX_OK)
        status = set_fields(writer, w, channels, bits, strip_rows(h, row_bytes), err);
    if (status != RFX_OK) {
        rfx_tiff_write_free(writer);
        return status;
    }
    *out = writer;
    return RFX_OK;
}

enum rfx_status rfx_tiff_write_row(struct rfx_tiff_writer *writer, const void *samples,
                                   struct rfx_error *err) {
    if (writer->next_row >= writer->h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: all %" PRId64 " rows are written",
                        writer->path, writer->h);
    if (writer->io_status != RFX_OK) return failed(writer, err);
    /* libtiff's parameter is not const; it only reads where no bytes are to be swapped. */
    union {
        const void *given;
        void *taken;
    } row = {.given = samples};
    if (writer->lib.TIFFWriteScanline(writer->tiff, row.taken, (uint32_t)writer->next_row, 0) != 1)
        return failed(writer, err);
    writer->next_row++;
    return RFX_OK;
}

enum rfx_status rfx_tiff_write_commit(struct rfx_tiff_writer *writer, struct rfx_error *err) {
    if (writer->next_row != writer->h)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRId64 " of %" PRId64 " rows written", writer->path,
                        writer->next_row, writer->h);
    if (writer->io_status != RFX_OK || writer->lib.TIFFFlush(writer->tiff) != 1 ||
        writer->io_status != RFX_OK)
        return failed(writer, err);
    return rfx_output_file_commit(writer->file, err);
}

void rfx_tiff_write_free(struct rfx_tiff_writer *writer) {
    if (writer == NULL) return;
    /* TIFFClose would write what is not yet written: into nothing. */
    if (writer->io_status == RFX_OK) writer->io_status = RFX_STATUS_CANCELLED;
    if (writer->tiff != NULL) writer->lib.TIFFClose(writer->tiff);
    rfx_output_file_free(writer->file);
    rfx_memory_release(writer->mem, writer->path);
    rfx_memory_release(writer->mem, writer);
}
