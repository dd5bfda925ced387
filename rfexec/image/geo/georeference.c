/* Converts georeferences from one grid of pixels to another. */
#include "rfexec/image/geo/georeference.h"

#include <math.h>
#include <string.h>

enum { KEY_RASTER_TYPE = 1025, PIXEL_IS_POINT = 2, KEY_ENTRY = 4 };
/* Keys of coordinate systems, and the smallest and largest code that is EPSG's. */
enum {
    KEY_MODEL_TYPE = 1024,
    MODEL_IS_PROJECTED = 1,
    KEY_LINEAR_UNIT = 3076,
    UNIT_IS_METRE = 9001
};
enum { KEY_GEOGRAPHIC = 2048, KEY_PROJECTED = 3072, EPSG_FIRST = 1024, EPSG_LAST = 32766 };

void rfx_georeference_release(struct rfx_georeference *geo) {
    if (geo->mem == NULL) return;
    rfx_memory_release(geo->mem, geo->points);
    rfx_memory_release(geo->mem, geo->keys);
    rfx_memory_release(geo->mem, geo->params);
    rfx_memory_release(geo->mem, geo->texts);
    rfx_memory_release(geo->mem, geo->no_data);
    rfx_memory_release(geo->mem, geo->metadata);
    *geo = (struct rfx_georeference){.mem = geo->mem};
}

bool rfx_georeference_is_empty(const struct rfx_georeference *geo) {
    return rfx_georeference_bytes(geo) == 0;
}

static size_t size_bytes(const struct rfx_georeference *geo) {
    return geo->pixel_um[0] > 0.0 && geo->pixel_um[1] > 0.0 ? sizeof geo->pixel_um : 0;
}

bool rfx_georeference_is_size(const struct rfx_georeference *geo) {
    return rfx_georeference_bytes(geo) == size_bytes(geo);
}

static size_t text_bytes(const char *text) {
    return text == NULL ? 0 : strlen(text) + 1;
}

size_t rfx_georeference_bytes(const struct rfx_georeference *geo) {
    size_t numbers = (geo->has_scale ? (size_t)RFX_GEO_SCALE : 0) +
                     (geo->has_matrix ? (size_t)RFX_GEO_MATRIX : 0) + (size_t)geo->n_points +
                     (size_t)geo->n_params;
    return numbers * sizeof(double) + size_bytes(geo) + (size_t)geo->n_keys * sizeof *geo->keys +
           text_bytes(geo->texts) + text_bytes(geo->no_data) + text_bytes(geo->metadata);
}

struct rfx_geo_affine rfx_geo_turn(int orientation, int64_t h, int64_t w) {
    double rows = (double)h, cols = (double)w;
    bool across = orientation >= 5; /* rows are columns */
    bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    double x = right ? -1.0 : 1.0, y = below ? -1.0 : 1.0;
    return (struct rfx_geo_affine){.x = {across ? 0.0 : x, across ? x : 0.0, right ? cols : 0.0},
                                   .y = {across ? y : 0.0, across ? 0.0 : y, below ? rows : 0.0}};
}

static void through(const double *outer, const struct rfx_geo_affine *inner, double *out) {
    for (int i = 0; i < 3; i++) out[i] = outer[0] * inner->x[i] + outer[1] * inner->y[i];
    out[2] += outer[2];
}

struct rfx_geo_affine rfx_geo_compose(const struct rfx_geo_affine *outer,
                                      const struct rfx_geo_affine *inner) {
    struct rfx_geo_affine out;
    through(outer->x, inner, out.x);
    through(outer->y, inner, out.y);
    return out;
}

/* Returns the value of a key that is stored in the directory itself, or 0. */
static int key_of(const struct rfx_georeference *geo, int key) {
    for (int i = KEY_ENTRY; i + KEY_ENTRY <= geo->n_keys; i += KEY_ENTRY)
        if (geo->keys[i] == key && geo->keys[i + 1] == 0) return geo->keys[i + 3];
    return 0;
}

