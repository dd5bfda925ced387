/* The input values that a block of pixels multiplies: one per pixel, as far apart as pixels are.
 * For conv.c, which says how many pixels there are: INLINE, PIXELS. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_CONV_VALUES_H
#define RFX_LAYERS_KERNELS_GENERIC_CONV_VALUES_H

#include "layers/kernels/generic/variant.h"

#if PIXELS > 8
/* More distances than registers are left for: they would be read from memory for every value. From
 * two pixels on, an address can say all of them with these three, in bytes. */
struct values {
    const char *near, *far; /* of the first pixel, and of pixel HALF */
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

/* To the next input channel. That the distances stay the same is hidden, lest all their multiples
 * are made once, and kept in memory. */
INLINE void next_values(struct values *v) {
    v->near += sizeof(float);
    v->far += sizeof(float);
    __asm__("" : "+r"(v->one), "+r"(v->three), "+r"(v->five));
}
#else
struct values {
    const float *x; /* of the first pixel */
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
