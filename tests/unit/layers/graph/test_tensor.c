/* Bytes of tensors and views, counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/tensor.h"

static void test_bytes(void **state) {
    (void)state;
    const struct rfx_tensor t = rfx_tensor_nhwc(3, 5, 7);
    assert_int_equal(t.type, RFX_TYPE_FLOAT32);
    assert_null(t.quant);
    assert_int_equal(rfx_tensor_bytes(&t), 420);
    assert_int_equal(rfx_tensor_pixel_bytes(&t, 2), 24);
    struct rfx_tensor bytes = t;
    bytes.type = RFX_TYPE_UINT8;
    assert_int_equal(rfx_tensor_bytes(&bytes), 105);
    assert_int_equal(rfx_tensor_pixel_bytes(&bytes, 2), 6);
    const struct rfx_tensor large = rfx_tensor_nhwc(64, 40000, 40000);
    assert_int_equal(rfx_tensor_bytes(&large), INT64_C(409600000000));
}

static void test_views(void **state) {
    (void)state;
    float data[2 * 4 * 3];
    const struct rfx_tensor t = rfx_tensor_nhwc(3, 5, 7);
    struct rfx_view v = rfx_view_of(&t, data, rfx_rect_make(1, 3, 2, 6));
    assert_int_equal(v.type, RFX_TYPE_FLOAT32);
    assert_int_equal(rfx_view_row_bytes(&v), 4 * 3 * 4);
    assert_ptr_equal(rfx_view_at(&v, 2, 3), data + 4 * 3 + 3);
    assert_ptr_equal(rfx_view_f32_at(&v, 2, 3), data + 4 * 3 + 3);
    assert_ptr_equal(rfx_view_f32(&v), data);
    v.c = 10; /* channels of other maps lie between pixels */
    v.row_stride = 100;
    assert_int_equal(rfx_view_row_bytes(&v), 4 * 10 * 4);
}

/* Views of one-byte elements: rows in a ring buffer, then staging rows that lie elsewhere. */
static void test_byte_views(void **state) {
    (void)state;
    uint8_t data[3 * 4 * 2], staging[4 * 2];
    struct rfx_tensor t = rfx_tensor_nhwc(2, 9, 4);
    t.type = RFX_TYPE_UINT8;
    struct rfx_view v = rfx_view_of(&t, data, rfx_rect_make(4, 8, 0, 4));
    v.ring_rows = 3;
    v.staging = staging;
    v.staging_y0 = 7;
    assert_int_equal(rfx_view_row_bytes(&v), 8);
    assert_ptr_equal(rfx_view_at(&v, 4, 1), data + 8 + 2);
    assert_ptr_equal(rfx_view_at(&v, 5, 0), data + 16);
    assert_ptr_equal(rfx_view_at(&v, 6, 3), data + 6);
    assert_ptr_equal(rfx_view_at(&v, 7, 3), staging + 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_views),
                                       cmocka_unit_test(test_byte_views)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
