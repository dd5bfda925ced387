/* Trial threads: a system that gives none is an error with the numbers, not the end of the process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "layers/core/threads.h"

#define IMPOSSIBLE_STACK ((size_t)1 << 46) /* more address space than a process has */

static void test_threads_are_there(void **state) {
    (void)state;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_threads_try(1, &err), RFX_OK);
    assert_int_equal(rfx_threads_try(3, &err), RFX_OK);
    assert_int_equal(rfx_threads_try(1000, &err), RFX_OK); /* tries 64 */
}

static void test_no_threads(void **state) {
    (void)state;
    struct rfx_error err = {{0}};
    pthread_attr_t usual, impossible;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_getattr_default_np(&impossible), 0);
    assert_int_equal(pthread_attr_setstacksize(&impossible, IMPOSSIBLE_STACK), 0);
    assert_int_equal(pthread_setattr_default_np(&impossible), 0);
    assert_int_equal(rfx_threads_try(1, &err), RFX_OK);
    enum rfx_status status = rfx_threads_try(4, &err);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
    assert_string_equal(err.text, "only 1 of 4 threads can be started");
    assert_int_equal(rfx_threads_try(4, &err), RFX_OK);
    (void)pthread_attr_destroy(&usual);
    (void)pthread_attr_destroy(&impossible);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_are_there),
                                       cmocka_unit_test(test_no_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
