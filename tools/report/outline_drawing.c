/* Rows of outlines; see outline_drawing.h. */
#include "tools/report/outline_drawing.h"

#include <math.h>
#include <stdbool.h>

/* Sets [*x0, *x1) to the pixels of a row whose centres are `inset` pixels or more inside of all
 * four sides, and inside of the outline's rectangle. Returns whether there are any. */
static bool clip_row(const struct rfx_outline *o, double y, double inset, int64_t *x0,
                     int64_t *x1) {
    const double first = (double)o->rect.x0, end = (double)o->rect.x1;
    double lo = first, hi = end;
    for (int k = 0; k < 4; ++k) {
        const double *p = o->corner[k], *q = o->corner[(k + 1) % 4];
        double ex = q[0] - p[0], ey = q[1] - p[1];
        double length = sqrt(ex * ex + ey * ey);
        if (!(length > 0)) continue;
        /* the side's normal, inward */
        double nx = -o->turn * ey / length, ny = o->turn * ex / length;
        double least = inset - ny * (y - p[1]) + nx * p[0]; /* of nx x */
        if (nx > 0) lo = fmax(lo, least / nx);
        if (nx < 0) hi = fmin(hi, least / nx);
        if (nx == 0 && least > 0) return false;
    }
    /* sides far outside: their columns may be more than an integer holds */
    *x0 = (int64_t)ceil(fmin(lo, end) - 0.5);
    *x1 = (int64_t)floor(fmax(hi, first) - 0.5) + 1;
    return *x0 < *x1;
}

void rfx_outline_row(const struct rfx_outline *outline, int64_t row, int64_t run[2][2]) {
    const struct rfx_rect *rect = &outline->rect;
    double y = (double)row + 0.5;
    int64_t x0 = rect->x0, x1 = rect->x0, in0, in1;
    bool any = row >= rect->y0 && row < rect->y1 && clip_row(outline, y, -0.5, &x0, &x1);
    if (!any) x0 = x1 = rect->x0;
    if (!any || !clip_row(outline, y, (double)outline->line, &in0, &in1)) in0 = in1 = x1;
    run[0][0] = x0;
    run[0][1] = in0;
    run[1][0] = in1;
    run[1][1] = x1;
}
