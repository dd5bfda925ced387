/* A mask selects the output pixels to compute.
 *
 * A mask is an image. Nonzero mask pixels select output pixels. The mask is scaled to the size of
 * the output: pixel (y, x) of an output of h x w is selected when any mask pixel is nonzero in mask
 * rows y * mask_h / h to (y + 1) * mask_h / h and mask columns x * mask_w / w to (x + 1) * mask_w /
 * w. A few rectangles cover the selected pixels, and each rectangle is computed as a shard. In the
 * output every pixel that is not selected has the fill value, inside and outside of the rectangles.
 */
#ifndef RFX_RFEXEC_SHARDS_MASK_H
#define RFX_RFEXEC_SHARDS_MASK_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/rect.h"

struct rfx_mask {
    struct rfx_memory *mem;
    int64_t h, w;
    size_t row_bytes;
    unsigned char *bits; /* [h, row_bytes], one bit per pixel */
};

/* Reads a mask image of one or three channels. Colour is converted to grey as in rfx_image_open.
 * most_bytes: limit of the memory for reading and storing the mask; 0: no limit. Statuses:
 * BUDGET_IMPOSSIBLE when the limit is too small; UNSUPPORTED for other numbers of channels; those
 * of rfx_image_open. */
RFX_NODISCARD enum rfx_status rfx_mask_open(struct rfx_memory *mem, const char *path,
                                            size_t most_bytes, struct rfx_mask *out,
                                            struct rfx_error *err);
void rfx_mask_release(struct rfx_mask *mask);

size_t rfx_mask_bytes(const struct rfx_mask *mask);

/* Returns whether the mask selects any pixel of `rect` of an output of h x w. */
bool rfx_mask_any(const struct rfx_mask *mask, int64_t h, int64_t w, struct rfx_rect rect);

enum { RFX_MASK_MOST_RECTS = 128 };

struct rfx_mask_rects {
    int n;
    struct rfx_rect rects[RFX_MASK_MOST_RECTS];
};

/* Finds rectangles of a map of h x w that do not overlap and contain all selected pixels. They are
 * sorted from top to bottom. halo_rows and halo_cols: width in map pixels of the halo that must be
 * computed around a rectangle. The search starts from cells of a 64th of the map's side. Cells are
 * merged as long as the saved halos outweigh the additional unselected pixels. One rectangle of the
 * whole map is returned when several would cost as much. */
void rfx_mask_find_rects(const struct rfx_mask *mask, int64_t h, int64_t w, double halo_rows,
                         double halo_cols, struct rfx_mask_rects *out);
#endif
