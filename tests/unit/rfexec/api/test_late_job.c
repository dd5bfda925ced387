/* Networks with late nodes behind the public header: shapes that are not known before a run,
 * outputs by options.write and in files, their memory, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/makers/late_maker.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

#define PATH "test_late_job.tmp"
#define MODEL PATH ".onnx"
enum {
    H = 32,
    W = 48,
    CELLS = H / LATE_MAKER_STRIDE * (W / LATE_MAKER_STRIDE),
    CUT = CELLS * (4 + LATE_MAKER_CLASSES),
    BOXES = 0,
    SCORES = 1,
    LABELS = 2,
    OUTPUTS = 3,
    MOST = 4 * LATE_MAKER_CLASSES * CELLS
};

/* What options.write has received. */
struct received {
    int64_t elems[OUTPUTS];
    int calls[OUTPUTS];
    float values[OUTPUTS][MOST];
};

static struct received first, again;

static int take(void *user, int output, const struct rfx_area *part, const float *values) {
    struct received *received = user;
    assert_in_range(output, 0, OUTPUTS - 1);
    assert_int_equal(part->row + part->column, 0);
    assert_int_equal(part->rows * part->columns, 1);
    assert_in_range(part->channels, 0, MOST);
    received->calls[output]++;
    received->elems[output] = part->channels;
    memcpy(received->values[output], values, (size_t)part->channels * sizeof *values);
    return 0;
}

static struct rfx_open_options open_options(void) {
    struct rfx_open_options open;
    rfx_open_options_init(&open, sizeof open);
    open.rows = H;
    open.columns = W;
    open.late_nodes = 1;
    return open;
}

static struct rfx_network *open_late(float threshold) {
    const struct rfx_open_options open = open_options();
    struct rfx_network *net = NULL;
    struct rfx_why why;
    late_maker_save(MODEL, H, W, threshold);
    network_check(rfx_network_open(MODEL, &open, &net, &why), &why);
    return net;
}

static struct rfx_run_options to_write(struct received *received, size_t budget, int threads) {
    struct rfx_run_options options = network_run_options(budget, threads);
    *received = (struct received){.calls = {0}};
    options.write = take;
    options.user = received;
    return options;
}

static struct rfx_result_file result_file(int output, const char *path) {
    struct rfx_result_file file;
    rfx_result_file_init(&file, sizeof file);
    file.output = output;
    file.path = path;
    return file;
}

/* Sets *n to the bytes behind the header of a .npy file, and returns them in the test's memory. */
static const unsigned char *read_npy(const char *path, size_t *n) {
    static unsigned char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    assert_in_range(size, 128, sizeof bytes - 1);
    size_t header = 10 + (size_t)bytes[8] + 256 * (size_t)bytes[9];
    *n = size - header;
    return bytes + header;
}

static void assert_same(const struct received *got, const struct received *want) {
    for (int k = 0; k < OUTPUTS; k++) {
        assert_int_equal(got->calls[k], 1);
        assert_int_equal(got->elems[k], want->elems[k]);
        assert_memory_equal(got->values[k], want->values[k],
                            (size_t)want->elems[k] * sizeof(float));
    }
}

static void test_outputs_are_described(void **state) {
    struct rfx_open_options open = open_options();
    struct rfx_network *net = open_late(0.5F), *none = NULL;
    struct rfx_area area;
    struct rfx_why why;
    int64_t dims[RFX_MAX_DIMS];
    (void)state;
    assert_int_equal(rfx_network_output_count(net), OUTPUTS);
    assert_string_equal(rfx_network_output_name(net, BOXES), "boxes");
    assert_string_equal(rfx_network_output_type(net, LABELS), "int64");
    assert_int_equal(rfx_network_output_shape(net, BOXES, dims), 2);
    assert_int_equal(dims[0], -1);
    assert_int_equal(dims[1], 4);
    assert_int_equal(rfx_network_output_elements(net, SCORES), -1);
    assert_int_equal(rfx_network_output_map(net, BOXES, &area), 0);
    assert_int_equal(rfx_network_output_shape(net, OUTPUTS, dims), -1);
    assert_null(rfx_network_output_name(net, OUTPUTS));
    assert_null(rfx_network_output_type(net, -1));
    rfx_network_free(net);
    open.late_nodes = 0;
    assert_int_equal(rfx_network_open(MODEL, &open, &none, &why), RFX_CODE_REFUSED);
    open.late_nodes = open.join_heads = 1;
    network_check(rfx_network_open(MODEL, &open, &net, &why), &why);
    assert_int_equal(rfx_network_output_count(net), OUTPUTS + 1);
    assert_string_equal(rfx_network_output_name(net, OUTPUTS), "detections");
    rfx_network_free(net);
    assert_int_equal(unlink(MODEL), 0);
}

