/* Compares a run of the whole picture with tiles whose norms are local, see local_tiles.h.
 *
 *     rfx-compare-tiles MODEL PICTURE.png MAP.npy [--tile PIXELS] [--halo PIXELS]
 *                       [--truth MASK.png] [--figure OUT.png]
 *
 * MAP.npy is what `rfexec run MODEL PICTURE.png` gives: probabilities of three phases for every
 * second row and column. Prints the largest difference and the share of pixels that change their
 * label, the most probable phase; with --truth the share of right labels of both. The figure has
 * the picture, its labels, those of the tiles, and the pixels that are not the same in red. Exit
 * codes: 0 done, 2 usage, 3 a file cannot be read, written or run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/demo_support.h"
#include "tools/demo/local_tiles.h"
#include "tools/demo/micrograph.h"
#include "tools/demo/phase_map.h"

#define STRIDE 2 /* of the map of data/phase_net.onnx */
#define GRID                                                                            \
    8 /* stride of the coarsest level: other tiles would differ in more than statistics \
       */
#define FIGURE_SIDE 420
#define FIGURE_GAP 8
#define PANELS 4

struct options {
    const char *model, *image, *map, *truth, *figure;
    int64_t tile, halo;
};

static int usage(void) {
    fprintf(stderr,
            "usage: rfx-compare-tiles MODEL PICTURE.png MAP.npy [--tile PIXELS]\n"
            "                         [--halo PIXELS] [--truth MASK.png] [--figure OUT.png]\n");
    return 2;
}

static int parse_options(int argc, char **argv, struct options *o) {
    *o = (struct options){.tile = 1024, .halo = 64};
    const struct demo_option options[] = {{"--tile", DEMO_WHOLE, &o->tile},
                                          {"--halo", DEMO_WHOLE, &o->halo},
                                          {"--truth", DEMO_TEXT, &o->truth},
                                          {"--figure", DEMO_TEXT, &o->figure}};
    if (argc < 4 || demo_read_options(argc - 4, argv + 4, options, 4) != 0) return -1;
    o->model = argv[1];
    o->image = argv[2];
    o->map = argv[3];
    if (o->tile % GRID != 0 || o->halo % GRID != 0) {
        fprintf(stderr, "tiles and halos must be multiples of %d pixels\n", GRID);
        return -1;
    }
    return o->tile >= 64 && o->tile <= 100000 && o->halo >= 0 && o->halo <= 100000 ? 0 : -1;
}

/* What is compared, on the grid of the map. */
struct comparison {
    int64_t h, w;
    uint8_t *whole, *tiles, *truth; /* labels [h, w]; truth: NULL when there is none */
};

static uint8_t *labels_of(const float *map, int64_t pixels) {
    uint8_t *label = malloc((size_t)pixels);
    for (int64_t i = 0; label && i < pixels; i++) {
        label[i] = 0;
        for (int k = 1; k < PHASES; k++)
            if (map[k * pixels + i] > map[label[i] * pixels + i]) label[i] = (uint8_t)k;
    }
    if (!label) fprintf(stderr, "out of memory for labels\n");
    return label;
}

/* The mask's phase for each pixel of the map. */
static int read_truth(const char *path, struct comparison *c) {
    int64_t h, w;
    struct png_rows *png = demo_png_open(path, &h, &w);
    if (!png) return -1;
    uint8_t *row = malloc(3 * (size_t)w);
    c->truth = malloc((size_t)(c->h * c->w));
    int status = row && c->truth ? 0 : -1;
    if (status == 0 && ((h + STRIDE - 1) / STRIDE != c->h || (w + STRIDE - 1) / STRIDE != c->w)) {
        fprintf(stderr, "%s: not of the picture's size\n", path);
        status = -1;
    }
    for (int64_t y = 0; y < h && status == 0; y++) {
        status = demo_png_read_row(png, row);
        if (y % STRIDE != 0) continue;
        for (int64_t x = 0; x < c->w; x++) c->truth[y / STRIDE * c->w + x] = row[3 * STRIDE * x];
    }
    free(row);
    demo_png_close(png);
    return status;
}

static double share(const uint8_t *a, const uint8_t *b, int64_t pixels) {
    int64_t same = 0;
    for (int64_t i = 0; i < pixels; i++) same += a[i] == b[i];
    return (double)same / (double)pixels;
}

static void print_result(const struct comparison *c, const struct local_tiles *t,
                         const float *whole, const float *tiles) {
    int64_t pixels = c->h * c->w;
    float largest = 0.0f;
    for (int64_t i = 0; i < PHASES * pixels; i++) {
        float difference = fabsf(whole[i] - tiles[i]);
        if (difference > largest) largest = difference;
    }
    printf("tiles      %" PRId64 " of %" PRId64 "x%" PRId64 " pixels, halo %" PRId64
           ", statistics of their own: largest error %.4f, %.2f %% of the labels changed\n",
           t->count, t->tile, t->tile, t->halo, (double)largest,
           100.0 * (1.0 - share(c->whole, c->tiles, pixels)));
    if (!c->truth) return;
    printf(
        "truth      %.2f %% of the labels right by the whole picture's statistics, %.2f %% by "
        "those of tiles\n",
        100.0 * share(c->whole, c->truth, pixels), 100.0 * share(c->tiles, c->truth, pixels));
}

