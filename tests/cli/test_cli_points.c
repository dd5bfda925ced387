/* rfexec run --points and --summary: the files do not depend on plan, threads and lists of options;
 * the points of a map are those of the definition, found again in the map of -o; the numbers of a
 * summary add up and agree with regions, in areas too; places are those of regions; what cannot be
 * is refused.
 * What peaks are is tested in tests/unit/rfexec/answers and, beside NumPy and SciPy, in
 * tests/oracle/answers.py. */
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
#include "tests/support/makers/onnx_maker.h"

#define RUN "run " RFX_DEFECTS " synthetic:600x800 "
#define FOUND "--threshold 0.02,0.01,0.5 "
#define QUANTILES "--within areas.geojson --quantiles 0,0.1,0.5 "
enum { CHANNELS = 3, H = 75, W = 100 }; /* of the map */

/* Makes a network whose labels are 4 times a gray image, as 64-bit integers. */
static void make_labels(const char *path) {
    static const float scale = 4.0F;
    enum { INT64 = 7 };
    static const int64_t image[4] = {1, 1, 0, 0}, one[4] = {1, 1, 1, 1};
    static struct maker graph, model, shape, tensor, type, value;
    graph.size = model.size = shape.size = tensor.size = type.size = value.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", one, 4, &scale);
    maker_add(&graph, "Conv", "image k", "scaled");
    maker_add_int(&graph, "Cast", "scaled", "labels", "to", INT64);
    maker_int(&tensor, 1, INT64);
    maker_message(&tensor, 2, &shape);
    maker_message(&type, 1, &tensor);
    maker_text(&value, 1, "labels");
    maker_message(&value, 2, &type);
    maker_message(&graph, MAKER_OUTPUT, &value);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

/* Makes an image of 300 x 400 different values. */
static void make_values(const char *path) {
    enum { H_PX = 300, W_PX = 400 };
    static float values[H_PX * W_PX];
    for (int i = 0; i < H_PX * W_PX; ++i) values[i] = (float)i;
    write_floats(path, "(1, 1, 300, 400)", values, H_PX * W_PX);
}

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf *.geojson *.csv *.npy *.json *.onnx out"), 0);
    make_labels("labels.onnx");
    make_values("many.npy");
    expect(0, RUN FOUND "--points all.csv --distance 2 --summary all.json -o map.npy");
    expect(0,
           "run labels.onnx synthetic:131x170 --summary labels.csv --regions regions.csv "
           "--all-labels");
    expect(0, RUN FOUND "--regions areas.geojson");
    expect(0, RUN "--summary areas.json --within areas.geojson --bins 7,0,1");
    return 0;
}

static void test_files_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {
        "--bands 3 --threads 1",
        "--bands 8 --strips 3 --threads 3",
        "--untiled --threads 2",
        "--tiles 3x2",
        "--bands 2 --tight",
        "--bands 1 --memory 20MiB",
        "--untiled --regions r.csv -o o.geojson",
        "--overlay o.png --overlay-of 1 --report r.html",
        "-o o.tif --bits 8 --range 0,1" /* scales the samples of -o alone */};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("one.csv");
        (void)unlink("one.json");
        (void)snprintf(command, sizeof command,
                       RUN FOUND "--points one.csv --distance 2 --summary one.json %s", plans[i]);
        expect(0, command);
        assert_same_files("all.csv", "one.csv");
        assert_same_files("all.json", "one.json");
        (void)snprintf(command, sizeof command,
                       "run labels.onnx synthetic:131x170 --summary one.csv %s",
                       i < 6 ? plans[i] : "--bands 7");
        expect(0, command);
        assert_same_files("labels.csv", "one.csv");
        (void)snprintf(command, sizeof command,
                       RUN "--summary one.json --within areas.geojson --bins 7,0,1 %s",
                       i < 6 ? plans[i] : "--bands 7");
        expect(0, command);
        assert_same_files("areas.json", "one.json");
    }
}

static float map[CHANNELS][H][W];

static bool is_peak(int k, int y, int x, int distance) {
    static const float thresholds[CHANNELS] = {0.02F, 0.01F, 0.5F};
    if (!(map[k][y][x] > thresholds[k])) return false;
    for (int v = y - distance; v <= y + distance; ++v)
        for (int u = x - distance; u <= x + distance; ++u) {
            if (v < 0 || v >= H || u < 0 || u >= W) continue;
            bool before = v < y || (v == y && u < x);
            if (map[k][v][u] > map[k][y][x] || (before && map[k][v][u] == map[k][y][x]))
                return false;
        }
    return true;
}

