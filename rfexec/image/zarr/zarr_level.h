/* Private: the array of a Zarr folder that is read: the folder itself, or a level of the picture
 * that its OME-Zarr metadata describe ("multiscales", 0.1 to 0.5, the first of them), and what the
 * metadata of the array, format 2 or 3, say of its axes, samples and chunks.
 *
 * Regular chunks in row-major (2: also column-major) order, whole or packed by one of the codecs of
 * zarr_codec.h. All else that the formats have is refused by its name. Sources: the Zarr
 * specifications 2 and 3 (zarr-specs.readthedocs.io). */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZARR_LEVEL_H
#define RFX_RFEXEC_IMAGE_ZARR_ZARR_LEVEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"
#include "rfexec/image/decode/array_type.h"
#include "rfexec/image/zarr/zarr_codec.h"

enum { RFX_ZARR_MAX_RANK = 8 };

struct rfx_zarr_axes {
    int y, x, c; /* c -1: none, one channel */
};

enum { RFX_ZARR_KEY_CHARS = 192, RFX_ZARR_MOST_BANDS = 65535, RFX_ZARR_MOST_SIDE = 1000000 };

struct rfx_zarr_layout {
    int format, rank;
    int64_t shape[RFX_ZARR_MAX_RANK], chunk[RFX_ZARR_MAX_RANK];
    size_t step[RFX_ZARR_MAX_RANK]; /* bytes in a chunk from one index of an axis to the next */
    struct rfx_zarr_axes axes;
    int64_t h, w, c;
    const struct rfx_zarr_type *type;
    bool big;        /* bytes of a sample are in big-endian order */
    bool has_prefix; /* keys of chunks begin with "c" */
    char separator;
    enum rfx_zarr_codec codec;
    size_t chunk_bytes;    /* unpacked; at most INT32_MAX */
    unsigned char fill[4]; /* a delivered sample of chunks that are not there */
};

struct rfx_zarr_level {
    int folder; /* of the array, the caller's to close */
    int levels; /* that there are; 1 of an array by itself */
    struct rfx_zarr_layout layout;
    size_t held; /* bytes that reading the metadata takes, at most */
};

/* Opens level `number` of the folder `name`. UNSUPPORTED: there is no such level, or no picture in
 * the group. Texts begin with the name. On failure out->levels is still set, 0: not known. */
RFX_NODISCARD enum rfx_status rfx_zarr_level_open(struct rfx_memory *mem, const char *name,
                                                  int64_t number, struct rfx_zarr_level *out,
                                                  struct rfx_error *err);

/* The key of a chunk by its place among chunks: of all axes but three it is the first. */
void rfx_zarr_layout_key(const struct rfx_zarr_layout *layout, int64_t c, int64_t y, int64_t x,
                         char key[RFX_ZARR_KEY_CHARS]);
#endif
