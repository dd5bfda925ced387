/* Elementary functions in double with the same bits on every machine: fixed sequences of + - * /,
 * no library function whose last bit is the library's choice, no fused multiply-add. For what is
 * computed once or rarely; the kernels have their own (kernels/generic/vector_math.h).
 *
 * Special values are those of C99 Annex F. Errors, in units in the last place of the exact value,
 * are measured by tests/unit/layers/core/test_real_math.c. */
#ifndef RFX_LAYERS_CORE_REAL_MATH_H
#define RFX_LAYERS_CORE_REAL_MATH_H

/* Within 1.5 units; results below the smallest normal double within 2. */
double rfx_exp(double x);

/* Within 1.5 units. */
double rfx_log(double x);

/* Within 5 units. */
double rfx_tanh(double x);

/* Exact wherever y is a whole number from 0 to 64 and all powers up to x^y are doubles, correctly
 * rounded for y = 0.5; otherwise within 1.5 + 3 |y log(x)| units, and 130 for whole numbers to 64.
 */
double rfx_pow(double x, double y);
#endif
