/* The only door to OpenBLAS: single-threaded row-major products. */
#ifndef RFX_LAYERS_BLAS_H
#define RFX_LAYERS_BLAS_H

#include <stdint.h>

/* Sets OpenBLAS to one thread per call; callers do so once before their parallel region. */
void rfx_blas_prepare(void);

/* c[n][m] = a[n][k] x b[k][m], rows lda, ldb, ldc floats apart. Bits are a function of n, m, k and
 * the values only. All sizes fit int. */
void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc);
#endif
