/* Elementary functions in float32, written so that compilers vectorise loops over them.
 *
 * They have no branches per element and do not call libm. The polynomials were fitted for this file
 * (Chebyshev fits of the functions named next to them). Errors are a few units in the last place
 * (test_kernels.c). */
#ifndef RFX_LAYERS_KERNELS_GENERIC_VECTOR_MATH_H
#define RFX_LAYERS_KERNELS_GENERIC_VECTOR_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Multiply-add: fused in every loop of a variant that has the instruction, not fused in all others.
 * Every AArch64 processor has the instruction. */
#if defined(__FMA__) || defined(__aarch64__)
#define MATH_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#else
#define MATH_FMA(a, b, c) ((a) * (b) + (c))
#endif

#define MATH_INLINE static inline __attribute__((always_inline, unused))

MATH_INLINE uint32_t math_bits(float x) {
    union {
        float f;
        uint32_t u;
    } v = {x};
    return v.u;
}

MATH_INLINE float math_from_bits(uint32_t u) {
    union {
        uint32_t u;
        float f;
    } v = {u};
    return v.f;
}

MATH_INLINE uint64_t math_double_bits(double x) {
    union {
        double f;
        uint64_t u;
    } v = {x};
    return v.u;
}

MATH_INLINE double math_double_from_bits(uint64_t u) {
    union {
        uint64_t u;
        double f;
    } v = {u};
    return v.f;
}

/* Returns x clamped to [lo, hi]. NaN stays NaN: both comparisons are false for it. */
MATH_INLINE float math_clamp(float x, float lo, float hi) {
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}

MATH_INLINE float math_abs(float x) {
    return math_from_bits(math_bits(x) & 0x7fffffffu);
}

MATH_INLINE float math_copysign(float magnitude, float sign) {
    return math_from_bits((math_bits(magnitude) & 0x7fffffffu) | (math_bits(sign) & 0x80000000u));
}

/* Returns exp(x) as 2^k * exp(r), |r| <= log(2) / 2. 2^k is multiplied in two factors, so that
 * subnormal results and the step to infinity are correct. */
MATH_INLINE float math_exp(float x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float z = math_clamp(x, -106.0f, 90.0f);
    float t = MATH_FMA(z, 1.44269504f, shift);
    float k = t - shift;
    float r = MATH_FMA(k, -0.693359375f, z); /* exact: the constant has few bits */
    r = MATH_FMA(k, 2.12194440e-4f, r);
    float p = 1.392625083e-03f;
    p = MATH_FMA(p, r, 8.363232884e-03f);
    p = MATH_FMA(p, r, 4.166655421e-02f);
    p = MATH_FMA(p, r, 1.666657667e-01f);
    p = MATH_FMA(p, r, 0.5f);
    p = MATH_FMA(p, r * r, r) + 1.0f;
    int32_t n = (int32_t)(math_bits(t) - math_bits(shift));
    int32_t half = n >> 1;
    float s1 = math_from_bits((uint32_t)(half + 127) << 23);
    float s2 = math_from_bits((uint32_t)(n - half + 127) << 23);
    return p * s1 * s2;
}

/* Returns exp(x) - 1 without cancellation near 0. */
MATH_INLINE float math_expm1(float x) {
    float p = 1.392625083e-03f;
    p = MATH_FMA(p, x, 8.363232884e-03f);
    p = MATH_FMA(p, x, 4.166655421e-02f);
    p = MATH_FMA(p, x, 1.666657667e-01f);
    p = MATH_FMA(p, x, 0.5f);
    float small = MATH_FMA(p, x * x, x);
    float large = math_exp(x) - 1.0f;
    return math_abs(x) < 0.34f ? small : large;
}

