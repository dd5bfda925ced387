/* Where an output lies in the world, when the image is a GeoTIFF. */
#ifndef RFX_RFEXEC_OUTPUT_GEOREFERENCED_H
#define RFX_RFEXEC_OUTPUT_GEOREFERENCED_H

#include "layers/graph/graph.h"
#include "rfexec/image/geo/geo_tiff.h"
#include "rfexec/image/image_source.h"

enum { RFX_GEOREFERENCED_WORDS = 400 };

/* Reads where the image `spec` lies, which was opened as `image`: page `page` of a TIFF, the
 * rectangle from (y0, x0) on. What says nothing leaves *out empty. IO, OUT_OF_MEMORY. Release
 * out->geo. */
RFX_NODISCARD enum rfx_status rfx_geo_source_of(struct rfx_memory *mem,
                                                const struct rfx_image *image, const char *spec,
                                                int64_t page, int64_t y0, int64_t x0,
                                                struct rfx_geo_source *out, struct rfx_error *err);

/* The georeference of output k of the network on the picture: that of the source on the grid of the
 * output's pixels (rf_analysis/grid.h), the picture turned unless `as_stored`. Empty where the
 * source's is, and where the output's grid is not known. The
 * no-data number stays behind: it is none of the output's. `words`: what the user is to be told, of
 * that or of branches of the network that do not agree on the grid; else empty. To be released. */
RFX_NODISCARD enum rfx_status rfx_georeferenced(struct rfx_memory *mem,
                                                const struct rfx_graph *graph, int k,
                                                const struct rfx_geo_source *source, bool as_stored,
                                                struct rfx_georeference *out,
                                                char words[RFX_GEOREFERENCED_WORDS],
                                                struct rfx_error *err);
#endif
