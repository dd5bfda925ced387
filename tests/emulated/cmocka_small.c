/* The functions of cmocka that tests of kernels call, for programs that are linked statically:
 * Debian has no static cmocka. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
// clang-format on

const char *global_last_failed_assert;
static jmp_buf test_end;
static int state_of_test; /* 1 failed, 2 skipped */
void print_message(const char *const f, ...) {
    va_list a;
    va_start(a, f);
    vprintf(f, a);
    va_end(a);
}
void print_error(const char *const f, ...) {
    va_list a;
    va_start(a, f);
    vprintf(f, a);
    va_end(a);
}
void vprint_error(const char *const f, va_list a) {
    vprintf(f, a);
}
void _fail(const char *const file, const int line) {
    printf("%s:%d: failed\n", file, line);
    state_of_test = 1;
    longjmp(test_end, 1);
}
void _skip(const char *const file, const int line) {
    (void)file;
    (void)line;
    state_of_test = 2;
    longjmp(test_end, 1);
}
static void check(int good, const char *what, const char *file, int line) {
    if (!good) {
        printf("%s\n", what);
        _fail(file, line);
    }
}
void _assert_true(const LargestIntegralType r, const char *const e, const char *const f,
                  const int l) {
    check(r != 0, e, f, l);
}
void _assert_int_equal(const LargestIntegralType a, const LargestIntegralType b,
                       const char *const f, const int l) {
    if (a != b) printf("%lld != %lld\n", (long long)a, (long long)b);
    check(a == b, "not equal", f, l);
}
void _assert_int_not_equal(const LargestIntegralType a, const LargestIntegralType b,
                           const char *const f, const int l) {
    check(a != b, "equal", f, l);
}
void _assert_string_equal(const char *const a, const char *const b, const char *const f,
                          const int l) {
    if (strcmp(a, b)) printf("'%s' != '%s'\n", a, b);
    check(!strcmp(a, b), "not equal", f, l);
}
void _assert_string_not_equal(const char *const a, const char *const b, const char *f,
                              const int l) {
    check(strcmp(a, b), "equal", f, l);
}
void _assert_memory_equal(const void *const a, const void *const b, const size_t n,
                          const char *const f, const int l) {
    check(!memcmp(a, b, n), "memory differs", f, l);
}
void _assert_memory_not_equal(const void *const a, const void *const b, const size_t n,
                              const char *const f, const int l) {
    check(memcmp(a, b, n), "memory is equal", f, l);
}
void _assert_in_range(const LargestIntegralType v, const LargestIntegralType a,
                      const LargestIntegralType b, const char *const f, const int l) {
    check(v >= a && v <= b, "not in range", f, l);
}
void _assert_float_equal(const float a, const float b, const float e, const char *const f,
                         const int l) {
    check(fabsf(a - b) <= e, "floats differ", f, l);
}
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t n,
                            CMFixtureFunction s, CMFixtureFunction t) {
    int failed = 0;
    (void)s;
    (void)t;
    for (volatile size_t i = 0; i < n; i++) {
        void *state = tests[i].initial_state;
        state_of_test = 0;
        printf("RUN %s\n", tests[i].name);
        fflush(stdout);
        if (setjmp(test_end) == 0) {
            if (tests[i].setup_func) tests[i].setup_func(&state);
            tests[i].test_func(&state);
            if (tests[i].teardown_func) tests[i].teardown_func(&state);
        }
        printf("%s %s\n",
               state_of_test == 0   ? "OK"
               : state_of_test == 1 ? "FAILED"
                                    : "SKIPPED",
               tests[i].name);
        fflush(stdout);
        failed += state_of_test == 1;
    }
    printf("%s: %zu tests, %d failed\n", name, n, failed);
    return failed;
}
