/* Masks behind the public header: pixels of arrays, files and options.write against a run of the
 * whole network, what a budget refuses, what is refused in words, and failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

#define MASK "test_network_masks.pgm"
#define FILE_NAME "test_network_masks.npy"
/* The mask has one pixel for SIDE x SIDE pixels of the image. */
enum { H = 96, W = 80, SIDE = 8, MASK_H = H / SIDE, MASK_W = W / SIDE, HEADER = 128 };

static unsigned char mask[MASK_H][MASK_W];

/* Writes the mask with `scale` x `scale` pixels for each of its pixels. */
static void write_mask(int scale) {
    FILE *file = fopen(MASK, "wb");
    assert_non_null(file);
    assert_true(fprintf(file, "P5\n%d %d\n255\n", MASK_W * scale, MASK_H * scale) > 0);
    for (int y = 0; y < MASK_H * scale; y++)
        for (int x = 0; x < MASK_W * scale; x++)
            assert_true(fputc(mask[y / scale][x / scale], file) != EOF);
    assert_int_equal(fclose(file), 0);
}

/* Two places far from each other. */
static int set_up(void **state) {
    (void)state;
    memset(mask, 0, sizeof mask);
    mask[1][1] = mask[1][2] = mask[2][2] = 255;
    mask[MASK_H - 1][MASK_W - 2] = 1;
    write_mask(1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return unlink(MASK);
}

/* Sets all values of the only output, a map, that the mask does not select to 0. */
static void apply_mask(const struct rfx_network *net, float *values) {
    struct rfx_area map;
    assert_int_equal(rfx_network_output_map(net, 0, &map), 1);
    for (int64_t c = 0; c < map.channels; c++)
        for (int64_t y = 0; y < map.rows; y++)
            for (int64_t x = 0; x < map.columns; x++, values++)
                if (mask[y * MASK_H / map.rows][x * MASK_W / map.columns] == 0) *values = 0.0f;
}

/* The array, the next free element of which a run fills by options.write, and progress. */
struct receiver {
    struct rfx_area map;
    float *values;
    int64_t pixels, done, total;
};

static int take_part(void *user, int output, const struct rfx_area *part, const float *values) {
    struct receiver *r = user;
    assert_int_equal(output, 0);
    assert_int_equal(part->channels, r->map.channels);
    for (int64_t c = 0; c < part->channels; c++)
        for (int64_t y = 0; y < part->rows; y++)
            for (int64_t x = 0; x < part->columns; x++)
                r->values[(c * r->map.rows + part->row + y) * r->map.columns + part->column + x] =
                    values[y * part->row_step + x * part->column_step + c * part->channel_step];
    r->pixels += part->rows * part->columns;
    return 0;
}

static int tell(void *user, int64_t done, int64_t total) {
    struct receiver *r = user;
    assert_true(done >= r->done && done <= total && (r->total == 0 || r->total == total));
    r->done = done;
    r->total = total;
    return 0;
}

/* Runs with a mask into an array, a file and options.write. `computed`: pixels of the rectangles;
 * 0: fewer than a quarter of the output. */
static void check_runs(const char *model, size_t memory_bytes, int64_t computed) {
    struct rfx_network *net = network_open_sized(model, H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs want = network_session_outputs(model, image, 3, H, W),
                           got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(memory_bytes, 2);
    struct rfx_result_file file;
    struct receiver receiver = {.values = got.values[0]};
    struct rfx_why why;
    apply_mask(net, want.values[0]);
    assert_int_equal(rfx_network_output_map(net, 0, &receiver.map), 1);
    options.mask = MASK;
    options.progress = tell;
    options.user = &receiver;
    network_check(rfx_network_run_values(net, image, got.values, 1, &options, &why), &why);
    network_assert_same(&got, &want);
    assert_int_equal(receiver.done, receiver.total);
    int64_t pixels = receiver.map.rows * receiver.map.columns;
    if (computed == 0)
        assert_in_range(receiver.total, 1, pixels / 4);
    else
        assert_int_equal(receiver.total, computed);

    memset(got.values[0], 0xff, (size_t)got.elems[0] * sizeof(float));
    options.progress = NULL;
    options.write = take_part;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    network_assert_same(&got, &want);
    assert_int_equal(receiver.pixels, pixels);

    rfx_result_file_init(&file, sizeof file);
    file.path = FILE_NAME;
    options.write = NULL;
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    FILE *written = fopen(FILE_NAME, "rb");
    assert_non_null(written);
    assert_int_equal(fseek(written, HEADER, SEEK_SET), 0);
    assert_int_equal(fread(got.values[0], sizeof(float), (size_t)got.elems[0], written),
                     got.elems[0]);
    (void)fclose(written);
    assert_int_equal(unlink(FILE_NAME), 0);
    network_assert_same(&got, &want);
    network_outputs_free(&got);
    network_outputs_free(&want);
    free(image);
    rfx_network_free(net);
}

static void wanted_pixels_are_those_of_the_whole_run(void **state) {
    (void)state;
    check_runs("fsrcnn", 0, 0);
    check_runs("fsrcnn", (size_t)40 << 20, 0);
    check_runs("unet_instance", 0, (int64_t)H * W); /* its norms need the whole image */
}

/* Nothing is computed, and the image is not read. */
static int fail_to_read(void *user, const struct rfx_area *part, float *values) {
    (void)user, (void)part, (void)values;
    return 1;
}

static void an_empty_mask_computes_nothing(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    struct network_outputs got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(0, 1);
    const struct rfx_source source = {.size = sizeof source, .read = fail_to_read};
    struct rfx_why why;
    memset(mask, 0, sizeof mask);
    write_mask(1);
    options.mask = MASK;
    network_check(rfx_network_run_source(net, &source, got.values, 1, &options, &why), &why);
    for (int64_t i = 0; i < got.elems[0]; i++) assert_true(got.values[0][i] == 0.0f);
    network_outputs_free(&got);
    rfx_network_free(net);
}

/* A program that was built when options had no mask. */
static void older_options_have_no_mask(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs want = network_session_outputs("fsrcnn", image, 3, H, W),
                           got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_why why;
    assert_null(options.mask);
    options.size = offsetof(struct rfx_run_options, mask);
    options.mask = "beyond the struct";
    network_check(rfx_network_run_values(net, image, got.values, 1, &options, &why), &why);
    network_assert_same(&got, &want);
    network_outputs_free(&got);
    network_outputs_free(&want);
    free(image);
    rfx_network_free(net);
}

/* Runs in a budget that is too small. Returns the smallest one, which the text names. */
static size_t least_of(struct rfx_network *net, const float *image, float *const *outputs,
                       struct rfx_run_options *options) {
    struct rfx_why why;
    size_t least = 0;
    options->memory_bytes = (size_t)4 << 20;
    assert_int_equal(rfx_network_run_values(net, image, outputs, 1, options, &why),
                     RFX_CODE_BUDGET);
    assert_int_equal(sscanf(why.text, "needs at least %zu bytes", &least), 1);
    return least;
}

/* The smallest budget is enough for the run. It contains the mask, a bit a pixel. */
static void budgets_are_kept(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(1, 1);
    struct rfx_why why;
    mask[MASK_H - 1][MASK_W - 2] = 0; /* one rectangle */
    write_mask(1);
    options.mask = MASK;
    assert_int_equal(rfx_network_run_values(net, image, got.values, 1, &options, &why),
                     RFX_CODE_BUDGET);
    assert_non_null(strstr(why.text, "mask: '" MASK "': reading its 12 x 10 pixels takes"));
    const size_t least = least_of(net, image, got.values, &options);
    assert_true(least < network_least_bytes(net, NULL, 1) + ((size_t)2 << 20));
    options.memory_bytes = least;
    network_check(rfx_network_run_values(net, image, got.values, 1, &options, &why), &why);
    enum { SCALE = 50 };
    write_mask(SCALE);
    const size_t more = least_of(net, image, got.values, &options) - least;
    assert_int_equal(more, MASK_H * SCALE * ((MASK_W * SCALE + 7) / 8) - MASK_H * 2);
    network_outputs_free(&got);
    free(image);
    rfx_network_free(net);
}

static int observe(void *user, const struct rfx_step_report *step) {
    (void)user, (void)step;
    return 0;
}

/* Runs on a picture. All outputs that `outputs` does not name as NULL are wanted. */
static void expect_refused(struct rfx_network *net, const char *picture, float *const *outputs,
                           int n_outputs, enum rfx_code code, const struct rfx_run_options *options,
                           const char *words) {
    struct rfx_why why;
    assert_int_equal(rfx_network_run_file(net, picture, outputs, n_outputs, options, &why), code);
    if (strstr(why.text, words) == NULL) fail_msg("no '%s' in: %s", words, why.text);
}

static void what_does_not_combine_is_refused(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W), *part = NULL,
                       *many = network_open_sized("posenet", 65, 65),
                       *classes = network_open_sized("mobilenet_v2", 64, 64);
    struct network_outputs got = network_outputs_for(net), maps = network_outputs_for(many),
                           scores = network_outputs_for(classes);
    const struct rfx_area half = {.rows = H, .columns = W};
    struct rfx_run_options options = network_run_options(0, 1), other;
    struct rfx_result_file file;
    float *nothing[MOST_OUTPUTS] = {NULL};
    struct rfx_why why;
    const char *picture = "synthetic:96x80";
    other = options;
    other.mask = "no_such_mask.png";
    expect_refused(net, picture, got.values, 1, RFX_CODE_REFUSED, &other,
                   "mask: no_such_mask.png: cannot open");
    options.mask = MASK;
    expect_refused(net, picture, nothing, 1, RFX_CODE_USAGE, &options, "of 1 outputs 0 have");
    expect_refused(many, "synthetic:65x65", maps.values, maps.n, RFX_CODE_USAGE, &options,
                   "mask is of one output: of 4 outputs 4 have");
    nothing[1] = maps.values[1];
    network_check(rfx_network_run_file(many, "synthetic:65x65", nothing, maps.n, &options, &why),
                  &why);
    expect_refused(classes, "synthetic:64x64", scores.values, 1, RFX_CODE_REFUSED, &options,
                   "is not a map of rows and columns: mask does not apply to it");
    network_check(rfx_network_open_part(net, 0, &half, &part, &why), &why);
    expect_refused(part, picture, got.values, 1, RFX_CODE_USAGE, &options, "a part of one");
    other = options;
    other.observe = observe;
    expect_refused(net, picture, got.values, 1, RFX_CODE_USAGE, &other, "mask excludes observe");
    other = options;
    other.plan_file = "plan.json";
    expect_refused(net, picture, got.values, 1, RFX_CODE_USAGE, &other, "mask excludes plan_file");
    rfx_result_file_init(&file, sizeof file);
    file.path = "test_network_masks.png";
    other = options;
    other.files = &file;
    other.n_files = 1;
    expect_refused(net, picture, NULL, 0, RFX_CODE_USAGE, &other, "needs low and high");
    rfx_network_free(part);
    rfx_network_free(net);
    rfx_network_free(many);
    rfx_network_free(classes);
    network_outputs_free(&got);
    network_outputs_free(&maps);
    network_outputs_free(&scores);
}

static void expect_of_whole(enum rfx_code code, const struct rfx_why *why) {
    assert_int_equal(code, RFX_CODE_USAGE);
    if (strstr(why->text, "mask is for runs of a network") == NULL) fail_msg("%s", why->text);
}

static void calls_on_whole_plans_refuse_masks(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W),
                       *normed = network_open_sized("unet_instance", H, W);
    struct network_outputs got = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(0, 1), masked = options;
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_stage_report stages[1];
    struct rfx_runner *runner = NULL;
    struct rfx_model *model = NULL;
    struct rfx_model_plan *plan = NULL;
    struct rfx_round *round = NULL;
    struct rfx_bytes *states = NULL;
    struct rfx_why why;
    int count;
    masked.mask = MASK;
    expect_of_whole(rfx_network_predict(net, NULL, &masked, &forecast, &why), &why);
    expect_of_whole(
        rfx_network_stages(net, NULL, &masked, stages, sizeof stages[0], 1, &count, &why), &why);
    expect_of_whole(rfx_runner_create(net, &masked, &runner, &why), &why);
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    expect_of_whole(rfx_runner_run_file(runner, "synthetic:96x80", got.values, 1, &masked, &why),
                    &why);
    network_check(rfx_runner_run_file(runner, "synthetic:96x80", got.values, 1, &options, &why),
                  &why);
    network_check(rfx_model_open("fsrcnn", NULL, &model, &why), &why);
    expect_of_whole(rfx_model_plan_create(model, H, W, NULL, &masked, &plan, &why), &why);
    network_check(rfx_round_open(normed, 0, 1, 1, 2, &round, &why), &why);
    assert_int_equal(rfx_round_run_file(round, NULL, 0, "synthetic:96x80", &masked, &states, &why),
                     RFX_CODE_USAGE);
    assert_non_null(strstr(why.text, "`mask` must be empty"));
    rfx_round_free(round);
    rfx_model_free(model);
    rfx_runner_free(runner);
    rfx_network_free(net);
    rfx_network_free(normed);
    network_outputs_free(&got);
}

