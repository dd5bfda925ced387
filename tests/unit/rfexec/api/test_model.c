/* Models, plans and their runners, of the public header, against networks of one size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/onnx/export/onnx_export.h"
#include "rfexec/run/model.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

enum { H = 45, W = 61 };
#define MODEL "test_model.onnx"

static void export_model(const char *path) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "squeezenet1_1", H, W, 5, NULL);
    struct rfx_error err = {{0}};
    if (rfx_onnx_export(graph, path, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static struct rfx_model *open_model(const char *name, const struct rfx_open_options *options) {
    struct rfx_model *model = NULL;
    struct rfx_why why;
    network_check(rfx_model_open(name, options, &model, &why), &why);
    return model;
}

static struct rfx_model_plan *make_plan(struct rfx_model *model, int64_t h, int64_t w,
                                        const struct rfx_run_options *options) {
    struct rfx_model_plan *plan = NULL;
    struct rfx_why why;
    network_check(rfx_model_plan_create(model, h, w, NULL, options, &plan, &why), &why);
    return plan;
}

static struct rfx_runner *make_runner(struct rfx_model_plan *plan) {
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    network_check(rfx_model_plan_runner(plan, &runner, &why), &why);
    return runner;
}

/* Runs on values, whose outputs must be those of a session alone. */
static void check_run(struct rfx_runner *runner, const struct rfx_network *net, const char *model,
                      int64_t h, int64_t w) {
    float *values = network_random_image(3, h, w);
    struct network_outputs got = network_outputs_for(net);
    struct network_outputs want = network_session_outputs(model, values, 3, h, w);
    const struct rfx_source source = {.size = sizeof source, .values = values};
    struct rfx_why why;
    network_check(rfx_runner_run(runner, &source, got.values, got.n, NULL, &why), &why);
    network_assert_same(&got, &want);
    network_outputs_free(&got);
    network_outputs_free(&want);
    free(values);
}

/* Two sizes of one model; objects are freed before those that need them. */
static void sizes_and_lifetimes(void **state) {
    (void)state;
    export_model(MODEL);
    for (int kind = 0; kind < 2; kind++) {
        const char *name = kind == 0 ? MODEL : "squeezenet1_1";
        struct rfx_model *model = open_model(name, NULL);
        struct rfx_model_plan *small = make_plan(model, H, W, NULL);
        struct rfx_model_plan *large = make_plan(model, H + 32, W + 7, NULL);
        rfx_model_free(model);
        int64_t dims[4];
        rfx_network_input_shape(rfx_model_plan_network(large), dims);
        assert_int_equal(dims[2], H + 32);
        assert_int_equal(dims[3], W + 7);
        struct rfx_runner *first = make_runner(large), *second = make_runner(large);
        check_run(first, rfx_model_plan_network(large), name, H + 32, W + 7);
        rfx_runner_free(first);
        struct rfx_runner *third = make_runner(small);
        check_run(third, rfx_model_plan_network(small), name, H, W);
        check_run(second, rfx_model_plan_network(large), name, H + 32, W + 7);
        rfx_model_plan_free(small);
        rfx_model_plan_free(large);
        rfx_runner_free(third);
        rfx_runner_free(second);
    }
    assert_int_equal(unlink(MODEL), 0);
}

static void built_in_and_own_size(void **state) {
    (void)state;
    struct rfx_open_options open;
    rfx_open_options_init(&open, sizeof open);
    open.rows = 40;
    open.columns = 56;
    struct rfx_model *model = open_model("fsrcnn", &open);
    struct rfx_model_plan *plan = make_plan(model, 0, 0, NULL);
    int64_t dims[4];
    rfx_network_input_shape(rfx_model_plan_network(plan), dims);
    assert_int_equal(dims[2], 40);
    assert_int_equal(dims[3], 56);
    rfx_model_plan_free(plan);
    rfx_model_free(model);
}

/* Memory of the caller that counts what it gives. */
struct counted {
    size_t now, most;
    int64_t fail_at; /* which allocation fails, from 1; 0: none */
    int64_t calls;
};

static void *allocate(void *user, size_t bytes) {
    struct counted *c = user;
    if (++c->calls == c->fail_at) return NULL;
    c->now += bytes;
    if (c->now > c->most) c->most = c->now;
    return malloc(bytes);
}

static void release(void *user, void *block, size_t bytes) {
    ((struct counted *)user)->now -= bytes;
    free(block);
}

