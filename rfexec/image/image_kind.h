/* Private: recognises the kind of a picture by its name or by the first bytes of the file, without
 * a codec. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_KIND_H
#define RFX_RFEXEC_IMAGE_IMAGE_KIND_H

#include <stdbool.h>

/* Returns whether a file that begins with these bytes is a TIFF or BigTIFF. */
bool rfx_image_is_tiff(const unsigned char head[4]);

/* Returns whether a file that begins with these bytes is a run-length encoded BMP. */
bool rfx_image_is_bmp_rle(const unsigned char head[34]);

/* Returns whether `name` is a folder with a metadata file of Zarr. */
bool rfx_is_zarr(const char *name);

/* Returns whether a file of this name is read as a slide: .svs, .ndpi, .mrxs, .scn, .vms, .vmu,
 * .bif, .svslide, in upper or lower case. */
bool rfx_image_is_slide(const char *name);
#endif
