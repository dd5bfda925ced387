/* WindowAttention: values by hand, its forms against the reference (which rolls and masks) and in
 * rectangles, a table of biases spread out, what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/op_cases.h"

static struct rfx_node node_of(int64_t h, int64_t w, int64_t sh, int64_t sw, int64_t heads) {
    struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION};
    node.attr.window_attention = (struct rfx_window_attention_attr){
        .h = h, .w = w, .shift_h = sh, .shift_w = sw, .heads = heads, .scale = 0.5f, .bias = -1};
    return node;
}

/* A row of four pixels, one head of one channel: windows of two, then moved by one. With two
 * channels of values, the second result is a mean with the same weights as the first. */
static void by_hand(void **state) {
    (void)state;
    static const float qkv[4][3] = {{2, 1, 10}, {0, 3, 20}, {4, 1, 30}, {-2, 0, 50}};
    /* scores q k / 2: pixel 0 1 and 3, pixel 1 0 and 0, pixel 2 2 and 0, pixel 3 -1 and 0 */
    const double e2 = exp(2), e1 = exp(1);
    const double whole[4] = {(10 + 20 * e2) / (1 + e2), 15, (30 * e2 + 50) / (e2 + 1),
                             (30 + 50 * e1) / (1 + e1)};
    /* alone, 1 and 2 together (0 and 0; 6 and 2), alone */
    const double e4 = exp(4), moved[4] = {10, 25, (20 * e4 + 30) / (e4 + 1), 50};
    for (int form = 0; form < 4; form++) {
        int64_t shift = form % 2, values = 1 + form / 2, width = 2 + values;
        const struct rfx_tensor input = rfx_tensor_nhwc(width, 1, 4);
        struct op_case c;
        op_case_begin(&c, 1, &input, 1);
        for (int x = 0; x < 4; x++) {
            memcpy(c.values[0] + x * width, qkv[x], sizeof qkv[x]);
            if (values == 2) c.values[0][x * width + 3] = 1.0f - 3.0f * qkv[x][2];
        }
        struct rfx_node node = node_of(1, 2, 0, shift, 1);
        node.attr.window_attention.value_size = values == 2 ? 2 : 0;
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
        assert_int_equal(c.graph->nodes[1].out.c, values);
        float *got = op_case_whole(&c);
        for (int x = 0; x < 4; x++) {
            double first = shift == 0 ? whole[x] : moved[x];
            assert_float_equal(got[x * values], (float)first, 1e-5f);
            if (values == 2) assert_float_equal(got[x * 2 + 1], (float)(1.0 - 3.0 * first), 1e-4f);
        }
        free(got);
        op_case_end(&c);
    }
}

/* Scores 1 and 3, rounded to multiples of 2 (halves to the even one): 0 and 4. Weights, rounded to
 * quarters that start at 1/4: 1/4 and 1. */
static void rounded_by_hand(void **state) {
    (void)state;
    static const float qkv[2][3] = {{2, 1, 10}, {0, 3, 20}};
    const struct rfx_tensor input = rfx_tensor_nhwc(3, 1, 2);
    struct op_case c;
    op_case_begin(&c, 1, &input, 1);
    for (int x = 0; x < 2; x++) memcpy(c.values[0] + x * 3, qkv[x], sizeof qkv[x]);
    struct rfx_node node = node_of(1, 2, 0, 0, 1);
    node.attr.window_attention.round_scores =
        (struct rfx_rounding){.to = RFX_TYPE_INT8, .scale = 2.0f, .zero_point = 5};
    node.attr.window_attention.round_weights =
        (struct rfx_rounding){.to = RFX_TYPE_INT8, .scale = 0.25f, .zero_point = -129 + 2};
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
    float *got = op_case_whole(&c);
    assert_true(got[0] == 0.0f * 10 + 1.0f * 20); /* of weights 0.018 and 0.982 */
    assert_true(got[1] == 0.5f * 10 + 0.5f * 20);
    free(got);
    op_case_end(&c);
}

static int bias_weight(struct op_case *c, const struct rfx_window_attention_attr *a) {
    int64_t n = a->h * a->w, table = (2 * a->h - 1) * (2 * a->w - 1);
    const int64_t dims[1] = {a->heads * (a->by_table ? table : n * n)};
    return op_case_weight(c, 1, dims, -1.0f, 1.0f);
}

