/* rfexec quantize: the file does not depend on plan, threads and parts; its network answers like
 * the float32 network; wrong files and options are refused. rfexec compare measures what lies
 * between them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli_program.h"

#define NET "mobilenet_v2:0.25"
#define QUANTIZE "quantize " NET " --images list.txt "

static const char list[] =
    "synthetic:96x128:1\nsynthetic:96x128:2\nsynthetic:64x160:3\n"
    "synthetic:64x160:4\nsynthetic:97x65:5\n";

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -f *.onnx *.json"), 0);
    write_file("list.txt", list);
    expect(0, QUANTIZE "-o net.onnx");
    return 0;
}

static void test_file_is_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 3 --threads 1", "--bands 8 --strips 2 --threads 3",
                                        "--untiled --threads 2", "--untiled --row-by-row",
                                        "--memory 20MiB",        "--bands 1 --tight"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, QUANTIZE "-o other.onnx %s", plans[i]);
        expect(0, command);
        assert_same_files("net.onnx", "other.onnx");
    }
}

static void test_parts_add_up(void **state) {
    char command[200];
    (void)state;
    for (int i = 1; i <= 3; ++i) {
        (void)snprintf(command, sizeof command, QUANTIZE "--part %d/3 -o part%d.json", i, i);
        expect(0, command);
    }
    expect(0, "quantize " NET " --counts part2.json,part3.json,part1.json -o other.onnx --json");
    assert_same_files("net.onnx", "other.onnx");
    json_t *doc = document("quantize");
    assert_int_equal(integer_at(doc, "pictures"), 5);
    json_decref(doc);
    expect(0, QUANTIZE "--part 1/1 -o all.json");
    expect(0, "quantize " NET " --counts all.json -o other.onnx");
    assert_same_files("net.onnx", "other.onnx");

    static const struct {
        const char *files, *words;
    } wrong[] = {
        {"part1.json,part2.json", "part 1 of 3, but 2 files are given"},
        {"part1.json,part2.json,part2.json", "part 2 is given twice"},
        {"part1.json,part2.json,nothing.json", "'nothing.json': not a file of value counts"},
        {"part1.json,part2.json,list.txt", "'list.txt': line 1"},
        {"changed.json", "its checksum is wrong"},
        {"other.json", "not a file of value counts of this version"},
    };
    assert_int_equal(system("sed 's/\"pictures\":1/\"pictures\":7/' part1.json >changed.json"), 0);
    write_file("other.json", "{\"format\": \"another\"}\n");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        (void)snprintf(command, sizeof command, "quantize " NET " --counts %s -o no.onnx",
                       wrong[i].files);
        expect_says(3, command, wrong[i].words);
    }
    expect_says(3, "quantize mobilenet_v2:0.5 --counts all.json -o no.onnx", "of 'mobilenet_v2");
    expect_says(3, "quantize " NET " --counts all.json --float classifier.1 -o no.onnx",
                "that these options count");
}

/* Reads the floats of a .npy file. */
static size_t read_npy(const char *path, float *values, size_t most) {
    unsigned char head[10];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, 10, file), 10);
    assert_int_equal(fseek(file, 10 + head[8] + 256 * head[9], SEEK_SET), 0);
    size_t n = fread(values, sizeof *values, most, file);
    (void)fclose(file);
    return n;
}

/* Returns the signal to noise ratio, in dB, of a network's output beside the float32 network's. */
static double ratio_of(const char *net, const char *input) {
    static float exact[1000], values[1000];
    char command[300];
    double signal = 0.0, noise = 0.0;
    (void)snprintf(command, sizeof command, "run " NET " %s -o exact.npy", input);
    expect(0, command);
    (void)snprintf(command, sizeof command, "run %s %s -o values.npy", net, input);
    expect(0, command);
    assert_int_equal(read_npy("exact.npy", exact, 1000), 1000);
    assert_int_equal(read_npy("values.npy", values, 1000), 1000);
    for (int i = 0; i < 1000; ++i) {
        double error = (double)exact[i] - (double)values[i];
        signal += (double)exact[i] * (double)exact[i];
        noise += error * error;
    }
    return 10.0 * log10(signal / noise);
}

