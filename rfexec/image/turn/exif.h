/* Private: the orientation that EXIF data give, of a JPEG or anywhere in a file. */
#ifndef RFX_RFEXEC_IMAGE_TURN_EXIF_H
#define RFX_RFEXEC_IMAGE_TURN_EXIF_H

#include "rfexec/image/image_file.h"

/* 2 to 8 as in TIFF's tag 274; 1 where there are no such data, or none that make sense: they are
 * not the picture. Leaves the reading position alone. */
int rfx_exif_orientation(struct rfx_image_file *file);

/* The same of the EXIF data in bytes [start, end) of a file, as PNG's eXIf and WebP's EXIF have
 * them: a TIFF, before which some writers put "Exif" and two zeros. */
int rfx_exif_orientation_in(struct rfx_image_file *file, int64_t start, int64_t end);
#endif
