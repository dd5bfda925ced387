/* Numbers of orders that are left, against forests in which it was done: random changes of up to
 * thirty items, and whatever may go then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/fronts/fronts_counts.h"

enum { MAX_LIVE = 40, N_ITEMS = 256, MAX_NODES = 2 * MAX_LIVE, CHANGES = 40, QUESTIONS = 20 };

struct bench {
    struct rfx_place_item items[N_ITEMS];
    int first[N_ITEMS], last[N_ITEMS];
    struct rfx_place_problem problem;
    struct rfx_front_times times;
    struct rfx_forests forests;
    struct rfx_front_judge judge;
    struct rfx_front_counts counts;
    int yes, no, across, linked; /* answers of each kind */
};

static void set_up_bench(struct bench *b) {
    *b = (struct bench){.times = {.max_live = MAX_LIVE}};
    b->problem = (struct rfx_place_problem){
        .mem = placement_mem, .n = N_ITEMS, .items = b->items, .first = b->first, .last = b->last};
    for (int i = 0; i < N_ITEMS; i++) b->items[i].size = (size_t)i + 1;
    assert_int_equal(rfx_forests_init(&b->forests, placement_mem, N_ITEMS, MAX_LIVE, NULL), RFX_OK);
    assert_int_equal(rfx_front_judge_init(&b->judge, &b->problem, &b->times, NULL), RFX_OK);
    assert_int_equal(
        rfx_front_counts_init(&b->counts, &b->problem, &b->times, &b->forests, &b->judge, NULL),
        RFX_OK);
}

static void tear_down_bench(struct bench *b) {
    rfx_front_counts_release(&b->counts);
    rfx_front_judge_release(&b->judge);
    rfx_forests_release(&b->forests);
}

/* Lists the leaves of a side as they lie; their number. */
static int list_leaves(const struct rfx_forest *forest, int side, int *leaves) {
    int n = 0;
    for (int i = 0; i < forest->n_nodes[side]; i++)
        if (forest->nodes[side][i].what >= 0) leaves[n++] = forest->nodes[side][i].what;
    return n;
}

/* A run of leaves, and by chance some others. */
static int choose(struct test_rng *rng, const int *leaves, int n, int most, int *out) {
    int count = (int)test_rng_int(rng, 1, most < n ? most : n);
    int at = (int)test_rng_int(rng, 0, n - count);
    int chosen = 0;
    int others = test_rng_chance(rng, 50) ? 10 : 0;
    for (int i = 0; i < n; i++)
        if ((i >= at && i < at + count) || (others > 0 && test_rng_chance(rng, others)))
            out[chosen++] = leaves[i];
    return chosen;
}

/* Of what may go, some whole nodes: asks for the number of orders without them. */
static void ask(struct bench *b, struct test_rng *rng, const struct rfx_forest *from, int side,
                const int *ends) {
    struct rfx_pq_node nodes[RFX_FRONT_SIDES][MAX_NODES];
    struct rfx_forest to = {.nodes = {nodes[0], nodes[1]}};
    int gone[MAX_LIVE], leaves[MAX_LIVE], with[] = {N_ITEMS - 1};
    uint64_t mask = 0;
    int n = 0;
    for (uint64_t rest = b->counts.heads; rest != 0; rest &= rest - 1) {
        if (!test_rng_chance(rng, 50)) continue;
        int bit = __builtin_ctzll(rest), node = b->counts.node_of[bit];
        for (int i = node; i < node + from->nodes[side][node].span; i++) {
            if (from->nodes[side][i].what < 0) continue;
            gone[n++] = from->nodes[side][i].what;
            for (int k = 0; k < MAX_LIVE; k++)
                if (ends[k] == gone[n - 1]) mask |= (uint64_t)1 << k;
        }
    }
    if (n == 0) return;
    struct rfx_forest_change change = {side, gone, with, n, 1};
    struct rfx_forest_tree made;
    struct rfx_pq_run run = {.leaves = leaves};
    double orders = rfx_front_counts_without(&b->counts, mask);
    bool possible = rfx_forest_replace(&b->forests, from, &change, &to, &made, &run);
    assert_int_equal(orders >= 0, possible);
    b->no += !possible;
    if (!possible) return;
    struct rfx_front_sums sums = rfx_front_judge_change(&b->judge, &b->forests, from, &to, &made);
    if (orders != rfx_front_orders(&b->judge, &sums, to.n_trees))
        fail_msg("%g orders, not %g", orders, rfx_front_orders(&b->judge, &sums, to.n_trees));
    b->yes++;
    b->across += to.n_trees < from->n_trees;
    b->linked += rfx_forest_has(&to.linked, made.number);
}

