/* Scores the regions of the detector's output against the truth of a made inspection picture.
 *
 *     rfx-score-defects REGIONS.csv TRUTH.csv [--require SHARE] [--list N]
 *                       [--image IN.png --overlay OUT.png [--side PIXELS]]
 *
 * Prints the first N regions, each with the defect that it belongs to. Then prints for each kind of
 * defect how many were planted, found and missed, and how many regions match no defect (defects.h).
 * Exit codes: 0 done, 1 a smaller share than --require was found, 2 usage, 3 a file cannot be read
 * or written. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/defects.h"
#include "tools/demo/demo_support.h"
#include "tools/demo/marks.h"

#define BOX_MARGIN_PX 3 /* between a box and what it is about, in overlay pixels */

struct canvas {
    int64_t h, w, factor; /* overlay pixels; picture pixels per overlay pixel */
    uint8_t *rgb;
};

static const uint8_t green[3] = {40, 230, 70}, red[3] = {255, 40, 40}, yellow[3] = {255, 225, 0};

/* Averages factor x factor pixels; what is left over at the right and bottom edges is cut off. */
static int shrink(struct png_rows *png, int64_t full_w, struct canvas *c) {
    size_t samples = 3 * (size_t)c->w;
    uint8_t *row = malloc(3 * (size_t)full_w);
    uint32_t *sum = malloc(samples * sizeof *sum);
    int status = row && sum ? 0 : -1;
    if (status != 0) fprintf(stderr, "out of memory for the overlay\n");
    for (int64_t y = 0; y < c->h * c->factor && status == 0; y++) {
        if (y % c->factor == 0) memset(sum, 0, samples * sizeof *sum);
        status = demo_png_read_row(png, row);
        for (int64_t x = 0; x < c->w * c->factor; x++) {
            uint32_t *to = sum + 3 * (x / c->factor);
            for (int k = 0; k < 3; k++) to[k] += row[3 * x + k];
        }
        if ((y + 1) % c->factor != 0) continue;
        uint8_t *to = c->rgb + (size_t)(y / c->factor) * samples;
        uint32_t area = (uint32_t)(c->factor * c->factor);
        for (size_t i = 0; i < samples; i++) to[i] = (uint8_t)((sum[i] + area / 2) / area);
    }
    free(sum);
    free(row);
    return status;
}

static void put(const struct canvas *c, int64_t y, int64_t x, const uint8_t colour[3]) {
    if (y < 0 || x < 0 || y >= c->h || x >= c->w) return;
    memcpy(c->rgb + 3 * (y * c->w + x), colour, 3);
}

/* Draws a frame two pixels thick round picture rows [y0, y1) and columns [x0, x1). */
static void draw_box(const struct canvas *c, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                     const uint8_t colour[3]) {
    for (int thick = 0; thick < 2; thick++) {
        int64_t more = BOX_MARGIN_PX + thick;
        int64_t top = y0 / c->factor - more, bottom = (y1 - 1) / c->factor + more;
        int64_t left = x0 / c->factor - more, right = (x1 - 1) / c->factor + more;
        for (int64_t x = left; x <= right; x++) {
            put(c, top, x, colour);
            put(c, bottom, x, colour);
        }
        for (int64_t y = top; y <= bottom; y++) {
            put(c, y, left, colour);
            put(c, y, right, colour);
        }
    }
}

static void draw_boxes(const struct canvas *c, const struct truth *truth,
                       const struct found_regions *regions) {
    for (size_t i = 0; i < truth->count; i++) {
        const struct true_defect *d = &truth->defect[i];
        draw_box(c, d->y0, d->y1, d->x0, d->x1, d->found ? green : red);
    }
    for (size_t i = 0; i < regions->count; i++) {
        const struct found_region *r = &regions->region[i];
        if (r->truth >= 0) continue;
        draw_box(c, (int64_t)floor(r->top), (int64_t)ceil(r->bottom), (int64_t)floor(r->left),
                 (int64_t)ceil(r->right), yellow);
    }
}

static int write_canvas(const struct canvas *c, const char *path) {
    struct png_rows *png = demo_png_create(path, c->h, c->w, 3);
    if (!png) return -1;
    int status = 0;
    for (int64_t y = 0; y < c->h && status == 0; y++) {
        status = demo_png_write_row(png, c->rgb + 3 * y * c->w);
    }
    return demo_png_close(png) == 0 ? status : -1;
}

/* Reads `image` row by row and writes `path` with sides of at most `max_side` pixels. 0, or -1
 * after printing the reason. */
