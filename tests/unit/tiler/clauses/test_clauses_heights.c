/* Heights against every order of a few items, and what they tell at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/clauses/clauses_spans.h"

enum { MAX_ITEMS = 7, MAX_PAIRS = 15, SECTIONS = 4, MAX_PLAIN = 12 };

struct heights {
    int n, height, n_pairs, n_plain;
    struct rfx_clauses_item items[MAX_ITEMS]; /* of origin 2^i each */
    int pair[MAX_ITEMS * MAX_ITEMS];
    int plain[MAX_PLAIN][2]; /* clauses of two literals, of origin 2^(MAX_ITEMS + k) each */
};

static bool lives_at(const struct heights *h, int item, int section) {
    return h->items[item].begin <= section && section < h->items[item].end;
}

/* Items that live at one time are a pair. The height is what the fullest section needs, or more. */
static struct heights random_heights(struct test_rng *rng) {
    struct heights h = {.n = (int)test_rng_int(rng, 4, MAX_ITEMS)};
    for (int i = 0; i < h.n; i++) {
        int begin = (int)test_rng_int(rng, 0, SECTIONS - 1);
        h.items[i] =
            (struct rfx_clauses_item){(int)test_rng_int(rng, 1, 6), begin,
                                      (int)test_rng_int(rng, begin + 1, SECTIONS), 1U << i};
    }
    for (int s = 0; s < SECTIONS; s++) {
        int sum = 0;
        for (int i = 0; i < h.n; i++) sum += lives_at(&h, i, s) ? h.items[i].size : 0;
        if (sum > h.height) h.height = sum;
    }
    h.height += test_rng_chance(rng, 30) ? (int)test_rng_int(rng, 1, 2) : 0;
    for (int i = 0; i < h.n * h.n; i++) h.pair[i] = -1;
    for (int i = 0; i < h.n; i++)
        for (int j = i + 1; j < h.n; j++) {
            bool meet = false;
            for (int s = 0; s < SECTIONS; s++) meet |= lives_at(&h, i, s) && lives_at(&h, j, s);
            if (meet) h.pair[i * h.n + j] = h.n_pairs++;
        }
    h.n_plain = h.n_pairs > 1 ? (int)test_rng_int(rng, MAX_PLAIN / 3, MAX_PLAIN) : 0;
    for (int k = 0; k < h.n_plain; k++) {
        int first = (int)test_rng_int(rng, 0, h.n_pairs - 1);
        int other = (first + (int)test_rng_int(rng, 1, h.n_pairs - 1)) % h.n_pairs;
        h.plain[k][0] = 2 * first + (int)test_rng_int(rng, 0, 1);
        h.plain[k][1] = 2 * other + (int)test_rng_int(rng, 0, 1);
    }
    return h;
}

static bool is_true(unsigned values, int literal) {
    return (int)(values >> (literal / 2) & 1) != (literal & 1);
}

/* Whether item i lies below item j; pairs that never meet do not. */
static bool is_below(const struct heights *h, unsigned values, int i, int j) {
    int variable = i < j ? h->pair[i * h->n + j] : h->pair[j * h->n + i];
    return variable >= 0 && is_true(values, rfx_clauses_below(h->pair, h->n, i, j));
}

/* The most that lies below an item of those used in any section, or above it. */
static int most_beside(const struct heights *h, unsigned values, uint64_t used, int item,
                       bool above) {
    int most = 0;
    for (int s = h->items[item].begin; s < h->items[item].end; s++) {
        int sum = 0;
        for (int j = 0; j < h->n; j++) {
            bool counts = j != item && (used >> j & 1) != 0 && lives_at(h, j, s) &&
                          is_below(h, values, above ? item : j, above ? j : item);
            sum += counts ? h->items[j].size : 0;
        }
        if (sum > most) most = sum;
    }
    return most;
}

