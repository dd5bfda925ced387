#include "overlay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "png_rows.h"

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

/* A frame two pixels thick round picture rows [y0, y1) and columns [x0, x1). */
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
                       const struct defect_spots *spots, int64_t cell_px) {
    for (size_t i = 0; i < truth->count; i++) {
        const struct true_defect *d = &truth->defect[i];
        draw_box(c, d->y0, d->y1, d->x0, d->x1, d->found ? green : red);
    }
    for (size_t i = 0; i < spots->count; i++) {
        const struct defect_spot *s = &spots->spot[i];
        if (s->truth >= 0) continue;
        draw_box(c, s->y0 * cell_px, s->y1 * cell_px, s->x0 * cell_px, s->x1 * cell_px, yellow);
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

int demo_overlay_write(const char *image, const char *path, int64_t max_side,
                       const struct truth *truth, const struct defect_spots *spots,
                       int64_t cell_px) {
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
    draw_boxes(&c, truth, spots, cell_px);
    status = write_canvas(&c, path);
done:
    free(c.rgb);
    demo_png_close(png);
    return status;
}
