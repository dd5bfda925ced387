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
#include "tests/support/run/output_maps.h"
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

static enum rfx_status write_run(struct rfx_npy_writer *writer, float *values, int64_t first,
                                 int64_t n, struct rfx_error *err) {
    const struct output_run run = output_run_make(values, first, n);
    return rfx_npy_write_end(writer, &run.end, run.rect, &run.view, err);
}

static void writes_runs_and_commits(void **state) {
    (void)state;
    const int64_t elems = 3 * 50000;
    float *values = malloc((size_t)elems * sizeof *values);
    unsigned char *bytes = malloc(700000);
    for (int64_t i = 0; i < elems; i++) values[i] = (float)i * 0.5f;
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_shape shape = {2, {3, 50000}};
    struct rfx_npy_writer *writer = NULL;
    assert_int_equal(
        rfx_npy_write_open(mem, FILE_NAME, &(struct rfx_npy_array){.shape = shape}, &writer, NULL),
        RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    /* portions of 1, 2, 4, ... elements, some larger than the buffer */
    for (int64_t at = 0, portion = 1; at < elems; at += portion, portion *= 2) {
        int64_t count = at + portion < elems ? portion : elems - at;
        assert_int_equal(write_run(writer, values, at, count, NULL), RFX_OK);
    }
    assert_int_equal(access(FILE_NAME, F_OK), -1); /* not there before the commit */
    struct rfx_error err = {""};
    assert_int_equal(write_run(writer, values, 0, 1, &err), RFX_STATUS_INVALID_ARGUMENT);
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
    assert_int_equal(
        rfx_npy_write_open(mem, FILE_NAME, &(struct rfx_npy_array){.shape = shape}, &writer, NULL),
        RFX_OK);
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

/* Arrays of a batch one after the other, by rectangles and in order. */
static void writes_batches(void **state) {
    (void)state;
    enum { N = 3, ELEMS = 12 };
    static const struct rfx_shape shapes[] = {{4, {1, 2, 3, 2}}, {2, {4, 3}}};
    static const char *const words[] = {"'shape': (3, 2, 3, 2)", "'shape': (3, 4, 3)"};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    for (int form = 0; form < 2; form++) {
        struct rfx_npy_writer *writer = NULL;
        float map[ELEMS], got[32 + N * ELEMS];
        struct rfx_view view = rfx_view_dense(map, rfx_rect_full(3, 2), 2);
        assert_int_equal(
            rfx_npy_write_open(mem, FILE_NAME,
                               &(struct rfx_npy_array){.shape = shapes[form], .images = N}, &writer,
                               NULL),
            RFX_OK);
        assert_int_equal(rfx_npy_write_next(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
        rfx_npy_write_free(writer);
        assert_int_equal(
            rfx_npy_write_open(mem, FILE_NAME,
                               &(struct rfx_npy_array){.shape = shapes[form], .images = N}, &writer,
                               NULL),
            RFX_OK);
        for (int n = 0; n < N; n++) {
            for (int i = 0; i < ELEMS; i++) map[i] = (float)(100 * n + i);
            if (form == 0) {
                assert_int_equal(rfx_npy_write_rect(writer, rfx_rect_make(1, 3, 0, 2), &view, NULL),
                                 RFX_OK);
                assert_int_equal(rfx_npy_write_rect(writer, rfx_rect_make(0, 1, 0, 2), &view, NULL),
                                 RFX_OK);
            } else {
                assert_int_equal(write_run(writer, map, 0, ELEMS, NULL), RFX_OK);
            }
            if (n == N - 1) break;
            assert_int_equal(rfx_npy_write_commit(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
            assert_int_equal(rfx_npy_write_next(writer, NULL), RFX_OK);
        }
        assert_int_equal(rfx_npy_write_commit(writer, NULL), RFX_OK);
        rfx_npy_write_free(writer);
        assert_int_equal(read_file(got, sizeof got), sizeof got);
        assert_non_null(strstr((const char *)got + 10, words[form]));
        for (int i = 0; i < N * ELEMS; i++) {
            int at = i % ELEMS, of = form == 0 ? at % 6 * 2 + at / 6 : at; /* channels, pixels */
            assert_true(got[32 + i] == (float)(100 * (i / ELEMS) + of));
        }
    }
    const struct rfx_shape huge = {1, {1 << 20}};
    struct rfx_npy_writer *writer = NULL;
    assert_int_equal(
        rfx_npy_write_open(mem, FILE_NAME,
                           &(struct rfx_npy_array){.shape = huge, .images = INT64_MAX / 8}, &writer,
                           &err),
        RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void refuses_sizes_that_overflow(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    const struct rfx_shape huge = {3, {INT64_MAX / 2, 4, 1}};
    struct rfx_npy_writer *writer = NULL;
    assert_int_equal(
        rfx_npy_write_open(mem, FILE_NAME, &(struct rfx_npy_array){.shape = huge}, &writer, &err),
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
        status = rfx_npy_write_open(mem, FILE_NAME, &(struct rfx_npy_array){.shape = shape},
                                    &writer, &err);
        if (status != RFX_OK) {
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_true(err.text[0] != '\0');
        }
        rfx_npy_write_free(writer);
        rfx_memory_free(mem);
        assert_int_equal(test_files_in(DIRECTORY), 0);
    }
    assert_int_equal(k, 6); /* writer, file, three names; the sixth run passes */
}

struct bytes {
    unsigned char values[1000];
    size_t end;
    int left; /* puts until one fails; -1: none */
};

static enum rfx_status put_bytes(void *user, const void *data, size_t n, uint64_t offset,
                                 struct rfx_error *err) {
    struct bytes *bytes = user;
    if (bytes->left == 0) return rfx_fail(err, RFX_STATUS_IO, "no room");
    if (bytes->left > 0) bytes->left--;
    assert_true(offset + n <= sizeof bytes->values);
    memcpy(bytes->values + offset, data, n);
    if (offset + n > bytes->end) bytes->end = (size_t)offset + n;
    return RFX_OK;
}

/* Two writers of one file, the lower rows first: the bytes that one writer gives. */
static void writes_into_what_others_write_too(void **state) {
    (void)state;
    enum { C = 2, H = 5, W = 3, CUT = 2 };
    const struct rfx_shape shape = {4, {1, C, H, W}};
    const struct rfx_npy_array array = {.shape = shape};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_npy_writer *writer = NULL;
    struct rfx_error err = {""};
    struct bytes shared = {.left = -1};
    unsigned char whole[1000];
    float map[C * H * W];
    for (int i = 0; i < C * H * W; i++) map[i] = (float)i - 7.5f;
    struct rfx_view view = rfx_view_dense(map, rfx_rect_full(H, W), C);
    assert_int_equal(
        rfx_npy_write_open(mem, FILE_NAME, &(struct rfx_npy_array){.shape = shape}, &writer, NULL),
        RFX_OK);
    assert_int_equal(rfx_npy_write_rect(writer, view.rect, &view, NULL), RFX_OK);
    assert_int_equal(rfx_npy_write_commit(writer, NULL), RFX_OK);
    rfx_npy_write_free(writer);
    size_t bytes = read_file(whole, sizeof whole);
    assert_int_equal(unlink(FILE_NAME), 0);
    assert_int_equal(rfx_npy_write_bytes(&array), bytes);
    for (int second = 1; second >= 0; second--) {
        struct rfx_npy_target target = {put_bytes, &shared, second == 0};
        struct rfx_rect rows =
            second == 0 ? rfx_rect_make(0, CUT, 0, W) : rfx_rect_make(CUT, H, 0, W);
        assert_int_equal(rfx_npy_write_onto(mem, "shared", &array, &target, &writer, NULL), RFX_OK);
        assert_int_equal(rfx_npy_write_rect(writer, rows, &view, NULL), RFX_OK);
        rfx_npy_write_free(writer);
    }
    assert_int_equal(shared.end, bytes);
    assert_memory_equal(shared.values, whole, bytes);
    struct rfx_npy_target target = {put_bytes, &shared, true};
    shared.left = 0; /* the header does not fit */
    assert_int_equal(rfx_npy_write_onto(mem, "shared", &array, &target, &writer, &err),
                     RFX_STATUS_IO);
    assert_string_equal(err.text, "no room");
    shared.left = 1;
    assert_int_equal(rfx_npy_write_onto(mem, "shared", &array, &target, &writer, NULL), RFX_OK);
    assert_int_equal(rfx_npy_write_rect(writer, view.rect, &view, &err), RFX_STATUS_IO);
    rfx_npy_write_free(writer);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Two levels of two channels, of 3 x 4 and 2 x 2 cells, as (1, 2, 16) and (1, 16, 2): in rows,
 * columns or as they are, from views with more channels, the second level first. */
static void writes_joined_maps(void **state) {
    (void)state;
    static const struct rfx_end ends[2][2] = {
        {{.channels = 2, .at = {0, 4, 1, 16}}, {.channels = 2, .at = {12, 2, 1, 16}}},
        {{.channels = 2, .at = {0, 8, 2, 1}}, {.channels = 2, .at = {24, 4, 2, 1}}}};
    static const int64_t sizes[2][2] = {{3, 4}, {2, 2}},
                         cuts[4][2] = {{1, 9}, {9, 1}, {9, 9}, {2, 3}};
    for (int i = 0; i < 16; i++) {
        const struct rfx_end *end = ends[i % 2];
        const struct rfx_shape shape = {3, {1, i % 2 == 0 ? 2 : 16, i % 2 == 0 ? 16 : 2}};
        int64_t wide = i / 2 % 2 == 0 ? 2 : 5;
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_npy_writer *writer = NULL;
        float values[12 * 5], got[32];
        unsigned char bytes[1000];
        assert_int_equal(rfx_npy_write_open(mem, FILE_NAME, &(struct rfx_npy_array){.shape = shape},
                                            &writer, NULL),
                         RFX_OK);
        for (int l = 1; l >= 0; l--) {
            int64_t h = sizes[l][0], w = sizes[l][1];
            struct rfx_view view = rfx_view_dense(values, rfx_rect_full(h, w), wide);
            for (int64_t p = 0; p < h * w * wide; p++) values[p] = -1.0f;
            for (int64_t p = 0; p < h * w; p++)
                for (int64_t c = 0; c < 2; c++)
                    values[p * wide + c] = (float)(1000 * l + 100 * c + p);
            for (int64_t y = 0; y < h; y += cuts[i / 4][0])
                for (int64_t x = 0; x < w; x += cuts[i / 4][1]) {
                    int64_t y1 = y + cuts[i / 4][0] < h ? y + cuts[i / 4][0] : h;
                    int64_t x1 = x + cuts[i / 4][1] < w ? x + cuts[i / 4][1] : w;
                    struct rfx_rect rect = rfx_rect_make(y, y1, x, x1);
                    assert_int_equal(rfx_npy_write_end(writer, &end[l], rect, &view, NULL), RFX_OK);
                }
            struct rfx_error err = {""};
            struct rfx_end past = end[l];
            past.at.first = 31;
            assert_int_equal(
                rfx_npy_write_end(writer, &past, rfx_rect_make(0, 1, 0, 1), &view, &err),
                RFX_STATUS_INVALID_ARGUMENT);
            assert_non_null(strstr(err.text, "do not fit"));
        }
        assert_int_equal(rfx_npy_write_commit(writer, NULL), RFX_OK);
        rfx_npy_write_free(writer);
        rfx_memory_free(mem);
        size_t size = read_file(bytes, sizeof bytes);
        memcpy(got, bytes + size - sizeof got, sizeof got);
        for (int64_t p = 0; p < 16; p++)
            for (int64_t c = 0; c < 2; c++)
                assert_true(got[i % 2 == 0 ? c * 16 + p : p * 2 + c] ==
                            (float)((p < 12 ? p : 1000 + p - 12) + 100 * c));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_runs_and_commits, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(writes_rectangles_as_planes, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(writes_into_what_others_write_too, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(writes_joined_maps, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(writes_batches, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(refuses_sizes_that_overflow, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(survives_failing_allocations, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
