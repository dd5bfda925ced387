/* Zarr folders given to the program: in the smallest budget that it asks for, with the hash of the
 * same samples in a .npy; levels, lists, parts and their refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli_program.h"
#include "tests/support/makers/zarr_maker.h"

#define NET "mobilenet_v2:0.1"
enum { ROWS = 640, COLUMNS = 700 };

static const char npy_dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 640, 700), }";

/* The samples as rfexec reads them. */
static void write_npy(const struct zarr_maker *m, const char *path) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fprintf(file, "\x93NUMPY\x01%c\x76%c%-117s\n", 0, 0, npy_dict), 128);
    for (int64_t i = 0; i < 3 * ROWS * COLUMNS; i++) {
        float v = zarr_maker_read(m, i / (ROWS * COLUMNS), i / COLUMNS % ROWS, i % COLUMNS);
        assert_int_equal(fwrite(&v, sizeof v, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

static struct zarr_maker large(int way) {
    static const char *const codecs[] = {NULL, "zstd", "gzip", "blosc"};
    struct zarr_maker m = zarr_maker_usual();
    m.shape[1] = ROWS;
    m.shape[2] = COLUMNS;
    m.chunk[0] = way % 2 == 0 ? 1 : 2;
    m.chunk[1] = m.chunk[2] = 256;
    m.type = "int16";
    m.format = 2 + way % 2;
    m.codec = codecs[way];
    m.missing = 7;
    return m;
}

/* The hash of a run, whose memory by the kernel's account is within the budget. */
static void hash_within(const char *options, long long budget, char hash[40]) {
    char args[300];
    (void)snprintf(args, sizeof args, "run " NET " %s --memory %lld --json", options, budget);
    expect(0, args);
    json_t *doc = document("run");
    assert_in_range(integer_at(doc, "measured.peak_rss_bytes"), 1, budget);
    (void)strcpy(hash, json_string_value(at(doc, "output.hash")));
    json_decref(doc);
}

static void budgets_and_hashes(void **state) {
    char want[40], got[40];
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct zarr_maker m = large(way);
        long long least = 0;
        if (!zarr_maker_can(m.codec)) continue;
        zarr_maker_remove("in.zarr");
        assert_true(zarr_maker_write(&m, "in.zarr"));
        write_npy(&m, "in.npy");
        hash_within("in.npy", INT64_C(256) << 20, want);
        expect_says(4, "run " NET " in.zarr --memory 8MiB", "rfexec: needs at least ");
        assert_int_equal(sscanf(err_text, "rfexec: needs at least %lld", &least), 1);
        hash_within("in.zarr", least, got);
        assert_string_equal(got, want);
        if (way % 2 == 0) continue;
        hash_within("in.npy --region 100,130,420,450", INT64_C(256) << 20, want);
        hash_within("in.zarr --region 100,130,420,450", INT64_C(256) << 20, got);
        assert_string_equal(got, want);
        hash_within("in.npy --channels 3,1,1", INT64_C(256) << 20, want);
        hash_within("in.zarr --channels 3,1,1", INT64_C(256) << 20, got);
        assert_string_equal(got, want);
    }
    expect(0, "verify " NET " in.zarr --memory 24MiB");
}

/* What the program wrote is read back with the same bits, and so are its overviews. */
static void levels_that_were_written(void **state) {
    char want[40], got[40];
    (void)state;
    zarr_maker_remove("out.ome.zarr");
    expect(0, "run fsrcnn synthetic:40x52 --zarr-chunk 50 --overviews nearest -o out.ome.zarr");
    expect(0, "info out.ome.zarr");
    assert_non_null(
        strstr(out_text, "   0          80x104  3      32-bit float  tiles of 50x50, none"));
    assert_non_null(strstr(
        out_text, "   1           40x52  3      32-bit float  reduced, tiles of 40x50, none"));
    hash_within("out.ome.zarr --level 1", INT64_C(64) << 20, want);
    hash_within("out.ome.zarr/1", INT64_C(64) << 20, got);
    assert_string_equal(got, want);
    expect_says(3, "run " NET " out.ome.zarr --level 3", "level 3 of 3 ('rfexec info' lists them)");
    expect_says(3, "run " NET " out.ome.zarr/0 --level 1", "level 1 of 1, an array by itself");
    expect_says(5, "run " NET " .", ".: is a directory, not an image");
}

/* Parts know the folder by its samples, not by its path. */
static void parts_of_folders(void **state) {
    struct zarr_maker m = large(0);
    char want[40];
    (void)state;
    zarr_maker_remove("in.zarr");
    zarr_maker_remove("same.zarr");
    assert_true(zarr_maker_write(&m, "in.zarr") && zarr_maker_write(&m, "same.zarr"));
    expect(0, "run real_esrgan_compact in.zarr --region 0,0,64,80 --json");
    json_t *doc = document("run");
    (void)strcpy(want, json_string_value(at(doc, "output.hash")));
    json_decref(doc);
    assert_int_equal(system("rm -f p1.npy* p2.npy*"), 0);
    expect(0, "run real_esrgan_compact in.zarr --region 0,0,64,80 --part 1/2 -o p1.npy");
    expect(0, "run real_esrgan_compact same.zarr --region 0,0,64,80 --part 2/2 -o p2.npy");
    expect(0, "merge p1.npy p2.npy -o whole.npy --json");
    doc = document("merge");
    assert_string_equal(json_string_value(at(doc, "output.hash")), want);
    json_decref(doc);
    m.seed = 1;
    zarr_maker_remove("same.zarr");
    assert_true(zarr_maker_write(&m, "same.zarr"));
    assert_int_equal(system("rm -f p2.npy*"), 0);
    expect(0, "run real_esrgan_compact same.zarr --region 0,0,64,80 --part 2/2 -o p2.npy");
    expect_says(3, "merge p1.npy p2.npy -o whole.npy", "input");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_and_hashes),
        cmocka_unit_test(levels_that_were_written),
        cmocka_unit_test(parts_of_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
