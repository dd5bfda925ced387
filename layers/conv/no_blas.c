/* Replaces blas.c in builds without OpenBLAS. Loading fails, so the other functions are never
 * called. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "layers/conv/blas.h"

enum rfx_status rfx_blas_load(struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "products need OpenBLAS: this build has no OpenBLAS support "
                    "(RFX_WITH_OPENBLAS=OFF)");
}

enum rfx_status rfx_blas_reserve(int threads, struct rfx_error *err) {
    (void)threads;
    return rfx_blas_load(err);
}

struct rfx_blas_scope rfx_blas_begin(void) {
    return (struct rfx_blas_scope){1};
}

void rfx_blas_end(struct rfx_blas_scope scope) {
    (void)scope;
}

void rfx_blas_describe(char *text, size_t size) {
    (void)snprintf(text, size, "no OpenBLAS");
}

void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc) {
    (void)n, (void)m, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)c, (void)ldc;
    assert(!"rfx_blas_load has failed");
}
