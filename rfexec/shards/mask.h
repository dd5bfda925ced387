/* A picture that says where an output is wanted: where it is not 0.
 *
 * It is laid over the output whatever its size: pixel (y, x) of an output of h x w is wanted when
 * any pixel of the mask is set that lies over a part of it, rows y * mask_h / h to
 * (y + 1) * mask_h / h and columns likewise. */
/* The rectangles of an output that are computed for a mask. */
/* The output of a masked run: rectangles with the pixels that nobody wants made one value, and that
 * value everywhere else. */
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
    unsigned char *bits; /* h rows, a bit a pixel */
};

/* Reads a picture of one or three channels, grey as rfx_image_open has it. most_bytes: that reading
 * and keeping it may take; 0: any number. Statuses of rfx_image_open; BUDGET_IMPOSSIBLE. */
RFX_NODISCARD enum rfx_status rfx_mask_open(struct rfx_memory *mem, const char *path,
                                            size_t most_bytes, struct rfx_mask *out,
                                            struct rfx_error *err);
void rfx_mask_release(struct rfx_mask *mask);

size_t rfx_mask_bytes(const struct rfx_mask *mask);

/* Whether a pixel of `rect` of an output of h x w is wanted. */
bool rfx_mask_any(const struct rfx_mask *mask, int64_t h, int64_t w, struct rfx_rect rect);

enum { RFX_MASK_MOST_RECTS = 128 };

struct rfx_mask_rects {
    int n;
    struct rfx_rect rects[RFX_MASK_MOST_RECTS];
};

/* Rectangles that have no pixel in common and all wanted ones in them, of a map of h x w whose
 * pixels need halo_rows and halo_cols pixels around them, in pixels of the map. Cells of a 64th of
 * the map's side are put together as long as the halos that are saved outweigh the pixels that
 * nobody wants; one rectangle of the whole map where pieces would cost as much. From top to bottom.
 */
void rfx_mask_find_rects(const struct rfx_mask *mask, int64_t h, int64_t w, double halo_rows,
                         double halo_cols, struct rfx_mask_rects *out);

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
