/* Blocks of what ends, by hand: what lies together, and how much room it has. */
#include "tiler/fronts/fronts_rooms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"

enum { ITEMS = 3, CAPACITY = 20 };

/* Items of 5, 7 and 4 bytes, numbered 2, 0 and 1 among the ends. */
static int blocks_of(struct rfx_pq_node *nodes, int n_nodes, const bool *marked,
                     struct rfx_front_block *blocks) {
    const struct rfx_place_item items[ITEMS] = {{0, 2, 5, 1}, {0, 2, 7, 1}, {0, 2, 4, 1}};
    int bits[ITEMS] = {2, 0, 1};
    struct rfx_place_problem *problem = placement_problem(items, ITEMS);
    struct rfx_front_times times = {.max_live = ITEMS, .bit = {bits, bits}};
    struct rfx_front_rooms rooms;
    struct rfx_forest forest = {.nodes = {nodes, nodes}, .n_nodes = {n_nodes, n_nodes}};
    assert_int_equal(rfx_front_rooms_init(&rooms, problem, &times, CAPACITY, NULL), RFX_OK);
    int n = rfx_front_blocks(&rooms, &forest, 0, marked, blocks);
    rfx_front_rooms_release(&rooms);
    rfx_place_problem_free(problem);
    return n;
}

/* Trees may lie in any order: each is a block, with the 4 bytes that are free above all of them. */
static void trees_are_apart(void **state) {
    (void)state;
    struct rfx_pq_node nodes[ITEMS] = {{0, 1, 5}, {1, 1, 7}, {2, 1, 4}};
    struct rfx_front_block b[ITEMS];
    bool first_and_last[ITEMS] = {true, false, true}, none[ITEMS] = {false};
    assert_int_equal(blocks_of(nodes, ITEMS, first_and_last, b), 2);
    assert_true(b[0].mask == 4 && b[0].height == 5 && b[0].highest == 9);
    assert_true(b[1].mask == 2 && b[1].height == 4 && b[1].highest == 8);
    assert_true(b[0].room == 5.0 && b[1].room == 4.0 && b[0].variance == 0.0);
    assert_int_equal(blocks_of(nodes, ITEMS, none, b), 0);
}

/* Children of a Q node that follow each other are one block; each may have all that is free: 2
 * bytes above the tree, 2 inside. Its room is what its bytes are of the tree's. */
static void neighbours_are_one(void **state) {
    (void)state;
    struct rfx_pq_node nodes[] = {{RFX_PQ_Q, 4, 18}, {0, 1, 5}, {1, 1, 7}, {2, 1, 4}};
    struct rfx_front_block b[ITEMS];
    bool last_two[ITEMS] = {false, true, true}, outer[ITEMS] = {true, false, true};
    assert_int_equal(blocks_of(nodes, 4, last_two, b), 1);
    assert_true(b[0].mask == 3 && b[0].height == 11 && b[0].highest == 19);
    assert_true(b[0].room == 18.0 * 11.0 / 16.0 && b[0].variance > 0.0);
    assert_int_equal(blocks_of(nodes, 4, outer, b), 2);
    assert_true(b[0].mask == 4 && b[0].highest == 9 && b[1].mask == 2 && b[1].highest == 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees_are_apart),
                                       cmocka_unit_test(neighbours_are_one)};
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
