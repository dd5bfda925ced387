/* Plans by hand and from files, tensors kept and written: the options of run, verify and plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_program.h"

#define NET "mobilenet_v2"
#define PICTURE " synthetic:161x143 "

static void test_usage(void **state) {
    static const struct {
        const char *args, *words;
    } cases[] = {
        {"plan " NET " --strips 2", "--strips needs --bands"},
        {"plan " NET " --tight", "--tight needs --bands"},
        {"plan " NET " --strips 0 --bands 4", "--strips"},
        {"plan " NET " --plan x.json --untiled", "--plan says all"},
        {"plan " NET " --plan x.json --row-by-row", "--plan says all"},
        {"plan " NET " --spill .", "--spill needs --memory, --bands or --plan"},
        {"plan " NET " --spill . --untiled", "--spill excludes --untiled"},
        {"plan " NET " --spill . --memory 1GiB --split features.3", "--spill excludes"},
        {"plan " NET " --keep featurse.3", "near names: features.3"},
        {"plan " NET " --keep nothing_like_it", "no such tensor"},
        {"plan " NET " --keep classifier.1", "is output"},
        {"plan " NET " --dump features.3=a.npy", "not one of this command's"},
        {"run " NET PICTURE "--dump features.3", "TENSOR=FILE"},
        {"run " NET PICTURE "--dump =a.npy", "TENSOR=FILE"},
        {"run " NET PICTURE "--dump features.3=a.txt", "--dump 'a.txt'"},
        {"run " NET PICTURE "--dump features.3=a.npy --dump features.4=a.npy", "both go to"},
        {"run " NET PICTURE "--keep features.3 -o -", "--dump features.3=FILE"},
        {"run " NET PICTURE "--keep features.3 -o a.png", "-o 'a.png', output '"},
        {"verify " NET PICTURE "--naive --keep features.3", "--naive excludes --keep"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        expect_says(2, cases[i].args, cases[i].words);
}

/* The first stage of the plan on stdout has these values. */
static void assert_stage(const char *mode, long long tiles_x, long long band_rows, int row_by_row) {
    json_t *doc = document("plan");
    json_t *stage = json_array_get(at(doc, "plan.stages"), 0);
    assert_string_equal(json_string_value(json_object_get(stage, "mode")), mode);
    json_t *tiles = json_object_get(stage, "tiles");
    assert_int_equal(json_integer_value(json_array_get(tiles, 1)), tiles_x);
    assert_int_equal(json_integer_value(json_object_get(stage, "band_rows")), band_rows);
    assert_int_equal(json_is_true(json_object_get(stage, "row_by_row")), row_by_row);
    json_decref(doc);
}

static void test_plans_by_hand(void **state) {
    (void)state;
    expect(0, "plan " NET " --bands 8 --strips 3 --check --json");
    assert_stage("streamed", 3, 8, 0);
    expect(0, "plan " NET " --untiled --row-by-row --check --json");
    assert_stage("whole", 1, 0, 1);
    static const char *const ways[] = {
        "--bands 8 --strips 3", "--bands 8 --tight", "--untiled --row-by-row",
        "--bands 4 --weights-by-stage --no-inplace", "--untiled --no-inplace"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
        char args[256];
        (void)snprintf(args, sizeof args, "verify " NET PICTURE "%s", ways[i]);
        expect(0, args);
        assert_non_null(strstr(out_text, "IDENTICAL"));
    }
}

/* Rows of 128 KB and more that outlive their step are copied by all threads. */
static void test_wide_rows_are_kept(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        char args[256];
        (void)snprintf(args, sizeof args,
                       "verify table1 synthetic:64x512 --bands 16 --tight --threads %d", threads);
        expect(0, args);
        assert_non_null(strstr(out_text, "IDENTICAL"));
    }
}

/* Winograd's tiles let skips wait no longer than they must: one stream fits, nothing twice. */
static void test_skips_wait_for_tiles(void **state) {
    (void)state;
    expect(0, "plan unet --size 1024x1024 --conv winograd --memory 280MiB --threads 2 --json");
    json_t *doc = document("plan");
    assert_int_equal(integer_at(doc, "plan.macs"), integer_at(doc, "plan.macs_untiled"));
    json_decref(doc);
}

