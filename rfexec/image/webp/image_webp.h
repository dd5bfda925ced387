/* Private: WebP pictures, lossy and lossless. */
#ifndef RFX_RFEXEC_IMAGE_WEBP_IMAGE_WEBP_H
#define RFX_RFEXEC_IMAGE_WEBP_IMAGE_WEBP_H

#include "rfexec/image/image_backend.h"

/* As the functions of image_backend.h. UNSUPPORTED: animations; IO also where there is no libwebp.
 */
RFX_NODISCARD enum rfx_status rfx_image_webp_open(struct rfx_memory *mem, const char *name,
                                                  const struct rfx_image_options *options,
                                                  struct rfx_image_backend **out,
                                                  struct rfx_error *err);
#endif
