/* Georeferences in TIFF files. */
#ifndef RFX_RFEXEC_IMAGE_GEO_GEO_TIFF_H
#define RFX_RFEXEC_IMAGE_GEO_GEO_TIFF_H

#include "rfexec/image/geo/georeference.h"

struct rfx_tiff_library;
struct tiff; /* libtiff's TIFF */

struct rfx_geo_source {
    struct rfx_georeference geo; /* empty: the file says nothing */
    bool from_tiff;              /* the picture is a TIFF, whose reader counts libtiff */
    int orientation;             /* as in the tag, 1 where there is none */
    int64_t h, w;                /* as stored */
    int64_t y0, x0;              /* of the rectangle that is read, as it is read */
    const char *dropped; /* a tag that is not kept, being no such one or too long; or NULL */
};

/* Reads that of page `page` of the file. A file of another kind, a page that is not there and tags
 * that are none leave it empty: what the picture itself is wrong in, rfx_image_open says. IO,
 * OUT_OF_MEMORY. Release out->geo. */
RFX_NODISCARD enum rfx_status rfx_geo_tiff_read(struct rfx_memory *mem, const char *path,
                                                int64_t page, struct rfx_geo_source *out,
                                                struct rfx_error *err);

/* Sets the tags of the directory that `tif` is about to write. False: libtiff refuses. */
bool rfx_geo_tiff_set(const struct rfx_georeference *geo, const struct rfx_tiff_library *lib,
                      struct tiff *tif);

#endif
