/* What an observer is told, against what must hold of any plan: final rectangles make up every
 * output once, numbers rise, bytes are those of the forecast, and bits do not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"

enum { WORKS = RFX_STEP_WORK_PACK + 1 };

/* What was told; the last step is kept, without its name. */
struct told {
    const struct rfx_network *net;
    int64_t calls, cancel_at; /* 0: never */
    int64_t works[WORKS];
    int64_t elements[MOST_OUTPUTS]; /* that became final */
    int64_t rows[MOST_OUTPUTS], columns[MOST_OUTPUTS];
    unsigned char *times[MOST_OUTPUTS]; /* that a pixel became final; NULL: no map */
    struct rfx_step_report last;
};

static void count_pixels(struct told *told, const struct rfx_step_report *step) {
    unsigned char *times = told->times[step->output];
    assert_in_range(step->output, 0, rfx_network_output_count(told->net) - 1);
    assert_true(step->work == RFX_STEP_WORK_WRITE || step->work == RFX_STEP_WORK_COMPUTE);
    told->elements[step->output] += step->rows * step->columns * step->channels;
    if (times == NULL) return;
    int64_t rows = told->rows[step->output], columns = told->columns[step->output];
    assert_true(step->row >= 0 && step->row + step->rows <= rows);
    assert_true(step->column >= 0 && step->column + step->columns <= columns);
    for (int64_t y = step->row; y < step->row + step->rows; y++)
        for (int64_t x = step->column; x < step->column + step->columns; x++)
            times[y * columns + x]++;
}

static int take(void *user, const struct rfx_step_report *step) {
    struct told *told = user;
    const struct rfx_step_report *last = &told->last;
    told->calls++;
    assert_int_equal(step->size, sizeof *step);
    assert_int_equal(step->step, told->calls);
    assert_true(step->stage >= last->stage && step->stage < step->n_stages);
    assert_true(step->done >= last->done && step->done <= step->total);
    assert_true(step->seconds >= last->seconds);
    assert_in_range(step->layer, 0, rfx_network_layer_count(told->net) - 1);
    assert_in_range(step->work, 0, WORKS - 1);
    assert_true(step->held_bytes > 0);
    if (told->calls > 1) {
        assert_int_equal(step->total, last->total);
        assert_int_equal(step->n_stages, last->n_stages);
        assert_int_equal(step->planned_bytes, last->planned_bytes);
    }
    if (step->work != RFX_STEP_WORK_PACK && step->work != RFX_STEP_WORK_SUM)
        assert_true(step->rows > 0 && step->columns > 0 && step->channels > 0);
    if (step->output >= 0) count_pixels(told, step);
    told->works[step->work]++;
    told->last = *step;
    return told->calls == told->cancel_at;
}

static struct told told_of(const struct rfx_network *net) {
    struct told told = {.net = net};
    for (int k = 0; k < rfx_network_output_count(net); k++) {
        int64_t dims[RFX_MAX_DIMS];
        if (rfx_network_output_shape(net, k, dims) != 4) continue;
        told.rows[k] = dims[2];
        told.columns[k] = dims[3];
        told.times[k] = calloc((size_t)(dims[2] * dims[3]), 1);
        assert_non_null(told.times[k]);
    }
    return told;
}

static void check_and_free(struct told *told) {
    for (int k = 0; k < rfx_network_output_count(told->net); k++) {
        assert_int_equal(told->elements[k], rfx_network_output_elements(told->net, k));
        for (int64_t i = 0; i < told->rows[k] * told->columns[k]; i++)
            assert_int_equal(told->times[k][i], 1);
        free(told->times[k]);
    }
    assert_int_equal(told->last.stage, told->last.n_stages - 1);
}

