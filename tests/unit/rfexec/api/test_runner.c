/* Runners and sources of the public header, and outputs that a function receives, against a session
 * of the same graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

/* An array in ONNX order that is asked for parts. */
struct asked {
    const float *values;
    int64_t c, h, w;
    atomic_int calls;
    int fail_at; /* which call fails, from 1; 0: none */
};

static int read_area(void *user, const struct rfx_area *area, float *values) {
    struct asked *a = user;
    if (area->channels != a->c || area->row < 0 || area->column < 0 || area->rows < 1 ||
        area->columns < 1 || area->row + area->rows > a->h || area->column + area->columns > a->w)
        return 99;
    for (int64_t r = 0; r < area->rows; r++)
        for (int64_t c = 0; c < area->columns; c++)
            for (int64_t k = 0; k < area->channels; k++)
                values[r * area->row_step + c * area->column_step + k * area->channel_step] =
                    a->values[(k * a->h + area->row + r) * a->w + area->column + c];
    return atomic_fetch_add(&a->calls, 1) + 1 == a->fail_at ? -7 : 0;
}

/* Arrays that are filled by parts; each element may come once. */
struct filled {
    const struct rfx_network *net;
    struct network_outputs got;
    unsigned char *seen[MOST_OUTPUTS];
    int wrong, calls, fail_at;
};

static struct filled filled_for(const struct rfx_network *net) {
    struct filled f = {.net = net, .got = network_outputs_for(net)};
    for (int k = 0; k < f.got.n; k++) {
        f.seen[k] = calloc((size_t)f.got.elems[k], 1);
        assert_non_null(f.seen[k]);
    }
    return f;
}

/* Frees but what was got. */
static void filled_check(struct filled *f, bool all) {
    for (int k = 0; k < f->got.n; k++) {
        for (int64_t i = 0; all && i < f->got.elems[k]; i++) f->wrong += f->seen[k][i] != 1;
        free(f->seen[k]);
    }
    assert_int_equal(f->wrong, 0);
}

static int write_area(void *user, int output, const struct rfx_area *area, const float *values) {
    struct filled *f = user;
    int64_t dims[RFX_MAX_DIMS];
    int rank = rfx_network_output_shape(f->net, output, dims);
    bool is_map = rank == 4 && dims[0] == 1, flat = rank == 3 && dims[0] == 1; /* one channel */
    int64_t c = is_map ? dims[1]
                : flat ? 1
                       : f->got.elems[output],
            h = is_map || flat ? dims[rank - 2] : 1, w = is_map || flat ? dims[rank - 1] : 1;
    if (area->channels != c || area->row < 0 || area->row + area->rows > h || area->column < 0 ||
        area->column + area->columns > w) {
        f->wrong++;
        return 1;
    }
    for (int64_t r = 0; r < area->rows; r++)
        for (int64_t x = 0; x < area->columns; x++)
            for (int64_t k = 0; k < c; k++) {
                int64_t to = (k * h + area->row + r) * w + area->column + x;
                f->got.values[output][to] =
                    values[r * area->row_step + x * area->column_step + k * area->channel_step];
                f->seen[output][to]++;
            }
    return ++f->calls == f->fail_at ? 5 : 0;
}

static const struct {
    const char *model;
    int64_t h, w;
} cases[] = {{"fsrcnn:2", 50, 37},
             {"posenet", 65, 49},
             {"squeezenet1_1", 64, 71},
             {"blazeface", 64, 71},
             {"yolov8n", 130, 97}};
enum { CASES = sizeof cases / sizeof cases[0] };

static size_t budget(struct rfx_network *net, int which, int threads) {
    return which == 0 ? 0 : network_least_bytes(net, NULL, threads);
}

static void run_parts(struct rfx_network *net, struct asked *asked,
                      const struct network_outputs *want, size_t bytes, int threads) {
    struct rfx_run_options options = network_run_options(bytes, threads);
    struct rfx_source source = {
        .size = sizeof source, .read = read_area, .user = asked, .concurrent = threads > 2};
    struct filled filled = filled_for(net);
    struct rfx_why why;
    options.write = write_area;
    options.user = &filled;
    asked->calls = 0;
    network_check(rfx_network_run_source(net, &source, NULL, 0, &options, &why), &why);
    assert_true(asked->calls > 0 && filled.calls > 0);
    filled_check(&filled, true);
    network_assert_same(&filled.got, want);
    network_outputs_free(&filled.got);
}