/* Returns whether raster positions are counted from the middle of the first pixel. */
static bool counts_from_middles(const struct rfx_georeference *geo) {
    return key_of(geo, KEY_RASTER_TYPE) == PIXEL_IS_POINT;
}

int rfx_georeference_epsg(const struct rfx_georeference *geo) {
    int projected = key_of(geo, KEY_PROJECTED), geographic = key_of(geo, KEY_GEOGRAPHIC);
    if (projected >= EPSG_FIRST && projected <= EPSG_LAST) return projected;
    return geographic >= EPSG_FIRST && geographic <= EPSG_LAST ? geographic : 0;
}

bool rfx_georeference_is_metric(const struct rfx_georeference *geo) {
    return key_of(geo, KEY_MODEL_TYPE) == MODEL_IS_PROJECTED &&
           key_of(geo, KEY_LINEAR_UNIT) == UNIT_IS_METRE;
}

/* Returns the affine transform for positions that are counted from the middles of the first pixels.
 */
static struct rfx_geo_affine of_middles(const struct rfx_geo_affine *a) {
    struct rfx_geo_affine out = *a;
    out.x[2] = a->x[2] + (a->x[0] + a->x[1]) / 2.0 - 0.5;
    out.y[2] = a->y[2] + (a->y[0] + a->y[1]) / 2.0 - 0.5;
    return out;
}

/* Multiplies the matrix by the affine transform, which does not change levels. */
static void place_matrix(const double *m, const struct rfx_geo_affine *a, double *out) {
    for (int row = 0; row < 4; row++) {
        const double *r = m + 4 * row;
        double *to = out + 4 * row;
        to[0] = r[0] * a->x[0] + r[1] * a->y[0];
        to[1] = r[0] * a->x[1] + r[1] * a->y[1];
        to[2] = r[2];
        to[3] = r[0] * a->x[2] + r[1] * a->y[2] + r[3];
    }
}

/* Writes scale and tie point as a matrix. */
static void matrix_of(const double *scale, const double *point, double *m) {
    memset(m, 0, RFX_GEO_MATRIX * sizeof *m);
    m[0] = scale[0];
    m[3] = point[3] - point[0] * scale[0];
    m[5] = -scale[1];
    m[7] = point[4] + point[1] * scale[1];
    m[10] = scale[2];
    m[11] = point[5] - point[2] * scale[2];
    m[15] = 1.0;
}

/* Returns whether there are a scale and a tie point, the first if there are several. */
static bool is_tied(const struct rfx_georeference *geo) {
    return geo->has_scale && geo->n_points >= RFX_GEO_POINT;
}

bool rfx_georeference_affine(const struct rfx_georeference *geo, struct rfx_geo_affine *out) {
    double made[RFX_GEO_MATRIX];
    const double *m = geo->has_matrix ? geo->matrix : made;
    if (!geo->has_matrix && !is_tied(geo)) return false;
    if (!geo->has_matrix) matrix_of(geo->scale, geo->points, made);
    const double half = counts_from_middles(geo) ? 0.5 : 0.0;
    *out = (struct rfx_geo_affine){.x = {m[0], m[1], m[3]}, .y = {m[4], m[5], m[7]}};
    out->x[2] -= half * (m[0] + m[1]);
    out->y[2] -= half * (m[4] + m[5]);
    return true;
}

/* Writes scale and tie point for the other picture, with the tie point at the corner of the first
 * pixel. */
static void place_scaled(const struct rfx_georeference *geo, const struct rfx_geo_affine *a,
                         struct rfx_georeference *out) {
    const double *from = geo->points;
    double *to = out->points;
    out->scale[0] = geo->scale[0] * a->x[0];
    out->scale[1] = geo->scale[1] * a->y[1];
    to[0] = to[1] = 0.0;
    to[3] = from[3] + (a->x[2] - from[0]) * geo->scale[0];
    to[4] = from[4] - (a->y[2] - from[1]) * geo->scale[1];
    out->n_points = RFX_GEO_POINT;
}

