/* How deep items lie in others, weighted: every instruction set of this processor against the sums
 * written down, to the bit, for all numbers of places. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/kernels/kernels.h"
#include "tests/support/test_util.h"

enum { MOST_PLACES = 150, MOST_OTHERS = 40 };

static float depth_sum(const struct rfx_depths_run *r, float place) {
    float sum = 0;
    for (int64_t k = 0; k < r->others; k++) {
        float up = r->tops[k] - place, down = place + r->size - r->bottoms[k];
        float depth = up < down ? up : down;
        sum += r->weights[k] * (depth > 0 ? depth : 0);
    }
    return sum;
}

/* Places are multiples of 8, so that many touch; an item may lie nowhere. */
static void sums_are_as_written_down(void **state) {
    (void)state;
    static const char *const sets[] = {"base", "avx2", "avx512", "neon"};
    float places[MOST_PLACES + RFX_DEPTHS_FILLED] = {0}, costs[MOST_PLACES + RFX_DEPTHS_FILLED];
    float bottoms[MOST_OTHERS], tops[MOST_OTHERS], weights[MOST_OTHERS];
    struct test_rng rng = test_rng_make(7);
    int compared = 0, above_zero = 0;
    for (int n = 1; n <= MOST_PLACES; n++) {
        struct rfx_depths_run run = {places, bottoms, tops, weights, costs, n, 0, 0};
        run.others = test_rng_int(&rng, 0, MOST_OTHERS);
        run.size = (float)(8 * test_rng_int(&rng, 1, 30));
        for (int c = 0; c < n; c++) places[c] = (float)(8 * test_rng_int(&rng, 0, 100));
        for (int64_t k = 0; k < run.others; k++) {
            bottoms[k] = (float)(8 * test_rng_int(&rng, 0, 100));
            if (test_rng_chance(&rng, 5)) bottoms[k] = -INFINITY;
            tops[k] = bottoms[k] + (float)(8 * test_rng_int(&rng, 1, 30));
            weights[k] = test_rng_float(&rng, 0.01f, 3.0f);
        }
        for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
            const struct rfx_kernels *k = rfx_kernels_find(sets[s]);
            if (k == NULL) continue;
            for (int c = 0; c < n; c++) costs[c] = -1;
            k->depths(&run);
            compared++;
            for (int c = 0; c < n; c++) {
                above_zero += costs[c] > 0;
                if (costs[c] != depth_sum(&run, places[c]))
                    fail_msg("%s, %d places: %a, not %a", k->name, n, (double)costs[c],
                             (double)depth_sum(&run, places[c]));
            }
        }
    }
    assert_true(compared >= MOST_PLACES && above_zero > compared);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_as_written_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
