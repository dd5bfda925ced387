/* Networks of the public header against a session of the same graph, with every way of failing. */
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

#include "rfexec/api/network.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/session/model.h"
#include "rfexec/session/session.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"

enum { MOST_OUTPUTS = 8 };

struct outputs {
    int n;
    int64_t elems[MOST_OUTPUTS];
    float *values[MOST_OUTPUTS];
};

static void outputs_free(struct outputs *o) {
    for (int k = 0; k < o->n; k++) free(o->values[k]);
    *o = (struct outputs){0};
}

static void check(enum rfx_code code, const struct rfx_why *why) {
    if (code != RFX_CODE_OK) fail_msg("code %d: %s", (int)code, why->text);
    assert_string_equal(why->text, "");
}

static struct rfx_run_options run_options(size_t memory_bytes, int threads) {
    struct rfx_run_options options;
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = memory_bytes;
    options.threads = threads;
    return options;
}

static struct rfx_network *open_network(const char *model, int64_t rows, int64_t columns) {
    struct rfx_open_options options;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    rfx_open_options_init(&options, sizeof options);
    options.rows = rows;
    options.columns = columns;
    check(rfx_network_open(model, &options, &net, &why), &why);
    return net;
}

/* Arrays that nothing was written to yet. */
static struct outputs outputs_for(const struct rfx_network *net) {
    struct outputs o = {.n = rfx_network_output_count(net)};
    assert_in_range(o.n, 1, MOST_OUTPUTS);
    for (int k = 0; k < o.n; k++) {
        o.elems[k] = rfx_network_output_elements(net, k);
        o.values[k] = test_floats(o.elems[k]);
    }
    return o;
}

static void assert_same(const struct outputs *got, const struct outputs *want) {
    assert_int_equal(got->n, want->n);
    for (int k = 0; k < want->n; k++) {
        struct test_diff diff;
        assert_int_equal(got->elems[k], want->elems[k]);
        if (test_same_bits(got->values[k], want->values[k], want->elems[k], &diff)) continue;
        test_print_diff("output", got->values[k], want->values[k], want->elems[k], &diff);
        fail();
    }
}

/* An untiled session on c x h x w values: what every run must give. */
static struct outputs session_outputs(const char *model, const float *values, int64_t c, int64_t h,
                                      int64_t w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = h, .w = w};
    struct rfx_graph *graph = NULL;
    struct rfx_image *image = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_model_load(mem, model, &load, &graph, &err), RFX_OK);
    assert_int_equal(rfx_image_from_array(mem, values, c, h, w, &image, &err), RFX_OK);
    struct rfx_plan_request request = {
        .source = rfx_image_traits(image), .threads = 1, .asked = rfx_ask_whole()};
    assert_int_equal(rfx_plan_create(graph, &request, &plan, &err), RFX_OK);
    assert_int_equal(rfx_session_create(graph, plan, &session, &err), RFX_OK);
    assert_int_equal(rfx_session_run(session, image, NULL, NULL, NULL, &err), RFX_OK);
    struct outputs o = {.n = rfx_session_output_count(session)};
    for (int k = 0; k < o.n; k++) {
        o.elems[k] = rfx_session_output_tensor(session, k)->elems;
        o.values[k] = test_floats(o.elems[k]);
        rfx_session_output_read(session, k, 0, o.elems[k], o.values[k]);
    }
    rfx_session_free(session);
    rfx_plan_free(plan);
    rfx_image_free(image);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return o;
}

static float *random_image(int64_t c, int64_t h, int64_t w) {
    struct test_rng rng = test_rng_make(7);
    float *values = test_floats(c * h * w);
    test_rng_fill(&rng, values, c * h * w, -1.0f, 1.0f);
    return values;
}

