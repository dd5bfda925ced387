/* Output files that are refused in words, stopped, or meet a full disk or an allocator without
 * memory: nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/run/output_maps.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_output_stream_failures.tmp.d"

static const struct rfx_output_format npy = {.kind = &rfx_output_npy};
static const struct rfx_output_format tiff = {.kind = &rfx_output_tiff};
static const struct rfx_output_format png = {.kind = &rfx_output_png};
static const struct rfx_output_format levels = {
    .kind = &rfx_output_tiff, .tile = 16, .overviews = RFX_OVERVIEW_MEAN};
static const struct rfx_output_format zarr = {.kind = &rfx_output_zarr};
static const struct rfx_output_format tiff16 = {.kind = &rfx_output_tiff, .bits = 16};

static void names_ask_for_kinds(void **state) {
    (void)state;
    static const struct {
        const char *path;
        const struct rfx_output_kind *kind; /* NULL: none */
    } cases[] = {{"a.npy", &rfx_output_npy},
                 {"d.png/a.TIF", &rfx_output_tiff},
                 {"a.tiff", &rfx_output_tiff},
                 {"a.OME.tif", &rfx_output_ome_tiff},
                 {"b/a.ome.tiff", &rfx_output_ome_tiff},
                 {".ome.tif", &rfx_output_tiff},
                 {"a.Png", &rfx_output_png},
                 {"a.zarr", &rfx_output_zarr},
                 {"a.ome.Zarr", &rfx_output_ome_zarr},
                 {".ome.zarr", &rfx_output_zarr},
                 {"a.csv", &rfx_output_csv},
                 {"a.boxes.csv", &rfx_output_boxes_csv},
                 {"a.Points.csv", &rfx_output_points_csv},
                 {".points.csv", &rfx_output_csv},
                 {"a.summary.json", &rfx_output_summary_json},
                 {"a.text.json", &rfx_output_text_json},
                 {"a.text.GeoJSON", &rfx_output_text_geojson},
                 {"png", NULL},
                 {".npy", NULL},
                 {"a.npy.gz", NULL},
                 {"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ptr_equal(rfx_output_kind_of(cases[i].path), cases[i].kind);
    }
}

static void refuses_in_words(void **state) {
    (void)state;
    const struct rfx_tensor grey = rfx_tensor_nhwc(1, 8, 8), pair = rfx_tensor_nhwc(2, 8, 8),
                            deep = rfx_tensor_nhwc(65536, 1, 1),
                            wide = rfx_tensor_nhwc(1, 1, 1000001);
    struct rfx_tensor vector = {
        .layout = RFX_LAYOUT_PLAIN, .shape = {2, {1, 5}}, .c = 5, .elems = 5};
    const struct rfx_output_format npy8 = {.kind = &rfx_output_npy, .bits = 8},
                                   png32 = {.kind = &rfx_output_png, .bits = 32},
                                   ome = {.kind = &rfx_output_ome_tiff},
                                   ome_zstd = {.kind = &rfx_output_ome_tiff,
                                               .packing = RFX_TIFF_ZSTD},
                                   odd = {.kind = &rfx_output_tiff, .bits = 12},
                                   float_range = {.kind = &rfx_output_tiff,
                                                  .has_range = true,
                                                  .range = {0, 1}},
                                   upside_down = {
                                       .kind = &rfx_output_png, .has_range = true, .range = {1, 1}};
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
        {&zarr, &vector, "use .npy"},
        {&zarr, &deep, "a Zarr array has at most 65535 channels"},
        {&ome, &deep, "a tiled OME-TIFF has at most 4096 channels"},
        {&ome_zstd, &grey, "deflate is read by all"},
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
    struct output_map map = output_map_make(1, 9, 6, 1);
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
    struct output_map map = output_map_make(1, 9, 6, 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_stream *stream = NULL;
    int64_t seen = 0;
    assert_int_equal(rfx_output_stream_open(mem, DIRECTORY "/a", &png, &map.tensor, &stream, NULL),
                     RFX_OK);
    assert_int_equal(output_map_pieces(stream, &map, (struct output_cut){2, 6, false}, NULL),
                     RFX_OK);
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
    static const struct output_cut cuts[] = {{4, 1 << 20, false}, {1 << 20, 25, false}};
    const struct rfx_output_format *formats[] = {&npy, &tiff, &png, &levels};
    struct output_attempt a = {.path = DIRECTORY "/a", .map = output_map_make(1, 400, 200, 1)};
    int stopped = 0;
    for (int i = 0; i < 8; i++) {
        a.format = *formats[i / 2];
        a.cut = cuts[i % 2];
        for (size_t limit = 0; limit < 400000; limit += limit / 2 + 17) {
            bool fits = output_attempt_fits(&a, DIRECTORY, limit);
            if (fits) assert_int_equal(unlink(DIRECTORY "/a"), 0);
            stopped += !fits;
        }
    }
    assert_true(stopped > 50);
    free(a.map.values);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    const struct rfx_output_format *formats[] = {&npy, &tiff, &tiff16, &png, &levels};
    for (int i = 0; i < 5; i++)
        for (int64_t cols = 3; cols <= 6; cols += 3) {
            struct output_attempt a = {DIRECTORY "/a",
                                       *formats[i],
                                       output_map_make(1, i < 4 ? 9 : 36, 6, 2),
                                       {2, cols, false}};
            assert_true(test_fail_each_allocation(output_attempt_write, &a) > 6);
            free(a.map.values);
            assert_int_equal(unlink(DIRECTORY "/a"), 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_ask_for_kinds),
        cmocka_unit_test(refuses_in_words),
        test_in_folder(wrong_rectangles_are_refused, DIRECTORY),
        test_in_folder(the_last_copy_can_be_stopped, DIRECTORY),
        test_in_folder(a_full_disk_leaves_nothing, DIRECTORY),
        test_in_folder(survives_failing_allocations, DIRECTORY),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
