/* Makes an inspection picture of any size with the truth beside it: a metal surface with planted
 * scratches, pits and stains among harmless hairlines, specks and smudges.
 *
 *     rfx-make-inspection-image HxW OUT.png [--truth T.csv] [--mask M.png] [--seed N]
 *                               [--density DEFECTS_PER_MEGAPIXEL] [--contrast FACTOR]
 *
 * The picture is made and written row by row: memory grows with its width only. The truth is a CSV
 * of defects (kind, y0, x0, y1, x1 half-open, cy, cx, size in pixels); the mask is a grey PNG with
 * 0 for sound, 1, 2, 3 for scratch, pit and stain. Same arguments, same picture. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/demo_support.h"
#include "tools/demo/marks.h"
#include "tools/demo/surface.h"

struct options {
    int64_t h, w;
    const char *image, *truth, *mask;
    uint64_t seed;
    double density, contrast;
};

static int usage(void) {
    fprintf(stderr,
            "usage: rfx-make-inspection-image HxW OUT.png [--truth T.csv] [--mask M.png]\n"
            "                                 [--seed N] [--density DEFECTS_PER_MEGAPIXEL]\n"
            "                                 [--contrast FACTOR]\n");
    return 2;
}

static int parse_options(int argc, char **argv, struct options *o) {
    *o = (struct options){.seed = 1, .density = 3.3, .contrast = 1.0};
    const struct demo_option options[] = {{"--truth", DEMO_TEXT, &o->truth},
                                          {"--mask", DEMO_TEXT, &o->mask},
                                          {"--seed", DEMO_SEED, &o->seed},
                                          {"--density", DEMO_REAL, &o->density},
                                          {"--contrast", DEMO_REAL, &o->contrast}};
    if (argc < 3 || demo_read_size(argv[1], &o->h, &o->w) != 0 ||
        demo_read_options(argc - 3, argv + 3, options, 5) != 0)
        return -1;
    o->image = argv[2];
    int sane =
        o->density >= 0.0 && o->density <= 1000.0 && o->contrast >= 0.0 && o->contrast <= 4.0;
    return sane ? 0 : -1;
}

static int write_truth(const char *path, const struct marks *marks) {
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return -1;
    }
    fprintf(f, "kind,y0,x0,y1,x1,cy,cx,size\n");
    for (size_t i = 0; i < marks->count; i++) {
        const struct mark *m = &marks->mark[i];
        if (m->kind > MARK_STAIN) continue;
        fprintf(f,
                "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.0f\n",
                demo_mark_name(m->kind), m->y0, m->x0, m->y1, m->x1, (m->y0 + m->y1) / 2,
                (m->x0 + m->x1) / 2, (double)m->size);
    }
    if (ferror(f) | fclose(f)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    return 0;
}

static uint8_t to_byte(float v) {
    float scaled = v * 255.0f + 0.5f;
    return scaled <= 0.0f ? 0 : scaled >= 255.0f ? 255 : (uint8_t)scaled;
}

/* Luminance and stain to colours: a stain takes most of the blue and least of the red. */
static void colour_row(const struct surface *s, const struct mark_row *row, uint8_t *rgb) {
    for (int64_t x = 0; x < row->w; x++) {
        float lum = row->lum[x], stain = row->stain[x];
        rgb[3 * x] = to_byte(lum * s->tint[0] * (1.0f - 0.55f * stain));
        rgb[3 * x + 1] = to_byte(lum * s->tint[1] * (1.0f - 0.85f * stain));
        rgb[3 * x + 2] = to_byte(lum * s->tint[2] * (1.0f - 1.15f * stain));
    }
}

/* Draws the marks that touch row y; `active` holds the indices of those begun and not yet ended. */
static void draw_marks(const struct marks *marks, int64_t y, const struct mark_row *row,
                       size_t *active, size_t *active_count, size_t *next) {
    while (*next < marks->count && marks->mark[*next].ry0 <= y)
        active[(*active_count)++] = (*next)++;
    size_t kept = 0;
    for (size_t i = 0; i < *active_count; i++) {
        const struct mark *m = &marks->mark[active[i]];
        if (m->ry1 <= y) continue;
        demo_mark_draw_row(m, y, row);
        active[kept++] = active[i];
    }
    *active_count = kept;
}

static int make_rows(const struct options *o, const struct marks *marks, struct png_rows *image,
                     struct png_rows *mask) {
    struct surface surface;
    demo_surface_init(&surface, o->seed, o->h, o->w);
    size_t w = (size_t)o->w, active_count = 0, next = 0;
    struct mark_row row = {o->w, malloc(w * sizeof *row.lum), malloc(w * sizeof *row.stain),
                           malloc(w)};
    uint8_t *rgb = malloc(3 * w);
    size_t *active = calloc(marks->count + 1, sizeof *active);
    int status = row.lum && row.stain && row.truth && rgb && active ? 0 : -1;
    if (status) fprintf(stderr, "out of memory\n");
    for (int64_t y = 0; y < o->h && status == 0; y++) {
        demo_surface_row(&surface, y, row.lum);
        memset(row.stain, 0, w * sizeof *row.stain);
        memset(row.truth, 0, w);
        draw_marks(marks, y, &row, active, &active_count, &next);
        colour_row(&surface, &row, rgb);
        status = demo_png_write_row(image, rgb);
        if (status == 0 && mask) status = demo_png_write_row(mask, row.truth);
    }
    free(active);
    free(rgb);
    free(row.truth);
    free(row.stain);
    free(row.lum);
    return status;
}

int main(int argc, char **argv) {
    struct options o;
    struct marks marks;
    if (parse_options(argc, argv, &o) != 0) return usage();
    if (demo_marks_create(&marks, o.seed, o.h, o.w, o.density, (float)o.contrast) != 0) {
        fprintf(stderr, "out of memory\n");
        return 5;
    }
    int status = -1;
    struct png_rows *mask = NULL, *image = demo_png_create(o.image, o.h, o.w, 3);
    if (!image) goto done;
    if (o.mask && !(mask = demo_png_create(o.mask, o.h, o.w, 1))) goto done;
    status = make_rows(&o, &marks, image, mask);
    if (status == 0 && o.truth) status = write_truth(o.truth, &marks);
done:
    if (demo_png_close(mask) != 0) status = -1;
    if (demo_png_close(image) != 0) status = -1;
    demo_marks_free(&marks);
    return status == 0 ? 0 : 5;
}
