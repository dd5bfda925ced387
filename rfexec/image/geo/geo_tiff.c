/* The tags of GeoTIFF and GDAL, which libtiff itself does not know.
 *
 * When read, such tags have any type and count that the file gives them, so both are checked. For
 * writing they are registered with the one file. A program around this library may have registered
 * them for all files, so libtiff's own description of a tag decides how its values are passed. */
#include "rfexec/image/geo/geo_tiff.h"

#include <math.h>
#include <string.h>

#include "rfexec/image/image_file.h"
#include "rfexec/image/image_kind.h"
#include "rfexec/image/tiff/tiff_directories.h"
#include "rfexec/image/tiff/tiff_library.h"

enum {
    TAG_SCALE = 33550,
    TAG_POINTS = 33922,
    TAG_MATRIX = 34264,
    TAG_KEYS = 34735,
    TAG_PARAMS = 34736,
    TAG_TEXTS = 34737,
    TAG_METADATA = 42112,
    TAG_NO_DATA = 42113
};

#define MOST_UM 50.0

struct reading {
    struct rfx_tiff_library lib;
    struct rfx_tiff_log log;
    struct rfx_tiff_handle handle;
    struct rfx_image_file file;
};

/* Returns the values of a tag, borrowed from libtiff; *n: their number. NULL: there are none of
 * this type. */
static const void *values_of(const struct reading *r, uint32_t tag, TIFFDataType type, size_t *n) {
    TIFF *tif = r->handle.tif;
    const TIFFField *field = r->lib.TIFFFindField(tif, tag, TIFF_ANY);
    void *values = NULL;
    uint32_t wide = 0;
    uint16_t narrow = 0;
    if (field == NULL || r->lib.TIFFFieldDataType(field) != type) return NULL;
    bool counted = r->lib.TIFFFieldPassCount(field) != 0;
    bool is_wide = r->lib.TIFFFieldReadCount(field) == TIFF_VARIABLE2;
    if (!counted && type != TIFF_ASCII) return NULL;
    int there = !counted  ? r->lib.TIFFGetField(tif, tag, &values)
                : is_wide ? r->lib.TIFFGetField(tif, tag, &wide, &values)
                          : r->lib.TIFFGetField(tif, tag, &narrow, &values);
    if (!there || values == NULL) return NULL;
    *n = !counted ? strlen(values) : is_wide ? wide : narrow;
    return values;
}

/* Copies `bytes` bytes into a new block and adds a 0. */
static bool keep(struct rfx_memory *mem, const void *values, size_t bytes, void *to) {
    char *block = rfx_memory_alloc(mem, bytes + 1);
    if (block == NULL) return false;
    memcpy(block, values, bytes);
    block[bytes] = '\0';
    memcpy(to, &block, sizeof block);
    return true;
}

/* Returns whether a tag must be dropped, because it is invalid or too long. Then sets *dropped to
 * its name. */
static bool is_useless(const struct rfx_georeference *geo, const char *name, size_t bytes,
                       bool sound, const char **dropped) {
    if (sound && bytes <= RFX_GEO_MOST_BYTES - rfx_georeference_bytes(geo)) return false;
    *dropped = name;
    return true;
}

/* Reads the doubles of a tag: at least `least`, all finite, a multiple of `group`. */
static bool read_doubles(const struct reading *r, struct rfx_geo_source *out, uint32_t tag,
                         const char *name, size_t least, size_t group, double **to, int *count) {
    size_t n = 0;
    const double *values = values_of(r, tag, TIFF_DOUBLE, &n);
    if (values == NULL) return true;
    bool sound = n >= least && n % group == 0;
    size_t bytes = n <= RFX_GEO_MOST_BYTES ? n * sizeof *values : SIZE_MAX;
    for (size_t i = 0; i < n && bytes <= RFX_GEO_MOST_BYTES && sound; i++)
        sound = isfinite(values[i]);
    if (is_useless(&out->geo, name, bytes, sound, &out->dropped)) return true;
    *count = (int)n;
    return keep(out->geo.mem, values, bytes, to);
}

static bool read_text(const struct reading *r, struct rfx_geo_source *out, uint32_t tag,
                      const char *name, char **to) {
    size_t n = 0;
    const char *values = values_of(r, tag, TIFF_ASCII, &n);
    if (values == NULL) return true;
    size_t length = strnlen(values, n);
    if (length == 0 || is_useless(&out->geo, name, length + 1, true, &out->dropped)) return true;
    return keep(out->geo.mem, values, length, to);
}

static bool read_keys(const struct reading *r, struct rfx_geo_source *out) {
    size_t n = 0;
    const uint16_t *values = values_of(r, TAG_KEYS, TIFF_SHORT, &n);
    if (values == NULL) return true;
    bool sound = n >= 4 && values[0] == 1 && n / 4 >= (size_t)values[3] + 1;
    if (is_useless(&out->geo, "GeoKeyDirectory", n * sizeof *values, sound, &out->dropped))
        return true;
    out->geo.n_keys = 4 * (values[3] + 1);
    return keep(out->geo.mem, values, (size_t)out->geo.n_keys * sizeof *values, &out->geo.keys);
}