static void test_answers_like_the_float32_network(void **state) {
    static const struct {
        const char *options;
        double least; /* dB; about 3 below what was measured */
    } rows[] = {
        {"", 30.0},
        {"--type int8", 30.0},
        {"--symmetric", 27.0},
        {"--type int8 --symmetric", 27.0},
        {"--one-weight-scale", 30.0},
        {"--method percentile", 30.0},
        {"--percentile 99.9", 31.0},
        {"--method entropy", 32.0},
        {"--float features.0.0 --float classifier.1", 33.0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char command[300];
        (void)snprintf(command, sizeof command, QUANTIZE "-o other.onnx %s", rows[i].options);
        expect(0, command);
        double ratio = ratio_of("other.onnx", "synthetic:96x128:9");
        if (!(ratio >= rows[i].least)) fail_msg("'%s': %.1f dB", rows[i].options, ratio);
    }
}

static void test_layers_left_in_float32(void **state) {
    (void)state;
    expect(0, QUANTIZE "-o other.onnx --json");
    json_t *all = document("quantize");
    assert_int_equal(integer_at(all, "layers"), 53);
    assert_int_equal(integer_at(all, "integer_layers"), 53);
    assert_int_equal(integer_at(all, "pictures"), 5);
    assert_int_equal(integer_at(all, "tensors"), 66); /* the image, 53 layers, 11 sums, a mean */
    json_decref(all);
    expect(0, QUANTIZE "-o other.onnx --json --float classifier.1 --float features.2.conv.0.0");
    json_t *some = document("quantize");
    assert_int_equal(integer_at(some, "integer_layers"), 51);
    json_decref(some);
    expect_says(2, QUANTIZE "-o no.onnx --float features.99", "no layer has this name");
    expect_says(2, QUANTIZE "-o no.onnx --float classifier.1 --float classifier.1",
                "is in float32 anyway");
}

/* Layers that --keep-error leaves in float32 are those below the bound; the file is that of --float
 * with their names, for every plan and from the counts of parts. A tensor that is bad as bytes is
 * no bytes any more: both its maker and its readers are left. */
static void test_layers_left_by_their_error(void **state) {
    static char named[8000];
    (void)state;
    expect(0, QUANTIZE "-o kept.onnx --keep-error 35.5 --json");
    json_t *doc = document("quantize"), *kept = at(doc, "kept_by_error"), *row;
    size_t k, used = (size_t)snprintf(named, sizeof named, QUANTIZE "-o other.onnx");
    assert_int_equal(integer_at(doc, "integer_layers"), 43);
    assert_int_equal(integer_at(doc, "other_integer_operators"), 7);
    assert_int_equal(json_array_size(kept), 53 - 43 + 12 - 7);
    json_array_foreach(kept, k, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        double ratio = json_number_value(json_object_get(row, "signal_to_noise_db"));
        assert_true(ratio > 20.0 && ratio < 35.5);
        used += (size_t)snprintf(named + used, sizeof named - used, " --float %s", name);
    }
    expect(0, named);
    assert_same_files("kept.onnx", "other.onnx");
    assert_non_null(strstr(named, "--float features.10.conv.2 --float features.10.add"));
    json_decref(doc);
    double ratio = ratio_of("kept.onnx", "synthetic:96x128:9");
    double all = ratio_of("net.onnx", "synthetic:96x128:9");
    if (!(ratio > all + 0.5)) fail_msg("%.1f dB, %.1f with all layers", ratio, all);

    expect(0, QUANTIZE "-o other.onnx --keep-error 35.5 --bands 3 --threads 1");
    assert_same_files("kept.onnx", "other.onnx");
    assert_non_null(strstr(out_text, "float32    features.10.add, 35.0 dB of its input"));
    for (int i = 1; i <= 2; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, QUANTIZE "--part %d/2 -o half%d.json", i, i);
        expect(0, command);
    }
    expect(0, "quantize " NET " --counts half1.json,half2.json -o other.onnx --keep-error 35.5");
    assert_same_files("kept.onnx", "other.onnx");
    expect(0, QUANTIZE "-o other.onnx --keep-error 10");
    assert_same_files("net.onnx", "other.onnx");
    expect_says(2, QUANTIZE "-o no.onnx --keep-error 60", "no layer that can be computed on bytes");
    expect_says(2, QUANTIZE "-o no.onnx --keep-error 0.0001x", "keep-error");
    expect_says(2, QUANTIZE "-o no.onnx --keep-error -3", "more than 0, at most 200 dB");
    expect_says(2, QUANTIZE "-o no.onnx --keep-error 201", "more than 0, at most 200 dB");
    expect_says(2, QUANTIZE "-o no.json --part 1/2 --keep-error 30", "--part");
}

