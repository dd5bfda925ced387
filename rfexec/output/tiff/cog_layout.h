/* Cloud optimized GeoTIFF: a TIFF in tiles with all directories at its beginning, the picture's and
 * then those of its overviews, the largest first, and behind them the tiles of the smallest
 * overview, of the next one, and at last the picture's.
 *
 * libtiff writes directories behind their tiles, so such a file is a copy of one that it has
 * written. Source: the rules of GDAL's validate_cloud_optimized_geotiff and of rio-cogeo, which
 * tests/oracle/pictures.py has it read. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_COG_LAYOUT_H
#define RFX_RFEXEC_OUTPUT_TIFF_COG_LAYOUT_H

#include "layers/core/memory.h"
#include "rfexec/output/output_file.h"

/* At most so many bytes are held for files of so many tiles. */
size_t rfx_cog_bytes(int64_t tiles);

/* Copies a file of this machine's order of bytes, which is complete, into an empty one. IO. */
RFX_NODISCARD enum rfx_status rfx_cog_copy(struct rfx_memory *mem, struct rfx_output_file *draft,
                                           bool big, struct rfx_output_file *to,
                                           struct rfx_error *err);
#endif
