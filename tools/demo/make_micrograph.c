/* Makes a micrograph of any size, see micrograph.h, as a grey PNG, and the truth beside it.
 *
 *     rfx-make-micrograph HxW OUT.png [--mask M.png] [--seed N] [--domains PIXELS]
 *
 * Domains of one phase are about so many pixels wide (default 1500). The mask is a grey PNG with 0,
 * 1 and 2 for the dark, the grey and the bright phase. Made and written row by row. Same arguments,
 * same picture. Exit codes: 0 done, 2 usage, 5 memory or files. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/demo/demo_support.h"
#include "tools/demo/micrograph.h"

struct options {
    int64_t h, w, domain_px;
    const char *image, *mask;
    uint64_t seed;
};

static int usage(void) {
    fprintf(stderr,
            "usage: rfx-make-micrograph HxW OUT.png [--mask M.png] [--seed N]\n"
            "                           [--domains PIXELS]\n");
    return 2;
}

static int parse_options(int argc, char **argv, struct options *o) {
    *o = (struct options){.seed = 1, .domain_px = 1500};
    const struct demo_option options[] = {{"--mask", DEMO_TEXT, &o->mask},
                                          {"--seed", DEMO_SEED, &o->seed},
                                          {"--domains", DEMO_WHOLE, &o->domain_px}};
    if (argc < 3 || demo_read_size(argv[1], &o->h, &o->w) != 0 ||
        demo_read_options(argc - 3, argv + 3, options, 3) != 0)
        return -1;
    o->image = argv[2];
    return o->domain_px >= 16 && o->domain_px <= 100000 ? 0 : -1;
}

static int make_rows(struct micrograph *m, struct png_rows *image, struct png_rows *mask) {
    uint8_t *grey = malloc((size_t)m->w), *phase = malloc((size_t)m->w);
    int status = grey && phase ? 0 : -1;
    if (status) fprintf(stderr, "out of memory\n");
    for (int64_t y = 0; y < m->h && status == 0; y++) {
        demo_micrograph_row(m, y, grey, phase);
        status = demo_png_write_row(image, grey);
        if (status == 0 && mask) status = demo_png_write_row(mask, phase);
    }
    free(phase);
    free(grey);
    return status;
}

int main(int argc, char **argv) {
    struct options o;
    struct micrograph m;
    if (parse_options(argc, argv, &o) != 0) return usage();
    if (demo_micrograph_create(&m, o.seed, o.h, o.w, o.domain_px) != 0) {
        fprintf(stderr, "out of memory\n");
        return 5;
    }
    int status = -1;
    struct png_rows *mask = NULL, *image = demo_png_create(o.image, o.h, o.w, 1);
    if (!image) goto done;
    if (o.mask && !(mask = demo_png_create(o.mask, o.h, o.w, 1))) goto done;
    status = make_rows(&m, image, mask);
done:
    if (demo_png_close(mask) != 0) status = -1;
    if (demo_png_close(image) != 0) status = -1;
    demo_micrograph_free(&m);
    return status == 0 ? 0 : 5;
}
