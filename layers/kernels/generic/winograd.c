/* The transforms of Winograd's minimal filtering, F(2x2, 3x3) and F(4x4, 3x3), and for stride 2
 * F(3x3, 2x2) of the even pixels and taps. They transform windows of the input and filters into the
 * factors of products, and sums of products into output pixels.
 *
 * F(2x2) interpolates at 0, 1, -1 and infinity; F(4x4) at 0, A, -A, B, -B and infinity. With the
 * usual points 1 and 2, the powers of 2 in the transforms cost three bits of every result. A and B,
 * chosen with A * B nearly 1, cost one bit (docs/errors.md), and all constants of the transforms of
 * windows and filters are exact in float32. F(3x3), at 0, 1, -1 and infinity, computes a sum of two
 * taps, the first and the last; the products of the middle tap are added to its result. The order
 * of operations is defined in one place, and the bits of an element depend on nothing else. Source:
 * Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, section 4; error by
 * choice of points: Barabasz et al., Error Analysis and Improving the Accuracy of Winograd
 * Convolution for Deep Neural Networks, 2020. */
#include <string.h>

#include "layers/kernels/generic/variant.h"

#ifdef VARIANT_HAS_FMA

#define INLINE static inline __attribute__((always_inline))
#define MOST 7 /* largest number of rows and columns of a window */

/* Prefetches the data that the next tile reads or writes, because the lines are too far apart for
 * the hardware prefetcher. The target is the second-level cache; the first-level cache is smaller
 * than the channels of a tile. */
#define EXPECT(p, write) __builtin_prefetch(p, write, 2)

#define A RFX_WINOGRAD_A
#define B RFX_WINOGRAD_B
#define A2 (A * A)
#define B2 (B * B)

/* The divisions of F(4x4): 1 over the product of a point's distances to the other finite points.
 * Each is rounded once, together with the power of the point that it is multiplied by. */
#define AT_0 (1.0 / ((double)A2 * B2))
#define AT_A (1.0 / (2.0 * A2 * ((double)A2 - B2)))
#define AT_B (1.0 / (2.0 * B2 * ((double)B2 - A2)))
#define PER(constant) VECTOR_ALL((float)(constant))

#define TAPS_AHEAD 2048 /* floats; transforming so many takes as long as memory does to answer */

/* Transforms one row or column of a window; elements are d_step and z_step vectors apart. */
INLINE void transform_in(const vector *d, int d_step, vector *z, int z_step, int outputs) {
    const vector d0 = d[0], d1 = d[d_step], d2 = d[2 * d_step], d3 = d[3 * d_step];
    if (outputs == 3) {
        const vector d4 = d[4 * d_step], d5 = d[5 * d_step], d6 = d[6 * d_step];
        z[0] = d0 - d4;
        z[z_step] = d2 + d4;
        z[2 * z_step] = d4 - d2;
        z[3 * z_step] = d2 - d6;
        z[4 * z_step] = d1;
        z[5 * z_step] = d3;
        z[6 * z_step] = d5;
        return;
    }
    if (outputs == 2) {
        z[0] = d0 - d2;
        z[z_step] = d1 + d2;
        z[2 * z_step] = d2 - d1;
        z[3 * z_step] = d1 - d3;
        return;
    }
    const vector d4 = d[4 * d_step], d5 = d[5 * d_step];
    const vector a = VECTOR_ALL(A), b = VECTOR_ALL(B), ma = VECTOR_ALL(-A), mb = VECTOR_ALL(-B);
    const vector ma2 = VECTOR_ALL(-A2), mb2 = VECTOR_ALL(-B2);
    const vector product = VECTOR_ALL(A2 * B2), sum = VECTOR_ALL(-(A2 + B2));
    vector even_a = VECTOR_FMA(mb2, d2, d4), odd_a = VECTOR_FMA(mb2, d1, d3);
    vector even_b = VECTOR_FMA(ma2, d2, d4), odd_b = VECTOR_FMA(ma2, d1, d3);
    z[0] = VECTOR_FMA(product, d0, VECTOR_FMA(sum, d2, d4));
    z[z_step] = VECTOR_FMA(a, odd_a, even_a);
    z[2 * z_step] = VECTOR_FMA(ma, odd_a, even_a);
    z[3 * z_step] = VECTOR_FMA(b, odd_b, even_b);
    z[4 * z_step] = VECTOR_FMA(mb, odd_b, even_b);
    z[5 * z_step] = VECTOR_FMA(product, d1, VECTOR_FMA(sum, d3, d5));
}

