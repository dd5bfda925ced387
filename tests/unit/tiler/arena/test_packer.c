/* The packer: hand-made problems, brute force on small ones, and problems cut backwards out of a
 * perfect packing, whose optimum is known. RFX_CASES sets how many random problems (default
 * 1000), RFX_SMALL their largest number of items (default and at most 12), RFX_HARD how many
 * perfect ones (default 1) of at most RFX_HARD_MS each (default 10000). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/arena/exact_search.h"
#include "tiler/arena/greedy_packers.h"
#include "tiler/arena/packer.h"

enum { MAX_SMALL = 12, MAX_HARD = 512 };

/* Everything that holds of any answer. */
static void check(const struct rfx_place_item *items, int n, const size_t *offsets,
                  const struct rfx_packer_result *result) {
    assert_true(rfx_place_answer_is_valid(items, n, offsets, result->arena_bytes));
    assert_true(result->lower_bound_bytes <= result->arena_bytes);
    assert_int_equal(result->optimal, result->lower_bound_bytes == result->arena_bytes);
}

static struct rfx_packer_result solve(const struct rfx_place_item *items, int n,
                                      const struct rfx_packer_limits *limits) {
    size_t offsets[MAX_HARD];
    struct rfx_packer_result result;
    struct rfx_place_problem *problem = placement_problem(items, n);
    assert_int_equal(rfx_packer_solve(problem, limits, offsets, &result, NULL), RFX_OK);
    check(items, n, offsets, &result);
    rfx_place_problem_free(problem);
    return result;
}

static const struct rfx_packer_limits unlimited = {0};

static void nothing_and_one(void **state) {
    (void)state;
    struct rfx_place_item item = {-5, 9, 7, 1};
    assert_int_equal(solve(&item, 0, &unlimited).arena_bytes, 0);
    assert_int_equal(solve(&item, 1, &unlimited).arena_bytes, 7);
}

static void alignment_is_kept(void **state) {
    (void)state;
    /* 3 bytes, then at a multiple of 8: 8 bytes; the other way round 8 + 3 = 11. */
    const struct rfx_place_item items[] = {{0, 2, 3, 1}, {1, 3, 8, 8}};
    assert_int_equal(solve(items, 2, &unlimited).arena_bytes, 11);
    const struct rfx_place_item both[] = {{0, 2, 3, 8}, {1, 3, 9, 8}};
    assert_int_equal(solve(both, 2, &unlimited).arena_bytes, 8 + 9);
    const struct rfx_place_item swapped[] = {{0, 2, 3, 16}, {1, 3, 9, 4}};
    assert_int_equal(solve(swapped, 2, &unlimited).arena_bytes, 13); /* 3 at 0, 9 at 4 */
}

/* The least arena over all orders of the items, each put at the lowest place that is free above all
 * that came before and meets it in time: every bottom-justified packing is among these. Independent
 * of the search: every time is looked at, no sections. Three things keep it fast:
 * 1. items by rising offset are enough, those of one offset (they never meet) by rising index;
 * 2. the items left at a time lie above the lowest floor of one of them, so that an order that
 *    cannot beat the best answer is left;
 * 3. no answer is below the largest sum of sizes at one time, so that the first one there ends it.
 */
struct brute {
    const struct rfx_place_item *items;
    int n;
    size_t offsets[MAX_SMALL], floors[MAX_SMALL];
    bool placed[MAX_SMALL];
    size_t best, least;
};

static size_t brute_floor(const struct brute *brute, int i) {
    size_t floor = 0;
    for (int j = 0; j < brute->n; j++) {
        if (!brute->placed[j]) continue;
        if (brute->items[i].lo >= brute->items[j].hi || brute->items[j].lo >= brute->items[i].hi)
            continue;
        size_t top = brute->offsets[j] + brute->items[j].size;
        if (top > floor) floor = top;
    }
    size_t align = brute->items[i].alignment;
    return (floor + align - 1) / align * align;
}

/* The least top of what is left: over all times, the lowest floor and the sum of the sizes. Of a
 * non-empty set of items alive at a time one begins last, so the times of beginning are enough. */
