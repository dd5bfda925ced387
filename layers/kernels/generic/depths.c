/* How far items that are tried at many places share bytes with others: places side by side. */
#include "layers/kernels/generic/variant.h"

#define INLINE static inline __attribute__((always_inline))
#define MANY 4 /* vectors of places that share what is read of an item */

_Static_assert(RFX_DEPTHS_FILLED % VECTOR_FLOATS == 0, "places are filled up to whole vectors");

/* n vectors of places; n is a constant in all calls. */
INLINE void add_depths(const struct rfx_depths_run *r, int64_t at, int n) {
    const vector none = VECTOR_ALL(0.0f), size = VECTOR_ALL(r->size);
    vector bottom[MANY], top[MANY], sum[MANY];
    UNROLL for (int v = 0; v < n; v++) {
        bottom[v] = VECTOR_LOAD(r->places + at + v * VECTOR_FLOATS);
        top[v] = bottom[v] + size;
        sum[v] = none;
    }
    for (int64_t k = 0; k < r->others; k++) {
        vector weight = VECTOR_ALL(r->weights[k]);
        vector up = VECTOR_ALL(r->tops[k]), down = VECTOR_ALL(r->bottoms[k]);
        UNROLL for (int v = 0; v < n; v++) {
            vector depth = VECTOR_MIN(up - bottom[v], top[v] - down);
            sum[v] = sum[v] + weight * VECTOR_MAX(depth, none);
        }
    }
    UNROLL for (int v = 0; v < n; v++) VECTOR_STORE(r->costs + at + v * VECTOR_FLOATS, sum[v]);
}

void VARIANT_NAME(depths)(const struct rfx_depths_run *r) {
    int64_t at = 0;
    for (; at + (MANY - 1) * VECTOR_FLOATS < r->n; at += MANY * VECTOR_FLOATS)
        add_depths(r, at, MANY);
    for (; at < r->n; at += VECTOR_FLOATS) add_depths(r, at, 1);
}
