/* Error texts: formatted, cut at the end of the buffer, prefixed; NULL is accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/status.h"

static void test_fail_writes(void **state) {
    (void)state;
    struct rfx_error err;
    assert_int_equal(rfx_fail(&err, RFX_STATUS_IO, "conv '%s': kernel %dx%d", "stem", 7, 5),
                     RFX_STATUS_IO);
    assert_string_equal(err.text, "conv 'stem': kernel 7x5");
    assert_int_equal(rfx_fail(NULL, RFX_STATUS_MALFORMED, "%d", 1), RFX_STATUS_MALFORMED);
}

static void test_fail_within_prefixes(void **state) {
    (void)state;
    struct rfx_error err;
    (void)rfx_fail(&err, RFX_STATUS_IO, "row %d is missing", 3);
    assert_int_equal(rfx_fail_within(&err, RFX_STATUS_IO, "image '%s'", "a.png"), RFX_STATUS_IO);
    assert_string_equal(err.text, "image 'a.png': row 3 is missing");
    assert_int_equal(rfx_fail_within(NULL, RFX_STATUS_IO, "x"), RFX_STATUS_IO);
}

static void test_long_texts_are_cut(void **state) {
    (void)state;
    struct rfx_error err;
    char text[1000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)rfx_fail(&err, RFX_STATUS_IO, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    (void)rfx_fail_within(&err, RFX_STATUS_IO, "file");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "file: aaa", 9);
    (void)rfx_fail_within(&err, RFX_STATUS_IO, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(err.text[0], 'a');
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(rfx_status_name(RFX_OK), "ok");
    assert_string_equal(rfx_status_name(RFX_STATUS_OUT_OF_MEMORY), "out of memory");
    assert_string_equal(rfx_status_name(RFX_STATUS_CANCELLED), "cancelled");
    assert_string_equal(rfx_status_name(RFX_STATUS_INTERNAL), "internal error");
    assert_string_equal(rfx_status_name(RFX_STATUS_COUNT), "unknown status");
    for (int a = 0; a < RFX_STATUS_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(rfx_status_name((enum rfx_status)a),
                                    rfx_status_name((enum rfx_status)b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_writes), cmocka_unit_test(test_fail_within_prefixes),
        cmocka_unit_test(test_long_texts_are_cut), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