static struct rfx_open_options counting(struct counted *counted) {
    struct rfx_open_options open;
    rfx_open_options_init(&open, sizeof open);
    open.allocate = allocate;
    open.release = release;
    open.memory_user = counted;
    return open;
}

/* A runner takes what the forecast says of a run, and no weights: they are packed once. */
static void weights_are_packed_once(void **state) {
    (void)state;
    struct counted counted = {0};
    const struct rfx_open_options open = counting(&counted);
    struct rfx_model *model = open_model("squeezenet1_1", &open);
    struct rfx_model_plan *plan = make_plan(model, H, W, NULL);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    network_check(rfx_model_plan_forecast(plan, &forecast, &why), &why);
    assert_true(forecast.weight_bytes > 4 << 20);
    for (int k = 0; k < 2; k++) {
        size_t before = counted.now;
        struct rfx_runner *runner = make_runner(plan);
        size_t taken = counted.now - before;
        assert_true(taken >= forecast.activation_bytes + forecast.scratch_bytes);
        assert_true(taken < forecast.activation_bytes + forecast.scratch_bytes + (1 << 20));
        rfx_runner_free(runner);
        assert_int_equal(counted.now, before);
    }
    rfx_model_plan_free(plan);
    rfx_model_free(model);
    assert_int_equal(counted.now, 0);
}

/* Every allocation fails once: nothing is lost, and the code says memory. */
static void allocations_fail(void **state) {
    (void)state;
    export_model(MODEL);
    int64_t fail_at = 0;
    enum rfx_code code = RFX_CODE_SYSTEM;
    while (code != RFX_CODE_OK) {
        struct counted counted = {.fail_at = ++fail_at};
        const struct rfx_open_options open = counting(&counted);
        struct rfx_model *model = NULL;
        struct rfx_model_plan *plan = NULL;
        struct rfx_runner *runner = NULL;
        struct rfx_why why;
        code = rfx_model_open(MODEL, &open, &model, &why);
        if (code == RFX_CODE_OK)
            code = rfx_model_plan_create(model, 33, 35, NULL, NULL, &plan, &why);
        rfx_model_free(model);
        if (code == RFX_CODE_OK) code = rfx_model_plan_runner(plan, &runner, &why);
        rfx_model_plan_free(plan);
        rfx_runner_free(runner);
        assert_int_equal(counted.now, 0);
        if (code == RFX_CODE_OK) break;
        if (code != RFX_CODE_SYSTEM)
            fail_msg("allocation %lld: %d, %s", (long long)fail_at, (int)code, why.text);
        assert_true(why.text[0] != '\0');
        fail_at += fail_at / 16; /* many are alike */
    }
    assert_true(fail_at > 40);
    assert_int_equal(unlink(MODEL), 0);
}

/* A plan that was saved is followed by networks, by plans and by the program's reader of plans. */
static void plans_are_saved_and_followed(void **state) {
    (void)state;
    static const char path[] = "test_model.plan.json";
    struct rfx_model *model = open_model("squeezenet1_1", NULL);
    struct rfx_network *net = network_open_sized("squeezenet1_1", 256, 256);
    struct rfx_run_options options = network_run_options(network_least_bytes(net, NULL, 1), 1);
    struct rfx_model_plan *plan = make_plan(model, 256, 256, &options);
    struct rfx_forecast wanted = {.size = sizeof wanted}, got = {.size = sizeof got};
    struct rfx_why why;
    network_check(rfx_model_plan_forecast(plan, &wanted, &why), &why);
    network_check(rfx_model_plan_save(plan, path, &why), &why);
    struct rfx_run_options by_file = network_run_options(0, 0);
    by_file.plan_file = path;
    network_check(rfx_network_predict(net, NULL, &by_file, &got, &why), &why);
    assert_string_equal(got.plan, wanted.plan);
    assert_int_equal(got.peak_bytes, wanted.peak_bytes);
    struct rfx_model_plan *again = make_plan(model, 256, 256, &by_file);
    network_check(rfx_model_plan_forecast(again, &got, &why), &why);
    assert_int_equal(got.activation_bytes, wanted.activation_bytes);
    int stages = 0;
    network_check(rfx_model_plan_stages(again, NULL, 0, 0, &stages, &why), &why);
    assert_true(stages >= 1);
    rfx_model_plan_free(again);
    by_file.plan_file = "not there.json";
    assert_int_equal(rfx_model_plan_create(model, 256, 256, NULL, &by_file, &again, &why),
                     RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "not there.json"));
    assert_int_equal(rfx_model_plan_save(plan, "no folder/plan.json", &why), RFX_CODE_SYSTEM);
    rfx_model_plan_free(plan);
    rfx_network_free(net);
    rfx_model_free(model);
    assert_int_equal(unlink(path), 0);
}

