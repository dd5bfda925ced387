/* Which samples of a TIFF are delivered, of which types: bands that are chosen, alpha by its name,
 * and what is refused for want of a choice. Values against those that libtiff wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"

#define FILE_NAME "test_image_tiff_layout.tmp.tif"

/* Pixels of all bands, in every way of storing them. */
static struct tiff_maker maker_of(int bits, int format, int samples, int form) {
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE};
    struct tiff_maker m = {.h = 37, .w = 53, .photometric = PHOTOMETRIC_MINISBLACK};
    m.bits = bits;
    m.format = format;
    m.samples = samples;
    m.no_alpha = true;
    m.compression = codecs[form % 3];
    m.cols = form / 3 % 2 == 0 ? 0 : 32;
    m.rows = m.cols > 0 ? 16 : 5;
    m.separate = form / 6 == 1 && samples > 1;
    m.big_endian = form % 2 == 1;
    m.seed = (uint32_t)(bits * 1000 + samples * 20 + form);
    return m;
}
enum { FORMS = 12 };

/* Reads the file by rows and holds channel k against band chosen[k]. */
static void check_bands(const struct tiff_maker *m, const struct rfx_image_bands *chosen) {
    struct rfx_image_options options = image_reads_plain;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    options.bands = chosen;
    if (rfx_image_open(mem, FILE_NAME, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.c, chosen != NULL ? chosen->n : m->samples);
    assert_int_equal(rfx_image_set_window(image, 3, &err), RFX_OK);
    float *row = malloc((size_t)(t.w * t.c) * sizeof *row);
    for (int y = 0; y < m->h; y++) {
        struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, t.w), t.c);
        if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
        for (int x = 0; x < m->w; x++)
            for (int k = 0; k < t.c; k++) {
                int band = chosen != NULL ? chosen->numbers[k] - 1 : k;
                float want = tiff_maker_sample(m, y, x, band), got = row[x * t.c + k];
                if (got != want)
                    fail_msg(
                        "%d bits, format %d, %d samples, codec %d, cols %d, separate %d: (%d, "
                        "%d, %d) is %.9g, not %.9g",
                        m->bits, m->format, m->samples, m->compression, m->cols, m->separate, y, x,
                        k, (double)got, (double)want);
            }
    }
    size_t held = rfx_memory_high_water_bytes(mem);
    assert_true(held <= t.fixed_bytes + 3 * t.window_row_bytes);
    free(row);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static void every_type_and_number_of_bands(void **state) {
    (void)state;
    static const int types[][2] = {{8, SAMPLEFORMAT_UINT},    {16, SAMPLEFORMAT_UINT},
                                   {32, SAMPLEFORMAT_UINT},   {8, SAMPLEFORMAT_INT},
                                   {16, SAMPLEFORMAT_INT},    {32, SAMPLEFORMAT_INT},
                                   {32, SAMPLEFORMAT_IEEEFP}, {64, SAMPLEFORMAT_IEEEFP}};
    static const int samples[] = {1, 2, 3, 4, 7};
    static const struct rfx_image_bands some = {4, {2, 1, 2, 1}}, one = {1, {7}},
                                        last = {3, {4, 3, 2}};
    for (int type = 0; type < 8; type++)
        for (int i = 0; i < 5; i++)
            for (int form = 0; form < FORMS; form++) {
                struct tiff_maker m = maker_of(types[type][0], types[type][1], samples[i], form);
                assert_true(tiff_maker_write(&m, FILE_NAME));
                check_bands(&m, NULL);
                if (m.samples >= 2) check_bands(&m, &some);
                if (m.samples >= 4) check_bands(&m, &last);
                if (m.samples >= 7) check_bands(&m, &one);
            }
}

/* A pixel is wider than what is read at a time of narrow ones. */
static void hundreds_of_bands(void **state) {
    (void)state;
    static const struct rfx_image_bands ends = {3, {512, 1, 300}};
    for (int form = 0; form < FORMS; form += 6) {
        struct tiff_maker m = maker_of(64, SAMPLEFORMAT_IEEEFP, 512, form);
        m.w = 21;
        m.h = 4;
        assert_true(tiff_maker_write(&m, FILE_NAME));
        check_bands(&m, NULL);
        check_bands(&m, &ends);
    }
}

