/* Calls into OpenBLAS. One thread per call: a product split over threads would have other bits. */
#include "layers/conv/blas.h"

#include <cblas.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

static pthread_mutex_t scope_lock = PTHREAD_MUTEX_INITIALIZER;
static int scopes;       /* open ones, of all threads */
static int host_threads; /* OpenBLAS's number before the first of them */

/* Built on OpenMP, OpenBLAS goes by the calling thread's number and by nothing else: setting its
 * own would set the caller's as well, and move buffers under products of the host's other threads.
 */
static bool counts_by_openmp(void) {
    return openblas_get_parallel() == OPENBLAS_OPENMP;
}

struct rfx_blas_scope rfx_blas_begin(void) {
    struct rfx_blas_scope scope = {omp_get_max_threads()};
    omp_set_num_threads(1);
    if (counts_by_openmp()) return scope;
    (void)pthread_mutex_lock(&scope_lock);
    if (scopes++ == 0) {
        host_threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
    (void)pthread_mutex_unlock(&scope_lock);
    return scope;
}

void rfx_blas_end(struct rfx_blas_scope scope) {
    omp_set_num_threads(scope.omp_threads);
    if (counts_by_openmp()) return;
    (void)pthread_mutex_lock(&scope_lock);
    if (--scopes == 0) openblas_set_num_threads(host_threads);
    (void)pthread_mutex_unlock(&scope_lock);
}

#define WORK_BYTES ((size_t)129 << 20) /* of one buffer on x86-64, address space only */
#define MAX_BUFFERS 64                 /* more threads than that get theirs when they need them */

/* OpenBLAS takes its buffers at the first product that needs one more, with no limit on how often
 * it tries again: a run under a limit of the address space would hang in the middle. So they are
 * taken in advance, with its own functions: not in a header of OpenBLAS, but exported; weak, so
 * that a build without them still links. */
extern void *blas_memory_alloc(int place) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

static pthread_mutex_t taken_lock = PTHREAD_MUTEX_INITIALIZER;
static int taken; /* buffers made here; what OpenBLAS has from its start may be in use */

enum rfx_status rfx_blas_reserve(int threads, struct rfx_error *err) {
    void *buffers[MAX_BUFFERS];
    int wanted = threads < MAX_BUFFERS ? threads : MAX_BUFFERS;
    enum rfx_status status = RFX_OK;
    if (blas_memory_alloc == NULL || blas_memory_free == NULL) return RFX_OK;
    (void)pthread_mutex_lock(&taken_lock);
    if (taken < wanted) {
        size_t bytes = (size_t)(wanted - taken) * WORK_BYTES;
        void *trial =
            mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (trial == MAP_FAILED) {
            status =
                rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                         "no address space for OpenBLAS: %d threads need %zu MiB of it (a limit "
                         "such as ulimit -v?)",
                         wanted, (size_t)wanted * (WORK_BYTES >> 20));
        } else {
            (void)munmap(trial, bytes);
            for (int i = 0; i < wanted; i++) buffers[i] = blas_memory_alloc(0);
            for (int i = 0; i < wanted; i++) blas_memory_free(buffers[i]);
            taken = wanted;
        }
    }
    (void)pthread_mutex_unlock(&taken_lock);
    return status;
}

void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)n, (blasint)m, (blasint)k, 1.0f,
                a, (blasint)lda, b, (blasint)ldb, 0.0f, c, (blasint)ldc);
}
