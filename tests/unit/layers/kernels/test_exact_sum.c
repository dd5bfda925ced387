/* The exact accumulator: cancellation, extremes of the range, specials, ties, and independence of
 * order and of merging. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <float.h>
#include <math.h>
#include <cmocka.h>
// clang-format on

#include "layers/kernels/exact_sum.h"

static float sum_of(const float *x, int64_t n, double divisor) {
    void *block = malloc(rfx_exact_sum_bytes(1));
    struct rfx_exact_sum *sum = rfx_exact_sum_reset(block, 1);
    rfx_exact_sum_add(sum, x, n);
    float out;
    rfx_exact_sum_finish(sum, divisor, &out);
    free(block);
    return out;
}

static void expect(const float *x, int64_t n, double divisor, float expected) {
    float got = sum_of(x, n, divisor);
    if (memcmp(&got, &expected, sizeof got) != 0)
        fail_msg("got %.9g, expected %.9g", (double)got, (double)expected);
}

static void test_values(void **state) {
    (void)state;
    expect((const float[]){1e30f, 1, -1e30f}, 3, 1, 1.0f);
    expect((const float[]){0x1p-149f, FLT_MAX, -FLT_MAX}, 3, 1, 0x1p-149f);
    expect((const float[]){-0x1p-149f, -0x1p-149f}, 2, 1, -0x1p-148f);
    expect((const float[]){FLT_MAX, FLT_MAX}, 2, 2, FLT_MAX);
    expect((const float[]){-FLT_MAX, -FLT_MAX, -FLT_MAX}, 3, 3, -FLT_MAX);
    expect((const float[]){FLT_MAX, FLT_MAX}, 2, 1, INFINITY);
    expect((const float[]){-0.0f, -0.0f}, 2, 1, 0.0f);
    expect((const float[]){1, 2, 4}, 3, 3, 7.0f / 3.0f);
    expect((const float[]){8192.0f, -8192.0f, 8191.5f, -0x1p-38f, 0x1p-39f}, 5, 1, 8191.5f);
    /* A tie in double, then in float; only the last value decides it upwards. */
    expect((const float[]){1, 0x1p-24f, 0x1p-53f}, 3, 1, 1.0f);
    expect((const float[]){1, 0x1p-24f, 0x1p-53f, 0x1p-140f}, 4, 1, 1.0f + 0x1p-23f);
}

static void test_specials(void **state) {
    (void)state;
    expect((const float[]){1, INFINITY}, 2, 2, INFINITY);
    expect((const float[]){-INFINITY, 5}, 2, 2, -INFINITY);
    assert_true(isnan(sum_of((const float[]){INFINITY, -INFINITY}, 2, 1)));
    assert_true(isnan(sum_of((const float[]){1, NAN, INFINITY}, 3, 1)));
}

