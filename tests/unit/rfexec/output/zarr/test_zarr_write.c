/* Zarr folders from maps that come in any cut: every sample of every chunk, unpacked by libzstd;
 * what is refused, a full disk, an allocator without memory: nothing is left behind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/core/library.h"
#include "rfexec/image/zarr/zstd_library.h"
#include "rfexec/output/zarr/zarr_write.h"
#include "tests/support/run/output_maps.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_zarr_write.tmp.d"
#define NAME DIRECTORY "/a.zarr"

static struct {
    size_t (*ZSTD_decompress)(void *to, size_t to_bytes, const void *from, size_t from_bytes);
} unpacking;

static int load_unpacking(void **state) {
    static const struct rfx_library_function function = {"ZSTD_decompress", 0, false};
    (void)state;
    return rfx_library_load("libzstd.so.1", &function, 1, &unpacking, NULL) == RFX_OK ? 0 : -1;
}

static void remove_made(void) {
    assert_int_equal(test_remove_all(NAME), 0);
}

/* The samples of a chunk, `bytes` of them. */
static unsigned char *read_chunk(const char *name, bool zstd, size_t bytes) {
    char path[512];
    unsigned char *found = malloc(bytes + 65536), *chunk = malloc(bytes);
    (void)snprintf(path, sizeof path, NAME "/%s", name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("no %s", path);
    size_t n = fread(found, 1, bytes + 65536, file);
    assert_int_equal(fclose(file), 0);
    if (zstd) {
        assert_int_equal(unpacking.ZSTD_decompress(chunk, bytes, found, n), bytes);
    } else {
        assert_int_equal(n, bytes);
        memcpy(chunk, found, bytes);
    }
    free(found);
    return chunk;
}

static float wanted(const struct output_map *map, int64_t y, int64_t x, int64_t c) {
    if (y >= map->tensor.h || x >= map->tensor.w) return 0;
    float v = rfx_view_f32_at(&map->view, y, x)[c];
    return isnan(v) ? NAN : v;
}

/* Whether a chunk has the map's samples, and 0 beyond it. */
static void check_chunk(const struct output_map *map, const struct rfx_zarr_array *a, int64_t c,
                        int64_t cy, int64_t cx) {
    static const struct rfx_value_range range = {-0.5, 0.75};
    char name[RFX_ZARR_NAME];
    size_t sample = (size_t)a->bits / 8;
    rfx_zarr_chunk_name(a, c, cy, cx, name);
    unsigned char *chunk =
        read_chunk(name, a->zstd, (size_t)(a->chunk_rows * a->chunk_cols) * sample);
    for (int64_t i = 0; i < a->chunk_rows * a->chunk_cols; i++) {
        int64_t y = cy * a->chunk_rows + i / a->chunk_cols;
        int64_t x = cx * a->chunk_cols + i % a->chunk_cols;
        float value = wanted(map, y, x, c);
        unsigned char asked[4] = {0};
        if (a->bits == 32)
            memcpy(asked, &value, 4);
        else if (y < map->tensor.h && x < map->tensor.w)
            rfx_samples_of(RFX_TYPE_FLOAT32, &value, 1, range, a->bits, asked);
        if (memcmp(chunk + (size_t)i * sample, asked, sample) != 0)
            fail_msg("%s: row %lld, column %lld", name, (long long)y, (long long)x);
    }
    free(chunk);
}

static void check_all(const struct output_map *map, const struct rfx_zarr_array *a) {
    for (int64_t c = 0; c < a->channels; c++)
        for (int64_t y = 0; y * a->chunk_rows < a->h; y++)
            for (int64_t x = 0; x * a->chunk_cols < a->w; x++) check_chunk(map, a, c, y, x);
}

static void every_cut_gives_every_sample(void **state) {
    (void)state;
    static const int bits[] = {8, 16, 32};
    static const struct output_cut cuts[] = {{1 << 20, 1 << 20, false},
                                             {1, 1 << 20, false},
                                             {7, 1 << 20, false},
                                             {1 << 20, 10, false},
                                             {5, 9, true}};
    for (int k = 0; k < 24; k++) { /* all kinds, each in one of the cuts */
        bool ranged = bits[k % 3] != 32;
        struct rfx_output_format format = {.kind = &rfx_output_zarr,
                                           .bits = bits[k % 3],
                                           .has_range = ranged,
                                           .range = {ranged ? -0.5 : 0, ranged ? 0.75 : 0},
                                           .zarr_format = 2 + k / 3 % 2,
                                           .chunk = k / 6 % 2 == 0 ? 16 : 0,
                                           .zstd = k / 12 % 2 == 0};
        struct output_map map = output_map_make(3, 41, 29, 4);
        struct rfx_zarr_array a = {.h = 41,
                                   .w = 29,
                                   .channels = 3,
                                   .batch = true,
                                   .bits = format.bits,
                                   .format = format.zarr_format,
                                   .zstd = format.zstd};
        rfx_zarr_choose_chunks(&a, format.chunk);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_error err = {""};
        enum rfx_status status = output_map_write(mem, NAME, &format, &map, cuts[k % 5], &err);
        if (status != RFX_OK) fail_msg("case %d: %d %s", k, status, err.text);
        if (rfx_memory_high_water_bytes(mem) > rfx_output_stream_bytes(&format, &map.tensor))
            fail_msg("case %d: %zu bytes", k, rfx_memory_high_water_bytes(mem));
        rfx_memory_free(mem);
        check_all(&map, &a);
        free(map.values);
        remove_made();
    }
}

static bool count_questions(void *user) {
    ++*(int *)user;
    return false;
}

/* Every second, fourth, ... row and column, in arrays of their own. */
static void smaller_copies_follow(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rfx_output_format format = {.kind = &rfx_output_ome_zarr,
                                           .chunk = 16,
                                           .zstd = k == 0,
                                           .zarr_format = 2 + k,
                                           .overviews = RFX_OVERVIEW_NEAREST};
        struct output_map map = output_map_make(2, 41, 70, 2);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_error err = {""};
        const struct output_cut cut = {7, k == 0 ? 1 << 20 : 9, false};
        int questions = 0;
        rfx_memory_set_stop(mem, count_questions, &questions);
        enum rfx_status status = output_map_write(mem, NAME, &format, &map, cut, &err);
        if (status != RFX_OK) fail_msg("%d %s", status, err.text);
        assert_true(rfx_memory_high_water_bytes(mem) <=
                    rfx_output_stream_bytes(&format, &map.tensor));
        assert_true(questions >= 21 + 11 + 6); /* work on each row of a copy can be stopped */
        rfx_memory_free(mem);
        for (int level = 0; level < 4; level++) {
            int64_t h = (41 + (1 << level) - 1) >> level, w = (70 + (1 << level) - 1) >> level;
            struct output_map small = {.tensor = rfx_tensor_nhwc(2, h, w),
                                       .values = test_floats(h * w * 2)};
            small.view = rfx_view_dense(small.values, rfx_rect_full(h, w), 2);
            for (int64_t i = 0; i < h * w * 2; i++)
                small.values[i] = wanted(&map, i / 2 / w << level, i / 2 % w << level, i % 2);
            struct rfx_zarr_array a = {.h = h,
                                       .w = w,
                                       .channels = 2,
                                       .bits = 32,
                                       .format = format.zarr_format,
                                       .zstd = format.zstd,
                                       .ome = true,
                                       .level = level};
            rfx_zarr_choose_chunks(&a, 16);
            check_all(&small, &a);
            free(small.values);
        }
        assert_int_equal(access(NAME "/4", F_OK), -1); /* 5 x 9 fit a chunk */
        free(map.values);
        remove_made();
    }
}

