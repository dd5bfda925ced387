/* Computes as many multiply-adds as the processor can with what integer convolutions are made of:
 * independent chains in registers, without loads and stores in between. */
#include "layers/kernels/generic/int_vectors.h"
#include "layers/kernels/generic/variant.h"

#ifdef INT_VECTORS
/* As in peak.c; a product before it is added takes a register, too. */
#if VECTOR_FLOATS == 16 || defined(__aarch64__)
#define CHAINS 24 /* in 32 registers */
#else
#define CHAINS 12 /* in 16 registers */
#endif
_Static_assert(CHAINS *VECTOR_FLOATS <= RFX_PEAK_SUMS, "all sums are given back");

#ifdef VARIANT_INT_BYTES
#define IN_SUM 4 /* products that a step adds to a sum */
#else
#define IN_SUM 2
#endif

/* Returns this value for all products of all sums. */
static ints values_of(int value) {
#ifdef VARIANT_INT_BYTES
    return INTS_ALL((int32_t)((uint32_t)(uint8_t)value * 0x01010101U));
#else
    return INTS_ALL((int32_t)((uint32_t)(uint16_t)value * 0x00010001U));
#endif
}

#if defined(__SSE2__) && !defined(VARIANT_INT_BYTES)
#if VECTOR_FLOATS == 16
#define KEPT(x) "+v"(x)
#else
#define KEPT(x) "+x"(x)
#endif
typedef uint32_t wrapping __attribute__((vector_size(VECTOR_FLOATS * 4)));

/* Adds the products of a step to two chains. Both products come before the additions, as compilers
 * order them in the convolution. In turns they take longer (AMD EPYC, family 25, AVX-512: 174
 * GOP/s, not 213), and layers would exceed the peak. */
INLINE void add_to_two(ints sum[2], ints *value, const ints weights[IN_BLOCK]) {
    const ints none = {0};
    ints first = add_step(none, *value, weights, 0);
    VECTOR_KEEP(*value);
    ints second = add_step(none, *value, weights, 0);
    VECTOR_KEEP(*value);
    __asm__("" : KEPT(first), KEPT(second));
    sum[0] = (ints)((wrapping)sum[0] + (wrapping)first);
    sum[1] = (ints)((wrapping)sum[1] + (wrapping)second);
}
#else
INLINE void add_to_two(ints sum[2], ints *value, const ints weights[IN_BLOCK]) {
    UNROLL for (int i = 0; i < 2; i++) {
        VECTOR_KEEP(*value);
        sum[i] = add_step(sum[i], *value, weights, 0);
    }
}
#endif

/* add_to_two keeps the value in a register, as if it changed there. Otherwise a compiler would
 * compute products of pairs once for all. */
int SET_NAME(peak_int)(uint8_t x, int8_t w, int64_t rounds, int32_t *sums) {
    ints value = values_of(x), weights[IN_BLOCK], sum[CHAINS];
    UNROLL for (int v = 0; v < IN_BLOCK; v++) weights[v] = values_of(w);
    UNROLL for (int c = 0; c < CHAINS; c++) sum[c] = INTS_LOAD(sums + c * VECTOR_FLOATS);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int c = 0; c < CHAINS; c += 2) add_to_two(sum + c, &value, weights);
    }
    UNROLL for (int c = 0; c < CHAINS; c++) {
        *(ints_unaligned *)(void *)(sums + c * VECTOR_FLOATS) = sum[c];
    }
    return CHAINS * VECTOR_FLOATS * IN_SUM;
}
#else
#define CHAINS RFX_INT_LANES

/* As the convolution: a compiler may make vectors of it, but does not know the values. */
int SET_NAME(peak_int)(uint8_t x, int8_t w, int64_t rounds, int32_t *sums) {
    int32_t value = x, weights[CHAINS];
    uint32_t sum[CHAINS]; /* wraps around */
    for (int c = 0; c < CHAINS; c++) {
        weights[c] = w;
        sum[c] = (uint32_t)sums[c];
    }
    __asm__("" : "+m"(weights));
    for (int64_t r = 0; r < rounds; r++) {
        __asm__("" : "+r"(value));
        for (int c = 0; c < CHAINS; c++) sum[c] += (uint32_t)(value * weights[c]);
    }
    for (int c = 0; c < CHAINS; c++) sums[c] = (int32_t)sum[c];
    return CHAINS;
}
#endif
