/* JPEG 2000 and WebP: files of one picture, lossless, in both formats (tests/fuzz/make_pictures.py)
 * have the same samples; rectangles, bands, memory, broken files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define CORPUS RFX_SOURCE_DIR "/tests/fuzz/corpus/"
#define FILE_NAME "test_image_jp2.tmp"
enum { H = 15, W = 20 };

/* False: this was built without OpenJPEG, or the system has none. */
static bool is_there(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    enum rfx_status status =
        rfx_image_open(mem, CORPUS "jp2/colour.jp2", &image_reads_plain, &image, &err);
    bool missing = strstr(err.text, "without OpenJPEG") != NULL || status == RFX_STATUS_IO;
    if (status != RFX_OK && !missing) fail_msg("%s", err.text);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status == RFX_OK;
}

/* Reads the picture in rectangles of so many rows and columns; channels: that the network takes. */
static void read_file(const char *path, int channels, int rows, int cols, float *out) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    options.channels = channels;
    options.as_stored = true;
    if (rfx_image_open(mem, path, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_true(t.h == H && t.w == W && t.c == channels && t.random_access);
    struct rfx_view view = rfx_view_dense(out, rfx_rect_full(H, W), channels);
    for (int y = (H - 1) / rows * rows; y >= 0; y -= rows)
        for (int x = 0; x < W; x += cols) {
            struct rfx_rect rect =
                rfx_rect_intersect(rfx_rect_full(H, W), rfx_rect_make(y, y + rows, x, x + cols));
            if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
        }
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static void both_formats_have_the_samples(void **state) {
    (void)state;
    float webp[H * W * 4], jp2[H * W * 4];
    if (!is_there()) skip();
    read_file(CORPUS "webp/lossless.webp", 3, H, W, webp);
    for (int k = 1; k < 9; k += 3) {
        read_file(CORPUS "jp2/colour.jp2", 3, k, 2 * k, jp2);
        assert_memory_equal(jp2, webp, H * W * 3 * sizeof *jp2);
        read_file(CORPUS "webp/lossless.webp", 3, k, 2 * k, jp2);
        assert_memory_equal(jp2, webp, H * W * 3 * sizeof *jp2);
        read_file(CORPUS "jp2/alpha.jp2", 3, k, 2 * k, jp2); /* of tiles, without its alpha */
        assert_memory_equal(jp2, webp, H * W * 3 * sizeof *jp2);
    }
    float grey[H * W];
    read_file(CORPUS "jp2/stream.j2k", 1, 4, 7, grey); /* the picture's red */
    for (int i = 0; i < H * W; i++) assert_float_equal(grey[i], webp[3 * i], 0);
    read_file(CORPUS "webp/lossless_alpha.webp", 4, H, W, webp);
    read_file(CORPUS "jp2/alpha.jp2", 4, 4, 7, jp2);
    for (int i = 0; i < H * W * 4; i++) /* where nothing is seen libwebp's encoder leaves colours */
        if (webp[i / 4 * 4 + 3] > 0) assert_float_equal(jp2[i], webp[i], 0);
}

static void lossy_values_do_not_depend_on_rectangles(void **state) {
    (void)state;
    static const char *const paths[] = {CORPUS "jp2/lossy.j2k", CORPUS "webp/lossy.webp"};
    if (!is_there()) skip();
    for (int i = 0; i < 2; i++) {
        float whole[H * W * 3], parts[H * W * 3];
        read_file(paths[i], 3, H, W, whole);
        read_file(paths[i], 3, 2, 3, parts);
        assert_memory_equal(parts, whole, sizeof whole);
    }
}

/* Every beginning of a file is refused in words, or read where only its end mark is missing. */
static void files_that_break_off(void **state) {
    (void)state;
    static const char *const paths[] = {CORPUS "jp2/colour.jp2", CORPUS "webp/lossless.webp"};
    static struct test_bytes b;
    if (!is_there()) skip();
    for (int i = 0; i < 2; i++) {
        test_bytes_load(&b, paths[i]);
        for (size_t count = 12; count < b.count - 2; count += 5) {
            struct rfx_error err = {{0}};
            test_bytes_store(FILE_NAME, b.data, count);
            enum rfx_status status = image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err);
            if (status == RFX_OK && count > b.count - 100) continue;
            if (status != RFX_STATUS_MALFORMED || strstr(err.text, FILE_NAME) == NULL)
                fail_msg("%d bytes of %s: %d, %s", (int)count, paths[i], (int)status, err.text);
        }
    }
    (void)unlink(FILE_NAME);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    if (!is_there()) skip();
    assert_true(image_reads_failing(CORPUS "jp2/alpha.jp2") >= 5);
    assert_true(image_reads_failing(CORPUS "webp/lossy.webp") >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_formats_have_the_samples),
        cmocka_unit_test(lossy_values_do_not_depend_on_rectangles),
        cmocka_unit_test(files_that_break_off),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