/* EfficientNMS_TRT: even outputs whose sizes the model declares have no arrays. Boxes in a file are
 * the same for every plan. */
static void test_results_of_a_plugin_go_to_files(void **state) {
    static struct maker graph, model;
    struct rfx_open_options open = open_options();
    struct rfx_network *net = NULL;
    struct rfx_why why;
    int64_t dims[RFX_MAX_DIMS];
    float *image = network_random_image(3, H, W), *outputs[5] = {image};
    struct rfx_result_file file = result_file(4, PATH ".json");
    struct rfx_run_options options = network_run_options(0, 1);
    (void)state;
    late_maker_plugin_graph(&graph, H, W, 0.5F, "TRT");
    maker_model(&graph, 17, &model);
    maker_save(&model, MODEL);
    open.join_heads = 1;
    network_check(rfx_network_open(MODEL, &open, &net, &why), &why);
    assert_int_equal(rfx_network_output_count(net), 5);
    assert_int_equal(rfx_network_output_shape(net, 1, dims), 3);
    assert_int_equal(dims[1], LATE_MAKER_MOST);
    for (int k = 0; k < 5; k++) assert_int_equal(rfx_network_output_elements(net, k), -1);
    assert_int_equal(rfx_network_run_values(net, image, outputs, 5, &options, &why),
                     RFX_CODE_USAGE);
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    file.path = PATH "2.json";
    options.memory_bytes = 32 << 20;
    options.threads = 2;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    assert_int_equal(system("cmp " PATH ".json " PATH "2.json && grep -q score " PATH ".json"), 0);
    rfx_network_free(net);
    free(image);
    assert_int_equal(unlink(MODEL) + unlink(PATH ".json") + unlink(PATH "2.json"), 0);
}

static int not_an_output(void *user, const struct rfx_step_report *step) {
    int *steps = user;
    assert_int_equal(step->output, -1); /* what the plan computes are no outputs */
    ++*steps;
    return 0;
}

/* By write and in files, whatever the plan, and in runners. */
static void test_outputs_are_the_same_for_every_plan(void **state) {
    struct rfx_network *net = open_late(0.5F);
    float *image = network_random_image(3, H, W);
    const struct rfx_source source = {.size = sizeof source, .values = image};
    struct rfx_run_options options = to_write(&first, 0, 1);
    struct rfx_result_file files[2] = {result_file(SCORES, PATH ".s.npy"),
                                       result_file(LABELS, PATH ".l.npy")};
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    size_t n;
    int steps = 0;
    (void)state;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    const int64_t count = first.elems[SCORES];
    assert_in_range(count, 5, LATE_MAKER_CLASSES * CELLS);
    assert_int_equal(first.elems[BOXES], 4 * count);
    assert_int_equal(first.elems[LABELS], count);
    for (int64_t i = 0; i < count; i++) {
        assert_true(first.values[SCORES][i] > 0.5F);
        assert_true(first.values[LABELS][i] == 0.0F || first.values[LABELS][i] == 1.0F);
    }
    for (int way = 0; way < 4; way++) {
        options = to_write(&again, way % 2 == 0 ? 0 : 32 << 20, 1 + way);
        network_check(rfx_network_run_source(net, &source, NULL, 0, &options, &why), &why);
        assert_same(&again, &first);
    }
    options = to_write(&again, 32 << 20, 2);
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    for (int run = 0; run < 2; run++) {
        options = to_write(&again, 0, 0);
        network_check(rfx_runner_run(runner, &source, NULL, 0, &options, &why), &why);
        assert_same(&again, &first);
    }
    options.files = files; /* the runner has room for .npy files */
    options.n_files = 2;
    options.observe = not_an_output;
    options.user = &steps;
    options.write = NULL;
    network_check(rfx_runner_run(runner, &source, NULL, 0, &options, &why), &why);
    assert_true(steps > 0);
    const unsigned char *bytes = read_npy(files[0].path, &n);
    assert_int_equal(n, (size_t)count * sizeof(float));
    assert_memory_equal(bytes, first.values[SCORES], n);
    bytes = read_npy(files[1].path, &n);
    assert_int_equal(n, (size_t)count * sizeof(int64_t));
    for (int64_t i = 0; i < count; i++) {
        int64_t label;
        memcpy(&label, bytes + (size_t)i * sizeof label, sizeof label);
        assert_true((float)label == first.values[LABELS][i]);
    }
    rfx_runner_free(runner);
    free(image);
    rfx_network_free(net);
    assert_int_equal(unlink(files[0].path), 0);
    assert_int_equal(unlink(files[1].path), 0);
    assert_int_equal(unlink(MODEL), 0);
}

