/* Forests of PQ-trees against explicit lists of all pairs of orders: random changes on both sides
 * of up to five items. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/fronts/fronts_judge.h"

enum {
    MAX_START = 5,
    MAX_LEAVES = 7,
    MAX_PAIRS = 20000,
    MAX_NAMES = 64,
    MAX_NODES = 32,
    CHANGES = 8
};

/* Orders of what lies on the later and on the earlier side, of the same bytes. */
struct pairs {
    int n, length[RFX_FRONT_SIDES];
    char leaf[MAX_PAIRS][RFX_FRONT_SIDES][MAX_LEAVES];
};

static struct pairs now, next; /* too large for the stack */

/* Adds the orders of `n` leaves from place k on to what lies on `side` from `at` on. */
static void add_orders(const struct pairs *from, int pair, int side, int at, int n, int k) {
    static char made[RFX_FRONT_SIDES][MAX_LEAVES];
    if (k == 0) memcpy(made, from->leaf[pair], sizeof made);
    if (k == n) {
        assert_true(next.n < MAX_PAIRS);
        memcpy(next.leaf[next.n++], made, sizeof made);
        return;
    }
    for (int i = k; i < n; i++) {
        char swap = made[side][at + i];
        made[side][at + i] = made[side][at + k];
        made[side][at + k] = swap;
        add_orders(from, pair, side, at, n, k + 1);
        made[side][at + k] = made[side][at + i];
        made[side][at + i] = swap;
    }
}

/* Where what goes begins, -1: it does not lie together. */
static int run_start(const char *order, int length, const int *gone, int n) {
    int first = length;
    int last = -1;
    for (int i = 0; i < length; i++) {
        for (int k = 0; k < n; k++) {
            if (order[i] != gone[k]) continue;
            first = i < first ? i : first;
            last = i;
        }
    }
    return last - first + 1 == n ? first : -1;
}

/* All pairs after a change: of each that allows it, with what comes in every order. */
static void change_pairs(const struct rfx_forest_change *change) {
    static struct pairs one;
    int side = change->side;
    next.n = 0;
    next.length[1 - side] = now.length[1 - side];
    next.length[side] = now.length[side] - change->n_gone + change->n_with;
    for (int p = 0; p < now.n; p++) {
        int at = run_start(now.leaf[p][side], now.length[side], change->gone, change->n_gone);
        if (at < 0) continue;
        bool is_double = false; /* what went lies there in another order */
        memcpy(one.leaf[0], now.leaf[p], sizeof one.leaf[0]);
        char *order = one.leaf[0][side];
        memmove(&order[at + change->n_with], &now.leaf[p][side][at + change->n_gone],
                (size_t)(now.length[side] - at - change->n_gone));
        for (int k = 0; k < change->n_with; k++) order[at + k] = (char)change->with[k];
        for (int q = 0; q < next.n && !is_double; q++)
            is_double = memcmp(next.leaf[q][side], order, (size_t)next.length[side]) == 0 &&
                        memcmp(next.leaf[q][1 - side], one.leaf[0][1 - side],
                               (size_t)next.length[1 - side]) == 0;
        if (!is_double) add_orders(&one, 0, side, at, change->n_with, 0);
    }
}

static void start_pairs(int n) {
    static struct pairs one;
    for (int side = 0; side < RFX_FRONT_SIDES; side++) {
        next.length[side] = n;
        for (int i = 0; i < n; i++) one.leaf[0][side][i] = (char)i;
    }
    next.n = 0;
    add_orders(&one, 0, 0, 0, n, 0);
    for (int p = 0; p < next.n; p++) memcpy(next.leaf[p][1], next.leaf[p][0], MAX_LEAVES);
    now = next;
}

struct bench {
    struct rfx_place_item items[MAX_NAMES];
    int first[MAX_NAMES], last[MAX_NAMES];
    struct rfx_place_problem problem;
    struct rfx_front_times times;
    struct rfx_forests forests;
    struct rfx_front_judge judge;
};

static void set_up_bench(struct bench *b) {
    *b = (struct bench){.times = {.max_live = MAX_LEAVES + 2}};
    b->problem = (struct rfx_place_problem){.mem = placement_mem,
                                            .n = MAX_NAMES,
                                            .items = b->items,
                                            .first = b->first,
                                            .last = b->last};
    for (int i = 0; i < MAX_NAMES; i++) b->items[i].size = (size_t)i + 1;
    assert_int_equal(rfx_forests_init(&b->forests, placement_mem, MAX_NAMES, MAX_LEAVES + 2, NULL),
                     RFX_OK);
    assert_int_equal(rfx_front_judge_init(&b->judge, &b->problem, &b->times, NULL), RFX_OK);
}

