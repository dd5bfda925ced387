/* The georeference of a picture: a GeoTIFF's tags, or the size of its pixels under a microscope. It
 * can be converted to a grid of other pixels.
 *
 * It is stored like the tags (OGC GeoTIFF 1.1, 19-008r4, section 7): pixel scale and tie points, or
 * a matrix, or tie points alone (ground control points); the keys with their parameters; GDAL's
 * no-data value and metadata. Metadata items of one band ("sample") are dropped, because the bands
 * that are written are not the bands that were read. Rational polynomial coefficients are dropped.
 * Invariants: 1. every number is finite; 2. texts end with a 0 and contain no other 0. */
#ifndef RFX_RFEXEC_IMAGE_GEO_GEOREFERENCE_H
#define RFX_RFEXEC_IMAGE_GEO_GEOREFERENCE_H

#include "layers/core/memory.h"

/* Most bytes of all values together; values beyond are dropped. */
#define RFX_GEO_MOST_BYTES ((size_t)256 * 1024)

enum { RFX_GEO_SCALE = 3, RFX_GEO_POINT = 6, RFX_GEO_MATRIX = 16 };

struct rfx_georeference {
    struct rfx_memory *mem;
    double scale[RFX_GEO_SCALE];
    double matrix[RFX_GEO_MATRIX];
    bool has_scale, has_matrix;
    int n_points, n_keys, n_params; /* counts of numbers, not of points */
    double *points;                 /* column, row, level; x, y, z; owned, like the next members */
    uint16_t *keys;                 /* the key directory */
    double *params;                 /* numbers to which keys refer */
    char *texts;                    /* texts to which keys refer; NULL: none */
    char *no_data, *metadata;       /* NULL: none */
    double pixel_um[2]; /* scanners: width and height of a pixel in micrometres; 0: not known */
};

/* Maps pixel positions of another picture (c, r) to this picture's. Positions are in pixels from
 * the upper left corner of the upper left pixel: column = x[0] * c + x[1] * r + x[2], row = y[0] *
 * c + y[1] * r + y[2]. */
struct rfx_geo_affine {
    double x[3], y[3];
};

/* Frees all values; a struct of zeros is fine. */
void rfx_georeference_release(struct rfx_georeference *geo);

/* Returns whether there is no georeference. */
bool rfx_georeference_is_empty(const struct rfx_georeference *geo);

/* Returns whether only the size of pixels is known. */
bool rfx_georeference_is_size(const struct rfx_georeference *geo);

/* Bytes of all values. */
size_t rfx_georeference_bytes(const struct rfx_georeference *geo);

/* Returns the affine transform of a picture that is stored with orientation 1 to 8 (TIFF's tag) in
 * h rows and w columns and read as it is seen. */
struct rfx_geo_affine rfx_geo_turn(int orientation, int64_t h, int64_t w);

/* Returns the transform that applies first `inner`, then `outer`. */
struct rfx_geo_affine rfx_geo_compose(const struct rfx_geo_affine *outer,
                                      const struct rfx_geo_affine *inner);

/* Finds the transform from corners of the picture's pixels to coordinates of its coordinate system.
 * Returns false if there is none or it is not affine (ground control points). */
bool rfx_georeference_affine(const struct rfx_georeference *geo, struct rfx_geo_affine *out);

/* Returns the EPSG code of the projected, else of the geographic coordinate system; 0: none. */
int rfx_georeference_epsg(const struct rfx_georeference *geo);

/* Returns whether coordinates are metres: a projected system that says so in its keys. */
bool rfx_georeference_is_metric(const struct rfx_georeference *geo);

/* Computes the georeference of the other picture of `affine`. It is as exact as double arithmetic;
 * numbers that the transform does not change keep their bits. INVALID_ARGUMENT: the transform has
 * no inverse. OUT_OF_MEMORY. Release *out. */
RFX_NODISCARD enum rfx_status rfx_georeference_place(const struct rfx_georeference *geo,
                                                     const struct rfx_geo_affine *affine,
                                                     struct rfx_memory *mem,
                                                     struct rfx_georeference *out,
                                                     struct rfx_error *err);
#endif
