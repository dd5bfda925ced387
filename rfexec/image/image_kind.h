/* Private: which kind of picture a name or the first bytes of a file stand for. No codec is needed
 * to tell. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_KIND_H
#define RFX_RFEXEC_IMAGE_IMAGE_KIND_H

#include <stdbool.h>

/* Whether these first bytes of a file are those of a TIFF or BigTIFF. */
bool rfx_image_is_tiff(const unsigned char head[4]);

/* Whether they are those of a run-length encoded BMP. */
bool rfx_image_is_bmp_rle(const unsigned char head[34]);

/* Whether `name` is a folder in which there is a file of Zarr's metadata. */
bool rfx_is_zarr(const char *name);

/* Whether a file of this name is read as a slide: .svs, .ndpi, .mrxs, .scn, .vms, .vmu, .bif,
 * .svslide, in letters of any size. */
bool rfx_image_is_slide(const char *name);
#endif
