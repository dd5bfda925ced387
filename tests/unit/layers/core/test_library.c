/* Loading a library: its functions by name; what is missing is an error with words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/library.h"

#define MATHS "libm.so.6"

struct maths {
    double (*sqrt)(double);
    double (*none)(double);
};

static void functions_by_name(void **state) {
    static const struct rfx_library_function functions[] = {
        {"sqrt", offsetof(struct maths, sqrt), false},
        {"rfx_no_such_function", offsetof(struct maths, none), true}};
    struct maths maths = {0};
    struct rfx_error err = {{0}};
    (void)state;
    memset(&maths, 0x55, sizeof maths);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(rfx_library_load(MATHS, functions, 2, &maths, &err), RFX_OK);
        assert_true(maths.sqrt(9.0) == 3.0);
        assert_null(maths.none);
    }
}

static void missing_function(void **state) {
    static const struct rfx_library_function function = {"rfx_no_such_function",
                                                         offsetof(struct maths, none), false};
    struct maths maths = {0};
    struct rfx_error err = {{0}};
    (void)state;
    assert_int_equal(rfx_library_load(MATHS, &function, 1, &maths, &err), RFX_STATUS_IO);
    assert_string_equal(err.text, MATHS " has no rfx_no_such_function");
}

static void missing_library(void **state) {
    struct maths maths = {0};
    struct rfx_error err = {{0}};
    (void)state;
    assert_int_equal(rfx_library_load("librfx_none.so", NULL, 0, &maths, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "librfx_none.so"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_by_name),
                                       cmocka_unit_test(missing_function),
                                       cmocka_unit_test(missing_library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
