/* Element types: their sizes and names, and floats as elements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/type.h"

enum { N = 8 };

static const float values[N] = {-0.9f, 1.9f, -129.5f, 255.5f, 65536.0f, -3e9f, 1e19f, NAN};

static void test_integers(void **state) {
    (void)state;
    static const uint8_t u8[N] = {0, 1, 0, 255, 255, 0, 255, 0};
    static const int8_t i8[N] = {0, 1, -128, 127, 127, -128, 127, 0};
    static const uint16_t u16[N] = {0, 1, 0, 255, 65535, 0, 65535, 0};
    static const int16_t i16[N] = {0, 1, -129, 255, 32767, -32768, 32767, 0};
    static const int32_t i32[N] = {0, 1, -129, 255, 65536, INT32_MIN, INT32_MAX, 0};
    static const int64_t i64[N] = {0, 1, -129, 255, 65536, -3000000000, INT64_MAX, 0};
    static const uint8_t truths[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        enum rfx_type type;
        const void *expected;
        size_t bytes;
        const char *name, *descr;
    } cases[] = {
        {RFX_TYPE_UINT8, u8, 1, "uint8", "|u1"},         {RFX_TYPE_INT8, i8, 1, "int8", "|i1"},
        {RFX_TYPE_UINT16, u16, 2, "uint16", "<u2"},      {RFX_TYPE_INT16, i16, 2, "int16", "<i2"},
        {RFX_TYPE_INT32, i32, 4, "int32", "<i4"},        {RFX_TYPE_INT64, i64, 8, "int64", "<i8"},
        {RFX_TYPE_FLOAT32, values, 4, "float32", "<f4"}, {RFX_TYPE_BOOL, truths, 1, "bool", "|b1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char made[8 * N];
        rfx_type_store(cases[i].type, values, N, made);
        assert_memory_equal(made, cases[i].expected, cases[i].bytes * N);
        assert_int_equal(rfx_type_bytes(cases[i].type), cases[i].bytes);
        assert_string_equal(rfx_type_name(cases[i].type), cases[i].name);
        assert_string_equal(rfx_type_descr(cases[i].type), cases[i].descr);
    }
}

static void test_truths(void **state) {
    (void)state;
    static const float numbers[] = {0.0f, -0.0f, 1.0f, -2.5f};
    static const uint8_t expected[] = {0, 0, 1, 1};
    uint8_t made[4];
    rfx_type_store(RFX_TYPE_BOOL, numbers, 4, made);
    assert_memory_equal(made, expected, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_truths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
