/* Private: a rectangle of a picture as a picture. */
#ifndef RFX_RFEXEC_IMAGE_TURN_CROPPED_H
#define RFX_RFEXEC_IMAGE_TURN_CROPPED_H

#include "rfexec/image/image_backend.h"

/* `region` of `whole`, which it owns when it succeeds; values are those of the whole picture.
 * UNSUPPORTED: the rectangle is not in the picture. */
RFX_NODISCARD enum rfx_status rfx_image_cropped_open(struct rfx_image_backend *whole,
                                                     struct rfx_rect region,
                                                     struct rfx_image_backend **out,
                                                     struct rfx_error *err);
#endif