static void test_wrong_input_is_refused(void **state) {
    (void)state;
    expect_says(3, "quantize net.onnx --images list.txt -o no.onnx", "computes on bytes already");
    expect_says(2, "quantize " NET " --images list.txt", "needs -o");
    expect_says(2, "quantize " NET " -o no.onnx", "--images");
    expect_says(2, QUANTIZE "-o no.onnx --percentile 20", "from 50 to 100");
    expect_says(2, QUANTIZE "-o no.onnx --method minmax --percentile 99", "percentile");
    expect_says(2, QUANTIZE "-o no.json --part 6/5", "not I/N");
    expect_says(2, QUANTIZE "-o no.json --part 1/9", "too few for so many parts");
    expect_says(2, QUANTIZE "-o no.json --counts a.json", "--counts");
    expect_says(4, QUANTIZE "-o no.onnx --memory 8MiB", "needs at least");
    write_file("wrong.txt", "synthetic:96x128:1\nmissing.png\n");
    expect_says(3, "quantize " NET " --images wrong.txt -o no.onnx", "missing.png");
    assert_int_equal(system("rm -rf empty && mkdir empty && touch empty/.hidden"), 0);
    expect_says(3, "quantize " NET " --images empty -o no.onnx", "has no files");
    assert_int_equal(system("test ! -e no.onnx && test ! -e no.json"), 0);
}

/* A folder is read in the order of its names, and a picture is a list of itself; pictures with
 * numbers that are not finite stop. */