static long long peak_of(const char *args) {
    expect(0, args);
    json_t *doc = document("plan");
    long long peak = integer_at(doc, "plan.peak_bytes");
    json_decref(doc);
    return peak;
}

/* Each way of saving memory saves some, layer by layer; so do groups, whose inner maps are never
 * stored. */
static void test_flags_count(void **state) {
    (void)state;
    long long plain = peak_of("plan " NET " --no-groups --untiled --json");
    long long eager = peak_of("plan " NET " --no-groups --untiled --no-fuse --json");
    const char *apart = "plan " NET " --no-groups --untiled --no-fuse --no-inplace --json";
    assert_true(peak_of(apart) > eager);
    assert_true(peak_of("plan " NET " --no-groups --untiled --row-by-row --json") < plain);
    assert_true(peak_of("plan " NET " --no-groups --untiled --weights-by-stage --json") < plain);
}

/* Groups in the plan's text, its JSON, its file, and the same bits. Which there are is a matter of
 * the machine's caches; of maps as large as these there are some on any. */
static void test_groups(void **state) {
    (void)state;
    expect(0, "plan " NET " --size 1024x1024 --untiled");
    assert_non_null(strstr(out_text, "groups  "));
    assert_non_null(strstr(out_text, "items/thread"));
    expect(0, "plan " NET " --size 1024x1024 --untiled --no-groups");
    assert_null(strstr(out_text, "groups  "));
    expect(0, "plan " NET " --size 1024x1024 --untiled --threads 2 -o cli_groups.json --json");
    json_t *doc = document("plan");
    json_t *groups = at(doc, "plan.groups"), *group;
    size_t n = json_array_size(groups), i;
    long long peak = integer_at(doc, "plan.peak_bytes"), macs = integer_at(doc, "plan.macs");
    assert_true(n > 0);
    json_array_foreach(groups, i, group) {
        assert_true(integer_at(group, "layers") >= 2);
        assert_true(integer_at(group, "ring_bytes") > 0);
        assert_int_equal(integer_at(group, "steps"), 1);
        assert_true(json_real_value(at(group, "items_per_thread")) >= 1.0);
    }
    json_decref(doc);
    expect(0, "plan " NET " --size 1024x1024 --plan cli_groups.json --json");
    doc = document("plan");
    assert_int_equal(json_array_size(at(doc, "plan.groups")), n);
    assert_int_equal(integer_at(doc, "plan.peak_bytes"), peak);
    assert_int_equal(integer_at(doc, "plan.macs"), macs);
    json_decref(doc);
    /* A plan file with a group by hand, on maps of any size; a kept tensor inside is refused. */
    write_file("cli_group.json",
               "{\"schema\": 1, \"kind\": \"rfexec plan\", \"groups\": [{\"first\": "
               "\"features.3.conv.0.0\", \"last\": \"features.3.conv.2\", \"strip_cols\": 7, "
               "\"step_rows\": 3}], \"stages\": [{\"mode\": \"whole\", \"targets\": "
               "[\"classifier.1\"]}]}");
    expect(0, "verify " NET PICTURE "--plan cli_group.json");
    assert_non_null(strstr(out_text, "IDENTICAL"));
    expect_says(3, "run " NET PICTURE "--plan cli_group.json --keep features.3.conv.0.0",
                "groups[0]: a map inside is read outside");
    expect(0, "verify " NET PICTURE "--keep features.3.conv.0.0");
    assert_non_null(strstr(out_text, "IDENTICAL"));
}