/* A plan of a model has room for a file of boxes if it was made with one. */
static void test_models_have_late_nodes(void **state) {
    struct rfx_open_options open = open_options();
    struct rfx_run_options options = network_run_options(32 << 20, 1);
    struct rfx_result_file file = result_file(OUTPUTS, PATH ".json");
    struct rfx_model *model = NULL;
    struct rfx_model_plan *plan = NULL;
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    const struct rfx_source source = {.size = sizeof source, .values = image};
    (void)state;
    open.join_heads = 1;
    late_maker_save(MODEL, H, W, 0.5F);
    network_check(rfx_model_open(MODEL, &open, &model, &why), &why);
    for (int with = 0; with < 2; with++) {
        options.files = with ? &file : NULL;
        options.n_files = with;
        network_check(rfx_model_plan_create(model, 0, 0, NULL, &options, &plan, &why), &why);
        network_check(rfx_model_plan_runner(plan, &runner, &why), &why);
        options.files = &file;
        options.n_files = 1;
        enum rfx_code code = rfx_runner_run(runner, &source, NULL, 0, &options, &why);
        assert_int_equal(code, with ? RFX_CODE_OK : RFX_CODE_BUDGET);
        assert_int_equal(access(file.path, F_OK), with ? 0 : -1);
        rfx_runner_free(runner);
        rfx_model_plan_free(plan);
    }
    rfx_model_free(model);
    free(image);
    assert_int_equal(unlink(file.path), 0);
    assert_int_equal(unlink(MODEL), 0);
}

static void test_nothing_found_is_told(void **state) {
    struct rfx_network *net = open_late(2.0F);
    struct rfx_run_options options = to_write(&first, 0, 1);
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    (void)state;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    for (int k = 0; k < OUTPUTS; k++) {
        assert_int_equal(first.calls[k], 1);
        assert_int_equal(first.elems[k], 0);
    }
    free(image);
    rfx_network_free(net);
    assert_int_equal(unlink(MODEL), 0);
}

struct account {
    size_t blocks, bytes, most;
    long long passes; /* blocks until none is given */
};

static void *allocate(void *user, size_t bytes) {
    struct account *account = user;
    if (account->passes == 0) return NULL;
    account->passes--;
    account->blocks++;
    account->bytes += bytes;
    if (account->bytes > account->most) account->most = account->bytes;
    return malloc(bytes);
}

static void release(void *user, void *block, size_t bytes) {
    struct account *account = user;
    account->bytes -= bytes;
    account->blocks--;
    free(block);
}

static struct rfx_open_options account_options(struct account *account) {
    struct rfx_open_options open = open_options();
    open.allocate = allocate;
    open.release = release;
    open.memory_user = account;
    return open;
}

static void test_memory_is_counted(void **state) {
    struct account account = {.passes = 1 << 30};
    struct rfx_open_options open = account_options(&account);
    struct rfx_network *net = NULL;
    struct rfx_run_options options = to_write(&first, 1, 1);
    struct rfx_forecast forecast = {.size = sizeof forecast}, more = forecast;
    struct rfx_result_file file = result_file(BOXES, PATH ".npy");
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    const size_t cut = CUT * sizeof(float), mega = 1 << 20;
    (void)state;
    late_maker_save(MODEL, H, W, 0.5F);
    network_check(rfx_network_open(MODEL, &open, &net, &why), &why);
    assert_int_equal(rfx_network_predict(net, NULL, &options, &forecast, &why), RFX_CODE_BUDGET);
    assert_in_range(forecast.picture_bytes, 8 * mega + 3 * cut, 9 * mega);
    options.files = &file;
    options.n_files = 1;
    assert_int_equal(rfx_network_predict(net, NULL, &options, &more, &why), RFX_CODE_BUDGET);
    assert_int_equal(more.picture_bytes, forecast.picture_bytes);
    options.n_files = 0;
    options.files = NULL;
    options.memory_bytes = forecast.peak_bytes;
    account.most = 0;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    assert_in_range(account.most, 3 * cut, forecast.peak_bytes);
    options.memory_bytes--;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_BUDGET);
    rfx_network_free(net);
    /* answer_bytes of a file of boxes is the limit of late nodes. */
    open.join_heads = 1;
    network_check(rfx_network_open(MODEL, &open, &net, &why), &why);
    file = result_file(OUTPUTS, PATH ".json");
    file.answer_bytes = 3000;
    options = network_run_options(0, 1);
    options.files = &file;
    options.n_files = 1;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_BUDGET);
    assert_non_null(strstr(why.text, "3000 are allowed"));
    assert_int_equal(access(file.path, F_OK), -1);
    file.answer_bytes = 100000;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    assert_int_equal(unlink(file.path), 0);
    rfx_network_free(net);
    free(image);
    assert_int_equal(unlink(MODEL), 0);
}

