/* See image_reads.h. */
#include "tests/support/run/image_reads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

const struct rfx_image_options image_reads_plain = {.scale = 1.0f,
                                                    .mean = (const float[]){0},
                                                    .n_mean = 1,
                                                    .std = (const float[]){1},
                                                    .n_std = 1,
                                                    .bgr = false,
                                                    .channels = 0};

enum rfx_status image_reads_all(const char *path, int64_t most, int64_t fail_after, size_t limit,
                                struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(limit);
    rfx_memory_fail_after(mem, fail_after);
    struct rfx_image *image = NULL;
    err->text[0] = '\0';
    enum rfx_status status = rfx_image_open(mem, path, &image_reads_plain, &image, err);
    if (status == RFX_OK) status = rfx_image_set_window(image, 3, err);
    struct rfx_source_traits t = {0};
    if (status == RFX_OK) t = rfx_image_traits(image);
    int64_t cols = t.w < most ? t.w : most, rows = t.h < most ? t.h : most;
    float *row = malloc((size_t)(cols * t.c + 1) * sizeof *row);
    for (int64_t y = 0; y < rows && status == RFX_OK; y++) {
        struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, cols), t.c);
        status = rfx_image_read(image, view.rect, &view, err);
    }
    free(row);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status;
}

int64_t image_reads_failing(const char *path) {
    struct rfx_error err;
    for (int64_t k = 0;; k++) {
        enum rfx_status status = image_reads_all(path, INT32_MAX, k, 0, &err);
        if (status == RFX_OK) return k;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(err.text[0] != '\0');
        assert_true(k < 50);
    }
}
