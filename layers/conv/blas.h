/* The only door to OpenBLAS: single-threaded row-major products.
 *
 * The library is loaded when a network is to be run that calls it: its start takes memory and
 * address space, asks for them without end where there are none, and few runs need it.
 *
 * OpenBLAS decides by state of the process how many threads a product takes: a number of its own,
 * or, where it is built on OpenMP, the number of threads that the calling thread would give to a
 * parallel region. Both belong to the program that this library runs in; they are set to 1 around
 * products only, and set back. */
#ifndef RFX_LAYERS_CONV_BLAS_H
#define RFX_LAYERS_CONV_BLAS_H

#include <stdint.h>

#include "layers/core/status.h"

struct rfx_blas_scope {
    int omp_threads; /* what the calling thread's parallel regions had */
};

/* From here to rfx_blas_end, every product of the calling thread, of its parallel regions and of
 * the loops of the team whose body it runs is computed by one thread: threads of a team have a
 * number of their own, which is 1 as long as the team lasts. Scopes nest, and any number of threads
 * may have one at a time: the first of them takes OpenBLAS's number, the last one gives it back.
 * Cheap. */
struct rfx_blas_scope rfx_blas_begin(void);

/* In the thread that began. */
void rfx_blas_end(struct rfx_blas_scope scope);

/* Loads OpenBLAS; it stays for the life of the process, and loading it again costs nothing. All of
 * the functions here but rfx_blas_reserve need it. OUT_OF_MEMORY: no address space; IO: there is no
 * such library, or it does not load. */
RFX_NODISCARD enum rfx_status rfx_blas_load(struct rfx_error *err);

/* Loads OpenBLAS and makes sure that `threads` products can run at a time: it takes a work buffer
 * for each when it comes to it, and keeps them for the life of the process. As rfx_blas_load. */
RFX_NODISCARD enum rfx_status rfx_blas_reserve(int threads, struct rfx_error *err);

/* Its version and the kernels that it has for this processor: what its bits hang on. */
void rfx_blas_describe(char *text, size_t size);

/* c[n][m] = a[n][k] x b[k][m], rows lda, ldb, ldc floats apart. Bits are a function of n, m, k and
 * the values only. All sizes fit int. To be called in a scope. */
void rfx_blas_gemm(int64_t n, int64_t m, int64_t k, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float *c, int64_t ldc);
#endif