static void forms_are_the_reference(void **state) {
    (void)state;
    static const struct {
        struct rfx_window_attention_attr attr;
        int64_t size, h, w; /* channels of a head's keys */
    } forms[] = {
        {{.h = 8, .w = 8, .heads = 6}, 10, 16, 24},
        {{.h = 8, .w = 8, .heads = 2, .shift_h = 4, .shift_w = 4}, 10, 24, 16},
        {{.h = 4, .w = 6, .heads = 1, .shift_h = 1, .shift_w = 5}, 17, 12, 18},
        {{.h = 7, .w = 7, .heads = 3, .shift_h = 3, .shift_w = 3}, 32, 14, 21},
        {{.h = 5, .w = 2, .heads = 2, .shift_h = 4}, 3, 5, 8}, /* one row of windows, in two */
        {{.h = 1, .w = 1, .heads = 1}, 4, 3, 5},
        {{.h = 16, .w = 16, .heads = 1, .shift_h = 8, .shift_w = 2}, 5, 16, 32}, /* long sums */
        {{.h = 1, .w = 4097, .heads = 2}, 1, 1, 4097}, /* windows that threads share */
        {{.h = 65, .w = 64, .heads = 1, .shift_h = 60, .value_size = 2}, 1, 65, 64},
        {{.h = 8, .w = 8, .heads = 2, .value_size = 20}, 10, 16, 24}, /* values wider than keys */
        {{.h = 5, .w = 6, .heads = 3, .shift_h = 1, .shift_w = 5, .value_size = 1}, 4, 10, 18},
        {{.h = 13, .w = 10, .heads = 2, .value_size = 33}, 16, 13, 10}, /* long sums, whole map */
        {{.h = 16, .w = 17, .heads = 2, .value_size = 5}, 3, 16, 17},   /* shared by threads */
        {{.h = 13, .w = 10, .heads = 2, .round_scores = {RFX_TYPE_INT8, 0.03f, 4}}, 16, 13, 10},
        {{.h = 7, .w = 7, .heads = 2, .shift_w = 3, .round_weights = {RFX_TYPE_UINT8, 0.01f, 2}},
         5,
         14,
         14},
        {{.h = 16,
          .w = 17,
          .heads = 1,
          .round_scores = {RFX_TYPE_UINT8, 0.05f, 130},
          .round_weights = {RFX_TYPE_INT8, 1.0f / 255, -128}},
         3,
         16,
         17},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int bias = 0; bias < 3; bias++) {
            bool large = forms[i].attr.h * forms[i].attr.w > RFX_WINDOW_MOST_BIASED;
            if (large && bias > 0) continue;
            struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION};
            struct rfx_window_attention_attr *a = &node.attr.window_attention;
            *a = forms[i].attr;
            const struct rfx_tensor input =
                rfx_tensor_nhwc(a->heads * (2 * forms[i].size +
                                            (a->value_size > 0 ? a->value_size : forms[i].size)),
                                forms[i].h, forms[i].w);
            struct op_case c;
            char what[48];
            (void)snprintf(what, sizeof what, "form %zu, bias %d", i, bias);
            op_case_begin(&c, 1, &input, 7 * i + (size_t)bias);
            a->scale = 1.0f / sqrtf((float)forms[i].size);
            a->by_table = bias == 1;
            a->bias = bias == 0 ? -1 : bias_weight(&c, a);
            if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
            op_case_check(&c, 1e-5, 12, what);
            op_case_end(&c);
        }
}

/* bias[head][i][j] of a table, as the papers index it. */
static void spread(const struct rfx_window_attention_attr *a, const float *table, float *full) {
    int64_t n = a->h * a->w;
    for (int64_t e = 0; e < a->heads * n * n; e++) {
        int64_t j = e % n, i = e / n % n, head = e / n / n;
        int64_t down = i / a->w - j / a->w + a->h - 1, right = i % a->w - j % a->w + a->w - 1;
        full[e] = table[(down * (2 * a->w - 1) + right) * a->heads + head];
    }
}