static float random_value(unsigned *state) {
    uint32_t bits;
    float x;
    do {
        *state = *state * 1664525u + 1013904223u;
        bits = *state ^ *state >> 15;
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return *state >> 31 != 0 ? x : (float)(int32_t)bits * 0x1p-30f;
}

#define CHANNELS 5
#define PIXELS 6000

/* Values and their negatives around one remainder, shuffled; parts of any size merged. */
static void test_order(void **state) {
    (void)state;
    const size_t floats = (size_t)CHANNELS * PIXELS;
    float *x = malloc(floats * sizeof *x);
    void *a = malloc(rfx_exact_sum_bytes(CHANNELS)), *b = malloc(rfx_exact_sum_bytes(CHANNELS));
    float first[CHANNELS], again[CHANNELS];
    unsigned seed = 11;
    for (int64_t p = 0; p < PIXELS; p += 2) {
        for (int c = 0; c < CHANNELS; c++) {
            x[p * CHANNELS + c] = random_value(&seed);
            x[(p + 1) * CHANNELS + c] = -x[p * CHANNELS + c];
        }
    }
    for (int c = 0; c < CHANNELS; c++) x[c] = -x[CHANNELS + c] + (float)(c - 2) * 0x1p100f;
    struct rfx_exact_sum *sum = rfx_exact_sum_reset(a, CHANNELS);
    rfx_exact_sum_add(sum, x, PIXELS);
    rfx_exact_sum_finish(sum, 3.0, first);
    for (int round = 0; round < 10; round++) {
        for (int64_t p = PIXELS - 1; p > 0; p--) {
            seed = seed * 1664525u + 1013904223u;
            int64_t q = (int64_t)(seed >> 8) % (p + 1);
            float t[CHANNELS];
            memcpy(t, x + p * CHANNELS, sizeof t);
            memmove(x + p * CHANNELS, x + q * CHANNELS, sizeof t);
            memcpy(x + q * CHANNELS, t, sizeof t);
        }
        int64_t cut = (int64_t)(seed >> 8) % PIXELS;
        sum = rfx_exact_sum_reset(a, CHANNELS);
        struct rfx_exact_sum *rest = rfx_exact_sum_reset(b, CHANNELS);
        rfx_exact_sum_add(sum, x, cut);
        rfx_exact_sum_add(rest, x + cut * CHANNELS, PIXELS - cut);
        rfx_exact_sum_merge(sum, rest);
        rfx_exact_sum_finish(sum, 3.0, again);
        assert_memory_equal(first, again, sizeof first);
    }
    free(x);
    free(a);
    free(b);
}

/* A value of 24 bits or fewer times 2^e, e >= -86. */
static float fixed_value(unsigned *state, int lowest, int highest) {
    *state = *state * 1664525u + 1013904223u;
    int32_t bits = (int32_t)(*state >> 8) - (1 << 23);
    *state = *state * 1664525u + 1013904223u;
    return ldexpf((float)bits, lowest + (int)((*state >> 8) % (unsigned)(highest - lowest + 1)));
}

__extension__ typedef __int128 wide;

/* Sums of whole vectors of channels and of what is left, against 128-bit integers: whole units of
 * the first fast lane, those and rests, values too large, all of them mixed. */
static void test_channels(void **state) {
    static const int64_t channels[] = {1, 4, 16, 19, 37}, pixels[] = {1, 16, 33, 5000};
    static const int exponents[][2] = {{-38, -11}, {-86, -30}, {-20, -5}, {-86, -5}};
    (void)state;
    unsigned seed = 5;
    float *x = malloc(37 * 5000 * sizeof *x), got[37];
    void *block = malloc(rfx_exact_sum_bytes(37));
    for (int i = 0; i < 5 * 4 * 4; i++) {
        int64_t c = channels[i % 5], n = pixels[i / 5 % 4];
        const int *e = exponents[i / 20];
        for (int64_t k = 0; k < n * c; k++)
            x[k] = k % 3 == 0 ? 0.0f : fixed_value(&seed, e[0], e[1]);
        struct rfx_exact_sum *sum = rfx_exact_sum_reset(block, c);
        rfx_exact_sum_add(sum, x, n);
        rfx_exact_sum_finish(sum, 1.0, got);
        for (int64_t ch = 0; ch < c; ch++) {
            wide want = 0;
            for (int64_t p = 0; p < n; p++) want += (wide)ldexp((double)x[p * c + ch], 86);
            float expected = (float)ldexp((double)want, -86);
            if (got[ch] != expected)
                fail_msg("case %d, channel %d: %a, not %a", i, (int)ch, (double)got[ch],
                         (double)expected);
        }
    }
    free(x);
    free(block);
}

/* Sums of squares against 128-bit integers, of few channels and of many; halves merged. Values too
 * large for the fast lanes among others, and none of those. */
static void test_squares(void **state) {
    static const int64_t channels[] = {1, 5, 64, 300}, pixels[] = {1, 17, 1025, 2500};
    static const int ranges[][2] = {{-20, -10}, {-30, -10}, {-30, -18}};
    (void)state;
    unsigned seed = 7;
    float *x = malloc(300 * 2500 * sizeof *x);
    void *a = malloc(rfx_exact_sum_bytes(300)), *b = malloc(rfx_exact_sum_bytes(300));
    for (int i = 0; i < 16; i++) {
        int64_t c = channels[i % 4], n = pixels[i / 4], half = n / 3;
        for (int64_t k = 0; k < n * c; k++)
            x[k] = k % 7 == 0 ? 0.0f : fixed_value(&seed, ranges[i % 3][0], ranges[i % 3][1]);
        struct rfx_exact_sum *sum = rfx_exact_sum_reset(a, c), *rest = rfx_exact_sum_reset(b, c);
        rfx_exact_sum_add_squares(sum, x, half);
        rfx_exact_sum_add_squares(rest, x + half * c, n - half);
        rfx_exact_sum_merge(sum, rest);
        for (int64_t ch = 0; ch < c; ch++) {
            wide want = 0;
            for (int64_t p = 0; p < n; p++) {
                int64_t whole = (int64_t)ldexp((double)x[p * c + ch], 30);
                want += (wide)whole * whole;
            }
            double expected = ldexp((double)want, -60), got = rfx_exact_sum_total(sum, ch);
            if (got != expected)
                fail_msg("case %d, channel %d: %a, not %a", i, (int)ch, got, expected);
        }
    }
    free(x);
    free(a);
    free(b);
}

static double square_of(float x, float y) {
    void *block = malloc(rfx_exact_sum_bytes(1));
    struct rfx_exact_sum *sum = rfx_exact_sum_reset(block, 1);
    const float both[2] = {x, y};
    rfx_exact_sum_add_squares(sum, both, 2);
    double total = rfx_exact_sum_total(sum, 0);
    free(block);
    return total;
}

/* The ends of the range in which squares are exact, and what is beyond. */
static void test_square_range(void **state) {
    (void)state;
    float odd = 1.0f + 0x1p-23f;
    assert_true(square_of(odd * 0x1p-51f, 0) == (double)odd * (double)odd * 0x1p-102);
    assert_true(square_of(odd * 0x1p63f, 0) == (double)odd * (double)odd * 0x1p126);
    assert_true(square_of(-3.0f, 4.0f) == 25.0);
    assert_true(square_of(0x1p64f, 1.0f) == (double)INFINITY);
    assert_true(square_of(-INFINITY, 1.0f) == (double)INFINITY);
    assert_true(isnan(square_of(NAN, 1.0f)));
}

/* A whole block with one value at or beside what the fast lanes hold; below, the last value's
 * square has units that the second of them does not have. */
static void test_square_lanes(void **state) {
    enum { C = 16, ROW = 16 };
    static const float ends[] = {0x1.6a09e6p6f, 0x1.6a09e8p6f, 91.0f,      0x1.000002p-20f,
                                 0x1p-43f,      0x1p-44f,      0x1.8p-44f, -0x1.6a09e6p6f};
    (void)state;
    void *block = malloc(rfx_exact_sum_bytes(C));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        float x[ROW * C] = {0};
        struct rfx_exact_sum *sum = rfx_exact_sum_reset(block, C);
        for (int k = 0; k < C; k++) x[5 * C + k] = ends[i];
        x[7 * C + 3] = -3.0f;
        rfx_exact_sum_add_squares(sum, x, ROW);
        for (int k = 0; k < C; k++) {
            double want = (double)ends[i] * (double)ends[i] + (k == 3 ? 9.0 : 0.0);
            if (rfx_exact_sum_total(sum, k) != want)
                fail_msg("%a, channel %d: %a", (double)ends[i], k, rfx_exact_sum_total(sum, k));
        }
    }
    free(block);
}