/* Opens for a network of `channels`; what is said when that is refused, else "". */
static const char *opened(const struct rfx_image_bands *bands, int64_t channels, int *alpha) {
    static struct rfx_error err;
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    err.text[0] = '\0';
    options.bands = bands;
    options.channels = channels;
    enum rfx_status status = rfx_image_open(mem, FILE_NAME, &options, &image, &err);
    if (status == RFX_OK && alpha != NULL) *alpha = rfx_image_alpha(image, NULL);
    if (status == RFX_OK) assert_int_equal(rfx_image_traits(image).c, channels);
    if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_UNSUPPORTED);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return err.text;
}

static void assert_says(const char *text, const char *words) {
    if (strstr(text, words) == NULL) fail_msg("'%s' does not say '%s'", text, words);
}

/* What `colour` was before it was multiplied with alpha, on the scale of pictures: by the formula
 * of image_tiff_layout.h. */
static float straight(float colour, float alpha, int bits) {
    const int top = bits == 8 ? 255 : 65535;
    if (bits == 32) return alpha == 0.0f ? 0.0f : colour / alpha;
    int v = (int)(colour * (bits == 8 ? 1.0f : 257.0f) + 0.5f);
    int a = (int)(alpha * (bits == 8 ? 1.0f : 257.0f) + 0.5f);
    int64_t whole = a == 0 ? 0 : ((int64_t)v * top + a / 2) / a;
    if (whole > top) whole = top;
    return bits == 8 ? (float)whole : (float)whole / 257.0f;
}

/* Colours that are multiplied with alpha are divided by it when it is dropped, and only then. */
static void premultiplied_colours_are_divided(void **state) {
    (void)state;
    static const int kinds[] = {8, 16, 32};
    for (int i = 0; i < 3 * FORMS * 2; i++) {
        struct tiff_maker m = maker_of(kinds[i % 3], 0, i % 2 == 0 ? 4 : 2, i / 3 % FORMS);
        struct rfx_memory *mem = rfx_memory_create(0);
        m.photometric = m.samples == 4 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
        m.no_alpha = false;
        m.associated = true;
        if (m.bits == 32) m.format = SAMPLEFORMAT_IEEEFP;
        assert_true(tiff_maker_write(&m, FILE_NAME));
        for (int all = 0; all < 2; all++) {
            struct rfx_image_options options = image_reads_plain;
            struct rfx_image *image = NULL;
            struct rfx_error err = {{0}};
            const int c = m.samples - 1 + all;
            options.channels = c;
            if (rfx_image_open(mem, FILE_NAME, &options, &image, &err) != RFX_OK)
                fail_msg("%s", err.text);
            assert_int_equal(rfx_image_alpha(image, NULL), 1 - all);
            assert_int_equal(rfx_image_set_window(image, 1, &err), RFX_OK);
            for (int y = 0; y < m.h; y++) {
                float row[53 * 4];
                struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, m.w), c);
                if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK)
                    fail_msg("%s", err.text);
                for (int k = 0; k < m.w * c; k++) {
                    float want = tiff_maker_sample(&m, y, k / c, k % c);
                    float alpha = tiff_maker_sample(&m, y, k / c, m.samples - 1);
                    if (!all) want = straight(want, alpha, m.bits);
                    assert_float_equal(row[k], want, 0);
                }
            }
            rfx_image_free(image);
        }
        rfx_memory_free(mem);
    }
}