/* A plan made with a picture takes its size and has room for its decoder, under the least budget.
 */
static void pictures(void **state) {
    (void)state;
    static const char path[] = "test_model.png";
    const struct png_maker png = {.h = H, .w = W, .bit_depth = 8, .color_type = 2};
    assert_true(png_maker_write(&png, path));
    struct rfx_model *model = open_model("squeezenet1_1", NULL);
    struct rfx_network *net = network_open_sized("squeezenet1_1", H, W);
    struct rfx_run_options options = network_run_options(network_least_bytes(net, path, 1), 1);
    struct network_outputs want = network_outputs_for(net), got = network_outputs_for(net);
    struct rfx_model_plan *plan = NULL;
    struct rfx_why why;
    network_check(rfx_network_run_file(net, path, want.values, want.n, &options, &why), &why);
    network_check(rfx_model_plan_create(model, 0, 0, path, &options, &plan, &why), &why);
    struct rfx_runner *runner = make_runner(plan);
    for (int run = 0; run < 2; run++) {
        memset(got.values[0], 0xff, (size_t)got.elems[0] * sizeof(float));
        network_check(rfx_runner_run_file(runner, path, got.values, got.n, NULL, &why), &why);
        network_assert_same(&got, &want);
    }
    rfx_runner_free(runner);
    rfx_model_plan_free(plan);
    /* One that was made for sources has no room for the decoder. */
    options.memory_bytes = network_least_bytes(net, NULL, 1);
    plan = make_plan(model, H, W, &options);
    runner = make_runner(plan);
    assert_int_equal(rfx_runner_run_file(runner, path, got.values, got.n, NULL, &why),
                     RFX_CODE_BUDGET);
    assert_non_null(strstr(why.text, "plan with the picture"));
    rfx_runner_free(runner);
    rfx_model_plan_free(plan);
    network_outputs_free(&want);
    network_outputs_free(&got);
    rfx_network_free(net);
    rfx_model_free(model);
    assert_int_equal(unlink(path), 0);
}

static void refusals(void **state) {
    (void)state;
    struct rfx_model *model = NULL;
    struct rfx_model_plan *plan = NULL;
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    static const unsigned char broken[] = {0x08, 0x07, 0x3a, 0xff, 0xff};
    assert_int_equal(rfx_model_open(NULL, NULL, &model, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_model_open("squeezenet1_1", NULL, NULL, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_model_open("not there.onnx", NULL, &model, &why), RFX_CODE_REFUSED);
    assert_int_equal(rfx_model_open("squeezenet1_7", NULL, &model, &why), RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "squeezenet1_1"));
    assert_int_equal(rfx_model_open_memory(broken, sizeof broken, NULL, &model, &why),
                     RFX_CODE_REFUSED);
    assert_int_equal(rfx_model_plan_create(NULL, 1, 1, NULL, NULL, &plan, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_model_plan_runner(NULL, &runner, &why), RFX_CODE_USAGE);
    model = open_model("squeezenet1_1", NULL);
    assert_int_equal(rfx_model_plan_create(model, 0, 5, NULL, NULL, &plan, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_model_plan_create(model, -5, 5, NULL, NULL, &plan, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_model_plan_create(model, 0, 0, "not there.png", NULL, &plan, &why),
                     RFX_CODE_REFUSED);
    const struct rfx_run_options little = network_run_options(1, 1);
    assert_int_equal(rfx_model_plan_create(model, 64, 64, NULL, &little, &plan, &why),
                     RFX_CODE_BUDGET);
    assert_null(plan);
    plan = make_plan(model, 64, 64, NULL);
    assert_int_equal(rfx_model_plan_save(plan, NULL, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_runner_run_file(NULL, "a.png", NULL, 0, NULL, &why), RFX_CODE_USAGE);
    rfx_model_plan_free(plan);
    rfx_model_free(model);
    rfx_model_free(NULL);
    rfx_model_plan_free(NULL);
    assert_null(rfx_model_plan_network(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_lifetimes),
        cmocka_unit_test(built_in_and_own_size),
        cmocka_unit_test(weights_are_packed_once),
        cmocka_unit_test(allocations_fail),
        cmocka_unit_test(plans_are_saved_and_followed),
        cmocka_unit_test(pictures),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
