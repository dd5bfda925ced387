/* The only door to OpenBLAS: single-threaded row-major products. */
#ifndef RFX_LAYERS_BLAS_H
#define RFX_LAYERS_BLAS_H

#include <stdint.h>

#include "layers/status.h"

/* Sets OpenBLAS to one thread per call; callers do so once before their parallel region. */
void rfx_blas_prepare(void);

/* Makes sure that `threads` products can run at a time: OpenBLAS takes a work buffer for each when
 * it comes to it, and tries for ever when there is no address space for it. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_blas_reserve(int threads, struct rfx_error *err);

/* c[n][m] = a[n][k] x b[k][m], rows lda, ldb, ldc floats apart. Bits are a function of n, m, k and
 * the values only. All sizes fit int. */
void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc);
#endif
