/* Loads libtiff by its file name, in the version whose header was compiled in, and has the
 * callbacks that read a picture file. */
#include "rfexec/image/tiff/tiff_library.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/library.h"

/* libtiff 4.5 was the first with message handlers per file; libtiff.so.6 is 4.5 or a later 4.x. */
_Static_assert(TIFFLIB_VERSION >= 20221213, "libtiff 4.5 or newer is needed");
#define LIBRARY_NAME "libtiff.so.6"

#define FUNCTION(name) \
    { #name, offsetof(struct rfx_tiff_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(TIFFClientOpenExt),
    FUNCTION(TIFFClose),
    FUNCTION(TIFFFieldDataType),
    FUNCTION(TIFFFieldPassCount),
    FUNCTION(TIFFFieldReadCount),
    FUNCTION(TIFFFindField),
    FUNCTION(TIFFFindCODEC),
    FUNCTION(TIFFFlush),
    FUNCTION(TIFFGetField),
    FUNCTION(TIFFGetFieldDefaulted),
    FUNCTION(TIFFGetStrileByteCountWithErr),
    FUNCTION(TIFFGetStrileOffsetWithErr),
    FUNCTION(TIFFIsByteSwapped),
    FUNCTION(TIFFIsCODECConfigured),
    FUNCTION(TIFFIsTiled),
    FUNCTION(TIFFMergeFieldInfo),
    FUNCTION(TIFFNumberOfStrips),
    FUNCTION(TIFFNumberOfTiles),
    FUNCTION(TIFFOpenOptionsAlloc),
    FUNCTION(TIFFOpenOptionsFree),
    FUNCTION(TIFFOpenOptionsSetErrorHandlerExtR),
    FUNCTION(TIFFOpenOptionsSetMaxSingleMemAlloc),
    FUNCTION(TIFFOpenOptionsSetWarningHandlerExtR),
    FUNCTION(TIFFReadDirectory),
    FUNCTION(TIFFReadEncodedTile),
    FUNCTION(TIFFReadScanline),
    FUNCTION(TIFFReverseBits),
    FUNCTION(TIFFScanlineSize64),
    FUNCTION(TIFFSetDirectory),
    FUNCTION(TIFFSetField),
    FUNCTION(TIFFSetSubDirectory),
    FUNCTION(TIFFSwabArrayOfLong),
    FUNCTION(TIFFSwabArrayOfLong8),
    FUNCTION(TIFFSwabArrayOfShort),
    FUNCTION(TIFFTileSize64),
    FUNCTION(TIFFWriteDirectory),
    FUNCTION(TIFFWriteEncodedTile),
    FUNCTION(TIFFWriteScanline),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct rfx_tiff_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_tiff_library_load(struct rfx_tiff_library *lib, struct rfx_error *err) {
    enum rfx_status status =
        rfx_library_load(LIBRARY_NAME, functions, sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "TIFF files need libtiff");
}

void rfx_tiff_log_clear(struct rfx_tiff_log *log) {
    log->complained = log->no_memory = false;
    log->words[0] = '\0';
    errno = 0;
}

bool rfx_tiff_log_has_no_memory(const struct rfx_tiff_log *log) {
    return log->no_memory || errno == ENOMEM;
}

static void note(struct rfx_tiff_log *log, const char *words) {
    if (log->complained) return;
    log->no_memory = errno == ENOMEM;
    (void)snprintf(log->words, sizeof log->words, "%s", words);
    log->complained = true;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* Handlers of messages. They return 1, so that no other handler prints the message. */
static int on_error(TIFF *tif, void *user, const char *module, const char *format, va_list args) {
    char words[200];
    (void)tif;
    (void)module;
    (void)vsnprintf(words, sizeof words, format, args);
    note(user, words);
    return 1;
}

/* While a directory is read, only warnings count that change the picture: without a readable
 * palette, libtiff treats a palette picture as grey. */
static int on_warning(TIFF *tif, void *user, const char *module, const char *format, va_list args) {
    struct rfx_tiff_log *log = user;
    char words[200];
    (void)tif;
    (void)module;
    (void)vsnprintf(words, sizeof words, format, args);
    if (!log->in_header || strstr(words, "IO error") != NULL || strstr(words, "ColorMap") != NULL)
        note(log, words);
    return 1;
}
#pragma GCC diagnostic pop

static tmsize_t on_read(thandle_t client, void *to, tmsize_t bytes) {
    struct rfx_tiff_handle *h = client;
    size_t got = rfx_image_file_pread(h->file, to, (size_t)bytes, h->at);
    h->at += (int64_t)got;
    return (tmsize_t)got;
}

static tmsize_t on_write(thandle_t client, void *from, tmsize_t bytes) {
    (void)client;
    (void)from;
    (void)bytes;
    return 0;
}

static toff_t on_seek(thandle_t client, toff_t offset, int whence) {
    struct rfx_tiff_handle *h = client;
    int64_t from = whence == SEEK_CUR ? h->at : whence == SEEK_END ? h->file->bytes : 0;
    if (offset > INT64_MAX / 2) return (toff_t)-1;
    h->at = from + (int64_t)offset;
    return (toff_t)h->at;
}

static int on_close(thandle_t client) {
    (void)client;
    return 0;
}

static toff_t on_size(thandle_t client) {
    struct rfx_tiff_handle *h = client;
    return (toff_t)h->file->bytes;
}

static int on_map(thandle_t client, void **base, toff_t *size) {
    (void)client;
    (void)base;
    (void)size;
    return 0; /* mapped pages would count in the budget, and a file that shrinks would kill the
                 process */
}

static void on_unmap(thandle_t client, void *base, toff_t size) {
    (void)client;
    (void)base;
    (void)size;
}

bool rfx_tiff_handle_open(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib,
                          struct rfx_image_file *file, bool pages, struct rfx_tiff_log *log) {
    rfx_tiff_log_clear(log);
    handle->file = file;
    handle->at = 0;
    handle->tif = NULL;
    TIFFOpenOptions *options = lib->TIFFOpenOptionsAlloc();
    if (options == NULL) return false;
    lib->TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, log);
    lib->TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, log);
    /* a limit: tables cannot be larger than the file, but rows and tiles of small files can */
    lib->TIFFOpenOptionsSetMaxSingleMemAlloc(options, 4 * file->bytes + ((int64_t)64 << 20));
    log->in_header = true;
    /* m: not mapped; c: strips stay as in the file; h: no directory is read yet; D: the tables of
     * strips and tiles are read only when they are used */
    handle->tif = lib->TIFFClientOpenExt("TIFF", pages ? "rmchD" : "rmc", handle, on_read, on_write,
                                         on_seek, on_close, on_size, on_map, on_unmap, options);
    log->in_header = false;
    lib->TIFFOpenOptionsFree(options);
    return handle->tif != NULL && !log->complained;
}

void rfx_tiff_handle_close(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib) {
    if (handle->tif != NULL) lib->TIFFClose(handle->tif);
    handle->tif = NULL;
}
