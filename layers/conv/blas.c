/* Calls OpenBLAS with one thread per call: a product divided among threads would have other
 * bits. */
#include "layers/conv/blas.h"

#include <assert.h>
#include <cblas.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>

#include "layers/core/library.h"

#define LIBRARY_NAME "libopenblas.so.0"
#define LIBRARY_BYTES ((size_t)64 << 20) /* address space of it and of the Fortran runtime */
#define WORK_BYTES ((size_t)129 << 20)   /* address space of one work buffer on x86-64 */
#define MAX_BUFFERS 64 /* further threads get their buffers at their first product */

/* Pointers to OpenBLAS's functions, with their own names and types. The functions for work buffers
 * are exported but in no header; a build of OpenBLAS without them works as well. */
struct blas_functions {
    __typeof__(cblas_sgemm) *cblas_sgemm;
    __typeof__(openblas_get_parallel) *openblas_get_parallel;
    __typeof__(openblas_get_num_threads) *openblas_get_num_threads;
    __typeof__(openblas_set_num_threads) *openblas_set_num_threads;
    char *(*openblas_get_config)(void);
    char *(*openblas_get_corename)(void);
    void *(*blas_memory_alloc)(int place);
    void (*blas_memory_free)(void *buffer);
};

#define FUNCTION(name, optional) \
    { #name, offsetof(struct blas_functions, name), optional }
static const struct rfx_library_function functions[] = {
    FUNCTION(cblas_sgemm, false),
    FUNCTION(openblas_get_parallel, false),
    FUNCTION(openblas_get_num_threads, false),
    FUNCTION(openblas_set_num_threads, false),
    FUNCTION(openblas_get_config, true),
    FUNCTION(openblas_get_corename, true),
    FUNCTION(blas_memory_alloc, true),
    FUNCTION(blas_memory_free, true),
};

static struct blas_functions blas;
static pthread_mutex_t loading_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static int taken; /* work buffers allocated here; buffers from OpenBLAS's start may be in use */

/* Checks that `bytes` of address space are free; OUT_OF_MEMORY if not. OpenBLAS retries its own
 * allocations without limit, so with too little address space it would hang. */
static enum rfx_status try_space(size_t bytes, struct rfx_error *err) {
    void *trial = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (trial == MAP_FAILED)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                        "no address space for OpenBLAS: it needs %zu MiB of it (a limit such as "
                        "ulimit -v?)",
                        bytes >> 20);
    (void)munmap(trial, bytes);
    return RFX_OK;
}

/* Loads OpenBLAS. At its start, OpenBLAS allocates one buffer per processor. */
static enum rfx_status load(struct rfx_error *err) {
    int n = omp_get_num_procs() < MAX_BUFFERS ? omp_get_num_procs() : MAX_BUFFERS;
    if (loaded) return RFX_OK;
    enum rfx_status status = try_space(LIBRARY_BYTES + (size_t)n * WORK_BYTES, err);
    if (status != RFX_OK) return status;
    status = rfx_library_load(LIBRARY_NAME, functions, sizeof functions / sizeof functions[0],
                              &blas, err);
    loaded = status == RFX_OK;
    return loaded ? RFX_OK : rfx_fail_within(err, status, "products need OpenBLAS");
}

enum rfx_status rfx_blas_load(struct rfx_error *err) {
    (void)pthread_mutex_lock(&loading_lock);
    enum rfx_status status = load(err);
    (void)pthread_mutex_unlock(&loading_lock);
    return status;
}

/* Makes OpenBLAS allocate `threads` work buffers now, with its own functions. Otherwise it would
 * allocate a buffer at the first product that needs one more, in the middle of a run. */
static enum rfx_status take_buffers(int threads, struct rfx_error *err) {
    void *buffers[MAX_BUFFERS];
    int wanted = threads < MAX_BUFFERS ? threads : MAX_BUFFERS;
    if (blas.blas_memory_alloc == NULL || blas.blas_memory_free == NULL || taken >= wanted)
        return RFX_OK;
    enum rfx_status status = try_space((size_t)(wanted - taken) * WORK_BYTES, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < wanted; i++) buffers[i] = blas.blas_memory_alloc(0);
    for (int i = 0; i < wanted; i++) blas.blas_memory_free(buffers[i]);
    taken = wanted;
    return RFX_OK;
}

enum rfx_status rfx_blas_reserve(int threads, struct rfx_error *err) {
    (void)pthread_mutex_lock(&loading_lock);
    enum rfx_status status = load(err);
    if (status == RFX_OK) status = take_buffers(threads, err);
    if (status == RFX_OK) rfx_blas_end(rfx_blas_begin()); /* OpenMP allocates now */
    (void)pthread_mutex_unlock(&loading_lock);
    return status;
}

static pthread_mutex_t scope_lock = PTHREAD_MUTEX_INITIALIZER;
static int scopes;       /* open scopes of all threads */
static int host_threads; /* OpenBLAS's thread count before the first of them */

/* Returns whether OpenBLAS is built on OpenMP. Such a build uses only the thread count of the
 * calling thread. Setting OpenBLAS's own thread count would also set the caller's, and would move
 * buffers while other threads of the program compute products. */
static bool counts_by_openmp(void) {
    assert(blas.openblas_get_parallel != NULL); /* OpenBLAS must be loaded */
    return blas.openblas_get_parallel() == OPENBLAS_OPENMP;
}

struct rfx_blas_scope rfx_blas_begin(void) {
    struct rfx_blas_scope scope = {omp_get_max_threads()};
    omp_set_num_threads(1);
    if (counts_by_openmp()) return scope;
    (void)pthread_mutex_lock(&scope_lock);
    if (scopes++ == 0) {
        host_threads = blas.openblas_get_num_threads();
        blas.openblas_set_num_threads(1);
    }
    (void)pthread_mutex_unlock(&scope_lock);
    return scope;
}

void rfx_blas_end(struct rfx_blas_scope scope) {
    omp_set_num_threads(scope.omp_threads);
    if (counts_by_openmp()) return;
    (void)pthread_mutex_lock(&scope_lock);
    if (--scopes == 0) blas.openblas_set_num_threads(host_threads);
    (void)pthread_mutex_unlock(&scope_lock);
}

void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc) {
    blas.cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)n, (blasint)m, (blasint)k,
                     1.0f, a, (blasint)lda, b, (blasint)ldb, 0.0f, c, (blasint)ldc);
}

void rfx_blas_describe(char *text, size_t size) {
    bool known = blas.openblas_get_config != NULL && blas.openblas_get_corename != NULL;
    (void)snprintf(text, size, "%s, %s", known ? blas.openblas_get_config() : "OpenBLAS",
                   known ? blas.openblas_get_corename() : "unknown kernels");
}
