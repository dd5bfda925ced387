/* One network on many pictures: each result is that of a run by itself, failures stop nothing, a
 * list is started again where it ended, and memory does not grow with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_program.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/tiff_maker.h"

#define NET "real_esrgan_compact"
enum { MANY = 200 };

static void make_tiff(const char *path, int i) {
    struct tiff_maker m = tiff_maker_of(2, i / 10 % 4 == 0 ? COMPRESSION_LZW : COMPRESSION_NONE);
    m.h = 24 + i / 20 % 3;
    m.w = i < 1000 ? 20 : 21;
    m.rows = 8;
    m.seed = (uint32_t)i;
    assert_true(tiff_maker_write(&m, path));
}

static void make_jpeg(const char *path, int i) {
    struct jpeg_maker m = {
        .h = 24, .w = 20, .components = i % 2 == 0 ? 1 : 3, .quality = 50 + i % 40};
    m.h_sampling = m.v_sampling = 1;
    m.orientation = i / 10 % 8 + 1;
    assert_true(jpeg_maker_write(&m, path));
}

/* Empties the folder of results, and makes it. */
static void clean(void) {
    assert_int_equal(system("rm -rf results && mkdir results"), 0);
}

/* The sums, which are the last line. */
static json_t *sums(void) {
    char *end = strrchr(out_text, '}'), *line;
    assert_non_null(end);
    for (line = end; line > out_text && line[-1] != '\n';) --line;
    json_t *doc = json_loads(line, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static void check_sums(int done, int skipped, int failed) {
    json_t *doc = sums();
    assert_int_equal(integer_at(doc, "done"), done);
    assert_int_equal(integer_at(doc, "skipped"), skipped);
    assert_int_equal(integer_at(doc, "failed"), failed);
    json_decref(doc);
}

static void test_results_are_those_of_single_runs(void **state) {
    enum { FILES = 8 };
    static const char *const files[FILES] = {"a.tif", "b.tif", "c.jpg", "d.jpg",
                                             "e.tif", "f.tif", "g.tif", "h.tif"};
    /* pictures of one kind after each other: f has fewer rows than e, g fewer columns than f */
    static const int numbers[FILES] = {0, 1, 2, 3, 1241, 1204, 4, 41};
    (void)state;
    clean();
    for (int i = 0; i < FILES; ++i)
        (i == 2 || i == 3 ? make_jpeg : make_tiff)(files[i], numbers[i]);
    write_file("list.txt", "a.tif\nb.tif\r\n\nc.jpg\nd.jpg\ne.tif\nf.tif\ng.tif\nh.tif");
    expect(0, "run " NET " --list list.txt --out-dir results --memory 64MiB --json");
    check_sums(FILES, 0, 0);
    for (int i = 0; i < FILES; ++i) {
        char args[100], result[100];
        (void)snprintf(args, sizeof args, "run " NET " %s -o single.npy", files[i]);
        (void)snprintf(result, sizeof result, "results/%s.npy", files[i]);
        expect(0, args);
        assert_same_files("single.npy", result);
    }
    expect(0, "run " NET " --list - --out-dir results --as tif --untiled <list.txt");
    expect(0, "run " NET " e.tif -o single.tif");
    assert_same_files("single.tif", "results/e.tif.tif");
}

static void test_failures_stop_nothing(void **state) {
    (void)state;
    clean();
    (void)unlink("none.tif");
    write_file("broken.jpg", "\xff\xd8 and no more");
    write_file("list.txt", "a.tif\nbroken.jpg\nnone.tif\nc.jpg\n");
    expect_says(3, "run " NET " --list list.txt --out-dir results --json", "none.tif: cannot open");
    assert_non_null(strstr(err_text, "broken.jpg: header"));
    assert_non_null(strstr(out_text, "\"input\":\"broken.jpg\",\"state\":\"failed\",\"exit\":3"));
    check_sums(2, 0, 2);
    assert_int_equal(access("results/c.jpg.npy", F_OK), 0);
    assert_int_equal(access("results/broken.jpg.npy", F_OK), -1);
    assert_int_equal(unlink("results/c.jpg.npy"), 0);
    make_tiff("none.tif", 7); /* mended */
    expect(3, "run " NET " --list list.txt --out-dir results --json --resume");
    check_sums(2, 1, 1);
    assert_non_null(strstr(out_text, "\"input\":\"a.tif\",\"state\":\"skipped\",\"exit\":0"));
    assert_int_equal(access("results/c.jpg.npy", F_OK), 0);
    expect(4, "run " NET " --list list.txt --out-dir results --memory 1MiB");
}

/* Of a network of several outputs there are several results a picture. */
static void test_every_output_is_looked_for(void **state) {
    (void)state;
    clean();
    write_file("list.txt", "a.tif\nb.tif\n");
    expect(0, "run blazeface --list list.txt --out-dir results --json");
    check_sums(2, 0, 0);
    expect(0, "run blazeface --list list.txt --out-dir results --json --resume");
    check_sums(0, 2, 0);
    assert_int_equal(system("rm results/a.tif.regressors.npy"), 0);
    expect(0, "run blazeface --list list.txt --out-dir results --json --resume");
    check_sums(1, 1, 0);
}

static void test_long_lists(void **state) {
    (void)state;
    clean();
    assert_int_equal(system("(echo a.tif; head -c 140000 /dev/zero | tr '\\0' '\\n'; echo b.tif)"
                            " >long.txt"),
                     0);
    expect(0, "run " NET " --list long.txt --out-dir results --json");
    check_sums(2, 0, 0);
    assert_int_equal(system("printf 'a.tif\\0b.tif\\n' >zero.txt"), 0);
    expect_says(3, "run " NET " --list zero.txt --out-dir results", "byte 5 is zero");
}

/* Appends the lines of a CSV file but the first one, with the image before each. */
static void append_lines(FILE *table, const char *image, const char *path) {
    read_text(path, err_text);
    for (char *line = strchr(err_text, '\n') + 1; *line != '\0';) {
        int length = (int)strcspn(line, "\n");
        (void)fprintf(table, "%s,%.*s\n", image, length, line);
        line += length + 1;
    }
}

#define TABLE "run " RFX_DEFECTS " --list list.txt --out-dir results --threshold 0.01 "

/* A table has the lines of all results, and is there if all results are. */
static void test_table(void **state) {
    static const char odd[] = "odd, \"name\".tif";
    (void)state;
    clean();
    (void)unlink("no.csv");
    make_tiff(odd, 0);
    write_file("list.txt", "synthetic:1400x2000\nodd, \"name\".tif\nsynthetic:96x64:7\n");
    expect(0, TABLE "--as csv --table all.csv --json --memory 64MiB");
    read_text("results/synthetic:1400x2000.csv", err_text);
    FILE *table = fopen("wanted.csv", "w");
    assert_non_null(table);
    (void)fprintf(table, "image,%.*s\n", (int)strcspn(err_text, "\n"), err_text);
    append_lines(table, "\"synthetic:1400x2000\"", "results/synthetic:1400x2000.csv");
    append_lines(table, "\"odd, \"\"name\"\".tif\"", "results/odd, \"name\".tif.csv");
    append_lines(table, "\"synthetic:96x64:7\"", "results/synthetic:96x64:7.csv");
    assert_int_equal(fclose(table), 0);
    assert_same_files("wanted.csv", "all.csv");
    json_t *doc = sums();
    read_text("all.csv", err_text);
    long long lines = -1;
    for (const char *p = err_text; *p != '\0'; ++p) lines += *p == '\n';
    assert_true(strlen(err_text) > 3 * 16384); /* it is read in pieces */
    assert_int_equal(integer_at(doc, "table.lines"), lines);
    json_decref(doc);
    /* images that are skipped are in it; a result that is not whole stops it */
    assert_int_equal(unlink("results/synthetic:1400x2000.csv") + unlink("all.csv"), 0);
    expect(0, TABLE "--as csv --table all.csv --json --resume");
    check_sums(1, 2, 0);
    assert_same_files("wanted.csv", "all.csv");
    expect(0, TABLE "--as csv --table - --resume");
    read_text("wanted.csv", err_text);
    assert_string_equal(out_text, err_text);
    write_file("results/synthetic:96x64:7.csv", "label,name\n1");
    expect_says(3, TABLE "--as csv --table no.csv --resume", "its columns are 'label,name',");
    assert_non_null(strstr(err_text, "--table 'no.csv' is not written: it has 2 of 3 images"));
    write_file("results/synthetic:1400x2000.csv", "label,name\n1");
    expect_says(3, TABLE "--as csv --table no.csv --resume", "its last line does not end");
    assert_int_equal(unlink(odd), 0);
    expect_says(3, TABLE "--as points.csv --table no.csv", "has 2 of 3 images");
    assert_int_equal(access("no.csv", F_OK), -1);
    write_file("list.txt", "synthetic:64x64\n");
    expect_says(2, "run " NET " --list list.txt --out-dir results --table no.csv",
                "--table needs --as");
    expect_says(2, TABLE "--as geojson --table no.csv", "not geojson");
    expect_says(2, TABLE "--as csv --table no.txt", ".csv");
    expect_says(5, TABLE "--as csv --table nowhere/no.csv", "nowhere");
    expect_says(2, "run data.onnx synthetic:64x64 --as csv --table no.csv", "--list");
    expect_says(2, "run blazeface --list list.txt --out-dir results --as csv --table no.csv",
                "about one output");
}

static void test_refusals(void **state) {
    (void)state;
    clean();
    write_file("list.txt", "a.tif\n");
    write_file("twice.txt", "a.tif\nb.tif\n./a.tif\n");
    write_file("empty.txt", "\n\r\n");
    expect_says(2, "run " NET " --list twice.txt --out-dir results", "would have the same name");
    expect_says(3, "run " NET " --list empty.txt --out-dir results", "has no paths");
    expect_says(3, "run " NET " --list none.txt --out-dir results", "list 'none.txt'");
    expect_says(5, "run " NET " --list list.txt --out-dir list.txt/in", "cannot be made");
    expect_says(5, "run " NET " --list list.txt --out-dir list.txt", "not a folder");
    expect_says(3, "run no_such_net --list list.txt --out-dir results", "no_such_net");
    expect_says(2, "run " NET " --list list.txt", "--list needs --out-dir");
    expect_says(2, "run " NET " a.tif --out-dir results", "--out-dir needs --list");
    expect_says(2, "run " NET " a.tif --list list.txt --out-dir results", "1 argument with --list");
    expect_says(2, "run " NET " --list list.txt --out-dir results --as gif",
                "results are .npy, .tif, .ome.tif, .png, .zarr, .ome.zarr, .pfm, .geojson, .csv, "
                ".json, .coco.json, .boxes.geojson, .boxes.csv, .points.geojson, .points.csv, "
                ".summary.json, .summary.csv, .text.json, .text.csv or .text.geojson");
    expect_says(2, "run " NET " --list list.txt --out-dir results -o x.npy", "--list excludes");
    assert_int_equal(system("rm -rf results/a.tif.zarr"), 0);
    expect(0, "run " NET " --list list.txt --out-dir results --as zarr");
    assert_int_equal(access("results/a.tif.zarr/zarr.json", F_OK), 0);
    expect_says(5, "run " NET " --list list.txt --out-dir results --as zarr", "is there already");
    expect(0, "run " NET " --list list.txt --out-dir results --as zarr --resume");
    static const char *const more[] = {"ome.zarr", "ome.tif"};
    for (int i = 0; i < 2; i++) {
        char command[200], name[100];
        (void)snprintf(command, sizeof command,
                       "run " NET " --list list.txt --out-dir results --as %s", more[i]);
        (void)snprintf(name, sizeof name, "results/a.tif.%s", more[i]);
        assert_int_equal(system("rm -rf results/a.tif.ome.zarr"), 0);
        expect(0, command);
        assert_int_equal(access(name, F_OK), 0);
    }
    write_file("list.txt", "nowhere.tif\na.tif\n"); /* the code of the first one */
    expect(3, "run " NET " --list list.txt --out-dir results --as zarr --json");
    assert_non_null(strstr(out_text, "\"input\":\"a.tif\",\"state\":\"failed\",\"exit\":5"));
    check_sums(0, 0, 2);
    write_file("list.txt", "a.tif\nb.tif\n"); /* what suits none is told once */
    expect(2, "run mobilenet_v2 --list list.txt --out-dir results --as png --json"); /* a vector */
    check_sums(0, 0, 1);
}

/* The peak of a list of n pictures in one budget. Each result is synced, which on a busy disk takes
 * longer than all else: they go to memory where there is such a folder. */
static long long peak_of(int n) {
    char args[300], folder[64] = "results";
    FILE *list = fopen("many.txt", "w");
    assert_non_null(list);
    for (int i = 0; i < n; ++i)
        (void)fprintf(list, "many/%d.%s\n", i, i / 10 % 4 == 1 ? "jpg" : "tif");
    assert_int_equal(fclose(list), 0);
    clean();
    if (access("/dev/shm", W_OK) == 0) {
        (void)snprintf(folder, sizeof folder, "/dev/shm/test_cli_list.%d", (int)getpid());
        assert_int_equal(mkdir(folder, 0700), 0);
    }
    (void)snprintf(args, sizeof args,
                   "run " NET " --list many.txt --out-dir %s --memory 24MiB --json", folder);
    int code = rfexec(args);
    (void)snprintf(args, sizeof args, "rm -rf '%s'", folder);
    assert_int_equal(system(args), 0);
    if (code != 0) fail_msg("exit code %d: %s", code, err_text);
    check_sums(n, 0, 0);
    json_t *doc = sums();
    long long peak = integer_at(doc, "peak_rss_bytes");
    json_decref(doc);
    return peak;
}

static void test_memory_does_not_grow(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf many && mkdir many"), 0);
    for (int i = 0; i < MANY; ++i) {
        char path[40];
        (void)snprintf(path, sizeof path, "many/%d.%s", i, i / 10 % 4 == 1 ? "jpg" : "tif");
        (i / 10 % 4 == 1 ? make_jpeg : make_tiff)(path, i);
    }
    long long few = peak_of(20), many = peak_of(MANY);
    (void)few, (void)many;
#ifndef RFX_SANITIZE
    assert_true(many <= 24 << 20);
    if (many > few + (1 << 20))
        fail_msg("%lld bytes with 20 pictures, %lld with %d", few, many, MANY);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_those_of_single_runs),
        cmocka_unit_test(test_failures_stop_nothing),
        cmocka_unit_test(test_every_output_is_looked_for),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
