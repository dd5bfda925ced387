/* Exact sums of float32 values per channel: the bits are the same for any order of adding.
 *
 * A sum is an integer in units of 2^-150. It is stored in 16-bit digits with spare bits for carries
 * (a small superaccumulator; Kulisch, "Computer Arithmetic and Validity", 2008, ch. 8, and Neal,
 * "Fast exact summation using small and large superaccumulators", arXiv:1505.05571, section 2).
 *
 * Invariants: 1. no addition rounds; 2. the result is a function of the multiset of the values; 3.
 * at most 2^40 values per channel. An accumulator is a caller-owned block of rfx_exact_sum_bytes,
 * aligned to 8; it contains no pointers, so it can be copied as bytes. */
#ifndef RFX_LAYERS_KERNELS_EXACT_SUM_H
#define RFX_LAYERS_KERNELS_EXACT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rfx_exact_sum;

/* Returns the bytes of an accumulator for c channels, a multiple of RFX_ALIGNMENT_BYTES. */
size_t rfx_exact_sum_bytes(int64_t c);

/* Initialises `block` (rfx_exact_sum_bytes of uninitialised memory) as an accumulator of c
 * channels, all zero, and returns it. */
struct rfx_exact_sum *rfx_exact_sum_reset(void *block, int64_t c);

/* Adds `pixels` contiguous pixels of c floats each. */
void rfx_exact_sum_add(struct rfx_exact_sum *sum, const float *row, int64_t pixels);

/* Adds the squares of the values of `pixels` pixels. A square is exact if the value's magnitude is
 * in [2^-51, 2^64) or 0. For a smaller magnitude, the part of the square below 2^-149 is rounded
 * away. A larger one counts as infinite. An accumulator of squares must not be used for sums of
 * values. */
void rfx_exact_sum_add_squares(struct rfx_exact_sum *sum, const float *row, int64_t pixels);

/* Whether a block of this size from outside (a file) is an accumulator of c channels whose sum is
 * in range: two such accumulators can be merged without overflow. O(c). */
bool rfx_exact_sum_is_sound(const void *block, int64_t c);

/* Adds the sums of `other`, which has as many channels. The values of `other` do not change. */
void rfx_exact_sum_merge(struct rfx_exact_sum *sum, struct rfx_exact_sum *other);

/* Returns the exact sum of a channel, rounded once to double. NaN and infinities as in
 * rfx_exact_sum_finish. */
double rfx_exact_sum_total(struct rfx_exact_sum *sum, int64_t channel);

/* Writes c results: the exact sum rounded once to double, divided by `divisor`, rounded to float.
 * The result is NaN if a value is NaN or if there are infinities of both signs. Infinities of one
 * sign give that infinity. A sum of zeros is +0. The sums do not change. */
void rfx_exact_sum_finish(struct rfx_exact_sum *sum, double divisor, float *out);
#endif
