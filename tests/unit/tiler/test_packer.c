/* The packer: hand-made problems, brute force on small ones, and problems cut backwards out of a
 * perfect packing, whose optimum is known. RFX_CASES sets how many random problems (default 400),
 *  RFX_SMALL their largest number of items (default 8, at most 12), RFX_HARD how many perfect ones
 * (default 1) of RFX_HARD_MS each (default 2000). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tiler/packer.h"
#include "tiler/packer_search.h"
#include "tiler/placement_offsets.h"

enum { MAX_SMALL = 12, MAX_HARD = 512 };

static struct rfx_memory *mem;

static int number_from(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

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
    struct rfx_place_problem *problem;
    assert_int_equal(rfx_place_problem_create(mem, items, n, &problem, NULL), RFX_OK);
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

/* The least arena over all orders of the items, each put at the lowest place that is free above
 * nothing but what came before: every bottom-justified packing is among these. Independent of the
 * search: no sections, no bounds but the best answer. */
struct brute {
    const struct rfx_place_item *items;
    int n;
    size_t offsets[MAX_SMALL];
    bool placed[MAX_SMALL];
    size_t best;
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

static void brute_force(struct brute *brute, int depth, size_t arena, size_t last) {
    if (arena >= brute->best) return;
    if (depth == brute->n) {
        brute->best = arena;
        return;
    }
    for (int i = 0; i < brute->n; i++)
        if (!brute->placed[i] && brute_floor(brute, i) + brute->items[i].size >= brute->best)
            return;
    for (int i = 0; i < brute->n; i++) {
        if (brute->placed[i]) continue;
        size_t offset = brute_floor(brute, i);
        if (offset < last) continue; /* items by rising offset are enough */
        size_t top = offset + brute->items[i].size;
        brute->placed[i] = true;
        brute->offsets[i] = offset;
        brute_force(brute, depth + 1, top > arena ? top : arena, offset);
        brute->placed[i] = false;
    }
}

static int random_items(struct rfx_place_item *items, unsigned *seed) {
    static const size_t alignments[] = {1, 1, 1, 2, 4, 8};
    int n = 1 + rand_r(seed) % number_from("RFX_SMALL", 8);
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
    int cases = number_from("RFX_CASES", 400);
    int above = 0;
    unsigned seed = 7;
    for (int k = 0; k < cases; k++) {
        struct rfx_place_item items[MAX_SMALL];
        struct brute brute = {.items = items, .n = random_items(items, &seed), .best = SIZE_MAX};
        brute_force(&brute, 0, 0, 0);
        struct rfx_packer_result result = solve(items, brute.n, &unlimited);
        struct rfx_place_problem *problem;
        struct rfx_search *search;
        assert_int_equal(rfx_place_problem_create(mem, items, brute.n, &problem, NULL), RFX_OK);
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
        above += brute.best > problem->lower_bound;
        if (result.arena_bytes != brute.best || !result.optimal || capacity != brute.best) {
            print_items(items, brute.n);
            fail_msg("case %d: packer %zu, search %zu, brute force %zu", k, result.arena_bytes,
                     capacity, brute.best);
        }
        assert_true(rfx_place_answer_is_valid(items, brute.n, offsets, capacity));
        rfx_search_free(search);
        rfx_place_problem_free(problem);
    }
    if (cases >= 400) assert_true(above > cases / 100); /* not only easy ones */
}

/* A rectangle of time x bytes, cut again and again into two: its pieces fill it perfectly. */
static int cut_rectangle(struct rfx_place_item *items, int n, int64_t time, size_t bytes,
                         unsigned *seed) {
    size_t at[MAX_HARD] = {0};
    struct rfx_place_item whole = {0, time, bytes, 1};
    items[0] = whole;
    for (int count = 1; count < n;) {
        int i = rand_r(seed) % count;
        int other = rand_r(seed) % count; /* larger pieces are cut more often */
        uint64_t area_i = (uint64_t)(items[i].hi - items[i].lo) * items[i].size;
        uint64_t area_o = (uint64_t)(items[other].hi - items[other].lo) * items[other].size;
        if (area_o > area_i) i = other;
        struct rfx_place_item *a = &items[i];
        struct rfx_place_item b = *a;
        at[count] = at[i];
        if (rand_r(seed) % 2 == 0) {
            if (a->hi - a->lo < 2) continue;
            b.lo = a->lo + 1 + rand_r(seed) % (a->hi - a->lo - 1);
            a->hi = b.lo;
        } else {
            if (a->size < 2) continue;
            a->size = 1 + (size_t)rand_r(seed) % (a->size - 1);
            b.size -= a->size;
            at[count] += a->size;
        }
        items[count++] = b;
    }
    for (int i = n - 1; i > 0; i--) { /* no hint in the order */
        int j = rand_r(seed) % (i + 1);
        struct rfx_place_item swap = items[i];
        items[i] = items[j];
        items[j] = swap;
    }
    return n;
}

static void perfect_packings(void **state) {
    (void)state;
    int cases = number_from("RFX_HARD", 1);
    int found = 0;
    for (int k = 0; k < cases; k++) {
        struct rfx_place_item items[MAX_HARD];
        unsigned seed = (unsigned)(1000 + k);
        int n = cut_rectangle(items, 150 + rand_r(&seed) % 301, 200, (size_t)1 << 20, &seed);
        struct rfx_packer_limits limits = {0, (int64_t)number_from("RFX_HARD_MS", 2000) * 1000000,
                                           0};
        struct timespec t0, t1;
        (void)clock_gettime(CLOCK_MONOTONIC, &t0);
        struct rfx_packer_result result = solve(items, n, &limits);
        (void)clock_gettime(CLOCK_MONOTONIC, &t1);
        assert_int_equal(result.lower_bound_bytes, (size_t)1 << 20);
        found += result.optimal;
        print_message("%d records: %zu of 1048576, %s, %llu nodes, %.2f s\n", n, result.arena_bytes,
                      result.method, (unsigned long long)result.nodes,
                      (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9);
    }
    print_message("%d of %d at the optimum\n", found, cases);
    assert_true(found * 10 >= cases * 9);
}

static void limits_are_kept(void **state) {
    (void)state;
    struct rfx_place_item items[MAX_HARD];
    unsigned seed = 5;
    int n = cut_rectangle(items, 400, 300, 100003, &seed);
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
    int n = cut_rectangle(items, 40, 50, 1000, &seed);
    size_t before = rfx_memory_current_bytes(mem);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status == RFX_STATUS_OUT_OF_MEMORY && k < 1000; k++) {
        struct rfx_place_problem *problem = NULL;
        struct rfx_packer_result result;
        struct rfx_packer_limits limits = {.nodes = 100};
        rfx_memory_fail_after(mem, k);
        status = rfx_place_problem_create(mem, items, n, &problem, NULL);
        if (status == RFX_OK) status = rfx_packer_solve(problem, &limits, offsets, &result, NULL);
        rfx_memory_fail_after(mem, -1);
        rfx_place_problem_free(problem);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
    }
    assert_int_equal(status, RFX_OK);
    assert_true(k > 10);
}

static int set_up(void **state) {
    (void)state;
    mem = rfx_memory_create(0);
    return mem == NULL;
}

static int tear_down(void **state) {
    (void)state;
    rfx_memory_free(mem);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_and_one),    cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(equals_brute_force), cmocka_unit_test(perfect_packings),
        cmocka_unit_test(limits_are_kept),    cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
