/* Heap sort of items of many sizes, against a plain insertion sort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/heap_sort.h"
#include "tests/support/test_util.h"

enum { MOST = 70 };

/* Items are `size` bytes, of which the first is the key. The context says which way is up. */
static bool before(const void *context, const void *a, const void *b) {
    int x = *(const unsigned char *)a, y = *(const unsigned char *)b;
    return *(const bool *)context ? x > y : x < y;
}

static void make_keys(struct test_rng *rng, unsigned char *keys, int64_t n, int64_t most) {
    for (int64_t i = 0; i < n; i++) keys[i] = (unsigned char)test_rng_int(rng, 0, most);
}

static void insertion_sort(unsigned char *keys, int64_t n, bool falls) {
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0 && before(&falls, &keys[k], &keys[k - 1]); k--) {
            unsigned char key = keys[k];
            keys[k] = keys[k - 1];
            keys[k - 1] = key;
        }
}

/* The rest of an item is made of its key, so that a torn item shows. */
static void as_insertion_sort(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 4, 16, 44, RFX_HEAP_SORT_MOST_BYTES};
    static unsigned char list[MOST * RFX_HEAP_SORT_MOST_BYTES];
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct test_rng rng = test_rng_make(seed);
        unsigned char keys[MOST];
        int64_t n = test_rng_int(&rng, 0, MOST);
        size_t size = sizes[seed % 5];
        bool falls = test_rng_chance(&rng, 50);
        make_keys(&rng, keys, n, seed % 3 == 0 ? 5 : 255); /* some with many equal keys */
        for (int64_t i = 0; i < n; i++) memset(list + (size_t)i * size, keys[i], size);
        rfx_heap_sort(list, n, size, before, &falls);
        insertion_sort(keys, n, falls);
        for (int64_t i = 0; i < n; i++)
            for (size_t b = 0; b < size; b++) assert_int_equal(list[(size_t)i * size + b], keys[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_insertion_sort)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
