/* Files of outputs behind the public header: their bytes against those of the caller's array, what
 * is refused, and what a failure leaves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/makers/detector_maker.h"
#include "tests/support/makers/head_maker.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

#define PATH "test_result_files.tmp"
enum { H = 48, W = 40, HEADER = 128 /* of such an .npy */ };

static struct rfx_result_file result_file(int output, const char *path) {
    struct rfx_result_file file;
    rfx_result_file_init(&file, sizeof file);
    assert_int_equal(file.size, sizeof file);
    file.output = output;
    file.path = path;
    return file;
}

/* The values of an .npy of n floats. */
static float *read_npy(const char *path, int64_t n) {
    float *values = test_floats(n);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, HEADER, SEEK_SET), 0);
    assert_int_equal(fread(values, sizeof *values, (size_t)n, file), n);
    assert_int_equal(fgetc(file), EOF);
    (void)fclose(file);
    assert_int_equal(unlink(path), 0);
    return values;
}

/* A map and a file of it, in a run with and without a budget; the second one without an array. */
static void files_have_the_values(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs want = network_outputs_for(net);
    struct rfx_result_file file = result_file(0, PATH ".npy");
    for (int way = 0; way < 4; way++) {
        struct rfx_run_options options = network_run_options(way / 2 == 0 ? 0 : 40 << 20, 2);
        struct rfx_why why;
        bool with_array = way % 2 == 0;
        options.files = &file;
        options.n_files = 1;
        network_check(rfx_network_run_values(net, image, with_array ? want.values : NULL,
                                             with_array ? want.n : 0, &options, &why),
                      &why);
        float *got = read_npy(PATH ".npy", want.elems[0]);
        assert_memory_equal(got, want.values[0], (size_t)want.elems[0] * sizeof *got);
        free(got);
    }
    network_outputs_free(&want);
    free(image);
    rfx_network_free(net);
}

/* Whether no value within the distance is larger, and no earlier one is equal. */
static bool is_peak(const float *map, int h, int w, int y, int x, int distance) {
    for (int v = y - distance; v <= y + distance; v++)
        for (int u = x - distance; u <= x + distance; u++) {
            if (v < 0 || v >= h || u < 0 || u >= w) continue;
            bool before = v < y || (v == y && u < x);
            float other = map[v * w + u], own = map[y * w + x];
            if (other > own || (before && other == own)) return false;
        }
    return true;
}

/* Points and summaries of a map, against the values of the caller's array. */
static void answers_are_those_of_the_values(void **state) {
    (void)state;
    enum { MAP_H = 2 * H, MAP_W = 2 * W, MAP_C = 3, DISTANCE = 4 };
    static const float threshold = 0.1F;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs want = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(40 << 20, 2);
    struct rfx_result_file file = result_file(0, PATH ".points.csv");
    struct rfx_why why;
    char line[256];
    int points = 0;
    assert_int_equal(want.elems[0], MAP_C * MAP_H * MAP_W);
    file.thresholds = &threshold;
    file.n_thresholds = 1;
    file.distance = DISTANCE;
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_run_values(net, image, want.values, want.n, &options, &why), &why);
    FILE *text = fopen(file.path, "r");
    assert_non_null(text);
    assert_non_null(fgets(line, sizeof line, text));
    for (int y = 0; y < MAP_H; y++)
        for (int x = 0; x < MAP_W; x++)
            for (int c = 0; c < MAP_C; c++) {
                const float *map = want.values[0] + c * MAP_H * MAP_W;
                if (!(map[y * MAP_W + x] > threshold)) continue;
                if (!is_peak(map, MAP_H, MAP_W, y, x, DISTANCE)) continue;
                assert_non_null(fgets(line, sizeof line, text));
                assert_int_equal(line[0], '0' + c);
                assert_true(strtof(line + 3, NULL) == map[y * MAP_W + x]);
                points++;
            }
    assert_null(fgets(line, sizeof line, text));
    assert_true(points > 10);
    (void)fclose(text);
    assert_int_equal(unlink(file.path), 0);
    file.path = PATH ".summary.csv";
    file.distance = 0;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    text = fopen(file.path, "r");
    assert_non_null(text);
    assert_non_null(fgets(line, sizeof line, text));
    for (int c = 0; c < MAP_C; c++) {
        double above = 0;
        for (int i = 0; i < MAP_H * MAP_W; i++)
            above += want.values[0][c * MAP_H * MAP_W + i] > threshold;
        assert_true(above > 0);
        assert_non_null(fgets(line, sizeof line, text));
        assert_int_equal(line[0], '0' + c);
        assert_true(strtod(line + 3, NULL) == above);
    }
    assert_null(fgets(line, sizeof line, text));
    (void)fclose(text);
    assert_int_equal(unlink(file.path), 0);
    network_outputs_free(&want);
    free(image);
    rfx_network_free(net);
}

