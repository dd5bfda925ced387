/* A made micrograph: the polished section of a material of three phases, as an electron microscope
 * shows it. Phases differ in brightness only. Brightness and contrast of the whole image vary, so
 * that only the whole image tells what is dark or bright.
 *
 * Invariants: 1. a pixel is a function of seed, row and column alone; 2. the truth is the phase
 * that the pixel was drawn as. */
#ifndef RFX_TOOLS_DEMO_MICROGRAPH_H
#define RFX_TOOLS_DEMO_MICROGRAPH_H

#include <stdint.h>

#include "tools/demo/surface.h"

#define PHASES 3 /* dark, grey, bright */

struct micrograph_domain {
    float y, x; /* its centre: a pixel belongs to the nearest one */
    int phase;
};

/* A round spot of another phase, inside its cell of the lattice. */
struct micrograph_spot {
    float y, x, radius; /* radius 0: none */
    int shift;          /* how many phases further than the domain's its own phase is */
};

struct micrograph {
    int64_t h, w;
    int64_t domain_px;      /* side of a cell of the lattice of domains */
    float black, gain;      /* brightness of the dark phase; of the bright one above it */
    struct surface noise;   /* of the detector and the material, around 0 */
    struct surface bend[2]; /* how far rows and columns are moved before looking up the domain */
    int64_t rows, columns, spot_rows, spot_columns;
    struct micrograph_domain *domains; /* [rows, columns], with a margin of two cells */
    struct micrograph_spot *spots;     /* [spot_rows, spot_columns] */
    float *line[3];                    /* noise and the bends of a row, [w] each */
};

/* 0, or -1 when there is no memory. domain_px: at least 16. */
int demo_micrograph_create(struct micrograph *m, uint64_t seed, int64_t h, int64_t w,
                           int64_t domain_px);
void demo_micrograph_free(struct micrograph *m);

/* Row y as grey levels and as phases, [w] each. */
void demo_micrograph_row(struct micrograph *m, int64_t y, uint8_t *grey, uint8_t *phase);
#endif