static void test_folder(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf pictures && mkdir pictures && mkdir pictures/more"), 0);
    for (int i = 5; i >= 1; --i) {
        static const char *const sizes[] = {"96x128", "96x128", "64x160", "64x160", "97x65"};
        char command[200];
        (void)snprintf(command, sizeof command,
                       "run " NET " synthetic:%s:%d --keep input -o pictures/%d.npy", sizes[i - 1],
                       i, i);
        expect(0, command);
        (void)snprintf(command, sizeof command, "mv pictures/%d.input.npy pictures/%d.npy", i, i);
        assert_int_equal(system(command), 0);
    }
    expect(0, "quantize " NET " --images pictures -o other.onnx");
    assert_same_files("net.onnx", "other.onnx");

    /* A picture, or a computed one, in place of a list. */
    static const char *const ones[] = {"pictures/3.npy", "synthetic:64x160:3", "one.txt"};
    write_file("one.txt", "pictures/3.npy\n");
    for (int i = 0; i < 3; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, "quantize " NET " --images %s -o one%d.onnx",
                       ones[i], i);
        expect(0, command);
    }
    assert_same_files("one2.onnx", "one0.onnx");
    assert_same_files("one2.onnx", "one1.onnx");

    FILE *file = fopen("pictures/3.npy", "r+b");
    const float nan = NAN;
    assert_non_null(file);
    assert_int_equal(fseek(file, -4000, SEEK_END), 0);
    assert_int_equal(fwrite(&nan, sizeof nan, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    expect_says(3, "quantize " NET " --images pictures -o no.onnx",
                "has values that are not finite");
}

/* A detector has tensors that depend on the size of the picture. */
static void test_file_is_for_the_size_that_is_asked(void **state) {
    (void)state;
    write_file("small.txt", "synthetic:64x96:1\nsynthetic:96x64:2\n");
    expect(0, "quantize yolov8n --images small.txt --size 160x192 -o wide.onnx");
    expect(0, "quantize yolov8n --images small.txt --part 1/1 -o small.json");
    expect(0, "quantize yolov8n --counts small.json --size 160x192 -o other.onnx");
    assert_same_files("wide.onnx", "other.onnx");
    expect(0, "run wide.onnx synthetic:160x192 --bands 32 --boxes wide.json");
    expect(0, "quantize yolov8n --images small.txt -o first.onnx");
    expect(0, "run first.onnx synthetic:64x96 --boxes first.json");
    expect_says(3, "run first.onnx synthetic:160x192 --boxes no.json", "first.onnx");
    expect_says(2, "quantize yolov8n --images small.txt --part 1/1 --size 64x96 -o no.json",
                "--size");
}

/* A large image in a small budget is streamed with hardly a halo that is computed twice. */
static void test_few_multiplications_in_a_small_budget(void **state) {
    (void)state;
    expect(0, "quantize mobilenet_v2 --images synthetic:96x128 -o large.onnx");
    for (int threads = 1; threads <= 2; ++threads) {
        char command[200];
        (void)snprintf(command, sizeof command,
                       "plan large.onnx --size 4096x4096 --memory 24MiB --threads %d --json",
                       threads);
        expect(0, command);
        json_t *doc = document("plan");
        double ratio = json_real_value(at(doc, "plan.macs_ratio"));
        json_decref(doc);
        if (!(ratio >= 1.0 && ratio <= 1.05)) fail_msg("%d threads: %.3f", threads, ratio);
    }
}

/* --- rfexec compare --- */

/* The tensor of a name in the document of rfexec compare. */
static json_t *tensor_of(json_t *doc, const char *name) {
    size_t k;
    json_t *row;
    json_array_foreach(
        at(doc, "tensors"), k,
        row) if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) return row;
    fail_msg("no tensor %s", name);
    return NULL;
}