static void write_npy(const char *path, const float *values, int64_t c, int64_t h, int64_t w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_format format = {.kind = RFX_OUTPUT_NPY};
    struct rfx_tensor tensor = rfx_tensor_nhwc(c, h, w);
    struct rfx_output_stream *stream = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_output_stream_open(mem, path, &format, &tensor, &stream, &err), RFX_OK);
    assert_int_equal(rfx_output_stream_append(stream, values, (size_t)tensor.elems, &err), RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, &err), RFX_OK);
    rfx_output_stream_free(stream);
    rfx_memory_free(mem);
}

/* The smallest budget that the network can be run in. */
static size_t least_bytes(struct rfx_network *net, const char *picture, int threads) {
    struct rfx_run_options options = run_options(1, threads);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    assert_int_equal(rfx_network_predict(net, picture, &options, &forecast, &why), RFX_CODE_BUDGET);
    assert_non_null(strstr(why.text, "at least"));
    assert_int_equal(forecast.peak_bytes, forecast.activation_bytes + forecast.weight_bytes +
                                              forecast.scratch_bytes + forecast.picture_bytes +
                                              forecast.reserve_bytes);
    return forecast.peak_bytes;
}

/* Runs on values and on a file of them with the options, and compares both. */
static void run_both(struct rfx_network *net, const float *values, const char *file,
                     const struct rfx_run_options *options, const struct outputs *want) {
    struct rfx_why why;
    struct outputs got = outputs_for(net);
    check(rfx_network_run_values(net, values, got.values, got.n, options, &why), &why);
    assert_same(&got, want);
    outputs_free(&got);
    got = outputs_for(net);
    check(rfx_network_run_file(net, file, got.values, got.n, options, &why), &why);
    assert_same(&got, want);
    outputs_free(&got);
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
        struct rfx_network *net = open_network(cases[i].model, h, w);
        float *values = random_image(3, h, w);
        struct outputs want = session_outputs(cases[i].model, values, 3, h, w);
        write_npy(file, values, 3, h, w);
        run_both(net, values, file, NULL, &want);
        for (int threads = 1; threads <= 3; threads += 2) {
            /* The file's reader takes some bytes too: its least is enough for both. */
            size_t least = least_bytes(net, NULL, threads);
            struct rfx_run_options options = run_options(least_bytes(net, file, threads), threads);
            assert_true(options.memory_bytes >= least);
            run_both(net, values, file, &options, &want);
            options.memory_bytes = least - 1;
            struct rfx_why why;
            struct outputs got = outputs_for(net);
            assert_int_equal(rfx_network_run_values(net, values, got.values, got.n, &options, &why),
                             RFX_CODE_BUDGET);
            outputs_free(&got);
        }
        outputs_free(&want);
        free(values);
        rfx_network_free(net);
    }
    (void)unlink(file);
}

static void test_shapes(void **state) {
    struct rfx_network *net = open_network("fsrcnn:2", 48, 40);
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
    net = open_network("squeezenet1_1", 0, 0);
    rfx_network_input_shape(net, dims);
    assert_true(dims[2] == 224 && dims[3] == 224);
    assert_int_equal(rfx_network_output_shape(net, 0, dims), 2);
    assert_true(dims[0] == 1 && dims[1] == 1000);
    rfx_network_free(net);
    rfx_network_free(NULL);
}

