/* What is said of a model before it is run: check, explain, and the smallest budget of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli_program.h"
#include "tests/support/makers/onnx_maker.h"

#define NET "mobilenet_v2"

static struct maker graph, model;

static void save(const char *path) {
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

static void has(const char *words) {
    if (strstr(out_text, words) == NULL) fail_msg("no \"%s\" in\n%s", words, out_text);
}

/* All operators that are not there, not the first alone. */
static void test_unsupported(void **state) {
    static const int64_t image[] = {1, 3, 32, 32};
    (void)state;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_add(&graph, "MaxRoiPool", "image", "a");
    maker_add(&graph, "Relu", "a", "b");
    maker_add(&graph, "StringConcat", "b", "c");
    maker_add(&graph, "MaxRoiPool", "c", "d");
    maker_value(&graph, MAKER_OUTPUT, "d", NULL, 0);
    save("cli_check_unknown.onnx");
    expect_says(3, "check cli_check_unknown.onnx", "cannot be run");
    has("2 of 3 are not supported");
    has("MaxRoiPool                  2 nodes");
    has("StringConcat                1 node ");
    expect(3, "check cli_check_unknown.onnx --json");
    json_t *doc = document("check");
    assert_true(json_is_false(at(doc, "runs")));
    json_t *first = json_array_get(at(doc, "operators"), 0);
    assert_string_equal(json_string_value(at(first, "name")), "MaxRoiPool");
    assert_int_equal(integer_at(first, "nodes"), 2);
    assert_true(json_is_false(at(first, "supported")));
    json_decref(doc);
}

/* Operators that are there, in a way that is not: the loader's reason. */
static void test_unsupported_use(void **state) {
    static const int64_t image[] = {2, 3, 32, 32};
    (void)state;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_add(&graph, "Relu", "image", "a");
    maker_add(&graph, "Transpose", "a", "b"); /* turns all axes around */
    maker_value(&graph, MAKER_OUTPUT, "b", NULL, 0);
    save("cli_check_batch.onnx");
    expect(3, "check cli_check_batch.onnx");
    has("all 2 are supported");
    has("fixed to a batch of 2, and this node does not work image by image (it moves the batch");
    expect_says(3, "check mobilnet_v2", "did you mean 'mobilenet_v2'");
    write_file("cli_check.png", "\x89PNG and more");
    expect_says(3, "check cli_check.png", "is a PNG file, not an .onnx one");
    write_file("cli_check.txt", "words");
    expect_says(3, "check cli_check.txt", "cli_check.txt");
    expect_says(3, "check vgg16 --size 8x8", "cannot be run");
    has("kernel 2x2, dilation 1x1 exceeds padded input of 1x1");
}

static void test_streams(void **state) {
    static const int64_t open[] = {1, 3, 0, 0};
    (void)state;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", open, 4);
    maker_add(&graph, "Relu", "image", "a");
    maker_add(&graph, "GlobalAveragePool", "a", "p");
    maker_add(&graph, "Mul", "a p", "m");
    maker_value(&graph, MAKER_OUTPUT, "m", NULL, 0);
    save("cli_check_gate.onnx");
    expect(0, "check cli_check_gate.onnx");
    has("1x3x512x512 (the model leaves rows and columns open");
    has("streams    yes");
    has("in up to 2 passes: what follows 1 sum ");
    expect(0, "check cli_check_gate.onnx --size 40x50 --json");
    json_t *doc = document("check");
    assert_true(json_is_true(at(doc, "streams")));
    assert_int_equal(integer_at(doc, "passes"), 2);
    assert_int_equal(json_integer_value(json_array_get(at(doc, "input"), 2)), 40);
    json_decref(doc);

    static const int64_t perm[] = {0, 1, 3, 2}; /* a product of whole matrices */
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", open, 4);
    maker_add(&graph, "Relu", "image", "a");
    maker_add_ints(&graph, "Transpose", "a", "t", "perm", perm, 4);
    maker_add(&graph, "MatMul", "a t", "m");
    maker_value(&graph, MAKER_OUTPUT, "m", NULL, 0);
    save("cli_check_whole.onnx");
    expect(0, "check cli_check_whole.onnx --size 32x32");
    has("streams    in part");
    has("needs all of its input, 1x3x32x32 (12.0 KiB)");
    expect(0, "check " NET " --json");
    doc = document("check");
    assert_int_equal(integer_at(doc, "macs"), 300774272);
    assert_true(json_is_true(at(doc, "streams")));
    json_decref(doc);
}