static void read_whole(const char *path, char *text, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, room - 1, file);
    (void)fclose(file);
    assert_true(length < room - 1);
    text[length] = '\0';
}

static int count_of(const char *path, const char *word) {
    static char text[1 << 20];
    int n = 0;
    read_whole(path, text, sizeof text);
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++) n++;
    return n;
}

/* Quantiles 0 and 1 of 3 x 2 pixels are their smallest and largest values. The centre of pixel k of
 * the map is at (k + 1) / 2. */
static void quantiles_are_found_within_areas(void **state) {
    (void)state;
    enum { MAP_W = 2 * W, MAP_PX = 4 * H * W, MAP_C = 3, LINES = 1 + 2 * MAP_C };
    static const double ends[2] = {0, 1};
    static const char area[] =
        "{\"type\":\"Polygon\",\"coordinates\":[[[2.25,0.75],[3.75,0.75],[3.75,1.75],[2.25,1.75],[2.25,0.75]]]}";
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    float *image = network_random_image(3, H, W);
    struct network_outputs want = network_outputs_for(net);
    struct rfx_run_options options = network_run_options(40 << 20, 2);
    struct rfx_result_file file = result_file(0, PATH ".summary.csv");
    struct rfx_why why;
    static char text[1 << 16];
    test_bytes_store(PATH ".geojson", area, strlen(area));
    file.within = PATH ".geojson";
    file.quantiles = ends;
    file.n_quantiles = 2;
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_run_values(net, image, want.values, want.n, &options, &why), &why);
    read_whole(file.path, text, sizeof text);
    const char *line = text;
    for (int i = 0; i < LINES; i++, line = strchr(line, '\n') + 1) {
        int c = i - 1 - MAP_C;
        if (c < 0) continue; /* the whole map */
        const float *map = want.values[0] + c * MAP_PX;
        float low = INFINITY, high = -INFINITY;
        for (int y = 1; y < 3; y++)
            for (int x = 4; x < 7; x++) {
                low = fminf(low, map[y * MAP_W + x]);
                high = fmaxf(high, map[y * MAP_W + x]);
            }
        const char *end = strchr(line, '\n');
        for (int k = 0; k < 2; k++) {
            do end--;
            while (*end != ',');
            assert_true(strtod(end + 1, NULL) == (double)(k == 0 ? high : low));
        }
    }
    assert_int_equal(*line, '\0');
    assert_int_equal(unlink(file.path), 0);
    assert_int_equal(unlink(file.within), 0);
    network_outputs_free(&want);
    free(image);
    rfx_network_free(net);
}

