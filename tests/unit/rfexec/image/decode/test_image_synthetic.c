/* The procedural picture: a pure function of seed and place, varied enough, specs checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"

static const struct rfx_image_options plain = {.scale = 1.0f,
                                               .mean = (const float[]){0},
                                               .n_mean = 1,
                                               .std = (const float[]){1},
                                               .n_std = 1,
                                               .bgr = false,
                                               .channels = 0};

static struct rfx_image *open_spec(struct rfx_memory *mem, const char *spec) {
    struct rfx_image *image = NULL;
    struct rfx_error err;
    if (rfx_image_open(mem, spec, &plain, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    return image;
}

static float *read_rect(struct rfx_image *image, struct rfx_rect rect) {
    float *data = malloc((size_t)(rfx_rect_area(rect) * 3) * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rect, 3);
    struct rfx_error err;
    if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    return data;
}

static void value_is_a_function_of_the_place(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    /* another size, same seed: the same values where both have them */
    struct rfx_image *small = open_spec(mem, "synthetic:300x700:5");
    struct rfx_image *large = open_spec(mem, "synthetic:100000x100000:5");
    float *whole = read_rect(small, rfx_rect_full(300, 700));
    static const struct rfx_rect rects[] = {{0, 300, 0, 700},
                                            {299, 300, 699, 700},
                                            {17, 60, 255, 258},
                                            {3, 4, 1, 600},
                                            {0, 9, 511, 513}};
    for (int i = 0; i < 5; i++) {
        struct rfx_rect r = rects[i];
        float *part = read_rect(i % 2 == 0 ? large : small, r);
        struct rfx_view view = rfx_view_dense(part, r, 3);
        for (int64_t y = r.y0; y < r.y1; y++)
            assert_memory_equal(rfx_view_f32_at(&view, y, r.x0), whole + (y * 700 + r.x0) * 3,
                                (size_t)rfx_rect_cols(r) * 3 * sizeof(float));
        free(part);
    }
    free(read_rect(large, rfx_rect_make(99999, 100000, 99000, 100000)));
    struct rfx_source_traits t = rfx_image_traits(large);
    assert_true(t.random_access);
    assert_int_equal(t.h, 100000);
    assert_int_equal(t.w, 100000);
    assert_int_equal(t.c, 3);
    assert_int_equal(t.window_row_bytes, 0);
    rfx_image_free(small);
    size_t held = rfx_memory_current_bytes(mem);
    assert_int_equal(held, t.fixed_bytes);
    free(whole);
    rfx_image_free(large);
    rfx_memory_free(mem);
}