/* Returns log(1 + f) + k log(2) for f in [sqrt(1/2) - 1, sqrt(2) - 1]. */
MATH_INLINE float math_log_reduced(float f, float k) {
    float p = 6.971611471e-02f;
    p = MATH_FMA(p, f, -1.147973385e-01f);
    p = MATH_FMA(p, f, 1.168541992e-01f);
    p = MATH_FMA(p, f, -1.242568733e-01f);
    p = MATH_FMA(p, f, 1.424905765e-01f);
    p = MATH_FMA(p, f, -1.666780232e-01f);
    p = MATH_FMA(p, f, 2.000071575e-01f);
    p = MATH_FMA(p, f, -2.499999696e-01f);
    p = MATH_FMA(p, f, 3.333333118e-01f);
    float s = f * f;
    float low = MATH_FMA(p * f, s, k * -2.12194440e-4f);
    low = MATH_FMA(s, -0.5f, low);
    return MATH_FMA(k, 0.693359375f, f + low);
}

/* Returns log(x): -inf at 0, NaN below 0; subnormals are handled. */
MATH_INLINE float math_log(float x) {
    float tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    float y = tiny != 0.0f ? x * 16777216.0f : x;
    uint32_t u = math_bits(y) - 0x3f3504f3u; /* bits of sqrt(1/2) */
    int32_t e = (int32_t)u >> 23;
    float m = math_from_bits((u & 0x007fffffu) + 0x3f3504f3u);
    float r = math_log_reduced(m - 1.0f, (float)e - tiny * 24.0f);
    r = x == INFINITY ? x : r;
    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    return x != x ? x : r;
}

MATH_INLINE float math_sigmoid(float x) {
    float e = math_exp(-math_abs(x));
    float q = 1.0f / (1.0f + e);
    return x < 0.0f ? e * q : q;
}

/* Returns x + bias below -lambda, x - bias above lambda, else 0. NaN stays NaN. */
MATH_INLINE float math_shrink(float x, float lambda, float bias) {
    float inside = x != x ? x : 0.0f;
    float above = x > lambda ? x - bias : inside;
    return x < -lambda ? x + bias : above;
}

MATH_INLINE float math_tanh(float x) {
    float a = math_abs(x);
    float s = x * x;
    float p = -6.045165097e-03f; /* (tanh(x) - x) / x^3 in x^2 up to 0.4 */
    p = MATH_FMA(p, s, 2.096132911e-02f);
    p = MATH_FMA(p, s, -5.384326318e-02f);
    p = MATH_FMA(p, s, 1.333271885e-01f);
    p = MATH_FMA(p, s, -3.333332843e-01f);
    float small = MATH_FMA(p * s, x, x);
    float large = 1.0f - 2.0f / (math_exp(a + a) + 1.0f);
    return a < 0.625f ? small : math_copysign(large, x);
}

MATH_INLINE float math_erf(float x) {
    float a = math_abs(x);
    float s = x * x;
    float p = 8.316879718e-05f; /* erf(x) / x - 1 in x^2 up to 0.87 */
    p = MATH_FMA(p, s, -8.130444670e-04f);
    p = MATH_FMA(p, s, 5.199989255e-03f);
    p = MATH_FMA(p, s, -2.685899742e-02f);
    p = MATH_FMA(p, s, 1.128368872e-01f);
    p = MATH_FMA(p, s, -3.761263333e-01f);
    p = MATH_FMA(p, s, 1.283791666e-01f);
    float small = MATH_FMA(p, x, x);
    float t = a > 4.0f ? 4.0f : a; /* erf(4) rounds to 1 */
    float g = -1.380193615e-05f;   /* log(erfc(t)) on [0.92, 4] */
    g = MATH_FMA(g, t, 3.265363166e-04f);
    g = MATH_FMA(g, t, -3.504952061e-03f);
    g = MATH_FMA(g, t, 2.290096792e-02f);
    g = MATH_FMA(g, t, -1.039831443e-01f);
    g = MATH_FMA(g, t, -6.381773733e-01f);
    g = MATH_FMA(g, t, -1.126601595e+00f);
    g = MATH_FMA(g, t, -5.518093026e-04f);
    float large = math_copysign(1.0f - math_exp(g), x);
    return a < 0.9273f ? small : (x != x ? x : large);
}

/* Returns log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)). */
MATH_INLINE float math_softplus(float x) {
    float e = math_exp(-math_abs(x));
    float u = 1.0f + e;
    /* log(u) + (e - (u - 1)) / u restores what rounding u lost */
    float l = math_log(u) + (e - (u - 1.0f)) / u;
    return (x < 0.0f ? 0.0f : x) + l;
}

