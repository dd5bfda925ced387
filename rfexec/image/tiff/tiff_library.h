/* Private: libtiff, which is loaded when the first TIFF file is opened for reading or writing; its
 * handles on picture files; and its messages.
 *
 * If libtiff were linked, every run would load libwebp, liblzma, libLerc and a C++ runtime: 2.1 MiB
 * of resident memory in the budget of runs without TIFF. A loaded library stays for the life of the
 * process, so opening again costs nothing. rfexec keeps no global state.
 *
 * Each handle has its own reading position, so several handles can share one file. Nothing is ever
 * printed: the first message is kept. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_LIBRARY_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tiffio.h>

#include "layers/core/status.h"
#include "rfexec/image/image_file.h"

/* Memory that a budget counts for libtiff and its libraries; 2.0 to 2.1 MiB are resident with
 * libtiff 4.5.0. */
#define RFX_TIFF_LIBRARY_BYTES ((size_t)5 << 19)

/* The functions of libtiff by their own names and types: lib.TIFFClose(tif) calls TIFFClose. */
struct rfx_tiff_library {
    __typeof__(TIFFClientOpenExt) *TIFFClientOpenExt;
    __typeof__(TIFFClose) *TIFFClose;
    __typeof__(TIFFFieldDataType) *TIFFFieldDataType;
    __typeof__(TIFFFieldPassCount) *TIFFFieldPassCount;
    __typeof__(TIFFFieldReadCount) *TIFFFieldReadCount;
    __typeof__(TIFFFindField) *TIFFFindField;
    __typeof__(TIFFFindCODEC) *TIFFFindCODEC;
    __typeof__(TIFFFlush) *TIFFFlush;
    __typeof__(TIFFGetField) *TIFFGetField;
    __typeof__(TIFFGetFieldDefaulted) *TIFFGetFieldDefaulted;
    __typeof__(TIFFGetStrileByteCountWithErr) *TIFFGetStrileByteCountWithErr;
    __typeof__(TIFFGetStrileOffsetWithErr) *TIFFGetStrileOffsetWithErr;
    __typeof__(TIFFIsByteSwapped) *TIFFIsByteSwapped;
    __typeof__(TIFFIsCODECConfigured) *TIFFIsCODECConfigured;
    __typeof__(TIFFIsTiled) *TIFFIsTiled;
    __typeof__(TIFFMergeFieldInfo) *TIFFMergeFieldInfo;
    __typeof__(TIFFNumberOfStrips) *TIFFNumberOfStrips;
    __typeof__(TIFFNumberOfTiles) *TIFFNumberOfTiles;
    __typeof__(TIFFOpenOptionsAlloc) *TIFFOpenOptionsAlloc;
    __typeof__(TIFFOpenOptionsFree) *TIFFOpenOptionsFree;
    __typeof__(TIFFOpenOptionsSetErrorHandlerExtR) *TIFFOpenOptionsSetErrorHandlerExtR;
    __typeof__(TIFFOpenOptionsSetMaxSingleMemAlloc) *TIFFOpenOptionsSetMaxSingleMemAlloc;
    __typeof__(TIFFOpenOptionsSetWarningHandlerExtR) *TIFFOpenOptionsSetWarningHandlerExtR;
    __typeof__(TIFFReadDirectory) *TIFFReadDirectory;
    __typeof__(TIFFReadEncodedTile) *TIFFReadEncodedTile;
    __typeof__(TIFFReadScanline) *TIFFReadScanline;
    __typeof__(TIFFReverseBits) *TIFFReverseBits;
    __typeof__(TIFFScanlineSize64) *TIFFScanlineSize64;
    __typeof__(TIFFSetDirectory) *TIFFSetDirectory;
    __typeof__(TIFFSetField) *TIFFSetField;
    __typeof__(TIFFSetSubDirectory) *TIFFSetSubDirectory;
    __typeof__(TIFFSwabArrayOfLong) *TIFFSwabArrayOfLong;
    __typeof__(TIFFSwabArrayOfLong8) *TIFFSwabArrayOfLong8;
    __typeof__(TIFFSwabArrayOfShort) *TIFFSwabArrayOfShort;
    __typeof__(TIFFTileSize64) *TIFFTileSize64;
    __typeof__(TIFFWriteDirectory) *TIFFWriteDirectory;
    __typeof__(TIFFWriteEncodedTile) *TIFFWriteEncodedTile;
    __typeof__(TIFFWriteScanline) *TIFFWriteScanline;
};

/* Fills `lib`. IO, with the system's message: this system has no libtiff or cannot load it. */
RFX_NODISCARD enum rfx_status rfx_tiff_library_load(struct rfx_tiff_library *lib,
                                                    struct rfx_error *err);

struct rfx_tiff_log {
    bool in_header;  /* a directory is being read: most warnings are ignored */
    bool complained; /* there was a message since the last clear */
    bool no_memory;  /* an allocation had failed before the first message */
    char words[200]; /* the first message; empty: none */
};

struct rfx_tiff_handle {
    struct rfx_image_file *file;
    int64_t at;
    TIFF *tif; /* NULL: closed */
};

/* Call it before a call of libtiff: clears the message and errno. */
void rfx_tiff_log_clear(struct rfx_tiff_log *log);

/* Call it right after a failed call of libtiff. Returns whether memory was short; libtiff has no
 * error for this. */
bool rfx_tiff_log_has_no_memory(const struct rfx_tiff_log *log);

/* Opens the first directory of `file`, or with `pages` no directory yet (tiff_directories.h). file
 * and log are borrowed until close; the handle must not move. Returns false if the file cannot be
 * read; the log has the reason (empty: no memory, or a read failed). */
bool rfx_tiff_handle_open(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib,
                          struct rfx_image_file *file, bool pages, struct rfx_tiff_log *log);

/* Closes the handle; a closed handle is fine. */
void rfx_tiff_handle_close(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib);
#endif
