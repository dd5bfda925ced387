/* Clauses against every assignment, orders against clauses that say the same, sums against every
 * subset. */
#include "tiler/clauses/clauses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/clauses/clauses_sums.h"

enum { MAX_VARIABLES = 14, MAX_CLAUSES = 130, MAX_LITERALS = 3, MAX_TERMS = 16 };

struct formula {
    int n, n_clauses;
    int length[MAX_CLAUSES], literals[MAX_CLAUSES][MAX_LITERALS];
};

static bool holds(const struct formula *f, unsigned assignment) {
    for (int k = 0; k < f->n_clauses; k++) {
        bool is_true = false;
        for (int i = 0; i < f->length[k]; i++) {
            int literal = f->literals[k][i];
            if ((int)(assignment >> (literal / 2) & 1) != (literal & 1)) is_true = true;
        }
        if (!is_true) return false;
    }
    return true;
}

static bool is_possible(const struct formula *f) {
    for (unsigned assignment = 0; assignment < 1U << f->n; assignment++)
        if (holds(f, assignment)) return true;
    return false;
}

/* Adds so many clauses of different variables. */
static void add_random(struct test_rng *rng, int count, struct formula *f) {
    for (int end = f->n_clauses + count; f->n_clauses < end; f->n_clauses++) {
        int *literals = f->literals[f->n_clauses];
        int n = test_rng_chance(rng, 85) ? 3 : (int)test_rng_int(rng, 1, 2);
        f->length[f->n_clauses] = n;
        for (int i = 0; i < n; i++) {
            literals[i] = (int)test_rng_int(rng, 0, 2 * f->n - 1);
            for (int j = 0; j < i; j++)
                if (literals[j] / 2 == literals[i] / 2) i--, j = i;
        }
    }
}

/* About as many clauses as can just be true. */
static struct formula random_formula(struct test_rng *rng) {
    struct formula f = {.n = (int)test_rng_int(rng, 3, MAX_VARIABLES)};
    add_random(rng, (int)test_rng_int(rng, 3 * f.n, 5 * f.n), &f);
    return f;
}

static struct rfx_clauses *make(struct rfx_memory *mem, const struct formula *f) {
    struct rfx_clauses *clauses;
    assert_int_equal(rfx_clauses_create(mem, f->n, &clauses, NULL), RFX_OK);
    for (int k = 0; k < f->n_clauses; k++)
        assert_true(rfx_clauses_add(clauses, f->literals[k], f->length[k]));
    return clauses;
}

/* Solves at once, or in small steps from each of which the next goes on (*limits of them), and
 * expects what trying every assignment tells, which is returned. */
static bool solve_as_expected(struct rfx_clauses *clauses, const struct formula *f, int seed,
                              int *limits) {
    struct rfx_clauses_request request = {.conflicts = seed % 2 == 0 ? UINT64_MAX : 1,
                                          .seed = (uint64_t)seed,
                                          .steady = seed % 3 == 0};
    enum rfx_clauses_outcome outcome = RFX_CLAUSES_LIMIT;
    uint64_t conflicts = 0;
    while (outcome == RFX_CLAUSES_LIMIT) {
        outcome = rfx_clauses_solve(clauses, &request, &conflicts);
        *limits += outcome == RFX_CLAUSES_LIMIT;
    }
    bool expected = is_possible(f);
    assert_int_equal(outcome, expected ? RFX_CLAUSES_FOUND : RFX_CLAUSES_IMPOSSIBLE);
    unsigned assignment = 0;
    for (int v = 0; v < f->n && expected; v++)
        assignment |= (unsigned)rfx_clauses_value(clauses, v) << v;
    assert_true(!expected || holds(f, assignment));
    return expected;
}

/* Clauses from the first on have origins of their own, up to 64. */
static void add_with_origins(struct rfx_clauses *clauses, const struct formula *f, int first) {
    for (int i = first; i < f->n_clauses; i++) {
        rfx_clauses_set_origin(clauses, (uint64_t)1 << i % 64);
        assert_true(rfx_clauses_add(clauses, f->literals[i], f->length[i]));
    }
}

/* Those before the first, and those that a proof comes from, cannot all be true; whether that is
 * less than all. */
