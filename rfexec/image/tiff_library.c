/* Loading libtiff by its name in the file system, the one whose header was compiled in. */
#include "rfexec/image/tiff_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* 4.5 brought handlers of its messages per file; libtiff.so.6 is 4.5 and all later 4.x. */
_Static_assert(TIFFLIB_VERSION >= 20221213, "libtiff 4.5 or newer is needed");
#define LIBRARY_NAME "libtiff.so.6"

#define FUNCTION(name) \
    { #name, offsetof(struct rfx_tiff_library, name) }
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    FUNCTION(TIFFClientOpenExt),
    FUNCTION(TIFFClose),
    FUNCTION(TIFFFindCODEC),
    FUNCTION(TIFFFlush),
    FUNCTION(TIFFGetField),
    FUNCTION(TIFFGetFieldDefaulted),
    FUNCTION(TIFFGetStrileByteCountWithErr),
    FUNCTION(TIFFGetStrileOffsetWithErr),
    FUNCTION(TIFFIsByteSwapped),
    FUNCTION(TIFFIsCODECConfigured),
    FUNCTION(TIFFIsTiled),
    FUNCTION(TIFFNumberOfStrips),
    FUNCTION(TIFFNumberOfTiles),
    FUNCTION(TIFFOpenOptionsAlloc),
    FUNCTION(TIFFOpenOptionsFree),
    FUNCTION(TIFFOpenOptionsSetErrorHandlerExtR),
    FUNCTION(TIFFOpenOptionsSetMaxSingleMemAlloc),
    FUNCTION(TIFFOpenOptionsSetWarningHandlerExtR),
    FUNCTION(TIFFReadEncodedTile),
    FUNCTION(TIFFReadScanline),
    FUNCTION(TIFFReverseBits),
    FUNCTION(TIFFScanlineSize64),
    FUNCTION(TIFFSetField),
    FUNCTION(TIFFSwabArrayOfLong),
    FUNCTION(TIFFSwabArrayOfShort),
    FUNCTION(TIFFTileSize64),
    FUNCTION(TIFFWriteScanline),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct rfx_tiff_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_tiff_library_load(struct rfx_tiff_library *lib, struct rfx_error *err) {
    void *handle = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "TIFF files need libtiff: %s", dlerror());
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && status == RFX_OK; i++) {
        void *symbol = dlsym(handle, functions[i].name);
        if (symbol == NULL)
            status =
                rfx_fail(err, RFX_STATUS_UNSUPPORTED, LIBRARY_NAME " has no %s", functions[i].name);
        /* ISO C has no cast from an object's pointer to a function's; POSIX has the same bits */
        memcpy((char *)lib + functions[i].offset, &symbol, sizeof symbol);
    }
    (void)dlclose(handle); /* RTLD_NODELETE: it stays */
    return status;
}
