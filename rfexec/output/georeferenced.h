/* Georeferences of outputs, for images that are GeoTIFFs. */
#ifndef RFX_RFEXEC_OUTPUT_GEOREFERENCED_H
#define RFX_RFEXEC_OUTPUT_GEOREFERENCED_H

#include "layers/graph/graph.h"
#include "rfexec/image/geo/geo_tiff.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/answer_options.h"

enum { RFX_GEOREFERENCED_WORDS = 400 };

/* Reads the georeference of the picture `spec`, which was opened as `image`, from page `page` of a
 * TIFF. (y0, x0) is the upper left pixel of the rectangle that is read. Leaves *out empty if the
 * file has no georeference. IO, OUT_OF_MEMORY. Release out->geo. */
RFX_NODISCARD enum rfx_status rfx_geo_source_of(struct rfx_memory *mem,
                                                const struct rfx_image *image, const char *spec,
                                                int64_t page, int64_t y0, int64_t x0,
                                                struct rfx_geo_source *out, struct rfx_error *err);

/* Computes the georeference of output k, or of the picture that is read if k is -1: the source's
 * georeference, converted to the grid of the output's pixels (rf_analysis/grid.h). The picture's
 * orientation is applied unless `as_stored`. *out is empty if the source's is empty or the output's
 * grid is not known. The picture's no-data value is dropped, because it is no value of the output.
 * `words` receives a warning for the user if the grid is not known or branches of the network
 * disagree on it; else it is empty. Release *out. */
RFX_NODISCARD enum rfx_status rfx_georeferenced(struct rfx_memory *mem,
                                                const struct rfx_graph *graph, int k,
                                                const struct rfx_geo_source *source, bool as_stored,
                                                struct rfx_georeference *out,
                                                char words[RFX_GEOREFERENCED_WORDS],
                                                struct rfx_error *err);

/* Finds where the pixels of output k, or of the rectangle that is read if k is -1, lie in the
 * picture as it is seen. source NULL: all of the picture is read. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_output_place(const struct rfx_graph *graph, int k,
                                               const struct rfx_geo_source *source,
                                               struct rfx_answer_place *out, struct rfx_error *err);
#endif
