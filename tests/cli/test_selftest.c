/* `rfexec selftest`: it passes on this machine, sees a wrong fingerprint, and says what it cannot
 * promise. What all networks give is tested by the tests named fingerprints_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli_program.h"

#define HEADER "model,size,conv,output,shape,fingerprint\n"
#define ROW "toy,97x65,direct,output,1x256x24x16,"

static bool has_own_kernels(void) {
    expect(0, "selftest toy --json");
    json_t *doc = document("selftest");
    bool own = strcmp(json_string_value(at(doc, "kernels")), "base") != 0;
    assert_int_equal(integer_at(doc, "unpromised"), own ? 0 : integer_at(doc, "checked"));
    json_decref(doc);
    return own;
}

static void test_passes(void **state) {
    (void)state;
    expect(0, "selftest");
    assert_non_null(strstr(out_text, "PASSED"));
    assert_null(strstr(out_text, "DIFFERENT"));
    assert_non_null(strstr(out_text, "mobilenet_v2"));
    assert_null(strstr(out_text, "resnet152")); /* only with --all */
    expect(0, "selftest toy squeezenet1_1 --threads 3 --json");
    json_t *doc = document("selftest"), *check;
    size_t i;
    assert_int_equal(integer_at(doc, "checked"), 8); /* networks x sizes x ways */
    assert_int_equal(integer_at(doc, "different"), 0);
    json_array_foreach(at(doc, "checks"), i, check) {
        assert_string_equal(json_string_value(at(check, "expected")),
                            json_string_value(at(check, "found")));
        assert_true(json_is_true(at(check, "same")));
    }
    json_decref(doc);
}

static void test_sees_a_difference(void **state) {
    (void)state;
    if (!has_own_kernels()) skip();
    write_file("wrong.csv", HEADER ROW "00000000000000000000000000000000\n");
    assert_int_equal(rfexec("selftest toy --table wrong.csv"), 1);
    assert_non_null(strstr(out_text, "DIFFERENT  toy"));
    assert_non_null(strstr(out_text, "expected 00000000000000000000000000000000"));
    assert_non_null(strstr(out_text, "FAILED"));
    assert_int_equal(rfexec("selftest toy --table wrong.csv --json"), 1);
    json_t *doc = document("selftest");
    assert_int_equal(integer_at(doc, "different"), 2);
    json_decref(doc);
}

static void test_without_own_kernels(void **state) {
    (void)state;
    assert_int_equal(setenv("RFX_KERNELS", "base", 1), 0);
    expect(0, "selftest toy --json");
    assert_int_equal(unsetenv("RFX_KERNELS"), 0);
    json_t *doc = document("selftest");
    if (strcmp(json_string_value(at(doc, "kernels")), "base") == 0)
        assert_int_equal(integer_at(doc, "unpromised"), integer_at(doc, "checked"));
    assert_int_equal(integer_at(doc, "checked"), 4);
    json_decref(doc);
}

static void test_refusals(void **state) {
    (void)state;
    expect_says(2, "selftest nonesuch", "no fingerprints of 'nonesuch'");
    expect_says(5, "selftest --table missing.csv", "missing.csv");
    write_file("bad.csv", "a,b\n1,2\n");
    expect_says(3, "selftest --table bad.csv", "not a table of fingerprints");
    write_file("bad.csv", HEADER ROW "0123\n");
    expect_says(3, "selftest --table bad.csv", "line 2");
    write_file("bad.csv", HEADER ROW "00000000000000000000000000000000");
    expect_says(3, "selftest --table bad.csv", "not a table");
    write_file("bad.csv", HEADER "toy,97x0,direct,output,1,00000000000000000000000000000000\n");
    expect_says(3, "selftest --table bad.csv", "line 2");
    write_file("two.csv",
               HEADER "posenet,97x65,direct,output,1,00000000000000000000000000000000\n");
    expect_says(3, "selftest --table two.csv", "4 outputs, the table 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_sees_a_difference),
        cmocka_unit_test(test_without_own_kernels),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
