/* Networks of the public header against a session of the same graph, at every budget and moment.
 * What it refuses: test_network_refusals.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/kernels/kernels.h"
#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

/* Runs on values and on a file of them with the options, and compares both. */
static void run_both(struct rfx_network *net, const float *values, const char *file,
                     const struct rfx_run_options *options, const struct network_outputs *want) {
    struct rfx_why why;
    struct network_outputs got = network_outputs_for(net);
    network_check(rfx_network_run_values(net, values, got.values, got.n, options, &why), &why);
    network_assert_same(&got, want);
    network_outputs_free(&got);
    got = network_outputs_for(net);
    network_check(rfx_network_run_file(net, file, got.values, got.n, options, &why), &why);
    network_assert_same(&got, want);
    network_outputs_free(&got);
}

/* Maps that streams hand out, several outputs, vectors that are stored: all plans, one answer. */
static void test_runs(void **state) {
    static const struct {
        const char *model;
        int64_t h, w;
    } cases[] = {{"fsrcnn:2", 50, 37},
                 {"posenet", 65, 49},
                 {"squeezenet1_1", 64, 71},
                 {"blazeface", 64, 64}};
    static const char file[] = "test_network_input.npy";
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t h = cases[i].h, w = cases[i].w;
        struct rfx_network *net = network_open_sized(cases[i].model, h, w);
        float *values = network_random_image(3, h, w);
        struct network_outputs want = network_session_outputs(cases[i].model, values, 3, h, w);
        network_write_npy(file, values, 3, h, w);
        run_both(net, values, file, NULL, &want);
        for (int threads = 1; threads <= 3; threads += 2) {
            /* The file's reader takes some bytes too: its least is enough for both. */
            size_t least = network_least_bytes(net, NULL, threads);
            struct rfx_run_options options =
                network_run_options(network_least_bytes(net, file, threads), threads);
            assert_true(options.memory_bytes >= least);
            run_both(net, values, file, &options, &want);
            options.memory_bytes = least - 1;
            struct rfx_why why;
            struct network_outputs got = network_outputs_for(net);
            assert_int_equal(rfx_network_run_values(net, values, got.values, got.n, &options, &why),
                             RFX_CODE_BUDGET);
            network_outputs_free(&got);
        }
        network_outputs_free(&want);
        free(values);
        rfx_network_free(net);
    }
    (void)unlink(file);
}

/* The choice of open goes through: each is the session's of the same choice, at any budget, and one
 * is not the other. */
static void test_convolutions(void **state) {
    static const struct {
        enum rfx_convolution convolution;
        enum rfx_conv_choice choice;
    } choices[3] = {{RFX_CONVOLUTION_DIRECT, RFX_CONV_DIRECT},
                    {RFX_CONVOLUTION_OPENBLAS, RFX_CONV_OPENBLAS},
                    {RFX_CONVOLUTION_WINOGRAD, RFX_CONV_WINOGRAD}};
    float *values = network_random_image(3, 64, 71);
    struct network_outputs want[3];
    struct rfx_why why;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rfx_open_options open;
        struct rfx_network *net = NULL;
        rfx_open_options_init(&open, sizeof open);
        open.rows = 64;
        open.columns = 71;
        open.convolution = choices[i].convolution;
        want[i] = network_session_outputs_by("squeezenet1_1", choices[i].choice, values, 3, 64, 71);
        network_check(rfx_network_open("squeezenet1_1", &open, &net, &why), &why);
        for (int small = 0; small < 2; small++) {
            size_t bytes = small ? network_least_bytes(net, NULL, 2) : 0;
            struct rfx_run_options options = network_run_options(bytes, 2);
            struct network_outputs got = network_outputs_for(net);
            network_check(rfx_network_run_values(net, values, got.values, got.n, &options, &why),
                          &why);
            network_assert_same(&got, &want[i]);
            network_outputs_free(&got);
        }
        rfx_network_free(net);
    }
    bool same =
        memcmp(want[0].values[0], want[1].values[0], (size_t)want[0].elems[0] * sizeof(float)) == 0;
    assert_int_equal(same, rfx_kernels()->conv == NULL);
    for (int i = 0; i < 3; i++) network_outputs_free(&want[i]);
    free(values);
}

