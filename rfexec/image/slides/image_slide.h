/* Private: slides of microscopes through OpenSlide, one level of them. */
#ifndef RFX_RFEXEC_IMAGE_SLIDES_IMAGE_SLIDE_H
#define RFX_RFEXEC_IMAGE_SLIDES_IMAGE_SLIDE_H

#include "rfexec/image/image_backend.h"
#include "rfexec/image/pages/image_pages.h"

/* Whether a file of this name is read as a slide: .svs, .ndpi, .mrxs, .scn, .vms, .vmu, .bif,
 * .svslide, in letters of any size. */
bool rfx_image_is_slide(const char *name);

/* Level options->page of a slide, whatever its name. IO also where there is no OpenSlide. */
RFX_NODISCARD enum rfx_status rfx_image_slide_open(struct rfx_memory *mem, const char *name,
                                                   const struct rfx_image_options *options,
                                                   struct rfx_image_backend **out,
                                                   struct rfx_error *err);

/* Tells the levels as pages. */
RFX_NODISCARD enum rfx_status rfx_image_slide_levels(struct rfx_memory *mem, const char *name,
                                                     rfx_image_page_fn *fn, void *user,
                                                     struct rfx_error *err);
#endif
