/* A small copy of a picture that comes row by row: of every so many rows and columns the first, so
 * that labels keep their colours. A picture no larger than RFX_SMALL_COPY_SIDE is copied as it is.
 */
#ifndef RFX_TOOLS_OVERLAY_SMALL_COPY_H
#define RFX_TOOLS_OVERLAY_SMALL_COPY_H

#include <stdbool.h>

#include "layers/core/memory.h"

enum { RFX_SMALL_COPY_SIDE = 400 };

struct rfx_small_copy { /* all zero: of nothing, which wants no row */
    struct rfx_memory *mem;
    int64_t h, w;       /* of the picture */
    int64_t rows, cols; /* of the copy */
    unsigned char *rgb; /* [rows, cols, 3] */
};

/* Bytes that the copy of a picture of h x w pixels takes. */
size_t rfx_small_copy_bytes(int64_t h, int64_t w);

/* Black at first. OUT_OF_MEMORY. Freed with rfx_small_copy_free. */
RFX_NODISCARD enum rfx_status rfx_small_copy_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                                    struct rfx_small_copy *copy,
                                                    struct rfx_error *err);
void rfx_small_copy_free(struct rfx_small_copy *copy);

/* Whether the copy has row y of the picture. */
bool rfx_small_copy_wants(const struct rfx_small_copy *copy, int64_t y);

/* Takes row y if it is wanted: colours [w, 3] from 0 to 255, rounded as those
 * of files are. */
void rfx_small_copy_take(struct rfx_small_copy *copy, int64_t y, const float *colours);
#endif
