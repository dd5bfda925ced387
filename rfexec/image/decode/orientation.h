/* Private: pictures that are stored in another orientation than they are seen in: reading the
 * orientation from EXIF data, and turning a picture.
 *
 * TIFF's tag 274 and EXIF: 1 as stored, 2 mirrored, 3 turned by 180 degrees, 4 upside down, 5 rows
 * are columns, 6 and 8 turned by 90 degrees, 7 both turned and mirrored. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_ORIENTATION_H
#define RFX_RFEXEC_IMAGE_DECODE_ORIENTATION_H

#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

/* 2 to 8 as in TIFF's tag 274; 1 where there are no such data, or none that make sense: they are
 * not the picture. Leaves the reading position alone. */
int rfx_exif_orientation(struct rfx_image_file *file);

/* The same of the EXIF data in bytes [start, end) of a file, as PNG's eXIf and WebP's EXIF have
 * them: a TIFF, before which some writers put "Exif" and two zeros. */
int rfx_exif_orientation_in(struct rfx_image_file *file, int64_t start, int64_t end);

/* The picture of `stored`, whose orientation is 2 to 8, as it is seen: any rectangle at any time.
 * It is decoded once, in bands, into a nameless file in `folder` (NULL: rfx_temp_folder),
 * which window or first read make. Owns `stored` when it succeeds. */
RFX_NODISCARD enum rfx_status rfx_image_orient(struct rfx_image_backend *stored, const char *folder,
                                               struct rfx_image_backend **out,
                                               struct rfx_error *err);
#endif