/* Outputs that are not wanted are left out, the others do not change. */
static void test_some_outputs(void **state) {
    struct rfx_network *net = open_network("posenet", 65, 49);
    float *values = random_image(3, 65, 49);
    struct outputs want = session_outputs("posenet", values, 3, 65, 49);
    struct rfx_run_options options[2] = {run_options(0, 1),
                                         run_options(least_bytes(net, NULL, 1), 1)};
    struct rfx_why why;
    (void)state;
    assert_int_equal(want.n, 4);
    for (int i = 0; i < 2; i++) {
        struct outputs got = outputs_for(net);
        float *some[4] = {got.values[0], NULL, got.values[2], NULL};
        check(rfx_network_run_values(net, values, some, 4, &options[i], &why), &why);
        for (int k = 0; k < 4; k += 2)
            assert_memory_equal(some[k], want.values[k], (size_t)want.elems[k] * sizeof(float));
        outputs_free(&got);
    }
    outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

static void test_wrong_arguments(void **state) {
    struct rfx_network *net = open_network("fsrcnn:2", 16, 16), *other = NULL;
    struct rfx_run_options options = run_options(0, 1), bad = options;
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    float *values = random_image(3, 16, 16);
    struct outputs out = outputs_for(net);
    (void)state;
#define ASSERT_USAGE(call, words)                 \
    do {                                          \
        assert_int_equal(call, RFX_CODE_USAGE);   \
        assert_non_null(strstr(why.text, words)); \
    } while (0)
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 2, &options, &why), "outputs");
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 0, &options, &why), "outputs");
    ASSERT_USAGE(rfx_network_run_values(net, values, NULL, 1, &options, &why), "outputs");
    ASSERT_USAGE(rfx_network_run_values(net, NULL, out.values, 1, &options, &why), "values");
    ASSERT_USAGE(rfx_network_run_file(net, NULL, out.values, 1, &options, &why), "picture");
    bad.threads = -1;
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 1, &bad, &why), "threads");
    ASSERT_USAGE(rfx_network_predict(net, NULL, &bad, &forecast, &why), "threads");
    bad = options;
    bad.std[1] = 0.0f;
    ASSERT_USAGE(rfx_network_run_file(net, "synthetic:16x16", out.values, 1, &bad, &why), "std");
    bad = (struct rfx_run_options){0};
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 1, &bad, &why), "size");
    forecast.size = 0;
    ASSERT_USAGE(rfx_network_predict(net, NULL, &options, &forecast, &why), "size");
    ASSERT_USAGE(rfx_network_open(NULL, NULL, &other, &why), "model");
    ASSERT_USAGE(rfx_network_open("fsrcnn", &(struct rfx_open_options){.rows = 4}, &other, &why),
                 "size");
    int64_t rows = -7, columns = -7;
    ASSERT_USAGE(rfx_picture_size(NULL, &rows, &columns, NULL, &why), "picture");
    assert_true(rows == -7 && columns == -7);
    assert_null(other);
    outputs_free(&out);
    free(values);
    rfx_network_free(net);
}

static void test_refused_models(void **state) {
    static const struct {
        const char *model, *words;
    } cases[] = {
        {"no_such_network", "no_such_network"},
        {"squeezenet1_2", "squeezenet1_1"}, /* the nearest name */
        {"/no/such/folder/net.onnx", "No such file"},
        {RFX_SOURCE_DIR "/README.md", "README.md"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_network *net = NULL;
        struct rfx_why why;
        enum rfx_code code = rfx_network_open(cases[i].model, NULL, &net, &why);
        if (code != RFX_CODE_REFUSED || strstr(why.text, cases[i].words) == NULL)
            fail_msg("%s: code %d: %s", cases[i].model, (int)code, why.text);
        assert_null(net);
        assert_int_equal(rfx_network_open(cases[i].model, NULL, &net, NULL), RFX_CODE_REFUSED);
    }
}

static void test_refused_pictures(void **state) {
    static const struct {
        const char *picture, *words;
    } cases[] = {
        {"/no/such/picture.png", "/no/such/picture.png"},
        {RFX_SOURCE_DIR "/README.md", "README.md"},
        {"synthetic:17x16", "17"}, /* another size than the network's */
    };
    struct rfx_network *net = open_network("fsrcnn:2", 16, 16);
    struct outputs out = outputs_for(net);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_forecast forecast = {.size = sizeof forecast};
        struct rfx_why why;
        assert_int_equal(rfx_network_run_file(net, cases[i].picture, out.values, 1, NULL, &why),
                         RFX_CODE_REFUSED);
        assert_non_null(strstr(why.text, cases[i].words));
        assert_int_equal(rfx_network_predict(net, cases[i].picture, NULL, &forecast, &why),
                         RFX_CODE_REFUSED);
        assert_int_equal(forecast.peak_bytes, 0);
    }
    outputs_free(&out);
    rfx_network_free(net);
}