static int overlay_write(const char *image, const char *path, int64_t max_side,
                         const struct truth *truth, const struct found_regions *regions) {
    int64_t h, w;
    int status = -1;
    struct png_rows *png = demo_png_open(image, &h, &w);
    if (!png) return -1;
    int64_t side = h > w ? h : w;
    struct canvas c = {.factor = (side + max_side - 1) / max_side};
    if (h < c.factor || w < c.factor) {
        fprintf(stderr, "%s: too narrow for an overlay\n", image);
        goto done;
    }
    c.h = h / c.factor;
    c.w = w / c.factor;
    c.rgb = malloc(3 * (size_t)c.h * (size_t)c.w);
    if (!c.rgb) {
        fprintf(stderr, "out of memory for the overlay\n");
        goto done;
    }
    if (shrink(png, w, &c) != 0) goto done;
    draw_boxes(&c, truth, regions);
    status = write_canvas(&c, path);
done:
    free(c.rgb);
    demo_png_close(png);
    return status;
}

#define CELL_PX 8 /* output stride of data/defect_net.onnx */

/* Regions of fewer cells are left out: a scratch is at least 48 px long, a stain 36 px wide. */
static const int least_cells[DEFECT_KINDS] = {2, 1, 4};

struct options {
    const char *regions, *truth, *image, *overlay;
    double require;
    int64_t side, listed;
};

static int usage(void) {
    fprintf(stderr,
            "usage: rfx-score-defects REGIONS.csv TRUTH.csv [--require SHARE] [--list N]\n"
            "                         [--image IN.png --overlay OUT.png [--side PIXELS]]\n");
    return 2;
}

static int parse_options(int argc, char **argv, struct options *o) {
    *o = (struct options){.side = 1500};
    const struct demo_option options[] = {{"--require", DEMO_REAL, &o->require},
                                          {"--side", DEMO_WHOLE, &o->side},
                                          {"--list", DEMO_WHOLE, &o->listed},
                                          {"--image", DEMO_TEXT, &o->image},
                                          {"--overlay", DEMO_TEXT, &o->overlay}};
    if (argc < 3 || demo_read_options(argc - 3, argv + 3, options, 5) != 0) return -1;
    o->regions = argv[1];
    o->truth = argv[2];
    return (o->overlay && !o->image) || o->side < 16 || o->side > 20000 || o->listed < 0 ? -1 : 0;
}

static void print_regions(const struct found_regions *regions, const struct truth *truth,
                          int64_t most) {
    if (most > 0)
        printf("%-8s  %7s  %7s  %7s  %7s   truth: left  top  right  bottom\n", "found", "left",
               "top", "right", "bottom");
    for (size_t i = 0; i < regions->count && (int64_t)i < most; i++) {
        const struct found_region *r = &regions->region[i];
        printf("%-8s  %7.1f  %7.1f  %7.1f  %7.1f   ", demo_mark_name((enum mark_kind)r->kind),
               r->left, r->top, r->right, r->bottom);
        const struct true_defect *d = r->truth >= 0 ? &truth->defect[r->truth] : NULL;
        if (d == NULL)
            printf("none\n");
        else
            printf("%11" PRId64 " %4" PRId64 " %6" PRId64 " %7" PRId64 "\n", d->x0, d->y0, d->x1,
                   d->y1);
    }
}

struct tally {
    size_t planted, found, wrong;
};

static void print_tally(const char *name, struct tally t) {
    printf("%-8s  %7zu  %5zu  %6zu  %5zu\n", name, t.planted, t.found, t.planted - t.found,
           t.wrong);
}

/* Prints the table and returns the share of the planted defects that was found. */
static double print_score(const struct truth *truth, const struct found_regions *regions) {
    struct tally kind[DEFECT_KINDS] = {{0}}, all = {0};
    for (size_t i = 0; i < truth->count; i++) {
        kind[truth->defect[i].kind].planted++;
        kind[truth->defect[i].kind].found += truth->defect[i].found != 0;
    }
    for (size_t i = 0; i < regions->count; i++) {
        kind[regions->region[i].kind].wrong += regions->region[i].truth < 0;
    }
    printf("%-8s  %7s  %5s  %6s  %5s\n", "kind", "planted", "found", "missed", "false");
    for (int k = 0; k < DEFECT_KINDS; k++) {
        print_tally(demo_mark_name((enum mark_kind)k), kind[k]);
        all.planted += kind[k].planted;
        all.found += kind[k].found;
        all.wrong += kind[k].wrong;
    }
    print_tally("all", all);
    return all.planted ? (double)all.found / (double)all.planted : 1.0;
}

int main(int argc, char **argv) {
    struct options o;
    struct found_regions regions = {0};
    struct truth truth = {0};
    int code = 3;
    if (parse_options(argc, argv, &o) != 0) return usage();
    if (demo_regions_read(o.regions, least_cells, &regions) != 0 ||
        demo_truth_read(o.truth, &truth) != 0) {
        goto done;
    }
    demo_truth_match(&truth, &regions, CELL_PX);
    print_regions(&regions, &truth, o.listed);
    double share = print_score(&truth, &regions);
    if (o.overlay && overlay_write(o.image, o.overlay, o.side, &truth, &regions) != 0) goto done;
    code = share < o.require ? 1 : 0;
    if (code == 1) fprintf(stderr, "found %.3f of the defects, %.3f wanted\n", share, o.require);
done:
    demo_truth_free(&truth);
    demo_regions_free(&regions);
    return code;
}
