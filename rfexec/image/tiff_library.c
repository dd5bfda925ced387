/* Loading libtiff by its name in the file system, the one whose header was compiled in. */
#include "rfexec/image/tiff_library.h"

#include <stddef.h>

#include "layers/core/library.h"

/* 4.5 brought handlers of its messages per file; libtiff.so.6 is 4.5 and all later 4.x. */
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
