/* Where a picture lies in the world: what a GeoTIFF's tags say, or how large its pixels are under a
 * microscope, and the same for a grid of other pixels.
 *
 * Kept as the tags have it (OGC GeoTIFF 1.1, 19-008r4, section 7): pixel scale and tie points, or a
 * matrix, or tie points alone, which are ground control points; the keys with their parameters;
 * GDAL's no-data and metadata. Of the metadata, items of one band ("sample") are left out: other
 * bands are written than were read. Rational polynomial coefficients are not kept.
 * Invariants: 1. every number is finite; 2. texts end with a 0 and have none before. */
#ifndef RFX_RFEXEC_IMAGE_GEO_GEOREFERENCE_H
#define RFX_RFEXEC_IMAGE_GEO_GEOREFERENCE_H

#include "layers/core/memory.h"

/* Bytes of all values together: no more are kept. */
#define RFX_GEO_MOST_BYTES ((size_t)256 * 1024)

enum { RFX_GEO_SCALE = 3, RFX_GEO_POINT = 6, RFX_GEO_MATRIX = 16 };

struct rfx_georeference {
    struct rfx_memory *mem;
    double scale[RFX_GEO_SCALE];
    double matrix[RFX_GEO_MATRIX];
    bool has_scale, has_matrix;
    int n_points, n_keys, n_params; /* numbers, not points */
    double *points;                 /* owned, as all that follow: column, row, level; x, y, z */
    uint16_t *keys;                 /* of the key directory */
    double *params;                 /* that keys refer to */
    char *texts;                    /* likewise; NULL: none */
    char *no_data, *metadata;       /* NULL: none */
    double pixel_um[2]; /* width and height of a pixel in micrometres, of scanners; 0: not known */
};

/* Where pixel positions of another picture lie in this one, in pixels from the upper left corner of
 * the upper left pixel: column = x[0] * c + x[1] * r + x[2], row = y[0] * c + y[1] * r + y[2]. */
struct rfx_geo_affine {
    double x[3], y[3];
};

/* Frees what it holds; zeros are fine. */
void rfx_georeference_release(struct rfx_georeference *geo);

/* Whether nothing is said. */
bool rfx_georeference_is_empty(const struct rfx_georeference *geo);

/* Whether no more than the size of pixels is said. */
bool rfx_georeference_is_size(const struct rfx_georeference *geo);

/* Bytes of all values. */
size_t rfx_georeference_bytes(const struct rfx_georeference *geo);

/* The affine of a picture that is stored with orientation 1 to 8 (TIFF's tag) in h rows and w
 * columns and read as it is seen. */
struct rfx_geo_affine rfx_geo_turn(int orientation, int64_t h, int64_t w);

/* First `inner`, then `outer`. */
struct rfx_geo_affine rfx_geo_compose(const struct rfx_geo_affine *outer,
                                      const struct rfx_geo_affine *inner);

/* The georeference of the other picture. As exact as double arithmetic; what the affine leaves as
 * it is keeps its bits. INVALID_ARGUMENT: the affine has no inverse. OUT_OF_MEMORY. To be released.
 */
RFX_NODISCARD enum rfx_status rfx_georeference_place(const struct rfx_georeference *geo,
                                                     const struct rfx_geo_affine *affine,
                                                     struct rfx_memory *mem,
                                                     struct rfx_georeference *out,
                                                     struct rfx_error *err);
#endif
