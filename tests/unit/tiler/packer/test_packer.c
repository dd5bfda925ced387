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
#include <time.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/packer/packer.h"
#include "tiler/packer/packer_search.h"
#include "tiler/strategies/placement_offsets.h"

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

static const struct rfx_packer_limits unlimited = {0, 0, 0};

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
        struct rfx_search *search;
        assert_int_equal(rfx_search_create(problem, &search, NULL), RFX_OK);
        size_t capacity = problem->lower_bound, offsets[MAX_SMALL];
        enum rfx_search_outcome outcome = RFX_SEARCH_EXHAUSTED;
        while (outcome == RFX_SEARCH_EXHAUSTED) {
            struct rfx_search_request request = {
                capacity, (enum rfx_search_order)(k % RFX_SEARCH_ORDER_COUNT), (uint64_t)k,
                UINT64_MAX, 0};
            size_t next = 0;
            uint64_t nodes = 0;
            outcome = rfx_search_probe(search, &request, offsets, &next, &nodes);
            if (outcome != RFX_SEARCH_EXHAUSTED) break;
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
        rfx_search_free(search);
        rfx_place_problem_free(problem);
    }
    if (cases >= 400) assert_true(above > cases / 100); /* not only easy ones */
}

struct piece {
    int64_t lo, hi;
    size_t bottom, top;
};

/* Cuts piece i into five round a spiral, which no straight cuts can do; false: it is too small. */
static bool cut_spiral(struct piece *pieces, int i, int *count, unsigned *seed) {
    struct piece p = pieces[i];
    if (p.hi - p.lo < 3 || p.top - p.bottom < 3) return false;
    int64_t t1 = p.lo + 1 + rand_r(seed) % (p.hi - p.lo - 2);
    int64_t t2 = t1 + 1 + rand_r(seed) % (p.hi - t1 - 1);
    size_t b1 = p.bottom + 1 + (size_t)rand_r(seed) % (p.top - p.bottom - 2);
    size_t b2 = b1 + 1 + (size_t)rand_r(seed) % (p.top - b1 - 1);
    const struct piece five[] = {{p.lo, t1, p.bottom, b2},
                                 {t1, p.hi, p.bottom, b1},
                                 {t2, p.hi, b1, p.top},
                                 {p.lo, t2, b2, p.top},
                                 {t1, t2, b1, b2}};
    pieces[i] = five[0];
    for (int k = 1; k < 5; k++) pieces[(*count)++] = five[k];
    return true;
}

/* A rectangle of time x bytes, cut again and again: its pieces fill it perfectly. With `spirals`
 * every other cut is one. */
static int cut_rectangle(struct rfx_place_item *items, int n, int64_t time, size_t bytes,
                         bool spirals, unsigned *seed) {
    struct piece pieces[MAX_HARD + 4];
    struct piece whole = {0, time, 0, bytes};
    pieces[0] = whole;
    int count = 1;
    while (count < n) {
        int i = rand_r(seed) % count;
        int other = rand_r(seed) % count; /* larger pieces are cut more often */
        if ((uint64_t)(pieces[other].hi - pieces[other].lo) *
                (pieces[other].top - pieces[other].bottom) >
            (uint64_t)(pieces[i].hi - pieces[i].lo) * (pieces[i].top - pieces[i].bottom))
            i = other;
        if (spirals && rand_r(seed) % 2 == 0 && cut_spiral(pieces, i, &count, seed)) continue;
        struct piece *a = &pieces[i];
        struct piece b = *a;
        if (rand_r(seed) % 2 == 0) {
            if (a->hi - a->lo < 2) continue;
            a->hi = b.lo = a->lo + 1 + rand_r(seed) % (a->hi - a->lo - 1);
        } else {
            if (a->top - a->bottom < 2) continue;
            a->top = b.bottom = a->bottom + 1 + (size_t)rand_r(seed) % (a->top - a->bottom - 1);
        }
        pieces[count++] = b;
    }
    for (int i = count - 1; i > 0; i--) { /* no hint in the order */
        int j = rand_r(seed) % (i + 1);
        struct piece swap = pieces[i];
        pieces[i] = pieces[j];
        pieces[j] = swap;
    }
    for (int i = 0; i < count; i++) {
        struct rfx_place_item item = {pieces[i].lo, pieces[i].hi, pieces[i].top - pieces[i].bottom,
                                      1};
        items[i] = item;
    }
    return count;
}

/* Takes away one item of `one_in`, and up to `percent` of the size of the others; returns how many
 * are left. What is left still fits where it was. */
static int loosen(struct rfx_place_item *items, int n, int one_in, int percent, unsigned *seed) {
    int left = 0;
    for (int i = 0; i < n; i++) {
        if (one_in > 0 && rand_r(seed) % one_in == 0) continue;
        struct rfx_place_item item = items[i];
        if (percent > 0) item.size -= item.size * (size_t)(rand_r(seed) % (100 * percent)) / 10000;
        items[left++] = item;
    }
    return left;
}

