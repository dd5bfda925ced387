/* A picture that says where an output is wanted: where it is not 0.
 *
 * It is laid over the output whatever its size: pixel (y, x) of an output of h x w is wanted when
 * any pixel of the mask is set that lies over a part of it, rows y * mask_h / h to
 * (y + 1) * mask_h / h and columns likewise. */
#ifndef RFX_TOOLS_MASKS_MASK_H
#define RFX_TOOLS_MASKS_MASK_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/rect.h"

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
#endif
