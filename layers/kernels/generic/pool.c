/* Windows of pools, vectorised over channels; see struct rfx_pool_run. */
#include <math.h>

#include "layers/kernels/generic/variant.h"

#define INLINE static inline __attribute__((always_inline))
#define VECTORS 4 /* that hide the time of a comparison */

/* Channels ch .. ch + nv vectors; nv and maximum are constants in all calls. */
INLINE void window(const struct rfx_pool_run *r, int64_t ch, int nv, bool maximum) {
    vector value[VECTORS];
    UNROLL for (int v = 0; v < nv; v++) value[v] =
        r->begun ? VECTOR_LOAD(r->out + ch + v * VECTOR_FLOATS)
                 : VECTOR_ALL(maximum ? -INFINITY : 0.0f);
    for (int64_t y = 0; y < r->n_rows; y++) {
        const float *x = r->rows[y] + ch;
        for (int64_t i = 0; i < r->n_cols; i++, x += r->col_step)
            UNROLL for (int v = 0; v < nv; v++) {
                vector xv = VECTOR_LOAD(x + v * VECTOR_FLOATS);
                value[v] = maximum ? VECTOR_LARGER(xv, value[v]) : value[v] + xv;
            }
    }
    UNROLL for (int v = 0; v < nv; v++) {
        if (!maximum && !r->goes_on) value[v] = value[v] / VECTOR_ALL(r->count);
        VECTOR_STORE(r->out + ch + v * VECTOR_FLOATS, value[v]);
    }
}

static void channel(const struct rfx_pool_run *r, int64_t ch) {
    float value = r->begun ? r->out[ch] : r->maximum ? -INFINITY : 0.0f;
    for (int64_t y = 0; y < r->n_rows; y++)
        for (int64_t i = 0; i < r->n_cols; i++) {
            float x = r->rows[y][i * r->col_step + ch];
            if (!r->maximum)
                value += x;
            else if (x > value || isnan(x))
                value = x;
        }
    r->out[ch] = r->maximum || r->goes_on ? value : value / r->count;
}

INLINE void channels(const struct rfx_pool_run *r, bool maximum) {
    int64_t ch = 0;
    for (; ch + VECTORS * VECTOR_FLOATS <= r->c; ch += VECTORS * VECTOR_FLOATS)
        window(r, ch, VECTORS, maximum);
    for (; ch + VECTOR_FLOATS <= r->c; ch += VECTOR_FLOATS) window(r, ch, 1, maximum);
    for (; ch < r->c; ch++) channel(r, ch);
}

void VARIANT_NAME(pool)(const struct rfx_pool_run *r) {
    if (r->maximum)
        channels(r, true);
    else
        channels(r, false);
}