static int fail_at_labels(void *user, int output, const struct rfx_area *part,
                          const float *values) {
    (void)user, (void)part, (void)values;
    return output == LABELS;
}

static int fail_at_once(void *user, int64_t done, int64_t total) {
    (void)user, (void)done, (void)total;
    fail_msg("the run has begun");
    return 1;
}

static void test_what_cannot_be_is_refused(void **state) {
    struct rfx_network *net = open_late(0.5F), *part = NULL;
    struct rfx_run_options options = to_write(&first, 0, 1);
    struct rfx_result_file file = result_file(BOXES, PATH ".npy");
    const struct rfx_area area = {.rows = 1, .columns = 1};
    struct rfx_why why;
    float *image = network_random_image(3, H, W), *outputs[OUTPUTS] = {NULL, NULL, image};
    int rounds;
    (void)state;
    assert_int_equal(rfx_network_run_values(net, image, outputs, OUTPUTS, &options, &why),
                     RFX_CODE_USAGE);
    assert_non_null(strstr(why.text, "output 'labels', whose size depends on data"));
    outputs[LABELS] = NULL;
    assert_int_equal(rfx_network_run_values(net, image, outputs, 2, &options, &why),
                     RFX_CODE_USAGE);
    network_check(rfx_network_run_values(net, image, outputs, OUTPUTS, &options, &why), &why);
    assert_int_equal(rfx_network_open_part(net, BOXES, &area, &part, &why), RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "have no parts"));
    assert_int_equal(rfx_network_rounds(net, BOXES, &rounds, &why), RFX_CODE_REFUSED);
    options.mask = MODEL;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_REFUSED);
    options.mask = NULL;
    options.files = &file;
    options.n_files = 1;
    file.bits = 8;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_USAGE);
    file.bits = 0;
    file.output = OUTPUTS;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_USAGE);
    file.output = BOXES;
    file.path = "nowhere/" PATH ".npy"; /* found out before the run */
    options.progress = fail_at_once;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_SYSTEM);
    options.progress = NULL;
    file.path = PATH ".npy";
    options.write = fail_at_labels; /* behind the output of the file, which has no name yet */
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_SYSTEM);
    assert_non_null(strstr(why.text, "returned 1"));
    assert_int_equal(access(file.path, F_OK), -1);
    free(image);
    rfx_network_free(net);
    assert_int_equal(unlink(MODEL), 0);
}

/* Every block of a run that is not given ends it in words, without a leak and without a file. */
static void test_every_refused_block(void **state) {
    float *image = network_random_image(3, H, W);
    struct rfx_result_file file = result_file(BOXES, PATH ".npy");
    int refused = 0;
    (void)state;
    late_maker_save(MODEL, H, W, 0.5F);
    for (long long k = 0;; k++) {
        struct account account = {.passes = 1 << 30};
        const struct rfx_open_options open = account_options(&account);
        struct rfx_run_options options = to_write(&again, 0, 1);
        struct rfx_network *net = NULL;
        struct rfx_why why;
        options.files = &file;
        options.n_files = 1;
        network_check(rfx_network_open(MODEL, &open, &net, &why), &why);
        account.passes = k;
        enum rfx_code code = rfx_network_run_values(net, image, NULL, 0, &options, &why);
        account.passes = 1 << 30;
        rfx_network_free(net);
        assert_int_equal(account.blocks, 0);
        if (code == RFX_CODE_OK) break;
        assert_int_equal(code, RFX_CODE_SYSTEM);
        assert_true(why.text[0] != '\0');
        assert_int_equal(access(file.path, F_OK), -1);
        refused++;
    }
    assert_true(refused > 50);
    assert_int_equal(unlink(file.path), 0);
    assert_int_equal(unlink(MODEL), 0);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_are_described),
        cmocka_unit_test(test_results_of_a_plugin_go_to_files),
        cmocka_unit_test(test_outputs_are_the_same_for_every_plan),
        cmocka_unit_test(test_models_have_late_nodes),
        cmocka_unit_test(test_nothing_found_is_told),
        cmocka_unit_test(test_memory_is_counted),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_every_refused_block),
    };
    return cmocka_run_group_tests_name("late_job", tests, NULL, NULL);
}
