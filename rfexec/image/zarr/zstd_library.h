/* Private: libzstd, loaded when the first compressed Zarr array is read or written.
 *
 * libtiff brings the library for its own zstd, so it is there wherever TIFF files are; it is not
 * linked, as a run without such an array has no use for it. These functions have been the same
 * since 1.4 (ZSTD_sizeof_CCtx is the youngest); no header of it is needed. A loaded library stays
 * for the life of the process. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZSTD_LIBRARY_H
#define RFX_RFEXEC_IMAGE_ZARR_ZSTD_LIBRARY_H

#include <stddef.h>

#include "layers/core/status.h"

/* What a context takes at most to compress chunks of up to 64 MiB at levels 1 to 3. */
#define RFX_ZSTD_CONTEXT_BYTES ((size_t)4 * 1024 * 1024)

/* And to unpack them from memory to memory. */
#define RFX_ZSTD_UNPACKING_BYTES ((size_t)256 * 1024)

struct rfx_zstd_library {
    void *(*ZSTD_createCCtx)(void);
    size_t (*ZSTD_freeCCtx)(void *context);
    size_t (*ZSTD_sizeof_CCtx)(const void *context);
    size_t (*ZSTD_compressCCtx)(void *context, void *to, size_t to_bytes, const void *from,
                                size_t from_bytes, int level);
    void *(*ZSTD_createDCtx)(void);
    size_t (*ZSTD_freeDCtx)(void *context);
    size_t (*ZSTD_decompressDCtx)(void *context, void *to, size_t to_bytes, const void *from,
                                  size_t from_bytes);
    unsigned (*ZSTD_isError)(size_t code);
    const char *(*ZSTD_getErrorName)(size_t code);
};

/* Room that `bytes` may take compressed, when they cannot be. */
static inline size_t rfx_zstd_bound(size_t bytes) {
    return bytes + bytes / 256 + 1024;
}

/* Fills `lib`. IO when this system has no such library or cannot load it, with its own words. */
RFX_NODISCARD enum rfx_status rfx_zstd_library_load(struct rfx_zstd_library *lib,
                                                    struct rfx_error *err);
#endif