/* The twelve outputs of a YuNet are joined to one more, of which a file has the boxes. */
static void heads_are_joined(void **state) {
    (void)state;
    enum { OUTPUTS = 13, PARTS = 4, LEVELS = 3, CHANNELS = 16 };
    static const int channels[PARTS] = {1, 1, 4, 10};
    static struct maker graph, model;
    struct rfx_open_options open;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    float *values[OUTPUTS], *image = network_random_image(3, 64, 96);
    maker_yunet(&graph, NULL, NULL);
    maker_model(&graph, 13, &model);
    maker_save(&model, PATH ".onnx");
    rfx_open_options_init(&open, sizeof open);
    open.rows = 64;
    open.columns = 96;
    network_check(rfx_network_open(PATH ".onnx", &open, &net, &why), &why);
    assert_int_equal(rfx_network_output_count(net), OUTPUTS - 1);
    rfx_network_free(net);
    open.join_heads = 1;
    network_check(rfx_network_open(PATH ".onnx", &open, &net, &why), &why);
    assert_int_equal(rfx_network_output_count(net), OUTPUTS);
    assert_string_equal(rfx_network_output_name(net, OUTPUTS - 1), "detections");
    for (int k = 0; k < OUTPUTS; k++) values[k] = test_floats(rfx_network_output_elements(net, k));
    struct rfx_run_options options = network_run_options(40 << 20, 2);
    struct rfx_result_file file = result_file(OUTPUTS - 1, PATH ".json");
    file.overlap = 1.0; /* nothing is dropped */
    file.score = 0.5f;
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_run_values(net, image, values, OUTPUTS, &options, &why), &why);
    const float *joined = values[OUTPUTS - 1];
    int faces = 0;
    for (int l = 0; l < LEVELS; l++)
        for (int64_t i = 0; i < rfx_network_output_elements(net, l); i++)
            for (int p = 0; p < PARTS; p++) {
                const float *own = values[p * LEVELS + l] + i * channels[p];
                assert_memory_equal(joined, own, (size_t)channels[p] * sizeof *own);
                joined += channels[p];
                if (p == 1) faces += sqrtf(joined[-2] * joined[-1]) > 0.5f;
            }
    assert_int_equal(joined - values[OUTPUTS - 1], rfx_network_output_elements(net, OUTPUTS - 1));
    assert_true(faces > 20);
    assert_int_equal(count_of(PATH ".json", "\"index\""), faces);
    assert_int_equal(unlink(PATH ".json"), 0);
    assert_int_equal(unlink(PATH ".onnx"), 0);
    for (int k = 0; k < OUTPUTS; k++) free(values[k]);
    free(image);
    rfx_network_free(net);
}

/* Masks are made of a second output, which may go to an array, to a file or nowhere. Under the
 * least budget the file is the same; the forecast counts what masks take. */