static void test_points_are_the_peaks_of_the_map(void **state) {
    int n = 0;
    (void)state;
    read_floats("map.npy", &map[0][0][0], sizeof map / sizeof(float));
    read_text("all.csv", out_text);
    assert_int_equal(strncmp(out_text, "label,name,score,x,y\n", 21), 0);
    char *line = out_text + 21;
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x)
            for (int k = 0; k < CHANNELS; ++k) {
                int label = -1;
                float score = 0;
                double at[2] = {0, 0};
                if (!is_peak(k, y, x, 2)) continue;
                assert_int_equal(sscanf(line, "%d,,%f,%lf,%lf", &label, &score, at, at + 1), 4);
                assert_int_equal(label, k);
                assert_true(score == map[k][y][x]);
                assert_true(at[0] == 8.0 * x + 0.5 && at[1] == 8.0 * y + 0.5);
                line = strchr(line, '\n') + 1;
                n++;
            }
    assert_string_equal(line, "");
    assert_true(n > 50);
    expect(0, RUN FOUND "--points all.geojson --distance 2 --json");
    json_t *doc = json_loads(out_text, 0, NULL);
    assert_int_equal(integer_at(doc, "points.count"), n);
    json_decref(doc);
    doc = json_load_file("all.geojson", 0, NULL);
    assert_int_equal(json_array_size(json_object_get(doc, "features")), n);
    json_decref(doc);
}

/* Runs the parts of a run, and writes their names to `parts`, the last one first. */
static void make_parts(const char *run, const char *name, int n, char parts[200]) {
    char command[300];
    int used = 0;
    for (int k = n; k >= 1; --k) {
        (void)snprintf(command, sizeof command, "%s --part %d/%d -o %s%dof%d.npy", run, k, n, name,
                       k, n);
        expect(0, command);
        used += snprintf(parts + used, 200 - (size_t)used, " %s%dof%d.npy", name, k, n);
    }
}

static void expect_merged(const char *parts, const char *options, const char *file,
                          const char *same) {
    char command[400];
    (void)snprintf(command, sizeof command, "merge%s %s -o %s", parts, options, file);
    expect(0, command);
    assert_same_files(same, file);
}

static void test_parts_give_the_same_files(void **state) {
    static const int counts[] = {2, 3, 5};
    (void)state;
    expect(0, RUN FOUND "--points all.geojson --distance 2 --summary summary.csv");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        char parts[200];
        make_parts(RUN, "defects", counts[i], parts);
        expect_merged(parts, FOUND "--distance 2", "m.points.csv", "all.csv");
        expect_merged(parts, FOUND "--distance 2", "m.points.geojson", "all.geojson");
        expect_merged(parts, FOUND, "m.summary.csv", "summary.csv");
        expect_merged(parts, FOUND, "m.summary.json", "all.json");
        assert_non_null(strstr(out_text, "summary    3 classes, in m.summary.json\n"));
        make_parts("run labels.onnx synthetic:131x170", "labels", counts[i], parts);
        expect_merged(parts, "", "l.summary.csv", "labels.csv");
    }
    expect_says(3, "merge defects1of2.npy -o less.summary.json", "part");
    assert_int_not_equal(access("less.summary.json", F_OK), 0);
}

/* Points and summaries are kinds of files too, of each output and of the images of a list. */
static void test_endings_ask_for_the_same_files(void **state) {
    (void)state;
    expect(0, RUN FOUND "-o one.points.csv --distance 2 --json");
    json_t *doc = json_loads(out_text, 0, NULL);
    assert_true(integer_at(doc, "output.points.count") > 50);
    json_decref(doc);
    assert_same_files("all.csv", "one.points.csv");
    expect(0, RUN FOUND "-o one.summary.json --points two.points.csv --distance 2");
    assert_same_files("all.json", "one.summary.json");
    assert_same_files("all.csv", "two.points.csv");
    write_file("list.txt", "synthetic:600x800\n");
    expect(0,
           "run " RFX_DEFECTS " --list list.txt --out-dir out --as points.csv --distance 2 " FOUND);
    assert_same_files("all.csv", "out/synthetic:600x800.points.csv");
    expect(0, "run " RFX_DEFECTS " --list list.txt --out-dir out --as summary.json " FOUND);
    assert_same_files("all.json", "out/synthetic:600x800.summary.json");
}