static double number_of(json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

static void test_compare_measures_outputs(void **state) {
    (void)state;
    double exact = ratio_of("net.onnx", "synthetic:96x128:9");
    expect(0, "compare " NET " net.onnx synthetic:96x128:9 --json");
    json_t *doc = document("compare"), *row = tensor_of(doc, "output");
    assert_int_equal(json_array_size(at(doc, "tensors")), 1);
    assert_true(fabs(number_of(row, "signal_to_noise_db") - exact) < 1e-6);
    assert_int_equal(integer_at(row, "elements"), 1000);
    assert_true(number_of(row, "other_class_share") == 0.0);
    json_decref(doc);

    expect(0, "compare " NET " " NET " --images list.txt --json --layers");
    doc = document("compare");
    assert_true(json_array_size(at(doc, "tensors")) > 50);
    row = tensor_of(doc, "output");
    assert_true(json_is_null(json_object_get(row, "signal_to_noise_db")));
    assert_int_equal(integer_at(row, "elements"), 5000);
    json_decref(doc);
}

/* A tensor of the quantised network is compared in units of the float32 network, wherever batch
 * norm and activation went, and under every plan. */
static void test_compare_measures_layers(void **state) {
    static const char *const plans[] = {"", "--bands 4 --strips 3", "--memory 24MiB --threads 1",
                                        "--untiled"};
    static const char *const layers[] = {"features.0", "features.1.conv.0.2", "features.1",
                                         "features.3", "avgpool"};
    double first[5] = {0.0};
    (void)state;
    for (size_t p = 0; p < 4; ++p) {
        char command[300];
        (void)snprintf(command, sizeof command,
                       "compare " NET " net.onnx synthetic:96x128:9 --json --layers %s", plans[p]);
        expect(0, command);
        json_t *doc = document("compare");
        assert_true(json_array_size(at(doc, "tensors")) > 60);
        for (size_t k = 0; k < 5; ++k) {
            double ratio = number_of(tensor_of(doc, layers[k]), "signal_to_noise_db");
            if (!(ratio > 20.0 && ratio < 60.0)) fail_msg("%s: %.1f dB", layers[k], ratio);
            if (p == 0) first[k] = ratio;
            assert_true(fabs(ratio - first[k]) < 1e-6);
        }
        json_decref(doc);
    }
}

static void test_compare_refuses(void **state) {
    (void)state;
    expect_says(3, "compare " NET " fsrcnn synthetic:64x64", "outputs of other numbers or sizes");
    expect_says(2, "compare " NET " net.onnx", "either INPUT or --images");
    expect_says(2, "compare " NET " net.onnx synthetic:64x64 --images list.txt",
                "either INPUT or --images");
    expect_says(3, "compare " NET " missing.onnx synthetic:64x64", "missing.onnx");
    expect_says(4, "compare " NET " net.onnx synthetic:640x640 --memory 7MiB", "needs at least");
}

/* A built-in network on bytes gives the bytes of the file that export writes for it, under every
 * plan, and every command takes its name. */
static void test_builtin_names(void **state) {
    static const char *const names[] = {"fsrcnn", "resnet18", "deeplab_v3"};
    static const char *const plans[] = {"", "--tiles 2x2 --threads 1", "--bands 5 --threads 3",
                                        "--untiled --row-by-row --int8 spec"};
    char command[300];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        (void)snprintf(command, sizeof command, "export %s:int8 --size 65x48 -o named.onnx",
                       names[i]);
        expect(0, command);
        for (size_t p = 0; p < sizeof plans / sizeof plans[0]; ++p) {
            (void)snprintf(command, sizeof command, "run named.onnx synthetic:65x48 -o file.npy %s",
                           plans[p]);
            expect(0, command);
            (void)snprintf(command, sizeof command, "run %s:int8 synthetic:65x48 -o name.npy %s",
                           names[i], plans[p]);
            expect(0, command);
            assert_same_files("file.npy", "name.npy");
        }
        (void)snprintf(command, sizeof command, "verify %s:int8 synthetic:65x48 --bands 7",
                       names[i]);
        expect(0, command);
        (void)snprintf(command, sizeof command, "compare %s %s:int8 synthetic:96x128:9 --json",
                       names[i], names[i]);
        expect(0, command);
        json_t *doc = document("compare");
        double ratio = number_of(json_array_get(at(doc, "tensors"), 0), "signal_to_noise_db");
        json_decref(doc);
        /* synthetic: pictures fill a third of the ranges */
        if (!(ratio > 8.0)) fail_msg("%s: %.1f dB", names[i], ratio);
    }
    expect(0, "models --json");
    assert_non_null(strstr(out_text, "\"mobilenet_v2:int8\""));
    expect(0, "plan mobilenet_v2:int8 --size 512x512 --memory 16MiB");
    expect(0, "analyze yolov8n:int8 --size 64x64");
    expect_says(2, "run mobilenet_v2:int8 synthetic:64x64 --seed 1", "ranges of its tensors");
    expect_says(2, "export vgg16:int8 -o no.onnx", "':int8' follows only the names mobilenet_v2");
    expect_says(3, "quantize fsrcnn:int8 --images list.txt -o no.onnx", "on bytes already");
    assert_int_equal(system("test ! -e no.onnx"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_is_the_same_for_every_plan),
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_answers_like_the_float32_network),
        cmocka_unit_test(test_layers_left_in_float32),
        cmocka_unit_test(test_layers_left_by_their_error),
        cmocka_unit_test(test_wrong_input_is_refused),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_few_multiplications_in_a_small_budget),
        cmocka_unit_test(test_compare_measures_outputs),
        cmocka_unit_test(test_compare_measures_layers),
        cmocka_unit_test(test_compare_refuses),
        cmocka_unit_test(test_file_is_for_the_size_that_is_asked),
        cmocka_unit_test(test_builtin_names),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
