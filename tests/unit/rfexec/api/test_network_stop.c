/* Calls of the public header that are asked to stop: whatever they are at, they say so, and the
 * network is as good as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/makers/zarr_maker.h"
#include "tests/support/run/network_run.h"

enum { ROWS = 64, COLUMNS = 71 };

struct stopper {
    atomic_llong calls, from; /* says stop from this call on */
};

static int is_time(void *user) {
    struct stopper *s = user;
    return atomic_fetch_add(&s->calls, 1) + 1 >= atomic_load(&s->from);
}

/* The next question to be answered by "stop": some of planning's, then of packing's and the run's.
 */
static int64_t next_question(int64_t from, int64_t planning, int64_t all) {
    return from <= planning ? (from + from / 2 < planning ? from + from / 2 + 1 : planning + 1)
                            : from + 1 + (all - planning) / 16;
}

/* Stopped at questions of every part of a call; the network is as good as before. The last one
 * comes when all is done. */
static void test_stop(void **state) {
    struct rfx_network *net = network_open_sized("squeezenet1_1", ROWS, COLUMNS);
    float *values = network_random_image(3, ROWS, COLUMNS);
    struct network_outputs want =
                               network_session_outputs("squeezenet1_1", values, 3, ROWS, COLUMNS),
                           got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(network_least_bytes(net, NULL, 2), 2);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct stopper plan = {.from = INT64_MAX}, whole = {.from = INT64_MAX};
    struct rfx_why why;
    (void)state;
    options.stop = is_time;
    options.user = &plan;
    network_check(rfx_network_predict(net, NULL, &options, &forecast, &why), &why);
    options.user = &whole;
    network_check(rfx_network_run_values(net, values, got.values, 1, &options, &why), &why);
    int64_t planning = plan.calls, all = whole.calls;
    assert_true(planning > 100 && all > planning + 50);
    for (int64_t from = 1; from < all; from = next_question(from, planning, all)) {
        struct stopper s = {.from = from};
        options.user = &s;
        assert_int_equal(rfx_network_run_values(net, values, got.values, 1, &options, &why),
                         RFX_CODE_CANCELLED);
        assert_non_null(strstr(why.text, "stopped"));
        atomic_store(&s.calls, 0);
        enum rfx_code code = rfx_network_predict(net, NULL, &options, &forecast, &why);
        assert_int_equal(code, from <= planning ? RFX_CODE_CANCELLED : RFX_CODE_OK);
    }
    options.stop = NULL; /* and nobody is asked any more */
    network_check(rfx_network_run_values(net, values, got.values, 1, &options, &why), &why);
    network_assert_same(&got, &want);
    network_outputs_free(&got);
    network_outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

static void write_ppm(const char *path) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fprintf(file, "P6 %d %d 255\n", COLUMNS, ROWS) > 0);
    for (int i = 0; i < ROWS * COLUMNS * 3; i++) assert_true(fputc(i * 7 % 251, file) != EOF);
    assert_int_equal(fclose(file), 0);
}

/* Decoders know only that they got no memory: that is not what the caller is told. */
static void test_stop_in_pictures(void **state) {
    static const char *const pictures[] = {"stop.tif", "stop.png", "stop.jpg", "stop.ppm",
                                           "stop.zarr"};
    struct tiff_maker tiff = tiff_maker_of(0, 1);
    tiff.h = ROWS, tiff.w = COLUMNS, tiff.rows = 16;
    const struct png_maker png = {.h = ROWS, .w = COLUMNS, .bit_depth = 8, .color_type = 2};
    const struct jpeg_maker jpeg = {
        .h = ROWS, .w = COLUMNS, .components = 3, .h_sampling = 1, .v_sampling = 1, .quality = 90};
    (void)state;
    assert_true(tiff_maker_write(&tiff, pictures[0]) && png_maker_write(&png, pictures[1]) &&
                jpeg_maker_write(&jpeg, pictures[2]));
    write_ppm(pictures[3]);
    struct zarr_maker zarr = zarr_maker_usual();
    zarr.shape[1] = ROWS, zarr.shape[2] = COLUMNS, zarr.codec = "gzip";
    assert_true(zarr_maker_write(&zarr, pictures[4]));
    for (size_t k = 0; k < sizeof pictures / sizeof pictures[0]; k++) {
        struct rfx_network *net = network_open_sized("squeezenet1_1", ROWS, COLUMNS);
        struct network_outputs got = network_outputs_for(net);
        struct rfx_run_options options = network_run_options(0, 1);
        struct rfx_why why;
        struct stopper whole = {.from = INT64_MAX};
        options.stop = is_time;
        options.user = &whole;
        network_check(rfx_network_run_file(net, pictures[k], got.values, 1, &options, &why), &why);
        for (int64_t from = 1, all = whole.calls; from < all; from++) {
            struct stopper s = {.from = from};
            options.user = &s;
            enum rfx_code code =
                rfx_network_run_file(net, pictures[k], got.values, 1, &options, &why);
            if (code != RFX_CODE_CANCELLED || strstr(why.text, "stopped") == NULL)
                fail_msg("%s, stopped at question %lld of %lld: %d, %s", pictures[k],
                         (long long)from, (long long)all, (int)code, why.text);
        }
        network_outputs_free(&got);
        rfx_network_free(net);
        if (k == 4)
            zarr_maker_remove(pictures[k]);
        else
            assert_int_equal(unlink(pictures[k]), 0);
    }
}

/* A map of a whole image takes seconds: the question is asked within its step too. */
struct within {
    atomic_llong calls; /* since the last step */
    long long most;     /* of a step that computes */
};

static int count_question(void *user) {
    (void)atomic_fetch_add(&((struct within *)user)->calls, 1);
    return 0;
}

static int end_step(void *user, const struct rfx_step_report *step) {
    struct within *w = user;
    long long calls = atomic_exchange(&w->calls, 0);
    if (step->work == RFX_STEP_WORK_COMPUTE && calls > w->most) w->most = calls;
    return 0;
}

static void test_stop_within_steps(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 200, 150);
    float *values = network_random_image(3, 200, 150);
    struct network_outputs got = network_outputs_for(net);
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct rfx_run_options options = network_run_options(0, threads);
        struct within w = {.most = 0};
        struct rfx_why why;
        options.stop = count_question;
        options.observe = end_step;
        options.user = &w;
        network_check(rfx_network_run_values(net, values, got.values, 1, &options, &why), &why);
        assert_true(w.most > 10);
    }
    network_outputs_free(&got);
    free(values);
    rfx_network_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_within_steps),
        cmocka_unit_test(test_stop_in_pictures),
    };
    return cmocka_run_group_tests_name("network_stop", tests, NULL, NULL);
}
