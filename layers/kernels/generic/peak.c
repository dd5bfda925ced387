/* Computes as many multiply-adds as the processor can: independent chains in registers, without
 * loads and stores in between. */
#include "layers/kernels/generic/variant.h"

/* Number of chains: more than latency x execution units of current processors, and few enough to
 * leave registers for factor and term. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define CHAINS 24 /* in 32 registers */
#else
#define CHAINS 12 /* in 16 registers */
#endif
_Static_assert(CHAINS *VECTOR_FLOATS <= RFX_PEAK_SUMS, "all sums are given back");

int VARIANT_NAME(peak)(float factor, float term, int64_t rounds, float *sums) {
    const vector f = VECTOR_ALL(factor), t = VECTOR_ALL(term);
    vector sum[CHAINS];
#pragma GCC unroll 24
    for (int c = 0; c < CHAINS; c++) sum[c] = VECTOR_LOAD(sums + c * VECTOR_FLOATS);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 24 /* otherwise the sums would be kept in memory */
        for (int c = 0; c < CHAINS; c++) sum[c] = VECTOR_FMA(sum[c], f, t);
    }
#pragma GCC unroll 24
    for (int c = 0; c < CHAINS; c++) VECTOR_STORE(sums + c * VECTOR_FLOATS, sum[c]);
    return CHAINS * VECTOR_FLOATS;
}
