/* An image of the public header that notes which of its pixels are read. */
#ifndef RFX_TESTS_SUPPORT_RUN_WATCHED_IMAGE_H
#define RFX_TESTS_SUPPORT_RUN_WATCHED_IMAGE_H

#include "rfexec/rfexec.h"

struct watched_image {
    const float *values; /* [c, h, w], borrowed */
    int64_t h, w;
    int64_t row_lo, row_hi, column_lo, column_hi; /* the rectangle around all pixels read */
};

/* Returns an image of which nothing was read. */
struct watched_image watched_image_of(const float *values, int64_t h, int64_t w);

/* Returns a source that reads the image. Valid as long as the image. */
struct rfx_source watched_image_source(struct watched_image *image);

/* Fails unless the pixels read span exactly the rectangle `needed` of 3 channels. */
void watched_image_check(const struct watched_image *image, const struct rfx_area *needed);
#endif