static void place_points(const struct rfx_geo_affine *a, struct rfx_georeference *out) {
    double det = a->x[0] * a->y[1] - a->x[1] * a->y[0];
    for (int i = 0; i + RFX_GEO_POINT <= out->n_points; i += RFX_GEO_POINT) {
        double x = out->points[i] - a->x[2], y = out->points[i + 1] - a->y[2];
        out->points[i] = (a->y[1] * x - a->x[1] * y) / det;
        out->points[i + 1] = (a->x[0] * y - a->y[0] * x) / det;
    }
}

static bool copy(struct rfx_memory *mem, const void *from, size_t bytes, void *to) {
    void *block = NULL;
    if (from != NULL) {
        block = rfx_memory_alloc(mem, bytes > 0 ? bytes : 1);
        if (block == NULL) return false;
        memcpy(block, from, bytes);
    }
    memcpy(to, &block, sizeof block);
    return true;
}

static bool copy_all(const struct rfx_georeference *geo, struct rfx_memory *mem,
                     struct rfx_georeference *out) {
    *out = *geo;
    out->mem = mem;
    out->points = out->params = NULL;
    out->keys = NULL;
    out->texts = out->no_data = out->metadata = NULL;
    return copy(mem, geo->points, (size_t)geo->n_points * sizeof *geo->points, &out->points) &&
           copy(mem, geo->params, (size_t)geo->n_params * sizeof *geo->params, &out->params) &&
           copy(mem, geo->keys, (size_t)geo->n_keys * sizeof *geo->keys, &out->keys) &&
           copy(mem, geo->texts, text_bytes(geo->texts), &out->texts) &&
           copy(mem, geo->no_data, text_bytes(geo->no_data), &out->no_data) &&
           copy(mem, geo->metadata, text_bytes(geo->metadata), &out->metadata);
}

static bool is_identity(const struct rfx_geo_affine *a) {
    return a->x[0] == 1.0 && a->x[1] == 0.0 && a->x[2] == 0.0 && a->y[0] == 0.0 && a->y[1] == 1.0 &&
           a->y[2] == 0.0;
}

static void move(const struct rfx_georeference *geo, const struct rfx_geo_affine *affine,
                 struct rfx_georeference *out) {
    struct rfx_geo_affine a = counts_from_middles(geo) ? of_middles(affine) : *affine;
    bool upright = a.x[1] == 0.0 && a.y[0] == 0.0 && a.x[0] > 0.0 && a.y[1] > 0.0;
    bool tied = is_tied(geo);
    double m[RFX_GEO_MATRIX];
    for (int i = 0; i < 2; i++) { /* step along an axis of the other picture */
        double x = a.x[i] * geo->pixel_um[0], y = a.y[i] * geo->pixel_um[1];
        out->pixel_um[i] = sqrt(x * x + y * y); /* not hypot: glibc 2.35 has a new version of it */
    }
    if (geo->has_matrix) {
        place_matrix(geo->matrix, &a, out->matrix);
        place_points(&a, out);
    } else if (tied && upright) {
        place_scaled(geo, &a, out);
    } else if (tied) { /* rotated or mirrored: a scale has no sign, so a matrix is needed */
        matrix_of(geo->scale, geo->points, m);
        place_matrix(m, &a, out->matrix);
        out->has_matrix = true;
        out->has_scale = false;
        out->n_points = 0;
    } else {
        place_points(&a, out);
    }
}

enum rfx_status rfx_georeference_place(const struct rfx_georeference *geo,
                                       const struct rfx_geo_affine *affine, struct rfx_memory *mem,
                                       struct rfx_georeference *out, struct rfx_error *err) {
    double det = affine->x[0] * affine->y[1] - affine->x[1] * affine->y[0];
    if (!isfinite(det) || det == 0.0 || !isfinite(affine->x[2]) || !isfinite(affine->y[2]))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "georeference: pixels without an area");
    struct rfx_georeference placed;
    if (!copy_all(geo, mem, &placed)) {
        rfx_georeference_release(&placed);
        return rfx_memory_fail(mem, "georeference", rfx_georeference_bytes(geo), err);
    }
    if (!is_identity(affine)) move(geo, affine, &placed);
    *out = placed;
    return RFX_OK;
}