static void test_picture_size(void **state) {
    static const char file[] = "test_network_size.npy";
    int64_t rows = 0, columns = 0, channels = 0;
    struct rfx_why why;
    float *values = random_image(5, 7, 11);
    (void)state;
    write_npy(file, values, 5, 7, 11);
    check(rfx_picture_size(file, &rows, &columns, &channels, &why), &why);
    assert_true(rows == 7 && columns == 11 && channels == 5);
    check(rfx_picture_size("synthetic:33x21", &rows, &columns, NULL, &why), &why);
    assert_true(rows == 33 && columns == 21);
    assert_int_equal(rfx_picture_size("/no/such.png", &rows, &columns, NULL, &why),
                     RFX_CODE_REFUSED);
    assert_true(rows == 33 && columns == 21);
    (void)unlink(file);
    free(values);
}

struct watcher {
    int64_t calls, stop_at; /* stop_at 0: never */
    int64_t done, total;
};

static int watch(void *user, int64_t done, int64_t total) {
    struct watcher *w = user;
    assert_true(total >= 1 && done >= 0 && done <= total);
    if (total == w->total) assert_true(done >= w->done);
    w->done = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

/* Stopped at every step it could be; the network is as good as before. */
static void test_cancel(void **state) {
    struct rfx_network *net = open_network("fsrcnn:2", 24, 16);
    float *values = random_image(3, 24, 16);
    struct outputs want = session_outputs("fsrcnn:2", values, 3, 24, 16), got = outputs_for(net);
    struct rfx_run_options options = run_options(least_bytes(net, NULL, 1), 1);
    struct watcher whole = {0};
    struct rfx_why why;
    (void)state;
    options.progress = watch;
    options.user = &whole;
    check(rfx_network_run_values(net, values, got.values, 1, &options, &why), &why);
    assert_true(whole.calls > 10 && whole.done == whole.total);
    for (int64_t at = 1; at < whole.calls; at += 1 + at / 2) {
        struct watcher w = {.stop_at = at};
        options.user = &w;
        assert_int_equal(rfx_network_run_values(net, values, got.values, 1, &options, &why),
                         RFX_CODE_CANCELLED);
        assert_int_equal(w.calls, at);
        assert_non_null(strstr(why.text, "stopped"));
    }
    outputs_free(&got);
    got = outputs_for(net);
    check(rfx_network_run_values(net, values, got.values, 1, NULL, &why), &why);
    assert_same(&got, &want);
    outputs_free(&got);
    outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

/* Opens, predicts and runs with an allocator that fails: SYSTEM each time, with a text. */
static enum rfx_status open_and_run(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const size_t *memory_bytes = context;
    struct rfx_open_options open;
    struct rfx_run_options options = run_options(*memory_bytes, 1);
    struct rfx_network *net = NULL;
    struct rfx_why why;
    float *values = random_image(3, 16, 16), *out = NULL;
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

static void test_out_of_memory(void **state) {
    struct rfx_network *net = open_network("fsrcnn:2", 16, 16);
    size_t budgets[2] = {0, least_bytes(net, NULL, 1)};
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
    const struct outputs *want;
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
        struct rfx_run_options options = run_options(round == 0 ? 0 : 64 << 20, 1 + round % 2);
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
    float *values = random_image(3, 96, 80);
    struct outputs want[2];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    for (int m = 0; m < 2; m++) want[m] = session_outputs(models[m], values, 3, 96, 80);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){models[i % 2], 96, 80, values, &want[i % 2], 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].wrong, 0);
    for (int m = 0; m < 2; m++) outputs_free(&want[m]);
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_runs),
        cmocka_unit_test(test_some_outputs),   cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_refused_models), cmocka_unit_test(test_refused_pictures),
        cmocka_unit_test(test_picture_size),   cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
