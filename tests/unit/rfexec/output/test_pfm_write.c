#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/output/output_stream.h"
#include "tests/support/test_util.h"

#define PATH "test_pfm_write.tmp.pfm"
enum { H = 3, W = 2 };

static const struct rfx_output_format pfm = {.kind = &rfx_output_pfm};

/* Writes a map whose value k is k / 4, the columns one after the other where `strips`. */
static void write_map(int64_t channels, bool strips) {
    float values[H * W * 3];
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_tensor map = rfx_tensor_nhwc(channels, H, W);
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_full(H, W), channels);
    struct rfx_output_stream *stream = NULL;
    struct rfx_error err = {""};
    for (int64_t i = 0; i < map.elems; i++) values[i] = (float)i / 4.0f;
    if (rfx_output_stream_open(mem, PATH, &pfm, &map, &stream, &err) != RFX_OK)
        fail_msg("%s", err.text);
    for (int64_t x = W; x > 0; x -= strips ? 1 : W) {
        struct rfx_rect part = rfx_rect_make(0, H, strips ? x - 1 : 0, x);
        if (rfx_output_stream_write(stream, part, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    }
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_output_stream_bytes(&pfm, &map));
    if (rfx_output_stream_commit(stream, NULL, NULL, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_output_stream_free(stream);
    rfx_memory_free(mem);
}

/* The header, then the last row first. */
static void check_file(int64_t channels) {
    char header[16] = "", found[16] = "";
    float row[W * 3];
    int n = snprintf(header, sizeof header, "%s\n2 3\n-1.0\n", channels == 3 ? "PF" : "Pf");
    FILE *file = fopen(PATH, "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, (size_t)n, file), n);
    assert_string_equal(found, header);
    for (int64_t y = H; y > 0; y--) {
        size_t count = (size_t)(W * channels);
        assert_int_equal(fread(row, sizeof *row, count, file), count);
        for (size_t i = 0; i < count; i++)
            assert_true(row[i] == (float)((size_t)(y - 1) * count + i) / 4.0f);
    }
    assert_int_equal(fgetc(file), EOF);
    (void)fclose(file);
    assert_int_equal(unlink(PATH), 0);
}

static void rows_lie_from_the_bottom_up(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        write_map(k < 2 ? 1 : 3, k % 2 == 1);
        check_file(k < 2 ? 1 : 3);
    }
}

static void takes_floats_of_one_or_three_channels(void **state) {
    (void)state;
    const struct rfx_tensor pair = rfx_tensor_nhwc(2, H, W), grey = rfx_tensor_nhwc(1, H, W);
    const struct rfx_output_format bytes = {.kind = &rfx_output_pfm, .bits = 8};
    struct rfx_error err = {""};
    assert_int_equal(rfx_output_format_check(&pfm, &pair, "out", &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_string_equal(err.text,
                        "out: a PFM has 1 or 3 channels, the map has 2; use .tif or .npy");
    assert_int_equal(rfx_output_format_check(&bytes, &grey, "out", &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_string_equal(err.text, "out: a PFM has samples of 32 bits, not 8");
    assert_int_equal(rfx_output_format_check(&pfm, &grey, "out", &err), RFX_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_lie_from_the_bottom_up),
        cmocka_unit_test(takes_floats_of_one_or_three_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