/* One network without a budget and with the least one; returns the kinds of steps seen. */
static void run_and_check(const char *model, int64_t h, int64_t w, int64_t works[WORKS]) {
    struct rfx_network *net = network_open_sized(model, h, w);
    float *values = network_random_image(3, h, w);
    struct network_outputs want = network_session_outputs(model, values, 3, h, w);
    for (int small = 0; small < 2; small++) {
        size_t bytes = small ? network_least_bytes(net, NULL, 2) : 0;
        struct rfx_run_options options = network_run_options(bytes, 2);
        struct rfx_forecast forecast = {.size = sizeof forecast};
        struct network_outputs got = network_outputs_for(net);
        struct told told = told_of(net);
        struct rfx_why why;
        int stages = 0;
        network_check(rfx_network_predict(net, NULL, &options, &forecast, &why), &why);
        network_check(rfx_network_stages(net, NULL, &options, NULL, 0, 0, &stages, &why), &why);
        options.observe = take;
        options.user = &told;
        network_check(rfx_network_run_values(net, values, got.values, got.n, &options, &why), &why);
        network_assert_same(&got, &want);
        assert_int_equal(told.last.planned_bytes, forecast.peak_bytes);
        assert_int_equal(told.last.n_stages, stages);
        if (small) assert_true(told.last.held_bytes < forecast.peak_bytes);
        check_and_free(&told);
        for (int k = 0; k < WORKS; k++) works[k] += told.works[k];
        network_outputs_free(&got);
    }
    network_outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

/* Maps that are handed out, several outputs, global pools that are fed by rows, outputs joined of
 * maps. */
static void test_rectangles(void **state) {
    int64_t works[WORKS] = {0};
    (void)state;
    run_and_check("fsrcnn:2", 50, 37, works);
    run_and_check("posenet", 65, 49, works);
    run_and_check("efficientnet_b0", 128, 96, works);
    run_and_check("blazeface", 64, 64, works);
    assert_true(works[RFX_STEP_WORK_READ] > 0 && works[RFX_STEP_WORK_COMPUTE] > 0);
    assert_true(works[RFX_STEP_WORK_SUM] > 0 && works[RFX_STEP_WORK_WRITE] > 0);
    assert_true(works[RFX_STEP_WORK_PACK] > 0);
}

/* Of a part, rectangles are counted from its first row and column, as those of write are. */
static void test_part(void **state) {
    const struct rfx_area area = {.row = 20, .column = 10, .rows = 31, .columns = 40};
    struct rfx_network *net = network_open_sized("fsrcnn:2", 50, 37), *part = NULL;
    float *values = network_random_image(3, 50, 37);
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_why why;
    (void)state;
    network_check(rfx_network_open_part(net, 0, &area, &part, &why), &why);
    for (int small = 0; small < 2; small++) {
        struct network_outputs got = network_outputs_for(part);
        struct told told = told_of(part);
        options.memory_bytes = small ? network_least_bytes(part, NULL, 1) : 0;
        options.observe = take;
        options.user = &told;
        network_check(rfx_network_run_values(part, values, got.values, 1, &options, &why), &why);
        check_and_free(&told);
        network_outputs_free(&got);
    }
    rfx_network_free(part);
    rfx_network_free(net);
    free(values);
}

/* Its result cancels, after the last step too; a runner tells the observer of the run at hand. */
static void test_cancel(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 24, 16);
    float *values = network_random_image(3, 24, 16);
    struct network_outputs got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(network_least_bytes(net, NULL, 1), 1);
    const struct rfx_source source = {.size = sizeof source, .values = values};
    struct rfx_runner *runner = NULL;
    struct told whole = {.net = net};
    struct rfx_why why;
    (void)state;
    options.observe = take;
    options.user = &whole;
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    assert_int_equal(whole.calls, 0);
    network_check(rfx_runner_run(runner, &source, got.values, 1, &options, &why), &why);
    assert_true(whole.calls > 10);
    const int64_t at[] = {1, whole.calls / 2, whole.calls};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        struct told told = {.net = net, .cancel_at = at[i]};
        options.user = &told;
        assert_int_equal(rfx_runner_run(runner, &source, got.values, 1, &options, &why),
                         RFX_CODE_CANCELLED);
        assert_int_equal(told.calls, at[i]);
        assert_non_null(strstr(why.text, "stopped after"));
    }
    network_check(rfx_runner_run(runner, &source, got.values, 1, NULL, &why), &why);
    rfx_runner_free(runner);
    network_outputs_free(&got);
    free(values);
    rfx_network_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rectangles),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
