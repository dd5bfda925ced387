/* Private: decompresses chunks of Zarr arrays.
 *
 * Uses libzstd for zstd and libblosc for blosc, which are loaded for the first such array, and zlib
 * for gzip and zlib. */
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

/* Returns the name of a codec, such as "zstd"; "none" for RFX_ZARR_CODEC_NONE. */
const char *rfx_zarr_codec_name(enum rfx_zarr_codec codec);

/* Sets *out to the codec of this name in the metadata. Returns false for an unknown name. */
bool rfx_zarr_codec_named(const char *name, enum rfx_zarr_codec *out);

struct rfx_zarr_decoder;

/* Makes a decoder. IO, with an explanation: the codec's library is missing. */
RFX_NODISCARD enum rfx_status rfx_zarr_decoder_open(struct rfx_memory *mem,
                                                    enum rfx_zarr_codec codec,
                                                    struct rfx_zarr_decoder **out,
                                                    struct rfx_error *err);

/* Frees the decoder; NULL is fine. */
void rfx_zarr_decoder_free(struct rfx_zarr_decoder *decoder);

/* Decompresses a chunk, which must then have exactly to_bytes bytes. MALFORMED, with an
 * explanation. */
RFX_NODISCARD enum rfx_status rfx_zarr_decode(struct rfx_zarr_decoder *decoder, const void *from,
                                              size_t from_bytes, void *to, size_t to_bytes,
                                              struct rfx_error *err);

/* Returns an upper bound of the memory of a decoder and its library for chunks of this size. */
size_t rfx_zarr_decoder_bytes(enum rfx_zarr_codec codec, size_t chunk_bytes);

/* Returns the largest compressed chunk that is read: more than any codec makes of samples that
 * cannot be compressed. */
size_t rfx_zarr_packed_bytes(size_t chunk_bytes);
#endif
