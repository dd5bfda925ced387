/* Private: pictures whose stored orientation differs from the one in which they are seen: reads the
 * orientation from EXIF data, and rotates or mirrors a picture.
 *
 * Orientations of TIFF's tag 274 and EXIF: 1 as stored, 2 mirrored, 3 rotated by 180 degrees, 4
 * upside down, 5 rows are columns, 6 and 8 rotated by 90 degrees, 7 rotated and mirrored. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_ORIENTATION_H
#define RFX_RFEXEC_IMAGE_DECODE_ORIENTATION_H

#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

/* Returns the orientation in the EXIF data of a JPEG file, as in TIFF's tag 274. Returns 1 if there
 * are no such data, or if they are invalid, because a picture can be read without them. Does not
 * move the reading position. */
int rfx_exif_orientation(struct rfx_image_file *file);

/* Like rfx_exif_orientation, for EXIF data in bytes [start, end) of a file, as in PNG's eXIf and
 * WebP's EXIF chunks: a TIFF, before which some writers put "Exif" and two zeros. */
int rfx_exif_orientation_in(struct rfx_image_file *file, int64_t start, int64_t end);

/* Makes a source of the picture `stored`, whose orientation is 2 to 8, as it is seen: any rectangle
 * at any time. The picture is decoded once, in bands, into a temporary file without a name in
 * `folder` (NULL: rfx_temp_folder), by set_window or the first read. Owns `stored` after success.
 */
RFX_NODISCARD enum rfx_status rfx_image_orient(struct rfx_image_backend *stored, const char *folder,
                                               struct rfx_image_backend **out,
                                               struct rfx_error *err);
#endif
