/* Private: OpenSlide, loaded when the first slide is opened: few runs need it, and it brings glib,
 * cairo and SQLite. Its functions by their own names; only those that 3.4 has too are needed. */
#ifndef RFX_RFEXEC_IMAGE_SLIDES_SLIDE_LIBRARY_H
#define RFX_RFEXEC_IMAGE_SLIDES_SLIDE_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

struct rfx_openslide;       /* openslide_t */
struct rfx_openslide_cache; /* openslide_cache_t */

struct rfx_slide_library {
    struct rfx_openslide *(*openslide_open)(const char *path);
    void (*openslide_close)(struct rfx_openslide *slide);
    const char *(*openslide_get_error)(struct rfx_openslide *slide);
    int32_t (*openslide_get_level_count)(struct rfx_openslide *slide);
    void (*openslide_get_level_dimensions)(struct rfx_openslide *slide, int32_t level, int64_t *w,
                                           int64_t *h);
    double (*openslide_get_level_downsample)(struct rfx_openslide *slide, int32_t level);
    const char *(*openslide_get_property_value)(struct rfx_openslide *slide, const char *name);
    void (*openslide_read_region)(struct rfx_openslide *slide, uint32_t *to, int64_t x, int64_t y,
                                  int32_t level, int64_t w, int64_t h);
    /* NULL before 4.0, whose cache has RFX_SLIDE_CACHE_BYTES */
    struct rfx_openslide_cache *(*openslide_cache_create)(size_t bytes);
    void (*openslide_set_cache)(struct rfx_openslide *slide, struct rfx_openslide_cache *cache);
    void (*openslide_cache_release)(struct rfx_openslide_cache *cache);
};

/* Of decoded tiles. */
#define RFX_SLIDE_CACHE_BYTES ((size_t)32 << 20)

/* Fills `lib`. IO, with what to install, when this system has no OpenSlide. */
RFX_NODISCARD enum rfx_status rfx_slide_library_load(struct rfx_slide_library *lib,
                                                     struct rfx_error *err);
#endif