/* Returns r and sets *n (modulo 4) so that |x| = r + n pi / 2, with |r| <= pi / 4 plus rounding, by
 * Payne and Hanek's reduction, for every x from 0 to the largest float. x = m 2^e with an integer
 * m, so bits of 2 / pi above 2^(2 - e) only add multiples of 4 to the quotient. The next 96 bits
 * give the quotient modulo 4 with an error below 2^-60. No float except 0 is nearer to a multiple
 * of pi / 2 than 2^-30, so the relative error of r is below 2^-29. Only integers and doubles
 * without fused operations are used, so the bits are the same in all variants. */
MATH_INLINE double math_quadrant(float x, uint32_t *n) {
    /* The bits of 2 / pi after 32 zeros. */
    static const uint32_t two_over_pi[8] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t u = math_bits(x) & 0x7fffffffu;
    int32_t at = (int32_t)(u >> 23) - 150 - 2 + 32;
    at = at < 0 ? 0 : at; /* x is below pi / 4 */
    const uint32_t *from = two_over_pi + (at >> 5);
    uint32_t shift = 32u - ((uint32_t)at & 31u);
    uint64_t m = (u & 0x007fffffu) | 0x00800000u;
    uint64_t q0 = (((uint64_t)from[0] << 32 | from[1]) >> shift) & 0xffffffffu;
    uint64_t q1 = (((uint64_t)from[1] << 32 | from[2]) >> shift) & 0xffffffffu;
    uint64_t q2 = (((uint64_t)from[2] << 32 | from[3]) >> shift) & 0xffffffffu;
    /* Fraction of a turn of 2 pi, in units of 2^-64. */
    uint64_t turn = (m * q0 << 32) + m * q1 + (m * q2 >> 32);
    uint64_t quarters = (turn + ((uint64_t)1 << 61)) >> 62;
    double r =
        (double)(int64_t)(turn - (quarters << 62)) * 3.4061215800865545e-19; /* 2 pi / 2^64 */
    float a = math_from_bits(u);
    bool small = a < 0.78539816f;
    *n = small ? 0u : (uint32_t)quarters & 3u;
    return small ? (double)a : r;
}

/* Returns sin(r + n pi / 2) by Taylor polynomials; the relative error is below 2e-11. */
MATH_INLINE double math_sin_of_quadrant(double r, uint32_t n) {
    double s = r * r;
    double odd = -2.505210838544172e-08;
    odd = odd * s + 2.755731922398589e-06;
    odd = odd * s - 1.984126984126984e-04;
    odd = odd * s + 8.333333333333333e-03;
    odd = odd * s - 1.666666666666667e-01;
    odd = r + r * s * odd;
    double even = 2.087675698786810e-09;
    even = even * s - 2.755731922398589e-07;
    even = even * s + 2.480158730158730e-05;
    even = even * s - 1.388888888888889e-03;
    even = even * s + 4.166666666666666e-02;
    even = even * s - 0.5;
    even = 1.0 + s * even;
    double value = (n & 1u) != 0 ? even : odd;
    return (n & 2u) != 0 ? -value : value;
}

/* Returns sin(x). The error is at most 0.51 units in the last place, for every float. NaN for
 * infinities. */
MATH_INLINE float math_sin(float x) {
    uint32_t n;
    double r = math_quadrant(x, &n);
    float y = (float)math_sin_of_quadrant(r, n);
    y = math_from_bits(math_bits(y) ^ (math_bits(x) & 0x80000000u));
    return math_abs(x) < INFINITY ? y : x - x;
}

/* Returns cos(x) as sin(|x| + pi / 2); as accurate as math_sin. */
MATH_INLINE float math_cos(float x) {
    uint32_t n;
    double r = math_quadrant(x, &n);
    float y = (float)math_sin_of_quadrant(r, n + 1u);
    return math_abs(x) < INFINITY ? y : x - x;
}

