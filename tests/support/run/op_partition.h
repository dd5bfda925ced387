/* Runs one spatial op whole and in random rectangles, and compares the bits.
 *
 * Each rectangle gets views that hold exactly the clamped input rectangle (own heap blocks, so that
 * a sanitizer sees any read outside), linear or as a ring of exactly as many rows. */
#ifndef RFX_TESTS_SUPPORT_RUN_OP_PARTITION_H
#define RFX_TESTS_SUPPORT_RUN_OP_PARTITION_H

#include "layers/graph/op.h"

/* Runs `node` (its `in` is set here to one input of c x h x w) on `x` (NHWC); returns the whole
 * output in NHWC, to be freed by the caller, and its shape in *shape. Fails the test on refusal.
 * With cases > 0 also compares that many random rectangles, 1 to 3 threads, seed given. */
float *op_partition_run(const struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                        const float *x, int cases, unsigned seed, struct rfx_tensor *shape);

/* Compares the whole run on `x` with `count` expected values, exactly. */
void op_partition_expect(const struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                         const float *x, const float *expected, int64_t count);

/* Fills n values in [-1, 1) from a seed. */
void op_partition_fill(float *x, int64_t n, unsigned seed);
#endif
