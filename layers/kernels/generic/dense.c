/* Sums of products with one chain per element, blocked into registers over rows and outputs. Used
 * for fully connected layers, transposed convolutions, and first convolutions of few channels. */
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#define INLINE static inline __attribute__((always_inline))
#define ROWS 6
#if VECTOR_FLOATS == 16
#define VECTORS 4 /* 6 x 4 sums use 24 of 32 registers */
#else
#define VECTORS 2 /* 6 x 2 sums use 12 of 16 registers */
#endif

/* Computes n rows from r0 on, nv vectors of outputs from j on; n and nv are constants in all calls.
 */
INLINE void block(const struct rfx_dense_args *d, int64_t r0, int n, int64_t j, int nv) {
    vector sum[ROWS][VECTORS];
    const float *x = d->x + r0 * d->x_stride;
    const float *w = d->w + j;
    float *y = d->y + r0 * d->y_stride + j;
    for (int r = 0; r < n; r++)
        for (int v = 0; v < nv; v++) sum[r][v] = VECTOR_ALL(0.0f);
    for (int64_t k = 0; k < d->k; k++, w += d->w_stride) {
        vector wv[VECTORS];
        for (int v = 0; v < nv; v++) wv[v] = VECTOR_LOAD(w + v * VECTOR_FLOATS);
        for (int r = 0; r < n; r++) {
            vector xv = VECTOR_ALL(x[r * d->x_stride + k]);
            for (int v = 0; v < nv; v++) sum[r][v] = VECTOR_FMA(xv, wv[v], sum[r][v]);
        }
    }
    for (int r = 0; r < n; r++) {
        for (int v = 0; v < nv; v++) {
            float *at = y + r * d->y_stride + v * VECTOR_FLOATS;
            VECTOR_STORE(at, VECTOR_LOAD(at) + sum[r][v]);
        }
    }
}

INLINE void columns(const struct rfx_dense_args *d, int64_t j, int nv) {
    int64_t r = 0;
    for (; r + ROWS <= d->rows; r += ROWS) block(d, r, ROWS, j, nv);
    for (; r + 2 <= d->rows; r += 2) block(d, r, 2, j, nv);
    for (; r < d->rows; r++) block(d, r, 1, j, nv);
}

static void tail(const struct rfx_dense_args *d, int64_t j0) {
    int64_t n = d->m - j0; /* < VECTOR_FLOATS */
    for (int64_t r = 0; r < d->rows; r++) {
        float sum[VECTOR_FLOATS] = {0};
        for (int64_t k = 0; k < d->k; k++) {
            float xv = d->x[r * d->x_stride + k];
            const float *w = d->w + k * d->w_stride + j0;
            for (int64_t j = 0; j < n; j++) sum[j] = MATH_FMA(xv, w[j], sum[j]);
        }
        for (int64_t j = 0; j < n; j++) d->y[r * d->y_stride + j0 + j] += sum[j];
    }
}

void VARIANT_NAME(dense)(const struct rfx_dense_args *d) {
    int64_t j = 0;
    for (; j + VECTORS * VECTOR_FLOATS <= d->m; j += VECTORS * VECTOR_FLOATS)
        columns(d, j, VECTORS);
    for (; j + 2 * VECTOR_FLOATS <= d->m; j += 2 * VECTOR_FLOATS) columns(d, j, 2);
    for (; j + VECTOR_FLOATS <= d->m; j += VECTOR_FLOATS) columns(d, j, 1);
    if (j < d->m) tail(d, j);
}