static int lines(void) {
    int n = 0;
    for (const char *p = out_text; (p = strchr(p, '\n')) != NULL; ++p) n++;
    return n;
}

/* The figures are the plan's own. */
static void test_explain(void **state) {
    char words[64];
    (void)state;
    expect(0, "plan " NET " --size 2048x2048 --memory 40MiB --threads 2 --for-output none --json");
    json_t *doc = document("plan");
    double ratio = json_real_value(at(doc, "plan.macs_ratio"));
    size_t stages = json_array_size(at(doc, "plan.stages"));
    json_decref(doc);
    expect(0, "explain " NET " --size 2048x2048 --memory 40MiB --threads 2");
    assert_in_range(lines(), 7, 14);
    has("1x3x2048x2048");
    has("more than the budget of 40.0 MiB");
    (void)snprintf(words, sizeof words, "Stage 1 of %zu: ", stages);
    has(words);
    has("the image's rows stream through");
    if (stages == 2) has(": 53 layers up to 'avgpool'"); /* 52 convolutions and the pool */
    if (ratio > 1.0) {
        (void)snprintf(words, sizeof words, "%.1f %% more MACs", 100.0 * (ratio - 1.0));
        has(words);
    }
    has("Smallest possible budget over all plans: --memory ");
    expect(0, "explain " NET " --size 512x512 --no-groups");
    has("Without --memory whole maps are made");
    has("Nothing is computed twice");
    expect(0, "explain " NET " --size 512x512 --tiles 3x3 --no-groups");
    has("in 3x3 tiles");
    has("where tiles or strips overlap");
    expect(0, "explain nafnet --size 1024x1280 --memory 116MiB --threads 2");
    assert_non_null(strstr(out_text, " of them for some of the stages that need them: later ones"));
    expect_says(4, "explain " NET " --size 512x512 --memory 1MiB", "needs at least");
}

/* What is meant is asked, or what to write instead said. */
static void test_slips(void **state) {
    (void)state;
    expect_says(4, "plan fsrcnn --size 64x64 --memory 64", "as in --memory 64MiB?");
    expect(4, "plan fsrcnn --size 64x64 --memory 1MiB");
    assert_null(strstr(err_text, "was a unit left out"));
    expect_says(2, "run fsrcnn synthetic:40x40 -o .", "-o '.' is a folder");
    expect_says(2, "run fsrcnn synthetic:40x40 -o ./", "such as ./map.npy");
    expect_says(0, "plan fsrcnn --size 64x64 --threads 1024", "processors may be used");
    expect(0, "plan fsrcnn --size 64x64 --threads 1");
    assert_string_equal(err_text, "");
}

static size_t number_after(const char *text, const char *words) {
    const char *at_words = strstr(text, words);
    if (at_words == NULL) fail_msg("no \"%s\" in\n%s", words, text);
    return (size_t)strtoull(at_words + strlen(words), NULL, 10);
}

/* Of plans by hand and several threads: what they need, and the smallest of all with the options
 * that reach it; one byte less is refused. */