/* Sets figure pixel (y, x) in all panels; `at` is its place in the map. */
static void put_pixel(const struct comparison *c, const float *value, const float range[2],
                      int64_t at, int64_t panel_px, uint8_t *rgb) {
    static const uint8_t colours[PHASES][3] = {{38, 52, 105}, {42, 157, 143}, {240, 190, 90}};
    static const uint8_t red[3] = {205, 40, 40}, pale[3] = {232, 232, 232};
    float grey = 255.0f * (*value - range[0]) / (range[1] - range[0]);
    uint8_t level = grey < 0.0f ? 0 : grey > 255.0f ? 255 : (uint8_t)(8 * (int)(grey / 8.0f));
    memset(rgb, level, 3);
    memcpy(rgb + 3 * panel_px, colours[c->whole[at]], 3);
    memcpy(rgb + 6 * panel_px, colours[c->tiles[at]], 3);
    memcpy(rgb + 9 * panel_px, c->whole[at] == c->tiles[at] ? pale : red, 3);
}

/* Writes four panels side by side with every step-th pixel of the map; the image is averaged. */
static int write_figure(const char *path, const struct comparison *c, const float *values,
                        int64_t w) {
    int64_t step = ((c->h > c->w ? c->h : c->w) + FIGURE_SIDE - 1) / FIGURE_SIDE;
    int64_t fh = c->h / step, fw = c->w / step, panel = fw + FIGURE_GAP, px = step * STRIDE;
    int64_t row_px = PANELS * panel - FIGURE_GAP;
    uint8_t *rgb = malloc(3 * (size_t)row_px);
    float *mean = malloc((size_t)(fh * fw) * sizeof *mean), range[2] = {INFINITY, -INFINITY};
    struct png_rows *png = rgb && mean ? demo_png_create(path, fh, row_px, 3) : NULL;
    int status = png ? 0 : -1;
    for (int64_t i = 0; i < fh * fw && status == 0; i++) {
        const float *from = values + i / fw * px * w + i % fw * px;
        double sum = 0.0;
        int64_t rows = px - STRIDE + 1; /* inside the picture, whose sides may be odd */
        for (int64_t k = 0; k < rows * rows; k++) sum += from[k / rows * w + k % rows];
        mean[i] = (float)(sum / (double)(rows * rows));
        range[0] = fminf(range[0], mean[i]);
        range[1] = fmaxf(range[1], mean[i]);
    }
    range[1] = range[1] > range[0] ? range[1] : range[0] + 1.0f;
    for (int64_t y = 0; y < fh && status == 0; y++) {
        memset(rgb, 255, 3 * (size_t)row_px);
        for (int64_t x = 0; x < fw; x++)
            put_pixel(c, mean + y * fw + x, range, y * step * c->w + x * step, panel, rgb + 3 * x);
        status = demo_png_write_row(png, rgb);
    }
    if (demo_png_close(png) != 0) status = -1;
    free(mean);
    free(rgb);
    return status;
}

static int compare(const struct options *o, const struct phase_map *whole, const float *values,
                   int64_t h, int64_t w) {
    struct local_tiles t = {.model = o->model, .stride = STRIDE, .tile = o->tile, .halo = o->halo};
    struct comparison c = {.h = whole->h, .w = whole->w};
    float *tiles = NULL;
    int status = demo_local_tiles_run(&t, values, h, w, &tiles);
    if (status == 0 && (t.c != PHASES || t.h != c.h || t.w != c.w)) {
        fprintf(stderr, "%s: not the map of this picture\n", o->map);
        status = -1;
    }
    if (status == 0) {
        c.whole = labels_of(whole->value, c.h * c.w);
        c.tiles = labels_of(tiles, c.h * c.w);
        status = c.whole && c.tiles ? 0 : -1;
    }
    if (status == 0 && o->truth) status = read_truth(o->truth, &c);
    if (status == 0) print_result(&c, &t, whole->value, tiles);
    if (status == 0 && o->figure) status = write_figure(o->figure, &c, values, w);
    free(c.truth);
    free(c.tiles);
    free(c.whole);
    free(tiles);
    return status;
}

int main(int argc, char **argv) {
    struct options o;
    struct phase_map whole = {0};
    float *values = NULL;
    int64_t h, w;
    int status = -1;
    if (parse_options(argc, argv, &o) != 0) return usage();
    if (demo_phase_map_read(o.map, &whole) == 0 && demo_read_values(o.image, &h, &w, &values) == 0)
        status = compare(&o, &whole, values, h, w);
    free(values);
    demo_phase_map_free(&whole);
    return status == 0 ? 0 : 3;
}
