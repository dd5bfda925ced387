/* The rfexec program as a user scripts it: exit codes, messages, JSON keys, files. Every case
 * starts the program through the shell; expected values are the contract's and facts known of the
 * networks, not the program's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli_program.h"

static void test_help(void **state) {
    static const char *const names[] = {"analyze", "plan",  "curve",  "advise", "run",
                                        "verify",  "bench", "export", "models", "operators"};
    (void)state;
    assert_int_equal(rfexec(""), 2);
    assert_non_null(strstr(err_text, "usage: rfexec"));
    assert_string_equal(out_text, "");
    expect(0, "help");
    assert_non_null(strstr(out_text, "exit codes"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        char args[64];
        assert_non_null(strstr(out_text, "verify"));
        (void)snprintf(args, sizeof args, "help %s", names[i]);
        expect(0, args);
        assert_non_null(strstr(out_text, "examples"));
        (void)snprintf(args, sizeof args, "%s --help", names[i]);
        expect(0, args);
        assert_non_null(strstr(out_text, "examples"));
        expect(0, "help");
    }
    expect(0, "version");
    assert_string_equal(out_text, "rfexec 0.2.0\n");
}

/* Without a budget, pictures that are decoded whole have a limit that can be raised. */
static void test_max_pixels(void **state) {
    (void)state;
    static char file[16 + 32 * 32] = "P5 32 32 255\n";
    FILE *out = fopen("cli_whole.pgm", "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file, 1, 13 + 32 * 32, out), 13 + 32 * 32);
    assert_int_equal(fclose(out), 0);
    expect(0, "run table1 cli_whole.pgm");
    expect_says(3, "run table1 cli_whole.pgm --max-pixels 1023", "--max-pixels");
    expect_says(3, "plan table1 cli_whole.pgm --max-pixels 1023", "32 x 32");
    expect(0, "run table1 cli_whole.pgm --max-pixels 1024");
    expect(0, "run table1 synthetic:32x32 --max-pixels 1");
    expect_says(2, "run table1 cli_whole.pgm --max-pixels 0", "--max-pixels");
    out = fopen("cli_whole.pgm", "wb");
    assert_non_null(out);
    assert_true(fputs("P5 20000 20000 255\n12345", out) >= 0);
    assert_int_equal(fclose(out), 0);
    expect_says(3, "run table1 cli_whole.pgm", "--max-pixels");
    expect(4, "run table1 cli_whole.pgm --memory 64MiB"); /* the budget decides */
    (void)remove("cli_whole.pgm");
}

static void test_usage_errors(void **state) {
    static const struct {
        const char *args, *words;
    } cases[] = {
        {"anlyze mobilenet_v2", "did you mean 'analyze'?"},
        {"transmogrify", "'rfexec help' lists them"},
        {"help nothing", "unknown command 'nothing'"},
        {"run mobilenet_v2", "run needs 2 arguments, 1 given"},
        {"run mobilenet_v2 synthetic:64x64 more", "one argument too many: 'more'"},
        {"run mobilenet_v2 synthetic:64x64 --memroy 64MiB", "did you mean '--memory'?"},
        {"run mobilenet_v2 synthetic:64x64 --memory", "needs a value"},
        {"run mobilenet_v2 synthetic:64x64 --memory 64Mb1", "64Mb1"},
        {"run mobilenet_v2 synthetic:64x64 --memory 0", "positive number of bytes"},
        {"run mobilenet_v2 synthetic:64x64 --memory 99999999999GiB", "positive number of bytes"},
        {"run mobilenet_v2 synthetic:64x64 --memory -5", "positive number of bytes"},
        {"run mobilenet_v2 synthetic:64x64 --tiles 4", "rows x columns"},
        {"run mobilenet_v2 synthetic:64x64 --tiles 0x4", "rows x columns"},
        {"run mobilenet_v2 synthetic:64x64 --threads 0", "a whole number from 1 to 1024"},
        {"run mobilenet_v2 synthetic:64x64 --memory .GiB", "positive number of bytes"},
        {"run mobilenet_v2 synthetic:64x64 --std 1,0,1", "--std"},
        {"run mobilenet_v2 synthetic:64x64 --mean 1,2",
         "mean has 2 numbers, the network takes 3 channels"},
        {"run mobilenet_v2 synthetic:64x64 --mean 1,2,", "--mean"},
        {"run mobilenet_v2 synthetic:64x64 --scale rw", "raw"},
        {"run mobilenet_v2 synthetic:64x64 --untiled --tiles 2x2", "excludes"},
        {"run mobilenet_v2 synthetic:64x64 --csv", "not one of this command's"},
        {"run mobilenet_v2 synthetic:64x64 --json=yes", "takes no value"},
        {"run mobilenet_v2 synthetic:64x64 -x", "unknown option '-x'"},
        {"run mobilenet_v2 synthetic:64x64 -o out.txt",
         ".npy, .tif, .ome.tif, .png, .zarr, .ome.zarr, .pfm, .geojson, .csv, .json, .coco.json, "},
        {"run mobilenet_v2 synthetic:64x64 -o out.png", "use .npy"},
        {"run mobilenet_v2 synthetic:64x64 -o out.tif", "use .npy"},
        {"run unet synthetic:64x64 -o out.png", "the map has 2; use .tif or .npy"},
        {"run fsrcnn synthetic:64x64 -o out.npy --bits 16", "samples of 32 bits, not 16"},
        {"run fsrcnn synthetic:64x64 -o out.npy --range 0,1", "range"},
        {"run fsrcnn synthetic:64x64 -o out.png --bits 33", "--bits"},
        {"run fsrcnn synthetic:64x64 -o out.png --range 1,0", "two rising numbers"},
        {"run fsrcnn synthetic:64x64 -o out.png --range 0", "two rising numbers"},
        {"run fsrcnn synthetic:64x64 --bits 16", "for the file of -o"},
        {"run mobilenet_v2 synthetic:64x64 --tiles 2x2 --split nowhere", "nowhere"},
        {"export mobilenet_v2", "-o"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        expect_says(2, cases[i].args, cases[i].words);
        assert_string_equal(out_text, "");
    }
}

static void test_refused(void **state) {
    (void)state;
    write_file("cli_broken.onnx", "this is not a protobuf message at all");
    write_file("cli_broken.png", "\x89PNG\r\n\x1a\nbroken");
    write_file("cli_broken.npy", "\x93NUMPY\x01");
    expect_says(3, "analyze no_such_net", "no_such_net");
    expect_says(0, "plan mobilenet_v2 --size 32x32 --tiles 64x2 --split features.5",
                "4x2 tiles instead of 64x2");
    expect_says(0, "run fsrcnn synthetic:32x32 --threads 1 -j 2", "'--threads' is given twice");
    expect_says(3, "analyze mobilnet_v2", "did you mean 'mobilenet_v2'?");
    expect_says(3, "analyze mobilenet_v3", "'mobilenet_v3_large' or 'mobilenet_v3_small'?");
    expect_says(3, "plan cli_broken.png", "is a PNG file, not an .onnx one");
    expect_says(3, "analyze cli_broken.onnx", "cli_broken.onnx");
    expect_says(3, "run mobilenet_v2 no_such_picture.png", "no_such_picture.png");
    expect_says(3, "run mobilenet_v2 cli_broken.png", "cli_broken.png");
    expect_says(3, "run mobilenet_v2 cli_broken.npy", "cli_broken.npy");
    expect_says(2, "run mobilenet_v2 synthetic:64", "synthetic");
    expect_says(3, "export no_such_net -o cli_no.onnx", "no_such_net");
    expect_says(3, "export resnet5 -o cli_no.onnx", "did you mean 'resnet50' or 'resnet50:int8'?");
}

static void test_run_json(void **state) {
    static const char *const integers[] = {"plan.peak_bytes",
                                           "plan.macs",
                                           "plan.macs_untiled",
                                           "plan.breakdown.arena",
                                           "plan.breakdown.weights",
                                           "plan.breakdown.scratch",
                                           "plan.breakdown.source",
                                           "plan.breakdown.reserve",
                                           "measured.peak_rss_bytes",
                                           "measured.arena_high_water_bytes",
                                           "measured.macs"};
    (void)state;
    expect(0,
           "run mobilenet_v2 synthetic:161x193 --tiles 2x3 --split features.6 --threads 2 "
           "--top 3 --json");
    json_t *doc = document("run");
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; ++i)
        assert_true(integer_at(doc, integers[i]) >= 0);
    long long sum =
        integer_at(doc, "plan.breakdown.arena") + integer_at(doc, "plan.breakdown.weights") +
        integer_at(doc, "plan.breakdown.scratch") + integer_at(doc, "plan.breakdown.source") +
        integer_at(doc, "plan.breakdown.reserve");
    assert_int_equal(sum, integer_at(doc, "plan.peak_bytes"));
    assert_int_equal(integer_at(doc, "plan.macs"), integer_at(doc, "measured.macs"));
    assert_true(integer_at(doc, "plan.macs") > integer_at(doc, "plan.macs_untiled"));
    assert_true(json_is_real(at(doc, "measured.seconds")));
    assert_int_equal(json_array_size(at(doc, "plan.stages")), 2);
    assert_string_equal(json_string_value(at(json_array_get(at(doc, "plan.stages"), 0), "mode")),
                        "tiled");
    assert_int_equal(json_integer_value(json_array_get(at(doc, "plan.tiles"), 1)), 3);
    assert_int_equal(json_array_size(at(doc, "output.shape")), 2);
    assert_int_equal(json_integer_value(json_array_get(at(doc, "output.shape"), 1)), 1000);
    assert_int_equal(json_array_size(at(doc, "top")), 3);
    char hash[64];
    (void)snprintf(hash, sizeof hash, "%s", json_string_value(at(doc, "output.hash")));
    assert_int_equal(strlen(hash), 32);
    json_decref(doc);
    expect(0, "run mobilenet_v2 synthetic:161x193 --untiled --threads 1");
    assert_non_null(strstr(out_text, hash)); /* the same bits another way */
    expect(0, "run mobilenet_v2 synthetic:161x193 --seed 7");
    assert_null(strstr(out_text, hash)); /* other weights */
}

static void test_outputs(void **state) {
    (void)state;
    (void)unlink("cli_out.npy");
    expect(0, "run mobilenet_v2 synthetic:96x96 -o cli_out.npy");
    FILE *file = fopen("cli_out.npy", "rb");
    assert_non_null(file);
    char magic[6];
    assert_int_equal(fread(magic, 1, 6, file), 6);
    assert_memory_equal(magic, "\x93NUMPY", 6);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(ftell(file) % 64, (1000 * 4) % 64); /* header of a multiple of 64 bytes */
    (void)fclose(file);
    expect(5, "run mobilenet_v2 synthetic:96x96 -o no_such_folder/out.npy");
    expect(5, "run mobilenet_v2 synthetic:96x96 --json >/dev/full");
    write_file("cli_labels.txt", "zero\r\none\n");
    expect_says(0, "run mobilenet_v2 synthetic:96x96 --top 1000 --labels cli_labels.txt",
                "2 names for 1000 classes");
    assert_non_null(strstr(out_text, "  zero\n"));
    expect(3, "run mobilenet_v2 synthetic:96x96 --labels no_such_labels.txt");
}

/* One file and one hash, whatever the plan: stored, handed out by rows, stitched from tiles. */
static void test_outputs_of_plans(void **state) {
    static const char *const plans[] = {"--untiled", "--bands 4", "--tiles 3x2"};
    static const char *const formats[] = {"cli_map.npy", "cli_map.tif", "cli_map.png",
                                          "cli_map.png --bits 16 --range -1,1",
                                          "cli_map.tiff --bits 8"};
    (void)state;
    for (int f = 0; f < 5; ++f) {
        char args[256], name[32], first_hash[64] = "";
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(formats[f], " "), formats[f]);
        for (int p = 0; p < 3; ++p) {
            (void)snprintf(args, sizeof args, "run fsrcnn synthetic:40x56 --json %s -o %s",
                           plans[p], formats[f]);
            expect(0, args);
            json_t *doc = document("run");
            const char *hash = json_string_value(at(doc, "output.hash"));
            if (p == 0) (void)snprintf(first_hash, sizeof first_hash, "%s", hash);
            assert_string_equal(hash, first_hash);
            json_decref(doc);
            char command[128];
            (void)snprintf(command, sizeof command, p == 0 ? "mv %s cli_first" : "cmp %s cli_first",
                           name);
            assert_int_equal(system(command), 0);
            if (p > 0) assert_int_equal(unlink(name), 0);
        }
    }
    assert_int_equal(unlink("cli_first"), 0);
    /* several outputs, each in a file of its own */
    expect(0, "run posenet synthetic:65x65 -o cli_pose.tif");
    static const char *const parts[] = {"heatmaps", "short_offsets", "mid_offsets", "segments"};
    for (int i = 0; i < 4; ++i) {
        (void)snprintf(out_text, TEXT_BYTES, "cli_pose.float_%s.tif", parts[i]);
        assert_int_equal(unlink(out_text), 0);
    }
    assert_int_equal(access("cli_pose.tif", F_OK), -1);
}