static size_t brute_bound(const struct brute *brute) {
    size_t bound = 0;
    for (int i = 0; i < brute->n; i++) {
        size_t lowest = SIZE_MAX, sum = 0;
        for (int j = 0; j < brute->n; j++) {
            const struct rfx_place_item *item = &brute->items[j];
            if (brute->placed[j] || item->lo > brute->items[i].lo || item->hi <= brute->items[i].lo)
                continue;
            sum += item->size;
            if (brute->floors[j] < lowest) lowest = brute->floors[j];
        }
        if (sum > 0 && lowest + sum > bound) bound = lowest + sum;
    }
    return bound;
}

static void brute_force(struct brute *brute, int depth, size_t arena, int before) {
    if (depth == brute->n) {
        if (arena < brute->best) brute->best = arena;
        return;
    }
    for (int i = 0; i < brute->n; i++)
        if (!brute->placed[i]) brute->floors[i] = brute_floor(brute, i);
    if (brute_bound(brute) >= brute->best) return;
    for (int i = 0; i < brute->n && brute->best > brute->least; i++) {
        if (brute->placed[i]) continue;
        size_t offset = brute_floor(brute, i);
        size_t top = offset + brute->items[i].size;
        if (top >= brute->best) continue;
        if (before >= 0 && offset < brute->offsets[before]) continue;
        if (before > i && offset == brute->offsets[before]) continue;
        brute->placed[i] = true;
        brute->offsets[i] = offset;
        brute_force(brute, depth + 1, top > arena ? top : arena, i);
        brute->placed[i] = false;
    }
}

static size_t brute_optimum(const struct rfx_place_item *items, int n) {
    struct brute brute = {.items = items, .n = n, .best = SIZE_MAX};
    brute.least = brute_bound(&brute);
    brute_force(&brute, 0, 0, -1);
    return brute.best;
}

static int random_items(struct rfx_place_item *items, unsigned *seed) {
    static const size_t alignments[] = {1, 1, 1, 2, 4, 8};
    int n = 1 + rand_r(seed) % (int)test_env_int("RFX_SMALL", MAX_SMALL);
    int times = 2 + rand_r(seed) % 12;
    int sizes = 1 + rand_r(seed) % 30;
    bool aligned = rand_r(seed) % 3 == 0;
    for (int i = 0; i < n; i++) {
        int lo = rand_r(seed) % times;
        struct rfx_place_item item = {lo, lo + 1 + rand_r(seed) % (times - lo),
                                      (size_t)(1 + rand_r(seed) % sizes), 1};
        if (aligned) item.alignment = alignments[rand_r(seed) % 6];
        items[i] = item;
    }
    return n;
}

static void print_items(const struct rfx_place_item *items, int n) {
    for (int i = 0; i < n; i++)
        print_error("{%lld, %lld, %zu, %zu}, ", (long long)items[i].lo, (long long)items[i].hi,
                    items[i].size, items[i].alignment);
    print_error("\n");
}

/* The search alone, climbing from the bound, and the packer as a whole both equal brute force. */
static void equals_brute_force(void **state) {
    (void)state;
    int cases = (int)test_env_int("RFX_CASES", 1000);
    int above = 0;
    unsigned seed = 7;
    for (int k = 0; k < cases; k++) {
        struct rfx_place_item items[MAX_SMALL];
        int n = random_items(items, &seed);
        size_t optimum = brute_optimum(items, n);
        struct rfx_packer_result result = solve(items, n, &unlimited);
        struct rfx_place_problem *problem = placement_problem(items, n);
        struct rfx_exact_search *search;
        assert_int_equal(rfx_exact_create(problem, &search, NULL), RFX_OK);
        size_t capacity = problem->lower_bound, offsets[MAX_SMALL];
        enum rfx_exact_outcome outcome = RFX_EXACT_EXHAUSTED;
        while (outcome == RFX_EXACT_EXHAUSTED) {
            struct rfx_exact_request request = {
                .capacity_bytes = capacity,
                .order = (enum rfx_exact_order)(k % RFX_EXACT_ORDER_COUNT),
                .seed = (uint64_t)k,
                .nodes = UINT64_MAX};
            size_t next = 0;
            uint64_t nodes = 0;
            outcome = rfx_exact_probe(search, &request, offsets, &next, &nodes);
            if (outcome != RFX_EXACT_EXHAUSTED) break;
            assert_true(next > capacity);
            capacity = next;
        }
        above += optimum > problem->lower_bound;
        if (result.arena_bytes != optimum || !result.optimal || capacity != optimum) {
            print_items(items, n);
            fail_msg("case %d: packer %zu, search %zu, brute force %zu", k, result.arena_bytes,
                     capacity, optimum);
        }
        assert_true(rfx_place_answer_is_valid(items, n, offsets, capacity));
        rfx_exact_free(search);
        rfx_place_problem_free(problem);
    }
    if (cases >= 400) assert_true(above > cases / 100); /* not only easy ones */
}