static void boxes_have_masks(void **state) {
    (void)state;
    enum { ROWS = 176, COLUMNS = 208, CLASSES = 2, PROTOTYPES = 5, CANDIDATES = 500 };
    struct rfx_forecast forecast[2] = {{.size = sizeof forecast[0]}, {.size = sizeof forecast[1]}};
    struct rfx_result_file files[2] = {result_file(0, PATH ".json"), result_file(1, PATH ".npy")};
    struct rfx_run_options options = network_run_options(1, 1);
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    char before[1 << 16], after[1 << 16];
    detector_maker_save_more(PATH ".onnx", ROWS, COLUMNS, 20.0F, CLASSES, PROTOTYPES, true);
    struct rfx_network *net = network_open_sized(PATH ".onnx", ROWS, COLUMNS);
    float *image = network_random_image(3, ROWS, COLUMNS);
    const struct rfx_source source = {.size = sizeof source, .values = image};
    options.files = files;
    options.n_files = 1;
    files[0].class_count = CLASSES;
    files[0].most_boxes = CANDIDATES;
    for (int masks = 0; masks < 2; masks++) {
        files[0].head = masks ? "yolov8-seg" : "yolov8";
        assert_int_equal(rfx_network_predict(net, NULL, &options, &forecast[masks], &why),
                         RFX_CODE_BUDGET);
    }
    assert_true(forecast[1].picture_bytes >= forecast[0].picture_bytes + /* coefficients */
                                                 CANDIDATES * PROTOTYPES * sizeof(float));
    options.memory_bytes = forecast[1].peak_bytes;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    assert_true(count_of(PATH ".json", "\"mask\"") > 10);
    assert_int_equal(count_of(PATH ".json", "\"mask\""), count_of(PATH ".json", "\"index\""));
    read_whole(PATH ".json", before, sizeof before);
    options.memory_bytes = 0;
    options.threads = 3;
    options.n_files = 2;
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    network_check(rfx_runner_run(runner, &source, NULL, 0, &options, &why), &why);
    read_whole(PATH ".json", after, sizeof after);
    assert_string_equal(after, before);
    float *prototypes = read_npy(PATH ".npy", PROTOTYPES * ROWS / 4 * COLUMNS / 4), *values[2];
    for (int k = 0; k < 2; k++) values[k] = test_floats(rfx_network_output_elements(net, k));
    options.n_files = 1;
    network_check(rfx_runner_run(runner, &source, values, 2, &options, &why), &why);
    read_whole(PATH ".json", after, sizeof after);
    assert_string_equal(after, before);
    assert_memory_equal(values[1], prototypes,
                        PROTOTYPES * ROWS / 4 * COLUMNS / 4 * sizeof *prototypes);
    files[0].class_count = CLASSES + 1;
    assert_int_equal(rfx_runner_run(runner, &source, NULL, 0, &options, &why), RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "output 2 has 5 prototypes"));
    assert_non_null(strstr(why.text, "(class_count)"));
    for (int k = 0; k < 2; k++) free(values[k]);
    free(prototypes);
    free(image);
    rfx_runner_free(runner);
    rfx_network_free(net);
    assert_int_equal(unlink(PATH ".json"), 0);
    assert_int_equal(unlink(PATH ".onnx"), 0);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A head file that describes YuNet's outputs of stride 8 joins these alone. */
static void head_files_join_outputs(void **state) {
    (void)state;
    static struct maker graph, model;
    struct rfx_open_options open;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    float *image = network_random_image(3, 64, 96);
    maker_yunet(&graph, NULL, NULL);
    maker_model(&graph, 13, &model);
    maker_save(&model, PATH ".onnx");
    write_text(PATH ".head.json",
               "{\"outputs\":[{\"names\":[\"bbox_8\"],\"axes\":\"yx v\",\"values\":[\"box\"]},"
               "{\"names\":[\"obj_8\"],\"axes\":\"yx v\",\"values\":[\"scores\"]}],"
               "\"levels\":[{\"stride\":8}],\"decode\":\"distances\"}");
    rfx_open_options_init(&open, sizeof open);
    open.rows = 64;
    open.columns = 96;
    open.head_file = PATH ".missing.json";
    assert_int_equal(rfx_network_open(PATH ".onnx", &open, &net, &why), RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "missing.json': cannot be opened"));
    open.head_file = PATH ".head.json";
    network_check(rfx_network_open(PATH ".onnx", &open, &net, &why), &why);
    assert_int_equal(rfx_network_output_count(net), 12 - 2 + 1);
    assert_string_equal(rfx_network_output_name(net, 10), "detections");
    struct rfx_run_options options = network_run_options(40 << 20, 2);
    struct rfx_result_file file = result_file(10, PATH ".json");
    file.score = -1e9f;
    file.overlap = 1.0;
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    assert_int_equal(count_of(PATH ".json", "\"index\""), 8 * 12);
    assert_int_equal(count_of(PATH ".json", "head " PATH ".head.json"), 1);
    /* The file is about that output only if the network was opened with one. */
    file.head = PATH ".head.json";
    network_check(rfx_network_run_values(net, image, NULL, 0, &options, &why), &why);
    assert_int_equal(count_of(PATH ".json", "\"index\""), 8 * 12);
    rfx_network_free(net);
    open.head_file = NULL;
    network_check(rfx_network_open(PATH ".onnx", &open, &net, &why), &why);
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_USAGE);
    assert_non_null(strstr(why.text, "when the network is loaded"));
    rfx_network_free(net);
    assert_int_equal(unlink(PATH ".head.json"), 0);
    assert_int_equal(unlink(PATH ".json"), 0);
    assert_int_equal(unlink(PATH ".onnx"), 0);
    free(image);
}

