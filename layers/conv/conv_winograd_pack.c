/* Filters of Winograd convolutions: G g G' of every filter in double, rounded once.
 *
 * The rows of G are those of kernels/generic/winograd.c's points: (1, p, p^2) / N(p), N(p) being
 * the product of p's distances to the other finite points, and (0, 0, 1) for infinity. */
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define LANES RFX_CONV_LANES /* filters that are transformed together */
#define TAPS 9
#define MOST_PRODUCTS 36

/* One row or column of three taps to `n` factors; LANES filters side by side. */
static void transform(double (*g)[LANES], int g_step, double (*u)[LANES], int u_step,
                      int64_t outputs) {
    const double a = (double)RFX_WINOGRAD_A, b = (double)RFX_WINOGRAD_B, a2 = a * a, b2 = b * b;
    const double at_0 = 1.0 / (a2 * b2), at_a = 1.0 / (2.0 * a2 * (a2 - b2)),
                 at_b = 1.0 / (2.0 * b2 * (b2 - a2));
    const double *g0 = g[0], *g1 = g[g_step], *g2 = g[(ptrdiff_t)2 * g_step];
    for (int j = 0; j < LANES && outputs == 2; j++) {
        double even = 0.5 * (g0[j] + g2[j]), odd = 0.5 * g1[j];
        u[0][j] = g0[j];
        u[u_step][j] = even + odd;
        u[(ptrdiff_t)2 * u_step][j] = even - odd;
        u[(ptrdiff_t)3 * u_step][j] = g2[j];
    }
    for (int j = 0; j < LANES && outputs == 4; j++) {
        double even_a = at_a * (g0[j] + a2 * g2[j]), odd_a = at_a * a * g1[j];
        double even_b = at_b * (g0[j] + b2 * g2[j]), odd_b = at_b * b * g1[j];
        u[0][j] = at_0 * g0[j];
        u[u_step][j] = even_a + odd_a;
        u[(ptrdiff_t)2 * u_step][j] = even_a - odd_a;
        u[(ptrdiff_t)3 * u_step][j] = even_b + odd_b;
        u[(ptrdiff_t)4 * u_step][j] = even_b - odd_b;
        u[(ptrdiff_t)5 * u_step][j] = g2[j];
    }
}

struct pack {
    const struct rfx_conv_pack_job *job;
    int64_t outputs, products;
    int64_t plane; /* floats from product to product */
};

/* One input channel's taps of LANES filters, `step` floats from filter to filter, of which `n` are
 * there; `scale` (NULL: none) is the first one's. */
static void pack_lanes(const struct pack *p, const float *taps, int64_t step, int64_t n,
                       const float *scale, float *to) {
    double g[TAPS][LANES] = {{0}}, half[3 * 6][LANES], u[MOST_PRODUCTS][LANES];
    int size = (int)p->outputs + 2;
    for (int64_t j = 0; j < n; j++)
        for (int64_t t = 0; t < TAPS; t++)
            g[t][j] = (double)taps[j * step + t] * (scale == NULL ? 1.0 : (double)scale[j]);
    for (int x = 0; x < 3; x++) transform(g + x, 3, half + x, 3, p->outputs);
    for (int y = 0; y < size; y++)
        transform(half + (ptrdiff_t)3 * y, 1, u + (ptrdiff_t)size * y, 1, p->outputs);
    for (int64_t i = 0; i < p->products; i++)
        for (int j = 0; j < LANES; j++) to[i * p->plane + j] = (float)u[i][j];
}

/* The panel of filters [o0, o0 + n), `width` wide with its filling. */
static enum rfx_status pack_panel(const struct pack *p, struct rfx_packing_reader *reader,
                                  int64_t o0, int64_t n, int64_t width) {
    const struct rfx_conv_pack_job *job = p->job;
    int64_t ic = job->node->attr.conv.ic, piece = job->temp_elems / RFX_CONV_PANEL / TAPS;
    for (int64_t i0 = 0; i0 < ic; i0 += piece) {
        int64_t count = rfx_min_i64(piece, ic - i0);
        for (int64_t j = 0; j < n; j++) {
            enum rfx_status status = rfx_packing_read(reader, ((o0 + j) * ic + i0) * TAPS,
                                                      count * TAPS, job->temp + j * count * TAPS);
            if (status != RFX_OK) return status;
        }
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < width; j += LANES)
                pack_lanes(p, job->temp + (j * count + i) * TAPS, count * TAPS,
                           rfx_min_i64(LANES, n - j),
                           job->scale == NULL ? NULL : job->scale + o0 + j,
                           job->weights + o0 * ic + (i0 + i) * width + j);
    }
    return RFX_OK;
}

enum rfx_status rfx_conv_winograd_pack(const struct rfx_conv_pack_job *job, int64_t outputs,
                                       struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    struct pack p = {.job = job, .outputs = outputs, .products = (outputs + 2) * (outputs + 2)};
    enum rfx_status status = RFX_OK;
    p.plane = rfx_conv_filled(a->oc) * a->ic;
    struct rfx_range panels = rfx_pack_units(job->part, rfx_ceil_div(a->oc, RFX_CONV_PANEL));
    for (int64_t i = panels.lo; status == RFX_OK && i < panels.hi; i++) {
        int64_t o = i * RFX_CONV_PANEL;
        status = pack_panel(&p, &reader, o, rfx_min_i64(RFX_CONV_PANEL, a->oc - o),
                            rfx_conv_panel_width(a->oc - o));
    }
    return status;
}
