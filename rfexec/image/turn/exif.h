/* Private: the orientation that a JPEG's EXIF data give. */
#ifndef RFX_RFEXEC_IMAGE_TURN_EXIF_H
#define RFX_RFEXEC_IMAGE_TURN_EXIF_H

#include "rfexec/image/image_file.h"

/* 2 to 8 as in TIFF's tag 274; 1 where there are no such data, or none that make sense: they are
 * not the picture. Leaves the reading position alone. */
int rfx_exif_orientation(struct rfx_image_file *file);
#endif
