/* The nameless file: rectangles in, rows out, nothing in the directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/output/output_spool.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_output_spool.tmp.d"

enum { H = 19, W = 700, C = 9, WIDE = 11 };

static void rectangles_come_back_as_rows(void **state) {
    (void)state;
    static const struct rfx_rect rects[] = {
        {7, H, 300, W}, {0, 7, 0, 1}, {0, 7, 1, W}, {7, H, 0, 300}};
    float *map = test_floats((int64_t)H * W * C), *wide = test_floats((int64_t)H * W * WIDE);
    float *row = test_floats((int64_t)W * C);
    struct test_rng rng = test_rng_make(5);
    test_rng_fill(&rng, map, (int64_t)H * W * C, -1.0f, 1.0f);
    for (int64_t i = 0; i < (int64_t)H * W * C; i++) wide[i / C * WIDE + i % C] = map[i];
    const struct rfx_view views[2] = {rfx_view_dense(map, rfx_rect_full(H, W), C),
                                      rfx_view_dense(wide, rfx_rect_full(H, W), WIDE)};
    const struct rfx_tensor tensor = rfx_tensor_nhwc(C, H, W);
    (void)rmdir(DIRECTORY);
    assert_int_equal(mkdir(DIRECTORY, 0777), 0);
    for (int v = 0; v < 2; v++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_output_spool *spool = NULL;
        assert_int_equal(rfx_output_spool_open(mem, DIRECTORY "/out", &tensor, &spool, NULL),
                         RFX_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(rfx_output_spool_write(spool, rects[i], &views[v], NULL), RFX_OK);
        for (int64_t y = 0; y < H; y++) {
            assert_int_equal(rfx_output_spool_read(spool, y, row, NULL), RFX_OK);
            assert_memory_equal(row, map + y * W * C, sizeof(float) * W * C);
            assert_int_equal(rfx_output_spool_read_part(spool, y, 5, W - 2, row, NULL), RFX_OK);
            assert_memory_equal(row, map + (y * W + 5) * C, sizeof(float) * (W - 7) * C);
        }
        assert_int_equal(rmdir(DIRECTORY), 0); /* empty while the file is open */
        assert_int_equal(mkdir(DIRECTORY, 0777), 0);
        rfx_output_spool_free(spool);
        rfx_memory_free(mem);
    }
    assert_int_equal(rmdir(DIRECTORY), 0);
    free(map);
    free(wide);
    free(row);
}

/* What is not written into a sparse file is zeros, in its last row too. */
static void sparse_files_are_zeros(void **state) {
    float row[W], one = 1.5F;
    const struct rfx_tensor tensor = rfx_tensor_nhwc(1, H, W);
    const struct rfx_rect at = rfx_rect_make(3, 4, 5, 6);
    const struct rfx_view view = rfx_view_dense(&one, at, 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_spool *spool = NULL;
    (void)state;
    assert_int_equal(
        rfx_output_spool_open_sparse(mem, "test_output_spool.tmp", &tensor, &spool, NULL), RFX_OK);
    assert_int_equal(rfx_output_spool_write(spool, at, &view, NULL), RFX_OK);
    for (int64_t y = 0; y < H; y++) {
        assert_int_equal(rfx_output_spool_read(spool, y, row, NULL), RFX_OK);
        for (int64_t x = 0; x < W; x++) assert_true(row[x] == (y == 3 && x == 5 ? 1.5F : 0.0F));
    }
    rfx_output_spool_free(spool);
    rfx_memory_free(mem);
}

static enum rfx_status open_one(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_output_spool *spool = NULL;
    const struct rfx_tensor tensor = rfx_tensor_nhwc(1, 1, 1);
    enum rfx_status status = rfx_output_spool_open(mem, context, &tensor, &spool, err);
    rfx_output_spool_free(spool);
    return status;
}

static void reports_failures(void **state) {
    (void)state;
    char here[] = "test_output_spool.tmp", nowhere[] = "no/such/dir";
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    assert_int_equal(open_one(mem, nowhere, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "no/such/dir"));
    rfx_output_spool_free(NULL);
    rfx_memory_free(mem);
    assert_int_equal(test_fail_each_allocation(open_one, here), 2); /* spool, path */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rectangles_come_back_as_rows),
        cmocka_unit_test(sparse_files_are_zeros),
        cmocka_unit_test(reports_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
