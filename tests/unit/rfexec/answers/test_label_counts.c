/* Counts of labels against a sort of all labels: random rows, the limit, failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/label_counts.h"
#include "tests/support/test_util.h"

static int by_value(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Compares the list with `n` labels, which are sorted here. */
static void expect_list(struct rfx_label_counts *counts, int64_t *labels, int64_t n, int64_t none) {
    int64_t listed, next = 0;
    const struct rfx_label_count *list = rfx_label_counts_list(counts, &listed);
    qsort(labels, (size_t)n, sizeof *labels, by_value);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && labels[end] == labels[i];) end++;
        if (labels[i] == none) continue;
        assert_true(next < listed);
        if (list[next].label != labels[i] || list[next].pixels != end - i)
            fail_msg("%" PRId64 ": %" PRId64 " pixels of label %" PRId64 ", not %" PRId64
                     " of %" PRId64,
                     next, list[next].pixels, list[next].label, end - i, labels[i]);
        next++;
    }
    assert_int_equal(next, listed);
    int64_t again;
    assert_ptr_equal(rfx_label_counts_list(counts, &again), list);
    assert_int_equal(again, listed);
}

static void random_labels_are_counted(void **state) {
    (void)state;
    enum { ROWS = 40, W = 100, ALL = ROWS * W };
    struct test_rng rng = test_rng_make(8);
    int64_t *labels = calloc(ALL, sizeof *labels);
    assert_non_null(labels);
    for (int turn = 0; turn < 60; turn++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_label_counts *counts = NULL;
        int64_t most = INT64_C(1) << test_rng_int(&rng, 0, 40), none = test_rng_int(&rng, -2, 2);
        assert_int_equal(rfx_label_counts_create(mem, RFX_LABEL_COUNTS, &counts, NULL), RFX_OK);
        for (int64_t i = 0; i < ALL; i++)
            labels[i] = i > 0 && test_rng_chance(&rng, 60) ? labels[i - 1]
                                                           : test_rng_int(&rng, -most, most);
        for (int64_t y = 0; y < ROWS; y++)
            assert_int_equal(rfx_label_counts_add(counts, labels + y * W, W, none, NULL), RFX_OK);
        expect_list(counts, labels, ALL, none);
        rfx_label_counts_free(counts);
        rfx_memory_free(mem);
    }
    free(labels);
}

/* The last of 65,536 different labels is counted, in every order of adding; one more is not. */
static void more_labels_than_the_table_has_are_refused(void **state) {
    (void)state;
    int64_t *labels = calloc(RFX_LABEL_COUNTS, sizeof *labels), more = 1;
    assert_non_null(labels);
    for (int step = 1; step <= 65535; step += 21844) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_label_counts *counts = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_label_counts_create(mem, RFX_LABEL_COUNTS, &counts, NULL), RFX_OK);
        for (int64_t i = 0; i < RFX_LABEL_COUNTS; i++)
            labels[i] = 2 * ((i * step) % RFX_LABEL_COUNTS - 30000);
        assert_int_equal(rfx_label_counts_add(counts, labels, RFX_LABEL_COUNTS, -1, &err), RFX_OK);
        assert_int_equal(rfx_label_counts_add(counts, labels + 7, 5, -1, &err), RFX_OK);
        assert_int_equal(rfx_label_counts_add(counts, &more, 1, 1, &err), RFX_OK);
        assert_int_equal(rfx_label_counts_add(counts, &more, 1, 0, &err), RFX_STATUS_UNSUPPORTED);
        assert_non_null(strstr(err.text, "65536 different labels"));
        rfx_label_counts_free(counts);
        rfx_memory_free(mem);
    }
    free(labels);
}

/* As many random labels as the table has: some places behind the last one are at the beginning. */
static void full_tables_are_counted(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(9);
    int64_t *labels = calloc(RFX_LABEL_COUNTS, sizeof *labels);
    assert_non_null(labels);
    for (int turn = 0; turn < 12; turn++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_label_counts *counts = NULL;
        assert_int_equal(rfx_label_counts_create(mem, RFX_LABEL_COUNTS, &counts, NULL), RFX_OK);
        for (int64_t i = 0; i < RFX_LABEL_COUNTS; i++) labels[i] = (int64_t)test_rng_next(&rng);
        assert_int_equal(rfx_label_counts_add(counts, labels, RFX_LABEL_COUNTS, 0, NULL), RFX_OK);
        expect_list(counts, labels, RFX_LABEL_COUNTS, 0);
        rfx_label_counts_free(counts);
        rfx_memory_free(mem);
    }
    free(labels);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_label_counts *counts = NULL;
    (void)context;
    enum rfx_status status = rfx_label_counts_create(mem, RFX_LABEL_COUNTS, &counts, err);
    rfx_label_counts_free(counts);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    assert_true(test_fail_each_allocation(build, NULL) >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_labels_are_counted),
        cmocka_unit_test(full_tables_are_counted),
        cmocka_unit_test(more_labels_than_the_table_has_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("label counts", tests, NULL, NULL);
}
