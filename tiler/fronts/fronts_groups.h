/* Which items of a boundary may change places, and how likely it is that they do.
 *
 * Items are taken for those of a packing without a spare byte that were made smaller, each by a
 * share drawn evenly from none to twice the mean. What lies at a place is compared with what should
 * lie there: a group's gain is the logarithm of how much likelier its sums are if the begins were
 * cut from the place of the ends than if they have nothing to do with it. */
#ifndef RFX_TILER_FRONTS_FRONTS_GROUPS_H
#define RFX_TILER_FRONTS_FRONTS_GROUPS_H

#include "tiler/fronts/fronts_forest.h"

struct rfx_front_group {
    uint64_t ends, begins; /* bits by their order at the boundary */
    float gain;
};

struct rfx_front_subset;
struct rfx_front_sum;
struct rfx_front_value;
struct rfx_front_block;

struct rfx_front_groups {
    struct rfx_front_group *list; /* [n], of the last rfx_front_groups_list, the likeliest first */
    int n;
    bool complete; /* no group was left out so far for the sake of time */

    /* tables and scratch */
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_front_times *times;
    struct rfx_forests *forests;
    double shrink; /* the mean share by which items were made smaller */
    double most;   /* a little above the largest such share */
    size_t capacity;
    struct rfx_front_subset *unions;
    struct rfx_front_sum *low, *high;
    bool has_twins; /* among the begins listed last */
    struct rfx_front_block *blocks;
    struct rfx_front_value *values; /* per node of a side */
    int *items;
    int n_low, n_high, listed_boundary;
    uint64_t listed_begins;
    double log_factorial[RFX_FRONT_MAX_SIDE + 1];
};

/* What is left of a boundary for a state. */
struct rfx_front_left {
    int boundary;
    uint64_t ends, begins;
};

/* All must outlive it. Release with rfx_front_groups_release. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_groups_init(struct rfx_front_groups *g,
                                                    const struct rfx_place_problem *problem,
                                                    const struct rfx_front_times *times,
                                                    struct rfx_forests *forests, size_t capacity,
                                                    struct rfx_error *err);
void rfx_front_groups_release(struct rfx_front_groups *g);

/* Lists the groups of one block (what lies together in every order), one of which every packing
 * makes: of the block that is in the fewest. `scratch` has room for a forest. */
void rfx_front_groups_list(struct rfx_front_groups *g, const struct rfx_forest *forest,
                           const struct rfx_front_left *left, struct rfx_forest *scratch);

/* The items of a group as a change. The lists have room for RFX_FRONT_MAX_SIDE. */
struct rfx_forest_change rfx_front_change(const struct rfx_front_times *times, int boundary,
                                          const struct rfx_front_group *group, int *gone,
                                          int *with);

/* Lifts the nodes of the tree that a change made to what their leaves take. false: they are too
 * high for the place or the capacity, or too low for what lay there before. */
RFX_NODISCARD bool rfx_front_groups_measure(struct rfx_front_groups *g, struct rfx_forest *forest,
                                            int side, int tree);
#endif
