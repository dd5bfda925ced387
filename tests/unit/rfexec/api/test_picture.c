/* Pictures from bytes in memory and from a reading function, against the same picture as a file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/makers/png_maker.h"
#include "tests/support/run/network_run.h"

enum { H = 40, W = 52 };
static const char path[] = "test_picture.png";

struct stream {
    FILE *file;
    int64_t calls, fail_at;
};

static int64_t read_some(void *user, void *to, int64_t most) {
    struct stream *s = user;
    if (++s->calls == s->fail_at) return -3;
    return (int64_t)fread(to, 1, most < 100 ? (size_t)most : 100, s->file);
}

static int make_picture(void **state) {
    (void)state;
    const struct png_maker png = {.h = H, .w = W, .bit_depth = 8, .color_type = 2};
    return png_maker_write(&png, path) ? 0 : -1;
}

static int forget_picture(void **state) {
    (void)state;
    return unlink(path);
}

static void check(const struct rfx_picture *picture) {
    struct rfx_network *net = network_open_sized("squeezenet1_1", H, W);
    struct network_outputs want = network_outputs_for(net), got = network_outputs_for(net);
    const struct rfx_run_options options = network_run_options(0, 1);
    const char *name = rfx_picture_name(picture);
    int64_t rows = 0, columns = 0;
    struct rfx_why why;
    network_check(rfx_picture_size(name, &rows, &columns, NULL, &why), &why);
    assert_int_equal(rows, H);
    assert_int_equal(columns, W);
    network_check(rfx_network_run_file(net, path, want.values, want.n, &options, &why), &why);
    for (int run = 0; run < 2; run++) {
        memset(got.values[0], 0xff, (size_t)got.elems[0] * sizeof(float));
        network_check(rfx_network_run_file(net, name, got.values, got.n, &options, &why), &why);
        network_assert_same(&got, &want);
    }
    network_outputs_free(&want);
    network_outputs_free(&got);
    rfx_network_free(net);
}

static void from_bytes(void **state) {
    (void)state;
    static unsigned char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    assert_true(n > 0 && n < sizeof bytes);
    (void)fclose(file);
    struct rfx_picture *picture = NULL;
    struct rfx_why why;
    network_check(rfx_picture_from_bytes(bytes, n, NULL, &picture, &why), &why);
    memset(bytes, 0, n); /* they were copied */
    check(picture);
    rfx_picture_free(picture);
}

static void from_a_stream(void **state) {
    (void)state;
    struct stream stream = {.file = fopen(path, "rb")};
    struct rfx_picture *picture = NULL;
    struct rfx_why why;
    assert_non_null(stream.file);
    network_check(rfx_picture_from_stream(read_some, &stream, ".", &picture, &why), &why);
    assert_true(stream.calls > 2);
    check(picture);
    rfx_picture_free(picture);
    rewind(stream.file);
    stream = (struct stream){.file = stream.file, .fail_at = 2};
    picture = NULL;
    assert_int_equal(rfx_picture_from_stream(read_some, &stream, ".", &picture, &why),
                     RFX_CODE_SYSTEM);
    assert_non_null(strstr(why.text, "returned -3"));
    assert_null(picture);
    (void)fclose(stream.file);
}

/* Samples of 8 and 16 bits, pixel by pixel and plane by plane, give the bits of picture files. */
static void samples_in_memory(void **state) {
    (void)state;
    static unsigned char planes[3 * H * W], pixels[3 * H * W];
    static uint16_t wide[3 * H * W];
    static const char file[] = "test_picture_samples.ppm";
    static const float mean[3] = {0.4f, 0.5f, 0.6f}, spread = 0.3f;
    FILE *ppm = fopen(file, "wb");
    assert_non_null(ppm);
    fprintf(ppm, "P6\n%d %d\n255\n", W, H);
    for (int i = 0; i < H * W; i++)
        for (int k = 0; k < 3; k++) {
            pixels[3 * i + k] = planes[k * H * W + i] = (unsigned char)(i * 7 + k * 50);
            wide[3 * i + k] = (uint16_t)(257 * pixels[3 * i + k]);
        }
    assert_int_equal(fwrite(pixels, 1, sizeof pixels, ppm), sizeof pixels);
    assert_int_equal(fclose(ppm), 0);
    struct rfx_network *net = network_open_sized("squeezenet1_1", H, W);
    struct network_outputs want = network_outputs_for(net), got = network_outputs_for(net);
    struct rfx_why why;
    for (int kind = 0; kind < 6; kind++) {
        struct rfx_run_options options = network_run_options(0, 1 + kind % 2);
        if (kind >= 3) {
            options.mean = mean;
            options.n_mean = 3;
            options.std = &spread;
            options.n_std = 1;
            options.bgr = 1;
        }
        struct rfx_source source = {.size = sizeof source, .samples = planes, .sample_bits = 8};
        if (kind % 3 != 0) {
            source.samples = kind % 3 == 1 ? (const void *)pixels : (const void *)wide;
            source.sample_bits = kind % 3 == 1 ? 8 : 16;
            source.row_step = 3 * W;
            source.column_step = 3;
            source.channel_step = 1;
        }
        network_check(rfx_network_run_file(net, file, want.values, want.n, &options, &why), &why);
        memset(got.values[0], 0xff, (size_t)got.elems[0] * sizeof(float));
        network_check(rfx_network_run_source(net, &source, got.values, got.n, &options, &why),
                      &why);
        network_assert_same(&got, &want);
        source.sample_bits = 12;
        assert_int_equal(rfx_network_run_source(net, &source, got.values, got.n, &options, &why),
                         RFX_CODE_USAGE);
        source.sample_bits = 8;
        options.n_mean = kind >= 3 ? 2 : 0;
        if (kind >= 3)
            assert_int_equal(
                rfx_network_run_source(net, &source, got.values, got.n, &options, &why),
                RFX_CODE_USAGE);
    }
    network_outputs_free(&want);
    network_outputs_free(&got);
    rfx_network_free(net);
    assert_int_equal(unlink(file), 0);
}

static void refusals(void **state) {
    (void)state;
    struct rfx_picture *picture = NULL;
    struct rfx_why why;
    int64_t rows, columns;
    assert_int_equal(rfx_picture_from_bytes(NULL, 0, NULL, &picture, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_picture_from_bytes("a", 1, NULL, NULL, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_picture_from_stream(NULL, NULL, NULL, &picture, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_picture_from_bytes("a", 1, "no folder", &picture, &why), RFX_CODE_SYSTEM);
    assert_non_null(strstr(why.text, "no folder"));
    network_check(rfx_picture_from_bytes("no picture", 10, NULL, &picture, &why), &why);
    assert_int_equal(rfx_picture_size(rfx_picture_name(picture), &rows, &columns, NULL, &why),
                     RFX_CODE_REFUSED);
    rfx_picture_free(picture);
    rfx_picture_free(NULL);
    assert_null(rfx_picture_name(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_bytes), cmocka_unit_test(from_a_stream),
        cmocka_unit_test(samples_in_memory), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, make_picture, forget_picture);
}
