/* Private: pictures that are given as a file for each band, as satellites' are:
 * "bands:b2.tif,b3.tif".
 */
#ifndef RFX_RFEXEC_IMAGE_BANDS_FILE_BANDS_H
#define RFX_RFEXEC_IMAGE_BANDS_FILE_BANDS_H

#include "rfexec/image/image_backend.h"

/* `name` is the whole spec. The files' bands follow each other (alpha left out), and options->bands
 * counts them all; files whose bands are not chosen are closed again. UNSUPPORTED: the files have
 * other sizes, samples or orientations than the first. */
RFX_NODISCARD enum rfx_status rfx_image_file_bands_open(struct rfx_memory *mem, const char *name,
                                                        const struct rfx_image_options *options,
                                                        struct rfx_image_backend **out,
                                                        struct rfx_error *err);
#endif
