/* The only code that calls OpenBLAS: single-threaded matrix products of row-major matrices.
 *
 * OpenBLAS is loaded only when a network that needs it is about to run. Few runs need it, and its
 * start takes memory and address space. If there is too little of them, OpenBLAS retries without
 * end.
 *
 * Process-wide state decides how many threads OpenBLAS uses for a product. That state is OpenBLAS's
 * own thread count or, in a build on OpenMP, the number of threads that the calling thread would
 * give to a parallel region. Both belong to the program that uses this library. So they are set to
 * 1 only around products, and restored afterwards. */
#ifndef RFX_LAYERS_CONV_BLAS_H
#define RFX_LAYERS_CONV_BLAS_H

#include <stdint.h>

#include "layers/core/status.h"

struct rfx_blas_scope {
    int omp_threads; /* thread count of the calling thread's parallel regions before the scope */
};

/* Begins a scope in which every product is computed by a single thread. This holds for the calling
 * thread, for its parallel regions, and for the loops of the team whose body it runs. (The threads
 * of a team have a thread count of their own, which is 1 as long as the team lasts.) Scopes nest,
 * and any number of threads may have a scope open at a time. The first scope to open sets
 * OpenBLAS's thread count to 1; the last one to close restores it. Cheap. */
struct rfx_blas_scope rfx_blas_begin(void);

/* Ends a scope. Call it in the thread that began the scope. */
void rfx_blas_end(struct rfx_blas_scope scope);

/* Loads OpenBLAS, which stays loaded for the life of the process. Loading it again costs nothing.
 * All functions of this header except rfx_blas_reserve require a successful load. OUT_OF_MEMORY:
 * too little address space. IO: the library does not exist or does not load. UNSUPPORTED: this
 * build has no OpenBLAS. */
RFX_NODISCARD enum rfx_status rfx_blas_load(struct rfx_error *err);

/* Loads OpenBLAS and makes sure that `threads` products can run at a time. OpenBLAS needs one work
 * buffer for each of them; it allocates them here and keeps them for the life of the process.
 * Statuses as rfx_blas_load. */
RFX_NODISCARD enum rfx_status rfx_blas_reserve(int threads, struct rfx_error *err);

/* Writes OpenBLAS's version and the name of its kernels for this processor into `text`, cut off at
 * `size` bytes. The bits of products depend on both. */
void rfx_blas_describe(char *text, size_t size);

/* Computes c[n][m] = a[n][k] x b[k][m]. Rows are lda, ldb and ldc floats apart. The result's bits
 * depend only on n, m, k and the values. All sizes must fit in an int. Call it within a scope. */
void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc);
#endif