/* A problem without a spare byte at any time has the height of its rectangle as optimum, which is
 * found nearly always. More families, and longer: test_packer_threads.c and
 * tests/acceptance/packing.py. */
static void perfect_packings(void **state) {
    (void)state;
    static const char *const families[] = {"cuts", "spirals", "cuts-few-sizes"};
    int cases = (int)test_env_int("RFX_HARD", 1);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        const struct packing_family *family = packing_find(families[f]);
        int found = 0;
        for (int k = 0; k < cases; k++) {
            struct packing_case made = packing_make(family, (uint64_t)(1 + k), 150, 450);
            struct rfx_packer_limits limits = {.time_ns =
                                                   test_env_int("RFX_HARD_MS", 10000) * 1000000};
            struct rfx_packer_result result = solve(made.items, made.n, &limits);
            assert_int_equal(result.lower_bound_bytes, made.capacity);
            found += result.arena_bytes == made.capacity;
            free(made.items);
        }
        print_message("%s: %d of %d\n", family->name, found, cases);
        assert_true(found * 10 >= cases * 9);
    }
}

static void limits_are_kept(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals"), 5, 400, 400);
    const struct rfx_place_item *items = made.items;
    int n = made.n;
    struct rfx_packer_limits few = {.nodes = 300};
    struct rfx_packer_result result = solve(items, n, &few);
    assert_true(result.nodes <= 301);
    struct rfx_packer_result again = solve(items, n, &few);
    assert_int_equal(again.arena_bytes, result.arena_bytes);
    struct rfx_packer_limits generous = {.target_bytes = 3 * made.capacity};
    assert_true(solve(items, n, &generous).arena_bytes <= 3 * made.capacity);
    struct rfx_packer_limits impossible = {.target_bytes = made.capacity - 1};
    assert_true(solve(items, n, &impossible).lower_bound_bytes >= made.capacity);
    free(made.items);
}

static void every_allocation_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals"), 3, 36, 36);
    size_t offsets[MAX_SMALL + 36];
    assert_true(made.n <= MAX_SMALL + 36);
    size_t before = rfx_memory_current_bytes(placement_mem);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status == RFX_STATUS_OUT_OF_MEMORY && k < 1000; k++) {
        struct rfx_place_problem *problem = NULL;
        struct rfx_packer_result result;
        struct rfx_packer_limits limits = {.nodes = 100};
        rfx_memory_fail_after(placement_mem, k);
        status = rfx_place_problem_create(placement_mem, made.items, made.n, &problem, NULL);
        if (status == RFX_OK) status = rfx_packer_solve(problem, &limits, offsets, &result, NULL);
        rfx_memory_fail_after(placement_mem, -1);
        rfx_place_problem_free(problem);
        assert_int_equal(rfx_memory_current_bytes(placement_mem), before);
    }
    assert_int_equal(status, RFX_OK);
    assert_true(k > 10);
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_and_one),    cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(equals_brute_force), cmocka_unit_test(perfect_packings),
        cmocka_unit_test(limits_are_kept),    cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
