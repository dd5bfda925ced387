/* Reading constants: every type from unaligned memory, and the seeded generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "layers/weight.h"

static void test_types(void **state) {
    (void)state;
    static const struct {
        enum rfx_dtype dtype;
        unsigned char bytes[16]; /* two elements */
        float values[2];
    } rows[] = {
        {RFX_DTYPE_F32, {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc1}, {1.0f, -10.0f}},
        {RFX_DTYPE_F64, {0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}, {1.5f, -2.0f}},
        {RFX_DTYPE_F16, {0x00, 0x3c, 0x01, 0x80}, {1.0f, -0x1p-24f}},
        {RFX_DTYPE_F16, {0xff, 0x7b, 0x00, 0xfc}, {65504.0f, -INFINITY}},
        {RFX_DTYPE_F16, {0xff, 0x03, 0x55, 0x35}, {0x1.ff8p-15f, 0.333251953125f}},
        {RFX_DTYPE_BF16, {0xc0, 0x3f, 0x00, 0xc2}, {1.5f, -32.0f}},
        {RFX_DTYPE_I8, {0x80, 0x7f}, {-128.0f, 127.0f}},
        {RFX_DTYPE_U8, {0x80, 0xff}, {128.0f, 255.0f}},
        {RFX_DTYPE_I32, {0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0}, {-1.0f, 256.0f}},
        {RFX_DTYPE_I64,
         {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0},
         {-2.0f, 4294967296.0f}},
    };
    static const size_t sizes[RFX_DTYPE_COUNT] = {4, 8, 2, 2, 1, 1, 4, 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char shifted[17];
        memcpy(shifted + 1, rows[i].bytes, 16);
        struct rfx_weight w = {
            .source = RFX_WEIGHT_MAPPED, .dtype = rows[i].dtype, .data = shifted + 1, .elems = 2};
        float out[2], second;
        rfx_weight_read(&w, 0, 2, out);
        rfx_weight_read(&w, 1, 1, &second);
        assert_memory_equal(out, rows[i].values, sizeof out);
        assert_memory_equal(&second, &rows[i].values[1], sizeof second);
        assert_int_equal(rfx_dtype_bytes(rows[i].dtype), sizes[rows[i].dtype]);
    }
}

static void test_half_nan(void **state) {
    (void)state;
    static const unsigned char bytes[2] = {0x00, 0x7e};
    struct rfx_weight w = {
        .source = RFX_WEIGHT_MAPPED, .dtype = RFX_DTYPE_F16, .data = bytes, .elems = 1};
    float out;
    rfx_weight_read(&w, 0, 1, &out);
    assert_true(isnan(out));
}

static void test_generated(void **state) {
    (void)state;
    enum { N = 20000 };
    static float all[N], other[N];
    struct rfx_weight w = {
        .source = RFX_WEIGHT_GENERATED, .seed = 5, .lo = -2.0f, .hi = 6.0f, .elems = N};
    rfx_weight_read(&w, 0, N, all);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < N; i++) {
        float one;
        rfx_weight_read(&w, N - 1 - i, 1, &one);
        assert_memory_equal(&one, &all[N - 1 - i], sizeof one);
        assert_true(all[i] >= -2.0f && all[i] < 6.0f);
        sum += (double)all[i];
        squares += (double)all[i] * (double)all[i];
    }
    /* Mean 2 and variance 64 / 12 of the uniform distribution, within five standard errors. */
    double mean = sum / N;
    assert_true(fabs(mean - 2.0) < 5 * sqrt(64.0 / 12 / N));
    assert_true(fabs(squares / N - mean * mean - 64.0 / 12) < 0.2);
    w.seed = 6;
    rfx_weight_read(&w, 0, N, other);
    int same = 0;
    for (int64_t i = 0; i < N; i++) same += memcmp(&all[i], &other[i], sizeof(float)) == 0;
    assert_true(same < 20);
}

/* The second half of each pair of blocks mirrors the first, whatever range is read. */
static void test_mirrored(void **state) {
    (void)state;
    enum { N = 44, BLOCK = 9 };
    float all[N], plain[N];
    struct rfx_weight w = {
        .source = RFX_WEIGHT_GENERATED, .seed = 5, .lo = -1.0f, .hi = 3.0f, .elems = N};
    rfx_weight_read(&w, 0, N, plain);
    w.mirror = BLOCK;
    rfx_weight_read(&w, 0, N, all);
    for (int i = 0; i < N; i++) {
        float one;
        rfx_weight_read(&w, i, 1, &one);
        assert_memory_equal(&one, &all[i], sizeof one);
        bool second = i / BLOCK % 2 == 1;
        if (second)
            assert_float_equal(all[i], 2.0f - plain[i - BLOCK], 1e-6);
        else
            assert_memory_equal(&all[i], &plain[i], sizeof(float));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types), cmocka_unit_test(test_half_nan),
        cmocka_unit_test(test_generated), cmocka_unit_test(test_mirrored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
