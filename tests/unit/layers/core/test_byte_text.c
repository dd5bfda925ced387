/* Texts of compared sizes, against a table made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/core/byte_text.h"

static void test_pairs(void **state) {
    static const struct {
        size_t a, b;
        const char *a_text, *b_text;
    } cases[] = {
        {14680064, 13212058, "14.0 MiB", "12.6 MiB"},
        {14680065, 14680064, "14680065 bytes", "14680064 bytes"},
        {14680064, 14680064, "14.0 MiB", "14.0 MiB"},
        {1048576, 64, "1.0 MiB", "64 bytes"},
        {1073741824, 1073741823, "1.00 GiB", "1024.0 MiB"},
        {2147483648U, 2147483649U, "2147483648 bytes", "2147483649 bytes"},
        {0, 1, "0 bytes", "1 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char a[RFX_BYTE_TEXT], b[RFX_BYTE_TEXT];
        rfx_byte_texts(cases[i].a, cases[i].b, a, b);
        assert_string_equal(a, cases[i].a_text);
        assert_string_equal(b, cases[i].b_text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
