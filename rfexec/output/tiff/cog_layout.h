/* Cloud optimized GeoTIFF: a tiled TIFF with all directories at its beginning. The picture's
 * directory comes first, then those of the overviews from the largest to the smallest. The tiles
 * follow: those of the smallest overview first, the picture's last.
 *
 * libtiff writes directories after their tiles, so such a file is a rewritten copy of a TIFF by
 * libtiff. Source: the rules of GDAL's validate_cloud_optimized_geotiff and of rio-cogeo;
 * tests/oracle/pictures.py runs both. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_COG_LAYOUT_H
#define RFX_RFEXEC_OUTPUT_TIFF_COG_LAYOUT_H

#include "layers/core/memory.h"
#include "rfexec/output/output_file.h"

/* Returns an upper bound of the memory for a file with so many tiles. */
size_t rfx_cog_bytes(int64_t tiles);

/* Copies the complete TIFF `draft`, in this machine's byte order, into the empty file `to`. IO. */
RFX_NODISCARD enum rfx_status rfx_cog_copy(struct rfx_memory *mem, struct rfx_output_file *draft,
                                           bool big, struct rfx_output_file *to,
                                           struct rfx_error *err);
#endif