/* Every plan reads by parts and writes by parts what it makes of arrays; NaN of any sign and
 * payload leave as the one that there is. */
static void test_parts(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        int64_t h = cases[i].h, w = cases[i].w;
        struct rfx_network *net = network_open_sized(cases[i].model, h, w);
        static const uint32_t nan = 0xffc12345;
        float *values = network_random_image(3, h, w);
        memcpy(&values[h * w / 2], &nan, sizeof nan);
        struct network_outputs want = network_session_outputs(cases[i].model, values, 3, h, w);
        struct asked asked = {.values = values, .c = 3, .h = h, .w = w};
        for (int threads = 1; threads <= 3; threads += 2)
            for (int b = 0; b < 2; b++)
                run_parts(net, &asked, &want, budget(net, b, threads), threads);
        network_outputs_free(&want);
        free(values);
        rfx_network_free(net);
    }
}

/* Pixels of a larger array, upside down and from right to left. */
static void test_steps(void **state) {
    enum { H = 50, W = 37, WIDE = 45, DEEP = 5 };
    struct rfx_network *net = network_open_sized("fsrcnn:2", H, W);
    float *values = network_random_image(3, H, W), *large = test_floats(H * WIDE * DEEP);
    struct network_outputs want = network_session_outputs("fsrcnn:2", values, 3, H, W),
                           got = network_outputs_for(net);
    struct rfx_source source = {.size = sizeof source,
                                .values = large + (H - 1) * WIDE * DEEP + (W - 1) * DEEP + 1,
                                .row_step = -WIDE * DEEP,
                                .column_step = -DEEP,
                                .channel_step = 1};
    struct rfx_why why;
    (void)state;
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++)
            for (int64_t c = 0; c < 3; c++)
                large[((H - 1 - y) * WIDE + W - 1 - x) * DEEP + 1 + c] =
                    values[(c * H + y) * W + x];
    network_check(rfx_network_run_source(net, &source, got.values, 1, NULL, &why), &why);
    network_assert_same(&got, &want);
    memset(got.values[0], 0, sizeof(float) * (size_t)got.elems[0]);
    source = (struct rfx_source){.size = sizeof source, .values = values};
    network_check(rfx_network_run_source(net, &source, got.values, 1, NULL, &why), &why);
    network_assert_same(&got, &want);
    network_outputs_free(&got);
    network_outputs_free(&want);
    free(large);
    free(values);
    rfx_network_free(net);
}

/* A runner gives the same bits on every image, in what it was made for, also after failures; some
 * outputs go to arrays and the others to the function. */
static void test_runner(void **state) {
    int64_t h = 65, w = 49;
    struct rfx_network *net = network_open_sized("posenet", h, w);
    float *images[2] = {network_random_image(3, h, w), test_floats(3 * h * w)};
    struct network_outputs want[2];
    struct rfx_why why;
    (void)state;
    for (int64_t i = 0; i < 3 * h * w; i++) images[1][i] = images[0][3 * h * w - 1 - i];
    for (int i = 0; i < 2; i++) want[i] = network_session_outputs("posenet", images[i], 3, h, w);
    for (int b = 0; b < 2; b++) {
        struct rfx_run_options options = network_run_options(budget(net, b, 2), 2);
        struct rfx_forecast forecast = {.size = sizeof forecast}, again = forecast;
        struct rfx_runner *runner = NULL;
        network_check(rfx_network_predict(net, NULL, &options, &forecast, &why), &why);
        network_check(rfx_runner_create(net, &options, &runner, &why), &why);
        network_check(rfx_runner_forecast(runner, &again, &why), &why);
        assert_memory_equal(&forecast, &again, sizeof again);
        for (int round = 0; round < 6; round++) {
            struct asked asked = {
                .values = images[round % 2], .c = 3, .h = h, .w = w, .fail_at = round / 4};
            struct rfx_source source = {.size = sizeof source, .read = read_area, .user = &asked};
            struct filled filled = filled_for(net);
            float *some[4] = {filled.got.values[0], NULL, filled.got.values[2], NULL};
            options.write = write_area;
            options.user = &filled;
            enum rfx_code code = rfx_runner_run(runner, &source, some, 4, &options, &why);
            filled_check(&filled, false);
            if (round / 4 != 0) {
                assert_int_equal(code, RFX_CODE_SYSTEM);
                assert_non_null(strstr(why.text, "source returned -7 for rows 0.."));
            } else {
                network_check(code, &why);
                network_assert_same(&filled.got, &want[round % 2]);
            }
            network_outputs_free(&filled.got);
        }
        rfx_runner_free(runner);
    }
    rfx_runner_free(NULL);
    for (int i = 0; i < 2; i++) {
        network_outputs_free(&want[i]);
        free(images[i]);
    }
    rfx_network_free(net);
}

