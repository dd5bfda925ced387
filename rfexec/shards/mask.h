/* A mask says where an output is wanted, and only there the output is computed.
 *
 * A mask is an image; an output is wanted where the mask is not 0. It is stretched over the output,
 * whatever its size: pixel (y, x) of an output of h x w is wanted when any mask pixel is set in
 * mask rows y * mask_h / h to (y + 1) * mask_h / h and the columns likewise. The wanted pixels are
 * covered by a few rectangles, each computed as a shard. In the output every pixel that is not
 * wanted has one fill value, inside and outside of the rectangles. */
#ifndef RFX_RFEXEC_SHARDS_MASK_H
#define RFX_RFEXEC_SHARDS_MASK_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/rect.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_stream.h"

struct rfx_mask {
    struct rfx_memory *mem;
    int64_t h, w;
    size_t row_bytes;
    unsigned char *bits; /* [h, row_bytes], one bit per pixel */
};

/* Reads an image of one or three channels; colour becomes grey as in rfx_image_open. most_bytes:
 * limit for reading and keeping it; 0: none. BUDGET_IMPOSSIBLE; statuses of rfx_image_open. */
RFX_NODISCARD enum rfx_status rfx_mask_open(struct rfx_memory *mem, const char *path,
                                            size_t most_bytes, struct rfx_mask *out,
                                            struct rfx_error *err);
void rfx_mask_release(struct rfx_mask *mask);

size_t rfx_mask_bytes(const struct rfx_mask *mask);

/* Whether any pixel of `rect` of an output of h x w is wanted. */
bool rfx_mask_any(const struct rfx_mask *mask, int64_t h, int64_t w, struct rfx_rect rect);

enum { RFX_MASK_MOST_RECTS = 128 };

struct rfx_mask_rects {
    int n;
    struct rfx_rect rects[RFX_MASK_MOST_RECTS];
};

/* Finds rectangles of a map of h x w that do not overlap and contain all wanted pixels, sorted from
 * top to bottom. halo_rows and halo_cols: pixels of the map that a rectangle must compute around
 * itself. The search starts from cells of a 64th of the map's side. Cells are merged as long as the
 * saved halos outweigh the unwanted pixels. One rectangle of the whole map is returned where pieces
 * would cost as much. */
void rfx_mask_find_rects(const struct rfx_mask *mask, int64_t h, int64_t w, double halo_rows,
                         double halo_cols, struct rfx_mask_rects *out);

struct rfx_masked_output {
    struct rfx_memory *mem;
    const struct rfx_mask *mask;
    struct rfx_tensor map;
    struct rfx_end end; /* where the map lies in the output */
    float fill;
    struct rfx_output_stream *stream; /* NULL: no file */
    struct rfx_fingerprint fingerprint;
    float *block; /* pixels on their way to the stream */
};

/* Bytes of the block. */
size_t rfx_masked_output_bytes(const struct rfx_tensor *map);

/* Allocates the block; the other members are set by the caller. To be released; the stream stays
 * the caller's. */
RFX_NODISCARD enum rfx_status rfx_masked_output_open(struct rfx_masked_output *output,
                                                     struct rfx_error *err);
void rfx_masked_output_release(struct rfx_masked_output *output);

/* Writes `rect` of the map, which lies in the view, with the fill value where it is not wanted. */
RFX_NODISCARD enum rfx_status rfx_masked_output_take(struct rfx_masked_output *output,
                                                     struct rfx_rect rect,
                                                     const struct rfx_view *view,
                                                     struct rfx_error *err);

/* Writes the fill value to everything outside of the rectangles. */
RFX_NODISCARD enum rfx_status rfx_masked_output_fill(struct rfx_masked_output *output,
                                                     const struct rfx_mask_rects *rects,
                                                     struct rfx_error *err);
#endif
