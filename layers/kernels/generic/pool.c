/* Windows of pools, vectorised over channels; see struct rfx_pool_args. */
#include <math.h>

#include "layers/kernels/generic/variant.h"

#define INLINE static inline __attribute__((always_inline))
#define VECTORS 4 /* enough vectors to hide the latency of a comparison */

#define LOAD(at) (some ? VECTOR_LOAD_WHERE(lanes, at) : VECTOR_LOAD(at))

/* Computes a window for nv vectors of channels from ch on, or for `some` lanes of one vector. nv,
 * some and maximum are constants in all calls. */
INLINE void window(const struct rfx_pool_args *r, int64_t ch, int nv, bool some, bool maximum) {
    const vector_test lanes = vector_test_range(0, r->c - ch);
    vector value[VECTORS];
    UNROLL for (int v = 0; v < nv; v++) value[v] =
        r->begun ? LOAD(r->out + ch + v * VECTOR_FLOATS) : VECTOR_ALL(maximum ? -INFINITY : 0.0f);
    for (int64_t y = 0; y < r->n_rows; y++) {
        const float *x = r->rows[y] + ch;
        for (int64_t i = 0; i < r->n_cols; i++, x += r->col_step)
            UNROLL for (int v = 0; v < nv; v++) {
                vector xv = LOAD(x + v * VECTOR_FLOATS);
                value[v] = maximum ? VECTOR_LARGER(xv, value[v]) : value[v] + xv;
            }
    }
    UNROLL for (int v = 0; v < nv; v++) {
        float *out = r->out + ch + v * VECTOR_FLOATS;
        if (!maximum && !r->goes_on) value[v] = value[v] / VECTOR_ALL(r->count);
        if (some)
            VECTOR_STORE_WHERE(lanes, out, value[v]);
        else
            VECTOR_STORE(out, value[v]);
    }
}

INLINE void channels(const struct rfx_pool_args *r, bool maximum) {
    int64_t ch = 0;
    for (; ch + VECTORS * VECTOR_FLOATS <= r->c; ch += VECTORS * VECTOR_FLOATS)
        window(r, ch, VECTORS, false, maximum);
    for (; ch + VECTOR_FLOATS <= r->c; ch += VECTOR_FLOATS) window(r, ch, 1, false, maximum);
    if (ch < r->c) window(r, ch, 1, true, maximum);
}

void VARIANT_NAME(pool)(const struct rfx_pool_args *r) {
    if (r->maximum)
        channels(r, true);
    else
        channels(r, false);
}
