/* Reading constants: every type from unaligned places of a file, pieces, files that end too early,
 * and the seeded generator. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "layers/graph/weight.h"
#include "layers/kernels/packing.h"
#include "tests/support/test_util.h"

#define PATH "test_weight.bin"

/* A new file with these bytes, open. */
static struct rfx_weight_file make_file(const void *bytes, size_t size) {
    int fd = open(PATH, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, size) == (ssize_t)size);
    return (struct rfx_weight_file){.fd = fd, .path = PATH};
}

static void close_file(const struct rfx_weight_file *file) {
    assert_int_equal(close(file->fd), 0);
    assert_int_equal(unlink(PATH), 0);
}

static void test_types(void **state) {
    (void)state;
    static const struct {
        enum rfx_type type;
        unsigned char bytes[16]; /* two elements */
        float values[2];
    } rows[] = {
        {RFX_TYPE_FLOAT32, {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc1}, {1.0f, -10.0f}},
        {RFX_TYPE_FLOAT64,
         {0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0},
         {1.5f, -2.0f}},
        {RFX_TYPE_FLOAT16, {0x00, 0x3c, 0x01, 0x80}, {1.0f, -0x1p-24f}},
        {RFX_TYPE_FLOAT16, {0xff, 0x7b, 0x00, 0xfc}, {65504.0f, -INFINITY}},
        {RFX_TYPE_FLOAT16, {0xff, 0x03, 0x55, 0x35}, {0x1.ff8p-15f, 0.333251953125f}},
        {RFX_TYPE_BFLOAT16, {0xc0, 0x3f, 0x00, 0xc2}, {1.5f, -32.0f}},
        {RFX_TYPE_INT8, {0x80, 0x7f}, {-128.0f, 127.0f}},
        {RFX_TYPE_UINT8, {0x80, 0xff}, {128.0f, 255.0f}},
        {RFX_TYPE_INT32, {0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0}, {-1.0f, 256.0f}},
        {RFX_TYPE_INT64,
         {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0},
         {-2.0f, 4294967296.0f}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char shifted[17];
        memcpy(shifted + 1, rows[i].bytes, 16);
        struct rfx_weight_file file = make_file(shifted, sizeof shifted);
        struct rfx_weight w = {.source = RFX_WEIGHT_FILE,
                               .type = rows[i].type,
                               .file = &file,
                               .offset = 1,
                               .elems = 2};
        float out[2], second;
        test_read_weight(&w, 0, 2, out);
        test_read_weight(&w, 1, 1, &second);
        assert_memory_equal(out, rows[i].values, sizeof out);
        assert_memory_equal(&second, &rows[i].values[1], sizeof second);
        close_file(&file);
    }
}

static void test_half_nan(void **state) {
    (void)state;
    static const unsigned char bytes[2] = {0x00, 0x7e};
    float out;
    rfx_type_load(RFX_TYPE_FLOAT16, bytes, 1, &out);
    assert_true(isnan(out));
}

/* More values of a narrow type than one piece of the conversion holds, from any place. */
static void test_many_converted(void **state) {
    (void)state;
    enum { N = 20011 };
    static uint16_t halves[N];
    static float got[N];
    for (int i = 0; i < N; i++) halves[i] = (uint16_t)(0x3c00 + i % 1024); /* 1 + i / 1024 */
    struct rfx_weight_file file = make_file(halves, sizeof halves);
    struct rfx_weight w = {
        .source = RFX_WEIGHT_FILE, .type = RFX_TYPE_FLOAT16, .file = &file, .elems = N};
    static const int64_t firsts[] = {0, 1, 4095, 4096, N - 1};
    for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) {
        test_read_weight(&w, firsts[k], N - firsts[k], got);
        for (int64_t i = firsts[k]; i < N; i++)
            assert_true(got[i - firsts[k]] == 1.0f + (float)(i % 1024) / 1024.0f);
    }
    close_file(&file);
}

/* Pieces of a reader, in order, with jumps and backwards: the values of one read of everything. */
static void test_packing_reader(void **state) {
    (void)state;
    enum { N = 30000 };
    static float values[N], got[N];
    static struct rfx_packing_reader reader;
    struct test_rng rng = test_rng_make(3);
    for (int i = 0; i < N; i++) values[i] = (float)i;
    struct rfx_weight_file file = make_file(values, sizeof values);
    struct rfx_weight w = {
        .source = RFX_WEIGHT_FILE, .type = RFX_TYPE_FLOAT32, .file = &file, .elems = N};
    for (int round = 0; round < 40; round++) {
        reader = (struct rfx_packing_reader){.weight = &w};
        int64_t longest = round % 2 == 0 ? 20 : 9000, at = 0;
        for (int k = 0; k < 500; k++) {
            if (test_rng_chance(&rng, 10)) at = test_rng_int(&rng, 0, N - 1);
            int64_t n = rfx_min_i64(test_rng_int(&rng, 0, longest), N - at);
            assert_int_equal(rfx_packing_read(&reader, at, n, got), RFX_OK);
            assert_memory_equal(got, values + at, (size_t)n * sizeof *got);
            at = at + n < N ? at + n : 0;
        }
    }
    close_file(&file);
}