/* Transforms one row or column of sums of products to `outputs` elements. */
INLINE void transform_out(const vector *m, int m_step, vector *y, int y_step, int outputs) {
    const vector m0 = m[0], m1 = m[m_step], m2 = m[2 * m_step], m3 = m[3 * m_step];
    vector sum_a = m1 + m2, odd_a = m1 - m2;
    if (outputs == 3) {
        y[0] = (m0 + sum_a) + m[4 * m_step];
        y[y_step] = odd_a + m[5 * m_step];
        y[2 * y_step] = (sum_a - m3) + m[6 * m_step];
        return;
    }
    if (outputs == 2) {
        y[0] = m0 + sum_a;
        y[y_step] = odd_a - m3;
        return;
    }
    const vector m4 = m[4 * m_step], m5 = m[5 * m_step];
    vector sum_b = m3 + m4, odd_b = m3 - m4;
    y[0] = VECTOR_FMA(PER(AT_0), m0, VECTOR_FMA(PER(AT_A), sum_a, PER(AT_B) * sum_b));
    y[y_step] = VECTOR_FMA(PER(A * AT_A), odd_a, PER(B * AT_B) * odd_b);
    y[2 * y_step] = VECTOR_FMA(PER(A2 * AT_A), sum_a, PER(B2 * AT_B) * sum_b);
    y[3 * y_step] =
        VECTOR_FMA(PER(A2 * A * AT_A), odd_a, VECTOR_FMA(PER(B2 * B * AT_B), odd_b, m5));
}

INLINE vector load_some(const float *from, int64_t n) {
    if (n >= VECTOR_FLOATS) return VECTOR_LOAD(from);
    float values[VECTOR_FLOATS] = {0};
    memcpy(values, from, (size_t)n * sizeof *from);
    return VECTOR_LOAD(values);
}

INLINE void store_some(float *to, vector v, int64_t n) {
    if (n >= VECTOR_FLOATS) {
        VECTOR_STORE(to, v);
        return;
    }
    float values[VECTOR_FLOATS];
    VECTOR_STORE(values, v);
    memcpy(to, values, (size_t)n * sizeof *to);
}

/* Transforms a window, columns first, then rows. The arguments are copied, here and below:
 * otherwise a compiler would read them again after every store. */
INLINE void window_in(const struct rfx_winograd_in *window, int outputs) {
    const int n = (int)rfx_winograd_window(outputs);
    const struct rfx_winograd_in own = *window, *w = &own;
    for (int64_t c = 0; c < w->c; c += VECTOR_FLOATS) {
        vector half[MOST * MOST];
        UNROLL for (int x = 0; x < n; x++) {
            vector d[MOST];
            /* prefetch only new columns: windows overlap by two columns, with stride 2 by one */
            for (int y = 0; y < n && x >= n - outputs * (outputs == 3 ? 2 : 1); y++)
                EXPECT(w->pixels[y * n + x] + c + w->ahead, 0);
            UNROLL for (int y = 0; y < n; y++) d[y] = load_some(w->pixels[y * n + x] + c, w->c - c);
            transform_in(d, 1, half + x, n, outputs);
        }
        UNROLL for (int y = 0; y < n; y++) {
            vector z[MOST];
            transform_in(half + y * n, 1, z, 1, outputs);
            UNROLL for (int x = 0; x < n; x++)
                VECTOR_STORE(w->out + (y * n + x) * w->step + c, z[x]);
        }
    }
}

INLINE void finish_pixel(const struct rfx_winograd_out *w, int i, int64_t c, vector value) {
    int64_t at = w->first + c, left = w->c - c;
    if (w->out[i] == NULL) return;
    value = value + load_some(w->bias + at, left);
    if (w->residual != NULL) value = value + load_some(w->residual[i] + at, left);
    value = VECTOR_MIN(VECTOR_ALL(w->hi), VECTOR_MAX(VECTOR_ALL(w->lo), value));
    store_some(w->out[i] + at, value, left);
}

INLINE void expect_next(const struct rfx_winograd_out *w, int64_t c, int outputs) {
    const int64_t at = w->first + c + w->ahead;
    for (int i = 0; i < outputs * outputs; i++) {
        if (w->out[i] == NULL) continue;
        EXPECT(w->out[i] + at, 1);
        if (w->residual != NULL && w->residual[i] != w->out[i]) EXPECT(w->residual[i] + at, 0);
    }
}

