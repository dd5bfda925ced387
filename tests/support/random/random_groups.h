/* Random groups of nodes (layers/graph/group.h) of a graph. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_GROUPS_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_GROUPS_H

#include "layers/graph/group.h"
#include "tests/support/test_util.h"
#include "tiler/plan/plan.h"

/* Legal groups by rising nodes, at most `most`, in strips and steps of random sizes; how many. */
int random_groups_draw(const struct rfx_graph *graph, struct test_rng *rng,
                       struct rfx_group_attr *groups, int most);

/* Caches so small that nodes with small maps are grouped for them. */
struct rfx_caches random_small_caches(struct test_rng *rng);
#endif
