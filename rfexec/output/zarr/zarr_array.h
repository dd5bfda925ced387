/* A map as a Zarr array: its shape, chunks and samples, and the JSON that says so.
 *
 * Axes are those of .npy: (1, channels, rows, columns), or without the 1 when the tensor has no
 * such axis, and in OME-Zarr, where each axis has a name. Chunks have one channel each, so that
 * what is read of an array is no more than what is asked for; they lie in folders by their numbers.
 * Sources: the Zarr specifications 2 and 3 (zarr-specs.readthedocs.io), OME-Zarr 0.4 and 0.5
 * (ngff.openmicroscopy.org). Held against zarr-python in tests/oracle/pictures.py. */
#ifndef RFX_RFEXEC_OUTPUT_ZARR_ZARR_ARRAY_H
#define RFX_RFEXEC_OUTPUT_ZARR_ZARR_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "rfexec/output/overviews/overviews.h"

enum {
    RFX_ZARR_MOST_CHUNK = 4096,
    RFX_ZARR_MOST_CHANNELS = 65535,
    RFX_ZARR_LEVEL = 3, /* of zstd */
    RFX_ZARR_NAME = 128
};

struct rfx_zarr_array {
    int64_t h, w, channels;
    bool batch;                     /* the shape begins with a 1 */
    int bits;                       /* 8 and 16: unsigned samples, 32: float32, unless */
    bool is_signed;                 /* samples of 8, 16 or 32 bits are integers with a sign */
    int format;                     /* 2 or 3 */
    int64_t chunk_rows, chunk_cols; /* of one channel */
    bool zstd;                      /* chunks are compressed */
    bool ome; /* the array is "0" of a group with OME-Zarr's words; no batch then */
    enum rfx_overview_kind overviews; /* of OME-Zarr: arrays "1", "2", ... of smaller copies */
    int level;                        /* of those; 0: the picture */
};

/* Rows and columns of chunks of a map: `side` (0: 256) of each. Not given, chunks are made lower
 * and longer as far as a row of them would hold more than 32 MiB; none is larger than the map. */
void rfx_zarr_choose_chunks(struct rfx_zarr_array *array, int64_t side);

/* Levels below the picture: until none has more rows or columns than the larger side of a chunk. */
struct rfx_overview_map rfx_zarr_overviews(const struct rfx_zarr_array *array);

/* The array of level k, whose chunks are no larger than it. */
struct rfx_zarr_array rfx_zarr_level(const struct rfx_zarr_array *array, int k);

/* The name of a chunk in the folder: "c/0/2/5/7". */
void rfx_zarr_chunk_name(const struct rfx_zarr_array *array, int64_t channel, int64_t y, int64_t x,
                         char name[RFX_ZARR_NAME]);

/* Files of metadata, one after the other from k = 0 on. `title` is what the picture is called. The
 * text belongs to the caller, who releases it; *text NULL: there is no such file. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_zarr_metadata(struct rfx_memory *mem,
                                                const struct rfx_zarr_array *array,
                                                const char *title, int k, char name[RFX_ZARR_NAME],
                                                char **text, struct rfx_error *err);
#endif
