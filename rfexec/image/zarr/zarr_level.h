/* Private: finds the array of a Zarr folder that is read, and reads its metadata (format 2 or 3):
 * axes, samples and chunks. The array is the folder itself, or a level of the first picture in its
 * OME-Zarr metadata ("multiscales", 0.1 to 0.5).
 *
 * Chunks must be regular, in row-major order (format 2: also column-major), uncompressed or
 * compressed by one of the codecs of zarr_codec.h. Everything else in the formats is refused by its
 * name. Sources: the Zarr specifications 2 and 3 (zarr-specs.readthedocs.io). */
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
    int y, x, c; /* positions of the axes; c -1: no such axis, one channel */
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
    size_t chunk_bytes;    /* uncompressed bytes; at most INT32_MAX */
    unsigned char fill[4]; /* the sample, as delivered, of chunks that do not exist */
};

struct rfx_zarr_level {
    int folder; /* folder of the array; the caller closes it */
    int levels; /* number of levels; 1 for a single array */
    struct rfx_zarr_layout layout;
    size_t held; /* most memory that reading the metadata takes */
};

/* Opens level `number` of the folder `name`. UNSUPPORTED: there is no such level, or the group has
 * no picture. Error texts begin with the name. After a failure too, out->levels is set; 0: not
 * known. */
RFX_NODISCARD enum rfx_status rfx_zarr_level_open(struct rfx_memory *mem, const char *name,
                                                  int64_t number, struct rfx_zarr_level *out,
                                                  struct rfx_error *err);

/* Writes the key of a chunk from its place among the chunks. On all axes except c, y and x it is
 * the first chunk. */
void rfx_zarr_layout_key(const struct rfx_zarr_layout *layout, int64_t c, int64_t y, int64_t x,
                         char key[RFX_ZARR_KEY_CHARS]);
#endif