/* Number `column` of the line that begins with the label. */
static double number_of(const char *text, long long label, int column) {
    char begin[32];
    (void)snprintf(begin, sizeof begin, "\n%lld,", label);
    const char *p = strstr(text, begin);
    if (p == NULL) return 0.0;
    for (int i = 0; i < column; ++i) p = strchr(p, ',') + 1;
    return strtod(p, NULL);
}

/* Regions of all labels cover the map; their pixels are those of the labels. */
static void test_summary_has_the_pixels_of_regions(void **state) {
    static char summary[65536];
    double pixels[64] = {0}, sum = 0;
    int lines = 0;
    (void)state;
    read_text("labels.csv", summary);
    read_text("regions.csv", out_text);
    for (char *p = strchr(out_text, '\n'); p != NULL && p[1] != '\0'; p = strchr(p + 1, '\n')) {
        long long label = strtoll(p + 1, NULL, 10);
        assert_true(label >= -32 && label < 32);
        pixels[label + 32] += number_of(p, label, 2);
    }
    for (int i = 0; i < 64; ++i) {
        lines += pixels[i] > 0;
        sum += pixels[i];
        assert_true(number_of(summary, i - 32, 2) == pixels[i]);
        assert_true(number_of(summary, i - 32, 4) == pixels[i] / (131.0 * 170.0));
    }
    assert_true(sum == 131.0 * 170.0 && lines > 2);
    expect(0, "run labels.onnx synthetic:131x170 --summary few.json --json");
    json_t *doc = json_loads(out_text, 0, NULL);
    assert_int_equal(integer_at(doc, "summary.count"), lines);
    json_decref(doc);
    expect(0, "run labels.onnx synthetic:131x170 --summary few.json");
    char words[40];
    (void)snprintf(words, sizeof words, "%d classes, in few.json", lines);
    assert_non_null(strstr(out_text, words));
    expect(0, "run " RFX_PHASE_NET " synthetic:150x170 --summary phases.csv");
    read_text("phases.csv", summary);
    assert_true(number_of(summary, 0, 2) + number_of(summary, 1, 2) + number_of(summary, 2, 2) ==
                75.0 * 85.0);
    assert_true(number_of(summary, 1, 3) == 4.0 * number_of(summary, 1, 2)); /* pixels are 2 x 2 */
}

/* A part of the picture: places are those of the whole picture. */
static void test_places_are_those_of_the_picture(void **state) {
    (void)state;
    expect(0, "run " RFX_DEFECTS
              " synthetic:600x800 --region 64,128,564,700 --threshold -1 --distance 99 "
              "--points cut.csv --summary cut.json");
    read_text("cut.csv", out_text); /* each channel has one */
    int lines = 0;
    for (const char *p = out_text; *p != '\0'; ++p) lines += *p == '\n';
    assert_int_equal(lines, 4);
    for (int k = 0; k < CHANNELS; ++k) {
        double x = number_of(out_text, k, 3), y = number_of(out_text, k, 4);
        assert_true(x >= 128.5 && x < 700.0 && y >= 64.5 && y < 564.0);
    }
    json_t *doc = json_load_file("cut.json", 0, NULL);
    assert_int_equal(integer_at(doc, "pixels"), 63 * 72);
    assert_int_equal(integer_at(doc, "area"), 63 * 72 * 64);
    json_decref(doc);
    write_file("names.txt", "scratch\npit\n");
    expect(0, RUN FOUND "--points named.csv --summary named.json --classes names.txt");
    read_text("named.csv", out_text);
    assert_non_null(strstr(out_text, "\n1,\"pit\","));
    read_text("named.json", out_text);
    assert_non_null(strstr(out_text, "{\"label\":1,\"name\":\"pit\","));
}

/* Regions that are read as areas have the pixels of the regions: polygons of the map's pixels, with
 * holes, of several parts, overlapping, from a network with a stride and from a part of the
 * picture. */
