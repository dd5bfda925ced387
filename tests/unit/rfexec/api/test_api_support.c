/* Codes, texts, and structs of other versions of the public header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/api_support.h"

/* What later versions may only append to. */
_Static_assert(sizeof(struct rfx_why) == 512, "never changes: it has no size of its own");
_Static_assert(sizeof(struct rfx_open_options) >= 32, "only grows");
_Static_assert(sizeof(struct rfx_run_options) >= 72, "only grows");
_Static_assert(sizeof(struct rfx_forecast) >= 472, "only grows");
_Static_assert(offsetof(struct rfx_open_options, seed) == 24, "members stay where they are");
_Static_assert(offsetof(struct rfx_open_options, convolution) == 32, "stays where it is");
_Static_assert(offsetof(struct rfx_run_options, std) == 56, "members stay where they are");
_Static_assert(offsetof(struct rfx_run_options, max_pixels) == 72, "stays where it is");
_Static_assert(offsetof(struct rfx_run_options, stop) == 80, "stays where it is");
_Static_assert(offsetof(struct rfx_run_options, write) == 88, "stays where it is");
_Static_assert(sizeof(struct rfx_source) >= 64, "only grows");
_Static_assert(offsetof(struct rfx_source, concurrent) == 56, "members stay where they are");
_Static_assert(offsetof(struct rfx_area, channel_step) == 56, "members stay where they are");
_Static_assert(offsetof(struct rfx_run_options, spill_folder) == 96, "stays where it is");
_Static_assert(offsetof(struct rfx_forecast, plan) == 72, "members stay where they are");

static void test_version(void **state) {
    char text[32];
    (void)state;
    (void)snprintf(text, sizeof text, "%d.%d.%d", RFX_VERSION_MAJOR, RFX_VERSION_MINOR,
                   RFX_VERSION_PATCH);
    assert_string_equal(rfx_version(), text);
    assert_string_equal(RFX_VERSION, text);
}

/* The numbers are what scripts go by: written down here once more. */
static void test_codes(void **state) {
    static const int codes[RFX_STATUS_COUNT] = {
        [RFX_OK] = 0,
        [RFX_STATUS_INVALID_ARGUMENT] = 2,
        [RFX_STATUS_UNSUPPORTED] = 3,
        [RFX_STATUS_MALFORMED] = 3,
        [RFX_STATUS_BUDGET_IMPOSSIBLE] = 4,
        [RFX_STATUS_OUT_OF_MEMORY] = 5,
        [RFX_STATUS_IO] = 5,
        [RFX_STATUS_CANCELLED] = 6,
        [RFX_STATUS_INTERNAL] = 5,
    };
    (void)state;
    for (int s = 0; s < RFX_STATUS_COUNT; s++)
        assert_int_equal(rfx_code_of_status((enum rfx_status)s), codes[s]);
}

static void test_texts(void **state) {
    struct rfx_error none = {{0}}, some = {"conv 'a': too large"};
    struct rfx_why why = {"old"};
    (void)state;
    assert_int_equal(rfx_api_result(RFX_STATUS_MALFORMED, &some, &why), RFX_CODE_REFUSED);
    assert_string_equal(why.text, "conv 'a': too large");
    assert_int_equal(rfx_api_result(RFX_STATUS_OUT_OF_MEMORY, &none, &why), RFX_CODE_SYSTEM);
    assert_string_equal(why.text, rfx_status_name(RFX_STATUS_OUT_OF_MEMORY));
    assert_int_equal(rfx_api_result(RFX_OK, &some, &why), RFX_CODE_OK);
    assert_string_equal(why.text, "");
    assert_int_equal(rfx_api_result(RFX_STATUS_IO, &some, NULL), RFX_CODE_SYSTEM);
}

