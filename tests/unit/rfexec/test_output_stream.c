/* Files from rectangles: every format from every way of cutting a map, byte by byte the file that
 * the whole map gives; values read back by the formats' own libraries; refusals, a full disk, and
 * nothing left behind. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>
#include <tiffio.h>

#include <cmocka.h>

#include "rfexec/output_stream.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_output_stream.tmp.d"

static const struct rfx_output_format npy = {.kind = RFX_OUTPUT_NPY};
static const struct rfx_output_format tiff = {.kind = RFX_OUTPUT_TIFF};
static const struct rfx_output_format png = {.kind = RFX_OUTPUT_PNG};
static const struct rfx_output_format tiff16 = {.kind = RFX_OUTPUT_TIFF, .bits = 16};
static const struct rfx_output_format png16_range = {
    .kind = RFX_OUTPUT_PNG, .bits = 16, .has_range = true, .range = {-0.5, 0.75}};

/* A map with its pixels wider than its channels. */
struct map {
    struct rfx_tensor tensor;
    float *values; /* [h, w, wide] */
    struct rfx_view view;
};

static struct map make_map(int64_t c, int64_t h, int64_t w, int64_t wide) {
    struct map map = {.tensor = rfx_tensor_nhwc(c, h, w), .values = test_floats(h * w * wide)};
    struct test_rng rng = test_rng_make((uint64_t)(c * 1000 + h + w));
    test_rng_fill(&rng, map.values, h * w * wide, -1.0f, 1.0f);
    map.values[wide] = -NAN; /* row 0, column 1 */
    map.values[0] = INFINITY;
    map.view = rfx_view_dense(map.values, rfx_rect_full(h, w), wide);
    return map;
}

static int make_directory(void **state) {
    (void)state;
    return mkdir(DIRECTORY, 0777);
}

static int remove_directory(void **state) {
    (void)state;
    return rmdir(DIRECTORY); /* fails when anything is left */
}

/* How a map is cut; rows and columns of the pieces, and whether the last one comes first. */
struct cut {
    int64_t rows, cols;
    bool backwards;
};

static enum rfx_status write_pieces(struct rfx_output_stream *stream, const struct map *map,
                                    struct cut cut, struct rfx_error *err) {
    int64_t h = map->tensor.h, w = map->tensor.w;
    int64_t ny = (h + cut.rows - 1) / cut.rows, nx = (w + cut.cols - 1) / cut.cols;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < ny * nx && status == RFX_OK; i++) {
        int64_t at = cut.backwards ? ny * nx - 1 - i : i;
        /* column by column of pieces, as strips come */
        int64_t y = at % ny * cut.rows, x = at / ny * cut.cols;
        struct rfx_rect rect = rfx_rect_intersect(rfx_rect_make(y, y + cut.rows, x, x + cut.cols),
                                                  rfx_rect_full(h, w));
        status = rfx_output_stream_write(stream, rect, &map->view, err);
    }
    return status;
}

static enum rfx_status write_map(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format, const struct map *map,
                                 struct cut cut, struct rfx_error *err) {
    struct rfx_output_stream *stream = NULL;
    enum rfx_status status = rfx_output_stream_open(mem, path, format, &map->tensor, &stream, err);
    if (status == RFX_OK) status = write_pieces(stream, map, cut, err);
    if (status == RFX_OK && access(path, F_OK) == 0 && strncmp(path, "/dev/", 5) != 0)
        status = RFX_STATUS_COUNT; /* it has its name too early */
    if (status == RFX_OK) status = rfx_output_stream_commit(stream, NULL, NULL, err);
    rfx_output_stream_free(stream);
    return status;
}

static unsigned char *read_file(const char *path, size_t *bytes) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    unsigned char *data = malloc((size_t)info.st_size);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    assert_int_equal(*bytes, info.st_size);
    assert_int_equal(fclose(file), 0);
    return data;
}

