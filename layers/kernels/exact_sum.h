/* Exact sums of float32 values per channel: the same bits for any order of adding.
 *
 * A sum is an integer in units of 2^-150, kept in 16-bit digits with room for carries (a small
 * superaccumulator; Kulisch, "Computer Arithmetic and Validity", 2008, ch. 8, and Neal, "Fast exact
 * summation using small and large superaccumulators", arXiv:1505.05571, section 2).
 * Invariants: 1. no addition rounds; 2. the result is a function of the multiset of the values;
 * 3. at most 2^40 values per channel. An accumulator is a caller-owned block of
 * rfx_exact_sum_bytes, aligned to 8; it holds no pointers, so it can be copied as bytes. */
#ifndef RFX_LAYERS_KERNELS_EXACT_SUM_H
#define RFX_LAYERS_KERNELS_EXACT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rfx_exact_sum;

/* Bytes of an accumulator for c channels, a multiple of RFX_ALIGNMENT_BYTES. */
size_t rfx_exact_sum_bytes(int64_t c);

/* Makes `block` (rfx_exact_sum_bytes of garbage) an accumulator of c channels, all zero, and
 * returns it. */
struct rfx_exact_sum *rfx_exact_sum_reset(void *block, int64_t c);

/* Adds `pixels` contiguous pixels of c floats each. */
void rfx_exact_sum_add(struct rfx_exact_sum *sum, const float *row, int64_t pixels);

/* Adds the squares of `pixels` pixels' values, exactly where a magnitude is in [2^-51, 2^64) or 0.
 * Of a smaller one what its square has below 2^-149 is rounded away; a larger one counts as
 * infinite. To be kept apart from sums of values. */
void rfx_exact_sum_add_squares(struct rfx_exact_sum *sum, const float *row, int64_t pixels);

/* Whether a block of that size from elsewhere is an accumulator of c channels, of a sum that two of
 * may be added without an overflow. O(c). */
bool rfx_exact_sum_is_sound(const void *block, int64_t c);

/* Adds what `other` (of as many channels) holds; `other` keeps its value. */
void rfx_exact_sum_merge(struct rfx_exact_sum *sum, struct rfx_exact_sum *other);

/* The exact sum of a channel, rounded once to double; NaN and infinities as below. */
double rfx_exact_sum_total(struct rfx_exact_sum *sum, int64_t channel);

/* Writes c results: the exact sum rounded once to double, divided by `divisor`, rounded to float.
 * A NaN among the values, or infinities of both signs, give NaN; one infinity gives itself. A sum
 * of zeros is +0. The accumulator keeps its value. */
void rfx_exact_sum_finish(struct rfx_exact_sum *sum, double divisor, float *out);
#endif
