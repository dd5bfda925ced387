/* The caller's allocator: all that a network takes is his and is given back, blocks of any
 * alignment do, and every one that he refuses ends the call in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"

enum { ROWS = 64, COLUMNS = 71, SHIFT = 16 };

struct account {
    atomic_size_t bytes, most, blocks;
    atomic_llong passes; /* blocks until none is given; negative: always */
};

/* 16 bytes off a page's alignment, which is all that malloc promises. */
static void *allocate(void *user, size_t bytes) {
    struct account *a = user;
    if (atomic_load(&a->passes) == 0) return NULL;
    if (atomic_load(&a->passes) > 0) atomic_fetch_sub(&a->passes, 1);
    size_t now = atomic_fetch_add(&a->bytes, bytes) + bytes, most = atomic_load(&a->most);
    while (most < now && !atomic_compare_exchange_weak(&a->most, &most, now)) {
    }
    atomic_fetch_add(&a->blocks, 1);
    char *raw = malloc(bytes + SHIFT);
    assert_non_null(raw);
    memset(raw, 0xa5, bytes + SHIFT); /* nothing may count on zeros */
    memcpy(raw, &bytes, sizeof bytes);
    return raw + SHIFT;
}

static void release(void *user, void *block, size_t bytes) {
    struct account *a = user;
    char *raw = (char *)block - SHIFT;
    size_t given;
    memcpy(&given, raw, sizeof given);
    if (given != bytes) abort(); /* also where no test can fail */
    atomic_fetch_sub(&a->bytes, bytes);
    atomic_fetch_sub(&a->blocks, 1);
    free(raw);
}

static struct rfx_open_options options_of(struct account *a) {
    struct rfx_open_options options;
    rfx_open_options_init(&options, sizeof options);
    options.rows = ROWS;
    options.columns = COLUMNS;
    options.allocate = allocate;
    options.release = release;
    options.memory_user = a;
    return options;
}

static void test_all_is_the_callers(void **state) {
    static const char model[] = "squeezenet1_1";
    struct account account = {.passes = -1};
    const struct rfx_open_options open = options_of(&account);
    struct rfx_run_options options = network_run_options(0, 2);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_network *net = NULL, *plain = network_open_sized(model, ROWS, COLUMNS);
    struct rfx_why why;
    float *values = network_random_image(3, ROWS, COLUMNS);
    struct network_outputs want = network_outputs_for(plain), got = network_outputs_for(plain);
    (void)state;
    network_check(rfx_network_run_values(plain, values, want.values, want.n, NULL, &why), &why);
    network_check(rfx_network_open(model, &open, &net, &why), &why);
    size_t held = account.bytes;
    assert_true(held > 0);
    for (int budget = 0; budget < 2; budget++) {
        if (budget == 1) options.memory_bytes = network_least_bytes(net, NULL, 2);
        network_check(rfx_network_predict(net, NULL, &options, &forecast, &why), &why);
        account.most = 0;
        network_check(rfx_network_run_values(net, values, got.values, got.n, &options, &why), &why);
        network_assert_same(&got, &want);
        /* Maps, weights and scratch came from here, and went back. */
        assert_true(account.most > forecast.activation_bytes + forecast.weight_bytes);
        assert_true(budget == 0 || account.most < forecast.peak_bytes);
        assert_int_equal(account.bytes, held);
    }
    rfx_network_free(net);
    assert_int_equal(account.bytes, 0);
    assert_int_equal(account.blocks, 0);
    network_outputs_free(&want);
    network_outputs_free(&got);
    free(values);
    rfx_network_free(plain);
}

/* From opening to the last output: no block, no leak, no crash; what is given at last gives the
 * bits. */
static void test_every_refusal(void **state) {
    struct network_outputs want = {0}, got = {0};
    float *values = network_random_image(3, ROWS, COLUMNS);
    int refused = 0;
    long long step = 1;
    (void)state;
    for (long long k = 0;; k += step) {
        struct account account = {.passes = k};
        const struct rfx_open_options open = options_of(&account);
        const struct rfx_run_options options = network_run_options(0, 1);
        struct rfx_network *net = NULL;
        struct rfx_why why;
        enum rfx_code code = rfx_network_open("squeezenet1_1", &open, &net, &why);
        if (code == RFX_CODE_OK) {
            if (got.n == 0) got = network_outputs_for(net);
            step = 7; /* a run is the same work again and again */
            code = rfx_network_run_values(net, values, got.values, got.n, &options, &why);
        }
        rfx_network_free(net);
        assert_int_equal(account.bytes, 0);
        if (code == RFX_CODE_OK) break;
        assert_int_equal(code, RFX_CODE_SYSTEM);
        assert_true(why.text[0] != '\0');
        refused++;
    }
    assert_true(refused > 50);
    struct rfx_network *plain = network_open_sized("squeezenet1_1", ROWS, COLUMNS);
    struct rfx_why why;
    want = network_outputs_for(plain);
    network_check(rfx_network_run_values(plain, values, want.values, want.n, NULL, &why), &why);
    network_assert_same(&got, &want);
    rfx_network_free(plain);
    network_outputs_free(&want);
    network_outputs_free(&got);
    free(values);
}

static void test_both_are_needed(void **state) {
    struct account account = {.passes = -1};
    struct rfx_open_options options = options_of(&account);
    struct rfx_network *net = NULL;
    struct rfx_why why;
    (void)state;
    options.release = NULL;
    assert_int_equal(rfx_network_open("squeezenet1_1", &options, &net, &why), RFX_CODE_USAGE);
    assert_non_null(strstr(why.text, "release"));
    options = options_of(&account);
    options.allocate = NULL;
    assert_int_equal(rfx_network_open("squeezenet1_1", &options, &net, &why), RFX_CODE_USAGE);
    assert_non_null(strstr(why.text, "allocate"));
    assert_null(net);
    assert_int_equal(account.blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_the_callers),
        cmocka_unit_test(test_every_refusal),
        cmocka_unit_test(test_both_are_needed),
    };
    return cmocka_run_group_tests_name("network's allocator", tests, NULL, NULL);
}