static void every_cut_gives_one_file(void **state) {
    (void)state;
    static const struct {
        const struct rfx_output_format *format;
        const char *path;
        int64_t c, h, w, wide;
    } cases[] = {
        {&npy, DIRECTORY "/a.npy", 3, 41, 29, 3},
        {&npy, DIRECTORY "/a.npy", 5, 300, 31, 8},
        {&npy, DIRECTORY "/a.npy", 2, 9, 5000, 2},
        {&npy, DIRECTORY "/a.npy", 2, 3, 20000, 3},
        {&tiff, DIRECTORY "/a.tif", 5, 41, 29, 7},
        {&tiff16, DIRECTORY "/a.tif", 2, 41, 29, 2},
        {&png, DIRECTORY "/a.png", 1, 41, 29, 1},
        {&png, DIRECTORY "/a.png", 3, 41, 29, 4},
        {&png16_range, DIRECTORY "/a.png", 3, 41, 29, 3},
    };
    static const struct cut cuts[] = {{1, 1 << 20, false},  {7, 1 << 20, false},
                                      {1 << 20, 10, false}, {5, 9, false},
                                      {5, 9, true},         {1 << 20, 28, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct map map = make_map(cases[i].c, cases[i].h, cases[i].w, cases[i].wide);
        size_t whole_bytes = 0, bytes = 0;
        unsigned char *whole = NULL;
        for (size_t k = 0; k <= sizeof cuts / sizeof cuts[0]; k++) {
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_error err = {""};
            struct cut cut = k == 0 ? (struct cut){1 << 20, 1 << 20, false} : cuts[k - 1];
            enum rfx_status status =
                write_map(mem, cases[i].path, cases[i].format, &map, cut, &err);
            if (status != RFX_OK) fail_msg("case %zu, cut %zu: %d %s", i, k, status, err.text);
            size_t allowed = rfx_output_stream_bytes(cases[i].format, &map.tensor);
            if (rfx_memory_high_water_bytes(mem) > allowed)
                fail_msg("case %zu: %zu bytes, %zu allowed", i, rfx_memory_high_water_bytes(mem),
                         allowed);
            rfx_memory_free(mem);
            unsigned char *data = read_file(cases[i].path, &bytes);
            if (k == 0) {
                whole = data;
                whole_bytes = bytes;
            } else {
                assert_int_equal(bytes, whole_bytes);
                if (memcmp(data, whole, bytes) != 0) fail_msg("case %zu, cut %zu differs", i, k);
                free(data);
            }
            assert_int_equal(unlink(cases[i].path), 0);
        }
        free(whole);
        free(map.values);
    }
}

/* The value that should be in the file. */
static float wanted(const struct map *map, int64_t y, int64_t x, int64_t c) {
    float v = rfx_view_at(&map->view, y, x)[c];
    return isnan(v) ? NAN : v;
}

static void npy_holds_planes(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a.npy";
    struct map map = make_map(3, 17, 23, 4);
    struct rfx_memory *mem = rfx_memory_create(0);
    size_t bytes;
    assert_int_equal(write_map(mem, path, &npy, &map, (struct cut){4, 100, false}, NULL), RFX_OK);
    unsigned char *data = read_file(path, &bytes);
    assert_int_equal(bytes, 128 + 3 * 17 * 23 * 4);
    assert_non_null(strstr((const char *)data + 10, "(1, 3, 17, 23)"));
    for (int64_t i = 0; i < 3 * 17 * 23; i++) {
        float want = wanted(&map, i / 23 % 17, i % 23, i / (17 * 23));
        assert_memory_equal(data + 128 + 4 * i, &want, 4);
    }
    free(data);
    /* the same in ONNX order, and vectors */
    struct rfx_output_stream *stream = NULL;
    struct rfx_tensor vector = {
        .layout = RFX_LAYOUT_PLAIN, .shape = {2, {1, 5}}, .c = 5, .h = 1, .w = 1, .elems = 5};
    const float values[5] = {1, 2, 3, 4, 5};
    assert_int_equal(rfx_output_stream_open(mem, path, &npy, &vector, &stream, NULL), RFX_OK);
    assert_int_equal(rfx_output_stream_append(stream, values, 2, NULL), RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, NULL),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_output_stream_append(stream, values + 2, 3, NULL), RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, NULL), RFX_OK);
    rfx_output_stream_free(stream);
    data = read_file(path, &bytes);
    assert_int_equal(bytes, 128 + 20);
    assert_memory_equal(data + 128, values, 20);
    free(data);
    free(map.values);
    rfx_memory_free(mem);
    assert_int_equal(unlink(path), 0);
}

static void tiff_holds_the_floats(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a.tiff";
    struct map map = make_map(4, 17, 23, 5);
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(write_map(mem, path, &tiff, &map, (struct cut){100, 6, false}, NULL), RFX_OK);
    rfx_memory_free(mem);
    TIFF *file = TIFFOpen(path, "r");
    assert_non_null(file);
    float row[23 * 4];
    for (int64_t y = 0; y < 17; y++) {
        assert_int_equal(TIFFReadScanline(file, row, (uint32_t)y, 0), 1);
        for (int64_t i = 0; i < 23 * 4; i++) {
            float want = wanted(&map, y, i / 4, i % 4);
            assert_memory_equal(&row[i], &want, 4);
        }
    }
    TIFFClose(file);
    free(map.values);
    assert_int_equal(unlink(path), 0);
}