static void test_areas_of_regions_have_their_pixels(void **state) {
    static const char *const options[] = {RUN FOUND,
                                          RUN FOUND "--connect 8 --region 64,128,564,700 ",
                                          "run " RFX_PHASE_NET " synthetic:150x170 --all-labels ",
                                          "run labels.onnx synthetic:131x170 --all-labels "};
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; ++i) {
        char command[300];
        (void)snprintf(command, sizeof command, "%s --regions r.geojson", options[i]);
        expect(0, command);
        /* Options of regions do not go with --summary alone. */
        (void)snprintf(command, sizeof command,
                       "%s --regions again.geojson --summary w.json --within r.geojson",
                       options[i]);
        expect(0, command);
        assert_same_files("r.geojson", "again.geojson");
        assert_true(assert_areas_are_regions("w.json", "r.geojson") > 10);
    }
}

static void test_areas_and_bins_are_checked(void **state) {
    (void)state;
    write_file("names.geojson",
               "{\"type\":\"Feature\",\"id\":\"west\",\"geometry\":{\"type\":\"Polygon\","
               "\"coordinates\":[[[0,0],[85,0],[85,131],[0,131],[0,0]]]}}");
    expect(
        0,
        "run labels.onnx synthetic:131x170 --summary w.csv --within names.geojson --memory 20MiB "
        "--answer-memory 100KiB");
    read_text("w.csv", out_text);
    assert_int_equal(strncmp(out_text, "within,within_name,label,", 25), 0);
    double sum = 0;
    for (const char *p = strstr(out_text, "\n1,\"west\","); p != NULL; p = strchr(p + 1, '\n'))
        if (p[1] != '\0') sum += strtod(strstr(p, ",,") + 2, NULL);
    assert_true(sum == 131.0 * 85.0);
    expect_says(
        4,
        "run labels.onnx synthetic:131x170 --summary no.csv --within areas.geojson --memory "
        "20MiB --answer-memory 100KiB",
        "--answer-memory is 102400");
    write_file("far.geojson",
               "{\"type\":\"MultiPolygon\",\"coordinates\":[[[[0,0],[85,0],[85,131],[0,0]]],"
               "[[[900,0],[950,0],[950,9],[900,0]]]]}");
    expect(0, "run labels.onnx synthetic:131x170 --summary w.csv --within far.geojson");
    write_file("far.geojson",
               "{\"type\":\"Polygon\",\"coordinates\":[[[900,0],[950,0],[950,9],[900,0]]]}");
    expect_says(0, "run labels.onnx synthetic:131x170 --summary w.csv --within far.geojson",
                "--within: 1 of 1 areas hold the centre of no pixel");
    expect_says(2, RUN "--summary no.csv --within names.geojson --coordinates map",
                "coordinate system");
    expect_says(2, RUN "-o map.npy --within names.geojson", "--summary");
    expect_says(2, "run labels.onnx synthetic:131x170 --summary no.csv --bins 4,0,1", "labels");
    expect_says(2, RUN "-o map.npy --bins 4,0,1", "--summary");
    static const char *const wrong[] = {"4",       "4,1",     "0,0,1",   "70000,0,1",      "4,1,1",
                                        "4,0,1,2", "4,nan,1", "4,0,inf", "4,-1e308,1e308", "4,,1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, RUN "--summary no.csv --bins %s", wrong[i]);
        expect_says(2, command, "such as 10,0,1");
    }
    expect_says(2, "run labels.onnx synthetic:131x170 --summary no.csv --quantiles 0.5", "labels");
    expect_says(2, RUN "-o map.npy --quantiles 0.5", "--summary");
    expect_says(4,
                RUN
                "--summary no.csv --quantiles 0.25,0.5 --within areas.geojson --memory 64MiB "
                "--answer-memory 256000",
                "2 quantiles of 3 channels in ");
    expect_says(4,
                RUN
                "--summary no.csv --quantiles 0.25,0.5 --within areas.geojson --memory 64MiB "
                "--answer-memory 256000",
                "--answer-memory is 256000");
    static const char *const no_list[] = {"",    "x",       "0.5,",    "-0.1",
                                          "1.1", "0.5,0.5", "0.9,0.1", "nan"};
    for (size_t i = 0; i < sizeof no_list / sizeof no_list[0]; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, RUN "--summary no.csv --quantiles=%s", no_list[i]);
        expect_says(2, command, "such as 0.05,0.5,0.95");
    }
    expect_says(5, RUN "--summary no.csv --within none.geojson", "none.geojson");
    expect_says(3, RUN "--summary no.csv --within all.csv", "areas 'all.csv': line 1");
    expect_says(2, RUN "--summary no.csv --within .", "areas");
    assert_int_not_equal(access("no.csv", F_OK), 0);
}

