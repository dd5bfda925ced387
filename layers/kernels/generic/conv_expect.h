/* What convolutions ask memory for while sums are made, lest they wait for it later. For conv.c,
 * which says what a block is: INLINE, SIZE_OF_BLOCK. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_CONV_EXPECT_H
#define RFX_LAYERS_KERNELS_GENERIC_CONV_EXPECT_H

#include "layers/kernels/kernels.h"

#define WEIGHTS_AHEAD 2048 /* floats: the sums of so many weights take as long as memory does */
#define WEIGHTS_SOON 1024  /* ... as the second cache does */
#define WAY_FLOATS 1024    /* addresses so far apart share a set of the first cache */

/* What a block's end reads and writes comes to the nearest cache while its sums are made: pixel
 * after pixel, for all at once are more lines than a core waits for, and the sums wait with them.
 */
struct end {
    const float *out, *residual; /* of the next pixel; residual NULL: none, or what is written */
    int64_t out_stride, residual_stride;
    int pixels; /* still to be asked for */
};

/* Pixels of one panel follow each other, which the processor foresees. */
INLINE bool ends_apart(const struct rfx_conv_args *c) {
    return c->out_stride > RFX_CONV_PANEL;
}

INLINE struct end expect_end(const struct rfx_conv_args *c, const float *out, const float *residual,
                             int n) {
    struct end end = {.out = out,
                      .residual = residual == out ? NULL : residual,
                      .out_stride = c->out_stride,
                      .residual_stride = c->residual_stride,
                      .pixels = ends_apart(c) ? n : 0};
    return end;
}

INLINE void expect_pixel(struct end *end) {
    for (int v = 0; v < SIZE_OF_BLOCK; v += RFX_LINE_FLOATS) __builtin_prefetch(end->out + v, 1);
    end->out += end->out_stride;
    end->pixels--;
    if (end->residual == NULL) return;
    for (int v = 0; v < SIZE_OF_BLOCK; v += RFX_LINE_FLOATS) __builtin_prefetch(end->residual + v);
    end->residual += end->residual_stride;
}

/* Whether each value is read once, by one pixel, from lines too far apart to be foreseen, and those
 * of two blocks fit into the nearest cache. */
INLINE bool values_apart(const struct rfx_conv_args *c) {
    return c->x_stride >= c->kw * c->tap_stride && c->x_stride % WAY_FLOATS != 0;
}

INLINE void expect_next(const struct rfx_conv_args *c, const float *x, int64_t k, int n) {
    const float *next = x + n * c->x_stride;
    for (int p = 0; p < n; p++, next += c->x_stride)
        for (int64_t i = 0; i < k; i += RFX_LINE_FLOATS) __builtin_prefetch(next + i);
}

/* The weights of a block at `w`. For the first pixels they come from memory, WEIGHTS_AHEAD behind
 * those that are used: the processor foresees lines of one page only, and pages follow each other
 * faster than memory answers. For others they come from the second cache, every other line of
 * panels, which it hardly foresees: WEIGHTS_SOON behind. */
INLINE void expect_weights(const float *w) {
    for (int v = 0; v < SIZE_OF_BLOCK; v += RFX_LINE_FLOATS) __builtin_prefetch(w + v);
}
#endif