/* Problems cut out of a rectangle. Those without slack have its height as optimum, which is found
 * nearly always; of the others it is a capacity that is known to be enough. */
static const struct {
    const char *name;
    size_t bytes;
    bool spirals;
    int one_in, percent; /* of loosen */
} kinds[] = {
    {"straight cuts", 1 << 20, false, 0, 0},
    {"spirals", 1 << 20, true, 0, 0},
    {"straight cuts, few sizes", 256, false, 0, 0},
    {"spirals, few sizes", 256, true, 0, 0},
    {"straight cuts, one in 20 gone", 1 << 20, false, 20, 0},
    {"spirals, one in 20 gone", 1 << 20, true, 20, 0},
    {"straight cuts, up to 5 % smaller", 1 << 20, false, 0, 5},
    {"spirals, up to 5 % smaller", 1 << 20, true, 0, 5},
};

static void perfect_packings(void **state) {
    (void)state;
    int cases = (int)test_env_int("RFX_HARD", 1);
    for (size_t kind = 0; kind < (cases == 1 ? 3 : sizeof kinds / sizeof *kinds); kind++) {
        size_t bytes = kinds[kind].bytes;
        bool slack = kinds[kind].one_in > 0 || kinds[kind].percent > 0;
        int found = 0;
        for (int k = 0; k < cases; k++) {
            struct rfx_place_item items[MAX_HARD];
            unsigned seed = (unsigned)(1000 + k);
            int n = cut_rectangle(items, 150 + rand_r(&seed) % 301, 200, bytes, kinds[kind].spirals,
                                  &seed);
            n = loosen(items, n, kinds[kind].one_in, kinds[kind].percent, &seed);
            struct rfx_packer_limits limits = {0, test_env_int("RFX_HARD_MS", 10000) * 1000000,
                                               slack ? bytes : 0};
            clock_t begin = clock();
            struct rfx_packer_result result = solve(items, n, &limits);
            assert_true(slack || result.lower_bound_bytes == bytes);
            assert_true(result.lower_bound_bytes <= bytes);
            found += result.arena_bytes <= bytes;
            print_message("%s, %d records: %zu in %zu, bound %zu, %llu nodes, %.2f s\n",
                          kinds[kind].name, n, result.arena_bytes, bytes, result.lower_bound_bytes,
                          (unsigned long long)result.nodes,
                          (double)(clock() - begin) / CLOCKS_PER_SEC);
        }
        print_message("%s: %d of %d\n", kinds[kind].name, found, cases);
        if (kind < 3) assert_true(found * 10 >= cases * 9);
    }
}

static void limits_are_kept(void **state) {
    (void)state;
    struct rfx_place_item items[MAX_HARD];
    unsigned seed = 5;
    int n = cut_rectangle(items, 400, 300, 100003, true, &seed);
    struct rfx_packer_limits few = {.nodes = 300};
    struct rfx_packer_result result = solve(items, n, &few);
    assert_true(result.nodes <= 301);
    struct rfx_packer_result again = solve(items, n, &few);
    assert_int_equal(again.arena_bytes, result.arena_bytes);
    struct rfx_packer_limits generous = {.target_bytes = 300000};
    assert_true(solve(items, n, &generous).arena_bytes <= 300000);
    struct rfx_packer_limits impossible = {.target_bytes = 100002};
    assert_true(solve(items, n, &impossible).lower_bound_bytes > 100002);
}

static void every_allocation_can_fail(void **state) {
    (void)state;
    struct rfx_place_item items[40];
    size_t offsets[40];
    unsigned seed = 3;
    int n = cut_rectangle(items, 36, 50, 1000, true, &seed);
    size_t before = rfx_memory_current_bytes(placement_mem);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status == RFX_STATUS_OUT_OF_MEMORY && k < 1000; k++) {
        struct rfx_place_problem *problem = NULL;
        struct rfx_packer_result result;
        struct rfx_packer_limits limits = {.nodes = 100};
        rfx_memory_fail_after(placement_mem, k);
        status = rfx_place_problem_create(placement_mem, items, n, &problem, NULL);
        if (status == RFX_OK) status = rfx_packer_solve(problem, &limits, offsets, &result, NULL);
        rfx_memory_fail_after(placement_mem, -1);
        rfx_place_problem_free(problem);
        assert_int_equal(rfx_memory_current_bytes(placement_mem), before);
    }
    assert_int_equal(status, RFX_OK);
    assert_true(k > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_and_one),    cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(equals_brute_force), cmocka_unit_test(perfect_packings),
        cmocka_unit_test(limits_are_kept),    cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
