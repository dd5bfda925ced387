/* Initialisers of every element type and in every field that may hold them, read back as floats;
 * the encodings are written by hand from onnx.proto. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"
#include "tests/support/test_util.h"

#define MODEL_PATH "test_onnx_const.onnx"

enum { /* fields of TensorProto, and its element types */
       DIMS = 1,
       DATA_TYPE = 2,
       FLOAT_DATA = 4,
       INT32_DATA = 5,
       INT64_DATA = 7,
       NAME = 8,
       RAW_DATA = 9,
       DOUBLE_DATA = 10,
       UINT64_DATA = 11,
       FLOAT = 1,
       UINT8 = 2,
       INT8 = 3,
       UINT16 = 4,
       INT16 = 5,
       INT32 = 6,
       INT64 = 7,
       STRING = 8,
       BOOL = 9,
       FLOAT16 = 10,
       DOUBLE = 11,
       UINT32 = 12,
       UINT64 = 13,
       BFLOAT16 = 16,
       FLOAT8 = 17,
};

static struct maker tensor;

/* Starts the weights of a convolution: 4 output channels of 1 x 1 x 1. */
static void begin(int type) {
    tensor.size = 0;
    maker_int(&tensor, DIMS, 4);
    for (int i = 0; i < 3; i++) maker_int(&tensor, DIMS, 1);
    maker_int(&tensor, DATA_TYPE, type);
    maker_text(&tensor, NAME, "k");
}

static enum rfx_status load(struct rfx_memory *mem, struct rfx_graph **out, struct rfx_error *err) {
    static struct maker model;
    struct rfx_load_options options = {0};
    maker_conv_model(&tensor, &model);
    maker_save(&model, MODEL_PATH);
    return rfx_onnx_load(mem, MODEL_PATH, &options, out, err);
}

