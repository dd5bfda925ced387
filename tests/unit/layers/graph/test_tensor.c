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
    assert_int_equal(rfx_elem_bytes(t.elem), 4);
    assert_string_equal(rfx_elem_name(t.elem), "float32");
    assert_string_equal(rfx_elem_name(RFX_ELEM_COUNT), "an unknown type");
    assert_int_equal(rfx_tensor_bytes(&t), 420);
    assert_int_equal(rfx_tensor_pixel_bytes(&t, 2), 24);
    const struct rfx_tensor large = rfx_tensor_nhwc(64, 40000, 40000);
    assert_int_equal(rfx_tensor_bytes(&large), INT64_C(409600000000));
}

static void test_views(void **state) {
    (void)state;
    float data[2 * 4 * 3];
    const struct rfx_tensor t = rfx_tensor_nhwc(3, 5, 7);
    struct rfx_view v = rfx_view_of(&t, data, rfx_rect_make(1, 3, 2, 6));
    assert_int_equal(v.elem, RFX_ELEM_FLOAT32);
    assert_int_equal(rfx_view_row_bytes(&v), 4 * 3 * 4);
    assert_ptr_equal(rfx_view_at(&v, 2, 3), data + 4 * 3 + 3);
    v.c = 10; /* channels of others lie between */
    v.row_stride = 100;
    assert_int_equal(rfx_view_row_bytes(&v), 4 * 10 * 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_views)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