INLINE void tile_out(const struct rfx_winograd_out *tile, int outputs) {
    const int n = (int)rfx_winograd_window(outputs);
    const struct rfx_winograd_out own = *tile, *w = &own;
    for (int64_t c = 0; c < w->c; c += VECTOR_FLOATS) {
        vector half[MOST * MOST];
        expect_next(w, c, outputs);
        UNROLL for (int x = 0; x < n; x++) {
            vector m[MOST];
            UNROLL for (int y = 0; y < n; y++) m[y] =
                VECTOR_LOAD(w->sums + (y * n + x) * w->step + c);
            transform_out(m, 1, half + x, n, outputs);
        }
        UNROLL for (int y = 0; y < outputs; y++) {
            vector row[MOST];
            transform_out(half + y * n, 1, row, 1, outputs);
            UNROLL for (int x = 0; x < outputs; x++) finish_pixel(w, y * outputs + x, c, row[x]);
        }
    }
}

/* Transforms one row or column of a filter: its values at the points, and for infinity its last
 * tap. The divisions of F(4x4) are in the constants of transform_out. */
INLINE void transform_filter(const vector *g, int g_step, vector *z, int z_step, int outputs) {
    const vector g0 = g[0], g1 = g[g_step], g2 = g[2 * g_step], half = VECTOR_ALL(0.5f);
    z[0] = g0;
    z[(outputs == 3 ? 3 : outputs + 1) * z_step] = g2;
    if (outputs == 3) {
        z[z_step] = (g0 + g2) * half;
        z[2 * z_step] = (g0 - g2) * half;
        z[4 * z_step] = g1;
        return;
    }
    if (outputs == 2) {
        const vector even = g0 + g2;
        z[z_step] = (even + g1) * half;
        z[2 * z_step] = (even - g1) * half;
        return;
    }
    const vector even_a = VECTOR_FMA(VECTOR_ALL(A2), g2, g0);
    const vector even_b = VECTOR_FMA(VECTOR_ALL(B2), g2, g0);
    z[z_step] = VECTOR_FMA(VECTOR_ALL(A), g1, even_a);
    z[2 * z_step] = VECTOR_FMA(VECTOR_ALL(-A), g1, even_a);
    z[3 * z_step] = VECTOR_FMA(VECTOR_ALL(B), g1, even_b);
    z[4 * z_step] = VECTOR_FMA(VECTOR_ALL(-B), g1, even_b);
}

/* Transforms all filters, columns first, then rows. */
INLINE void filters_all(const struct rfx_winograd_filters *f, int outputs, int64_t width) {
    const int n = (int)rfx_winograd_factors(outputs);
    const int64_t channels = f->c, step = f->step;
    const float *taps = f->taps;
    float *out = f->out;
    for (int64_t c = 0; c < channels; c++, taps += 9 * width, out += width)
        for (int64_t j = 0; j < width; j += VECTOR_FLOATS) {
            vector half[MOST * 3];
            for (int i = 0; i < 9; i++) __builtin_prefetch(taps + i * width + j + TAPS_AHEAD);
            UNROLL for (int x = 0; x < 3; x++) {
                vector g[3];
                UNROLL for (int y = 0; y < 3; y++) g[y] =
                    VECTOR_LOAD(taps + (3 * y + x) * width + j);
                transform_filter(g, 1, half + x, 3, outputs);
            }
            UNROLL for (int y = 0; y < n; y++) {
                vector z[MOST];
                transform_filter(half + 3 * y, 1, z, 1, outputs);
                UNROLL for (int x = 0; x < n; x++) VECTOR_STORE(out + (y * n + x) * step + j, z[x]);
            }
        }
}

INLINE void filters_of(const struct rfx_winograd_filters *f, int outputs) {
    if (f->width == RFX_CONV_PANEL)
        filters_all(f, outputs, RFX_CONV_PANEL);
    else
        filters_all(f, outputs, RFX_CONV_LANES);
}

void VARIANT_NAME(winograd_filters)(const struct rfx_winograd_filters *filters) {
    if (filters->outputs == 2)
        filters_of(filters, 2);
    else if (filters->outputs == 3)
        filters_of(filters, 3);
    else
        filters_of(filters, 4);
}

void VARIANT_NAME(winograd_in)(const struct rfx_winograd_in *w) {
    if (w->outputs == 2)
        window_in(w, 2);
    else if (w->outputs == 3)
        window_in(w, 3);
    else
        window_in(w, 4);
}

void VARIANT_NAME(winograd_out)(const struct rfx_winograd_out *w) {
    if (w->outputs == 2)
        tile_out(w, 2);
    else if (w->outputs == 3)
        tile_out(w, 3);
    else
        tile_out(w, 4);
}
#endif