static int stop_at_half(void *user, int64_t done, int64_t total) {
    (void)user;
    return 2 * done >= total;
}

/* Stopped, and out of memory at each allocation in turn: no file appears, and no memory stays. */
static void failures_leave_nothing(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_network *net = NULL;
    struct rfx_open_options open;
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_result_file file;
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    rfx_open_options_init(&open, sizeof open);
    open.rows = H;
    open.columns = W;
    network_check(rfx_network_open_in(mem, "fsrcnn", &open, &net, &why), &why);
    rfx_result_file_init(&file, sizeof file);
    file.path = FILE_NAME;
    options.files = &file;
    options.n_files = 1;
    options.mask = MASK;
    options.progress = stop_at_half;
    size_t held = rfx_memory_current_bytes(mem);
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why),
                     RFX_CODE_CANCELLED);
    assert_int_equal(rfx_memory_current_bytes(mem), held);
    options.progress = NULL;
    enum rfx_code code = RFX_CODE_SYSTEM;
    int failed = 0;
    for (int k = 0; code != RFX_CODE_OK; k += 1 + k / 16, failed++) {
        assert_int_equal(access(FILE_NAME, F_OK), -1);
        rfx_memory_fail_after(mem, k);
        code = rfx_network_run_values(net, image, NULL, 0, &options, &why);
        rfx_memory_fail_after(mem, -1);
        if (code != RFX_CODE_OK) assert_int_equal(code, RFX_CODE_SYSTEM);
        assert_int_equal(rfx_memory_current_bytes(mem), held);
    }
    assert_true(failed > 20);
    assert_int_equal(unlink(FILE_NAME), 0);
    free(image);
    rfx_network_free(net);
    rfx_memory_free(mem);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(wanted_pixels_are_those_of_the_whole_run),
        TEST(an_empty_mask_computes_nothing),
        TEST(older_options_have_no_mask),
        TEST(budgets_are_kept),
        TEST(what_does_not_combine_is_refused),
        TEST(calls_on_whole_plans_refuse_masks),
        TEST(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
