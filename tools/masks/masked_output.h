/* The output of a masked run: rectangles with the pixels that nobody wants made one value, and that
 * value everywhere else. */
#ifndef RFX_TOOLS_MASKS_MASKED_OUTPUT_H
#define RFX_TOOLS_MASKS_MASKED_OUTPUT_H

#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_stream.h"
#include "tools/masks/mask_rects.h"

struct rfx_masked_output {
    struct rfx_memory *mem;
    const struct rfx_mask *mask;
    struct rfx_tensor map;
    struct rfx_end end; /* the map where it belongs in the output */
    float fill;
    struct rfx_output_stream *stream; /* NULL: no file */
    struct rfx_fingerprint fingerprint;
    float *block; /* some pixels of a row, or some rows */
};

/* Bytes of the block. */
size_t rfx_masked_output_bytes(const struct rfx_tensor *map);

/* Allocates the block; the other members are set. To be released, without the stream. */
RFX_NODISCARD enum rfx_status rfx_masked_output_open(struct rfx_masked_output *output,
                                                     struct rfx_error *err);
void rfx_masked_output_release(struct rfx_masked_output *output);

/* Takes `rect` of the map, which lies in the view. */
RFX_NODISCARD enum rfx_status rfx_masked_output_take(struct rfx_masked_output *output,
                                                     struct rfx_rect rect,
                                                     const struct rfx_view *view,
                                                     struct rfx_error *err);

/* Fills all that lies in none of the rectangles. */
RFX_NODISCARD enum rfx_status rfx_masked_output_fill(struct rfx_masked_output *output,
                                                     const struct rfx_mask_rects *rects,
                                                     struct rfx_error *err);
#endif