/* What may come out of a file: only what cannot be read or added beyond its bounds passes. */
static void test_soundness(void **state) {
    enum { C = 3 };
    static const int64_t wrong[] = {INT64_MAX, INT64_MIN, C + 1, -1};
    const float pixel[C] = {1.5f, -INFINITY, 3e38f};
    int64_t *block = malloc(rfx_exact_sum_bytes(C));
    (void)state;
    rfx_exact_sum_add(rfx_exact_sum_reset(block, C), pixel, 1);
    assert_true(rfx_exact_sum_is_sound(block, C));
    assert_false(rfx_exact_sum_is_sound(block, C + 1));
    for (int64_t at = 0; at < 2 + 2 * C + 21 * C; at++) /* c, pixels, lanes, digits, specials */
        for (size_t i = 0; i < (at == 0 ? 4 : 2); i++) {
            int64_t before = block[at];
            block[at] = wrong[i];
            assert_false(rfx_exact_sum_is_sound(block, C));
            block[at] = before;
        }
    assert_true(rfx_exact_sum_is_sound(block, C));
    /* the last digit of channel 0: whole, or carried into it from the one before and the lanes */
    int64_t *digits = block + 2 + 2 * C, *last = digits + 19;
    const int64_t edges[] = {(1 << 15) - 1, 1 << 15, -(1 << 15) + 1, -(1 << 15)};
    for (int i = 0; i < 4; i++) {
        *last = edges[i];
        assert_int_equal(rfx_exact_sum_is_sound(block, C), i % 2 == 0);
    }
    *last = (1 << 15) - 1;
    last[-1] = 1 << 16;
    assert_false(rfx_exact_sum_is_sound(block, C));
    last[-1] = 0;
    assert_true(rfx_exact_sum_is_sound(block, C));
    free(block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soundness),    cmocka_unit_test(test_values),
        cmocka_unit_test(test_specials),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_channels),     cmocka_unit_test(test_squares),
        cmocka_unit_test(test_square_lanes), cmocka_unit_test(test_square_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