/* Shapes by hand: 161x143 -> features.3 at a quarter (rounded up at each stride), 24 channels. */
static void test_dump(void **state) {
    (void)state;
    expect(0, "run " NET PICTURE "--json");
    json_t *plain = document("run");
    (void)unlink("cli_dump.npy");
    expect(0,
           "run " NET PICTURE "--dump features.3=cli_dump.npy --keep features.5 --bands 8 --json");
    json_t *doc = document("run");
    json_t *outputs = at(doc, "outputs");
    assert_int_equal(json_array_size(outputs), 3);
    json_t *dumped = json_array_get(outputs, 1);
    assert_string_equal(json_string_value(at(dumped, "name")), "features.3");
    static const long long shape[] = {1, 24, 41, 36};
    for (size_t i = 0; i < 4; ++i)
        assert_int_equal(json_integer_value(json_array_get(at(dumped, "shape"), i)), shape[i]);
    assert_string_equal(json_string_value(at(doc, "output.hash")),
                        json_string_value(at(plain, "output.hash")));
    FILE *file = fopen("cli_dump.npy", "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(ftell(file), 128 + 24 * 41 * 36 * 4);
    assert_int_equal(fclose(file), 0);
    json_decref(plain);
    json_decref(doc);
    /* what is only kept goes beside the network's own output, whose file keeps its name */
    (void)unlink("cli_keep.npy");
    expect(0, "run " NET PICTURE "--keep features.3 -o cli_keep.npy");
    assert_int_equal(access("cli_keep.npy", F_OK), 0);
    read_text("cli_dump.npy", out_text);
    read_text("cli_keep.features.3.npy", err_text);
    assert_memory_equal(out_text, err_text, 128 + 24 * 41 * 36 * 4);
    expect(0, "verify " NET PICTURE "--keep features.3 --keep features.0.0 --bands 8");
    assert_non_null(strstr(out_text, "IDENTICAL"));
}

/* Written, read, edited (bands, a stage more), run. */
static void test_plan_file(void **state) {
    (void)state;
    expect(0, "plan " NET " --size 161x143 --bands 8 --no-groups -o cli_plan.json --json");
    json_t *doc = document("plan");
    long long peak = integer_at(doc, "plan.peak_bytes");
    json_decref(doc);
    assert_int_equal(peak_of("plan " NET " --size 161x143 --plan cli_plan.json --json"), peak);
    json_error_t error;
    json_t *plan = json_load_file("cli_plan.json", 0, &error);
    assert_non_null(plan);
    assert_string_equal(json_string_value(at(plan, "kind")), "rfexec plan");
    json_t *stages = at(plan, "stages");
    json_t *first = json_array_get(stages, 0);
    assert_int_equal(json_object_set_new(first, "band_rows", json_integer(3)), 0);
    json_t *extra = json_pack("{s:s, s:[s], s:[i,i]}", "mode", "tiled", "targets",
                              "features.2.conv.2", "tiles", 3, 2);
    assert_int_equal(json_array_insert_new(stages, 0, extra), 0);
    assert_int_equal(json_dump_file(plan, "cli_edited.json", 0), 0);
    expect(0, "verify " NET PICTURE "--plan cli_edited.json");
    assert_non_null(strstr(out_text, "IDENTICAL"));
    assert_non_null(strstr(out_text, "3x2 tiles"));
    expect(0, "bench " NET PICTURE "--plan cli_edited.json --runs 1");
    expect_says(4, "run " NET PICTURE "--plan cli_plan.json --memory 1MiB", "needs at least");
    (void)json_array_append_new(json_object_get(first, "targets"), json_string("classifier.1"));
    assert_int_equal(json_dump_file(plan, "cli_edited.json", 0), 0);
    expect_says(3, "run " NET PICTURE "--plan cli_edited.json", "stages[1]");
    expect_says(3, "plan " NET " --size 64x64 --plan cli_plan.json", "the plan is for 161x143");
    expect_says(3, "plan resnet18 --size 161x143 --plan cli_plan.json", "stages[0].targets[0]");
    expect_says(3, "plan " NET " --plan no_such_plan.json", "no_such_plan.json");
    write_file("cli_bad.json", "{\"schema\": 1,\n\"kind\": \n}");
    expect_says(3, "plan " NET " --plan cli_bad.json", "line 3");
    json_decref(plan);
}

static void write_npy(const char *path, int h, int w) {
    char header[129];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    (void)snprintf(header, sizeof header,
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (3, %d, %d), }", h, w);
    assert_int_equal(fprintf(file, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header), 128);
    for (int i = 0; i < 3 * h * w; i++) {
        float value = 0.01f * (float)(i % 101);
        assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

/* The smallest budget that a command names. */
static long long smallest_of(const char *command, const char *rest) {
    char args[512];
    (void)snprintf(args, sizeof args, "%s --memory 1MiB --json", rest);
    expect(4, args);
    json_t *doc = document(command);
    long long bytes = integer_at(doc, "smallest_bytes");
    json_decref(doc);
    return bytes;
}

/* A plan counts the run's reading and writing: what it says fits, fits the run, and both name the
 * same smallest budget. */
static void test_plans_count_files(void **state) {
    (void)state;
    static const char *const outputs[] = {"cli_count.npy", "cli_count.tif", "cli_count.png"};
    write_npy("cli_count_in.npy", 200, 160);
    for (int i = 0; i < 3; i++) {
        char args[256];
        (void)snprintf(args, sizeof args, "run fsrcnn cli_count_in.npy -o %s", outputs[i]);
        long long run = smallest_of("run", args);
        (void)snprintf(args, sizeof args, "plan fsrcnn --size 200x160 --for-output %s", outputs[i]);
        long long plan = smallest_of("plan", args);
        if (plan != run) fail_msg("%s: plan names %lld, run %lld", outputs[i], plan, run);
        if (i == 0) assert_int_equal(smallest_of("plan", "plan fsrcnn --size 200x160"), run);
        (void)snprintf(args, sizeof args,
                       "plan fsrcnn --size 200x160 --for-output %s --memory %lld -o cli_count.json",
                       outputs[i], run);
        expect(0, args);
        assert_non_null(strstr(out_text, strrchr(outputs[i], '.')));
        (void)snprintf(args, sizeof args,
                       "run fsrcnn cli_count_in.npy --plan cli_count.json --memory %lld -o %s", run,
                       outputs[i]);
        expect(0, args);
        (void)remove(outputs[i]);
    }
    assert_int_equal(smallest_of("plan", "plan fsrcnn --size 200x160 --for-output none"),
                     smallest_of("run", "run fsrcnn cli_count_in.npy"));
    /* where the picture lies does not count */
    assert_int_equal(smallest_of("run", "run fsrcnn ././././././cli_count_in.npy"),
                     smallest_of("run", "run fsrcnn cli_count_in.npy"));
    expect_says(
        2, "plan fsrcnn --size 64x64 --for-output map.bmp",
        ".npy, .tif, .ome.tif, .png, .zarr, .ome.zarr, .pfm, .geojson, .csv, .json, .coco.json, ");
    expect(0, "plan fsrcnn --size 64x64 --json");
    json_t *doc = document("plan");
    assert_string_equal(json_string_value(at(doc, "counted.output")), ".npy");
    json_decref(doc);
    (void)remove("cli_count_in.npy");
}

/* Runners-up with reasons, and the front: fewer bytes never for fewer MACs. */
static void test_choices(void **state) {
    (void)state;
    expect(0, "plan " NET " --size 1024x1024 --memory 40MiB --no-groups --json");
    json_t *doc = document("plan");
    json_t *list = at(doc, "runners_up");
    assert_true(json_array_size(list) >= 4);
    size_t i;
    json_t *item;
    int over = 0;
    json_array_foreach(list, i, item) {
        bool fits = integer_at(item, "peak_bytes") <= 40LL << 20;
        assert_int_equal(json_is_true(at(item, "fits")), fits);
        assert_int_equal(integer_at(item, "over_bytes"),
                         fits ? 0 : integer_at(item, "peak_bytes") - (40LL << 20));
        assert_true(strlen(json_string_value(at(item, "lost_by"))) > 0);
        over += !fits;
    }
    assert_true(over > 0);
    json_decref(doc);
    expect(0, "plan " NET " --size 1024x1024 --memory 40MiB");
    assert_non_null(strstr(out_text, "runners-up"));
    expect(0, "plan " NET " --size 512x512 --bands 8");
    assert_null(strstr(out_text, "runners-up"));

    expect(0, "curve " NET " --size 256x256 --pareto --json");
    doc = document("curve");
    list = at(doc, "plans");
    assert_true(json_array_size(list) > 5);
    for (i = 1; i < json_array_size(list); ++i) {
        json_t *a = json_array_get(list, i - 1), *b = json_array_get(list, i);
        assert_true(integer_at(b, "peak_bytes") < integer_at(a, "peak_bytes"));
        assert_true(integer_at(b, "macs") >= integer_at(a, "macs"));
    }
    json_decref(doc);
    expect(0, "curve " NET " --size 128x128 --pareto --csv");
    assert_non_null(strstr(out_text, "predicted_time_ratio"));
    expect_says(2, "curve " NET " resnet18 --pareto", "one model");
    expect_says(2, "curve " NET " --pareto --tiles 4", "--pareto excludes --tiles");
}

/* The convolutions' arithmetic that a command reports: under "conv", and in words. */
static void expect_conv(const char *command, const char *rest, const char *asked,
                        const char *conv) {
    char args[256], line[64];
    (void)snprintf(args, sizeof args, "%s " NET " %s %s --json", command, rest, asked);
    expect(0, args);
    json_t *doc = document(command);
    assert_string_equal(json_string_value(at(doc, "conv")), conv);
    json_decref(doc);
    (void)snprintf(args, sizeof args, "%s " NET " %s %s", command, rest, asked);
    expect(0, args);
    (void)snprintf(line, sizeof line, "\nconv       %s\n", conv);
    assert_non_null(strstr(out_text, line));
}

/* The hash of the first output of a run. */
static void hash_of(const char *args, char hash[64]) {
    expect(0, args);
    json_t *doc = document("run");
    (void)snprintf(hash, 64, "%s", json_string_value(at(doc, "output.hash")));
    json_decref(doc);
}

/* Chosen, reported, and followed by every command that runs; a plan is one for each choice. */
static void test_conv(void **state) {
    (void)state;
    static const struct {
        const char *command, *rest;
    } commands[] = {{"plan", "--size 64x64 --untiled"},
                    {"run", "synthetic:64x64"},
                    {"bench", "synthetic:64x64 --runs 1"},
                    {"verify", "synthetic:64x64 --tiles 2x2"}};
    expect(0, "plan " NET " --size 64x64 --json");
    json_t *doc = document("plan");
    bool own = strcmp(json_string_value(at(doc, "conv")), "direct") == 0;
    json_decref(doc);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *command = commands[i].command, *rest = commands[i].rest;
        expect_conv(command, rest, "", own ? "direct" : "openblas");
        expect_conv(command, rest, "--conv direct", own ? "direct" : "openblas");
        expect_conv(command, rest, "--conv openblas", "openblas");
    }
    expect(4, "run " NET " synthetic:64x64 --memory 1MiB --conv openblas --json");
    doc = document("run");
    assert_string_equal(json_string_value(at(doc, "conv")), "openblas");
    json_decref(doc);
    expect_says(2, "run " NET " synthetic:64x64 --conv fast", "direct|openblas|winograd");
    expect_says(2, "models --conv openblas", "not one of this command's");

    char direct[64], openblas[64], planned[64];
    expect(0, "plan " NET " --size 161x143 --bands 8 -o cli_conv.json --conv openblas");
    hash_of("run " NET PICTURE "--json", direct);
    hash_of("run " NET PICTURE "--json --conv openblas", openblas);
    assert_int_equal(strcmp(direct, openblas) != 0, own);
    hash_of("run " NET PICTURE "--json --plan cli_conv.json", planned);
    assert_string_equal(planned, direct);
    hash_of("run " NET PICTURE "--json --plan cli_conv.json --conv openblas", planned);
    assert_string_equal(planned, openblas);
}

/* Tiles without halos have the arithmetic that was asked for too: one tile is the image. */
static void test_naive_conv(void **state) {
    static const char *const choices[] = {"direct", "openblas"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char args[128];
        (void)snprintf(args, sizeof args,
                       "verify " NET PICTURE "--tiles 1x1 --naive --json --conv %s", choices[i]);
        expect(0, args);
        json_t *doc = document("verify");
        json_t *naive = json_array_get(at(doc, "naive.outputs"), 0);
        assert_int_equal(integer_at(doc, "naive.tiles"), 1);
        assert_int_equal(integer_at(naive, "wrong"), 0);
        json_decref(doc);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_plans_by_hand),
        cmocka_unit_test(test_wide_rows_are_kept),
        cmocka_unit_test(test_skips_wait_for_tiles),
        cmocka_unit_test(test_flags_count),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_plan_file),
        cmocka_unit_test(test_plans_count_files),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_naive_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