/* What is said of items and clauses of these origins holds. */
static bool holds(const struct heights *h, unsigned values, uint64_t used) {
    for (int k = 0; k < h->n_plain; k++)
        if ((used >> (MAX_ITEMS + k) & 1) != 0 && !is_true(values, h->plain[k][0]) &&
            !is_true(values, h->plain[k][1]))
            return false;
    for (int i = 0; i < h->n; i++)
        for (int j = 0; j < h->n; j++)
            for (int k = 0; k < h->n; k++)
                if (i != j && j != k && i != k && is_below(h, values, i, j) &&
                    is_below(h, values, j, k) && is_below(h, values, k, i))
                    return false;
    for (int i = 0; i < h->n; i++)
        if ((used >> i & 1) != 0 && most_beside(h, values, used, i, false) + h->items[i].size +
                                            most_beside(h, values, used, i, true) >
                                        h->height)
            return false;
    return true;
}

static bool is_possible(const struct heights *h, uint64_t used) {
    for (unsigned values = 0; values < 1U << h->n_pairs; values++)
        if (holds(h, values, used)) return true;
    return false;
}

static struct rfx_clauses *make(struct rfx_memory *mem, const struct heights *h, int n) {
    struct rfx_clauses *clauses;
    assert_int_equal(rfx_clauses_create(mem, n, &clauses, NULL), RFX_OK);
    assert_true(rfx_clauses_set_order(clauses, h->pair, h->n));
    assert_true(rfx_clauses_set_heights(clauses, h->items, SECTIONS, h->height));
    for (int k = 0; k < h->n_plain; k++) {
        rfx_clauses_set_origin(clauses, (uint64_t)1 << (MAX_ITEMS + k));
        assert_true(rfx_clauses_add(clauses, h->plain[k], 2));
    }
    return clauses;
}

/* What is found holds; what a proof uses is impossible by itself. At once, or in small steps. */
static void equal_every_order(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    int cases = (int)test_env_int("RFX_CASES", 2000);
    int possible = 0, smaller = 0, impossible = 0;
    for (int seed = 0; seed < cases; seed++) {
        struct test_rng rng = test_rng_make((uint64_t)seed);
        struct heights h = random_heights(&rng);
        if (h.n_pairs == 0 || h.n_pairs > MAX_PAIRS) continue;
        struct rfx_clauses *clauses = make(mem, &h, h.n_pairs);
        struct rfx_clauses_request request = {.conflicts = seed % 2 == 0 ? UINT64_MAX : 1,
                                              .seed = (uint64_t)seed};
        enum rfx_clauses_outcome outcome = RFX_CLAUSES_LIMIT;
        uint64_t conflicts = 0;
        while (outcome == RFX_CLAUSES_LIMIT)
            outcome = rfx_clauses_solve(clauses, &request, &conflicts);
        assert_int_equal(outcome,
                         is_possible(&h, UINT64_MAX) ? RFX_CLAUSES_FOUND : RFX_CLAUSES_IMPOSSIBLE);
        unsigned values = 0;
        for (int v = 0; v < h.n_pairs && outcome == RFX_CLAUSES_FOUND; v++)
            values |= (unsigned)rfx_clauses_value(clauses, v) << v;
        if (outcome == RFX_CLAUSES_FOUND) {
            assert_true(holds(&h, values, UINT64_MAX));
            possible++;
        } else {
            uint64_t all = ((uint64_t)1 << h.n) - 1;
            assert_false(is_possible(&h, rfx_clauses_proof(clauses)));
            smaller += (rfx_clauses_proof(clauses) & all) != all;
            impossible++;
        }
        rfx_clauses_free(clauses);
    }
    rfx_memory_free(mem);
    if (cases >= 100)
        assert_true(possible > cases / 10 && impossible > cases / 10 && smaller > cases / 50);
}

/* A long item of 4 has one of 5 beside it at first, and one of 3, later, of 12 in all: 5 below and
 * 3 above are just enough, and so it is the other way around. Of 11 both lie on one side, which is
 * known without a dead end as soon as it is known of one of them; `first` is what becomes known. */
