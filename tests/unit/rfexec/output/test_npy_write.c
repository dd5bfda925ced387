/* .npy files: their contents, in any order, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/output/npy_write.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_npy_write.tmp.d"
#define FILE_NAME DIRECTORY "/out.npy"

static int make_directory(void **state) {
    (void)state;
    (void)unlink(FILE_NAME);
    (void)rmdir(DIRECTORY);
    return mkdir(DIRECTORY, 0777);
}

static int remove_directory(void **state) {
    (void)state;
    (void)unlink(FILE_NAME);
    return rmdir(DIRECTORY); /* fails when a temporary is left */
}

static size_t read_file(void *to, size_t capacity) {
    FILE *file = fopen(FILE_NAME, "rb");
    assert_non_null(file);
    size_t count = fread(to, 1, capacity, file);
    assert_int_equal(fclose(file), 0);
    return count;
}

static void appends_and_commits(void **state) {
    (void)state;
    const int64_t elems = 3 * 50000;
    float *values = malloc((size_t)elems * sizeof *values);
    unsigned char *bytes = malloc(700000);
    for (int64_t i = 0; i < elems; i++) values[i] = (float)i * 0.5f;
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_shape shape = {2, {3, 50000}};
    struct rfx_npy_writer *writer = NULL;
    assert_int_equal(rfx_npy_write_open(mem, FILE_NAME, &shape, &writer, NULL), RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    /* portions of 1, 2, 4, ... elements, some larger than the buffer */
    for (int64_t at = 0, portion = 1; at < elems; at += portion, portion *= 2) {
        int64_t count = at + portion < elems ? portion : elems - at;
        assert_int_equal(rfx_npy_write_append(writer, values + at, (size_t)count, NULL), RFX_OK);
    }
    assert_int_equal(access(FILE_NAME, F_OK), -1); /* not there before the commit */
    struct rfx_error err = {""};
    assert_int_equal(rfx_npy_write_append(writer, values, 1, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_npy_write_commit(writer, NULL), RFX_OK);
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    rfx_npy_write_free(writer);
    rfx_memory_free(mem);
    assert_int_equal(test_files_in(DIRECTORY), 1);
    assert_int_equal(read_file(bytes, 700000), 128 + (size_t)elems * 4);
    assert_memory_equal(bytes,
                        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, "
                        "'shape': (3, 50000), }",
                        10 + 62);
    assert_memory_equal(bytes + 128, values, (size_t)elems * 4);
    struct stat info;
    assert_int_equal(stat(FILE_NAME, &info), 0);
    mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    free(values);
    free(bytes);
}

static void writes_rectangles_as_planes(void **state) {
    (void)state;
    enum { H = 7, W = 3000, C = 3 };
    float *map = malloc(sizeof(float) * H * W * C),
          *planes = malloc(sizeof(float) * H * W * C + 128);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < C; c++)
                map[(y * W + x) * C + c] = (float)(c * 1000000 + y * 10000 + x);
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_shape shape = {4, {1, C, H, W}};
    struct rfx_npy_writer *writer = NULL;
    struct rfx_view view = rfx_view_dense(map, rfx_rect_full(H, W), C);
    assert_int_equal(rfx_npy_write_open(mem, FILE_NAME, &shape, &writer, NULL), RFX_OK);
    /* bands, the last one first, one of them in two parts */
    static const struct rfx_rect rects[] = {
        {5, 7, 0, W}, {0, 2, 0, 2501}, {0, 2, 2501, W}, {2, 5, 0, W}};
    struct rfx_rect outside = rfx_rect_make(0, H + 1, 0, W);
    struct rfx_error err = {""};
    assert_int_equal(rfx_npy_write_rect(writer, outside, &view, &err), RFX_STATUS_INVALID_ARGUMENT);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rfx_npy_write_commit(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_npy_write_rect(writer, rects[i], &view, NULL), RFX_OK);
    }
    assert_int_equal(rfx_npy_write_rect(writer, rects[0], &view, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_npy_write_commit(writer, NULL), RFX_OK);
    rfx_npy_write_free(writer);
    rfx_memory_free(mem);
    assert_int_equal(read_file(planes, sizeof(float) * H * W * C + 128),
                     sizeof(float) * H * W * C + 128);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                assert_true(planes[32 + (c * H + y) * W + x] ==
                            (float)(c * 1000000 + y * 10000 + x));
    free(map);
    free(planes);
}

static void refuses_sizes_that_overflow(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    const struct rfx_shape huge = {3, {INT64_MAX / 2, 4, 1}};
    struct rfx_npy_writer *writer = NULL;
    assert_int_equal(rfx_npy_write_open(mem, FILE_NAME, &huge, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    rfx_npy_write_free(NULL);
    rfx_memory_free(mem);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    const struct rfx_shape shape = {1, {4}};
    int64_t k = 0;
    for (enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY; status != RFX_OK; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_npy_writer *writer = NULL;
        struct rfx_error err = {""};
        rfx_memory_fail_after(mem, k);
        status = rfx_npy_write_open(mem, FILE_NAME, &shape, &writer, &err);
        if (status != RFX_OK) {
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_true(err.text[0] != '\0');
        }
        rfx_npy_write_free(writer);
        rfx_memory_free(mem);
        assert_int_equal(test_files_in(DIRECTORY), 0);
    }
    assert_int_equal(k, 5); /* writer, file, two names; the fifth run passes */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appends_and_commits, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(writes_rectangles_as_planes, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(refuses_sizes_that_overflow, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(survives_failing_allocations, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
