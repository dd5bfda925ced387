/* Fingerprints: the stated sum of one-shot XXH3-128, any order of rectangles and chunks, single
 * bits, exchanged elements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmocka.h>

#include "rfexec/output/fingerprint.h"
#include "tests/support/test_util.h"

enum { H = 11, W = 13, C = 5, N = H * W * C, WIDE = 7 };

/* The definition, element by element from the array in ONNX order. */
static void expect_hex(const float *nchw, char hex[RFX_FINGERPRINT_CHARS]) {
    unsigned long long high = 0, low = 0;
    for (uint64_t i = 0; i < N; i++) {
        unsigned char bytes[16] = {0};
        for (int k = 0; k < 8; k++) bytes[k] = (unsigned char)(i >> 8 * k);
        memcpy(bytes + 8, &nchw[i], 4);
        XXH128_hash_t hash = XXH3_128bits(bytes, sizeof bytes);
        high += hash.high64;
        low += hash.low64;
    }
    (void)snprintf(hex, RFX_FINGERPRINT_CHARS, "%016llx%016llx", high, low);
}

static void fill(float nchw[N], float nhwc[N]) {
    for (int i = 0; i < N; i++) nchw[i] = (float)(i * 3 - 500) / 7.0f;
    test_nchw_to_nhwc(nchw, nhwc, C, H, W);
}

static void of_nothing_is_zero(void **state) {
    (void)state;
    const struct rfx_fingerprint fp = {0};
    char hex[RFX_FINGERPRINT_CHARS];
    rfx_fingerprint_hex(&fp, hex);
    assert_string_equal(hex, "00000000000000000000000000000000");
}

static void chunks_in_any_order_give_the_stated_sum(void **state) {
    (void)state;
    float nchw[N], nhwc[N];
    char wanted[RFX_FINGERPRINT_CHARS], hex[RFX_FINGERPRINT_CHARS];
    fill(nchw, nhwc);
    expect_hex(nchw, wanted);
    for (int64_t portion = 1; portion < N; portion = portion * 3 + 1) {
        struct rfx_fingerprint fp = {0};
        int64_t end = N;
        for (; end > portion; end -= portion)
            rfx_fingerprint_add(&fp, RFX_TYPE_FLOAT32, end - portion, nchw + end - portion,
                                portion);
        rfx_fingerprint_hex(&fp, hex);
        assert_string_not_equal(hex, wanted);
        rfx_fingerprint_add(&fp, RFX_TYPE_FLOAT32, 0, nchw, end);
        rfx_fingerprint_hex(&fp, hex);
        assert_string_equal(hex, wanted);
    }
}

/* A map once dense, once as part of wider pixels: bands, strips and tiles from the end. */
static void rectangles_in_any_order_give_the_stated_sum(void **state) {
    (void)state;
    static const int64_t grids[][2] = {{H, W}, {4, W}, {1, W}, {H, 5}, {3, 4}, {1, 1}};
    float nchw[N], nhwc[N], wide[H * W * WIDE];
    char wanted[RFX_FINGERPRINT_CHARS], hex[RFX_FINGERPRINT_CHARS];
    fill(nchw, nhwc);
    expect_hex(nchw, wanted);
    for (int i = 0; i < H * W * WIDE; i++) wide[i] = (float)i;
    for (int i = 0; i < N; i++) wide[i / C * WIDE + i % C] = nhwc[i];
    const struct rfx_end whole = {.channels = C, .at = {0, W, 1, H * W}};
    const struct rfx_view views[2] = {rfx_view_dense(nhwc, rfx_rect_full(H, W), C),
                                      rfx_view_dense(wide, rfx_rect_full(H, W), WIDE)};
    for (int v = 0; v < 2; v++)
        for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
            struct rfx_fingerprint fp = {0};
            int64_t rows = grids[g][0], cols = grids[g][1];
            for (int64_t y = (H - 1) / rows * rows; y >= 0; y -= rows)
                for (int64_t x = (W - 1) / cols * cols; x >= 0; x -= cols)
                    rfx_fingerprint_add_end(
                        &fp, &whole,
                        rfx_rect_intersect(rfx_rect_make(y, y + rows, x, x + cols),
                                           rfx_rect_full(H, W)),
                        &views[v]);
            rfx_fingerprint_hex(&fp, hex);
            assert_string_equal(hex, wanted);
        }
}

/* Fingerprint of two elements. */
static void of_two(float a, float b, char hex[RFX_FINGERPRINT_CHARS]) {
    const float values[2] = {a, b};
    struct rfx_fingerprint fp = {0};
    rfx_fingerprint_add(&fp, RFX_TYPE_FLOAT32, 0, values, 2);
    rfx_fingerprint_hex(&fp, hex);
}

static void tells_bits_and_places_but_not_nans(void **state) {
    (void)state;
    char first[RFX_FINGERPRINT_CHARS], second[RFX_FINGERPRINT_CHARS];
    of_two(0.0f, 1.0f, first);
    of_two(-0.0f, 1.0f, second); /* one bit */
    assert_string_not_equal(first, second);
    of_two(1.0f, 0.0f, second); /* exchanged */
    assert_string_not_equal(first, second);
    of_two(NAN, 1.0f, first);
    of_two(-NAN, 1.0f, second);
    assert_string_equal(first, second);
    of_two(INFINITY, 1.0f, second);
    assert_string_not_equal(first, second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_nothing_is_zero),
        cmocka_unit_test(chunks_in_any_order_give_the_stated_sum),
        cmocka_unit_test(rectangles_in_any_order_give_the_stated_sum),
        cmocka_unit_test(tells_bits_and_places_but_not_nans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