static void a_table_is_its_full_form(void **state) {
    (void)state;
    const struct rfx_tensor input = rfx_tensor_nhwc(3 * 2 * 5, 8, 12);
    float *got[2];
    int64_t elems = 10 * 8 * 12;
    for (int full = 0; full < 2; full++) {
        struct op_case c;
        op_case_begin(&c, 1, &input, 3);
        struct rfx_node node = node_of(4, 6, 2, 1, 2);
        struct rfx_window_attention_attr *a = &node.attr.window_attention;
        float table[7 * 11 * 2], bias[2 * 24 * 24];
        a->by_table = true;
        a->bias = bias_weight(&c, a);
        if (full == 1) {
            assert_int_equal(
                rfx_weight_read(&c.graph->weights[a->bias], 0, 7 * 11 * 2, table, NULL), RFX_OK);
            spread(a, table, bias);
            a->by_table = false;
            struct rfx_weight own = {.source = RFX_WEIGHT_OWNED,
                                     .data = bias,
                                     .shape = {1, {2 * 24 * 24}},
                                     .elems = 2 * 24 * 24};
            assert_int_equal(rfx_graph_add_weight(c.graph, &own, &a->bias, NULL), RFX_OK);
        }
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
        got[full] = op_case_whole(&c);
        op_case_end(&c);
    }
    assert_memory_equal(got[0], got[1], (size_t)elems * sizeof *got[0]);
    free(got[0]);
    free(got[1]);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        struct rfx_window_attention_attr attr;
        bool bias;
        const char *words;
    } cases[] = {
        {{.h = 4, .w = 4, .heads = 1},
         false,
         "a map of 8 x 10 is not cut into windows of 4 x 4: rows must be a multiple of 4, columns "
         "of 4"},
        {{.h = 3, .w = 5, .heads = 1}, false, "rows must be a multiple of 3, columns of 5"},
        {{.h = 0, .w = 5, .heads = 1},
         false,
         "windows of 0 x 5: 1 to 67108864 pixels are possible"},
        {{.h = 1 << 26, .w = 2, .heads = 1}, false, "windows of 67108864 x 2: 1 to 67108864"},
        {{.h = 4096, .w = 2, .heads = 1}, true, "windows of 4096 x 2: 1 to 4096"},
        {{.h = 4, .w = 5, .shift_h = 4, .heads = 1}, false, "windows of 4 x 5 shifted by 4 x 0"},
        {{.h = 4, .w = 5, .shift_w = -1, .heads = 1}, false, "shifted by 0 x -1"},
        {{.h = 4, .w = 5, .heads = 4}, false, "18 channels are no three times 4 heads"},
        {{.h = 4, .w = 5, .heads = 0}, false, "18 channels are no three times 0 heads"},
        {{.h = 4, .w = 5, .heads = 2, .value_size = 4},
         false,
         "18 channels are no 2 heads with as many channels of queries as of keys, and 4 of values"},
        {{.h = 4, .w = 5, .heads = 2, .value_size = 9}, false, "and 9 of values"},
        {{.h = 4, .w = 5, .heads = 2, .value_size = -1}, false, "and -1 of values"},
        {{.h = 4, .w = 5, .heads = 4, .value_size = 2}, false, "18 channels are no 4 heads"},
        {{.h = 4, .w = 5, .heads = 0, .value_size = 2}, false, "18 channels are no 0 heads"},
        {{.h = 2, .w = 5, .heads = 2, .value_size = 5}, true, "a bias of 7 elements, not 200"},
        {{.h = 2, .w = 5, .heads = 2}, true, "a bias of 7 elements, not 200"},
        {{.h = 2, .w = 5, .heads = 2, .by_table = true}, true, "a bias of 7 elements, not 54"},
        {{.h = 2, .w = 5, .heads = 2, .round_scores = {RFX_TYPE_FLOAT32, 1.0f, 0}},
         false,
         "rounding by scale 1 and zero point 0 of float32"},
        {{.h = 2, .w = 5, .heads = 2, .round_scores = {RFX_TYPE_INT8, 1.0f, 128}},
         false,
         "rounding by scale 1 and zero point 128 of int8"},
        {{.h = 2, .w = 5, .heads = 2, .round_weights = {RFX_TYPE_UINT8, 1.0f, -1}},
         false,
         "scale 1 and zero point -1 of uint8"},
        {{.h = 2, .w = 5, .heads = 2, .round_weights = {RFX_TYPE_UINT8, -1.0f, 0}},
         false,
         "scale -1 and zero point 0 of uint8"},
        {{.h = 2, .w = 5, .heads = 2, .round_weights = {RFX_TYPE_UINT8, INFINITY, 0}},
         false,
         "scale inf and zero point 0 of uint8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rfx_tensor input = rfx_tensor_nhwc(18, 8, 10);
        const int64_t seven = 7;
        struct op_case c;
        op_case_begin(&c, 1, &input, 1);
        struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION};
        node.attr.window_attention = cases[i].attr;
        node.attr.window_attention.bias =
            cases[i].bias ? op_case_weight(&c, 1, &seven, 0.0f, 1.0f) : -1;
        assert_int_equal(op_case_add(&c, &node), RFX_STATUS_UNSUPPORTED);
        if (strstr(c.err.text, cases[i].words) == NULL) fail_msg("%zu: %s", i, c.err.text);
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(rounded_by_hand),
        cmocka_unit_test(forms_are_the_reference),
        cmocka_unit_test(a_table_is_its_full_form),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
