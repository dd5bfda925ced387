/* Argument reduction, then Taylor series that are long enough for double; see the header. */
#include "layers/core/real_math.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "values must be computed in their own type: on 32-bit x86 build with -mfpmath=sse"
#endif

#define LN2_HIGH 0x1.62e42fefp-1      /* 33 bits: its product with any exponent is exact */
#define LN2_LOW 0x1.473de6af278edp-34 /* ln 2 - LN2_HIGH */
#define LOG2_E 0x1.71547652b82fep+0   /* 1 / ln 2 */
#define TO_INTEGER 0x1.8p52           /* adding it to a double rounds to an integer */
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdu
#define MOST_SQUARINGS 64.0

static uint64_t bits_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double from_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Returns 2^k for k from -1022 to 1023. */
static double power_of_two(int64_t k) {
    return from_bits((uint64_t)(k + 1023) << 52);
}

/* Returns exp(r) - 1 for |r| <= 0.35 as r + r^2 / 2 + r^3 / 6 ... */
static double expm1_reduced(double r) {
    static const double coefficients[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                                          1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                                          1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                                          1.0 / 24.0,         1.0 / 6.0,         1.0 / 2.0};
    double p = 1.0 / 87178291200.0;
    for (int i = 0; i < (int)(sizeof coefficients / sizeof coefficients[0]); i++)
        p = p * r + coefficients[i];
    return r + r * r * p;
}

double rfx_exp(double x) {
    if (x != x) return x;
    if (x > 710.0) return (double)INFINITY;
    if (x < -746.0) return 0.0;
    double k = (x * LOG2_E + TO_INTEGER) - TO_INTEGER;
    double high = x - k * LN2_HIGH, low = k * LN2_LOW, r = high - low;
    double rest = (high - r) - low; /* the rounding error of r */
    double e = expm1_reduced(r);
    double y = 1.0 + (e + (rest + rest * e));
    int64_t n = (int64_t)k, half = n / 2;
    return y * power_of_two(half) * power_of_two(n - half);
}

/* Returns f and sets *k so that x = 2^k (1 + f), with f from sqrt(1/2) - 1 to sqrt(2) - 1; x is
 * positive and finite. */
static double split(double x, double *k) {
    double scale = 0.0;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        scale = 54.0;
    }
    uint64_t u = bits_of(x) - SQRT_HALF_BITS;
    *k = (double)((int64_t)u >> 52) - scale;
    return from_bits((u & 0x000fffffffffffffu) + SQRT_HALF_BITS) - 1.0;
}

/* Computes log(1 + f) as 2 atanh(s) with s = f / (2 + f). It is written as f - (f^2 / 2 - s (f^2 /
 * 2 + R)), so that only small terms are rounded; R = 2 s^2 / 3 + 2 s^4 / 5 ... */
double rfx_log(double x) {
    if (x != x || x == (double)INFINITY) return x;
    if (x == 0.0) return -(double)INFINITY;
    if (x < 0.0) return (double)NAN;
    double k, f = split(x, &k);
    double s = f / (2.0 + f), z = s * s, r = 0.0, half = 0.5 * f * f;
    for (int n = 25; n >= 3; n -= 2) r = (r + 2.0 / (double)n) * z;
    return k * LN2_HIGH - ((half - (s * (half + r) + k * LN2_LOW)) - f);
}

double rfx_tanh(double x) {
    double a = fabs(x), y;
    if (x != x) return x;
    if (a < 0.34) { /* expm1(2 a) / (expm1(2 a) + 2) */
        double e = expm1_reduced(a), twice = e * (e + 2.0);
        y = twice / (twice + 2.0);
    } else {
        y = a > 22.0 ? 1.0 : 1.0 - 2.0 / (rfx_exp(2.0 * a) + 1.0);
    }
    return x < 0.0 || bits_of(x) >> 63 != 0 ? -y : y;
}

/* Returns x^n, computed by squaring. */
static double whole_power(double x, int n) {
    double y = 1.0;
    for (; n != 0; n >>= 1, x *= x)
        if ((n & 1) != 0) y *= x;
    return y;
}

/* Returns a^y for a >= 0; a is not NaN, y is neither 0 nor NaN. */
static double magnitude_power(double a, double y) {
    if (a == 1.0) return 1.0;
    if (y == 0.5) return sqrt(a);
    if (fabs(y) <= MOST_SQUARINGS && y == (double)(int)y) {
        double whole = whole_power(a, (int)fabs(y));
        return y < 0.0 ? 1.0 / whole : whole;
    }
    return rfx_exp(y * rfx_log(a));
}

double rfx_pow(double x, double y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return (double)NAN;
    bool negative = bits_of(x) >> 63 != 0, whole = fabs(y) >= 0x1p53 || y == (double)(int64_t)y;
    bool odd = fabs(y) < 0x1p53 && whole && ((int64_t)y & 1) != 0;
    if (x < 0.0 && fabs(x) < (double)INFINITY && !whole) return (double)NAN;
    double m = magnitude_power(fabs(x), y);
    return negative && odd ? -m : m;
}