static void test_least(void **state) {
    char args[256];
    (void)state;
    expect(4, "plan " NET " --size 512x512 --untiled --threads 2 --memory 1MiB");
    size_t own = number_after(err_text, "run again with --memory ");
    const char *line = strstr(err_text, "the smallest possible budget is ");
    assert_non_null(line);
    size_t least = number_after(line, "--memory ");
    assert_true(least < own);
    assert_non_null(strstr(line, "--threads 1, and no option that says how to run"));
    (void)snprintf(args, sizeof args, "plan " NET " --size 512x512 --threads 1 --memory %zu",
                   least);
    expect(0, args);
    (void)snprintf(args, sizeof args, "plan " NET " --size 512x512 --threads 1 --memory %zu",
                   least - 1);
    expect(4, args);
    assert_null(strstr(err_text, "with these options"));
    assert_int_equal(number_after(err_text, "run again with --memory "), least);
    expect(4, "plan " NET " --size 512x512 --untiled --threads 2 --memory 1MiB --json");
    json_t *doc = document("plan");
    assert_int_equal(integer_at(doc, "smallest_bytes"), own);
    assert_int_equal(integer_at(doc, "least.bytes"), least);
    assert_int_equal(integer_at(doc, "least.threads"), 1);
    json_decref(doc);
}

/* The figure after these words; SIZE_MAX when the command has another exit code. */
static size_t figure(int code, const char *args, const char *words) {
    expect(code, args);
    return number_after(code == 0 ? out_text : err_text, words);
}

/* One request has one figure, whichever command says it: files of -o count for all. */
static void test_one_figure(void **state) {
    static const char *const files[] = {"", " -o one.npy", " -o one.tif", " -o one.tif --cog",
                                        " --report one.html --overlay one.png"};
    const char *words = "run again with --memory ";
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i) {
        char args[256];
        (void)snprintf(args, sizeof args, "run fsrcnn synthetic:160x160%s --memory 1MiB", files[i]);
        size_t of_run = figure(4, args, words);
        (void)snprintf(args, sizeof args, "explain fsrcnn synthetic:160x160%s --memory 1MiB",
                       files[i]);
        assert_int_equal(figure(4, args, words), of_run);
    }
    size_t of_plan = figure(4, "plan fsrcnn --size 160x160 --memory 1MiB", words);
    assert_int_equal(of_plan,
                     figure(4, "explain fsrcnn --size 160x160 -o a.npy --memory 1MiB", words));
    expect(0, "explain fsrcnn --size 160x160 -o a.npy --json");
    json_t *doc = document("explain");
    long long whole = integer_at(doc, "run_untiled_bytes");
    assert_true(json_array_size(at(doc, "sentences")) >= 7);
    assert_int_equal(integer_at(doc, "plan.peak_bytes"), whole);
    json_decref(doc);
    expect(0, "advise fsrcnn --size 160x160 --json");
    doc = document("advise");
    assert_int_equal(integer_at(doc, "run_untiled_bytes"), whole);
    json_decref(doc);
    expect(0, "plan fsrcnn --size 160x160 --json");
    doc = document("plan");
    assert_int_equal(integer_at(doc, "plan.peak_bytes"), whole);
    json_decref(doc);
    expect_says(2, "explain fsrcnn synthetic:40x40 --part 1/2 -o a.npy", "plan --parts");
    expect(0, "explain fsrcnn synthetic:40x40 -o -");
    has("Memory: ");
}

/* A budget that lacks one byte does not read as if it were enough. */
static void test_one_byte_short(void **state) {
    char args[256], words[128];
    (void)state;
    size_t least = figure(4, "run fsrcnn synthetic:160x160 --threads 1 --memory 1MiB",
                          "run again with --memory ");
    (void)snprintf(args, sizeof args, "run fsrcnn synthetic:160x160 --threads 1 --memory %zu",
                   least - 1);
    (void)snprintf(words, sizeof words, "(%zu bytes, --memory %zu), the budget is %zu bytes", least,
                   least, least - 1);
    expect_says(4, args, words);
}

