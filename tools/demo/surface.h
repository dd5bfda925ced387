/* The sound surface of a made inspection picture: brushed or cast metal under uneven light.
 *
 * Invariant: the luminance of a pixel is a function of seed, row and column alone. Defects are not
 * its business (see marks.h). */
#ifndef RFX_TOOLS_DEMO_SURFACE_H
#define RFX_TOOLS_DEMO_SURFACE_H

#include <stdint.h>

#define SURFACE_LAYERS 6

/* One layer of smooth lattice noise: cells of cell_h x cell_w pixels, values in [-amp, amp]. */
struct surface_layer {
    int cell_h, cell_w;
    float amp;
    uint64_t seed;
};

struct surface {
    int64_t h, w;
    float base;    /* mean luminance, 1 is white */
    float slope_y; /* luminance gained from the first row to the last */
    float slope_x; /* the same along a row */
    float grain;   /* amplitude of the noise of single pixels */
    float tint[3]; /* factors of red, green and blue */
    uint64_t grain_seed;
    struct surface_layer layers[SURFACE_LAYERS];
};

/* Draws the properties of a surface of h x w pixels from the seed. */
void demo_surface_init(struct surface *s, uint64_t seed, int64_t h, int64_t w);

/* Writes the luminance of row y into lum[w]. */
void demo_surface_row(const struct surface *s, int64_t y, float *lum);
#endif
