/* Private: Zarr folders as pictures, plain arrays and levels of OME-Zarr. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_IMAGE_ZARR_H
#define RFX_RFEXEC_IMAGE_ZARR_IMAGE_ZARR_H

#include "rfexec/image/image_backend.h"
#include "rfexec/image/pages/image_pages.h"

/* Level options->page of the folder. MALFORMED or UNSUPPORTED in words; IO also where the library
 * that its chunks need is not there. */
RFX_NODISCARD enum rfx_status rfx_image_zarr_open(struct rfx_memory *mem, const char *name,
                                                  const struct rfx_image_options *options,
                                                  struct rfx_image_backend **out,
                                                  struct rfx_error *err);

/* Tells the levels as pages. */
RFX_NODISCARD enum rfx_status rfx_image_zarr_levels(struct rfx_memory *mem, const char *name,
                                                    rfx_image_page_fn *fn, void *user,
                                                    struct rfx_error *err);
#endif