/* The picture and the model in each other's place. */
static void test_exchanged(void **state) {
    static const char *const cases[] = {"pic.png net.onnx", "pic.png fsrcnn", "no.png fsrcnn",
                                        "synthetic:40x40 fsrcnn", "pic.png net.bin"};
    static const char *const commands[] = {"run", "explain", "plan", "bench", "verify"};
    (void)state;
    expect(0, "export fsrcnn -o net.onnx");
    expect(0, "run fsrcnn synthetic:40x40 -o pic.png");
    write_file("net.bin", "no picture");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (size_t k = 0; k < sizeof commands / sizeof commands[0]; ++k) {
            char args[128];
            (void)snprintf(args, sizeof args, "%s %s", commands[k], cases[i]);
            expect_says(3, args, "the model comes first, then the picture");
        }
}

static double seconds_of(const char *args) {
    expect(0, args);
    json_t *doc = document("plan");
    double seconds = json_real_value(at(doc, "plan.predicted_seconds"));
    json_decref(doc);
    return seconds;
}

static int count_speeds(const char *folder) {
    char command[64];
    (void)snprintf(command, sizeof command, "find %s -name 'speed-*'", folder);
    FILE *list = popen(command, "r");
    int n = 0;
    assert_non_null(list);
    for (int c; (c = fgetc(list)) != EOF;) n += c == '\n';
    (void)pclose(list);
    return n;
}

/* Seconds are of this processor: measured once and kept, or as the environment says; the plan does
 * not depend on them. A folder that cannot be written is no error. */
static void test_speed(void **state) {
    const char *args = "plan fsrcnn --size 64x64 --threads 1 --memory 8MiB --json";
    (void)state;
    assert_int_equal(setenv("RFX_MACHINE_SPEED", "1", 1), 0);
    double once = seconds_of(args);
    expect(0, "plan fsrcnn --size 64x64 --threads 1 --memory 8MiB -o plan_a.json");
    assert_int_equal(setenv("RFX_MACHINE_SPEED", "4", 1), 0);
    assert_true(seconds_of(args) > 0.2499 * once && seconds_of(args) < 0.2501 * once);
    expect(0, "plan fsrcnn --size 64x64 --threads 1 --memory 8MiB -o plan_b.json");
    assert_int_equal(system("cmp plan_a.json plan_b.json"), 0);
    assert_int_equal(unsetenv("RFX_MACHINE_SPEED"), 0);
    assert_int_equal(system("rm -rf speeds && mkdir speeds"), 0);
    char folder[4096];
    assert_non_null(realpath("speeds", folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    double measured = seconds_of(args);
    assert_int_equal(count_speeds("speeds"), 1);
    assert_true(measured > 0.0 && seconds_of(args) == measured);
    assert_int_equal(count_speeds("speeds"), 1);
    assert_int_equal(system("for f in speeds/rfexec/speed-*; do echo 'no key' > $f; done"), 0);
    assert_true(seconds_of(args) > 0.0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/proc/nothing", 1), 0);
    assert_true(seconds_of(args) > 0.0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(setenv("RFX_MACHINE_SPEED", "1", 1), 0);
}

/* A PNG is decoded again for every strip, an uncompressed TIFF is not. */
static void test_decoded_again(void **state) {
    enum { SAMPLES = 240 * 240 * 3, STRIPS = 5 };
    (void)state;
    expect(0, "run fsrcnn synthetic:120x120 -o again.png");
    expect(0, "run fsrcnn synthetic:120x120 -o again.tif --bits 8");
    double png = seconds_of("plan fsrcnn again.png --bands 8 --strips 5 --threads 1 --json");
    double tif = seconds_of("plan fsrcnn again.tif --bands 8 --strips 5 --threads 1 --json");
    double passes = (png - tif) / (4800e-12 * SAMPLES);
    assert_true(passes > STRIPS - 0.01 && passes < STRIPS + 0.01);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsupported),   cmocka_unit_test(test_unsupported_use),
        cmocka_unit_test(test_streams),       cmocka_unit_test(test_explain),
        cmocka_unit_test(test_slips),         cmocka_unit_test(test_least),
        cmocka_unit_test(test_one_figure),    cmocka_unit_test(test_one_byte_short),
        cmocka_unit_test(test_exchanged),     cmocka_unit_test(test_speed),
        cmocka_unit_test(test_decoded_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