/* A file that has become shorter is an error that says where, not a signal. */
static void test_file_ends_early(void **state) {
    (void)state;
    float values[64] = {0}, got[64];
    struct rfx_error err = {""};
    struct rfx_weight_file file = make_file(values, sizeof values);
    static const enum rfx_type types[] = {RFX_TYPE_FLOAT32, RFX_TYPE_FLOAT16};
    assert_int_equal(ftruncate(file.fd, 100), 0);
    for (int i = 0; i < 2; i++) {
        struct rfx_weight w = {
            .source = RFX_WEIGHT_FILE, .type = types[i], .file = &file, .offset = 40, .elems = 40};
        static struct rfx_packing_reader reader;
        reader = (struct rfx_packing_reader){.weight = &w, .err = &err};
        assert_int_equal(rfx_weight_read(&w, 0, 10, got, &err), RFX_OK);
        assert_int_equal(rfx_weight_read(&w, 0, 40, got, &err), RFX_STATUS_IO);
        if (strstr(err.text, PATH) == NULL || strstr(err.text, "become shorter") == NULL)
            fail_msg("%s", err.text);
        assert_int_equal(rfx_packing_read(&reader, 10, 30, got), RFX_STATUS_IO);
    }
    close_file(&file);
    assert_int_equal(rfx_weight_file_read(&file, 0, got, 4, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "cannot read"));
}

static void test_generated(void **state) {
    (void)state;
    enum { N = 20000 };
    static float all[N], other[N];
    struct rfx_weight w = {
        .source = RFX_WEIGHT_GENERATED, .seed = 5, .lo = -2.0f, .hi = 6.0f, .elems = N};
    test_read_weight(&w, 0, N, all);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < N; i++) {
        float one;
        test_read_weight(&w, N - 1 - i, 1, &one);
        assert_memory_equal(&one, &all[N - 1 - i], sizeof one);
        assert_true(all[i] >= -2.0f && all[i] < 6.0f);
        sum += (double)all[i];
        squares += (double)all[i] * (double)all[i];
    }
    /* Mean 2 and variance 64 / 12 of the uniform distribution, within five standard errors. */
    double mean = sum / N;
    assert_true(fabs(mean - 2.0) < 5 * sqrt(64.0 / 12 / N));
    assert_true(fabs(squares / N - mean * mean - 64.0 / 12) < 0.2);
    w.seed = 6;
    test_read_weight(&w, 0, N, other);
    int same = 0;
    for (int64_t i = 0; i < N; i++) same += memcmp(&all[i], &other[i], sizeof(float)) == 0;
    assert_true(same < 20);
}

/* The second half of each pair of blocks mirrors the first, whatever range is read. */
static void test_mirrored(void **state) {
    (void)state;
    enum { N = 44, BLOCK = 9 };
    float all[N], plain[N];
    struct rfx_weight w = {
        .source = RFX_WEIGHT_GENERATED, .seed = 5, .lo = -1.0f, .hi = 3.0f, .elems = N};
    test_read_weight(&w, 0, N, plain);
    w.mirror = BLOCK;
    test_read_weight(&w, 0, N, all);
    for (int i = 0; i < N; i++) {
        float one;
        test_read_weight(&w, i, 1, &one);
        assert_memory_equal(&one, &all[i], sizeof one);
        bool second = i / BLOCK % 2 == 1;
        if (second)
            assert_float_equal(all[i], 2.0f - plain[i - BLOCK], 1e-6);
        else
            assert_memory_equal(&all[i], &plain[i], sizeof(float));
    }
}

/* Columns of a stored matrix, in any pieces, of all sources that hold values. */
static void test_transposed(void **state) {
    (void)state;
    enum { ROWS = 5, COLUMNS = 700, N = ROWS * COLUMNS };
    static float values[N], got[N];
    struct test_rng rng = test_rng_make(4);
    for (int i = 0; i < N; i++) values[i] = (float)i;
    struct rfx_weight_file file = make_file(values, sizeof values);
    for (int round = 0; round < 400; round++) {
        struct rfx_weight w = {.source = round % 2 == 0 ? RFX_WEIGHT_FILE : RFX_WEIGHT_OWNED,
                               .type = RFX_TYPE_FLOAT32,
                               .file = &file,
                               .data = values,
                               .transposed = ROWS,
                               .elems = N};
        int64_t first = round < 2 ? 0 : test_rng_int(&rng, 0, N - 1);
        int64_t n = round < 2 ? N : test_rng_int(&rng, 0, round % 3 == 0 ? N - first : 12);
        n = rfx_min_i64(n, N - first);
        test_read_weight(&w, first, n, got);
        for (int64_t i = 0; i < n; i++) {
            int64_t column = (first + i) / ROWS, row = (first + i) % ROWS;
            if (got[i] != values[row * COLUMNS + column])
                fail_msg("element %lld of %lld from %lld: %g", (long long)i, (long long)n,
                         (long long)first, (double)got[i]);
        }
    }
    close_file(&file);
}

