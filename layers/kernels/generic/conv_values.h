/* Reads the input values that a block of pixels multiplies, one per pixel, `stride` floats apart.
 * Included by conv.c, which defines INLINE and PIXELS. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_CONV_VALUES_H
#define RFX_LAYERS_KERNELS_GENERIC_CONV_VALUES_H

#include "layers/kernels/generic/variant.h"

#if PIXELS > 8
/* Addresses of the values without one register per pixel: that many distances do not fit into the
 * registers and would be read from memory for every value. The addresses of all pixels can be
 * formed from two base pointers and these three distances, in bytes. */
struct values {
    const char *near, *far; /* addresses of the first pixel and of pixel HALF */
    int64_t one, three, five;
};
enum { HALF = 7 };
_Static_assert(PIXELS <= 2 * HALF, "from two pixels on");

INLINE struct values values_from(const float *x, int64_t stride) {
    int64_t one = stride * (int64_t)sizeof *x;
    const char *near = (const char *)x;
    return (struct values){near, near + HALF * one, one, 3 * one, 5 * one};
}

INLINE float value_of(const struct values *v, int pixel) {
    const char *from = pixel < HALF ? v->near : v->far;
    const int64_t distance[HALF] = {0,          v->one,  2 * v->one,  v->three,
                                    4 * v->one, v->five, 2 * v->three};
    return *(const float *)(const void *)(from + distance[pixel % HALF]);
}

/* Moves to the next input channel. The empty asm hides from the compiler that the distances do not
 * change. Otherwise it would compute all their multiples once and keep them in memory. */
INLINE void next_values(struct values *v) {
    v->near += sizeof(float);
    v->far += sizeof(float);
    __asm__("" : "+r"(v->one), "+r"(v->three), "+r"(v->five));
}
#else
struct values {
    const float *x; /* address of the first pixel */
    int64_t stride;
};

INLINE struct values values_from(const float *x, int64_t stride) {
    return (struct values){x, stride};
}

INLINE float value_of(const struct values *v, int pixel) {
    return v->x[pixel * v->stride];
}

INLINE void next_values(struct values *v) {
    v->x++;
}
#endif
#endif