/* Returns log2(a) of a positive, normal double; the relative error is below 2^-50. a = 2^k m with m
 * from sqrt(1/2) to sqrt(2), and log(m) = 2 atanh((m - 1) / (m + 1)) by its series. Doubles without
 * fused operations. */
MATH_INLINE double math_log2_of(double a) {
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    uint64_t u = math_double_bits(a) - sqrt_half;
    double k = (double)((int32_t)(u >> 32) >> 20);
    double m = math_double_from_bits((u & 0x000fffffffffffffu) + sqrt_half);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    return k + (s + s * z * p) * 2.8853900817779268; /* 2 / log(2) */
}

/* Returns 2^z rounded to float; subnormals and overflow are correct, NaN stays NaN. */
MATH_INLINE float math_exp2_of(double z) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    z = z < -200.0 ? -200.0 : z;
    z = z > 200.0 ? 200.0 : z;
    double t = z + shift;
    double r = (z - (t - shift)) * 0.6931471805599453;
    double p = 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + r * r * p);
    uint64_t n = math_double_bits(t) - math_double_bits(shift);
    return (float)(p * math_double_from_bits((n + 1023u) << 52));
}

/* Returns x^y with an error of at most 0.51 units in the last place; special values as in C99,
 * Annex F. */
MATH_INLINE float math_pow(float x, float y) {
    float a = math_abs(x), b = math_abs(y);
    double l = math_log2_of((double)a); /* subnormal floats are normal doubles */
    l = a == 0.0f ? -(double)INFINITY : l;
    l = a == INFINITY ? (double)INFINITY : l;
    float r = math_exp2_of((double)y * l);
    /* All floats from 2^24 on are even, infinity too. */
    float fits = b < 16777216.0f ? b : 16777216.0f;
    int32_t n = (int32_t)fits;
    bool whole = (float)n == fits;
    r = a == 1.0f ? 1.0f : r;
    r = ((x < 0.0f) & (a < INFINITY) & !whole) ? NAN : r;
    uint32_t odd = whole ? (uint32_t)n & 1u : 0u;
    r = math_from_bits(math_bits(r) ^ ((math_bits(x) & (odd << 31))));
    r = ((x != x) | (y != y)) ? NAN : r;
    return ((y == 0.0f) | (x == 1.0f)) ? 1.0f : r;
}

/* The functions below have an error of at most 0.51 units in the last place. They are computed in
 * double without fused operations, with the same bits in all variants, and rounded once. */

MATH_INLINE float math_tan(float x) {
    uint32_t n;
    double r = math_quadrant(x, &n);
    float y = (float)(math_sin_of_quadrant(r, n) / math_sin_of_quadrant(r, n + 1u));
    y = math_from_bits(math_bits(y) ^ (math_bits(x) & 0x80000000u));
    return math_abs(x) < INFINITY ? y : x - x;
}

/* Returns exp(x); x is clamped to [-150, 150]; NaN stays NaN. */
MATH_INLINE double math_exp_of(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    x = x < -150.0 ? -150.0 : x;
    x = x > 150.0 ? 150.0 : x;
    double t = x * 1.4426950408889634 + shift;
    double k = t - shift;
    double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double p = 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + r * r * p);
    uint64_t n = math_double_bits(t) - math_double_bits(shift);
    return p * math_double_from_bits((n + 1023u) << 52);
}

/* Returns (exp(x) - exp(-x)) / 2; for |x| < 1 Taylor's polynomial, because the difference would
 * cancel. */
MATH_INLINE float math_sinh(float x) {
    double v = (double)x, s = v * v, e = math_exp_of((double)math_abs(x));
    double p = 1.0 / 6227020800.0;
    p = p * s + 1.0 / 39916800.0;
    p = p * s + 1.0 / 362880.0;
    p = p * s + 1.0 / 5040.0;
    p = p * s + 1.0 / 120.0;
    p = p * s + 1.0 / 6.0;
    float large = math_copysign((float)((e - 1.0 / e) * 0.5), x);
    return math_abs(x) < 1.0f ? (float)(v + v * s * p) : large;
}

MATH_INLINE float math_cosh(float x) {
    double e = math_exp_of((double)math_abs(x));
    return (float)((e + 1.0 / e) * 0.5);
}