static void test_shapes(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 48, 40);
    int64_t dims[RFX_MAX_DIMS];
    (void)state;
    rfx_network_input_shape(net, dims);
    assert_true(dims[0] == 1 && dims[1] == 3 && dims[2] == 48 && dims[3] == 40);
    assert_non_null(rfx_network_input_name(net));
    assert_int_equal(rfx_network_output_count(net), 1);
    assert_int_equal(rfx_network_output_shape(net, 0, dims), 4);
    assert_true(dims[0] == 1 && dims[1] == 3 && dims[2] == 96 && dims[3] == 80);
    assert_int_equal(rfx_network_output_elements(net, 0), 3 * 96 * 80);
    assert_non_null(rfx_network_output_name(net, 0));
    static const int none[] = {-1, 1, 1000};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(rfx_network_output_shape(net, none[i], dims), -1);
        assert_int_equal(rfx_network_output_elements(net, none[i]), -1);
        assert_null(rfx_network_output_name(net, none[i]));
    }
    rfx_network_free(net);
    net = network_open_sized("squeezenet1_1", 0, 0);
    rfx_network_input_shape(net, dims);
    assert_true(dims[2] == 224 && dims[3] == 224);
    assert_int_equal(rfx_network_output_shape(net, 0, dims), 2);
    assert_true(dims[0] == 1 && dims[1] == 1000);
    rfx_network_free(net);
    rfx_network_free(NULL);
}

