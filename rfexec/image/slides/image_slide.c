/* Slides through OpenSlide: RGB of 8 bits, any rectangle of one level.
 *
 * The level is read in cells of a fixed grid. One row of cells is kept in memory, like a row of
 * tiles of a TIFF. OpenSlide takes positions in whole pixels of level 0, and interpolates where a
 * position is no whole pixel of the level. The fixed grid makes a value depend only on the file and
 * the level, not on the rectangle that is read. If one pixel of the level is a whole number of
 * pixels of level 0, values are the stored ones. Else they are the values that OpenSlide computes
 * for cells that begin at the nearest whole pixel of level 0. Transparent pixels, where the slide
 * has no data, get its background colour, or white if it has none. Invariants: 1. fixed_bytes also
 * bounds the memory that OpenSlide allocates by itself; 2. column x of row y lies in cache row y
 * mod cell_rows, valid if cell_row_of of its column of cells is that row of cells. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "layers/core/checked.h"
#include "layers/core/library.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"
#include "rfexec/image/image_pages.h"

struct rfx_openslide;       /* openslide_t */
struct rfx_openslide_cache; /* openslide_cache_t */

/* OpenSlide, loaded when the first slide is opened: few runs need it, and it loads glib, cairo and
 * SQLite. The members have the names of its functions; the functions of version 3.4 are required,
 * later ones optional. */
struct slide_library {
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
    /* NULL before 4.0; older versions have a cache of OPENSLIDE_CACHE_BYTES */
    struct rfx_openslide_cache *(*openslide_cache_create)(size_t bytes);
    void (*openslide_set_cache)(struct rfx_openslide *slide, struct rfx_openslide_cache *cache);
    void (*openslide_cache_release)(struct rfx_openslide_cache *cache);
};

/* Size of OpenSlide's cache of decoded tiles. */
#define OPENSLIDE_CACHE_BYTES ((size_t)32 << 20)

