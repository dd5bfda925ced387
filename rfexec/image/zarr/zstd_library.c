/* Loads libzstd by its file name. */
#include "rfexec/image/zarr/zstd_library.h"

#include "layers/core/library.h"

#define FUNCTION(name) \
    { #name, offsetof(struct rfx_zstd_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(ZSTD_createCCtx),     FUNCTION(ZSTD_freeCCtx),   FUNCTION(ZSTD_sizeof_CCtx),
    FUNCTION(ZSTD_compressCCtx),   FUNCTION(ZSTD_createDCtx), FUNCTION(ZSTD_freeDCtx),
    FUNCTION(ZSTD_decompressDCtx), FUNCTION(ZSTD_isError),    FUNCTION(ZSTD_getErrorName),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct rfx_zstd_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_zstd_library_load(struct rfx_zstd_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libzstd.so.1", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "zstd needs libzstd");
}