/* -o and merged parts give the files of --summary. */
static void test_areas_go_with_every_file_of_a_summary(void **state) {
    (void)state;
    expect(0, RUN "--bins 7,0,1 --within areas.geojson -o again.summary.json");
    assert_same_files("areas.json", "again.summary.json");
    expect(0, RUN "--part 1/2 -o areas1.npy");
    expect(0, RUN "--part 2/2 -o areas2.npy");
    expect(0,
           "merge areas2.npy areas1.npy --bins 7,0,1 --within areas.geojson --memory 64MiB -o "
           "merged.summary.json");
    assert_same_files("areas.json", "merged.summary.json");
    expect_says(2, RUN "--part 1/2 -o areas1.npy --within areas.geojson", "merge");
    expect(0, RUN "--quantiles 0,0.1,0.5 --summary medians.csv");
    expect(0, RUN "--quantiles 0,0.1,0.5 -o again.summary.csv --bands 64");
    assert_same_files("medians.csv", "again.summary.csv");
    expect(0, "merge areas2.npy areas1.npy --quantiles 0,0.1,0.5 -o merged.summary.csv");
    assert_same_files("medians.csv", "merged.summary.csv");
    read_text("medians.csv", out_text);
    assert_non_null(strstr(out_text, ",nan,quantile_0,quantile_0.1,quantile_0.5\n"));
}

/* Quantiles in areas are the same for every number of parts and every plan, and those of the whole
 * map are the same with and without areas. */
static void test_quantiles_go_with_areas_and_parts(void **state) {
    static const char *const plans[] = {"--bands 3 --threads 1", "--bands 8 --strips 3 --threads 3",
                                        "--untiled --threads 2", "--tiles 3x2",
                                        "--bands 1 --memory 20MiB"};
    static const int parts[] = {1, 2, 3, 5};
    char command[400];
    (void)state;
    expect(0, RUN QUANTILES "--summary inside.csv");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        (void)unlink("one.csv");
        (void)snprintf(command, sizeof command, RUN QUANTILES "--summary one.csv %s", plans[i]);
        expect(0, command);
        assert_same_files("inside.csv", "one.csv");
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
        char merge[300] = "merge";
        for (int k = parts[i]; k >= 1; --k) {
            (void)snprintf(command, sizeof command, RUN "--part %d/%d -o inside%d_%d.npy", k,
                           parts[i], parts[i], k);
            expect(0, command);
            (void)snprintf(merge + strlen(merge), sizeof merge - strlen(merge), " inside%d_%d.npy",
                           parts[i], k);
        }
        (void)snprintf(command, sizeof command, "%s " QUANTILES "-o one.summary.csv", merge);
        expect(0, command);
        assert_same_files("inside.csv", "one.summary.csv");
    }
}

static long long planned_source(const char *options) {
    char command[300];
    (void)snprintf(command, sizeof command,
                   "plan " RFX_DEFECTS " --size 600x800 " FOUND "--points p.csv --json %s",
                   options);
    expect(0, command);
    json_t *doc = document("plan");
    long long bytes = integer_at(doc, "plan.breakdown.source");
    json_decref(doc);
    return bytes;
}