static bool proof_is_enough(const struct rfx_clauses *clauses, const struct formula *f, int first) {
    struct formula used = *f;
    used.n_clauses = first;
    for (int i = first; i < f->n_clauses; i++) {
        if ((rfx_clauses_proof(clauses) >> i % 64 & 1) == 0) continue;
        used.length[used.n_clauses] = f->length[i];
        memcpy(used.literals[used.n_clauses++], f->literals[i], sizeof f->literals[i]);
    }
    assert_false(is_possible(&used));
    return used.n_clauses < f->n_clauses;
}

static void equal_brute_force(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    int cases = (int)test_env_int("RFX_CASES", 1000);
    int possible = 0;
    int limits = 0;
    for (int k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct formula f = random_formula(&rng);
        struct rfx_clauses *clauses = make(mem, &f);
        possible += solve_as_expected(clauses, &f, k, &limits);
        rfx_clauses_free(clauses);
    }
    rfx_memory_free(mem);
    if (cases >= 100) assert_true(possible > cases / 10 && possible < 9 * cases / 10 && limits > 0);
}

/* Some pairs of some items, and that all three that are pairs lie in one order, written down. */
static int random_pairs(struct test_rng *rng, int n, int *pair, struct formula *f) {
    *f = (struct formula){.n = 0};
    for (int i = 0; i < n * n; i++) pair[i] = -1;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            if (f->n < MAX_VARIABLES && test_rng_chance(rng, 80)) pair[i * n + j] = f->n++;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            for (int k = j + 1; k < n; k++) {
                int a = pair[i * n + j], b = pair[j * n + k], c = pair[i * n + k];
                for (int turned = 0; turned < 2 && a >= 0 && b >= 0 && c >= 0; turned++) {
                    int cycle[] = {2 * a + turned, 2 * b + turned, 2 * c + 1 - turned};
                    memcpy(f->literals[f->n_clauses], cycle, sizeof cycle);
                    f->length[f->n_clauses++] = 3;
                }
            }
    return f->n_clauses;
}

/* What is said of an order without writing it down is what is written down, and proofs tell what
 * else they use. */
static void orders_are_as_if_written_down(void **state) {
    (void)state;
    enum { MOST_ITEMS = 6 };
    struct rfx_memory *mem = rfx_memory_create(0);
    int cases = (int)test_env_int("RFX_CASES", 1000);
    int possible = 0, smaller = 0, limits = 0;
    for (int k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        int pair[MOST_ITEMS * MOST_ITEMS];
        int n = (int)test_rng_int(&rng, 4, MOST_ITEMS);
        struct formula f;
        struct rfx_clauses *clauses;
        int written = random_pairs(&rng, n, pair, &f);
        if (f.n < 3) continue;
        add_random(&rng, (int)test_rng_int(&rng, 2 * f.n, 4 * f.n), &f);
        assert_int_equal(rfx_clauses_create(mem, f.n, &clauses, NULL), RFX_OK);
        bool is_first = k % 3 != 0;
        if (is_first) assert_true(rfx_clauses_set_order(clauses, pair, n));
        add_with_origins(clauses, &f, written);
        if (!is_first) assert_true(rfx_clauses_set_order(clauses, pair, n));
        if (solve_as_expected(clauses, &f, k, &limits))
            possible++;
        else
            smaller += proof_is_enough(clauses, &f, written);
        rfx_clauses_free(clauses);
    }
    rfx_memory_free(mem);
    if (cases >= 100) assert_true(possible > cases / 5 && smaller > cases / 5);
}

/* Of three items two pairs tell the third without a dead end, whichever becomes known last. The
 * third is that the lower number lies below, which is tried last. */
static void two_pairs_tell_the_third(void **state) {
    (void)state;
    enum { ITEMS = 3, PAIRS = 3 };
    static const int pair[ITEMS * ITEMS] = {-1, 0, 1, -1, -1, 2, -1, -1, -1};
    static const int known[PAIRS][2] = {{2, 5}, {0, 4}, {1, 2}}; /* literals that tell variable k */
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int k = 0; k < 2 * PAIRS; k++) {
        struct rfx_clauses *clauses;
        struct rfx_clauses_request request = {.conflicts = UINT64_MAX};
        uint64_t conflicts = 0;
        int first = known[k / 2][k % 2], last = known[k / 2][1 - k % 2], begin = 2 * PAIRS;
        int one[] = {begin ^ 1, first}, other[] = {first ^ 1, last};
        assert_int_equal(rfx_clauses_create(mem, PAIRS + 1, &clauses, NULL), RFX_OK);
        assert_true(rfx_clauses_set_order(clauses, pair, ITEMS));
        assert_true(rfx_clauses_add(clauses, one, 2) && rfx_clauses_add(clauses, other, 2));
        assert_true(rfx_clauses_add(clauses, &begin, 1));
        assert_int_equal(rfx_clauses_solve(clauses, &request, &conflicts), RFX_CLAUSES_FOUND);
        assert_true(rfx_clauses_value(clauses, k / 2));
        assert_int_equal(conflicts, 0);
        rfx_clauses_free(clauses);
    }
    rfx_memory_free(mem);
}