static void expect_refused(struct rfx_network *net, const struct rfx_result_file *files, int n,
                           const char *words) {
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    options.files = files;
    options.n_files = n;
    assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why), RFX_CODE_USAGE);
    if (strstr(why.text, words) == NULL) fail_msg("no '%s' in: %s", words, why.text);
    free(image);
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    struct rfx_result_file twice[2] = {result_file(0, PATH ".npy"), result_file(0, PATH ".tif")};
    struct rfx_result_file none = result_file(0, NULL), beyond = result_file(1, PATH ".npy"),
                           unknown = result_file(0, PATH ".gif"),
                           tile = result_file(0, PATH ".tif"), cog = result_file(0, PATH ".png"),
                           packed = result_file(0, PATH ".npy"),
                           zarr = result_file(0, PATH ".zarr"), bits = result_file(0, PATH ".npy"),
                           points = result_file(0, PATH ".points.csv"),
                           far = result_file(0, PATH ".points.csv"),
                           distant = result_file(0, PATH ".npy"),
                           inside = result_file(0, PATH ".points.csv"),
                           bins = result_file(0, PATH ".summary.csv"),
                           ends = result_file(0, PATH ".summary.csv"),
                           simple = result_file(0, PATH ".csv"),
                           simpler = result_file(0, PATH ".geojson"),
                           apart = result_file(0, PATH ".csv"), range = result_file(0, PATH ".tif"),
                           unset = result_file(0, PATH ".npy");
    tile.tile = 24;
    cog.cog = 1;
    packed.compression = "zstd";
    zarr.compression = "deflate";
    bits.bits = 8;
    range.low = 1.0f;
    unset.size = 8;
    far.distance = -1;
    distant.distance = apart.distance = 3;
    inside.within = "areas.geojson";
    bins.bins = 65537;
    ends.bins = 4;
    ends.bins_low = ends.bins_high = 1.0;
    simple.simplify = 0.5;
    simpler.simplify = 0.75;
    expect_refused(net, twice, 2, "n_files 2");
    expect_refused(net, NULL, 1, "files is NULL and n_files 1");
    expect_refused(net, &none, 1, "no path");
    expect_refused(net, &beyond, 1, "the network has 1 outputs");
    expect_refused(net, &unknown, 1, "must end in .npy");
    expect_refused(net, &tile, 1, "multiple of 16");
    expect_refused(net, &cog, 1, "cog is for .tif");
    expect_refused(net, &packed, 1, "compression is for TIFF and Zarr");
    expect_refused(net, &zarr, 1, "Zarr is compressed by zstd");
    expect_refused(net, &bits, 1, "samples of 32 bits, not 8");
    expect_refused(net, &range, 1, "low is above high");
    expect_refused(net, &unset, 1, "was it set?");
    expect_refused(net, &points, 1, "points need a threshold");
    expect_refused(net, &far, 1, "distance is 0 to");
    expect_refused(net, &distant, 1, "members of answers");
    expect_refused(net, &apart, 1, "distance is for .points");
    expect_refused(net, &inside, 1, "within, bins and quantiles are for .summary");
    expect_refused(net, &bins, 1, "bins is 0 to 65536");
    expect_refused(net, &ends, 1, "bins_low is not below bins_high");
    static const double falling[2] = {0.5, 0.5}, half = 0.5, far_off = 1.5;
    struct rfx_result_file quantiles = result_file(0, PATH ".summary.csv");
    quantiles.n_quantiles = 1;
    expect_refused(net, &quantiles, 1, "not the number of quantiles");
    quantiles.quantiles = &far_off;
    expect_refused(net, &quantiles, 1, "rising numbers from 0 to 1");
    quantiles.quantiles = falling;
    quantiles.n_quantiles = 2;
    expect_refused(net, &quantiles, 1, "rising numbers from 0 to 1");
    quantiles.n_quantiles = 17;
    expect_refused(net, &quantiles, 1, "above 16");
    quantiles.n_quantiles = 1;
    quantiles.quantiles = &half;
    quantiles.path = PATH ".points.csv";
    expect_refused(net, &quantiles, 1, "quantiles are for .summary");
    expect_refused(net, &simple, 1, "this kind of file has none");
    expect_refused(net, &simpler, 1, "0 to 0.7 pixels");
    assert_int_equal(access(PATH ".npy", F_OK), -1);
    rfx_network_free(net);
}

