/* --spill: maps in files, as run, verify and bench use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli_program.h"

/* A map that waits in a file: the same bits; the folder is named, and what is wrong with it said.
 */
static void test_by_hand(void **state) {
    static const char plan[] =
        "{\"schema\": 1, \"kind\": \"rfexec plan\", \"stages\": [{\"mode\": \"streamed\", "
        "\"targets\": [\"map.2\"], \"band_rows\": 8, \"spilled\": [\"map.2\"]}, {\"mode\": "
        "\"streamed\", \"targets\": [\"deconv\"], \"band_rows\": 4, \"tiles\": [1, 3]}]}";
    (void)state;
    write_file("cli_spilled.json", plan);
    expect(0, "verify fsrcnn synthetic:61x83 --plan cli_spilled.json --spill . --json");
    json_t *doc = document("verify");
    long long bytes = 61LL * 83 * 12 * 4, read = integer_at(doc, "plan.spilled.read_bytes");
    assert_int_equal(integer_at(doc, "plan.spilled.written_bytes"), bytes);
    assert_int_equal(integer_at(doc, "plan.spilled.most_bytes"), bytes);
    assert_true(read > bytes && read < 2 * bytes); /* strips overlap */
    assert_int_equal(integer_at(doc, "measured.spill_written_bytes"), bytes);
    assert_int_equal(integer_at(doc, "measured.spill_read_bytes"), read);
    assert_true(json_is_true(at(doc, "identical")));
    json_decref(doc);
    expect(0, "run fsrcnn synthetic:61x83 --plan cli_spilled.json --spill .");
    assert_non_null(strstr(out_text, "spilled    237.3 KiB written to files, "));
    assert_non_null(strstr(out_text, "8 image rows a step, spilled; "));
    expect_says(2, "run fsrcnn synthetic:61x83 --plan cli_spilled.json", "no folder is given");
    expect_says(5, "run fsrcnn synthetic:61x83 --plan cli_spilled.json --spill no/such",
                "folder 'no/such' for spilled maps: No such file");
    expect_says(5, "run fsrcnn synthetic:61x83 --plan cli_spilled.json --spill cli_spilled.json",
                "cannot make a file for the 0.2 MiB of 'map.2': Not a directory");
}

/* Norms one after the other in memory that holds no large map: the planner takes files where it
 * may, in every command that runs plans. */
static void test_in_a_budget(void **state) {
    char args[200];
    json_t *row;
    size_t i, spilled = 0;
    (void)state;
    expect(4, "plan unet_instance --size 192x240 --threads 2 --memory 1MiB --spill . --json");
    json_t *doc = document("plan");
    long long least = integer_at(doc, "smallest_bytes");
    json_decref(doc);
    (void)snprintf(args, sizeof args, "plan unet_instance --size 192x240 --threads 2 --memory %lld",
                   least);
    expect_says(4, args, "needs at least");
    (void)snprintf(args, sizeof args,
                   "verify unet_instance synthetic:192x240 --threads 2 --spill . --json "
                   "--memory %lld",
                   least);
    expect(0, args);
    doc = document("verify");
    assert_true(json_is_true(at(doc, "identical")));
    assert_true(json_real_value(at(doc, "plan.macs_ratio")) < 1.2);
    assert_true(integer_at(doc, "plan.spilled.written_bytes") > 1 << 20);
    assert_int_equal(integer_at(doc, "measured.spill_written_bytes"),
                     integer_at(doc, "plan.spilled.written_bytes"));
    json_array_foreach(at(doc, "plan.stages"), i, row) {
        spilled += json_array_size(at(row, "spilled"));
    }
    assert_true(spilled > 4);
    json_decref(doc);
    expect(0, "bench unet_instance --size 64x80 --bands 8 --spill . --runs 1 --layers --json");
    doc = document("bench");
    json_array_foreach(at(doc, "rest"), i, row) {
        bool files = strcmp(json_string_value(at(row, "name")), "spilling maps") == 0;
        assert_true(!files || json_real_value(at(row, "seconds")) > 0);
    }
    json_decref(doc);
}

/* A plan says why it reads the image again and again, and what would help. */
static void test_words(void **state) {
    (void)state;
    setenv("RFX_KERNELS", "avx2", 1); /* the plans depend on what the kernels take */
    expect(0, "plan unet_instance --size 512x640 --threads 2 --memory 40MiB");
    assert_non_null(strstr(out_text, "stages begin at the image"));
    assert_non_null(strstr(out_text, "(with --spill DIR it may wait in a file)"));
    expect(0, "plan unet_instance --size 512x640 --threads 2 --memory 26MiB --spill .");
    assert_non_null(strstr(out_text, "3 of 19 stages begin at the image"));
    assert_null(strstr(out_text, "--spill"));
    expect(0, "plan unet_instance --size 512x640 --threads 2 --memory 48MiB");
    assert_non_null(strstr(out_text, "over dead rows"));
    expect(0, "explain unet_instance --size 512x640 --threads 2 --memory 48MiB");
    assert_non_null(strstr(out_text, "over dead rows of what they read for the last time"));
    expect(0, "plan fsrcnn --size 512x640 --memory 60MiB");
    assert_null(strstr(out_text, "passes"));
    unsetenv("RFX_KERNELS");
}

/* A U-Net's skips that do not fit are made again, at each of its ends: the same bits. */
static void test_skips(void **state) {
    static const char *const convs[] = {"200x320 --conv direct", "512x512 --conv winograd"};
    char args[200];
    (void)state;
    for (int c = 0; c < 2; c++) {
        (void)snprintf(args, sizeof args, "plan unet --memory 1MiB --json --size %s", convs[c]);
        expect(4, args);
        json_t *doc = document("plan");
        long long least = integer_at(doc, "smallest_bytes");
        json_decref(doc);
        (void)snprintf(args, sizeof args, "verify unet synthetic:%s --memory %lld --json", convs[c],
                       least);
        expect(0, args);
        doc = document("verify");
        assert_true(json_is_true(at(doc, "identical")));
        assert_int_equal(json_array_size(at(doc, "plan.stages")), 3);
        json_decref(doc);
        (void)snprintf(args, sizeof args, "plan unet --size %s --memory %lld", convs[c], least);
        expect(0, args);
        assert_non_null(
            strstr(out_text, "2 of 3 stages begin at the image: what a later one needs"));
    }
}

/* A deep network without a global operation: its stream is cut into several, with files between. */
static void test_deep(void **state) {
    char args[200];
    (void)state;
    expect(4, "plan srgan --size 96x80 --threads 2 --memory 1MiB --json");
    json_t *doc = document("plan");
    long long least = integer_at(doc, "smallest_bytes");
    json_decref(doc);
    (void)snprintf(args, sizeof args,
                   "verify srgan synthetic:96x80 --threads 2 --spill . --json --memory %lld",
                   least - (1 << 20));
    expect(0, args);
    doc = document("verify");
    assert_true(json_is_true(at(doc, "identical")));
    assert_true(json_array_size(at(doc, "plan.stages")) > 1);
    assert_true(json_real_value(at(doc, "plan.macs_ratio")) < 1.2);
    assert_true(integer_at(doc, "measured.spill_written_bytes") > 1 << 20);
    json_decref(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_in_a_budget),
        cmocka_unit_test(test_skips), cmocka_unit_test(test_deep), cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
