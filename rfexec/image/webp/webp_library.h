/* Private: libwebp, loaded when the first WebP picture is decoded; libtiff brings it along. Two
 * functions of its simple interface, the same since 0.1; no header of it is needed. */
#ifndef RFX_RFEXEC_IMAGE_WEBP_WEBP_LIBRARY_H
#define RFX_RFEXEC_IMAGE_WEBP_WEBP_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

/* What a budget pays for the library and its tables. */
#define RFX_WEBP_LIBRARY_BYTES ((size_t)3 << 19)

struct rfx_webp_library {
    int (*WebPGetInfo)(const uint8_t *data, size_t bytes, int *w, int *h);
    uint8_t *(*WebPDecodeRGBInto)(const uint8_t *data, size_t bytes, uint8_t *to, size_t to_bytes,
                                  int stride);
    uint8_t *(*WebPDecodeRGBAInto)(const uint8_t *data, size_t bytes, uint8_t *to, size_t to_bytes,
                                   int stride);
};

/* Fills `lib`. IO when this system has no such library or cannot load it, with what to install. */
RFX_NODISCARD enum rfx_status rfx_webp_library_load(struct rfx_webp_library *lib,
                                                    struct rfx_error *err);
#endif
