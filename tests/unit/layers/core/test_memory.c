/* The tracked allocator: accounting, limit, alignment, failing on purpose, many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/core/memory.h"

static void test_accounting(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    char *a = rfx_memory_alloc(mem, 100), *b = rfx_memory_alloc(mem, 0);
    char *big = rfx_memory_alloc(mem, (size_t)3 << 20);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(big);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)big % 64, 0);
    big[((size_t)3 << 20) - 1] = 1;
    assert_int_equal(rfx_memory_current_bytes(mem), 100 + ((size_t)3 << 20));
    rfx_memory_release(mem, big);
    assert_int_equal(rfx_memory_current_bytes(mem), 100);
    assert_int_equal(rfx_memory_high_water_bytes(mem), 100 + ((size_t)3 << 20));
    assert_int_equal(rfx_memory_allocation_count(mem), 3);
    rfx_memory_release(mem, a);
    rfx_memory_release(mem, b);
    rfx_memory_release(mem, NULL);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    rfx_memory_free(NULL);
}

struct hooked {
    size_t bytes, blocks;
};

static void *hook_allocate(void *user, size_t bytes) {
    struct hooked *h = user;
    char *raw = malloc(bytes + 16);
    assert_non_null(raw);
    memset(raw, 0xa5, bytes + 16);
    h->bytes += bytes;
    h->blocks++;
    return raw + 16;
}

static void hook_release(void *user, void *block, size_t bytes) {
    struct hooked *h = user;
    h->bytes -= bytes;
    h->blocks--;
    free((char *)block - 16);
}

/* Every block is a hook's, the allocator too: aligned, zeroed where that is asked for, given back
 * with as many bytes. */
static void test_hooks(void **state) {
    static const size_t sizes[] = {0, 1, 63, 64, 65, 5000, (size_t)1 << 20, (size_t)3 << 20};
    struct hooked h = {0, 0};
    const struct rfx_memory_hooks hooks = {hook_allocate, hook_release, &h};
    (void)state;
    struct rfx_memory *mem = rfx_memory_create_with(&hooks);
    assert_int_equal(h.blocks, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *block = rfx_memory_calloc(mem, 1, sizes[i]);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(block[k], 0);
        assert_true(h.bytes > sizes[i] && h.blocks == 2);
        assert_true(rfx_memory_taken_bytes(mem) >= sizes[i]);
        memset(block, 1, sizes[i]);
        block = rfx_memory_realloc(mem, block, sizes[i] + 7);
        assert_true(block != NULL && (sizes[i] == 0 || block[sizes[i] - 1] == 1));
        rfx_memory_release(mem, block);
        assert_int_equal(rfx_memory_taken_bytes(mem), 0);
    }
    rfx_memory_free(mem);
    assert_true(h.bytes == 0 && h.blocks == 0);
}

static void test_limit(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(1000);
    void *a = rfx_memory_alloc(mem, 600);
    assert_non_null(a);
    assert_null(rfx_memory_alloc(mem, 401));
    assert_int_equal(rfx_memory_current_bytes(mem), 600);
    assert_int_equal(rfx_memory_high_water_bytes(mem), 600);
    void *b = rfx_memory_alloc(mem, 400);
    assert_non_null(b);
    assert_null(rfx_memory_alloc(mem, SIZE_MAX));
    struct rfx_error err;
    assert_int_equal(rfx_memory_fail(mem, "ring", 77, &err), RFX_STATUS_OUT_OF_MEMORY);
    assert_non_null(strstr(err.text, "ring"));
    assert_non_null(strstr(err.text, "77"));
    assert_non_null(strstr(err.text, "1000"));
    rfx_memory_release(mem, a);
    rfx_memory_release(mem, b);
    rfx_memory_free(mem);
}