/* A run that is stopped leaves nothing behind, neither under the final name nor beside it. */
static void test_cancelled(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf cli_stop && mkdir cli_stop"), 0);
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "timeout -s INT 1 '%s' run resnet50 synthetic:3000x3000 --tiles 16x16 "
                   "--split layer2.3 -o cli_stop/out.npy >cli_out.txt 2>cli_err.txt; code=$?; "
                   "[ -z \"$(ls -A cli_stop)\" ] || exit 99; exit $code",
                   RFX_PROGRAM);
    int status = system(command);
    read_text("cli_err.txt", err_text);
    /* 124: timeout sent the signal and rfexec ended after it */
    assert_int_equal(WEXITSTATUS(status), 124);
    assert_non_null(strstr(err_text, "rfexec: stopped"));
}

static void test_budget_round_trip(void **state) {
    (void)state;
    expect_says(4, "run mobilenet_v2 synthetic:1024x1024 --memory 1MiB --threads 1",
                "smallest possible budget");
    const char *number = strstr(err_text, "again with --memory ");
    assert_non_null(number);
    unsigned long long smallest = strtoull(number + strlen("again with --memory "), NULL, 10);
    assert_string_equal(out_text, "");

    expect(4, "run mobilenet_v2 synthetic:1024x1024 --memory 1MiB --threads 1 --json");
    json_t *doc = document("run");
    assert_int_equal(integer_at(doc, "smallest_bytes"), smallest);
    (void)integer_at(doc, "breakdown.arena");
    json_decref(doc);

    char args[256];
    (void)snprintf(args, sizeof args,
                   "run mobilenet_v2 synthetic:1024x1024 --threads 1 --json --memory %llu",
                   smallest);
    expect(0, args);
    doc = document("run");
    assert_true(integer_at(doc, "plan.peak_bytes") <= (long long)smallest);
#ifndef RFX_SANITIZE
    assert_true(integer_at(doc, "measured.peak_rss_bytes") <= (long long)smallest);
#endif
    json_decref(doc);
    (void)snprintf(args, sizeof args,
                   "run mobilenet_v2 synthetic:1024x1024 --threads 1 --memory %llu", smallest - 1);
    expect(4, args); /* it is the smallest, to the byte */
}