/* Seven channels: those of three pictures, the first the one that colours have; in any part. */
static void other_networks_get_floats(void **state) {
    (void)state;
    enum { C = 7, H = 5, W = 300 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *colours = open_spec(mem, "synthetic:5x300:3"), *image = NULL;
    struct rfx_image_options options = plain;
    struct rfx_error err = {""};
    options.channels = C;
    assert_int_equal(rfx_image_open(mem, "synthetic:5x300:3", &options, &image, &err), RFX_OK);
    assert_int_equal(rfx_image_traits(image).c, C);
    static float whole[H * W * C], part[2 * 40 * C];
    float *rgb = read_rect(colours, rfx_rect_full(H, W));
    struct rfx_view view = rfx_view_dense(whole, rfx_rect_full(H, W), C);
    assert_int_equal(rfx_image_read(image, rfx_rect_full(H, W), &view, &err), RFX_OK);
    int64_t alike[C] = {0};
    for (int64_t p = 0; p < (int64_t)H * W; p++) {
        for (int c = 0; c < 3; c++)
            assert_true(whole[p * C + c] == (rgb[p * 3 + c] - 127.5f) / 64.0f);
        for (int c = 3; c < C; c++) alike[c] += whole[p * C + c] == whole[p * C + c - 3];
    }
    for (int c = 3; c < C; c++) assert_true(alike[c] < H * W / 4);
    struct rfx_rect rect = {2, 4, 240, 280};
    view = rfx_view_dense(part, rect, C);
    assert_int_equal(rfx_image_read(image, rect, &view, &err), RFX_OK);
    for (int64_t y = rect.y0; y < rect.y1; y++)
        assert_memory_equal(rfx_view_f32_at(&view, y, rect.x0), whole + (y * W + rect.x0) * C,
                            40 * C * sizeof(float));
    free(rgb);
    rfx_image_free(colours);
    rfx_image_free(image);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void pictures_have_contrast_and_differ(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *a = open_spec(mem, "synthetic:512x512");
    struct rfx_image *b = open_spec(mem, "synthetic:512x512:1");
    float *va = read_rect(a, rfx_rect_full(512, 512)), *vb = read_rect(b, rfx_rect_full(512, 512));
    double sum = 0, squares = 0;
    int64_t n = 512 * 512 * 3, same = 0, edges = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_true(va[i] >= 0.0f && va[i] <= 255.0f && va[i] == (float)(int)va[i]);
        sum += (double)va[i];
        squares += (double)va[i] * (double)va[i];
        same += va[i] == vb[i];
        if (i >= 3 && i % 1536 >= 3) edges += va[i] - va[i - 3] > 30.0f;
    }
    double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
    assert_true(mean > 64 && mean < 192);
    assert_true(variance > 15.0 * 15.0);
    assert_true(same < n / 10);
    assert_true(edges > 50);
    free(va);
    free(vb);
    rfx_image_free(a);
    rfx_image_free(b);
    rfx_memory_free(mem);
}

static void bad_specs_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"synthetic:",
                                      "synthetic:5",
                                      "synthetic:5x",
                                      "synthetic:x5",
                                      "synthetic:0x5",
                                      "synthetic:5x0",
                                      "synthetic:-5x5",
                                      "synthetic:5x5:",
                                      "synthetic:5x5:z",
                                      "synthetic:5x5:1:2",
                                      "synthetic:5x5 ",
                                      "synthetic: 5x5",
                                      "synthetic:5X5",
                                      "synthetic:5x5.0",
                                      "synthetic:1000001x5",
                                      "synthetic:5x1000001",
                                      "synthetic:99999999999999999999x5",
                                      "synthetic:5x5:18446744073709551616",
                                      "synthetic:5x5:-1"};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rfx_image *image = NULL;
        struct rfx_error err = {""};
        if (rfx_image_open(mem, bad[i], NULL, &image, &err) != RFX_STATUS_INVALID_ARGUMENT)
            fail_msg("'%s' was accepted", bad[i]);
        assert_non_null(strstr(err.text, bad[i]));
    }
    rfx_image_free(open_spec(mem, "synthetic:1x1:18446744073709551615"));
    rfx_memory_free(mem);
}

/* Random texts out of the alphabet of specs: refused or opened with the size they say. */
static void random_specs(void **state) {
    (void)state;
    static const char alphabet[] = "0123456789x::-+ .";
    struct rfx_memory *mem = rfx_memory_create(0);
    uint32_t seed = 12345;
    for (int i = 0; i < 20000; i++) {
        char spec[40] = "synthetic:";
        size_t length = strlen(spec);
        uint32_t tail = (seed = seed * 1664525u + 1013904223u) >> 28;
        for (uint32_t k = 0; k < tail; k++) {
            seed = seed * 1664525u + 1013904223u;
            spec[length++] = alphabet[(seed >> 20) % (sizeof alphabet - 1)];
        }
        spec[length] = '\0';
        struct rfx_image *image = NULL;
        struct rfx_error err = {""};
        enum rfx_status status = rfx_image_open(mem, spec, NULL, &image, &err);
        long long h = 0, w = 0;
        bool readable = sscanf(spec, "synthetic:%lldx%lld", &h, &w) == 2;
        if (status == RFX_OK) {
            if (!readable || rfx_image_traits(image).h != h || rfx_image_traits(image).w != w)
                fail_msg("'%s' was misread", spec);
        } else {
            assert_int_equal(status, RFX_STATUS_INVALID_ARGUMENT);
            assert_true(err.text[0] != '\0');
        }
        rfx_image_free(image);
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_is_a_function_of_the_place),
        cmocka_unit_test(other_networks_get_floats),
        cmocka_unit_test(pictures_have_contrast_and_differ),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(random_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
