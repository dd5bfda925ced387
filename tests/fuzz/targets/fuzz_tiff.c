/* TIFF and BigTIFF pictures, all pages, and their georeferences. What begins as another kind is
 * read as that: the first bytes decide.
 */
#include <math.h>
#include <string.h>

#include "rfexec/image/geo/geo_tiff.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_BYTES ((size_t)4 << 20)

static void check_doubles(const double *values, int n) {
    for (int i = 0; i < n; i++)
        if (!isfinite(values[i])) fuzz_fail("a number that is none");
}

static void check_text(const char *text) {
    if (text != NULL && text[0] == '\0') fuzz_fail("a text of nothing");
}

static void check(const struct rfx_georeference *geo) {
    if (rfx_georeference_bytes(geo) > RFX_GEO_MOST_BYTES) fuzz_fail("longer than it may be");
    if (geo->has_matrix && (geo->has_scale || geo->n_points > 0)) fuzz_fail("two placings");
    if (geo->n_points % RFX_GEO_POINT != 0) fuzz_fail("%d numbers of points", geo->n_points);
    check_doubles(geo->scale, geo->has_scale ? RFX_GEO_SCALE : 0);
    check_doubles(geo->matrix, geo->has_matrix ? RFX_GEO_MATRIX : 0);
    check_doubles(geo->points, geo->n_points);
    check_doubles(geo->params, geo->n_params);
    check_text(geo->texts);
    check_text(geo->no_data);
    check_text(geo->metadata);
}

static void read_georeference(const uint8_t *data, size_t size, int64_t page) {
    const struct rfx_geo_affine affine = {{2, 0, 0.5}, {0, 4, -1}};
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_geo_source source;
    struct rfx_georeference placed;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_geo_tiff_read(mem, fuzz_file(data, size), page, &source, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) {
        check(&source.geo);
        status = rfx_georeference_place(&source.geo, &affine, mem, &placed, &err);
        fuzz_check_status(status, &err);
        if (status == RFX_OK) rfx_georeference_release(&placed);
        rfx_georeference_release(&source.geo);
    }
    rfx_memory_free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    fuzz_pages(data, size);
    read_georeference(data, size, 0);
    read_georeference(data, size, 1);
    return 0;
}
