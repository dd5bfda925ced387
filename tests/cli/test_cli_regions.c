/* rfexec run --regions: the file does not depend on plan, threads, parts and lists; its numbers are
 * those of the map; places are those of the picture; nothing is left of a run that fails. What
 * regions are is tested in tests/unit/rfexec/answers and, beside SciPy and GDAL, in
 * tests/oracle/region_cases.py. */
#include <math.h>
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
#include "tests/support/makers/conv_maker.h"

#define RUN "run " RFX_DEFECTS " synthetic:600x800 "
#define FOUND "--threshold 0.02 "

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf *.geojson *.csv *.npy *.json out"), 0);
    expect(0, RUN FOUND "--regions all.geojson");
    return 0;
}

static void test_file_is_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {
        "--bands 3 --threads 1",     "--bands 8 --strips 3 --threads 3",
        "--untiled --threads 2",     "--tiles 3x2",
        "--bands 2 --tight",         "--bands 1 --memory 20MiB",
        "--untiled -o all.csv",      "--untiled -o twice.geojson --overlay o.png --overlay-of 1",
        "--bands 16 --report r.html"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("one.geojson");
        (void)snprintf(command, sizeof command, RUN FOUND "--regions one.geojson %s", plans[i]);
        expect(0, command);
        assert_same_files("all.geojson", "one.geojson");
    }
    assert_same_files("all.geojson", "twice.geojson");
}

static void test_parts_and_lists_give_the_same_file(void **state) {
    char command[300];
    (void)state;
    for (int i = 1; i <= 3; ++i) {
        (void)snprintf(command, sizeof command, RUN "--part %d/3 -o part%d.npy", i, i);
        expect(0, command);
    }
    expect(0, "merge part3.npy part1.npy part2.npy -o merged.geojson " FOUND);
    assert_same_files("all.geojson", "merged.geojson");
    expect(0, "merge part3.npy part1.npy part2.npy -o merged.csv --json " FOUND);
    json_t *doc = document("merge");
    assert_true(integer_at(doc, "regions.count") > 50);
    json_decref(doc);
    assert_int_equal(system("printf 'synthetic:600x800\\nsynthetic:96x64:7\\n' >list.txt"), 0);
    expect(0, "run " RFX_DEFECTS " --list list.txt --out-dir out --as geojson " FOUND);
    assert_same_files("all.geojson", "out/synthetic:600x800.geojson");
    expect_says(3, "merge part1.npy part2.npy -o less.geojson " FOUND, "part");
    assert_int_not_equal(access("less.geojson", F_OK), 0);
}

static void test_simplified_polygons(void **state) {
    static const char *const plans[] = {"--bands 3 --threads 1", "--untiled --threads 2",
                                        "--tiles 3x2", "--bands 1 --memory 20MiB"};
    char command[300];
    (void)state;
    expect(0, RUN FOUND "--regions simple.geojson --simplify 0.5");
    read_text("all.geojson", out_text);
    size_t exact = strlen(out_text);
    read_text("simple.geojson", out_text);
    assert_true(strlen(out_text) + 1000 < exact);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        (void)snprintf(command, sizeof command, RUN FOUND "--regions one.geojson --simplify 0.5 %s",
                       plans[i]);
        expect(0, command);
        assert_same_files("simple.geojson", "one.geojson");
    }
    for (int i = 1; i <= 3; ++i) {
        (void)snprintf(command, sizeof command, RUN "--part %d/3 -o s%d.npy", i, i);
        expect(0, command);
    }
    expect(0, "merge s1.npy s2.npy s3.npy -o merged.geojson --simplify 0.5 " FOUND);
    assert_same_files("simple.geojson", "merged.geojson");
    expect(0, RUN FOUND "--regions one.geojson --simplify 0");
    assert_same_files("all.geojson", "one.geojson");
    expect_says(2, RUN FOUND "--regions no.geojson --simplify 0.71", "0 to 0.7 pixels");
    expect_says(2, RUN FOUND "--regions no.geojson --simplify -1", "0 to 0.7 pixels");
    expect_says(2, RUN FOUND "--regions no.csv --simplify 0.5", "this kind of file has none");
    expect_says(2, RUN "--part 1/3 -o no.npy --simplify 0.5", "excludes");
    assert_int_not_equal(access("no.geojson", F_OK), 0);
}

/* Sums of a column of a CSV file with a header; columns count from 0. */
static double sum_of(const char *path, int column, int *lines) {
    double sum = 0.0;
    read_text(path, out_text);
    *lines = 0;
    for (char *line = strchr(out_text, '\n'); line != NULL && line[1] != '\0';
         line = strchr(line + 1, '\n')) {
        char *p = line + 1;
        for (int i = 0; i < column; ++i) p = strchr(p, ',') + 1;
        sum += strtod(p, NULL);
        ++*lines;
    }
    return sum;
}

/* The map of data/phase_net.onnx has several channels: the class is the largest. */
static void test_classes_cover_the_map(void **state) {
    int lines, others;
    (void)state;
    expect(0, "run " RFX_PHASE_NET " synthetic:150x170 --all-labels --regions phases.csv");
    assert_true(sum_of("phases.csv", 2, &lines) == 75.0 * 85.0);
    assert_true(sum_of("phases.csv", 3, &lines) == 150.0 * 170.0); /* its pixels are 2 x 2 */
    expect(0, "run " RFX_PHASE_NET " synthetic:150x170 --regions less.csv");
    double covered = sum_of("less.csv", 2, &others);
    assert_true(covered < 75.0 * 85.0 && others < lines);
    expect(0, "run " RFX_PHASE_NET " synthetic:150x170 --regions large.csv --min-area 20");
    assert_true(sum_of("large.csv", 2, &lines) < covered && lines < others);
    expect(0, "run " RFX_PHASE_NET " synthetic:150x170 --regions corners.csv --connect 8");
    assert_true(sum_of("corners.csv", 2, &lines) == covered && lines < others);
}

