/* Callbacks of libtiff; see tiff_client.h. */
#include "rfexec/output/tiff/tiff_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum rfx_status write_at(struct rfx_tiff_client *client, const void *data, size_t bytes) {
    static const char zeros[64];
    struct rfx_error *err = &client->io_error;
    while (
        client->end <
        client->at) { /* libtiff leaves a gap before a directory, which starts at an even offset */
        size_t gap = (size_t)(client->at - client->end);
        gap = gap < sizeof zeros ? gap : sizeof zeros;
        enum rfx_status status = rfx_output_file_append(client->file, zeros, gap, err);
        if (status != RFX_OK) return status;
        client->end += gap;
    }
    size_t replaced = 0;
    if (client->at < client->end) {
        replaced = client->end - client->at < bytes ? (size_t)(client->end - client->at) : bytes;
        enum rfx_status status = rfx_output_file_put(client->file, data, replaced, client->at, err);
        if (status != RFX_OK) return status;
    }
    enum rfx_status status = rfx_output_file_append(
        client->file, (const unsigned char *)data + replaced, bytes - replaced, err);
    if (status != RFX_OK) return status;
    client->end += bytes - replaced;
    client->at += bytes;
    return RFX_OK;
}

/* Reads bytes that were written before: directories, when there are several. */
static tmsize_t on_read(thandle_t handle, void *data, tmsize_t bytes) {
    struct rfx_tiff_client *client = handle;
    unsigned char *to = data;
    tmsize_t done = 0;
    if (client->io_status == RFX_OK) /* flushes the buffer to the file */
        client->io_status = rfx_output_file_put(client->file, "", 0, 0, &client->io_error);
    while (client->io_status == RFX_OK && done < bytes) {
        ssize_t got = pread(rfx_output_file_descriptor(client->file), to + done,
                            (size_t)(bytes - done), (off_t)client->at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += got;
        client->at += (uint64_t)got;
    }
    return done;
}

static tmsize_t on_write(thandle_t handle, void *data, tmsize_t bytes) {
    struct rfx_tiff_client *client = handle;
    if (client->io_status == RFX_OK) client->io_status = write_at(client, data, (size_t)bytes);
    return client->io_status == RFX_OK ? bytes : 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
    struct rfx_tiff_client *client = handle;
    if (whence == SEEK_SET) client->at = offset;
    if (whence == SEEK_CUR) client->at += offset;
    if (whence == SEEK_END) client->at = client->end + offset;
    return client->at;
}

static toff_t on_size(thandle_t handle) {
    const struct rfx_tiff_client *client = handle;
    return client->end;
}

static int on_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static int on_words(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
    RFX_PRINTF(4, 0);

/* Keeps the first message. Returns 1: no other handler is called. */
static int on_words(TIFF *tiff, void *user, const char *module, const char *format, va_list args) {
    struct rfx_tiff_client *client = user;
    (void)tiff;
    (void)module;
    if (client->words[0] == '\0')
        (void)vsnprintf(client->words, sizeof client->words, format, args);
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

TIFF *rfx_tiff_client_open(struct rfx_tiff_client *client, const struct rfx_tiff_library *lib,
                           const char *path, bool big) {
    TIFFOpenOptions *options = lib->TIFFOpenOptionsAlloc();
    if (options == NULL) return NULL;
    lib->TIFFOpenOptionsSetErrorHandlerExtR(options, on_words, client);
    lib->TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, client);
    TIFF *tiff = lib->TIFFClientOpenExt(path, big ? "w8" : "w4", client, on_read, on_write, on_seek,
                                        on_close, on_size, NULL, NULL, options);
    lib->TIFFOpenOptionsFree(options);
    return tiff;
}

enum rfx_status rfx_tiff_client_failed(const struct rfx_tiff_client *client, const char *path,
                                       int64_t row, int64_t h, struct rfx_error *err) {
    if (client->io_status != RFX_OK)
        return rfx_fail(err, client->io_status, "%s", client->io_error.text);
    return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                    "%s: writing TIFF row %" PRId64 " of %" PRId64 ": %s", path, row, h,
                    client->words[0] != '\0' ? client->words : "no memory for the encoder");
}