#define FUNCTION(name, optional) \
    { #name, offsetof(struct slide_library, name), optional }
static const struct rfx_library_function functions[] = {
    FUNCTION(openslide_open, false),
    FUNCTION(openslide_close, false),
    FUNCTION(openslide_get_error, false),
    FUNCTION(openslide_get_level_count, false),
    FUNCTION(openslide_get_level_dimensions, false),
    FUNCTION(openslide_get_level_downsample, false),
    FUNCTION(openslide_get_property_value, false),
    FUNCTION(openslide_read_region, false),
    FUNCTION(openslide_cache_create, true),
    FUNCTION(openslide_set_cache, true),
    FUNCTION(openslide_cache_release, true),
};
#define COUNT (sizeof functions / sizeof functions[0])
_Static_assert(COUNT == sizeof(struct slide_library) / sizeof(void (*)(void)),
               "every member has a row");

/* Loads OpenSlide 4.x, or else 3.4, which only lacks optional functions. IO, with the package to
 * install: this system has neither. */
static enum rfx_status load_library(struct slide_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libopenslide.so.1", functions, COUNT, lib, NULL);
    if (status != RFX_OK)
        status = rfx_library_load("libopenslide.so.0", functions, COUNT, lib, err);
    if (status == RFX_OK) return RFX_OK;
    return rfx_fail_within(err, status,
                           "slides are read by OpenSlide (Debian's package libopenslide0); what is "
                           "a TIFF file too is read without it under a name that ends in .tif");
}

#define CHANNELS 3
#define USUAL_SIDE 256 /* side of cells if the slide does not give the size of its tiles */
#define LEAST_ROWS 16
#define MOST_SIDE 1024
/* Bytes of a row of cells, if it has more than LEAST_ROWS rows. */
#define CACHE_BYTES ((int64_t)16 << 20)

/* Memory of OpenSlide's and its libraries' own state, and of tiles that are being decoded.
 * test_cli_inputs checks it against the kernel's measurement. With 3.4, libtiff may print messages
 * to standard error. */
#define STATE_BYTES ((size_t)16 << 20)
#define TILES_IN_WORK 6
#define TABLE_BYTES 32 /* bytes for each tile of the file */

struct slide_source {
    struct rfx_image_backend base;
    struct rfx_image_file file; /* checked before OpenSlide opens it by its name */
    struct slide_library lib;
    struct rfx_openslide *slide;
    int32_t n_levels, level;
    double downsample;
    unsigned background[CHANNELS];
    int64_t cell_rows, cell_cols, n_across;
    uint32_t *cell;       /* a cell as OpenSlide delivers it */
    unsigned char *cache; /* one row of cells; NULL: not allocated */
    /* for each column of cells: the row of cells that the cache has; -1: none */
    int64_t *cell_row_of;
};

static struct slide_source *self_of(struct rfx_image_backend *b) {
    return (struct slide_source *)(void *)b;
}

/* Writes a pixel, whose colour is multiplied by its opacity, over the background. */
static void put_pixel(const struct slide_source *s, uint32_t argb, unsigned char *to) {
    unsigned alpha = argb >> 24;
    for (int c = 0; c < CHANNELS; c++) {
        unsigned v = argb >> (16 - 8 * c) & 255;
        if (alpha < 255) v += (s->background[c] * (255 - alpha) + 127) / 255;
        to[c] = (unsigned char)(v < 255 ? v : 255);
    }
}

/* Reads the cell that contains (y, x) into the cache. */
static enum rfx_status read_cell(struct slide_source *s, int64_t y, int64_t x,
                                 struct rfx_error *err) {
    const int64_t row = y / s->cell_rows, column = x / s->cell_cols;
    const int64_t y0 = row * s->cell_rows, x0 = column * s->cell_cols;
    const int64_t rows = rfx_min_i64(s->cell_rows, s->base.h - y0);
    const int64_t cols = rfx_min_i64(s->cell_cols, s->base.w - x0);
    s->cell_row_of[column] = -1;
    s->lib.openslide_read_region(s->slide, s->cell, llround((double)x0 * s->downsample),
                                 llround((double)y0 * s->downsample), s->level, cols, rows);
    const char *words = s->lib.openslide_get_error(s->slide);
    if (words != NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: row %" PRId64 " of %" PRId64 ": %s",
                        s->base.name, y, s->base.h, words);
    for (int64_t i = 0; i < rows; i++) {
        unsigned char *to = s->cache + (i * s->base.w + x0) * CHANNELS;
        const uint32_t *from = s->cell + i * cols;
        for (int64_t k = 0; k < cols; k++) put_pixel(s, from[k], to + k * CHANNELS);
    }
    s->cell_row_of[column] = row;
    return RFX_OK;
}

static size_t cell_bytes(const struct slide_source *s) {
    return (size_t)(s->cell_rows * s->cell_cols) * sizeof *s->cell;
}

static size_t cache_bytes(const struct slide_source *s) {
    return (size_t)(s->cell_rows * s->base.w * CHANNELS);
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct slide_source *s = self_of(b);
    size_t across = (size_t)s->n_across * sizeof *s->cell_row_of;
    (void)rows;
    if (s->cache != NULL) return RFX_OK;
    s->cell = rfx_memory_alloc(b->mem, cell_bytes(s));
    s->cell_row_of = rfx_memory_alloc(b->mem, across);
    if (s->cell != NULL && s->cell_row_of != NULL)
        s->cache = rfx_memory_alloc(b->mem, cache_bytes(s));
    if (s->cache == NULL) {
        rfx_memory_release(b->mem, s->cell);
        rfx_memory_release(b->mem, s->cell_row_of);
        s->cell = NULL;
        s->cell_row_of = NULL;
        return rfx_memory_fail(b->mem, b->name, cell_bytes(s) + across + cache_bytes(s), err);
    }
    for (int64_t i = 0; i < s->n_across; i++) s->cell_row_of[i] = -1;
    return RFX_OK;
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct slide_source *s = self_of(b);
    enum rfx_status status = RFX_OK;
    (void)room;
    if (s->cache == NULL) status = source_set_window(b, 1, err);
    if (status != RFX_OK) return status;
    const int64_t column = x0 / s->cell_cols;
    if (s->cell_row_of[column] != y / s->cell_rows) status = read_cell(s, y, x0, err);
    *samples = s->cache + (y % s->cell_rows * b->w + x0) * CHANNELS;
    *end = rfx_min_i64(x1, (column + 1) * s->cell_cols);
    return status;
}

static void source_free(struct rfx_image_backend *b) {
    struct slide_source *s = self_of(b);
    if (s->slide != NULL) s->lib.openslide_close(s->slide);
    rfx_memory_release(b->mem, s->cell);
    rfx_memory_release(b->mem, s->cache);
    rfx_memory_release(b->mem, s->cell_row_of);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {
    .set_window = source_set_window, .fetch = source_fetch, .free = source_free};

/* Returns the rows or columns of a level's tiles; 0: the slide does not give them. */
static int64_t tile_side(const struct slide_source *s, int32_t level, const char *side) {
    char name[64];
    (void)snprintf(name, sizeof name, "openslide.level[%" PRId32 "].tile-%s", level, side);
    const char *text = s->lib.openslide_get_property_value(s->slide, name);
    return text == NULL ? 0 : strtol(text, NULL, 10);
}

static void settle_cells(struct slide_source *s) {
    int64_t rows = tile_side(s, s->level, "height"), cols = tile_side(s, s->level, "width");
    s->cell_rows = rows >= LEAST_ROWS && rows <= MOST_SIDE ? rows : USUAL_SIDE;
    s->cell_cols = cols >= LEAST_ROWS && cols <= MOST_SIDE ? cols : USUAL_SIDE;
    while (s->cell_rows >= 2 * LEAST_ROWS && s->cell_rows * s->base.w * CHANNELS > CACHE_BYTES)
        s->cell_rows /= 2;
    s->n_across = rfx_ceil_div(s->base.w, s->cell_cols);
}

/* Returns the memory of the source and of OpenSlide; no overflow, see RFX_IMAGE_MAX_SIDE. */
static size_t count_bytes(const struct slide_source *s) {
    size_t bytes = sizeof *s + cell_bytes(s) + cache_bytes(s) + OPENSLIDE_CACHE_BYTES + STATE_BYTES;
    bytes += (size_t)s->n_across * sizeof *s->cell_row_of;
    for (int32_t level = 0; level < s->n_levels; level++) {
        int64_t w = 0, h = 0, rows = tile_side(s, level, "height");
        int64_t cols = tile_side(s, level, "width");
        s->lib.openslide_get_level_dimensions(s->slide, level, &w, &h);
        if (rows < 1 || rows > RFX_IMAGE_MAX_SIDE) rows = USUAL_SIDE;
        if (cols < 1 || cols > RFX_IMAGE_MAX_SIDE) cols = USUAL_SIDE;
        bytes += (size_t)(rfx_ceil_div(h, rows) * rfx_ceil_div(w, cols)) * TABLE_BYTES;
        if (level == s->level) bytes += (size_t)(rows * cols) * sizeof(uint32_t) * TILES_IN_WORK;
    }
    return bytes;
}

static void settle_background(struct slide_source *s) {
    const char *text = s->lib.openslide_get_property_value(s->slide, "openslide.background-color");
    unsigned long colour = text != NULL ? strtoul(text, NULL, 16) : 0xffffff;
    for (int c = 0; c < CHANNELS; c++) s->background[c] = (unsigned)(colour >> (16 - 8 * c) & 255);
}

/* Opens the file and reads its levels. */
static enum rfx_status open_slide(struct slide_source *s, struct rfx_error *err) {
    const char *name = s->base.name;
    enum rfx_status status = rfx_image_file_open(&s->file, name, err);
    if (status != RFX_OK) return status;
    rfx_image_file_close(&s->file);
    status = load_library(&s->lib, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", name);
    s->slide = s->lib.openslide_open(name);
    if (s->slide == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: not a slide that OpenSlide reads (a TIFF must be in tiles)", name);
    const char *words = s->lib.openslide_get_error(s->slide);
    if (words != NULL) return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: OpenSlide: %s", name, words);
    s->n_levels = s->lib.openslide_get_level_count(s->slide);
    if (s->lib.openslide_cache_create != NULL && s->lib.openslide_set_cache != NULL &&
        s->lib.openslide_cache_release != NULL) {
        struct rfx_openslide_cache *cache = s->lib.openslide_cache_create(OPENSLIDE_CACHE_BYTES);
        s->lib.openslide_set_cache(s->slide, cache);
        s->lib.openslide_cache_release(cache); /* the slide keeps the cache */
    }
    return RFX_OK;
}

static enum rfx_status fail_level(const struct slide_source *s, int64_t level,
                                  struct rfx_error *err) {
    char names[200] = "";
    size_t length = 0;
    for (int32_t i = 0; i < s->n_levels && length + 40 < sizeof names; i++) {
        int64_t w = 0, h = 0;
        s->lib.openslide_get_level_dimensions(s->slide, i, &w, &h);
        int more = snprintf(names + length, sizeof names - length, "%s%d: %" PRId64 "x%" PRId64,
                            i > 0 ? "; " : "", (int)i, h, w);
        length += (size_t)more;
    }
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%s: level %" PRId64 " of %d ('rfexec info' lists them): %s", s->base.name,
                    level, (int)s->n_levels, names);
}

/* Sets the size of pixels: that of level 0 times the downsample, if the slide has both. */
static void settle_pixel_size(struct slide_source *s) {
    static const char *const names[] = {"openslide.mpp-x", "openslide.mpp-y"};
    double um[2];
    for (int i = 0; i < 2; i++) {
        const char *text = s->lib.openslide_get_property_value(s->slide, names[i]);
        um[i] = text == NULL ? 0.0 : strtod(text, NULL) * s->downsample;
        if (!(um[i] > 0.0 && isfinite(um[i]))) return;
    }
    memcpy(s->base.pixel_um, um, sizeof um);
}

static enum rfx_status settle(struct slide_source *s, int64_t level, struct rfx_error *err) {
    if (level >= s->n_levels) return fail_level(s, level, err);
    s->level = (int32_t)level;
    s->lib.openslide_get_level_dimensions(s->slide, s->level, &s->base.w, &s->base.h);
    s->downsample = s->lib.openslide_get_level_downsample(s->slide, s->level);
    bool sides_ok = s->base.h >= 1 && s->base.w >= 1 && s->base.h <= RFX_IMAGE_MAX_SIDE &&
                    s->base.w <= RFX_IMAGE_MAX_SIDE;
    if (!sides_ok || !(s->downsample >= 1.0 && s->downsample <= RFX_IMAGE_MAX_SIDE))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s: level %d of %" PRId64 " x %" PRId64
                        " pixels, each of %g of level 0; 1 to %d of each are read",
                        s->base.name, (int)s->level, s->base.h, s->base.w, s->downsample,
                        RFX_IMAGE_MAX_SIDE);
    s->base.c = CHANNELS;
    s->base.sample_bits = 8;
    s->base.random_access = true;
    settle_cells(s);
    settle_background(s);
    settle_pixel_size(s);
    s->base.fixed_bytes = count_bytes(s);
    return RFX_OK;
}

/* Opens a slide, without choosing a level. */
static enum rfx_status make(struct rfx_memory *mem, const char *name,
                            struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b;
    enum rfx_status status = rfx_image_backend_create(mem, sizeof(struct slide_source), &source_ops,
                                                      name, "slide", &b, err);
    if (status != RFX_OK) return status;
    self_of(b)->file.fd = -1;
    return rfx_image_backend_finish(b, open_slide(self_of(b), err), out);
}

enum rfx_status rfx_image_slide_open(struct rfx_memory *mem, const char *name,
                                     const struct rfx_image_options *options,
                                     struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b;
    if (options->bands != NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: --channels chooses bands of TIFF and .npy files, not of slides", name);
    enum rfx_status status = make(mem, name, &b, err);
    if (status != RFX_OK) return status;
    return rfx_image_backend_finish(b, settle(self_of(b), options->page, err), out);
}

enum rfx_status rfx_image_slide_levels(struct rfx_memory *mem, const char *name,
                                       rfx_image_page_fn *fn, void *user, struct rfx_error *err) {
    struct rfx_image_backend *b;
    enum rfx_status status = make(mem, name, &b, err);
    if (status != RFX_OK) return status;
    struct slide_source *s = self_of(b);
    for (int32_t level = 0; level < s->n_levels; level++) {
        struct rfx_image_page page = {.number = level,
                                      .parent = -1,
                                      .kind = s->base.kind,
                                      .bands = CHANNELS,
                                      .bits = 8,
                                      .type = "unsigned",
                                      .reduced = level > 0,
                                      .orientation = 1};
        if (settle(s, level, &page.refusal) == RFX_OK) page.refusal.text[0] = '\0';
        s->lib.openslide_get_level_dimensions(s->slide, level, &page.w, &page.h);
        page.tile_h = tile_side(s, level, "height");
        page.tile_w = tile_side(s, level, "width");
        fn(user, &page);
    }
    source_free(b);
    return RFX_OK;
}