static void test_opening(void **state) {
    (void)state;
    assert_int_equal(rfx_api_opening(RFX_STATUS_IO, "/no/such/file"), RFX_STATUS_MALFORMED);
    assert_int_equal(rfx_api_opening(RFX_STATUS_INVALID_ARGUMENT, "/no/such/file"),
                     RFX_STATUS_MALFORMED);
    assert_int_equal(rfx_api_opening(RFX_STATUS_IO, "/proc/self/exe"), RFX_STATUS_IO);
    assert_int_equal(rfx_api_opening(RFX_STATUS_OUT_OF_MEMORY, "/no/such/file"),
                     RFX_STATUS_OUT_OF_MEMORY);
}

static void test_defaults(void **state) {
    struct rfx_open_options open, got_open;
    struct rfx_run_options run, got;
    struct rfx_error err;
    (void)state;
    memset(&open, 0xff, sizeof open);
    memset(&run, 0xff, sizeof run);
    rfx_open_options_init(&open, sizeof open);
    rfx_run_options_init(&run, sizeof run);
    assert_int_equal(open.size, sizeof open);
    assert_true(open.rows == 0 && open.columns == 0 && open.seed == 0);
    assert_int_equal(open.convolution, RFX_CONVOLUTION_DIRECT);
    assert_int_equal(run.size, sizeof run);
    assert_true(run.memory_bytes == 0 && run.threads == 0 && run.bgr == 0);
    assert_true(run.progress == NULL && run.stop == NULL && run.user == NULL);
    assert_true(run.scale == 1.0f / 255.0f && run.mean == NULL && run.n_std == 0 && run.raw == 0);
    assert_int_equal(rfx_api_read_open_options(NULL, &got_open, &err), RFX_OK);
    assert_memory_equal(&got_open, &open, sizeof open);
    assert_int_equal(rfx_api_read_run_options(NULL, &got, &err), RFX_OK);
    assert_true(got.threads >= 1); /* as many as there are processors */
    got.threads = 0;
    assert_memory_equal(&got, &run, sizeof run);
    run.bgr = 5;
    const float stds[2] = {1, 3};
    run.std = stds;
    run.n_std = 2;
    struct rfx_image_bands bands;
    struct rfx_image_options image = rfx_api_image_options(&run, 1, &bands);
    assert_true(image.bgr && image.channels == 1 && image.scale == run.scale);
    assert_true(image.std == stds && image.n_std == 2 && image.n_mean == 0 && !image.raw);
}

/* A program of a later version: its struct has members that this library has never heard of. */
static void test_larger_structs(void **state) {
    struct {
        struct rfx_run_options now;
        uint64_t later[2];
    } run, *later_run = &run;
    struct {
        struct rfx_forecast now;
        uint64_t later[2];
    } forecast;
    struct rfx_run_options got;
    struct rfx_error err;
    (void)state;
    memset(&run, 0xff, sizeof run);
    rfx_run_options_init(&later_run->now, sizeof run);
    assert_int_equal(run.now.size, sizeof run);
    assert_true(run.later[0] == 0 && run.later[1] == 0);
    run.now.threads = 3;
    assert_int_equal(rfx_api_read_run_options(&run.now, &got, &err), RFX_OK);
    assert_int_equal(got.threads, 3);
    run.later[1] = 1;
    assert_int_equal(rfx_api_read_run_options(&run.now, &got, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "sets members that rfexec"));

    struct rfx_forecast known = {.size = sizeof known, .peak_bytes = 5, .plan = "untiled"};
    memset(&forecast, 0xff, sizeof forecast);
    forecast.now.size = sizeof forecast;
    assert_int_equal(rfx_api_check_forecast(&forecast.now, &err), RFX_OK);
    rfx_api_write_forecast(&known, &forecast.now);
    assert_int_equal(forecast.now.size, sizeof forecast);
    assert_int_equal(forecast.now.peak_bytes, 5);
    assert_true(forecast.later[0] == 0 && forecast.later[1] == 0);
}