/* A picture is called as its folder, without the end that says what it is. */
static void names_are_those_of_folders(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/scan.v2.ome.zarr";
    const struct rfx_output_format format = {.kind = &rfx_output_ome_zarr};
    const struct output_cut cut = {9, 6, false};
    struct output_map map = output_map_make(1, 9, 6, 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    char text[4096] = "";
    assert_int_equal(output_map_write(mem, path, &format, &map, cut, NULL), RFX_OK);
    FILE *file = fopen(DIRECTORY "/scan.v2.ome.zarr/zarr.json", "rb");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "\"name\": \"scan.v2\""));
    free(map.values);
    rfx_memory_free(mem);
    assert_int_equal(test_remove_all(path), 0);
}

/* Room for what cannot be compressed, and the context's own, for chunks of any size. */
static void packing_stays_within_its_bounds(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 255, 256, 100000, 131073, 262144, 1048576, 16777216};
    struct rfx_zstd_library zstd;
    assert_int_equal(rfx_zstd_library_load(&zstd, NULL), RFX_OK);
    unsigned char *noise = malloc(16777216), *packed = malloc(rfx_zstd_bound(16777216));
    struct test_rng rng = test_rng_make(7);
    for (size_t i = 0; i < 16777216; i += 8) {
        uint64_t bits = test_rng_next(&rng);
        memcpy(noise + i, &bits, 8);
    }
    void *context = zstd.ZSTD_createCCtx();
    assert_non_null(context);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = zstd.ZSTD_compressCCtx(context, packed, rfx_zstd_bound(sizes[i]), noise,
                                          sizes[i], RFX_ZARR_LEVEL);
        assert_false(zstd.ZSTD_isError(n));
        assert_true(n <= rfx_zstd_bound(sizes[i]));
        if (zstd.ZSTD_sizeof_CCtx(context) > RFX_ZSTD_CONTEXT_BYTES)
            fail_msg("%zu bytes: %zu of context", sizes[i], zstd.ZSTD_sizeof_CCtx(context));
    }
    assert_int_equal(zstd.ZSTD_freeCCtx(context), 0);
    free(packed);
    free(noise);
}

