/* Prefetches of convolutions: while sums are computed, they request memory that is needed later.
 * Included by conv.c, which defines INLINE and SIZE_OF_BLOCK. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_CONV_EXPECT_H
#define RFX_LAYERS_KERNELS_GENERIC_CONV_EXPECT_H

#include "layers/kernels/kernels.h"

/* Floats; multiplying so many weights takes as long as an answer of main memory. */
#define WEIGHTS_AHEAD 2048
/* Floats; multiplying so many takes as long as an answer of the second-level cache. */
#define WEIGHTS_SOON 1024
/* Floats; addresses this far apart share a set of the first-level cache. */
#define WAY_FLOATS 1024

/* The outputs and residuals that the end of a block accesses. They are prefetched one pixel after
 * the other while the sums are computed. Prefetching all at once would exceed the number of lines
 * that a core can wait for, and the sums would wait too. */
struct end {
    /* Addresses of the next pixel; residual NULL: none, or the same as the output. */
    const float *out, *residual;
    int64_t out_stride, residual_stride;
    int pixels; /* pixels that are not prefetched yet */
};

/* Whether output pixels are apart in memory. With a single panel they follow each other, and the
 * hardware prefetcher fetches them. */
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

/* Whether input values should be prefetched: each value is read by one pixel only, the pixels are
 * too far apart for the hardware prefetcher, and the values of two blocks fit into the first-level
 * cache. */
INLINE bool values_apart(const struct rfx_conv_args *c) {
    return c->x_stride >= c->kw * c->tap_stride && c->x_stride % WAY_FLOATS != 0;
}

INLINE void expect_next(const struct rfx_conv_args *c, const float *x, int64_t k, int n) {
    const float *next = x + n * c->x_stride;
    for (int p = 0; p < n; p++, next += c->x_stride)
        for (int64_t i = 0; i < k; i += RFX_LINE_FLOATS) __builtin_prefetch(next + i);
}

/* Prefetches the weights of a block at `w`. For the first pixels, weights come from main memory:
 * they are prefetched WEIGHTS_AHEAD floats ahead, because the hardware prefetcher stays within a
 * page and pages change faster than memory answers. For other pixels they come from the
 * second-level cache, from every other line of a panel, which the hardware prefetcher hardly
 * detects: they are prefetched WEIGHTS_SOON floats ahead. */
INLINE void expect_weights(const float *w) {
    for (int v = 0; v < SIZE_OF_BLOCK; v += RFX_LINE_FLOATS) __builtin_prefetch(w + v);
}
#endif
