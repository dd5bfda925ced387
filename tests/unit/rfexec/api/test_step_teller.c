/* What an observer is told, against what must hold of any plan: final rectangles make up every
 * output once, each work is told of layers that can do it and of rectangles of their maps, numbers
 * are those of progress, of the clock and of the forecast, and bits do not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"

enum { WORKS = RFX_STEP_WORK_PACK + 1, MOST_STAGES = 60 };

/* What was told; the last step is kept, without its name. */
struct told {
    const struct rfx_network *net;
    struct rfx_layer_report *layers; /* NULL: rectangles are not held against them */
    int64_t *summed, *spilled;       /* pixels of each layer */
    uint64_t spilled_bytes;
    int64_t calls, cancel_at; /* 0: never */
    int64_t done, total;      /* as progress was told last */
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

/* The rectangle lies in a map and has all its channels; what is no map is one pixel of elements. */
static void check_inside(const struct rfx_step_report *step, const struct rfx_layer_report *map) {
    int64_t elements = (int64_t)(map->output_bytes / sizeof(float));
    if (step->rows == 1 && step->columns == 1 && step->channels == elements) return;
    assert_int_equal(map->n_dims, 4);
    assert_int_equal(step->channels, map->dims[1]);
    assert_true(step->row >= 0 && step->row + step->rows <= map->dims[2]);
    assert_true(step->column >= 0 && step->column + step->columns <= map->dims[3]);
}

/* The map that a layer sums: in this test's networks the last before it with as many channels, of
 * which moments have two each. */
static const struct rfx_layer_report *summed_map(const struct rfx_layer_report *layer) {
    int64_t channels = layer->dims[1] / (strcmp(layer->op, "Moments") == 0 ? 2 : 1);
    const struct rfx_layer_report *map = layer - 1;
    while (map->dims[1] != channels || map->dims[2] * map->dims[3] == 1) map--;
    return map;
}

/* What a layer can do, and where. */
static void check_layer(struct told *told, const struct rfx_step_report *step) {
    const struct rfx_layer_report *layer = &told->layers[step->layer];
    int64_t pixels = step->rows * step->columns;
    assert_string_equal(step->name, layer->name);
    if (step->work == RFX_STEP_WORK_READ || step->work == RFX_STEP_WORK_COMPUTE)
        assert_int_equal(step->work == RFX_STEP_WORK_READ, strcmp(layer->op, "Input") == 0);
    if (step->work == RFX_STEP_WORK_SUM) {
        assert_true(layer->global != 0);
        told->summed[step->layer] += pixels;
        if (pixels > 0) check_inside(step, summed_map(layer));
    } else if (step->work == RFX_STEP_WORK_PACK) {
        assert_true(layer->parameters > 0);
        assert_true(pixels == 0 && step->channels == 0 && step->row == 0 && step->column == 0);
    } else {
        check_inside(step, layer);
    }
    if (step->work == RFX_STEP_WORK_SPILL) {
        told->spilled[step->layer] += pixels;
        told->spilled_bytes += (uint64_t)(pixels * step->channels) * sizeof(float);
    }
    if (step->work == RFX_STEP_WORK_FETCH) assert_true(told->spilled[step->layer] >= pixels);
}

static int note_progress(void *user, int64_t done, int64_t total) {
    struct told *told = user;
    told->done = done;
    told->total = total;
    return 0;
}

static int take(void *user, const struct rfx_step_report *step) {
    struct told *told = user;
    const struct rfx_step_report *last = &told->last;
    told->calls++;
    assert_int_equal(step->size, sizeof *step);
    assert_int_equal(step->step, told->calls);
    assert_true(step->stage >= last->stage && step->stage < step->n_stages);
    assert_true(step->done >= last->done && step->done <= step->total);
    if (told->total > 0) assert_true(step->done == told->done && step->total == told->total);
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
    if (told->layers != NULL) check_layer(told, step);
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

static struct told told_with_layers(struct rfx_network *net) {
    struct told told = told_of(net);
    size_t n = (size_t)rfx_network_layer_count(net);
    struct rfx_why why;
    told.layers = calloc(n, sizeof *told.layers);
    told.summed = calloc(n, sizeof *told.summed);
    told.spilled = calloc(n, sizeof *told.spilled);
    assert_true(told.layers != NULL && told.summed != NULL && told.spilled != NULL);
    network_check(rfx_network_layers(net, told.layers, sizeof *told.layers, &why), &why);
    return told;
}

/* Each sum took every pixel of the map before once; files hold what the stages say. */
static void check_layers_and_free(struct told *told, const struct rfx_stage_report *stages, int n) {
    uint64_t spilled = 0;
    for (int i = 0; i < rfx_network_layer_count(told->net); i++) {
        if (told->summed[i] == 0) continue;
        const int64_t *dims = summed_map(&told->layers[i])->dims;
        assert_int_equal(told->summed[i], dims[2] * dims[3]);
    }
    for (int s = 0; s < n; s++) spilled += stages[s].spilled_bytes;
    assert_int_equal(told->spilled_bytes, spilled);
    check_and_free(told);
    free(told->layers);
    free(told->summed);
    free(told->spilled);
}

static double now_seconds(void) {
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One run of the network; adds the kinds of steps seen. */
static void run_and_check(struct rfx_network *net, const float *values,
                          const struct network_outputs *want, struct rfx_run_options options,
                          int64_t works[WORKS]) {
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct network_outputs got = network_outputs_for(net);
    struct told told = told_with_layers(net);
    struct rfx_stage_report stages[MOST_STAGES];
    struct rfx_why why;
    int n = 0;
    network_check(rfx_network_predict(net, NULL, &options, &forecast, &why), &why);
    network_check(
        rfx_network_stages(net, NULL, &options, stages, sizeof *stages, MOST_STAGES, &n, &why),
        &why);
    options.observe = take;
    options.progress = note_progress;
    options.user = &told;
    double begin = now_seconds();
    network_check(rfx_network_run_values(net, values, got.values, got.n, &options, &why), &why);
    assert_true(told.last.seconds > 0.0 && told.last.seconds < now_seconds() - begin);
    network_assert_same(&got, want);
    assert_int_equal(told.last.planned_bytes, forecast.peak_bytes);
    assert_int_equal(told.last.n_stages, n);
    assert_true(told.last.held_bytes >= forecast.activation_bytes + forecast.weight_bytes);
    if (options.memory_bytes > 0) assert_true(told.last.held_bytes < forecast.peak_bytes);
    for (int k = 0; k < WORKS; k++) works[k] += told.works[k];
    check_layers_and_free(&told, stages, n);
    network_outputs_free(&got);
}

/* Without a budget and with the least one; with a folder, the least one with files. */
static void run_both(const char *model, int64_t h, int64_t w, const char *folder,
                     int64_t works[WORKS]) {
    struct rfx_network *net = network_open_sized(model, h, w);
    float *values = network_random_image(3, h, w);
    struct network_outputs want = network_session_outputs(model, values, 3, h, w);
    struct rfx_run_options options = network_run_options(0, 2), least = network_run_options(1, 2);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    least.spill_folder = folder;
    assert_int_equal(rfx_network_predict(net, NULL, &least, &forecast, NULL), RFX_CODE_BUDGET);
    least.memory_bytes = forecast.peak_bytes;
    if (folder == NULL) run_and_check(net, values, &want, options, works);
    run_and_check(net, values, &want, least, works);
    network_outputs_free(&want);
    free(values);
    rfx_network_free(net);
}

/* Maps that are handed out, several outputs, global pools that are fed by rows, outputs joined of
 * maps, norms whose maps wait in files. */
static void test_rectangles(void **state) {
    int64_t works[WORKS] = {0};
    (void)state;
    run_both("fsrcnn:2", 50, 37, NULL, works);
    run_both("posenet", 65, 49, NULL, works);
    run_both("efficientnet_b0", 128, 96, NULL, works);
    run_both("blazeface", 64, 64, NULL, works);
    assert_true(works[RFX_STEP_WORK_KEEP] > 0);
    assert_true(works[RFX_STEP_WORK_SPILL] == 0 && works[RFX_STEP_WORK_FETCH] == 0);
    run_both("unet_instance", 160, 128, ".", works);
    for (int k = 0; k < WORKS; k++) assert_true(works[k] > 0);
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