/* Regions in the pixels of the whole picture, whatever part of it is read. */
static void test_places_are_those_of_the_picture(void **state) {
    int lines;
    (void)state;
    expect(0, RUN FOUND "-o all.csv");
    assert_true(sum_of("all.csv", 7, &lines) > 0.0 && lines > 50);
    expect(0, RUN FOUND "--regions moved.csv --region 64,128,564,700");
    double left = sum_of("moved.csv", 7, &lines);
    assert_true(lines > 20 && left / lines > 128.0);
    expect(0, "run " RFX_DEFECTS
              " synthetic:600x800 --region 64,128,564,700 --threshold -1 --min-area 99 "
              "--regions cut.csv");
    read_text("cut.csv", out_text); /* each channel is one region of all 63 x 72 pixels */
    assert_non_null(strstr(out_text, "\n0,,4536,290304,"));
    assert_non_null(strstr(out_text, ",124.5,60.5,700.5,564.5,"));
    sum_of("all.csv", 7, &lines);
    write_file("names.txt", "scratch\n\"pit\", deep\nstain\n");
    expect(0, RUN FOUND "--regions named.csv --classes names.txt");
    read_text("named.csv", out_text);
    assert_non_null(strstr(out_text, "\n1,\"\"\"pit\"\", deep\","));
    expect(0, RUN FOUND "--regions named.geojson --classes names.txt");
    json_t *doc = json_load_file("named.geojson", 0, NULL);
    assert_non_null(doc);
    json_t *features = json_object_get(doc, "features");
    assert_int_equal(json_array_size(features), lines);
    bool named = false;
    for (size_t i = 0; i < json_array_size(features); ++i) {
        json_t *properties = json_object_get(json_array_get(features, i), "properties");
        const char *name = json_string_value(at(properties, "classification.name"));
        assert_true(json_number_value(at(properties, "area")) ==
                    json_number_value(at(properties, "measurements.Area px^2")));
        named = named || strcmp(name, "\"pit\", deep") == 0;
    }
    assert_true(named);
    json_decref(doc);
}

/* A budget limits the memory of open regions, whose usual share is 8 MiB. */
static void test_open_regions_are_limited(void **state) {
    const struct conv_maker net = {
        .kernel = 1, .stride = 1, .channels = 1, .seed = 3, .largest = 1.0f};
    (void)state;
    conv_maker_save("noise.onnx", &net);
    static const char run[] =
        "run noise.onnx synthetic:2800x2800 --threshold 0 --connect 8 --regions noise.csv";
    char command[200];
    expect(0, run);
    (void)unlink("noise.csv");
    (void)snprintf(command, sizeof command, "%s --memory 96MiB", run);
    expect_says(4, command, "--answer-memory 8388608, shared by 1 map of labels: regions: ");
    assert_int_not_equal(access("noise.csv", F_OK), 0);
    (void)snprintf(command, sizeof command, "%s --memory 96MiB --answer-memory 48MiB", run);
    expect(0, command);
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(2, RUN "--threshold 0.5", "regions");
    expect_says(2, RUN "-o map.npy --threshold 0.5", "--regions");
    expect_says(2, RUN "--regions map.tif", ".geojson or .csv");
    expect_says(2, RUN "--regions no.geojson --threshold 0.5,0.2", "one for each");
    expect_says(2, RUN "--regions no.geojson --regions-of other", "'defects'");
    expect_says(2, RUN FOUND "--regions no.geojson --coordinates map", "coordinate system");
    expect_says(2, RUN FOUND "--regions no.geojson --all-labels", "--threshold");
    expect_says(2, "run mobilenet_v2:0.25 synthetic:64x64 --regions no.geojson",
                "no map of rows and columns");
    expect_says(2, RUN "--part 1/2 -o part1.npy --regions no.geojson", "merge");
    expect_says(5, RUN FOUND "--regions no.geojson --classes none.txt", "none.txt");
    expect_says(4, RUN FOUND "--regions no.geojson --answer-memory 3KiB", "are allowed");
    expect_says(4, RUN FOUND "--regions no.geojson --memory 12MiB", "MiB");
    assert_int_not_equal(access("no.geojson", F_OK), 0);
    expect(0, RUN FOUND "--regions -");
    read_text("all.geojson", err_text);
    assert_string_equal(out_text, err_text);
}

/* The strides and the nearest pixels of this network see 1.5 pixels to the side of what they are
 * trained for: its map has the image's size, and lies on the image's pixels. */
static void test_maps_of_the_images_size_lie_on_its_pixels(void **state) {
    static char text[2000];
    (void)state;
    expect(0, "run ppocr_det synthetic:64x96 --regions same.geojson --threshold 0");
    read_text("same.geojson", text);
    assert_non_null(strstr(text, "[[[0,0],[96,0],[96,64],[0,64],[0,0]]]"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_is_the_same_for_every_plan),
        cmocka_unit_test(test_parts_and_lists_give_the_same_file),
        cmocka_unit_test(test_simplified_polygons),
        cmocka_unit_test(test_classes_cover_the_map),
        cmocka_unit_test(test_places_are_those_of_the_picture),
        cmocka_unit_test(test_open_regions_are_limited),
        cmocka_unit_test(test_maps_of_the_images_size_lie_on_its_pixels),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("regions", tests, set_up, NULL);
}
