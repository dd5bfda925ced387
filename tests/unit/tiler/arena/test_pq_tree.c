/* PQ-trees against explicit lists of all orders: random replacements on up to seven leaves. */
#include "tiler/arena/pq_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

enum { MAX_LEAVES = 7, MAX_ORDERS = 5040, MAX_NAMES = 64 };

struct orders {
    int n, length;
    char leaf[MAX_ORDERS][MAX_LEAVES];
};

static struct orders now, next; /* too large for the stack */

/* Steps to the next permutation in lexical order; false after the last. */
static bool permute(char *values, int n) {
    int i = n - 2;
    while (i >= 0 && values[i] >= values[i + 1]) i--;
    if (i < 0) return false;
    int j = n - 1;
    while (values[j] <= values[i]) j--;
    char swap = values[i];
    values[i] = values[j];
    values[j] = swap;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        swap = values[a];
        values[a] = values[b];
        values[b] = swap;
    }
    return true;
}

static int place_of(const char *order, int length, int leaf) {
    for (int i = 0; i < length; i++)
        if (order[i] == leaf) return i;
    return -1;
}

/* Where the gone leaves of an order begin, -1 when they are not together. */
static int block_start(const char *order, int length, const bool *gone, int n_gone) {
    int start = 0;
    while (!gone[(int)order[start]]) start++;
    for (int i = start; i < start + n_gone; i++)
        if (i >= length || !gone[(int)order[i]]) return -1;
    return start;
}

static bool holds(const struct orders *orders, const char *order) {
    for (int i = 0; i < orders->n; i++)
        if (memcmp(orders->leaf[i], order, (size_t)orders->length) == 0) return true;
    return false;
}

/* The orders after a replacement, by trying all. */
static void replace_naively(const bool *gone, int n_gone, const int *with, int n_with) {
    next.n = 0;
    next.length = now.length - n_gone + n_with;
    for (int k = 0; k < now.n; k++) {
        const char *order = now.leaf[k];
        char block[MAX_LEAVES], made[MAX_LEAVES];
        int start = block_start(order, now.length, gone, n_gone);
        if (start < 0) continue;
        for (int i = 0; i < n_with; i++) block[i] = (char)with[i];
        do {
            memcpy(made, order, (size_t)start);
            memcpy(&made[start], block, (size_t)n_with);
            memcpy(&made[start + n_with], &order[start + n_gone],
                   (size_t)(now.length - start - n_gone));
            if (!holds(&next, made)) memcpy(next.leaf[next.n++], made, (size_t)next.length);
        } while (permute(block, n_with));
    }
}

/* How many orders a tree stands for; -1 when it is malformed. */
static int count_orders(const struct rfx_pq_node *tree, int n) {
    int count = 1;
    for (int i = 0; i < n; i++) {
        if (tree[i].what >= 0) continue;
        int children = 0;
        int factorial = 1;
        for (int k = i + 1; k < i + tree[i].span; k += tree[k].span) factorial *= ++children;
        if (children < 2 || i + tree[i].span > n) return -1;
        count *= tree[i].what == RFX_PQ_P ? factorial : 2;
    }
    return count;
}

static int frontier(const struct rfx_pq_node *tree, int n, char *order) {
    int length = 0;
    for (int i = 0; i < n; i++)
        if (tree[i].what >= 0) order[length++] = (char)tree[i].what;
    return length;
}

/* The first order of the new tree, with the run where the new leaves lie, is one of the old. */
static void check_run(const struct rfx_pq_node *tree, int n_nodes, const bool *added, int n_added,
                      const struct rfx_pq_run *run) {
    char after[MAX_LEAVES], before[MAX_LEAVES];
    int length = frontier(tree, n_nodes, after);
    int start = block_start(after, length, added, n_added);
    bool reversed = false;
    assert_true(start >= 0);
    if (run->anchor >= 0) {
        int at = place_of(after, length, run->anchor);
        assert_true(at >= 0 && !added[run->anchor]);
        reversed = (at < start) != run->anchor_first;
    }
    memcpy(before, after, (size_t)start);
    for (int i = 0; i < run->count; i++)
        before[start + i] = (char)run->leaves[reversed ? run->count - 1 - i : i];
    memcpy(&before[start + run->count], &after[start + n_added],
           (size_t)(length - start - n_added));
    assert_int_equal(length - n_added + run->count, now.length);
    assert_true(holds(&now, before));
}

static void random_replacements(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_pq *pq;
    int possible = 0;
    int impossible = 0;
    assert_int_equal(rfx_pq_create(mem, MAX_LEAVES, &pq, NULL), RFX_OK);
    int cases = (int)test_env_int("RFX_CASES", 1000);
    for (int k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct rfx_pq_node tree[2 * MAX_LEAVES], made[2 * MAX_LEAVES];
        int names = (int)test_rng_int(&rng, 1, MAX_LEAVES);
        int leaves[MAX_LEAVES];
        for (int i = 0; i < names; i++) leaves[i] = i;
        int n_nodes = rfx_pq_make(leaves, names, tree);
        now.n = 0;
        now.length = names;
        char first[MAX_LEAVES];
        for (int i = 0; i < names; i++) first[i] = (char)i;
        do memcpy(now.leaf[now.n++], first, (size_t)names);
        while (permute(first, names));
        while (names + MAX_LEAVES < MAX_NAMES) {
            bool gone[MAX_NAMES] = {false}, added[MAX_NAMES] = {false};
            int with[MAX_LEAVES], run_leaves[MAX_LEAVES];
            int n_gone = 0;
            for (int i = 0; i < now.length; i++) {
                if (!test_rng_chance(&rng, 40)) continue;
                gone[(int)now.leaf[0][i]] = true;
                n_gone++;
            }
            if (n_gone == 0) continue;
            int n_with = (int)test_rng_int(&rng, 1, MAX_LEAVES - now.length + n_gone);
            if (n_with > 3) n_with = 3;
            for (int i = 0; i < n_with; i++) {
                added[names] = true;
                with[i] = names++;
            }
            struct rfx_pq_run run = {.leaves = run_leaves};
            int n = rfx_pq_replace(pq, tree, n_nodes, gone, n_gone, with, n_with, made, &run);
            replace_naively(gone, n_gone, with, n_with);
            assert_int_equal(n > 0, next.n > 0);
            if (n == 0) {
                impossible++;
                break;
            }
            possible++;
            assert_int_equal(count_orders(made, n), next.n);
            char order[MAX_LEAVES];
            assert_int_equal(frontier(made, n, order), next.length);
            assert_true(holds(&next, order));
            check_run(made, n, added, n_with, &run);
            memcpy(tree, made, sizeof tree);
            n_nodes = n;
            now = next;
        }
    }
    assert_true(possible > cases && impossible > cases / 4);
    rfx_pq_free(pq);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_replacements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