static void test_calloc_and_realloc(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    char *old = rfx_memory_alloc(mem, 500);
    memset(old, 7, 500);
    rfx_memory_release(mem, old);
    char *zero = rfx_memory_calloc(mem, 100, 5);
    for (int i = 0; i < 500; i++) assert_int_equal(zero[i], 0);
    assert_null(rfx_memory_calloc(mem, SIZE_MAX / 2, 3));
    memcpy(zero, "rows", 5);
    char *more = rfx_memory_realloc(mem, zero, 2000000);
    assert_non_null(more);
    assert_string_equal(more, "rows");
    assert_int_equal(rfx_memory_current_bytes(mem), 2000000);
    rfx_memory_fail_after(mem, 0);
    assert_null(rfx_memory_realloc(mem, more, 10));
    assert_string_equal(more, "rows");
    rfx_memory_fail_after(mem, -1);
    more = rfx_memory_realloc(mem, more, 10);
    assert_string_equal(more, "rows");
    char *fresh = rfx_memory_realloc(mem, NULL, 3), *copy = rfx_memory_strdup(mem, "abc");
    assert_string_equal(copy, "abc");
    assert_int_equal(rfx_memory_current_bytes(mem), 10 + 3 + 4);
    rfx_memory_release(mem, more);
    rfx_memory_release(mem, fresh);
    rfx_memory_release(mem, copy);
    rfx_memory_free(mem);
}

static void test_reserve(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    size_t capacity = 0;
    int *list = rfx_memory_reserve(mem, NULL, &capacity, 0, sizeof *list);
    assert_non_null(list);
    for (int i = 0; i < 1000; i++) {
        list = rfx_memory_reserve(mem, list, &capacity, (size_t)i + 1, sizeof *list);
        assert_true(list != NULL && capacity > (size_t)i);
        list[i] = i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(list[i], i);
    assert_true(rfx_memory_current_bytes(mem) == capacity * sizeof *list && capacity <= 2000);
    assert_true(rfx_memory_allocation_count(mem) < 12);
    size_t before = capacity;
    rfx_memory_fail_after(mem, 0);
    assert_ptr_equal(rfx_memory_reserve(mem, list, &capacity, before, sizeof *list), list);
    assert_null(rfx_memory_reserve(mem, list, &capacity, before + 1, sizeof *list));
    rfx_memory_fail_after(mem, -1);
    assert_null(rfx_memory_reserve(mem, list, &capacity, SIZE_MAX / 2 + 1, 1));
    assert_null(rfx_memory_reserve(mem, list, &capacity, SIZE_MAX / 8, sizeof *list));
    assert_true(capacity == before && list[999] == 999);
    rfx_memory_release(mem, list);
    rfx_memory_free(mem);
}

static void test_fail_after(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    rfx_memory_fail_after(mem, 2);
    void *a = rfx_memory_alloc(mem, 1), *b = rfx_memory_alloc(mem, 1);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(rfx_memory_alloc(mem, 1));
    assert_null(rfx_memory_strdup(mem, "x"));
    rfx_memory_fail_after(mem, -1);
    void *c = rfx_memory_alloc(mem, 1);
    assert_non_null(c);
    rfx_memory_release(mem, a);
    rfx_memory_release(mem, b);
    rfx_memory_release(mem, c);
    rfx_memory_free(mem);
}

static void test_fail_once(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    rfx_memory_fail_once(mem, 1);
    void *a = rfx_memory_alloc(mem, 1);
    assert_null(rfx_memory_alloc(mem, 1));
    void *b = rfx_memory_alloc(mem, 1);
    assert_true(a != NULL && b != NULL);
    rfx_memory_fail_after(mem, 0); /* all again */
    assert_null(rfx_memory_alloc(mem, 1));
    assert_null(rfx_memory_alloc(mem, 1));
    rfx_memory_release(mem, a);
    rfx_memory_release(mem, b);
    rfx_memory_free(mem);
}

static void test_threads(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(6400);
    int refused = 0;
#pragma omp parallel for num_threads(4) reduction(+ : refused)
    for (int i = 0; i < 4000; i++) {
        void *block = rfx_memory_alloc(mem, 640);
        if (block == NULL) refused++;
        rfx_memory_release(mem, block);
    }
    assert_int_equal(refused, 0);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    assert_true(rfx_memory_high_water_bytes(mem) <= 4 * 640);
    assert_int_equal(rfx_memory_allocation_count(mem), 4000);
    rfx_memory_free(mem);
}

/* What the system gives, which of small blocks is more than was asked for, has a limit of its own.
 */
static void test_taken(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    void *large = rfx_memory_alloc(mem, (size_t)2 << 20);
    assert_non_null(large);
    size_t before = rfx_memory_mark(mem);
    assert_true(before >= ((size_t)2 << 20));
    void *small = rfx_memory_alloc(mem, 1);
    assert_true(rfx_memory_taken_bytes(mem) >= before + 128);
    rfx_memory_limit_taken(mem, before + 4096);
    assert_null(rfx_memory_alloc(mem, 8192));
    assert_true(rfx_memory_taken_limit_was_met(mem));
    rfx_memory_limit_taken(mem, 0);
    assert_false(rfx_memory_taken_limit_was_met(mem));
    void *more = rfx_memory_alloc(mem, 8192);
    assert_non_null(more);
    rfx_memory_release(mem, more);
    assert_true(rfx_memory_taken_high_water_bytes(mem) >= before + 8192);
    rfx_memory_release(mem, small);
    assert_int_equal(rfx_memory_taken_bytes(mem), before);
    assert_int_equal(rfx_memory_mark(mem), before);
    assert_int_equal(rfx_memory_taken_high_water_bytes(mem), before);
    rfx_memory_release(mem, large);
    assert_int_equal(rfx_memory_taken_bytes(mem), 0);
    rfx_memory_free(mem);
}

static bool is_asked_to_stop(void *user) {
    return *(bool *)user;
}

static size_t resident_bytes(void) {
    long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &all, &resident), 2);
    assert_int_equal(fclose(f), 0);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Small blocks below one that stays: the C library keeps what is freed of them. */