/* Elements by the digits of their number, beside those digits written out; and which runs of them
 * are seen to be the same. */
static void test_repeated(void **state) {
    (void)state;
    enum { ROWS = 7, COLS = 5, SIDE = 4, N = ROWS * COLS * SIDE * 3 };
    static const float values[8] = {0.5f, 1, 2, 3, 4, 5, 6, 7};
    const struct rfx_weight_places places = {
        .first = 1,
        .n = 4,
        .digits = {
            {ROWS, 4, 1, {ROWS - 1}}, {COLS, 0, 0, {0}}, {SIDE, 2, 1, {3}}, {3, -1, 1, {2}}}};
    float all[N], got[N];
    struct rfx_weight w = {.source = RFX_WEIGHT_REPEATED,
                           .data = values,
                           .stored = 8,
                           .places = &places,
                           .n_places = 1,
                           .elems = N};
    struct test_rng rng = test_rng_make(6);
    for (int i = 0; i < N; i++) {
        int row = i / (COLS * SIDE * 3), in = i / 3 % SIDE, last = i % 3;
        all[i] = values[1 + (row == ROWS - 1 ? 4 : 0) + (in == 3 ? 2 : 0) - (last == 2 ? 1 : 0)];
    }
    for (int round = 0; round < 2000; round++) {
        int64_t first = round == 0 ? 0 : test_rng_int(&rng, 0, N - 1);
        int64_t n = round == 0 ? N : test_rng_int(&rng, 0, N - first);
        test_read_weight(&w, first, n, got);
        assert_memory_equal(got, all + first, (size_t)n * sizeof *got);
        int64_t other = test_rng_int(&rng, 0, N - n);
        if (rfx_weight_repeats(&w, first, other, n))
            assert_memory_equal(all + other, all + first, (size_t)n * sizeof *all);
    }
    enum { ROW = COLS * SIDE * 3 };
    assert_true(rfx_weight_repeats(&w, 0, ROW, ROW));
    assert_true(rfx_weight_repeats(&w, 12, 4 * ROW + 24, 12));
    assert_true(rfx_weight_repeats(&w, (ROWS - 1) * ROW, (ROWS - 1) * ROW + 12, 12));
    assert_false(rfx_weight_repeats(&w, 0, (ROWS - 1) * ROW, ROW));
    assert_false(rfx_weight_repeats(&w, 0, 3, 3 * SIDE));
}

/* A file that is written over while it is open is noticed, by its size or by its time. */
static void test_written_over(void **state) {
    const float values[2] = {1.0f, 2.0f};
    struct rfx_weight_file file = make_file(values, sizeof values);
    struct rfx_weight w = {.source = RFX_WEIGHT_FILE, .file = &file, .elems = 2};
    struct rfx_error err;
    struct stat info;
    float out[2];
    (void)state;
    assert_int_equal(fstat(file.fd, &info), 0);
    file.size = sizeof values;
    file.modified = info.st_mtim;
    file.watched = true;
    assert_int_equal(rfx_weight_read(&w, 0, 2, out, &err), RFX_OK);
    const struct timespec later[2] = {{info.st_mtim.tv_sec, 0}, {info.st_mtim.tv_sec + 1, 0}};
    assert_int_equal(futimens(file.fd, later), 0);
    assert_int_equal(rfx_weight_read(&w, 0, 2, out, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "was written after"));
    const struct timespec back[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(ftruncate(file.fd, sizeof values + 1), 0);
    assert_int_equal(futimens(file.fd, back), 0);
    assert_int_equal(rfx_weight_read(&w, 0, 2, out, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "8 bytes then, 9 now"));
    close_file(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_over),   cmocka_unit_test(test_types),
        cmocka_unit_test(test_half_nan),       cmocka_unit_test(test_many_converted),
        cmocka_unit_test(test_packing_reader), cmocka_unit_test(test_file_ends_early),
        cmocka_unit_test(test_generated),      cmocka_unit_test(test_mirrored),
        cmocka_unit_test(test_transposed),     cmocka_unit_test(test_repeated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