/* Black is the smallest finite value, white the largest, whatever the cut. */
static void png_spans_the_map(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a.PNG";
    struct map map = make_map(1, 11, 13, 1);
    double lo = 9, hi = -9;
    for (int64_t i = 2; i < 11 * 13; i++) {
        lo = fmin(lo, (double)map.values[i]);
        hi = fmax(hi, (double)map.values[i]);
    }
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(write_map(mem, path, &png, &map, (struct cut){3, 100, false}, NULL), RFX_OK);
    rfx_memory_free(mem);
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_file(&image, path));
    assert_int_equal(image.width, 13);
    assert_int_equal(image.height, 11);
    image.format = PNG_FORMAT_GRAY;
    unsigned char got[11 * 13];
    assert_true(png_image_finish_read(&image, NULL, got, 0, NULL));
    assert_int_equal(got[0], 255); /* infinity */
    assert_int_equal(got[1], 0);   /* NaN */
    for (int64_t i = 2; i < 11 * 13; i++)
        assert_int_equal(got[i], floor(((double)map.values[i] - lo) / (hi - lo) * 255.0 + 0.5));
    free(map.values);
    assert_int_equal(unlink(path), 0);
}

static void names_ask_for_kinds(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int kind; /* -1: none */
    } cases[] = {{"a.npy", RFX_OUTPUT_NPY},
                 {"d.png/a.TIF", RFX_OUTPUT_TIFF},
                 {"a.tiff", RFX_OUTPUT_TIFF},
                 {"a.Png", RFX_OUTPUT_PNG},
                 {"png", -1},
                 {".npy", -1},
                 {"a.npy.gz", -1},
                 {"", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum rfx_output_kind kind = RFX_OUTPUT_KIND_COUNT;
        assert_int_equal(rfx_output_kind_of(cases[i].path, &kind), cases[i].kind >= 0);
        if (cases[i].kind >= 0) assert_int_equal(kind, cases[i].kind);
    }
}

static void refuses_in_words(void **state) {
    (void)state;
    const struct rfx_tensor grey = rfx_tensor_nhwc(1, 8, 8), pair = rfx_tensor_nhwc(2, 8, 8),
                            deep = rfx_tensor_nhwc(65536, 1, 1),
                            wide = rfx_tensor_nhwc(1, 1, 1000001);
    struct rfx_tensor vector = {
        .layout = RFX_LAYOUT_PLAIN, .shape = {2, {1, 5}}, .c = 5, .elems = 5};
    const struct rfx_output_format npy8 = {.kind = RFX_OUTPUT_NPY, .bits = 8},
                                   png32 = {.kind = RFX_OUTPUT_PNG, .bits = 32},
                                   odd = {.kind = RFX_OUTPUT_TIFF, .bits = 12},
                                   float_range = {.kind = RFX_OUTPUT_TIFF,
                                                  .has_range = true,
                                                  .range = {0, 1}},
                                   upside_down = {
                                       .kind = RFX_OUTPUT_PNG, .has_range = true, .range = {1, 1}};
    const struct {
        const struct rfx_output_format *format;
        const struct rfx_tensor *tensor;
        const char *words;
    } cases[] = {
        {&npy8, &grey, "samples of 32 bits, not 8"},
        {&png32, &grey, "samples of 8 or 16 bits, not 32"},
        {&odd, &grey, "samples of 8, 16 or 32 bits, not 12"},
        {&float_range, &grey, "range"},
        {&upside_down, &grey, "lower end below"},
        {&png, &pair, "the map has 2; use .tif or .npy"},
        {&png, &wide, "1 x 1000001; use .tif"},
        {&png, &vector, "use .npy"},
        {&tiff, &vector, "use .npy"},
        {&tiff, &deep, "65536 x 1 x 1; use .npy"},
    };
    struct rfx_error err = {""};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(rfx_output_format_check(cases[i].format, cases[i].tensor, "out", &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s: %s", cases[i].words, err.text);
        assert_non_null(strstr(err.text, "out: "));
    }
    assert_int_equal(rfx_output_format_check(&npy, &vector, "out", &err), RFX_OK);
    assert_int_equal(rfx_output_format_check(&tiff, &pair, "out", &err), RFX_OK);
}

static void wrong_rectangles_are_refused(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a";
    struct map map = make_map(1, 9, 6, 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_output_format *formats[2] = {&npy, &tiff};
    for (int i = 0; i < 2; i++) {
        struct rfx_output_stream *stream = NULL;
        assert_int_equal(rfx_output_stream_open(mem, path, formats[i], &map.tensor, &stream, NULL),
                         RFX_OK);
        static const struct rfx_rect outside = {0, 10, 0, 6}, empty = {3, 3, 0, 6},
                                     first = {0, 4, 0, 6}, third = {6, 9, 0, 6},
                                     second = {4, 6, 0, 6};
        struct rfx_view part = rfx_view_dense(map.values, first, 1);
        assert_int_equal(rfx_output_stream_write(stream, outside, &map.view, NULL),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_output_stream_write(stream, third, &part, NULL),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_output_stream_write(stream, empty, &part, NULL), RFX_OK);
        assert_int_equal(rfx_output_stream_write(stream, first, &map.view, NULL), RFX_OK);
        /* TIFF has begun to write rows, .npy takes them anywhere */
        enum rfx_status status = rfx_output_stream_write(stream, third, &map.view, NULL);
        assert_int_equal(status, i == 0 ? RFX_OK : RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, NULL),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_output_stream_write(stream, second, &map.view, NULL), RFX_OK);
        if (i == 1)
            assert_int_equal(rfx_output_stream_write(stream, third, &map.view, NULL), RFX_OK);
        assert_int_equal(rfx_output_stream_write(stream, second, &map.view, NULL),
                         RFX_STATUS_INVALID_ARGUMENT);
        if (i == 1)
            assert_int_equal(rfx_output_stream_append(stream, map.values, 1, NULL),
                             RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, NULL), RFX_OK);
        rfx_output_stream_free(stream);
        assert_int_equal(unlink(path), 0);
    }
    rfx_output_stream_free(NULL);
    rfx_memory_free(mem);
    free(map.values);
}