/* The run that is planned writes the points alone, unless --for-output says otherwise. */
static void test_plan_counts_the_points(void **state) {
    (void)state;
    long long points = planned_source("");
    assert_int_equal(points, planned_source("--for-output none"));
    assert_true(points < planned_source("--for-output map.npy"));
    assert_true(points + 80000 < planned_source("--distance 99")); /* rows of maxima */
    long long summary = planned_source("--summary s.csv --memory 64MiB");
    long long areas = planned_source(
        "--summary s.csv --within areas.geojson --memory 64MiB "
        "--answer-memory 3000000");
    assert_int_equal(areas, summary + 3000000);
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(2, RUN "--points no.csv", "--threshold");
    expect_says(2, RUN "--distance 3 -o map.npy", "--points");
    expect_says(2, RUN FOUND "--points no.csv --distance 0", "--distance");
    expect_says(2, RUN FOUND "--points no.csv --connect 8", "--regions");
    expect_says(2, RUN "--points no.csv --threshold 0.5,0.2", "one for each");
    expect_says(2, RUN "--summary no.csv --threshold 0.5,0.2", "one for each");
    expect_says(2, RUN FOUND "--points no.json", ".geojson or .csv");
    expect_says(2, RUN "--summary no.geojson", ".json or .csv");
    expect_says(2, RUN "--summary no.coco.json", "JSON of COCO");
    expect_says(2, RUN FOUND "--points no.summary.csv", "summary in CSV");
    expect_says(2, RUN FOUND "--regions no.points.csv", "CSV of points");
    expect_says(2, RUN "-o no.points.csv", "--threshold");
    expect_says(2, RUN FOUND "-o no.csv --distance 3", "--distance is for --points");
    expect_says(2, RUN FOUND "-o no.points.csv --bins 4,0,1", "are for --summary");
    expect_says(2, RUN FOUND "-o no.csv --within names.geojson",
                "--within, --bins and --quantiles are for");
    expect_says(2, RUN "-o no.summary.csv --threshold 0.5,0.2", "one for each");
    expect_says(2, RUN "--part 1/2 -o part1.npy --distance 3", "merge");
    expect_says(2, "run mobilenet_v2:0.25 synthetic:64x64 -o no.summary.csv", "takes a map");
    expect_says(2, RUN FOUND "--points no.csv --regions no.csv", "both");
    expect_says(2, RUN FOUND "--points no.csv --points-of other", "'defects'");
    expect_says(2, RUN "--summary no.csv --summary-of other", "'defects'");
    expect_says(2, RUN "--part 1/2 -o part1.npy --summary no.csv", "merge");
    expect_says(2, RUN FOUND "--part 1/2 -o part1.npy --points no.csv", "merge");
    expect_says(2, "run mobilenet_v2:0.25 synthetic:64x64 --summary no.csv",
                "no map of rows and columns");
    expect_says(5, RUN FOUND "--points no.csv --classes none.txt", "none.txt");
    /* 900 rows of maxima; the same budget is enough for a small distance */
    expect_says(4,
                "run labels.onnx synthetic:900x4000 --points no.csv --threshold 1 --memory "
                "16MiB --distance 899",
                "MiB");
    expect(0,
           "run labels.onnx synthetic:900x4000 --points near.csv --threshold 1 --memory 16MiB "
           "--distance 9");
    expect_says(3, "run labels.onnx many.npy --summary no.csv", "65536 different labels");
    assert_int_not_equal(access("no.csv", F_OK), 0);
    expect(0, RUN FOUND "--points - --distance 2");
    read_text("all.geojson", err_text);
    assert_string_equal(out_text, err_text);
    expect(0, RUN FOUND "--summary -");
    read_text("all.json", err_text);
    assert_string_equal(out_text, err_text);
}

/* A map of the image's size that the network has turned over: the points lie where the image has
 * them. */
static void test_maps_that_are_turned_over(void **state) {
    static const int64_t image[4] = {1, 1, 20, 30}, last = -1, before = -1000, axis = 3;
    static float values[20 * 30];
    static struct maker graph, model;
    (void)state;
    graph.size = model.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_ints(&graph, "last", &last, 1);
    maker_ints(&graph, "before", &before, 1);
    maker_ints(&graph, "axis", &axis, 1);
    maker_add(&graph, "Relu", "image", "map");
    maker_add(&graph, "Slice", "map last before axis last", "turned");
    maker_value(&graph, MAKER_OUTPUT, "turned", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, "turned.onnx");
    values[3 * 30 + 5] = 1;
    write_floats("turned.npy", "(1, 1, 20, 30)", values, 20 * 30);
    expect(0, "run turned.onnx turned.npy --points turned.csv --threshold 0.5");
    read_text("turned.csv", out_text);
    assert_string_equal(out_text, "label,name,score,x,y\n0,,1,5.5,3.5\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_the_same_for_every_plan),
        cmocka_unit_test(test_points_are_the_peaks_of_the_map),
        cmocka_unit_test(test_parts_give_the_same_files),
        cmocka_unit_test(test_endings_ask_for_the_same_files),
        cmocka_unit_test(test_summary_has_the_pixels_of_regions),
        cmocka_unit_test(test_places_are_those_of_the_picture),
        cmocka_unit_test(test_areas_of_regions_have_their_pixels),
        cmocka_unit_test(test_areas_and_bins_are_checked),
        cmocka_unit_test(test_areas_go_with_every_file_of_a_summary),
        cmocka_unit_test(test_quantiles_go_with_areas_and_parts),
        cmocka_unit_test(test_plan_counts_the_points),
        cmocka_unit_test(test_maps_that_are_turned_over),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("points", tests, set_up, NULL);
}
