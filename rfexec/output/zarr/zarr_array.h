/* A map as a Zarr array: its shape, chunks and samples, and its JSON metadata.
 *
 * The axes are those of .npy: (1, channels, rows, columns). The 1 is left out if the tensor has no
 * such axis, and in OME-Zarr, where each axis has a name. Each chunk has one channel only, so that
 * readers of one channel read nothing else. Chunks lie in folders that are named by their numbers.
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
    RFX_ZARR_LEVEL = 3, /* compression level of zstd */
    RFX_ZARR_NAME = 128
};

struct rfx_zarr_array {
    int64_t h, w, channels;
    bool batch;                     /* the shape begins with a 1 */
    int bits;                       /* 8 and 16: unsigned samples, 32: float32, if not is_signed */
    bool is_signed;                 /* samples of 8, 16 or 32 bits are integers with a sign */
    int format;                     /* 2 or 3 */
    int64_t chunk_rows, chunk_cols; /* rows and columns of a chunk, which has one channel */
    bool zstd;                      /* chunks are compressed */
    bool ome; /* the array is "0" of a group with OME-Zarr metadata; then batch is false */
    enum rfx_overview_kind overviews; /* OME-Zarr: smaller copies are arrays "1", "2", ... */
    int level;                        /* number of the smaller copy; 0: the picture */
};

/* Sets the rows and columns of a chunk to `side`. side 0: 256, with fewer rows and more columns if
 * a row of chunks would hold more than 32 MiB. A chunk is never larger than the map. */
void rfx_zarr_choose_chunks(struct rfx_zarr_array *array, int64_t side);

/* Returns the description of the smaller copies. There are levels until none has more rows or
 * columns than the larger side of a chunk. */
struct rfx_overview_map rfx_zarr_overviews(const struct rfx_zarr_array *array);

/* Returns the array of level k. Its chunks are no larger than the array. */
struct rfx_zarr_array rfx_zarr_level(const struct rfx_zarr_array *array, int k);

/* Writes the name of a chunk in the folder, such as "c/0/2/5/7". */
void rfx_zarr_chunk_name(const struct rfx_zarr_array *array, int64_t channel, int64_t y, int64_t x,
                         char name[RFX_ZARR_NAME]);

/* Returns metadata file k, counted from 0: its name and its text. `title` is the picture's name.
 * The caller releases the text. *text NULL: there is no file k. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_zarr_metadata(struct rfx_memory *mem,
                                                const struct rfx_zarr_array *array,
                                                const char *title, int k, char name[RFX_ZARR_NAME],
                                                char **text, struct rfx_error *err);
#endif
