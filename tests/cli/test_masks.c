/* Masks and marks of missing pixels: what of an output they leave, by every pixel; the rectangles
 * that are computed; and runs, whose wanted pixels have the bits of the whole run and whose others
 * are one value. */
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
#include "layers/core/checked.h"
#include "rfexec/rfexec.h"
#include "rfexec/shards/mask.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tools/cli/missing.h"

enum { MOST = 200 };

static unsigned char pixels[MOST * MOST];

/* A picture of these pixels, grey. */
static void write_mask(const char *path, int64_t h, int64_t w) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fprintf(file, "P5\n%d %d\n255\n", (int)w, (int)h) > 0);
    assert_int_equal(fwrite(pixels, 1, (size_t)(h * w), file), h * w);
    assert_int_equal(fclose(file), 0);
}

/* By the words of mask.h, pixel by pixel of the mask, as far as they may be meant. */
static bool is_wanted(int64_t mask_h, int64_t mask_w, int64_t h, int64_t w, int64_t y, int64_t x) {
    int64_t i0 = rfx_max_i64(0, y * mask_h / h - 1), j0 = rfx_max_i64(0, x * mask_w / w - 1);
    for (int64_t i = i0; i < mask_h && i <= (y + 1) * mask_h / h + 1; i++)
        for (int64_t j = j0; j < mask_w && j <= (x + 1) * mask_w / w + 1; j++) {
            bool rows = i * h < (y + 1) * mask_h && (i + 1) * h > y * mask_h;
            bool cols = j * w < (x + 1) * mask_w && (j + 1) * w > x * mask_w;
            if (rows && cols && pixels[i * mask_w + j] != 0) return true;
        }
    return false;
}

static void check_rects(const struct rfx_mask *mask, int64_t h, int64_t w, double halo) {
    static unsigned char seen[MOST * MOST];
    struct rfx_mask_rects rects;
    memset(seen, 0, sizeof seen);
    rfx_mask_find_rects(mask, h, w, halo, halo / 2, &rects);
    assert_in_range(rects.n, 0, RFX_MASK_MOST_RECTS);
    for (int i = 0; i < rects.n; i++) {
        struct rfx_rect r = rects.rects[i];
        assert_true(!rfx_rect_is_empty(r) && rfx_rect_contains(rfx_rect_full(h, w), r));
        for (int64_t y = r.y0; y < r.y1; y++)
            for (int64_t x = r.x0; x < r.x1; x++)
                if (seen[y * w + x]++ != 0) fail_msg("%d, %d twice", (int)y, (int)x);
    }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            bool wanted = is_wanted(mask->h, mask->w, h, w, y, x);
            if (wanted != rfx_mask_any(mask, h, w, rfx_rect_make(y, y + 1, x, x + 1)))
                fail_msg("%d, %d of %d x %d is%s wanted", (int)y, (int)x, (int)h, (int)w,
                         wanted ? "" : " not");
            if (wanted && seen[y * w + x] == 0) fail_msg("%d, %d is in none", (int)y, (int)x);
        }
}

