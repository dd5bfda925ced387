/* Private: libblosc, loaded when the first Zarr array packed by it is opened: older arrays are by
 * default. No header of it is needed: these functions have been the same since 1.5. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_BLOSC_LIBRARY_H
#define RFX_RFEXEC_IMAGE_ZARR_BLOSC_LIBRARY_H

#include <stddef.h>

#include "layers/core/status.h"

struct rfx_blosc_library {
    int (*blosc_decompress_ctx)(const void *from, void *to, size_t to_bytes, int threads);
    void (*blosc_cbuffer_sizes)(const void *from, size_t *bytes, size_t *packed, size_t *block);
};

/* Of a packed chunk: no fewer bytes are asked about their sizes. */
enum { RFX_BLOSC_HEADER_BYTES = 16 };

/* Fills `lib`. IO, with what to install, when this system has no libblosc. */
RFX_NODISCARD enum rfx_status rfx_blosc_library_load(struct rfx_blosc_library *lib,
                                                     struct rfx_error *err);
#endif
