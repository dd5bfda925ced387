/* Buckets of a beam against a list that is searched: what is kept, what is replaced, what is said
 * to be left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/fronts/fronts_buckets.h"

enum { MOST = 40 };

struct plain {
    uint64_t hash[MOST];
    float score[MOST];
    int n;
};

static int find_hash(const struct plain *p, uint64_t hash) {
    for (int i = 0; i < p->n; i++)
        if (p->hash[i] == hash) return i;
    return -1;
}

static int find_worst(const struct plain *p) {
    int worst = 0;
    for (int i = 1; i < p->n; i++)
        if (p->score[i] < p->score[worst]) worst = i;
    return worst;
}

/* As rfx_front_buckets_put, of scores that all differ. */
static struct rfx_front_put put_plainly(struct plain *p, int width, uint64_t hash, float score) {
    int at = find_hash(p, hash);
    bool same = at >= 0;
    bool full = p->n == width;
    if (!same) at = full ? find_worst(p) : p->n;
    if ((same || full) && score <= p->score[at])
        return (struct rfx_front_put){.state = -1, .left_out = !same};
    p->n += !same && !full;
    p->hash[at] = hash;
    p->score[at] = score;
    return (struct rfx_front_put){at, same || full, !same && full};
}

static void the_best_are_kept(void **state) {
    (void)state;
    int replaced = 0;
    int repeated = 0;
    for (int width = 1; width <= MOST; width++) {
        struct rfx_front_buckets buckets;
        struct plain plain[3] = {{.n = 0}};
        struct test_rng rng = test_rng_make((uint64_t)width);
        assert_int_equal(rfx_front_buckets_init(&buckets, placement_mem, 3, width, NULL), RFX_OK);
        for (int k = 0; k < 2000; k++) {
            int b = (int)test_rng_int(&rng, 0, 2);
            uint64_t hash = (uint64_t)test_rng_int(&rng, 0, 3 * width);
            float score = (float)(2000 * test_rng_int(&rng, -50, 50) + k);
            if (test_rng_chance(&rng, 1)) {
                rfx_front_buckets_clear(&buckets, b);
                plain[b].n = 0;
            }
            struct rfx_front_put expected = put_plainly(&plain[b], width, hash, score);
            struct rfx_front_put put = rfx_front_buckets_put(&buckets, b, hash, score);
            assert_int_equal(put.state, expected.state);
            assert_int_equal(put.instead, expected.instead);
            assert_int_equal(put.left_out, expected.left_out);
            assert_int_equal(buckets.at[b].n, plain[b].n);
            replaced += put.instead && put.left_out;
            repeated += put.instead && !put.left_out;
        }
        rfx_front_buckets_release(&buckets);
    }
    assert_true(replaced > 1000 && repeated > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_are_kept)};
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
