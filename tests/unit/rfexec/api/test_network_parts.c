/* Networks of parts behind the public header: their arrays, callbacks and budgets against the
 * output of the whole, and what they ask of the image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"
#include "tests/support/run/watched_image.h"
#include "tests/support/test_util.h"

enum { H = 50, W = 37 };

struct taken {
    float *values;
    int64_t rows, columns, seen;
};

static int take(void *user, int output, const struct rfx_area *part, const float *values) {
    struct taken *t = user;
    if (output != 0 || part->row < 0 || part->row + part->rows > t->rows || part->column < 0 ||
        part->column + part->columns > t->columns)
        return 1;
    for (int64_t y = 0; y < part->rows; y++)
        for (int64_t x = 0; x < part->columns; x++)
            for (int64_t c = 0; c < part->channels; c++)
                t->values[(c * t->rows + part->row + y) * t->columns + part->column + x] =
                    values[y * part->row_step + x * part->column_step + c * part->channel_step];
    t->seen += part->rows * part->columns * part->channels;
    return 0;
}

/* The part of the whole output, 1 x c x h x w. */
static float *cut(const float *whole, const int64_t dims[4], const struct rfx_area *a) {
    float *part = test_floats(dims[1] * a->rows * a->columns), *to = part;
    for (int64_t c = 0; c < dims[1]; c++)
        for (int64_t y = a->row; y < a->row + a->rows; y++, to += a->columns)
            memcpy(to, whole + (c * dims[2] + y) * dims[3] + a->column,
                   (size_t)a->columns * sizeof *to);
    return part;
}

static void assert_part(const float *got, const float *want, int64_t n) {
    struct test_diff diff;
    if (!test_same_bits(got, want, n, &diff)) {
        test_print_diff("part", got, want, n, &diff);
        fail();
    }
}

static void check_part(struct rfx_network *net, const float *whole, const float *image,
                       const struct rfx_area *area, int threads) {
    struct rfx_network *part = NULL;
    struct rfx_why why;
    struct rfx_area needed;
    int64_t dims[RFX_MAX_DIMS], own[RFX_MAX_DIMS];
    struct watched_image watched = watched_image_of(image, H, W);
    assert_int_equal(rfx_network_output_shape(net, 0, dims), 4);
    network_check(rfx_network_open_part(net, 0, area, &part, &why), &why);
    assert_int_equal(rfx_network_output_count(part), 1);
    assert_int_equal(rfx_network_output_shape(part, 0, own), 4);
    assert_true(own[1] == dims[1] && own[2] == area->rows && own[3] == area->columns);
    int64_t n = rfx_network_output_elements(part, 0);
    assert_int_equal(n, dims[1] * area->rows * area->columns);
    float *want = cut(whole, dims, area), *got = test_floats(n);
    network_check(rfx_network_run_values(part, image, &got, 1, NULL, &why), &why);
    assert_part(got, want, n);
    struct rfx_run_options options =
        network_run_options(network_least_bytes(part, NULL, threads), threads);
    struct taken taken = {test_floats(n), area->rows, area->columns, 0};
    struct rfx_source source = watched_image_source(&watched);
    options.write = take;
    options.user = &taken;
    network_check(rfx_network_run_source(part, &source, NULL, 0, &options, &why), &why);
    assert_int_equal(taken.seen, n);
    assert_part(taken.values, want, n);
    rfx_network_input_area(part, &needed);
    watched_image_check(&watched, &needed);
    free(want);
    free(got);
    free(taken.values);
    rfx_network_free(part);
}

static void test_parts_are_of_the_whole(void **state) {
    static const struct rfx_area areas[] = {{.row = 0, .rows = 100, .columns = 74},
                                            {.row = 0, .rows = 1, .columns = 1},
                                            {.row = 31, .column = 17, .rows = 40, .columns = 9},
                                            {.row = 99, .column = 0, .rows = 1, .columns = 74},
                                            {.row = 7, .column = 73, .rows = 93, .columns = 1}};
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn:2", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs whole = network_session_outputs("fsrcnn:2", image, 3, H, W);
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++)
        check_part(net, whole.values[0], image, &areas[i], 1 + (int)(i % 2));
    struct rfx_area needed;
    rfx_network_input_area(net, &needed);
    assert_true(needed.row == 0 && needed.rows == H && needed.column == 0 && needed.columns == W &&
                needed.channels == 3);
    network_outputs_free(&whole);
    free(image);
    rfx_network_free(net);
}

static void test_refusals(void **state) {
    static const struct rfx_area wrong[] = {{.rows = 0, .columns = 5},
                                            {.rows = 101, .columns = 5},
                                            {.row = 99, .rows = 2, .columns = 5},
                                            {.row = -1, .rows = 2, .columns = 5},
                                            {.row = INT64_MAX, .rows = 2, .columns = 5},
                                            {.column = 70, .rows = 2, .columns = 5}};
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn:2", H, W), *part = NULL;
    struct rfx_why why;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(rfx_network_open_part(net, 0, &wrong[i], &part, &why), RFX_CODE_USAGE);
        assert_non_null(strstr(why.text, "100 rows and 74 columns"));
    }
    assert_int_equal(rfx_network_open_part(net, 1, &wrong[0], &part, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_network_open_part(net, 0, NULL, &part, &why), RFX_CODE_USAGE);
    assert_null(part);
    rfx_network_free(net);
    net = network_open_sized("squeezenet1_1", 64, 64); /* a vector of classes */
    assert_int_equal(
        rfx_network_open_part(net, 0, &(struct rfx_area){.rows = 1, .columns = 1}, &part, &why),
        RFX_CODE_USAGE);
    rfx_network_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts_are_of_the_whole),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