static void expect(float a, float b, float c, float d) {
    const float want[4] = {a, b, c, d};
    float got[4];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    if (load(mem, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    const struct rfx_node *conv = &graph->nodes[graph->outputs[0].node];
    assert_int_equal(conv->op, RFX_OP_CONV);
    test_read_weight(&graph->weights[conv->attr.conv.weight], 0, 4, got);
    assert_memory_equal(got, want, sizeof want);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void expect_refusal(enum rfx_status want, const char *text) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    assert_int_equal(load(mem, &graph, &err), want);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' lacks '%s'", err.text, text);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The same little-endian bytes that a file holds. */
#define RAW(type, c_type, ...)                                 \
    do {                                                       \
        static const c_type values[] = {__VA_ARGS__};          \
        begin(type);                                           \
        maker_bytes(&tensor, RAW_DATA, values, sizeof values); \
    } while (0)

static void raw_floats(void **state) {
    (void)state;
    RAW(FLOAT, float, 1.5f, -2.0f, 0.0f, 3e38f);
    expect(1.5f, -2.0f, 0.0f, 3e38f);
    RAW(DOUBLE, double, 1.5, -2.0, 0.1, 1e300);
    expect(1.5f, -2.0f, 0.1f, (float)INFINITY);
    RAW(FLOAT16, uint16_t, 0x3c00, 0xc100, 0x0001, 0x7bff); /* the smallest and the largest too */
    expect(1.0f, -2.5f, 0x1p-24f, 65504.0f);
    RAW(BFLOAT16, uint16_t, 0x3f80, 0xc020, 0x4049, 0x0080);
    expect(1.0f, -2.5f, 3.140625f, 0x1p-126f);
}

static void raw_integers(void **state) {
    (void)state;
    RAW(INT8, int8_t, -128, -1, 0, 127);
    expect(-128.0f, -1.0f, 0.0f, 127.0f);
    RAW(UINT8, uint8_t, 0, 1, 128, 255);
    expect(0.0f, 1.0f, 128.0f, 255.0f);
    RAW(INT16, int16_t, -32768, -1, 0, 32767);
    expect(-32768.0f, -1.0f, 0.0f, 32767.0f);
    RAW(UINT16, uint16_t, 0, 1, 32768, 65535);
    expect(0.0f, 1.0f, 32768.0f, 65535.0f);
    RAW(INT32, int32_t, INT32_MIN, -1, 7, 1 << 20);
    expect(-2147483648.0f, -1.0f, 7.0f, 1048576.0f);
    RAW(UINT32, uint32_t, 0, 1, 7, 0x80000000u);
    expect(0.0f, 1.0f, 7.0f, 2147483648.0f);
    RAW(INT64, int64_t, -((int64_t)1 << 40), -1, 7, (int64_t)1 << 40);
    expect(-0x1p40f, -1.0f, 7.0f, 0x1p40f);
    RAW(BOOL, uint8_t, 0, 1, 1, 0);
    expect(0.0f, 1.0f, 1.0f, 0.0f);
}

static void typed_floats(void **state) {
    (void)state;
    static const float floats[] = {1.5f, -2.0f, 0.0f, 0.1f};
    static const double doubles[] = {1.5, -2.0, 0.0, 0.1};
    begin(FLOAT);
    maker_bytes(&tensor, FLOAT_DATA, floats, sizeof floats); /* packed */
    expect(1.5f, -2.0f, 0.0f, 0.1f);
    begin(FLOAT);
    for (int i = 0; i < 4; i++) maker_float(&tensor, FLOAT_DATA, floats[i]);
    expect(1.5f, -2.0f, 0.0f, 0.1f);
    begin(FLOAT);
    maker_bytes(&tensor, FLOAT_DATA, floats, 8); /* packed, in two runs */
    maker_bytes(&tensor, FLOAT_DATA, floats + 2, 8);
    expect(1.5f, -2.0f, 0.0f, 0.1f);
    begin(DOUBLE);
    maker_bytes(&tensor, DOUBLE_DATA, doubles, sizeof doubles);
    expect(1.5f, -2.0f, 0.0f, 0.1f);
    static const int64_t halves[] = {0x3c00, 0xc100, 0x0001, 0x7bff};
    begin(FLOAT16);
    for (int i = 0; i < 4; i++) maker_int(&tensor, INT32_DATA, halves[i]);
    expect(1.0f, -2.5f, 0x1p-24f, 65504.0f);
    begin(BFLOAT16);
    for (int i = 0; i < 4; i++) maker_int(&tensor, INT32_DATA, halves[i] == 1 ? 0x4049 : 0x3f80);
    expect(1.0f, 1.0f, 3.140625f, 1.0f);
}

static void typed_integers(void **state) {
    (void)state;
    static const int64_t values[] = {-128, -1, 0, 127};
    static const int types[] = {INT8, INT16, INT32};
    for (int t = 0; t < 3; t++) {
        begin(types[t]);
        for (int i = 0; i < 4; i++) maker_int(&tensor, INT32_DATA, values[i]);
        expect(-128.0f, -1.0f, 0.0f, 127.0f);
    }
    begin(INT64);
    for (int i = 0; i < 4; i++) maker_int(&tensor, INT64_DATA, values[i]);
    expect(-128.0f, -1.0f, 0.0f, 127.0f);
    begin(UINT8);
    for (int i = 0; i < 4; i++) maker_int(&tensor, INT32_DATA, 85 * i);
    expect(0.0f, 85.0f, 170.0f, 255.0f);
    begin(BOOL);
    for (int i = 0; i < 4; i++) maker_int(&tensor, INT32_DATA, i % 2);
    expect(0.0f, 1.0f, 0.0f, 1.0f);
    begin(UINT32);
    for (int i = 0; i < 4; i++) maker_int(&tensor, UINT64_DATA, (int64_t)i << 30);
    expect(0.0f, 0x1p30f, 0x1p31f, 3221225472.0f);
}

static void wrong_counts_and_types(void **state) {
    (void)state;
    RAW(FLOAT, float, 1.0f, 2.0f, 3.0f);
    expect_refusal(RFX_STATUS_MALFORMED, "'k' has 4 elements of 4 bytes but 12 bytes");
    RAW(FLOAT16, uint16_t, 1, 2, 3, 4, 5);
    expect_refusal(RFX_STATUS_MALFORMED, "4 elements of 2 bytes but 10 bytes");
    begin(INT32);
    for (int i = 0; i < 3; i++) maker_int(&tensor, INT32_DATA, i);
    expect_refusal(RFX_STATUS_MALFORMED, "'k'");
    begin(FLOAT); /* integers where floats belong */
    for (int i = 0; i < 4; i++) maker_int(&tensor, INT32_DATA, i);
    expect_refusal(RFX_STATUS_MALFORMED, "'k'");
    begin(FLOAT); /* nothing at all */
    expect_refusal(RFX_STATUS_MALFORMED, "'k'");
    RAW(FLOAT8, uint8_t, 1, 2, 3, 4);
    expect_refusal(RFX_STATUS_UNSUPPORTED, "element type 17");
    begin(STRING);
    expect_refusal(RFX_STATUS_UNSUPPORTED, "element type 8");
    begin(FLOAT);
    maker_int(&tensor, DIMS, -1);
    expect_refusal(RFX_STATUS_MALFORMED, "impossible dimension -1");
    begin(FLOAT);
    for (int i = 0; i < 2; i++) maker_int(&tensor, DIMS, (int64_t)1 << 40);
    expect_refusal(RFX_STATUS_MALFORMED, "impossible dimension");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_floats),
        cmocka_unit_test(raw_integers),
        cmocka_unit_test(typed_floats),
        cmocka_unit_test(typed_integers),
        cmocka_unit_test(wrong_counts_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