/* Reads n doubles of a tag; *has: the tag has them. */
static bool read_fixed(const struct reading *r, struct rfx_geo_source *out, uint32_t tag,
                       const char *name, size_t n, double *to, bool *has) {
    double *values = NULL;
    int count = 0;
    if (!read_doubles(r, out, tag, name, n, 1, &values, &count)) return false;
    *has = count >= (int)n;
    if (*has) memcpy(to, values, n * sizeof *to);
    rfx_memory_release(out->geo.mem, values);
    return true;
}

/* Removes the metadata items of one band, "<Item ... sample="0" ...>...</Item>", and metadata that
 * become empty. */
static void drop_band_items(struct rfx_georeference *geo) {
    char *to = geo->metadata;
    bool any = false;
    for (const char *from = geo->metadata; from != NULL && *from != '\0';) {
        const char *tag_end = strncmp(from, "<Item ", 6) == 0 ? strchr(from, '>') : NULL;
        const char *end = tag_end == NULL ? NULL : strstr(tag_end, "</Item>");
        const char *sample = tag_end == NULL ? NULL : strstr(from, "sample=");
        if (end != NULL && sample != NULL && sample < tag_end) {
            from = end + strlen("</Item>");
            while (to > geo->metadata && strchr(" \t\r\n", to[-1]) != NULL)
                to--; /* the rest of its line */
            continue;
        }
        any |= tag_end != NULL;
        *to++ = *from++;
    }
    if (to == NULL) return;
    *to = '\0';
    bool is_shell = !any && strstr(geo->metadata, "<GDALMetadata>") != NULL;
    if (geo->metadata[0] != '\0' && !is_shell) return;
    rfx_memory_release(geo->mem, geo->metadata);
    geo->metadata = NULL;
}

/* Keeps one kind of georeference: scale and tie point, else a matrix, else points. */
static void choose_placing(struct rfx_georeference *geo) {
    bool tied = geo->has_scale && geo->n_points >= RFX_GEO_POINT && geo->scale[0] != 0.0 &&
                geo->scale[1] != 0.0;
    geo->has_scale = tied;
    geo->has_matrix = geo->has_matrix && !tied;
    if (!geo->has_matrix) return;
    rfx_memory_release(geo->mem, geo->points);
    geo->points = NULL;
    geo->n_points = 0;
}

/* Reads the size of pixels from the resolution. Pixels of 50 micrometres and more (508 or fewer an
 * inch) are ignored: they are resolutions of paper and screens, which programs write when they do
 * not know the size. */
static void read_pixel_size(const struct reading *r, struct rfx_georeference *geo) {
    static const uint32_t tags[] = {TIFFTAG_XRESOLUTION, TIFFTAG_YRESOLUTION};
    uint16_t unit = 0;
    double um[2];
    (void)r->lib.TIFFGetFieldDefaulted(r->handle.tif, TIFFTAG_RESOLUTIONUNIT, &unit);
    if (unit != RESUNIT_INCH && unit != RESUNIT_CENTIMETER) return;
    for (int i = 0; i < 2; i++) {
        float of_unit = 0.0f;
        if (r->lib.TIFFGetField(r->handle.tif, tags[i], &of_unit) == 0) return;
        um[i] = (unit == RESUNIT_INCH ? 25400.0 : 10000.0) / (double)of_unit;
        if (!(um[i] > 0.0 && um[i] < MOST_UM)) return;
    }
    memcpy(geo->pixel_um, um, sizeof um);
}

static bool read_tags(const struct reading *r, struct rfx_geo_source *out) {
    struct rfx_georeference *g = &out->geo;
    uint32_t h = 0, w = 0;
    uint16_t turn = 1;
    (void)r->lib.TIFFGetField(r->handle.tif, TIFFTAG_IMAGELENGTH, &h);
    (void)r->lib.TIFFGetField(r->handle.tif, TIFFTAG_IMAGEWIDTH, &w);
    (void)r->lib.TIFFGetFieldDefaulted(r->handle.tif, TIFFTAG_ORIENTATION, &turn);
    out->h = h;
    out->w = w;
    out->orientation = turn >= 1 && turn <= 8 ? turn : 1;
    bool done =
        read_fixed(r, out, TAG_SCALE, "ModelPixelScale", RFX_GEO_SCALE, g->scale, &g->has_scale) &&
        read_fixed(r, out, TAG_MATRIX, "ModelTransformation", RFX_GEO_MATRIX, g->matrix,
                   &g->has_matrix) &&
        read_doubles(r, out, TAG_POINTS, "ModelTiepoint", RFX_GEO_POINT, RFX_GEO_POINT, &g->points,
                     &g->n_points) &&
        read_keys(r, out) &&
        read_doubles(r, out, TAG_PARAMS, "GeoDoubleParams", 1, 1, &g->params, &g->n_params) &&
        read_text(r, out, TAG_TEXTS, "GeoAsciiParams", &g->texts) &&
        read_text(r, out, TAG_NO_DATA, "GDAL_NODATA", &g->no_data) &&
        read_text(r, out, TAG_METADATA, "GDAL_METADATA", &g->metadata);
    choose_placing(g);
    drop_band_items(g);
    read_pixel_size(r, g);
    return done;
}