/* Texts of the library name members, not options of the program. */
static void test_own_words(void **state) {
    static const struct {
        const char *given, *said;
    } texts[] = {
        {"needs 9 bytes (--memory 9), at most", "needs 9 bytes (memory_bytes 9), at most"},
        {"give the size (--size HxW)", "give the size (rows and columns)"},
        {"a--b.tif: --channels: band 5", "a--b.tif: channels: band 5"},
        {"are (--max-pixels, max_pixels)", "are (max_pixels)"},
        {"--pad-to", "pad_to"},
        {"for them (--spill DIR)", "for them (spill_folder)"},
        {"-- --", "-- --"},
    };
    struct rfx_error err;
    struct rfx_why why;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)snprintf(err.text, sizeof err.text, "%s", texts[i].given);
        (void)rfx_api_result(RFX_STATUS_UNSUPPORTED, &err, &why);
        assert_string_equal(why.text, texts[i].said);
    }
    memset(err.text, 'x', sizeof err.text - 1);
    memcpy(err.text, "(--memory ", 10);
    err.text[sizeof err.text - 1] = '\0';
    (void)rfx_api_result(RFX_STATUS_UNSUPPORTED, &err, &why);
    assert_int_equal(strlen(why.text), sizeof err.text - 1 + 4);
    assert_memory_equal(why.text, "(memory_bytes xxx", 17);
}

/* A program of version 0.1.0, whose struct ended before the choice: what lies behind it is not
 * looked at, and convolutions are computed by default. */
static void test_smaller_structs(void **state) {
    struct rfx_open_options open, got;
    struct rfx_error err;
    (void)state;
    memset(&open, 0xff, sizeof open);
    rfx_open_options_init(&open, 32);
    assert_int_equal(open.size, 32);
    assert_int_equal((unsigned)open.convolution, 0xffffffffu);
    open.seed = 5;
    assert_int_equal(rfx_api_read_open_options(&open, &got, &err), RFX_OK);
    assert_int_equal(got.seed, 5);
    assert_int_equal(got.convolution, RFX_CONVOLUTION_DIRECT);
}

/* The numbers are in programs: written down here once more. */
static void test_convolutions(void **state) {
    static const struct {
        int number;
        enum rfx_conv_choice choice;
    } known[] = {{0, RFX_CONV_DIRECT}, {1, RFX_CONV_OPENBLAS}, {2, RFX_CONV_WINOGRAD}};
    static const int unknown[] = {-1, 3, 4, 1000};
    struct rfx_open_options open, got;
    enum rfx_conv_choice choice;
    struct rfx_error err;
    (void)state;
    rfx_open_options_init(&open, sizeof open);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        open.convolution = (enum rfx_convolution)known[i].number;
        assert_int_equal(rfx_api_read_open_options(&open, &got, &err), RFX_OK);
        assert_int_equal(got.convolution, known[i].number);
        assert_true(rfx_api_conv_choice(got.convolution, &choice));
        assert_int_equal(choice, known[i].choice);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        open.convolution = (enum rfx_convolution)unknown[i];
        assert_int_equal(rfx_api_read_open_options(&open, &got, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "knows no such arithmetic"));
    }
}

static void test_int8(void **state) {
    static const struct {
        int number;
        enum rfx_int8_choice choice;
    } known[] = {{0, RFX_INT8_ORT}, {1, RFX_INT8_SPEC}};
    struct rfx_open_options open, got;
    enum rfx_int8_choice choice;
    struct rfx_error err;
    (void)state;
    rfx_open_options_init(&open, sizeof open);
    assert_int_equal(open.int8, 0);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        open.int8 = (enum rfx_int8)known[i].number;
        assert_int_equal(rfx_api_read_open_options(&open, &got, &err), RFX_OK);
        assert_true(rfx_api_int8_choice(got.int8, &choice));
        assert_int_equal(choice, known[i].choice);
    }
    open.int8 = (enum rfx_int8)2;
    assert_int_equal(rfx_api_read_open_options(&open, &got, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "int8 is 2"));
}