/* Failures of the caller's functions at each call, in words. */
static void test_failing_functions(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 40, 30);
    float *values = network_random_image(3, 40, 30);
    struct rfx_run_options options = network_run_options(network_least_bytes(net, NULL, 1), 1);
    struct rfx_why why;
    (void)state;
    for (int at = 1, fine = 0; fine < 2; at += 1 + at / 4 * 2) {
        struct asked asked = {.values = values, .c = 3, .h = 40, .w = 30};
        struct filled filled = filled_for(net);
        struct rfx_source source = {.size = sizeof source, .read = read_area, .user = &asked};
        asked.fail_at = at % 2 != 0 ? at : 0;
        filled.fail_at = at % 2 == 0 ? at : 0;
        options.write = write_area;
        options.user = &filled;
        enum rfx_code code = rfx_network_run_source(net, &source, NULL, 0, &options, &why);
        if (code != RFX_CODE_OK) {
            assert_int_equal(code, RFX_CODE_SYSTEM);
            assert_non_null(strstr(why.text, at % 2 != 0 ? "source returned -7 for rows"
                                                         : "write function returned 5 for rows"));
            fine = 0;
        } else {
            fine++; /* more calls than there are, of both */
            assert_true(at > 2);
        }
        filled_check(&filled, code == RFX_CODE_OK);
        network_outputs_free(&filled.got);
    }
    free(values);
    rfx_network_free(net);
}

static int stop_now(void *user) {
    (void)user;
    return 1;
}

/* Stopped while it is made and while it runs; what stopped one run is not asked in the next. */
static void test_stopped_runner(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 40, 30);
    float *values = network_random_image(3, 40, 30), *out;
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_source source = {.size = sizeof source, .values = values};
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    (void)state;
    out = test_floats(rfx_network_output_elements(net, 0));
    options.stop = stop_now;
    assert_int_equal(rfx_runner_create(net, &options, &runner, &why), RFX_CODE_CANCELLED);
    assert_null(runner);
    network_check(rfx_runner_create(net, NULL, &runner, &why), &why);
    assert_int_equal(rfx_runner_run(runner, &source, &out, 1, &options, &why), RFX_CODE_CANCELLED);
    network_check(rfx_runner_run(runner, &source, &out, 1, NULL, &why), &why);
    rfx_runner_free(runner);
    free(out);
    free(values);
    rfx_network_free(net);
}

static void test_wrong_arguments(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 16, 16);
    float *values = network_random_image(3, 16, 16), *out;
    struct rfx_source source = {.size = sizeof source, .values = values}, bad = source;
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_forecast forecast = {0};
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    (void)state;
    out = test_floats(rfx_network_output_elements(net, 0));
    network_check(rfx_runner_create(net, NULL, &runner, &why), &why);
