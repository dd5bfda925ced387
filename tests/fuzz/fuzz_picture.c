/* Pictures from any bytes: see image_source.h for what must hold. */
#include <stdlib.h>
#include <string.h>

#include "rfexec/image/image_pages.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_BYTES ((size_t)8 << 20)
#define MOST_PIXELS 40000 /* of a picture decoded whole */
enum { MOST_ROWS = 96, MOST_COLS = 96, MOST_CHANNELS = 8 };

/* The ways in which one picture is read. */
struct reading {
    int64_t band_rows; /* at a time */
    int64_t window;    /* rows kept; at least band_rows */
    bool halves;       /* left and right columns by themselves */
};

/* Reads one band into `rows` (cols values of c channels each). */
static enum rfx_status read_band(struct rfx_image *image, struct rfx_rect band, int64_t c,
                                 const struct reading *how, float *rows, struct rfx_error *err) {
    struct rfx_view view = rfx_view_dense(rows, band, c);
    if (!how->halves) return rfx_image_read(image, band, &view, err);
    struct rfx_rect part = band;
    part.x0 = (band.x0 + band.x1) / 2;
    enum rfx_status status = rfx_image_read(image, part, &view, err);
    part = rfx_rect_make(band.y0, band.y1, band.x0, part.x0);
    if (status == RFX_OK && part.x0 < part.x1) status = rfx_image_read(image, part, &view, err);
    return status;
}

/* Reads the picture's first rows and columns; *sum tells their values. */
static enum rfx_status read_all(struct rfx_image *image, const struct reading *how, uint64_t *sum,
                                struct rfx_error *err) {
    struct rfx_source_traits t = rfx_image_traits(image);
    int64_t h = t.h < MOST_ROWS ? t.h : MOST_ROWS, w = t.w < MOST_COLS ? t.w : MOST_COLS;
    size_t count = (size_t)(how->band_rows * w * t.c);
    float *rows = malloc(count * sizeof *rows);
    enum rfx_status status = RFX_OK;
    *sum = 0;
    for (int64_t y = 0; y < h && status == RFX_OK; y += how->band_rows) {
        int64_t end = y + how->band_rows < h ? y + how->band_rows : h;
        status = read_band(image, rfx_rect_make(y, end, 0, w), t.c, how, rows, err);
        if (status == RFX_OK) *sum = fuzz_sum(*sum, rows, (size_t)((end - y) * w * t.c) * 4);
    }
    free(rows);
    return status;
}

/* Opens and reads; 0 where that was refused. */
static uint64_t read_picture(const char *path, int64_t page, int64_t channels,
                             const struct reading *how, enum rfx_status *status) {
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    uint64_t sum = 0, again = 0;
    options.channels = channels;
    options.page = page;
    options.max_pixels = MOST_PIXELS;
    *status = rfx_image_open(mem, path, &options, &image, &err);
    if (*status == RFX_OK && rfx_image_traits(image).c > MOST_CHANNELS) goto done; /* .npy */
    if (*status == RFX_OK) *status = rfx_image_set_window(image, how->window, &err);
    if (*status == RFX_OK) *status = read_all(image, how, &sum, &err);
    if (*status == RFX_OK) {
        if (rfx_image_rewind(image, &err) != RFX_OK ||
            read_all(image, how, &again, &err) != RFX_OK || again != sum)
            fuzz_fail("other values after rewinding: %s", err.text);
    }
done:
    fuzz_check_status(*status, &err);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return sum;
}

void fuzz_picture_at(const char *path) {
    static const struct reading by_bands = {.band_rows = 8, .window = 8},
                                by_halves = {.band_rows = 5, .window = 11, .halves = true};
    enum rfx_status status, other;
    uint64_t sum = read_picture(path, 0, 0, &by_bands, &status);
    if (status != RFX_OK) return; /* what is refused is refused early: once is enough */
    if (read_picture(path, 0, 0, &by_halves, &other) != sum || other != status)
        fuzz_fail("other values in halves: status '%s'", rfx_status_name(other));
    (void)read_picture(path, 0, 3, &by_bands, &other);
    (void)read_picture(path, 0, 1, &by_halves, &other);
}

void fuzz_picture(const uint8_t *data, size_t size) {
    fuzz_picture_at(fuzz_file(data, size));
}

static void count_page(void *user, const struct rfx_image_page *page) {
    int *n = user;
    if (page->number != *n) fuzz_fail("page %d is told as number %d", page->number, *n);
    ++*n;
}

void fuzz_pages_at(const char *path) {
    static const struct reading by_bands = {.band_rows = 8, .window = 8};
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_error err = {""};
    int n = 0;
    enum rfx_status status = rfx_image_pages(mem, path, count_page, &n, &err);
    fuzz_check_status(status, &err);
    rfx_memory_free(mem);
    for (int page = 1; page <= n && page < 5; page++)
        (void)read_picture(path, page, 0, &by_bands, &status);
}

void fuzz_pages(const uint8_t *data, size_t size) {
    fuzz_pages_at(fuzz_file(data, size));
}