/* Under the least budget of a run with such a file: two runs write theirs, whole outputs go there.
 */
static void runners_write_files(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    struct rfx_result_file file = result_file(0, PATH ".tif");
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    float *values = network_random_image(3, H, W);
    const struct rfx_source source = {.size = sizeof source, .values = values};
    options.files = &file;
    options.n_files = 1;
    options.memory_bytes = 1;
    assert_int_equal(rfx_network_predict(net, NULL, &options, &forecast, &why), RFX_CODE_BUDGET);
    options.memory_bytes = forecast.peak_bytes;
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    assert_int_equal(access(PATH ".tif", F_OK), -1); /* room for it alone */
    for (int run = 0; run < 2; run++) {
        network_check(rfx_runner_run(runner, &source, NULL, 0, &options, &why), &why);
        assert_int_equal(access(PATH ".tif", F_OK), 0);
        assert_int_equal(unlink(PATH ".tif"), 0);
    }
    rfx_runner_free(runner);
    /* One that was made without has no room for it. */
    options.n_files = 0;
    options.files = NULL;
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    options.n_files = 1;
    options.files = &file;
    assert_int_equal(rfx_runner_run(runner, &source, NULL, 0, &options, &why), RFX_CODE_BUDGET);
    assert_non_null(strstr(why.text, "the files of outputs"));
    assert_int_equal(access(PATH ".tif", F_OK), -1);
    rfx_runner_free(runner);
    free(values);
    rfx_network_free(net);
}

static int end_at_once(void *user, int64_t done, int64_t total) {
    (void)user;
    return 2 * done >= total;
}

static void expect_text(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found - 1, file), strlen(text));
    assert_string_equal(found, text);
    (void)fclose(file);
}

/* A plan counts what files take; a stopped run leaves what was there. */
static void stopped_runs_leave_what_was_there(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("fsrcnn", H, W);
    struct rfx_result_file file = result_file(0, PATH ".png");
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_forecast with = {.size = sizeof with}, without = {.size = sizeof without};
    struct rfx_why why;
    float *image = network_random_image(3, H, W);
    network_check(rfx_network_predict(net, NULL, &options, &without, &why), &why);
    options.files = &file;
    options.n_files = 1;
    network_check(rfx_network_predict(net, NULL, &options, &with, &why), &why);
    assert_true(with.peak_bytes > without.peak_bytes);
    options.progress = end_at_once;
    for (int there = 0; there < 2; there++) {
        if (there == 1) write_text(PATH ".png", "as it was");
        assert_int_equal(rfx_network_run_values(net, image, NULL, 0, &options, &why),
                         RFX_CODE_CANCELLED);
        if (there == 1)
            expect_text(PATH ".png", "as it was");
        else
            assert_int_equal(access(PATH ".png", F_OK), -1);
    }
    assert_int_equal(unlink(PATH ".png"), 0);
    free(image);
    rfx_network_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_the_values),
        cmocka_unit_test(answers_are_those_of_the_values),
        cmocka_unit_test(quantiles_are_found_within_areas),
        cmocka_unit_test(heads_are_joined),
        cmocka_unit_test(boxes_have_masks),
        cmocka_unit_test(head_files_join_outputs),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(runners_write_files),
        cmocka_unit_test(stopped_runs_leave_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