#define ASSERT_USAGE(call, words)                 \
    do {                                          \
        assert_int_equal(call, RFX_CODE_USAGE);   \
        assert_non_null(strstr(why.text, words)); \
    } while (0)
    ASSERT_USAGE(rfx_network_run_source(net, NULL, &out, 1, NULL, &why), "source");
    ASSERT_USAGE(rfx_runner_run(runner, NULL, &out, 1, NULL, &why), "source");
    ASSERT_USAGE(rfx_runner_run(runner, &source, NULL, 0, NULL, &why), "outputs");
    options.write = write_area;
    ASSERT_USAGE(rfx_runner_run(runner, &source, NULL, 1, &options, &why), "outputs");
    options.threads = -1;
    ASSERT_USAGE(rfx_runner_run(runner, &source, &out, 1, &options, &why), "threads");
    bad.values = NULL;
    ASSERT_USAGE(rfx_runner_run(runner, &bad, &out, 1, NULL, &why), "neither");
    bad.values = values;
    bad.read = read_area;
    ASSERT_USAGE(rfx_runner_run(runner, &bad, &out, 1, NULL, &why), "more than one");
    bad.size = 0;
    ASSERT_USAGE(rfx_network_run_source(net, &bad, &out, 1, NULL, &why), "size");
    ASSERT_USAGE(rfx_runner_forecast(runner, &forecast, &why), "size");
    network_check(rfx_runner_run(runner, &source, &out, 1, NULL, &why), &why);
    rfx_runner_free(runner);
    free(out);
    free(values);
    rfx_network_free(net);
}

/* A runner in an allocator that fails at every allocation in turn. */
static enum rfx_status make_and_run(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_open_options open;
    struct rfx_network *net = NULL;
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    float *values = network_random_image(3, 16, 16), *out = NULL;
    struct asked asked = {.values = values, .c = 3, .h = 16, .w = 16};
    struct rfx_source source = {.size = sizeof source, .read = read_area, .user = &asked};
    (void)context;
    rfx_open_options_init(&open, sizeof open);
    open.rows = open.columns = 16;
    enum rfx_code code = rfx_network_open_in(mem, "fsrcnn:2", &open, &net, &why);
    if (code == RFX_CODE_OK) code = rfx_runner_create(net, NULL, &runner, &why);
    if (code == RFX_CODE_OK) {
        out = test_floats(rfx_network_output_elements(net, 0));
        code = rfx_runner_run(runner, &source, &out, 1, NULL, &why);
    }
    rfx_runner_free(runner);
    rfx_network_free(net);
    free(out);
    free(values);
    (void)snprintf(err->text, sizeof err->text, "%.400s", why.text);
    if (code == RFX_CODE_OK) return RFX_OK;
    return code == RFX_CODE_SYSTEM ? RFX_STATUS_OUT_OF_MEMORY : RFX_STATUS_IO;
}

static void test_out_of_memory(void **state) {
    (void)state;
    assert_true(test_fail_each_allocation(make_and_run, NULL) > 20);
}

/* Networks, their parts and runners are freed in any order; what is left works on. */
static void test_free_order(void **state) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const struct rfx_area area = {.row = 3, .column = 2, .rows = 9, .columns = 8};
    float *values = network_random_image(3, 16, 16);
    const struct rfx_source source = {.size = sizeof source, .values = values};
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct rfx_network *net = network_open_sized("fsrcnn:2", 16, 16), *part = NULL;
        struct rfx_runner *runner = NULL; /* of the part */
        struct rfx_why why;
        network_check(rfx_network_open_part(net, 0, &area, &part, &why), &why);
        network_check(rfx_runner_create(part, NULL, &runner, &why), &why);
        struct network_outputs out = network_outputs_for(part);
        for (int i = 0; i < 3; i++) {
            if (orders[k][i] == 0) rfx_network_free(net);
            if (orders[k][i] == 1) rfx_network_free(part);
            if (orders[k][i] == 2) {
                network_check(rfx_runner_run(runner, &source, out.values, 1, NULL, &why), &why);
                rfx_runner_free(runner);
            }
        }
        network_outputs_free(&out);
    }
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_steps),
        cmocka_unit_test(test_runner),         cmocka_unit_test(test_failing_functions),
        cmocka_unit_test(test_stopped_runner), cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_free_order),
    };
    return cmocka_run_group_tests_name("runner", tests, NULL, NULL);
}