static void test_rectangles(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(7);
    for (int i = 0; i < 400; i++) {
        int64_t h = 1 + (int64_t)(test_rng_next(&rng) % 30),
                w = 1 + (int64_t)(test_rng_next(&rng) % 30);
        uint64_t rare = 1 + test_rng_next(&rng) % 60;
        for (int64_t k = 0; k < h * w; k++) pixels[k] = test_rng_next(&rng) % rare == 0;
        write_mask("mask.pgm", h, w);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_mask mask;
        assert_int_equal(rfx_mask_open(mem, "mask.pgm", 0, &mask, NULL), RFX_OK);
        assert_true(mask.h == h && mask.w == w);
        check_rects(&mask, 1 + (int64_t)(test_rng_next(&rng) % 80),
                    1 + (int64_t)(test_rng_next(&rng) % 80), (double)(i % 5 * 4));
        rfx_mask_release(&mask);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

/* As the squares of a chessboard: too many for rectangles of their own. */
static void test_many(void **state) {
    (void)state;
    for (int k = 0; k < 64 * 64; k++) pixels[k] = (k / 64 + k) % 2 == 0;
    write_mask("mask.pgm", 64, 64);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_mask mask;
    struct rfx_mask_rects rects;
    struct rfx_error err;
    assert_int_equal(rfx_mask_open(mem, "mask.pgm", 0, &mask, NULL), RFX_OK);
    rfx_mask_find_rects(&mask, 6400, 6400, 0, 0, &rects);
    assert_int_equal(rects.n, 1);
    assert_true(rfx_rect_equal(rects.rects[0], rfx_rect_full(6400, 6400)));
    rfx_mask_release(&mask);
    memset(pixels, 0, sizeof pixels);
    pixels[65] = pixels[64 * 40 + 50] = 1;
    write_mask("mask.pgm", 64, 64);
    assert_int_equal(rfx_mask_open(mem, "mask.pgm", 0, &mask, NULL), RFX_OK);
    rfx_mask_find_rects(&mask, 6400, 6400, 500, 500, &rects);
    assert_int_equal(rects.n, 2); /* far apart */
    assert_true(rfx_rect_equal(rects.rects[0], rfx_rect_make(100, 200, 100, 200)));
    rfx_mask_find_rects(&mask, 6400, 6400, 50000, 50000, &rects);
    assert_int_equal(rects.n, 1); /* what they need around them is all the same */
    rfx_mask_release(&mask);
    assert_int_equal(rfx_mask_open(mem, "mask.pgm", 1000, &mask, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The floats of an .npy of 1 x c x h x w, as words. */
static uint32_t *values(const char *path, size_t n) {
    FILE *file = fopen(path, "rb");
    uint32_t *all = malloc(n * sizeof *all);
    assert_non_null(file);
    assert_non_null(all);
    assert_int_equal(fseek(file, -(long)(n * sizeof *all), SEEK_END), 0);
    assert_int_equal(fread(all, sizeof *all, n, file), n);
    (void)fclose(file);
    return all;
}

/* A masked run against a whole one: c planes of h x w. */
static void check_run(const char *model, int64_t mask_h, int64_t mask_w, int64_t c, int64_t h,
                      int64_t w, const char *more) {
    char args[400];
    size_t n = (size_t)(c * h * w);
    (void)snprintf(args, sizeof args, "run %s synthetic:61x83 -o whole.npy", model);
    expect(0, args);
    (void)snprintf(args, sizeof args, "run %s synthetic:61x83 --mask mask.pgm %s -o m.npy", model,
                   more);
    expect(0, args);
    uint32_t *whole = values("whole.npy", n), *got = values("m.npy", n);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            bool wanted = is_wanted(mask_h, mask_w, h, w, y, x);
            for (int64_t k = 0; k < c; k++) {
                size_t at = (size_t)((k * h + y) * w + x);
                if (got[at] != (wanted ? whole[at] : 0))
                    fail_msg("%s: %d, %d, %d", model, (int)k, (int)y, (int)x);
            }
        }
    free(whole);
    free(got);
}

static void test_runs(void **state) {
    (void)state;
    memset(pixels, 0, sizeof pixels);
    for (int k = 0; k < 5; k++) pixels[20 * 2 + k] = pixels[20 * 3 + k] = 255;
    pixels[20 * 13 + 17] = 1;
    write_mask("mask.pgm", 15, 20);
    check_run("fsrcnn", 15, 20, 3, 122, 166, "--memory 32MiB");
    check_run("unet", 15, 20, 2, 61, 83, "-j 1");
    check_run("unet_instance", 15, 20, 2, 61, 83, ""); /* its norms need everything */
    assert_non_null(strstr(err_text, "needs the whole image"));
    expect(0, "run fsrcnn synthetic:61x83 --mask mask.pgm --json -o m.tif --tiff-tile 16");
    json_t *doc = document("run");
    assert_int_equal(json_array_size(at(doc, "mask.rectangles")), 2);
    assert_true(json_real_value(at(doc, "mask.computed")) < 0.2);
    char hash[40];
    (void)strcpy(hash, json_string_value(at(doc, "output.hash")));
    json_decref(doc);
    expect(0, "run fsrcnn synthetic:61x83 --mask mask.pgm --json");
    doc = document("run"); /* the file's kind is no matter of the hash */
    assert_string_equal(json_string_value(at(doc, "output.hash")), hash);
    json_decref(doc);
    expect(0, "run fsrcnn synthetic:61x83 --mask mask.pgm -o m.png --bits 8 --range 0,1");
    memset(pixels, 0, sizeof pixels);
    write_mask("mask.pgm", 3, 3);
    check_run("fsrcnn", 3, 3, 3, 122, 166, "");
    assert_non_null(strstr(out_text, "0 rectangles, 0.0 %"));
}

static void expect_same_files(const char *path, const char *other) {
    static char bytes[TEXT_BYTES], other_bytes[TEXT_BYTES];
    FILE *file = fopen(path, "rb"), *second = fopen(other, "rb");
    assert_non_null(file);
    assert_non_null(second);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    assert_in_range(n, 1, sizeof bytes - 1);
    assert_int_equal(fread(other_bytes, 1, sizeof other_bytes, second), n);
    assert_memory_equal(bytes, other_bytes, n);
    (void)fclose(file);
    (void)fclose(second);
}

/* The library's files have the program's bytes. */
static void check_library(const char *model, const char *end, size_t memory_bytes,
                          const char *more) {
    char args[200], path[32];
    struct rfx_open_options open;
    struct rfx_run_options run;
    struct rfx_result_file file;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    (void)snprintf(args, sizeof args, "run %s synthetic:61x83 --mask mask.pgm %s -o m%s", model,
                   more, end);
    expect(0, args);
    (void)snprintf(path, sizeof path, "m%s", end); /* .ome.tif contains the name */
    assert_int_equal(rename(path, "program.out"), 0);
    rfx_open_options_init(&open, sizeof open);
    open.rows = 61;
    open.columns = 83;
    rfx_result_file_init(&file, sizeof file);
    file.path = path;
    if (strstr(more, "--bits") != NULL) {
        file.bits = 16;
        file.high = 1.0f;
    }
    rfx_run_options_init(&run, sizeof run);
    run.memory_bytes = memory_bytes;
    run.mask = "mask.pgm";
    run.files = &file;
    run.n_files = 1;
    if (rfx_network_open(model, &open, &net, &why) != RFX_CODE_OK ||
        rfx_network_run_file(net, "synthetic:61x83", NULL, 0, &run, &why) != RFX_CODE_OK)
        fail_msg("%s", why.text);
    expect_same_files("program.out", path);
    rfx_network_free(net);
}

static void test_library(void **state) {
    (void)state;
    memset(pixels, 0, sizeof pixels);
    for (int k = 0; k < 5; k++) pixels[20 * 2 + k] = pixels[20 * 3 + k] = 255;
    pixels[20 * 13 + 17] = 1;
    write_mask("mask.pgm", 15, 20);
    check_library("fsrcnn", ".npy", 0, "");
    check_library("fsrcnn", ".tif", (size_t)32 << 20, "-j 1");
    check_library("fsrcnn", ".png", 0, "--bits 16 --range 0,1");
    check_library("unet_instance", ".ome.tif", 0, "");
}

static void test_refused(void **state) {
    (void)state;
    write_mask("mask.pgm", 3, 3);
    expect_says(3, "run mobilenet_v2 synthetic:61x83 --mask mask.pgm", "not a map of rows");
    expect_says(3, "run fsrcnn synthetic:61x83 --mask none.pgm", "none.pgm");
    expect(0, "run fsrcnn synthetic:8x8 -o colours.npy");
    expect_says(3, "run fsrcnn synthetic:61x83 --mask colours.npy", "has 3 channels");
    expect_says(2, "run fsrcnn synthetic:61x83 --mask mask.pgm --part 1/2 -o a.npy",
                "--mask excludes --part");
    expect_says(2, "run fsrcnn synthetic:61x83 --mask mask.pgm --tiles 2x2",
                "--mask excludes --tiles");
    expect_says(2, "run fsrcnn synthetic:61x83 --mask mask.pgm --bits 8 -o a.tif", "needs --range");
    expect_says(2, "run fsrcnn synthetic:61x83 --mask mask.pgm -o a.png", "needs --range");
    expect_says(2, "run fsrcnn synthetic:61x83 --mask mask.pgm --overlay shown.png -o masked.npy",
                "--overlay");
    expect_says(2, "run fsrcnn --list a.txt --out-dir . --mask mask.pgm", "excludes --list");
    expect_says(2, "run posenet synthetic:65x65 --mask mask.pgm", "--part-output says which");
}

/* Marks of two convs, 3x3 with stride 2 and 3x3: row o sees rows 2 o - 3 to 2 o + 3. */
static void test_marks(void **state) {
    (void)state;
    enum { H = 18, W = 26, C = 2 };
    static float flags[C * H * W], map[H / 2 * (W / 2)];
    struct test_rng rng = test_rng_make(11);
    for (int run = 0; run < 60; run++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = small_net_two_convs(mem, H, W);
        struct rfx_image *image = NULL;
        struct rfx_missing missing;
        const int reach = run % 2 == 0 ? 3 : 0;
        const struct rfx_view zeros = rfx_view_dense(map, rfx_rect_full(H / 2, W / 2), 1);
        for (int i = 0; i < C * H * W; i++) flags[i] = test_rng_next(&rng) % 90 == 0;
        assert_int_equal(rfx_image_from_array(mem, flags, C, H, W, &image, NULL), RFX_OK);
        size_t held = rfx_memory_current_bytes(mem);
        enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
        for (int k = 0; status == RFX_STATUS_OUT_OF_MEMORY; k++) {
            assert_int_equal(rfx_memory_current_bytes(mem), held);
            rfx_memory_fail_after(mem, run < 2 ? k : -1);
            status = rfx_missing_find(mem, graph, image, reach == 0, 0, &missing, NULL);
        }
        rfx_memory_fail_after(mem, -1);
        assert_int_equal(status, RFX_OK);
        for (int y = 0; y < H / 2; y++)
            for (int x = 0; x < W / 2; x++) {
                bool marked = false;
                for (int i = 0; i < C * H * W; i++)
                    marked |= flags[i] != 0.0f && abs(i / W % H - 2 * y) <= reach &&
                              abs(i % W - 2 * x) <= reach;
                struct rfx_view pixel = rfx_missing_row(&missing, 0, 1, y, x, x + 1, &zeros);
                assert_int_equal(isnan(*rfx_view_f32_at(&pixel, y, x)), marked);
                assert_int_equal(rfx_missing_any(&missing, 0, rfx_rect_make(y, y + 1, x, x + 1)),
                                 marked);
            }
        rfx_missing_release(&missing);
        assert_int_equal(rfx_missing_find(mem, graph, image, false, 1000, &missing, NULL),
                         RFX_STATUS_BUDGET_IMPOSSIBLE);
        assert_int_equal(rfx_memory_current_bytes(mem), held);
        rfx_image_free(image);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

/* Marked runs: NaN in the places of the first plan, elsewhere the bits of the picture that was
 * filled by hand, under every plan. */
static void test_marked_runs(void **state) {
    (void)state;
    static const char *const plans[] = {"",
                                        "-j 1 --tiles 3x2",
                                        "--bands 8",
                                        "--bands 8 --strips 2",
                                        "--memory 40MiB",
                                        "-j 1 --row-by-row"};
    enum { H = 40, W = 56, N = 3 * 4 * H * W };
    for (int k = 0; k < H * W; k++) pixels[k] = (unsigned char)(1 + k * 7 % 255);
    for (int k = 0; k < H * W; k++) pixels[k] = pixels[k] == 200 ? 201 : pixels[k];
    pixels[W * 9 + 30] = 77;
    write_mask("filled.pgm", H, W);
    pixels[W * 9 + 30] = 200;
    write_mask("holed.pgm", H, W);
    expect(0, "run fsrcnn filled.pgm -o whole.npy");
    uint32_t *whole = values("whole.npy", N), *first = NULL;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char args[200];
        size_t marked = 0;
        (void)snprintf(args, sizeof args, "run fsrcnn holed.pgm --nodata 200=77 %s -o m.npy",
                       plans[i]);
        expect(0, args);
        assert_non_null(strstr(err_text, "1 of its pixels is missing"));
        uint32_t *got = values("m.npy", N);
        for (int k = 0; k < N; k++) {
            bool nan = got[k] == 0x7fc00000;
            marked += nan;
            if (!nan && got[k] != whole[k]) fail_msg("%s: element %d", plans[i], k);
            if (first != NULL && got[k] != first[k]) fail_msg("%s: mark %d", plans[i], k);
        }
        assert_in_range(marked, 3 * 4 * 9, N / 2);
        if (first == NULL)
            first = got;
        else
            free(got);
    }
    expect(0, "run fsrcnn holed.pgm --nodata 200=77 --nodata-mark none -o m.npy");
    uint32_t *got = values("m.npy", N);
    assert_memory_equal(got, whole, N * sizeof *got);
    free(got);
    free(first);
    free(whole);
    expect_says(2, "run fsrcnn holed.pgm --nodata file=1", "names no no-data value");
    expect_says(2, "run fsrcnn holed.pgm --nodata 0=1 -o m.png", "cannot hold");
    expect_says(2, "run fsrcnn holed.pgm --nodata 0=1 --part 1/2 -o a.npy",
                "--nodata excludes --part");
    expect_says(2, "run fsrcnn holed.pgm --nodata 0", "such as -9999=0");
    expect_says(2, "run fsrcnn holed.pgm --nodata-mark field", "needs --nodata");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rectangles),  cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marked_runs), cmocka_unit_test(test_many),
        cmocka_unit_test(test_runs),        cmocka_unit_test(test_library),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
