/* Private: how chunks of Zarr arrays are packed, and unpacking them.
 *
 * zstd by libzstd and blosc by libblosc, which are loaded for the first such array; gzip and zlib
 * by zlib. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZARR_CODEC_H
#define RFX_RFEXEC_IMAGE_ZARR_ZARR_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "layers/core/memory.h"

enum rfx_zarr_codec {
    RFX_ZARR_CODEC_NONE,
    RFX_ZARR_CODEC_ZSTD,
    RFX_ZARR_CODEC_GZIP,
    RFX_ZARR_CODEC_ZLIB,
    RFX_ZARR_CODEC_BLOSC,
    RFX_ZARR_CODEC_COUNT
};

/* "zstd"; of RFX_ZARR_CODEC_NONE "none". */
const char *rfx_zarr_codec_name(enum rfx_zarr_codec codec);

/* By a name of the metadata; false: it is none of them. */
bool rfx_zarr_codec_named(const char *name, enum rfx_zarr_codec *out);

struct rfx_zarr_decoder;

/* IO: there is no such library, in words. */
RFX_NODISCARD enum rfx_status rfx_zarr_decoder_open(struct rfx_memory *mem,
                                                    enum rfx_zarr_codec codec,
                                                    struct rfx_zarr_decoder **out,
                                                    struct rfx_error *err);

/* NULL is fine. */
void rfx_zarr_decoder_free(struct rfx_zarr_decoder *decoder);

/* Unpacks a chunk that must have `to_bytes` then. MALFORMED in words. */
RFX_NODISCARD enum rfx_status rfx_zarr_decode(struct rfx_zarr_decoder *decoder, const void *from,
                                              size_t from_bytes, void *to, size_t to_bytes,
                                              struct rfx_error *err);

/* At most so many bytes a decoder of such chunks, and its library for it, hold. */
size_t rfx_zarr_decoder_bytes(enum rfx_zarr_codec codec, size_t chunk_bytes);

/* The largest packed chunk that is read: more than any packer makes of samples that do not pack. */
size_t rfx_zarr_packed_bytes(size_t chunk_bytes);
#endif
