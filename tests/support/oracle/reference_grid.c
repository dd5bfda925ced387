/* The naive evaluator: GridSample in double, straight from ONNX's words. */
#include <math.h>

#include "tests/support/oracle/reference_call.h"

/* Back and forth between lo and hi. */
static double mirror(double x, double lo, double hi) {
    if (hi <= lo) return lo;
    while (x < lo || x > hi) x = x < lo ? 2 * lo - x : 2 * hi - x;
    return x;
}

static double coordinate(const struct rfx_node *node, double g, int64_t n) {
    bool corners = node->attr.grid.align_corners;
    double x = corners ? (g + 1) / 2 * (double)(n - 1) : ((g + 1) * (double)n - 1) / 2;
    double lo = corners ? 0 : -0.5, hi = corners ? (double)(n - 1) : (double)n - 0.5;
    return node->attr.grid.padding == RFX_GRID_REFLECTION ? mirror(x, lo, hi) : x;
}

/* The pixel at position i of an axis, -1: none. */
static int64_t pixel_at(const struct rfx_node *node, int64_t i, int64_t n) {
    bool corners = node->attr.grid.align_corners;
    if (i >= 0 && i < n) return i;
    if (node->attr.grid.padding == RFX_GRID_ZEROS) return -1;
    if (node->attr.grid.padding == RFX_GRID_BORDER) return i < 0 ? 0 : n - 1;
    double x = mirror((double)i, corners ? 0 : -0.5, (double)n - (corners ? 1 : 0.5));
    return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x;
}

static double weight(enum rfx_resize_mode mode, double d) {
    const double a = -0.75;
    d = fabs(d);
    if (mode == RFX_RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
    if (d < 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

double rfx_ref_grid_sample_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_node *node = k->node;
    int64_t h = k->it->h, w = k->it->w, pixels = k->ot->h * k->ot->w, p = y * k->ot->w + x;
    double fx = coordinate(node, (double)k->in[1][p], w);
    double fy = coordinate(node, (double)k->in[1][pixels + p], h), sum = 0;
    bool nearest = node->attr.grid.mode == RFX_RESIZE_NEAREST;
    int64_t y0 = nearest ? (int64_t)nearbyint(fy) : (int64_t)floor(fy) - 1;
    int64_t x0 = nearest ? (int64_t)nearbyint(fx) : (int64_t)floor(fx) - 1;
    for (int64_t i = y0; i < y0 + (nearest ? 1 : 4); i++)
        for (int64_t j = x0; j < x0 + (nearest ? 1 : 4); j++) {
            int64_t iy = pixel_at(node, i, h), ix = pixel_at(node, j, w);
            double by = nearest ? 1
                                : weight(node->attr.grid.mode, (double)i - fy) *
                                      weight(node->attr.grid.mode, (double)j - fx);
            if (iy >= 0 && ix >= 0) sum += by * (double)rfx_ref_in_at(k, c, iy, ix);
        }
    return sum;
}
