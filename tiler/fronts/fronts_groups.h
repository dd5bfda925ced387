/* Which items of a boundary may change places, and how likely it is that they do.
 *
 * A group's gain is the logarithm of how much likelier its sums are if the begins were cut from the
 * place of the ends than if they have nothing to do with each other, and the same for each of how
 * rare groups are at all. How many other groups there could have been need not count: that is in
 * the number of orders that a state leaves (fronts_judge.h), since of all orders at the beginning
 * each is as likely, and the likelihood of a state is the sum of those of its orders. Where there
 * are many groups it helps nevertheless, as the few states that are kept are of few of them. */
#ifndef RFX_TILER_FRONTS_FRONTS_GROUPS_H
#define RFX_TILER_FRONTS_FRONTS_GROUPS_H

#include "tiler/fronts/fronts_counts.h"
#include "tiler/fronts/fronts_rooms.h"

struct rfx_front_group {
    uint64_t ends, begins; /* bits by their order at the boundary */
    float gain;
    float score; /* with the orders that it leaves, or a few more */
};

/* What gains are made of. */
struct rfx_front_weights {
    double match;  /* the logarithm of how rare groups are, and of a density of sizes */
    double orders; /* how much the number of orders that are left counts (fronts.h) */
    double size;   /* how much rarer large groups are: the power of their number of ends, begins */
    double among;  /* how much it counts of how many groups a group is one */
};

struct rfx_front_union;
struct rfx_front_sum;

struct rfx_front_groups {
    struct rfx_front_group *list; /* [n], of the last rfx_front_groups_list, the best first */
    int n, n_compared;            /* of so many of all blocks */
    bool complete;                /* no group was left out so far for the sake of time */

    /* tables and scratch */
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_front_times *times;
    struct rfx_forests *forests;
    struct rfx_front_rooms rooms;
    struct rfx_front_counts counts;
    struct rfx_front_weights weights;
    float match; /* what a group gains whose sums are the likeliest */
    struct rfx_front_union *unions;
    struct rfx_front_sum *low, *high; /* of two halves of the begins listed last */
    struct rfx_front_block *blocks;
    int *items;
    int n_low, n_high, listed_boundary;
    uint64_t listed_begins;
    size_t listed_sum; /* of all of them */
    float listed_squares;
    bool has_twins;
    double log_factorial[RFX_FRONT_MAX_SIDE + 1];
};

/* All must outlive it. Release with rfx_front_groups_release, after a failure
 * too. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_groups_init(
    struct rfx_front_groups *g, const struct rfx_place_problem *problem,
    const struct rfx_front_times *times, struct rfx_forests *forests,
    const struct rfx_front_judge *judge, size_t capacity, const struct rfx_front_weights *weights,
    struct rfx_error *err);
void rfx_front_groups_release(struct rfx_front_groups *g);

/* Lists the groups of one block (what lies together in every order), one of which every packing
 * makes: of the block that is in the fewest. Those of k ends whose score is not above least[k] are
 * left out. Judge and forests have entered the forest. */
void rfx_front_groups_list(struct rfx_front_groups *g, const struct rfx_forest *forest,
                           const struct rfx_front_left *left, const float *least);

/* The items of a group as a change. The lists have room for RFX_FRONT_MAX_SIDE. */
struct rfx_forest_change rfx_front_change(const struct rfx_front_times *times, int boundary,
                                          const struct rfx_front_group *group, int *gone,
                                          int *with);

/* The lowest n <= 64 bits. */
static inline uint64_t rfx_front_all(int n) {
    return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}
#endif
