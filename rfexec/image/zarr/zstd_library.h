/* Private: libzstd, which is loaded when the first compressed Zarr array is read or written.
 *
 * libtiff needs libzstd too, so it exists wherever TIFF files are read. It is not linked, because a
 * run without compressed Zarr arrays does not need it. The functions below have been the same since
 * version 1.4 (ZSTD_sizeof_CCtx is the newest), so no header of libzstd is needed. A loaded library
 * stays for the life of the process. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZSTD_LIBRARY_H
#define RFX_RFEXEC_IMAGE_ZARR_ZSTD_LIBRARY_H

#include <stddef.h>

#include "layers/core/status.h"

/* Most memory of a context that compresses chunks of up to 64 MiB at levels 1 to 3. */
#define RFX_ZSTD_CONTEXT_BYTES ((size_t)4 * 1024 * 1024)

/* Most memory of a context that decompresses such chunks from memory to memory. */
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

/* Returns the most bytes that `bytes` bytes can become when compressed. */
static inline size_t rfx_zstd_bound(size_t bytes) {
    return bytes + bytes / 256 + 1024;
}

/* Fills `lib`. IO, with the system's message: this system has no libzstd or cannot load it. */
RFX_NODISCARD enum rfx_status rfx_zstd_library_load(struct rfx_zstd_library *lib,
                                                    struct rfx_error *err);
#endif