/* Outputs that are not wanted are left out, the others do not change. */
static void test_some_outputs(void **state) {
    struct rfx_network *net = network_open_sized("posenet", 65, 49);
    float *values = network_random_image(3, 65, 49);
    struct network_outputs want = network_session_outputs("posenet", values, 3, 65, 49);
    struct rfx_run_options options[2] = {network_run_options(0, 1),
                                         network_run_options(network_least_bytes(net, NULL, 1), 1)};
    struct rfx_why why;
    (void)state;
    assert_int_equal(want.n, 4);
    for (int i = 0; i < 2; i++) {
        struct network_outputs got = network_outputs_for(net);
        float *some[4] = {got.values[0], NULL, got.values[2], NULL};
        network_check(rfx_network_run_values(net, values, some, 4, &options[i], &why), &why);
        for (int k = 0; k < 4; k += 2)
            assert_memory_equal(some[k], want.values[k], (size_t)want.elems[k] * sizeof(float));
        network_outputs_free(&got);
    }
    network_outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

struct watcher {
    int64_t calls, stop_at; /* stop_at 0: never */
    int64_t done, total;
};

static int watch(void *user, int64_t done, int64_t total) {
    struct watcher *w = user;
    assert_true(total >= 1 && done >= 0 && done <= total);
    if (w->calls > 0) assert_true(total == w->total && done >= w->done);
    w->done = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

/* Stopped at every step it could be; the network is as good as before. */
static void test_cancel(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 24, 16);
    float *values = network_random_image(3, 24, 16);
    struct network_outputs want = network_session_outputs("fsrcnn:2", values, 3, 24, 16),
                           got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(network_least_bytes(net, NULL, 1), 1);
    struct watcher whole = {0};
    struct rfx_why why;
    (void)state;
    options.progress = watch;
    options.user = &whole;
    network_check(rfx_network_run_values(net, values, got.values, 1, &options, &why), &why);
    assert_true(whole.calls > 10 && whole.done == whole.total);
    for (int64_t at = 1; at < whole.calls; at += 1 + at / 2) {
        struct watcher w = {.stop_at = at};
        options.user = &w;
        assert_int_equal(rfx_network_run_values(net, values, got.values, 1, &options, &why),
                         RFX_CODE_CANCELLED);
        assert_int_equal(w.calls, at);
        assert_non_null(strstr(why.text, "stopped"));
    }
    network_outputs_free(&got);
    got = network_outputs_for(net);
    network_check(rfx_network_run_values(net, values, got.values, 1, NULL, &why), &why);
    network_assert_same(&got, &want);
    network_outputs_free(&got);
    network_outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

/* Opens, predicts and runs with an allocator that fails: SYSTEM each time, with a text. */
static enum rfx_status open_and_run(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const size_t *memory_bytes = context;
    struct rfx_open_options open;
    struct rfx_run_options options = network_run_options(*memory_bytes, 1);
    struct rfx_network *net = NULL;
    struct rfx_why why;
    float *values = network_random_image(3, 16, 16), *out = NULL;
    rfx_open_options_init(&open, sizeof open);
    open.rows = open.columns = 16;
    enum rfx_code code = rfx_network_open_in(mem, "fsrcnn:2", &open, &net, &why);
    if (code == RFX_CODE_OK) {
        out = test_floats(rfx_network_output_elements(net, 0));
        code = rfx_network_run_values(net, values, &out, 1, &options, &why);
    }
    rfx_network_free(net);
    free(out);
    free(values);
    (void)snprintf(err->text, sizeof err->text, "%.400s", why.text);
    if (code == RFX_CODE_OK) return RFX_OK;
    return code == RFX_CODE_SYSTEM ? RFX_STATUS_OUT_OF_MEMORY : RFX_STATUS_IO;
}

/* Maps in files: the same values in less memory than there can be without. */
static void test_spilled(void **state) {
    enum { ROWS = 160, COLUMNS = 128 };
    struct rfx_network *net = network_open_sized("unet_instance", ROWS, COLUMNS);
    float *values = network_random_image(3, ROWS, COLUMNS);
    struct network_outputs want =
        network_session_outputs("unet_instance", values, 3, ROWS, COLUMNS);
    struct network_outputs got = network_outputs_for(net);
    struct rfx_forecast without = {.size = sizeof without}, with = without;
    struct rfx_run_options options = network_run_options(1, 2);
    struct rfx_why why;
    (void)state;
    assert_int_equal(rfx_network_predict(net, NULL, &options, &without, &why), RFX_CODE_BUDGET);
    assert_int_equal(without.spilled_bytes, 0);
    options.spill_folder = ".";
    assert_int_equal(rfx_network_predict(net, NULL, &options, &with, &why), RFX_CODE_BUDGET);
    assert_true(with.peak_bytes < without.peak_bytes && with.spilled_bytes > 1 << 20);
    options.memory_bytes = with.peak_bytes;
    network_check(rfx_network_run_values(net, values, got.values, got.n, &options, &why), &why);
    network_assert_same(&got, &want);
    options.spill_folder = "no/such/folder";
    assert_int_equal(rfx_network_run_values(net, values, got.values, got.n, &options, &why),
                     RFX_CODE_SYSTEM);
    assert_non_null(strstr(why.text, "folder 'no/such/folder'"));
    network_outputs_free(&want);
    network_outputs_free(&got);
    free(values);
    rfx_network_free(net);
}

static void test_out_of_memory(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 16, 16);
    size_t budgets[2] = {0, network_least_bytes(net, NULL, 1)};
    (void)state;
    rfx_network_free(net);
    for (int i = 0; i < 2; i++)
        assert_true(test_fail_each_allocation(open_and_run, &budgets[i]) > 20);
}

/* Networks of their own in threads of their own, which cmocka's assertions may not leave. */
struct worker {
    const char *model;
    int64_t h, w;
    const float *values;
    const struct network_outputs *want;
    int wrong;
};

static void *work(void *argument) {
    struct worker *w = argument;
    struct rfx_open_options open;
    struct rfx_network *net = NULL;
    rfx_open_options_init(&open, sizeof open);
    open.rows = w->h;
    open.columns = w->w;
    for (int round = 0; round < 3; round++) {
        struct rfx_run_options options =
            network_run_options(round == 0 ? 0 : 64 << 20, 1 + round % 2);
        float *out = test_floats(w->want->elems[0]);
        w->wrong += rfx_network_open(w->model, &open, &net, NULL) != RFX_CODE_OK;
        if (w->wrong == 0)
            w->wrong +=
                rfx_network_run_values(net, w->values, &out, 1, &options, NULL) != 0 ||
                memcmp(out, w->want->values[0], (size_t)w->want->elems[0] * sizeof *out) != 0;
        rfx_network_free(net);
        net = NULL;
        free(out);
    }
    return NULL;
}

static void test_threads(void **state) {
    static const char *const models[2] = {"squeezenet1_1", "fsrcnn:2"};
    enum { THREADS = 4 };
    float *values = network_random_image(3, 96, 80);
    struct network_outputs want[2];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    for (int m = 0; m < 2; m++) want[m] = network_session_outputs(models[m], values, 3, 96, 80);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){models[i % 2], 96, 80, values, &want[i % 2], 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].wrong, 0);
    for (int m = 0; m < 2; m++) network_outputs_free(&want[m]);
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_some_outputs),  cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_spilled),       cmocka_unit_test(test_convolutions),
    };
    return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