static void test_trim(void **state) {
    (void)state;
    enum { N = 8192, BYTES = 4000 };
    static void *blocks[N];
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int i = 0; i < N; i++) {
        blocks[i] = rfx_memory_alloc(mem, BYTES);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i + 1 < N; i++) rfx_memory_release(mem, blocks[i]);
    size_t before = resident_bytes();
    rfx_memory_trim(mem);
    size_t after = resident_bytes();
    print_message("%zu bytes are resident, %zu before\n", after, before);
#if defined(__GLIBC__) && !defined(RFX_SANITIZE) /* which has a heap of its own */
    assert_true(after + (size_t)N * BYTES / 2 < before);
#endif
    assert_int_equal(((char *)blocks[N - 1])[BYTES - 1], 1);
    rfx_memory_release(mem, blocks[N - 1]);
    rfx_memory_free(mem);
}

/* Once the work is to stop nothing is allocated any more, and the status says why. */
static void test_stop(void **state) {
    (void)state;
    struct rfx_error err = {{0}};
    struct rfx_memory *mem = rfx_memory_create(0);
    bool stop = false;
    rfx_memory_set_stop(mem, is_asked_to_stop, &stop);
    void *block = rfx_memory_alloc(mem, 64);
    assert_non_null(block);
    assert_false(rfx_memory_is_stopped(mem));
    assert_int_equal(rfx_memory_check_stop(mem, &err), RFX_OK);
    assert_int_equal(rfx_memory_fail(mem, "block", 64, &err), RFX_STATUS_OUT_OF_MEMORY);
    stop = true;
    assert_true(rfx_memory_is_stopped(mem));
    assert_null(rfx_memory_alloc(mem, 64));
    assert_null(rfx_memory_realloc(mem, block, 128));
    assert_int_equal(rfx_memory_check_stop(mem, &err), RFX_STATUS_CANCELLED);
    assert_int_equal(rfx_memory_fail(mem, "block", 64, &err), RFX_STATUS_CANCELLED);
    assert_non_null(strstr(err.text, "stopped"));
    assert_int_equal(rfx_memory_current_bytes(mem), 64);
    rfx_memory_set_stop(mem, NULL, NULL);
    assert_false(rfx_memory_is_stopped(mem));
    rfx_memory_release(mem, block);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),      cmocka_unit_test(test_accounting),
        cmocka_unit_test(test_limit),      cmocka_unit_test(test_calloc_and_realloc),
        cmocka_unit_test(test_fail_after), cmocka_unit_test(test_fail_once),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_stop),
        cmocka_unit_test(test_hooks),      cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_trim)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