/* Sizes that no version has: structs that were never set. */
static void test_wrong_sizes(void **state) {
    static const size_t sizes[] = {0, 1, 31, 4097, SIZE_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rfx_open_options open, got_open;
        struct rfx_run_options run, got;
        struct rfx_forecast forecast = {.size = sizes[i]};
        struct rfx_error err = {{0}};
        rfx_open_options_init(&open, sizeof open);
        rfx_run_options_init(&run, sizeof run);
        open.size = run.size = sizes[i];
        assert_int_equal(rfx_api_read_open_options(&open, &got_open, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "rfx_open_options"));
        assert_int_equal(rfx_api_read_run_options(&run, &got, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "rfx_run_options"));
        assert_int_equal(rfx_api_check_forecast(&forecast, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "rfx_forecast"));
    }
}

static void test_values_out_of_range(void **state) {
    static const struct {
        int64_t rows, columns;
        int fine;
    } sizes[] = {{0, 0, 1}, {7, 9, 1}, {-1, 9, 0}, {9, -1, 0}, {0, 9, 0}, {9, 0, 0}};
    static const struct {
        int threads, fine;
    } threads[] = {{0, 1}, {1, 1}, {1024, 1}, {1025, 0}, {-1, 0}};
    struct rfx_error err;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rfx_open_options open, got;
        rfx_open_options_init(&open, sizeof open);
        open.rows = sizes[i].rows;
        open.columns = sizes[i].columns;
        assert_int_equal(rfx_api_read_open_options(&open, &got, &err) == RFX_OK, sizes[i].fine);
    }
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        struct rfx_run_options run, got;
        rfx_run_options_init(&run, sizeof run);
        run.threads = threads[i].threads;
        assert_int_equal(rfx_api_read_run_options(&run, &got, &err) == RFX_OK, threads[i].fine);
    }
    struct rfx_run_options run, got;
    struct rfx_image_bands bands;
    rfx_run_options_init(&run, sizeof run);
    run.max_pixels = -1;
    assert_int_equal(rfx_api_read_run_options(&run, &got, &err), RFX_STATUS_INVALID_ARGUMENT);
    run.max_pixels = 7;
    assert_int_equal(rfx_api_image_options(&run, 3, &bands).max_pixels, 7);
    run.max_pixels = 0;
    assert_int_equal(rfx_api_image_options(&run, 3, &bands).max_pixels, RFX_IMAGE_WHOLE_PIXELS);
    run.memory_bytes = 1; /* says all */
    assert_int_equal(rfx_api_image_options(&run, 3, &bands).max_pixels, 0);
}

static void test_choice_out_of_range(void **state) {
    static const int few[] = {4, 1, 65535}, zero[] = {1, 0}, many[600] = {1};
    static const struct {
        int64_t page;
        const int *channels;
        int n, bgr, fine;
    } cases[] = {{7, few, 3, 0, 1},  {-1, NULL, 0, 0, 0},  {0, few, 0, 0, 0},  {0, NULL, 3, 0, 0},
                 {0, few, -1, 0, 0}, {0, many, 513, 0, 0}, {0, zero, 2, 0, 0}, {0, few, 3, 1, 0}};
    struct rfx_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_run_options run, got;
        rfx_run_options_init(&run, sizeof run);
        run.page = cases[i].page;
        run.channels = cases[i].channels;
        run.n_channels = cases[i].n;
        run.bgr = cases[i].bgr;
        assert_int_equal(rfx_api_read_run_options(&run, &got, &err) == RFX_OK, cases[i].fine);
        if (!cases[i].fine) continue;
        struct rfx_image_bands bands;
        run.as_stored = 1;
        struct rfx_image_options image = rfx_api_image_options(&run, 0, &bands);
        assert_true(image.bands == &bands && bands.n == 3 && bands.numbers[2] == 65535);
        assert_true(image.page == 7 && image.as_stored);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice_out_of_range),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_larger_structs),
        cmocka_unit_test(test_smaller_structs),
        cmocka_unit_test(test_own_words),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_int8),
        cmocka_unit_test(test_wrong_sizes),
        cmocka_unit_test(test_values_out_of_range),
    };
    return cmocka_run_group_tests_name("api_support", tests, NULL, NULL);
}
