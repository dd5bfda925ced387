/* Addresses of the input values that a block of pixels multiplies, one per pixel. Included by
 * conv.c and int_conv.c, which define INLINE and PIXELS. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_CONV_VALUES_H
#define RFX_LAYERS_KERNELS_GENERIC_CONV_VALUES_H

#include "layers/kernels/generic/variant.h"

#if PIXELS > 8
/* Without one register per pixel: that many distances do not fit into the registers and would be
 * read from memory for every value. The addresses of all pixels can be formed from two base
 * pointers and these three distances, in bytes. */
struct values {
    const char *near, *far; /* addresses of the first pixel and of pixel HALF */
    int64_t one, three, five;
};
enum { HALF = 7 };
_Static_assert(PIXELS <= 2 * HALF, "from two pixels on");

/* x: the first pixel's value; stride: bytes from pixel to pixel. */
INLINE struct values values_from(const void *x, int64_t stride) {
    const char *near = x;
    return (struct values){near, near + HALF * stride, stride, 3 * stride, 5 * stride};
}

INLINE const void *value_of(const struct values *v, int pixel) {
    const char *from = pixel < HALF ? v->near : v->far;
    const int64_t distance[HALF] = {0,          v->one,  2 * v->one,  v->three,
                                    4 * v->one, v->five, 2 * v->three};
    return from + distance[pixel % HALF];
}

/* Moves to the values that are `bytes` further on. The empty asm hides from the compiler that the
 * distances do not change. Otherwise it would compute all their multiples once and keep them in
 * memory. */
INLINE void next_values(struct values *v, int64_t bytes) {
    v->near += bytes;
    v->far += bytes;
    __asm__("" : "+r"(v->one), "+r"(v->three), "+r"(v->five));
}
#else
struct values {
    const char *x; /* address of the first pixel's value */
    int64_t stride;
};

INLINE struct values values_from(const void *x, int64_t stride) {
    return (struct values){x, stride};
}

INLINE const void *value_of(const struct values *v, int pixel) {
    return v->x + pixel * v->stride;
}

INLINE void next_values(struct values *v, int64_t bytes) {
    v->x += bytes;
}
#endif
#endif