static void refuses_in_words(void **state) {
    (void)state;
    static const struct rfx_zarr_array good = {
        .h = 3, .w = 2, .channels = 1, .bits = 8, .format = 3, .chunk_rows = 2, .chunk_cols = 2};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    struct rfx_zarr_writer *writer = NULL;
    for (int k = 0; k < 9; k++) {
        struct rfx_zarr_array a = good;
        if (k == 0) a.bits = 12;
        if (k == 1) a.format = 1;
        if (k == 2) a.h = 0;
        if (k == 3) a.w = (int64_t)INT32_MAX + 1;
        if (k == 4) a.channels = RFX_ZARR_MOST_CHANNELS + 1;
        if (k == 5) a.chunk_rows = RFX_ZARR_MOST_CHUNK + 1;
        if (k == 6) a.chunk_cols = 0;
        if (k == 7) a.chunk_cols = (int64_t)1 << 26;
        if (k == 8) a.ome = a.batch = true;
        assert_int_equal(rfx_zarr_write_open(mem, NAME, &a, &writer, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, NAME ": "));
    }
    const unsigned char row[2] = {1, 2};
    assert_int_equal(rfx_zarr_write_open(mem, NAME, &good, &writer, &err), RFX_OK);
    for (int y = 0; y < 3; y++) {
        assert_int_equal(rfx_zarr_write_commit(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_zarr_write_row(writer, row, &err), RFX_OK);
    }
    assert_int_equal(rfx_zarr_write_row(writer, row, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(access(NAME, F_OK), -1);
    rfx_zarr_write_free(writer);
    rfx_zarr_write_free(NULL);
    rfx_memory_free(mem);
}

/* A limit on the size of files stands for a full disk. */
static void a_full_disk_leaves_nothing(void **state) {
    (void)state;
    static const struct output_cut cuts[] = {{4, 1 << 20, false}, {1 << 20, 25, false}};
    struct output_attempt a = {.path = NAME,
                               .format = {.kind = &rfx_output_zarr, .chunk = 64},
                               .map = output_map_make(1, 200, 100, 1)};
    int stopped = 0;
    for (int k = 0; k < 4; k++) {
        a.format.zstd = k >= 2;
        a.cut = cuts[k % 2];
        for (size_t limit = 0; limit < 16384; limit += limit / 2 + 97) {
            bool fits = output_attempt_fits(&a, DIRECTORY, limit);
            if (fits) remove_made();
            stopped += !fits;
        }
    }
    assert_true(stopped > 15);
    free(a.map.values);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (int64_t cols = 3; cols <= 6; cols += 3)
        for (int k = 0; k < 2; k++) {
            struct output_attempt a = {NAME,
                                       {.kind = k == 0 ? &rfx_output_zarr : &rfx_output_ome_zarr,
                                        .bits = k == 0 ? 32 : 16,
                                        .zarr_format = 2 + k,
                                        .chunk = 4,
                                        .overviews = RFX_OVERVIEW_MEAN,
                                        .zstd = true},
                                       output_map_make(1, 9, 6, 2),
                                       {2, cols, false}};
            assert_true(test_fail_each_allocation(output_attempt_write, &a) > 8);
            free(a.map.values);
            remove_made();
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_in_folder(every_cut_gives_every_sample, DIRECTORY),
        test_in_folder(smaller_copies_follow, DIRECTORY),
        test_in_folder(names_are_those_of_folders, DIRECTORY),
        cmocka_unit_test(packing_stays_within_its_bounds),
        test_in_folder(refuses_in_words, DIRECTORY),
        test_in_folder(a_full_disk_leaves_nothing, DIRECTORY),
        test_in_folder(survives_failing_allocations, DIRECTORY),
    };
    return cmocka_run_group_tests(tests, load_unpacking, NULL);
}
