/* Private: JPEG 2000 pictures, in JP2 files and as codestreams. */
#ifndef RFX_RFEXEC_IMAGE_JP2_IMAGE_JP2_H
#define RFX_RFEXEC_IMAGE_JP2_IMAGE_JP2_H

#include "rfexec/image/image_backend.h"

/* As the functions of image_backend.h. UNSUPPORTED also where this was built without OpenJPEG's
 * header; IO also where there is no OpenJPEG. */
RFX_NODISCARD enum rfx_status rfx_image_jp2_open(struct rfx_memory *mem, const char *name,
                                                 const struct rfx_image_options *options,
                                                 struct rfx_image_backend **out,
                                                 struct rfx_error *err);
#endif
