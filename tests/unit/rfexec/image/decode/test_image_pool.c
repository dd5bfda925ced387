/* The pool of a picture decoder: alignment, exhaustion, starting afresh, tracked memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "rfexec/image/decode/image_pool.h"

static void takes_aligned_blocks_until_it_is_empty(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_pool pool = {0};
    assert_int_equal(rfx_image_pool_reserve(mem, &pool, 256, "pool", NULL), RFX_OK);
    unsigned char *first = rfx_image_pool_take(&pool, 1);
    unsigned char *second = rfx_image_pool_take(&pool, 128);
    assert_int_equal((uintptr_t)first % RFX_ALIGNMENT_BYTES, 0);
    assert_ptr_equal(second, first + RFX_ALIGNMENT_BYTES);
    assert_false(pool.exhausted);
    assert_null(rfx_image_pool_take(&pool, 65)); /* 64 are left */
    assert_true(pool.exhausted);
    assert_ptr_equal(rfx_image_pool_take(&pool, 64), first + 192);
    assert_null(rfx_image_pool_take(&pool, 1));
    assert_null(rfx_image_pool_take(&pool, SIZE_MAX));
    rfx_image_pool_restart(&pool);
    assert_false(pool.exhausted);
    assert_ptr_equal(rfx_image_pool_take(&pool, 256), first);
    rfx_image_pool_release(mem, &pool);
    rfx_image_pool_release(mem, &pool);
    rfx_memory_free(mem);
}

static void reserving_again_replaces(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(4096);
    struct rfx_image_pool pool = {0};
    assert_int_equal(rfx_image_pool_reserve(mem, &pool, 1024, "pool", NULL), RFX_OK);
    assert_int_equal(rfx_image_pool_reserve(mem, &pool, 4096, "pool", NULL), RFX_OK);
    assert_int_equal(rfx_memory_current_bytes(mem), 4096);
    struct rfx_error err = {""};
    assert_int_equal(rfx_image_pool_reserve(mem, &pool, 4097, "pool", &err),
                     RFX_STATUS_OUT_OF_MEMORY);
    assert_true(err.text[0] != '\0');
    assert_null(rfx_image_pool_take(&pool, 1));
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_image_pool_release(mem, &pool);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_aligned_blocks_until_it_is_empty),
        cmocka_unit_test(reserving_again_replaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
