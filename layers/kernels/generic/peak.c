/* As many multiply-adds as the processor can do: chains that do not wait for each other, in
 * registers, with nothing to load or store in between. */
#include "layers/kernels/generic/variant.h"

/* Chains in flight: more than latency times units of today's processors, and few enough to leave
 * registers for factor and term. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define CHAINS 24 /* of 32 registers */
#else
#define CHAINS 12 /* of 16 */
#endif
_Static_assert(CHAINS *VECTOR_FLOATS <= RFX_PEAK_SUMS, "all sums are given back");

int VARIANT_NAME(peak)(float factor, float term, int64_t rounds, float *sums) {
    const vector f = VECTOR_ALL(factor), t = VECTOR_ALL(term);
    vector sum[CHAINS];
#pragma GCC unroll 24
    for (int c = 0; c < CHAINS; c++) sum[c] = VECTOR_LOAD(sums + c * VECTOR_FLOATS);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 24 /* else the sums of many chains would live in memory */
        for (int c = 0; c < CHAINS; c++) sum[c] = VECTOR_FMA(sum[c], f, t);
    }
#pragma GCC unroll 24
    for (int c = 0; c < CHAINS; c++) VECTOR_STORE(sums + c * VECTOR_FLOATS, sum[c]);
    return CHAINS * VECTOR_FLOATS;
}