/* The items that go: a run of some pair, or by chance any. */
static int choose_gone(struct test_rng *rng, int side, int *gone) {
    const char *order = now.leaf[test_rng_int(rng, 0, now.n - 1)][side];
    int length = now.length[side];
    int n = (int)test_rng_int(rng, 1, length < 4 ? length : 4);
    int at = (int)test_rng_int(rng, 0, length - n);
    for (int i = 0; i < n; i++) gone[i] = order[at + i];
    if (n < length && test_rng_chance(rng, 20)) gone[n - 1] = order[at > 0 ? 0 : length - 1];
    return n;
}

/* Whether the forest's first order is one of the pairs. */
static bool holds_frontier(const struct rfx_forest *forest) {
    char made[RFX_FRONT_SIDES][MAX_LEAVES];
    for (int side = 0; side < RFX_FRONT_SIDES; side++) {
        int n = 0;
        for (int i = 0; i < forest->n_nodes[side]; i++)
            if (forest->nodes[side][i].what >= 0)
                made[side][n++] = (char)forest->nodes[side][i].what;
        assert_int_equal(n, now.length[side]);
    }
    for (int p = 0; p < now.n; p++)
        if (memcmp(now.leaf[p][0], made[0], (size_t)now.length[0]) == 0 &&
            memcmp(now.leaf[p][1], made[1], (size_t)now.length[1]) == 0)
            return true;
    return false;
}

/* Returns how many changes across trees, of which one went in part, there were. */
static int try_case(struct bench *b, uint64_t seed) {
    struct rfx_pq_node nodes[2][RFX_FRONT_SIDES][MAX_NODES];
    struct rfx_forest forests[2];
    struct test_rng rng = test_rng_make(seed);
    int n = (int)test_rng_int(&rng, 2, MAX_START);
    int start[MAX_START] = {0, 1, 2, 3, 4};
    int name = n;
    int linked = 0;
    int at = 0;
    for (int k = 0; k < 2; k++)
        for (int side = 0; side < RFX_FRONT_SIDES; side++) forests[k].nodes[side] = nodes[k][side];
    start_pairs(n);
    rfx_forest_make(&b->problem, start, n, &forests[0]);
    for (int k = 0; k < CHANGES; k++) {
        int gone[MAX_LEAVES];
        int with[MAX_LEAVES];
        int leaves[MAX_LEAVES];
        struct rfx_forest_tree made;
        struct rfx_pq_run run = {.leaves = leaves};
        struct rfx_forest_change change = {.side = (int)test_rng_int(&rng, 0, 1), gone, with, 0, 0};
        change.n_gone = choose_gone(&rng, change.side, gone);
        change.n_with = (int)test_rng_int(&rng, 1, 3);
        if (now.length[change.side] - change.n_gone + change.n_with > MAX_LEAVES) continue;
        if (now.n > MAX_PAIRS / 6) break;
        for (int i = 0; i < change.n_with; i++) with[i] = name++;
        change_pairs(&change);
        struct rfx_front_sums sums = rfx_front_judge_all(&b->judge, &forests[at]);
        rfx_front_judge_enter(&b->judge, &sums);
        rfx_forest_enter(&b->forests, &forests[at], change.side);
        bool possible =
            rfx_forest_replace(&b->forests, &forests[at], &change, &forests[1 - at], &made, &run);
        if (possible != (next.n > 0)) fail_msg("case %llu: change %d", (unsigned long long)seed, k);
        if (!possible) break;
        now = next;
        at = 1 - at;
        sums =
            rfx_front_judge_change(&b->judge, &b->forests, &forests[1 - at], &forests[at], &made);
        struct rfx_front_sums whole = rfx_front_judge_all(&b->judge, &forests[at]);
        assert_true(sums.hash == whole.hash && sums.orders == whole.orders);
        double orders = rfx_front_orders(&b->judge, &sums, forests[at].n_trees);
        if (lround(exp(orders)) != now.n || !holds_frontier(&forests[at]))
            fail_msg("case %llu, change %d: %ld orders for %d", (unsigned long long)seed, k,
                     lround(exp(orders)), now.n);
        assert_int_equal(run.count, change.n_gone);
        linked += rfx_forest_has(&forests[at].linked, made.number);
    }
    return linked;
}

static void changes_keep_what_is_possible(void **state) {
    (void)state;
    static struct bench b;
    int linked = 0;
    set_up_bench(&b);
    for (uint64_t seed = 0; seed < 2000; seed++) linked += try_case(&b, seed);
    assert_true(linked > 500);
    rfx_forests_release(&b.forests);
    rfx_front_judge_release(&b.judge);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_keep_what_is_possible)};
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
