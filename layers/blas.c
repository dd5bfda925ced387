/* Calls into OpenBLAS. One thread per call: a product split over threads would have other bits. */
#include "layers/blas.h"

#include <cblas.h>
#include <pthread.h>

static void set_one_thread(void) {
    openblas_set_num_threads(1);
}

void rfx_blas_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_one_thread);
}

void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)n, (blasint)m, (blasint)k, 1.0f,
                a, (blasint)lda, b, (blasint)ldb, 0.0f, c, (blasint)ldc);
}
