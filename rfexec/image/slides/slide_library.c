/* Loading OpenSlide: 4.x, or else 3.4, which differ only by what is optional here. */
#include "rfexec/image/slides/slide_library.h"

#include "layers/core/library.h"

#define FUNCTION(name, optional) \
    { #name, offsetof(struct rfx_slide_library, name), optional }
static const struct rfx_library_function functions[] = {
    FUNCTION(openslide_open, false),
    FUNCTION(openslide_close, false),
    FUNCTION(openslide_get_error, false),
    FUNCTION(openslide_get_level_count, false),
    FUNCTION(openslide_get_level_dimensions, false),
    FUNCTION(openslide_get_level_downsample, false),
    FUNCTION(openslide_get_property_value, false),
    FUNCTION(openslide_read_region, false),
    FUNCTION(openslide_cache_create, true),
    FUNCTION(openslide_set_cache, true),
    FUNCTION(openslide_cache_release, true),
};
#define COUNT (sizeof functions / sizeof functions[0])
_Static_assert(COUNT == sizeof(struct rfx_slide_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_slide_library_load(struct rfx_slide_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libopenslide.so.1", functions, COUNT, lib, NULL);
    if (status != RFX_OK)
        status = rfx_library_load("libopenslide.so.0", functions, COUNT, lib, err);
    if (status == RFX_OK) return RFX_OK;
    return rfx_fail_within(err, status,
                           "slides are read by OpenSlide (Debian's package libopenslide0); what is "
                           "a TIFF file too is read without it under a name that ends in .tif");
}