static void test_byte_units(void **state) {
    static const struct {
        const char *text;
        long long bytes;
    } cases[] = {
        {"4096", 4096},
        {"1.5KiB", 1536},
        {"2MB", 2000000},
        {"1MiB", 1048576},
        {"0.25M", 262144},
        {"3k", 3072},
        {"0.001GiB", 1073741},
        {"1e", -1},
        {"0.5", -1},
        {"1 MiB", 1048576},
        {"18446744073709551616", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char args[128];
        (void)snprintf(args, sizeof args, "plan resnet18 --json --memory '%s'", cases[i].text);
        if (cases[i].bytes == -1) {
            expect(2, args);
            continue;
        }
        expect(4, args);
        json_t *doc = document("plan");
        assert_int_equal(integer_at(doc, "budget_bytes"), cases[i].bytes);
        json_decref(doc);
    }
}

static void test_verify(void **state) {
    (void)state;
    expect(0,
           "verify mobilenet_v2 synthetic:257x321 --tiles 3x4 --split features.6 --naive --json");
    json_t *doc = document("verify");
    assert_true(json_is_true(at(doc, "identical")));
    assert_int_equal(integer_at(doc, "compared"), 1000);
    assert_int_equal(integer_at(doc, "different"), 0);
    json_t *naive = json_array_get(at(doc, "naive.outputs"), 0);
    assert_true(json_real_value(at(naive, "wrong_share")) > 0.5);
    assert_true(json_real_value(at(naive, "largest_error")) > 0.0);
    assert_int_equal(integer_at(doc, "naive.tiles"), 12);
    json_decref(doc);
    expect(0, "verify mobilenet_v2 synthetic:500x700 --memory 24MiB --against 34MiB --json");
    doc = document("verify");
    assert_true(json_is_true(at(doc, "identical")));
    assert_null(strstr(json_string_value(at(doc, "against")), "untiled"));
    json_decref(doc);
    expect_says(2,
                "verify mobilenet_v2 synthetic:500x700 --memory 34MiB --against 34MiB --no-groups",
                "gives the plan of the first run again");
    expect(0, "verify mobilenet_v2 synthetic:129x65");
    assert_non_null(strstr(out_text, "IDENTICAL  1000 elements compared, 0 different"));
}

/* Unfused, and with unfused additions: other nodes, hence other bits, but the same bits for every
 * plan. */
static void test_no_fuse(void **state) {
    static const char *const runs[] = {
        "verify mobilenet_v2 synthetic:129x97 --tiles 3x2 --no-fuse --naive",
        "verify mobilenet_v2 synthetic:129x97 --bands 3 --no-fuse",
        "verify efficientnet_b0 synthetic:97x129 --tiles 2x2 --no-fuse",
        "verify resnet18 synthetic:97x129 --bands 2 --no-fuse-add"};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; ++i) {
        expect(0, runs[i]);
        assert_non_null(strstr(out_text, "IDENTICAL"));
    }
    /* A batch norm and an Add are layers of their own where they are not fused. */
    expect(0, "analyze mobilenet_v2 --csv");
    assert_null(strstr(out_text, "\n\"features.0.1\","));
    expect(0, "analyze mobilenet_v2 --csv --no-fuse");
    assert_non_null(strstr(out_text, "\n\"features.0.1\","));
    assert_non_null(strstr(out_text, "\n\"features.3.add\","));
    expect(0, "analyze mobilenet_v2 --csv --no-fuse-add");
    assert_null(strstr(out_text, "\n\"features.0.1\","));
    assert_non_null(strstr(out_text, "\n\"features.3.add\","));
    expect_says(2, "curve mobilenet_v2 --no-fuse --baseline fused", "--baseline eager");
    expect(0, "curve mobilenet_v2 --size 64x64 --csv --no-fuse");
    char *unfused = strdup(out_text);
    expect(0, "curve mobilenet_v2 --size 64x64 --csv --baseline eager");
    assert_string_equal(out_text, unfused);
    free(unfused);
}

static void test_plan_and_bench(void **state) {
    (void)state;
    expect(0, "plan mobilenet_v2 --size 1024x1024 --memory 48MiB --json");
    json_t *doc = document("plan");
    assert_true(integer_at(doc, "plan.peak_bytes") <= 48 << 20);
    json_decref(doc);
    expect(0, "plan mobilenet_v2 synthetic:512x512 --untiled --no-groups");
    assert_non_null(strstr(out_text, "1.000 x untiled"));
    expect(0, "bench mobilenet_v2 --size 96x96 --runs 2 --json");
    doc = document("bench");
    assert_int_equal(integer_at(doc, "measured.runs"), 2);
    assert_true(json_real_value(at(doc, "measured.gmacs_per_second")) > 0);
    assert_true(json_real_value(at(doc, "measured.seconds_min")) <=
                json_real_value(at(doc, "measured.seconds_max")));
    json_decref(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_max_pixels),
        cmocka_unit_test(test_usage_errors),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_run_json),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_outputs_of_plans),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_budget_round_trip),
        cmocka_unit_test(test_byte_units),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_no_fuse),
        cmocka_unit_test(test_plan_and_bench),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
