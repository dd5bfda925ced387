/* Elementary functions in double with the same bits on every machine. They are fixed sequences of +
 * - * /, without library functions whose last bit may differ and without fused multiply-add. They
 * compute values that are needed once or rarely; the vector kernels have their own functions
 * (kernels/generic/vector_math.h).
 *
 * Special values are those of C99 Annex F. Errors below are in units in the last place of the exact
 * value; tests/unit/layers/core/test_real_math.c measures them. */
#ifndef RFX_LAYERS_CORE_REAL_MATH_H
#define RFX_LAYERS_CORE_REAL_MATH_H

/* Error at most 1.5 units; at most 2 for results below the smallest normal double. */
double rfx_exp(double x);

/* Within 1.5 units. */
double rfx_log(double x);

/* Error at most 5 units. */
double rfx_tanh(double x);

/* Exact if y is a whole number from 0 to 64 and all powers of x up to x^y are doubles. Correctly
 * rounded for y = 0.5. Otherwise the error is at most 1.5 + 3 |y log(x)| units, and at most 130
 * units if y is a whole number up to 64. */
double rfx_pow(double x, double y);
#endif