static void sums_tell_the_side(void **state) {
    (void)state;
    enum { LONG = 0, EARLY = 1, LATE = 2, ITEMS = 3, PAIRS = 2, BEGIN = 2 * PAIRS };
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int height = 11; height <= 12; height++)
        for (int first = 0; first < 2 * PAIRS; first++) {
            struct heights h = {.n = ITEMS,
                                .height = height,
                                .items = {{4, 0, 4, 0}, {5, 0, 1, 0}, {3, 3, 4, 0}},
                                .pair = {-1, 0, 1, -1, -1, -1, -1, -1, -1}};
            struct rfx_clauses *clauses = make(mem, &h, PAIRS + 1);
            struct rfx_clauses_request request = {.conflicts = UINT64_MAX};
            int begin = BEGIN, other = first ^ 2;
            int tells[] = {BEGIN ^ 1, first}, against[] = {BEGIN ^ 1, other ^ 1};
            uint64_t conflicts = 0;
            assert_true(rfx_clauses_add(clauses, tells, 2));
            if (height == 12) assert_true(rfx_clauses_add(clauses, against, 2));
            assert_true(rfx_clauses_add(clauses, &begin, 1));
            assert_int_equal(rfx_clauses_solve(clauses, &request, &conflicts), RFX_CLAUSES_FOUND);
            assert_int_equal(rfx_clauses_value(clauses, first / 2), (first & 1) == 0);
            assert_int_equal(rfx_clauses_value(clauses, other / 2),
                             ((other & 1) == 0) == (height == 11));
            assert_int_equal(conflicts, 0);
            rfx_clauses_free(clauses);
        }
    rfx_memory_free(mem);
}

/* 1 of 4 is free at first, beside an item of 2 that stays (0) and one of 1 (1); an item of 2 (2)
 * takes their place. With the free one, a filler (3), above item 0 and item 1 below it, item 2 has
 * no room. A proof of it names the filler's run, without which there would be room. */
static void proofs_name_runs_of_fillers(void **state) {
    (void)state;
    enum { ITEMS = 4, PAIRS = 4 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_place_item items[] = {{0, 2, 2, 1}, {0, 1, 1, 1}, {1, 2, 2, 1}};
    static const int pair[ITEMS * ITEMS] = {-1, 0,  1,  2,  -1, -1, -1, 3,
                                            -1, -1, -1, -1, -1, -1, -1, -1};
    int under[] = {2 * 0 + 1}, over[] = {2 * 2};
    struct rfx_place_problem *problem = placement_problem(items, ITEMS - 1);
    struct rfx_boundaries *b;
    struct rfx_runs runs;
    assert_int_equal(rfx_boundaries_create(problem, 4, RFX_FILLERS_CUT, false, &b, NULL), RFX_OK);
    assert_int_equal(rfx_runs_make(problem, 4, false, &runs, NULL), RFX_OK);
    assert_int_equal(b->n_items, ITEMS);
    for (int n = ITEMS - 1; n <= ITEMS; n++) { /* of n items nothing is guessed */
        struct rfx_clauses *clauses;
        struct rfx_clauses_request request = {.conflicts = UINT64_MAX};
        uint64_t conflicts = 0;
        assert_int_equal(rfx_clauses_create(mem, PAIRS, &clauses, NULL), RFX_OK);
        assert_true(rfx_clauses_set_order(clauses, pair, ITEMS));
        assert_true(rfx_spans_add(b, &runs, n, 4, clauses));
        assert_true(rfx_clauses_add(clauses, under, 1) && rfx_clauses_add(clauses, over, 1));
        assert_int_equal(rfx_clauses_solve(clauses, &request, &conflicts), RFX_CLAUSES_IMPOSSIBLE);
        assert_int_equal(rfx_clauses_proof(clauses), n < ITEMS ? rfx_runs_origin(&runs, 0) : 0);
        rfx_clauses_free(clauses);
    }
    rfx_runs_release(&runs);
    rfx_boundaries_free(b);
    rfx_place_problem_free(problem);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_every_order),
        cmocka_unit_test(sums_tell_the_side),
        cmocka_unit_test(proofs_name_runs_of_fillers),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