/* Returns atan(a) for a >= 0. It is reduced by atan(a) = pi / 2 - atan(1 / a) and atan(t) = pi / 4
 * + atan((t - 1) / (t + 1)), and computed by its series up to tan(pi / 8). The relative error is
 * below 1e-12. */
MATH_INLINE double math_atan_of(double a) {
    bool big = a > 1.0;
    double t = big ? 1.0 / a : a;
    bool middle = t > 0.41421356237309503;
    double z = middle ? (t - 1.0) / (t + 1.0) : t, s = z * z;
    double p = 1.0 / 29.0;
    p = 1.0 / 27.0 - p * s;
    p = 1.0 / 25.0 - p * s;
    p = 1.0 / 23.0 - p * s;
    p = 1.0 / 21.0 - p * s;
    p = 1.0 / 19.0 - p * s;
    p = 1.0 / 17.0 - p * s;
    p = 1.0 / 15.0 - p * s;
    p = 1.0 / 13.0 - p * s;
    p = 1.0 / 11.0 - p * s;
    p = 1.0 / 9.0 - p * s;
    p = 1.0 / 7.0 - p * s;
    p = 1.0 / 5.0 - p * s;
    p = 1.0 / 3.0 - p * s;
    double r = z - z * s * p;
    r = middle ? r + 0.78539816339744831 : r;
    return big ? 1.5707963267948966 - r : r;
}

MATH_INLINE float math_atan(float x) {
    float y = math_copysign((float)math_atan_of((double)math_abs(x)), x);
    return x != x ? x : y;
}

/* Returns asin(x) as atan(|x| / sqrt((1 - |x|) (1 + |x|))) with the sign of x; NaN for |x| > 1. */
MATH_INLINE float math_asin(float x) {
    double a = (double)math_abs(x);
    float y = math_copysign((float)math_atan_of(a / __builtin_sqrt((1.0 - a) * (1.0 + a))), x);
    return a <= 1.0 ? y : NAN;
}

/* Returns acos(x) as 2 atan(sqrt((1 - x) / (1 + x))); NaN for |x| > 1. */
MATH_INLINE float math_acos(float x) {
    double v = (double)x;
    float y = (float)(2.0 * math_atan_of(__builtin_sqrt((1.0 - v) / (1.0 + v))));
    return math_abs(x) <= 1.0f ? y : NAN;
}

/* Returns asinh(x) as log(a + sqrt(a^2 + 1)), a = |x|, with the sign of x; by its series where the
 * logarithm would be near 0. */
MATH_INLINE float math_asinh(float x) {
    double v = (double)x, a = (double)math_abs(x), s = v * v;
    double log = math_log2_of(a + __builtin_sqrt(s + 1.0)) * 0.6931471805599453;
    double small = a - a * s * (1.0 / 6.0 - s * (3.0 / 40.0));
    float y = math_copysign((float)(a < 1e-3 ? small : log), x);
    return math_abs(x) < INFINITY ? y : x;
}

/* Returns acosh(x) as log(x + sqrt(x^2 - 1)); NaN for x < 1. */
MATH_INLINE float math_acosh(float x) {
    double v = (double)x;
    double log = math_log2_of(v + __builtin_sqrt((v - 1.0) * (v + 1.0))) * 0.6931471805599453;
    float y = x < INFINITY ? (float)log : x;
    return x >= 1.0f ? y : NAN;
}

/* Returns atanh(x) as log((1 + a) / (1 - a)) / 2, a = |x|, with the sign of x; by its series where
 * the logarithm would be near 0; NaN for |x| > 1. */
MATH_INLINE float math_atanh(float x) {
    double v = (double)x, a = (double)math_abs(x), s = v * v;
    double log = math_log2_of((1.0 + a) / (1.0 - a)) * 0.34657359027997264;
    float y = a < 1e-3 ? (float)(v + v * s * (1.0 / 3.0 + s * (1.0 / 5.0)))
                       : math_copysign((float)log, x);
    y = a == 1.0 ? math_copysign(INFINITY, x) : y;
    return a <= 1.0 ? y : NAN;
}
#endif