static void no_band_is_lost_in_silence(void **state) {
    (void)state;
    static const struct rfx_image_bands three = {3, {4, 3, 2}}, four = {4, {1, 2, 3, 4}},
                                        fifth = {1, {5}};
    struct tiff_maker m = maker_of(8, 0, 4, 0);
    int alpha = -1;
    m.photometric = PHOTOMETRIC_RGB;
    for (int i = 0; i < 2; i++) {
        m.bits = i == 0 ? 8 : 16;
        m.no_alpha = true; /* a fourth band, of which nothing is known */
        assert_true(tiff_maker_write(&m, FILE_NAME));
        assert_says(opened(NULL, 3, NULL),
                    "4 of 4 bands are read, the network takes 3: --channels");
        assert_says(opened(NULL, 1, NULL), "--channels");
        assert_string_equal(opened(NULL, 4, &alpha), "");
        assert_int_equal(alpha, 0);
        assert_string_equal(opened(&three, 3, &alpha), "");
        assert_says(opened(&three, 1, NULL), "3 of 4 bands are read, the network takes 1");
        assert_says(opened(&fifth, 1, NULL), "--channels: band 5 of 4");
        m.no_alpha = false; /* alpha by its name */
        assert_true(tiff_maker_write(&m, FILE_NAME));
        assert_string_equal(opened(NULL, 3, &alpha), "");
        assert_int_equal(alpha, 1);
        assert_string_equal(opened(NULL, 1, &alpha), ""); /* luma */
        assert_string_equal(opened(&four, 4, &alpha), "");
        assert_int_equal(alpha, 0);
    }
}

/* Three bands that are not said to be colours have no luma; grey with a band more is not grey. */
static void bands_are_no_colours(void **state) {
    (void)state;
    static const struct rfx_image_bands second = {1, {2}};
    struct tiff_maker m = maker_of(8, 0, 3, 0);
    assert_true(tiff_maker_write(&m, FILE_NAME));
    assert_string_equal(opened(NULL, 3, NULL), "");
    assert_says(opened(NULL, 1, NULL), "3 of 3 bands are read, the network takes 1");
    assert_string_equal(opened(&second, 1, NULL), "");
    assert_says(opened(&second, 3, NULL), "1 of 3 bands are read, the network takes 3");
    m.samples = 2;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    assert_says(opened(NULL, 1, NULL), "2 of 2 bands");
    assert_says(opened(NULL, 3, NULL), "2 of 2 bands");
    m.photometric = PHOTOMETRIC_PALETTE;
    m.samples = 1;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    assert_says(opened(&second, 1, NULL), "colours of a palette");
    (void)unlink(FILE_NAME);
}

/* One mean for all bands, or one for each; ImageNet's three are of no use to five. */
static void means_of_many_bands(void **state) {
    (void)state;
    struct tiff_maker m = maker_of(8, 0, 5, 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err;
    for (int bits = 8; bits <= 16; bits += 8)
        for (int given = 0; given < 3; given++) {
            struct rfx_image_options options = rfx_image_default_options();
            struct rfx_image *image = NULL;
            static const float means[5] = {3, 1, 4, 1, 5}, stds[5] = {2, 7, 1, 8, 2};
            const int n = given == 2 ? 5 : given; /* numbers of each */
            float pixel[5];
            m.bits = bits;
            assert_true(tiff_maker_write(&m, FILE_NAME));
            options.mean = means;
            options.std = stds;
            options.n_mean = options.n_std = n;
            options.scale = 0.5f;
            options.raw = bits == 16;
            options.channels = 5;
            assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err), RFX_OK);
            struct rfx_view view = rfx_view_dense(pixel, rfx_rect_make(2, 3, 4, 5), 5);
            assert_int_equal(rfx_image_read(image, view.rect, &view, &err), RFX_OK);
            for (int k = 0; k < 5; k++) {
                float mean = n > 0 ? means[n == 5 ? k : 0] : 0.0f;
                float std = n > 0 ? stds[n == 5 ? k : 0] : 1.0f;
                float sample = tiff_maker_sample(&m, 2, 4, k); /* of 16 bits by 257 */
                if (bits == 16) sample = (float)(int)(sample * 257.0f + 0.5f);
                assert_true(pixel[k] == (sample * 0.5f - mean) / std);
            }
            rfx_image_free(image);
            options.n_mean = 3;
            assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err),
                             RFX_STATUS_INVALID_ARGUMENT);
            assert_says(err.text, "mean has 3 numbers, the network takes 5 channels");
        }
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_number_of_bands),
        cmocka_unit_test(hundreds_of_bands),
        cmocka_unit_test(premultiplied_colours_are_divided),
        cmocka_unit_test(no_band_is_lost_in_silence),
        cmocka_unit_test(bands_are_no_colours),
        cmocka_unit_test(means_of_many_bands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
