#include "tools/demo/local_tiles.h"

#include <inttypes.h>
#include <rfexec/rfexec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/image/image_source.h"

#define BAND_ROWS 64

static int read_bands(struct rfx_image *image, int64_t h, int64_t w, float *values,
                      struct rfx_error *err) {
    struct rfx_tensor map = {.c = 1, .h = h, .w = w, .elems = h * w};
    struct rfx_view view = rfx_view_of(&map, values, (struct rfx_rect){0, h, 0, w});
    enum rfx_status status = rfx_image_set_window(image, BAND_ROWS, err);
    for (int64_t y = 0; y < h && status == RFX_OK; y += BAND_ROWS) {
        struct rfx_rect band = {y, y + BAND_ROWS < h ? y + BAND_ROWS : h, 0, w};
        status = rfx_image_read(image, band, &view, err);
    }
    return status == RFX_OK ? 0 : -1;
}

int demo_read_values(const char *path, int64_t *h, int64_t *w, float **values) {
    struct rfx_error err = {0};
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    float *made = NULL;
    int status = -1;
    options.channels = 1;
    if (mem && rfx_image_open(mem, path, &options, &image, &err) == RFX_OK) {
        struct rfx_source_traits traits = rfx_image_traits(image);
        *h = traits.h;
        *w = traits.w;
        made = malloc((size_t)traits.h * (size_t)traits.w * sizeof *made);
        if (made) status = read_bands(image, traits.h, traits.w, made, &err);
    }
    if (status != 0) {
        fprintf(stderr, "%s\n", err.text[0] ? err.text : "out of memory for the picture");
        free(made);
    } else {
        *values = made;
    }
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status;
}

/* A tile: pixels [y0, y1) x [x0, x1). */
struct cut {
    int64_t y0, y1, x0, x1;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static struct cut with_halo(struct cut inner, int64_t halo, int64_t h, int64_t w) {
    return (struct cut){inner.y0 > halo ? inner.y0 - halo : 0, least(inner.y1 + halo, h),
                        inner.x0 > halo ? inner.x0 - halo : 0, least(inner.x1 + halo, w)};
}

/* Opens a network of the tile's size. */
static int open_network(const struct local_tiles *t, struct cut cut, struct rfx_network **net,
                        int64_t dims[RFX_MAX_DIMS]) {
    struct rfx_why why = {""};
    struct rfx_open_options open;
    rfx_open_options_init(&open, sizeof open);
    open.rows = cut.y1 - cut.y0;
    open.columns = cut.x1 - cut.x0;
    if (rfx_network_open(t->model, &open, net, &why) != RFX_CODE_OK) {
        fprintf(stderr, "%s\n", why.text);
        return -1;
    }
    if (rfx_network_output_count(*net) != 1 || rfx_network_output_shape(*net, 0, dims) != 4 ||
        dims[2] != (open.rows + t->stride - 1) / t->stride ||
        dims[3] != (open.columns + t->stride - 1) / t->stride) {
        fprintf(stderr, "%s: the output is not one map of stride %" PRId64 "\n", t->model,
                t->stride);
        rfx_network_free(*net);
        return -1;
    }
    return 0;
}

/* Copies the tile without its halo into the whole map. */
static void stitch(const struct local_tiles *t, const float *from, struct cut outer,
                   struct cut inner, float *map) {
    int64_t s = t->stride, fh = (outer.y1 - outer.y0 + s - 1) / s;
    int64_t fw = (outer.x1 - outer.x0 + s - 1) / s, y1 = (inner.y1 + s - 1) / s;
    int64_t x0 = inner.x0 / s, x1 = (inner.x1 + s - 1) / s;
    for (int64_t c = 0; c < t->c; c++)
        for (int64_t y = inner.y0 / s; y < y1; y++)
            memcpy(map + (c * t->h + y) * t->w + x0,
                   from + (c * fh + y - outer.y0 / s) * fw + x0 - outer.x0 / s,
                   (size_t)(x1 - x0) * sizeof *map);
}

static int run_tile(const struct local_tiles *t, const float *values, int64_t w, struct cut outer,
                    float *out) {
    struct rfx_why why = {""};
    struct rfx_network *net = NULL;
    int64_t dims[RFX_MAX_DIMS];
    struct rfx_source source = {.size = sizeof source,
                                .values = values + outer.y0 * w + outer.x0,
                                .row_step = w,
                                .column_step = 1}; /* every channel reads the same values */
    if (open_network(t, outer, &net, dims) != 0) return -1;
    enum rfx_code code = RFX_CODE_REFUSED;
    if (dims[1] == t->c)
        code = rfx_network_run_source(net, &source, &out, 1, NULL, &why);
    else
        (void)snprintf(why.text, sizeof why.text, "%s: another network at this size", t->model);
    if (code != RFX_CODE_OK) fprintf(stderr, "%s\n", why.text);
    rfx_network_free(net);
    return code == RFX_CODE_OK ? 0 : -1;
}

/* Finds the shape of the map, for the image as one tile. */
static int find_shape(struct local_tiles *t, int64_t h, int64_t w) {
    struct rfx_network *net = NULL;
    int64_t dims[RFX_MAX_DIMS];
    if (open_network(t, (struct cut){0, h, 0, w}, &net, dims) != 0) return -1;
    rfx_network_free(net);
    t->c = dims[1];
    t->h = dims[2];
    t->w = dims[3];
    t->count = 0;
    return 0;
}

int demo_local_tiles_run(struct local_tiles *t, const float *values, int64_t h, int64_t w,
                         float **map) {
    if (t->tile < 1 || t->halo < 0 || t->tile % t->stride != 0 || t->halo % t->stride != 0) {
        fprintf(stderr, "tiles and halos must be multiples of %" PRId64 "\n", t->stride);
        return -1;
    }
    if (find_shape(t, h, w) != 0) return -1;
    int64_t side = t->tile + 2 * t->halo;
    size_t most = (size_t)((least(side, h) / t->stride + 1) * (least(side, w) / t->stride + 1));
    float *made = malloc((size_t)(t->c * t->h * t->w) * sizeof *made);
    float *part = malloc((size_t)t->c * most * sizeof *part);
    int status = made && part ? 0 : -1;
    if (status != 0) fprintf(stderr, "out of memory for the tiles' map\n");
    for (int64_t y = 0; y < h && status == 0; y += t->tile) {
        for (int64_t x = 0; x < w && status == 0; x += t->tile) {
            struct cut inner = {y, least(y + t->tile, h), x, least(x + t->tile, w)};
            struct cut outer = with_halo(inner, t->halo, h, w);
            status = run_tile(t, values, w, outer, part);
            if (status != 0) break;
            stitch(t, part, outer, inner, made);
            t->count++;
        }
    }
    free(part);
    if (status != 0) {
        free(made);
        return -1;
    }
    *map = made;
    return 0;
}