static void enter(struct bench *b, const struct rfx_forest *forest, int side) {
    struct rfx_front_sums sums = rfx_front_judge_all(&b->judge, forest);
    rfx_front_judge_enter(&b->judge, &sums);
    rfx_forest_enter(&b->forests, forest, side);
}

static void try_case(struct bench *b, uint64_t seed) {
    struct rfx_pq_node nodes[2][RFX_FRONT_SIDES][MAX_NODES];
    struct rfx_forest forests[2];
    struct test_rng rng = test_rng_make(seed);
    int n = (int)test_rng_int(&rng, 1, 30), name = n, at = 0;
    int start[MAX_LIVE], lying[MAX_LIVE], gone[MAX_LIVE], with[MAX_LIVE], leaves[MAX_LIVE];
    for (int i = 0; i < n; i++) start[i] = i;
    for (int k = 0; k < 2; k++)
        for (int side = 0; side < RFX_FRONT_SIDES; side++) forests[k].nodes[side] = nodes[k][side];
    rfx_forest_make(&b->problem, start, n, &forests[0]);
    for (int k = 0; k < CHANGES; k++) {
        int ends[MAX_LIVE];
        int side = (int)test_rng_int(&rng, 0, 1);
        struct rfx_forest_change change = {.side = side, .gone = gone, .with = with};
        struct rfx_forest_tree made;
        struct rfx_pq_run run = {.leaves = leaves};
        int lie = list_leaves(&forests[at], side, lying);
        enter(b, &forests[at], side);
        for (int i = 0; i < MAX_LIVE; i++) ends[i] = -1;
        int n_ends = choose(&rng, lying, lie, 12, ends);
        rfx_front_counts_enter(&b->counts, &forests[at], side, ends, ((uint64_t)1 << n_ends) - 1);
        for (int q = 0; q < QUESTIONS; q++) ask(b, &rng, &forests[at], side, ends);
        change.n_gone = choose(&rng, lying, lie, 6, gone);
        change.n_with = (int)test_rng_int(&rng, 1, 4);
        if (lie - change.n_gone + change.n_with > 30 || name + change.n_with >= N_ITEMS) continue;
        for (int i = 0; i < change.n_with; i++) with[i] = name + i;
        if (!rfx_forest_replace(&b->forests, &forests[at], &change, &forests[1 - at], &made, &run))
            continue;
        name += change.n_with;
        at = 1 - at;
    }
}

static void counts_are_of_what_is_made(void **state) {
    (void)state;
    static struct bench b;
    set_up_bench(&b);
    for (uint64_t seed = 0; seed < 600; seed++) try_case(&b, seed);
    assert_true(b.yes > 20000 && b.no > 20000 && b.across > 5000 && b.linked > 5000);
    tear_down_bench(&b);
}

static void no_memory_is_said(void **state) {
    (void)state;
    struct bench b;
    int failed = 0;
    set_up_bench(&b);
    rfx_front_counts_release(&b.counts);
    for (int64_t k = 0; k < 10; k++) {
        struct rfx_error err = {""};
        rfx_memory_fail_after(placement_mem, k);
        enum rfx_status status =
            rfx_front_counts_init(&b.counts, &b.problem, &b.times, &b.forests, &b.judge, &err);
        rfx_front_counts_release(&b.counts);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        failed++;
    }
    rfx_memory_fail_after(placement_mem, -1);
    assert_int_equal(failed, 3);
    b.counts = (struct rfx_front_counts){.mem = NULL};
    tear_down_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_of_what_is_made),
                                       cmocka_unit_test(no_memory_is_said)};
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
