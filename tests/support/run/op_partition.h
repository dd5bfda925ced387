/* Runs one spatial op whole and in random rectangles, and compares the bits.
 *
 * The views of a rectangle contain exactly the input rectangle, clipped to the map. Each is its own
 * heap block, so that a sanitizer detects any read outside. It is linear or a ring buffer of
 * exactly as many rows. */
#ifndef RFX_TESTS_SUPPORT_RUN_OP_PARTITION_H
#define RFX_TESTS_SUPPORT_RUN_OP_PARTITION_H

#include "layers/graph/op.h"

/* Runs `node` on `x` (NHWC, c x h x w) and returns the whole output in NHWC, which the caller
 * frees; *shape receives its shape. Sets the node's `in`. Fails the test if the node is refused. If
 * cases > 0, also compares this number of random rectangles, drawn from `seed`, with 1 to 3
 * threads. */
float *op_partition_run(const struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                        const float *x, int cases, unsigned seed, struct rfx_tensor *shape);

/* Compares the output of the whole run on `x` with `count` expected values, exactly. */
void op_partition_expect(const struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                         const float *x, const float *expected, int64_t count);

/* Fills n values in [-1, 1) from a seed. */
void op_partition_fill(float *x, int64_t n, unsigned seed);
#endif
