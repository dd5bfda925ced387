/* See random_groups.h. */
#include "tests/support/random/random_groups.h"

int random_groups_draw(const struct rfx_graph *graph, struct test_rng *rng,
                       struct rfx_group_attr *groups, int most) {
    int n = 0;
    for (int first = 0; first < graph->n_nodes && n < most; first++) {
        int last = first + (int)test_rng_int(rng, 1, RFX_GROUP_MAX_NODES - 1);
        while (last > first && rfx_group_refusal(graph, first, last) != NULL) last--;
        if (last == first || test_rng_chance(rng, 10)) continue;
        int64_t w = graph->nodes[last].out.w;
        groups[n++] =
            (struct rfx_group_attr){.first = first,
                                    .last = last,
                                    .strip_cols = test_rng_int(rng, 1, test_rng_int(rng, 1, w)),
                                    .strips = test_rng_int(rng, 1, 5),
                                    .step_rows = test_rng_int(rng, 1, 8)};
        first = last;
    }
    return n;
}

struct rfx_caches random_small_caches(struct test_rng *rng) {
    size_t second = (size_t)test_rng_int(rng, 1, 24) << 10;
    struct rfx_caches caches = {second, second * (size_t)test_rng_int(rng, 1, 4)};
    return caches;
}
