/* Random groups of nodes (layers/graph/group.h) of a graph. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_GROUPS_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_GROUPS_H

#include "layers/graph/group.h"
#include "tests/support/test_util.h"
#include "tiler/plan/plan.h"

/* Draws at most `most` valid groups, in ascending order, with random strips and steps. Returns
 * their number. */
int random_groups_draw(const struct rfx_graph *graph, struct test_rng *rng,
                       struct rfx_group_attr *groups, int most);

/* Returns caches so small that the planner groups even nodes with small maps. */
struct rfx_caches random_small_caches(struct test_rng *rng);
#endif