static bool is_tiff(struct rfx_image_file *file) {
    unsigned char head[4];
    return rfx_image_file_pread(file, head, sizeof head, 0) == sizeof head &&
           rfx_image_is_tiff(head);
}

/* Reads the georeference of an open file. */
static enum rfx_status read_file(struct reading *r, int64_t page, struct rfx_geo_source *out,
                                 struct rfx_error *err) {
    if (!is_tiff(&r->file)) return RFX_OK;
    enum rfx_status status = rfx_tiff_library_load(&r->lib, err);
    if (status != RFX_OK) return status;
    bool opened = rfx_tiff_handle_open(&r->handle, &r->lib, &r->file, page > 0, &r->log);
    bool found =
        opened && (page == 0 || rfx_tiff_directory_select(out->geo.mem, &r->handle, &r->lib,
                                                          &r->log, page, NULL) == RFX_OK);
    if (found && !read_tags(r, out))
        status = rfx_memory_fail(out->geo.mem, "georeference", RFX_GEO_MOST_BYTES, err);
    rfx_tiff_handle_close(&r->handle, &r->lib);
    return status;
}

enum rfx_status rfx_geo_tiff_read(struct rfx_memory *mem, const char *path, int64_t page,
                                  struct rfx_geo_source *out, struct rfx_error *err) {
    struct rfx_geo_source read = {.geo.mem = mem, .orientation = 1};
    struct reading *r = rfx_memory_calloc(mem, 1, sizeof *r);
    if (r == NULL) return rfx_memory_fail(mem, path, sizeof *r, err);
    enum rfx_status status = rfx_image_file_open(&r->file, path, err);
    if (status == RFX_OK) {
        status = read_file(r, page, &read, err);
        rfx_image_file_close(&r->file);
    }
    rfx_memory_release(mem, r);
    if (status == RFX_OK)
        *out = read;
    else
        rfx_georeference_release(&read.geo);
    return status;
}

/* Sets a tag with n values; n 0: does nothing. */
static bool set(const struct rfx_tiff_library *lib, TIFF *tif, uint32_t tag, size_t n,
                const void *values) {
    const TIFFField *field = n == 0 ? NULL : lib->TIFFFindField(tif, tag, TIFF_ANY);
    if (n == 0) return true;
    if (field == NULL) return false;
    if (lib->TIFFFieldPassCount(field) == 0) return lib->TIFFSetField(tif, tag, values) != 0;
    return lib->TIFFSetField(tif, tag, (int)n, values) != 0;
}

static size_t length_of(const char *text) {
    return text == NULL ? 0 : strlen(text) + 1;
}

bool rfx_geo_tiff_set(const struct rfx_georeference *geo, const struct rfx_tiff_library *lib,
                      TIFF *tif) {
    static char names[][20] = {"ModelPixelScale", "ModelTiepoint",   "ModelTransformation",
                               "GeoKeyDirectory", "GeoDoubleParams", "GeoAsciiParams",
                               "GDAL_METADATA",   "GDAL_NODATA"};
    static const TIFFFieldInfo fields[] = {
        {TAG_SCALE, -3, -3, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, names[0]},
        {TAG_POINTS, -3, -3, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, names[1]},
        {TAG_MATRIX, -3, -3, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, names[2]},
        {TAG_KEYS, -3, -3, TIFF_SHORT, FIELD_CUSTOM, 1, 1, names[3]},
        {TAG_PARAMS, -3, -3, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, names[4]},
        {TAG_TEXTS, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, names[5]},
        {TAG_METADATA, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, names[6]},
        {TAG_NO_DATA, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, names[7]}};
    if (rfx_georeference_is_empty(geo)) return true;
    if (lib->TIFFMergeFieldInfo(tif, fields, sizeof fields / sizeof fields[0]) != 0) return false;
    return set(lib, tif, TAG_SCALE, geo->has_scale ? RFX_GEO_SCALE : 0, geo->scale) &&
           set(lib, tif, TAG_POINTS, (size_t)geo->n_points, geo->points) &&
           set(lib, tif, TAG_MATRIX, geo->has_matrix ? RFX_GEO_MATRIX : 0, geo->matrix) &&
           set(lib, tif, TAG_KEYS, (size_t)geo->n_keys, geo->keys) &&
           set(lib, tif, TAG_PARAMS, (size_t)geo->n_params, geo->params) &&
           set(lib, tif, TAG_TEXTS, length_of(geo->texts), geo->texts) &&
           set(lib, tif, TAG_METADATA, length_of(geo->metadata), geo->metadata) &&
           set(lib, tif, TAG_NO_DATA, length_of(geo->no_data), geo->no_data);
}
