/* Private: TIFF files by what their pages are to each other: pages that are channels become bands.
 */
#ifndef RFX_RFEXEC_IMAGE_BANDS_PAGE_BANDS_H
#define RFX_RFEXEC_IMAGE_BANDS_PAGE_BANDS_H

#include "rfexec/image/image_backend.h"

/* As rfx_image_tiff_open. Where no page is asked for, grey pages of one size that are channels, or
 * of which nothing says what they are, are the picture's bands, and options->bands counts them. A
 * stack that is no set of channels is refused in words unless bands are chosen. A grey page beside
 * which there are others is not repeated for a network of three channels. */
RFX_NODISCARD enum rfx_status rfx_image_tiff_pages_open(struct rfx_memory *mem, const char *name,
                                                        const struct rfx_image_options *options,
                                                        struct rfx_image_backend **out,
                                                        struct rfx_error *err);
#endif
