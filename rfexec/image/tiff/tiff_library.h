/* Private: libtiff, loaded when the first TIFF file is opened, to be read or written; a TIFF that
 * it has opened on a picture file; and what it says about it.
 *
 * Linked, libtiff would bring libwebp, liblzma, libLerc and a C++ runtime into every run: 2.1 MiB
 * of resident memory that a budget would pay for pictures of other kinds. A loaded library stays
 * for the life of the process, so opening again costs nothing. No global state of ours.
 *
 * libtiff reads through positions of the handle's own, so several handles share one file. Nothing
 * is ever printed: the first complaint is kept. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_LIBRARY_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tiffio.h>

#include "layers/core/status.h"
#include "rfexec/image/image_file.h"

/* What a budget pays for it and for what it brings: 2.0 to 2.1 MiB are resident with libtiff 4.5.0.
 */
#define RFX_TIFF_LIBRARY_BYTES ((size_t)5 << 19)

/* lib.TIFFClose(tif) calls TIFFClose: its functions by their own names and types. */
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

/* Fills `lib`. IO when this system has no such library or cannot load it, with its own words. */
RFX_NODISCARD enum rfx_status rfx_tiff_library_load(struct rfx_tiff_library *lib,
                                                    struct rfx_error *err);

struct rfx_tiff_log {
    bool in_header;  /* a directory is being read: most warnings are of no account */
    bool complained; /* since the last clear */
    bool no_memory;  /* an allocation had failed when the first complaint came */
    char words[200]; /* the first complaint; empty: none */
};

struct rfx_tiff_handle {
    struct rfx_image_file *file;
    int64_t at;
    TIFF *tif; /* NULL: closed */
};

/* Before a call of libtiff: nothing has been said, and no allocation has failed (errno). */
void rfx_tiff_log_clear(struct rfx_tiff_log *log);

/* Right after a call that failed: whether for want of memory, which libtiff has no word for. */
bool rfx_tiff_log_has_no_memory(const struct rfx_tiff_log *log);

/* Opens the first directory of `file`, or no directory yet for `pages` (tiff_directories.h); file
 * and log are borrowed until close, and the handle must not move. False when it cannot be read,
 * with the reason in the log (empty: no memory, or the file could not be read). */
bool rfx_tiff_handle_open(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib,
                          struct rfx_image_file *file, bool pages, struct rfx_tiff_log *log);

/* Closes; a closed handle is fine. */
void rfx_tiff_handle_close(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib);
#endif