/* The clauses that a proof comes from cannot all be true without the others. */
static void proofs_tell_what_they_use(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    int smaller = 0;
    int proofs = 0;
    for (int k = 0; k < 200; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct formula f = random_formula(&rng);
        struct rfx_clauses *clauses;
        struct rfx_clauses_request request = {.conflicts = UINT64_MAX, .seed = (uint64_t)k};
        uint64_t conflicts = 0;
        assert_int_equal(rfx_clauses_create(mem, f.n, &clauses, NULL), RFX_OK);
        add_with_origins(clauses, &f, 0);
        if (rfx_clauses_solve(clauses, &request, &conflicts) == RFX_CLAUSES_IMPOSSIBLE) {
            smaller += proof_is_enough(clauses, &f, 0);
            proofs++;
        }
        rfx_clauses_free(clauses);
    }
    assert_true(proofs > 20 && smaller > proofs / 2);
    rfx_memory_free(mem);
}

/* p + 1 things do not go into p places: nothing but a proof ends it, and much is forgotten. */
static void a_proof_outlives_forgetting(void **state) {
    (void)state;
    enum { PLACES = 7, THINGS = PLACES + 1 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_clauses *clauses;
    assert_int_equal(rfx_clauses_create(mem, PLACES * THINGS, &clauses, NULL), RFX_OK);
    for (int i = 0; i < THINGS; i++) {
        int somewhere[PLACES];
        for (int p = 0; p < PLACES; p++) somewhere[p] = 2 * (i * PLACES + p);
        assert_true(rfx_clauses_add(clauses, somewhere, PLACES));
        for (int p = 0; p < PLACES; p++) {
            for (int j = 0; j < i; j++) {
                int apart[] = {2 * (i * PLACES + p) + 1, 2 * (j * PLACES + p) + 1};
                assert_true(rfx_clauses_add(clauses, apart, 2));
            }
        }
    }
    struct rfx_clauses_request request = {.conflicts = UINT64_MAX};
    uint64_t conflicts = 0;
    assert_int_equal(rfx_clauses_solve(clauses, &request, &conflicts), RFX_CLAUSES_IMPOSSIBLE);
    assert_true(conflicts > 2000);
    rfx_clauses_free(clauses);
    rfx_memory_free(mem);
}

/* Whether literals of these values can be true together. */
static bool is_allowed(struct rfx_memory *mem, const struct rfx_sums *sums, int n,
                       unsigned values) {
    struct rfx_clauses *clauses;
    struct rfx_clauses_request request = {.conflicts = UINT64_MAX};
    uint64_t conflicts = 0;
    int literals[MAX_TERMS];
    assert_int_equal(rfx_clauses_create(mem, n + rfx_sums_variables(sums), &clauses, NULL), RFX_OK);
    for (int i = 0; i < n; i++) literals[i] = 2 * i;
    assert_true(rfx_sums_add(sums, clauses, literals, n, 0, 0));
    for (int i = 0; i < n; i++) {
        int is[] = {2 * i + ((values >> i & 1) != 0 ? 0 : 1)};
        assert_true(rfx_clauses_add(clauses, is, 1));
    }
    enum rfx_clauses_outcome outcome = rfx_clauses_solve(clauses, &request, &conflicts);
    assert_int_equal(conflicts, 0); /* what is certain needs no trying */
    rfx_clauses_free(clauses);
    return outcome == RFX_CLAUSES_FOUND;
}

/* Both forms: of few terms, and of more. */
static void sums_are_zero(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    int allowed = 0;
    for (int k = 0; k < 40; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        int64_t terms[MAX_TERMS];
        int n =
            k % 2 == 0 ? (int)test_rng_int(&rng, 1, 10) : (int)test_rng_int(&rng, 11, MAX_TERMS);
        struct rfx_sums *sums;
        for (int i = 0; i < n; i++)
            terms[i] = test_rng_int(&rng, 1, 20) * (test_rng_chance(&rng, 50) ? 1 : -1);
        assert_int_equal(rfx_sums_create(mem, terms, n, NULL, &sums, NULL), RFX_OK);
        assert_non_null(sums);
        assert_int_equal(rfx_sums_variables(sums) > 0, n > 10);
        for (int trial = 0; trial < 200; trial++) {
            unsigned values = (unsigned)test_rng_int(&rng, 0, (1 << n) - 1);
            int64_t sum = 0;
            for (int i = 0; i < n; i++)
                if ((values >> i & 1) != 0) sum += terms[i];
            allowed += sum == 0;
            assert_int_equal(is_allowed(mem, sums, n, values), sum == 0);
        }
        rfx_sums_free(sums);
    }
    assert_true(allowed > 50);
    rfx_memory_free(mem);
}

enum { UNIT = 3, MAX_COUNT = 9 };

/* Says what is certain of some terms and of the number before; what the number after is then. */
static int fix_values(struct test_rng *rng, struct rfx_clauses *clauses, const int64_t *terms,
                      int n, const struct rfx_sums_counts *counts, int before) {
    int number = (int)test_rng_int(rng, 0, counts->before);
    int sum = number;
    for (int i = 0; i < counts->before; i++) {
        int is[] = {2 * (before + i) + (i < number ? 0 : 1)};
        assert_true(rfx_clauses_add(clauses, is, 1));
    }
    for (int i = 0; i < n; i++) {
        bool is_true = test_rng_chance(rng, 50);
        int is[] = {2 * i + (is_true ? 0 : 1)};
        if (is_true) sum += (int)(terms[i] / UNIT);
        assert_true(rfx_clauses_add(clauses, is, 1));
    }
    return sum;
}

/* The number after is the one before and the sum of the terms, or there is none. */
static void counts_are_part_of_sums(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    int possible = 0;
    for (int k = 0; k < 300; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct rfx_sums_counts counts = {UNIT, (int)test_rng_int(&rng, 0, MAX_COUNT), 0};
        int64_t terms[MAX_TERMS];
        int literals[MAX_TERMS];
        int n = (int)test_rng_int(&rng, 1, 6);
        struct rfx_sums *sums;
        struct rfx_clauses *clauses;
        counts.after = (int)test_rng_int(&rng, counts.before == 0, MAX_COUNT);
        for (int i = 0; i < n; i++) {
            terms[i] = UNIT * test_rng_int(&rng, 1, 8) * (test_rng_chance(&rng, 50) ? 1 : -1);
            literals[i] = 2 * i;
        }
        assert_int_equal(rfx_sums_create(mem, terms, n, &counts, &sums, NULL), RFX_OK);
        int before = n + rfx_sums_variables(sums);
        int after = before + counts.before;
        assert_int_equal(rfx_clauses_create(mem, after + counts.after, &clauses, NULL), RFX_OK);
        assert_true(rfx_sums_add(sums, clauses, literals, n, before, after));
        for (int i = 1; i < counts.after; i++) {
            int fewer[] = {2 * (after + i) + 1, 2 * (after + i - 1)};
            assert_true(rfx_clauses_add(clauses, fewer, 2));
        }
        int sum = fix_values(&rng, clauses, terms, n, &counts, before);
        struct rfx_clauses_request request = {.conflicts = UINT64_MAX};
        uint64_t conflicts = 0;
        bool expected = sum >= 0 && sum <= counts.after;
        assert_int_equal(rfx_clauses_solve(clauses, &request, &conflicts),
                         expected ? RFX_CLAUSES_FOUND : RFX_CLAUSES_IMPOSSIBLE);
        assert_int_equal(conflicts, 0);
        for (int i = 0; i < counts.after && expected; i++)
            assert_int_equal(rfx_clauses_value(clauses, after + i), i < sum);
        possible += expected;
        rfx_clauses_free(clauses);
        rfx_sums_free(sums);
    }
    assert_true(possible > 50 && possible < 250);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_brute_force),
        cmocka_unit_test(orders_are_as_if_written_down),
        cmocka_unit_test(two_pairs_tell_the_third),
        cmocka_unit_test(proofs_tell_what_they_use),
        cmocka_unit_test(a_proof_outlives_forgetting),
        cmocka_unit_test(sums_are_zero),
        cmocka_unit_test(counts_are_part_of_sums),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