static int stop_at_row_3(void *user, int64_t done, int64_t total) {
    int64_t *seen = user;
    assert_int_equal(done, *seen);
    assert_int_equal(total, 9);
    *seen = done + 1;
    return done == 3;
}

static void the_last_copy_can_be_stopped(void **state) {
    (void)state;
    struct map map = make_map(1, 9, 6, 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_stream *stream = NULL;
    int64_t seen = 0;
    assert_int_equal(rfx_output_stream_open(mem, DIRECTORY "/a", &png, &map.tensor, &stream, NULL),
                     RFX_OK);
    assert_true(rfx_output_stream_needs_range(stream));
    assert_int_equal(write_pieces(stream, &map, (struct cut){2, 6, false}, NULL), RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, stop_at_row_3, &seen, NULL),
                     RFX_STATUS_CANCELLED);
    rfx_output_stream_free(stream);
    assert_int_equal(seen, 4);
    rfx_memory_free(mem);
    free(map.values);
}

/* A limit on the size of files stands for a full disk: every limit, every format and route. */
static void a_full_disk_leaves_nothing(void **state) {
    (void)state;
    static const struct cut cuts[] = {{4, 1 << 20, false}, {1 << 20, 25, false}};
    const struct rfx_output_format *formats[] = {&npy, &tiff, &png};
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct map map = make_map(1, 400, 200, 1);
    int stopped = 0;
    for (int f = 0; f < 3; f++)
        for (int k = 0; k < 2; k++)
            for (rlim_t limit = 0; limit < 400000; limit += limit / 2 + 17) {
                struct rfx_memory *mem = rfx_memory_create(0);
                struct rfx_error err = {""};
                small = before;
                small.rlim_cur = limit;
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
                enum rfx_status status =
                    write_map(mem, DIRECTORY "/a", formats[f], &map, cuts[k], &err);
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
                rfx_memory_free(mem);
                if (status == RFX_OK) {
                    assert_int_equal(unlink(DIRECTORY "/a"), 0);
                    continue;
                }
                stopped++;
                assert_int_equal(status, RFX_STATUS_IO);
                assert_non_null(strstr(err.text, DIRECTORY "/a"));
                assert_non_null(strstr(err.text, "File too large"));
                assert_int_equal(rmdir(DIRECTORY), 0); /* empty */
                assert_int_equal(mkdir(DIRECTORY, 0777), 0);
            }
    assert_true(stopped > 50);
    free(map.values);
}

struct attempt {
    const struct rfx_output_format *format;
    struct map map;
    struct cut cut;
};

static enum rfx_status attempt_write(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct attempt *a = context;
    return write_map(mem, DIRECTORY "/a", a->format, &a->map, a->cut, err);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    const struct rfx_output_format *formats[] = {&npy, &tiff, &tiff16, &png};
    for (int i = 0; i < 4; i++)
        for (int64_t cols = 3; cols <= 6; cols += 3) {
            struct attempt a = {formats[i], make_map(1, 9, 6, 2), {2, cols, false}};
            assert_true(test_fail_each_allocation(attempt_write, &a) > 6);
            free(a.map.values);
            assert_int_equal(unlink(DIRECTORY "/a"), 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_cut_gives_one_file, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(npy_holds_planes, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(tiff_holds_the_floats, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(png_spans_the_map, make_directory, remove_directory),
        cmocka_unit_test(names_ask_for_kinds),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test_setup_teardown(wrong_rectangles_are_refused, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(the_last_copy_can_be_stopped, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_nothing, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(survives_failing_allocations, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
