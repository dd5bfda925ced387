/* Arrays of which a strip is in memory, against arrays that are there whole: as libjpeg goes
 * through them, several times from top to bottom, with rows that overlap; folders that are not
 * there. What pictures come of them is in test_image_jpeg. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "rfexec/image/decode/progressive_jpeg.h"

#define ARRAYS 2
#define BLOCKS 100 /* 12.5 KiB a row: a strip of 20 rows */
#define MOST_ROWS 300

struct both {
    struct rfx_coefficients kept;
    jvirt_barray_ptr array[ARRAYS];
    JDIMENSION n_rows[ARRAYS];
    JBLOCK *whole[ARRAYS];
};

/* Reads rows [first, first + n) of both, and changes one of ten blocks where they may be. */
static void visit(struct both *b, int i, JDIMENSION first, JDIMENSION n, bool writable,
                  uint32_t *seed) {
    JBLOCKARRAY rows = rfx_coefficients_access(&b->kept, b->array[i], first, n, writable);
    assert_non_null(rows);
    for (JDIMENSION y = 0; y < n; y++) {
        JBLOCK *want = b->whole[i] + (size_t)(first + y) * BLOCKS;
        assert_memory_equal(rows[y], want, BLOCKS * sizeof(JBLOCK));
        for (int x = 0; x < BLOCKS && writable; x += 10) {
            *seed = *seed * 1664525u + 1013904223u;
            int at = x + (int)(*seed >> 20) % 10, k = (int)(*seed >> 8) % DCTSIZE2;
            rows[y][at][k] = want[at][k] = (JCOEF)(*seed >> 16);
        }
    }
}

static void decode(struct both *b, struct rfx_image_pool *pool, uint32_t *seed) {
    rfx_image_pool_restart(pool);
    rfx_coefficients_restart(&b->kept);
    for (int i = 0; i < ARRAYS; i++) {
        memset(b->whole[i], 0, MOST_ROWS * BLOCKS * sizeof(JBLOCK));
        b->array[i] = rfx_coefficients_request(&b->kept, pool, BLOCKS, b->n_rows[i], 10);
        assert_non_null(b->array[i]);
    }
    assert_true(rfx_coefficients_realize(&b->kept));
    for (int scan = 0; scan < 3; scan++)
        for (JDIMENSION y = 0; y < MOST_ROWS; y += 2)
            for (int i = 0; i < ARRAYS; i++)
                if (y < b->n_rows[i]) visit(b, i, y, 2, true, seed);
    for (JDIMENSION y = 0; y < MOST_ROWS; y += 2) /* smoothing: two rows before, six after */
        for (int i = 0; i < ARRAYS; i++) {
            JDIMENSION first = y < 2 ? 0 : y - 2, end = y + 8;
            if (end > b->n_rows[i]) end = b->n_rows[i];
            if (y < b->n_rows[i]) visit(b, i, first, end - first, false, seed);
        }
}

static void equal_arrays_in_memory(void **state) {
    (void)state;
    /* one that is in a file and one that is not, and both in one file */
    static const JDIMENSION cases[][ARRAYS] = {{60, 8}, {MOST_ROWS, 38}};
    for (int k = 0; k < 2; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image_pool pool = {0};
        struct both b = {.kept = {.fd = -1}};
        uint32_t seed = 5;
        size_t bytes = 0;
        for (int i = 0; i < ARRAYS; i++) {
            b.n_rows[i] = cases[k][i];
            b.whole[i] = malloc(MOST_ROWS * BLOCKS * sizeof(JBLOCK));
            bytes += rfx_coefficients_bytes(BLOCKS, b.n_rows[i], 10);
        }
        assert_true(bytes < 600 * 1024);
        assert_int_equal(rfx_image_pool_reserve(mem, &pool, bytes, "pool", NULL), RFX_OK);
        for (int again = 0; again < 2; again++) decode(&b, &pool, &seed);
        assert_true(b.kept.fd >= 0);
        assert_null(rfx_coefficients_access(&b.kept, b.array[0], b.n_rows[0] - 1, 2, false));
        assert_int_equal(b.kept.number, 0);
        rfx_coefficients_close(&b.kept);
        rfx_image_pool_release(mem, &pool);
        for (int i = 0; i < ARRAYS; i++) free(b.whole[i]);
        rfx_memory_free(mem);
    }
}

static void says_what_the_file_lacks(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_pool pool = {0};
    struct rfx_coefficients kept = {.folder = "nowhere", .fd = -1};
    size_t bytes = rfx_coefficients_bytes(BLOCKS, 100, 2);
    assert_int_equal(rfx_image_pool_reserve(mem, &pool, bytes, "pool", NULL), RFX_OK);
    assert_non_null(rfx_coefficients_request(&kept, &pool, BLOCKS, 100, 2));
    assert_null(rfx_coefficients_request(&kept, &pool, BLOCKS, 100, 2));
    assert_true(pool.exhausted);
    assert_false(rfx_coefficients_realize(&kept));
    assert_int_equal(kept.number, ENOENT);
    assert_string_equal(kept.doing, "cannot make it");
    rfx_image_pool_release(mem, &pool);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_arrays_in_memory),
        cmocka_unit_test(says_what_the_file_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
