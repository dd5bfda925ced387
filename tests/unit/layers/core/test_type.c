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
        rfx_type_gather(RFX_TYPE_FLOAT32, values, 1, N, cases[i].type, made);
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
    rfx_type_gather(RFX_TYPE_FLOAT32, numbers, 1, 4, RFX_TYPE_BOOL, made);
    assert_memory_equal(made, expected, 4);
}

/* Halves to the even number, in both directions from zero; whole numbers of more than 23 bits and
 * the ends of the types as they are. */
static void test_rounding(void **state) {
    (void)state;
    static const float given[N] = {0.5f, 1.5f, -0.5f, -1.5f, 254.5f, 255.5f, NAN, -129.0f};
    static const uint8_t u8[N] = {0, 2, 0, 0, 254, 255, 0, 0};
    static const int8_t i8[N] = {0, 2, 0, -2, 127, 127, 0, -128};
    static const float large[4] = {8388607.5f, -8388609.0f, 3e9f, -3e9f};
    static const int32_t i32[4] = {8388608, -8388609, INT32_MAX, INT32_MIN};
    unsigned char made[N];
    int32_t whole[4];
    rfx_type_round(RFX_TYPE_UINT8, given, N, made);
    assert_memory_equal(made, u8, N);
    rfx_type_round(RFX_TYPE_INT8, given, N, made);
    assert_memory_equal(made, i8, N);
    rfx_type_round(RFX_TYPE_INT32, large, 4, whole);
    assert_memory_equal(whole, i32, sizeof i32);
}

/* Elements that lie two apart, of one type and from one to another. */
static void test_gathering(void **state) {
    (void)state;
    enum { MANY = 700 };
    static float floats[2 * MANY], out[MANY];
    static uint8_t bytes[2 * MANY], narrow[MANY];
    static int64_t wide[MANY];
    for (int i = 0; i < 2 * MANY; i++) {
        floats[i] = (float)i + 0.75f;
        bytes[i] = (uint8_t)(i * 7);
    }
    rfx_type_gather(RFX_TYPE_UINT8, bytes, 2, MANY, RFX_TYPE_UINT8, narrow);
    rfx_type_gather(RFX_TYPE_UINT8, bytes, 2, MANY, RFX_TYPE_FLOAT32, out);
    rfx_type_gather(RFX_TYPE_FLOAT32, floats, 2, MANY, RFX_TYPE_INT64, wide);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(narrow[i], bytes[2 * i]);
        assert_true(out[i] == (float)bytes[2 * i]);
        assert_int_equal(wide[i], 2 * i);
    }
    static const uint32_t odd_nan = 0xffc00001u, one_nan = 0x7fc00000u;
    rfx_type_gather(RFX_TYPE_FLOAT32, &odd_nan, 1, 1, RFX_TYPE_FLOAT32, out);
    assert_memory_equal(out, &one_nan, sizeof one_nan);
}

/* Elements that lie one byte further than their alignment, as float32. */
static void test_loading(void **state) {
    (void)state;
    static const uint32_t u32[] = {0, 4294967295u};
    static const uint64_t u64[] = {1, UINT64_MAX};
    static const int16_t i16[] = {-32768, 300};
    static const uint16_t u16[] = {65535, 7}, half[] = {0x3c00, 0xfc00}, brain[] = {0x3fc0, 0xc200};
    static const int32_t i32[] = {-1, 16777217};
    static const int64_t i64[] = {-2, 4294967296};
    static const double f64[] = {0.1, -2.0};
    static const uint8_t bytes[] = {128, 1};
    static const struct {
        enum rfx_type type;
        const void *from;
        float values[2];
    } cases[] = {
        {RFX_TYPE_UINT32, u32, {0.0f, 0x1p32f}},     {RFX_TYPE_UINT64, u64, {1.0f, 0x1p64f}},
        {RFX_TYPE_INT16, i16, {-32768.0f, 300.0f}},  {RFX_TYPE_UINT16, u16, {65535.0f, 7.0f}},
        {RFX_TYPE_FLOAT16, half, {1.0f, -INFINITY}}, {RFX_TYPE_BFLOAT16, brain, {1.5f, -32.0f}},
        {RFX_TYPE_INT32, i32, {-1.0f, 16777216.0f}}, {RFX_TYPE_INT64, i64, {-2.0f, 0x1p32f}},
        {RFX_TYPE_FLOAT64, f64, {0.1f, -2.0f}},      {RFX_TYPE_BOOL, bytes, {128.0f, 1.0f}},
        {RFX_TYPE_UINT8, bytes, {128.0f, 1.0f}},     {RFX_TYPE_INT8, bytes, {-128.0f, 1.0f}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char shifted[17];
        float made[2];
        memcpy(shifted + 1, cases[i].from, 2 * rfx_type_bytes(cases[i].type));
        rfx_type_load(cases[i].type, shifted + 1, 2, made);
        assert_memory_equal(made, cases[i].values, sizeof made);
    }
}

/* Numbers of TensorProto.DataType (onnx.proto), and sizes. */
static void test_table(void **state) {
    (void)state;
    static const struct {
        enum rfx_type type;
        int32_t onnx;
        size_t bytes;
        bool integer;
    } cases[RFX_TYPE_COUNT] = {{RFX_TYPE_FLOAT32, 1, 4, false},  {RFX_TYPE_UINT8, 2, 1, true},
                               {RFX_TYPE_INT8, 3, 1, true},      {RFX_TYPE_UINT16, 4, 2, true},
                               {RFX_TYPE_INT16, 5, 2, true},     {RFX_TYPE_INT32, 6, 4, true},
                               {RFX_TYPE_INT64, 7, 8, true},     {RFX_TYPE_BOOL, 9, 1, false},
                               {RFX_TYPE_FLOAT16, 10, 2, false}, {RFX_TYPE_FLOAT64, 11, 8, false},
                               {RFX_TYPE_UINT32, 12, 4, true},   {RFX_TYPE_UINT64, 13, 8, true},
                               {RFX_TYPE_BFLOAT16, 16, 2, false}};
    for (int i = 0; i < RFX_TYPE_COUNT; i++) {
        assert_int_equal(rfx_type_onnx(cases[i].type), cases[i].onnx);
        assert_int_equal(rfx_type_of_onnx(cases[i].onnx), cases[i].type);
        assert_int_equal(rfx_type_bytes(cases[i].type), cases[i].bytes);
        assert_int_equal(rfx_type_is_integer(cases[i].type), cases[i].integer);
        assert_int_equal(rfx_type_is_stored(cases[i].type), cases[i].onnx < 10);
    }
    assert_int_equal(rfx_type_of_onnx(8), RFX_TYPE_COUNT); /* strings */
    assert_int_equal(rfx_type_of_onnx(21), RFX_TYPE_COUNT);
    assert_string_equal(rfx_type_name(RFX_TYPE_COUNT), "an unknown type");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers), cmocka_unit_test(test_truths),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_gathering),
        cmocka_unit_test(test_loading),  cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
