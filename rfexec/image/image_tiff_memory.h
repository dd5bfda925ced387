/* Private: what libtiff and the caches around it hold while a TIFF is read. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_TIFF_MEMORY_H
#define RFX_RFEXEC_IMAGE_IMAGE_TIFF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rfexec/image/tiff_library.h"

/* Of what rfx_tiff_memory counts: what is there once for all files, whatever their codecs. */
#define RFX_TIFF_SHARED_BYTES RFX_TIFF_LIBRARY_BYTES

struct rfx_tiff_reading {
    size_t decoders;     /* open handles of the picture */
    int64_t n_striles;   /* strips or tiles, all planes */
    size_t strile_bytes; /* of one, decoded; 0: nothing is decoded */
    size_t raw_bytes;    /* that one call decodes */
    int64_t cache_rows;  /* of a row of tiles; 0: none is kept */
    size_t row_bytes;    /* of a delivered row */
    int64_t n_across;    /* tiles of a row */
};

/* The bytes, at most; false when they fit no memory. file_bytes: no strip or tile is larger. */
bool rfx_tiff_memory(const struct rfx_tiff_library *lib, TIFF *tif,
                     const struct rfx_tiff_reading *reading, int64_t file_bytes, size_t *out);
#endif
