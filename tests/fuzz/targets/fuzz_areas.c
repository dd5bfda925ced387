/* Areas in GeoJSON: what is read is JSON, and has the pixels that the rule of areas.h gives for the
 * positions that jansson reads; with a limit, memory stays in it. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "rfexec/answers/areas_file.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_BYTES ((size_t)4 << 20)
enum { H = 6, W = 8, MOST_AREAS = 4096 };

__extension__ typedef __int128 wide;

static int64_t units(const json_t *position, size_t axis) {
    const double value = json_real_value(json_array_get(position, axis));
    return (int64_t)floor(value * (double)(INT64_C(1) << RFX_AREA_BITS) + 0.5);
}

/* Changes inside[y][x] for each edge of a ring that is at or left of the pixel's centre. */
static void turn_ring(const json_t *ring, bool inside[H][W]) {
    const int64_t one = INT64_C(1) << RFX_AREA_BITS;
    for (size_t i = 0; i + 1 < json_array_size(ring); i++) {
        const json_t *a = json_array_get(ring, i), *b = json_array_get(ring, i + 1);
        const json_t *top = units(a, 1) < units(b, 1) ? a : b, *low = top == a ? b : a;
        const int64_t x0 = units(top, 0), y0 = units(top, 1);
        const int64_t dx = units(low, 0) - x0, dy = units(low, 1) - y0;
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                const int64_t cx = x * one + one / 2 - x0, cy = y * one + one / 2 - y0;
                if (cy >= 0 && cy < dy) inside[y][x] ^= (wide)cx * dy >= (wide)cy * dx;
            }
    }
}

/* Finds the pixels of a geometry of the document. */
static void find_pixels(const json_t *geometry, bool inside[H][W]) {
    const json_t *polygons = json_object_get(geometry, "coordinates");
    bool one = strcmp(json_string_value(json_object_get(geometry, "type")), "Polygon") == 0;
    memset(inside, 0, sizeof(bool[H][W]));
    for (size_t i = 0; i < (one ? 1 : json_array_size(polygons)); i++) {
        const json_t *rings = one ? polygons : json_array_get(polygons, i);
        for (size_t k = 0; k < json_array_size(rings); k++)
            turn_ring(json_array_get(rings, k), inside);
    }
}

/* Geometry of feature k, of the document itself if it has none. */
static const json_t *geometry_of(const json_t *document, int64_t k) {
    const json_t *features = json_object_get(document, "features");
    const json_t *geometry = json_object_get(document, "geometry");
    if (strcmp(json_string_value(json_object_get(document, "type")), "FeatureCollection") == 0)
        return json_object_get(json_array_get(features, (size_t)k), "geometry");
    if (strcmp(json_string_value(json_object_get(document, "type")), "Feature") == 0)
        return geometry;
    return document;
}

/* Asks for all rows. A span's pixels are marked in marks[area]. */
static void walk_rows(struct rfx_areas *areas, bool (*marks)[H][W]) {
    int64_t n, count = rfx_areas_count(areas);
    for (int y = 0; y < H; y++) {
        const struct rfx_area_span *span = rfx_areas_row(areas, &n);
        for (int64_t i = 0; i < n; i++, span++) {
            bool sound = span->area >= 0 && span->area < count && 0 <= span->x0 &&
                         span->x0 < span->x1 && span->x1 <= W;
            if (!sound) fuzz_fail("a span of area %d, %d to %d", span->area, span->x0, span->x1);
            for (int x = span->x0; x < span->x1; x++) {
                if (marks[span->area][y][x]) fuzz_fail("pixel %d, %d comes twice", y, x);
                marks[span->area][y][x] = true;
            }
        }
    }
    for (int64_t k = 0; k < count; k++)
        if (!rfx_areas_is_over(areas, k)) fuzz_fail("area %lld is not over", (long long)k);
}

static void check_pixels(struct rfx_area_list *list, const char *text, size_t size) {
    static bool marks[MOST_AREAS][H][W];
    bool inside[H][W];
    const size_t flags = JSON_DECODE_INT_AS_REAL;
    int64_t count = rfx_areas_count(list->areas);
    if (count > MOST_AREAS) return;
    json_t *document = json_loadb(text, size, flags, NULL);
    if (document == NULL) fuzz_fail("what was read is no JSON");
    json_decref(document);
    memset(marks, 0, (size_t)count * sizeof marks[0]);
    walk_rows(list->areas, marks);
    document = json_loadb(text, size, flags | JSON_REJECT_DUPLICATES, NULL);
    for (int64_t k = 0; k < count && document != NULL; k++) {
        find_pixels(geometry_of(document, k), inside);
        if (memcmp(inside, marks[k], sizeof inside) != 0)
            fuzz_fail("other pixels in area %lld", (long long)k);
    }
    json_decref(document);
}

static enum rfx_status read_areas(const char *path, size_t most,
                                  const struct rfx_answer_text *where, struct rfx_area_list *list) {
    const struct rfx_answer_options options = {.within = path, .most_bytes = most};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, H, W);
    struct rfx_error err = {""};
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    size_t areas;
    enum rfx_status status = rfx_area_list_read(list, mem, &options, where, &map, &err);
    fuzz_check_status(status, &err);
    if (rfx_memory_high_water_bytes(mem) > rfx_area_list_bytes(path, &areas))
        fuzz_fail("%zu bytes", rfx_memory_high_water_bytes(mem));
    if (status != RFX_OK) return status;
    if (most > 0 && list->bytes > most) fuzz_fail("%zu bytes of %zu", list->bytes, most);
    for (int64_t k = 0; k < rfx_areas_count(list->areas); k++) {
        const char *name = rfx_area_name(list, k);
        if (list->titles[k].number != k + 1)
            fuzz_fail("area %lld has another number", (long long)k);
        if (name != NULL && name[0] == '\0') fuzz_fail("area %lld has an empty name", (long long)k);
    }
    return status;
}

static void release(struct rfx_area_list *list) {
    struct rfx_memory *mem = list->mem;
    rfx_area_list_release(list);
    rfx_memory_free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct rfx_answer_text pixels = {.affine = {.x = {1, 0, 0}, .y = {0, 1, 0}}};
    static const struct rfx_answer_text turned = {
        .affine = {.x = {0.3, 0.1, -2}, .y = {0.1, -0.3, 5}}, .mapped = true, .epsg = 25832};
    struct rfx_area_list list;
    const char *path = fuzz_file(data, size);
    enum rfx_status status = read_areas(path, 0, &pixels, &list);
    if (status == RFX_OK) check_pixels(&list, (const char *)data, size);
    release(&list);
    (void)read_areas(path, 4096, &pixels, &list);
    release(&list);
    (void)read_areas(path, 0, &turned, &list);
    release(&list);
    return 0;
}
