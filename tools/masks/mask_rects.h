/* The rectangles of an output that are computed for a mask. */
#ifndef RFX_TOOLS_MASKS_MASK_RECTS_H
#define RFX_TOOLS_MASKS_MASK_RECTS_H

#include "tools/masks/mask.h"

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
#endif
