/* Reads and writes georeferences in TIFF files. */
#ifndef RFX_RFEXEC_IMAGE_GEO_GEO_TIFF_H
#define RFX_RFEXEC_IMAGE_GEO_GEO_TIFF_H

#include "rfexec/image/geo/georeference.h"

struct rfx_tiff_library;
struct tiff; /* libtiff's TIFF */

struct rfx_geo_source {
    struct rfx_georeference geo; /* georeference; empty: the file has none */
    bool from_tiff;              /* the picture is a TIFF; its reader counts libtiff's memory */
    int orientation;             /* orientation as in the tag; 1: no tag */
    int64_t h, w;                /* size as stored */
    int64_t y0, x0;              /* upper left pixel of the rectangle that is read */
    /* name of a tag that was dropped because it is invalid or too long; or NULL */
    const char *dropped;
};

/* Reads the georeference of page `page` of the file. *out stays empty for files of other kinds,
 * missing pages and invalid tags; rfx_image_open reports errors of the picture itself. IO,
 * OUT_OF_MEMORY. Release out->geo. */
RFX_NODISCARD enum rfx_status rfx_geo_tiff_read(struct rfx_memory *mem, const char *path,
                                                int64_t page, struct rfx_geo_source *out,
                                                struct rfx_error *err);

/* Sets the tags of the directory that is written next to `tif`. Returns false if libtiff refuses.
 */
bool rfx_geo_tiff_set(const struct rfx_georeference *geo, const struct rfx_tiff_library *lib,
                      struct tiff *tif);

#endif
