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
        {"plan " NET " --keep featurse.3", "near names: features.3"},
        {"plan " NET " --keep nothing_like_it", "no such tensor"},
        {"plan " NET " --keep classifier.1", "is output"},
        {"plan " NET " --dump features.3=a.npy", "not one of this command's"},
        {"run " NET PICTURE "--dump features.3", "TENSOR=FILE"},
        {"run " NET PICTURE "--dump =a.npy", "TENSOR=FILE"},
        {"run " NET PICTURE "--dump features.3=a.txt", "--dump 'a.txt'"},
        {"run " NET PICTURE "--dump features.3=a.npy --dump features.4=a.npy", "both go to"},
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

static long long peak_of(const char *args) {
    expect(0, args);
    json_t *doc = document("plan");
    long long peak = integer_at(doc, "plan.peak_bytes");
    json_decref(doc);
    return peak;
}

/* Each way of saving memory saves some. */
static void test_flags_count(void **state) {
    (void)state;
#define UNTILED "plan " NET " --untiled --no-groups --json "
    long long plain = peak_of(UNTILED);
    long long eager = peak_of(UNTILED "--no-fuse");
    assert_true(peak_of(UNTILED "--no-fuse --no-inplace") > eager);
    assert_true(peak_of(UNTILED "--row-by-row") < plain);
    assert_true(peak_of(UNTILED "--weights-by-stage") < plain);
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
    expect(0, "verify " NET PICTURE "--keep features.3 --keep features.0.0 --bands 8");
    assert_non_null(strstr(out_text, "IDENTICAL"));
}

/* Written, read, edited (bands, a stage more), run. */
static void test_plan_file(void **state) {
    (void)state;
    expect(0, "plan " NET " --size 161x143 --bands 8 -o cli_plan.json --json");
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

/* Runners-up with reasons, and the front: fewer bytes never for fewer MACs. */
static void test_choices(void **state) {
    (void)state;
    expect(0, "plan " NET " --size 1024x1024 --memory 40MiB --json");
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
    expect_says(2, "curve " NET " --pareto --tiles 4", "neither --tiles");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),       cmocka_unit_test(test_plans_by_hand),
        cmocka_unit_test(test_flags_count), cmocka_unit_test(test_dump),
        cmocka_unit_test(test_plan_file),   cmocka_unit_test(test_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
