/* What a state looks like to all that is to come, and how many orders it leaves. */
#ifndef RFX_TILER_FRONTS_FRONTS_JUDGE_H
#define RFX_TILER_FRONTS_FRONTS_JUDGE_H

#include "tiler/fronts/fronts_forest.h"

/* Of trees, in all. */
struct rfx_front_sums {
    uint64_t hash;
    int64_t orders; /* the logarithm of their number, in units of 2^-32: sums are exact */
};

struct rfx_front_judge {
    struct rfx_memory *mem;
    const struct rfx_front_times *times;
    uint64_t *items[RFX_FRONT_SIDES];                       /* hashes */
    uint64_t *hash;                                         /* per node of a tree */
    int64_t *log_orders;                                    /* of so many children, as in sums */
    struct rfx_front_sums trees[RFX_FOREST_MAX_TREES], all; /* of the forest entered last */
    bool is_known[RFX_FOREST_MAX_TREES];                    /* else `trees` has it not yet */
};

/* All must outlive it. Release with rfx_front_judge_release, after a failure
 * too. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_judge_init(struct rfx_front_judge *j,
                                                   const struct rfx_place_problem *problem,
                                                   const struct rfx_front_times *times,
                                                   struct rfx_error *err);
void rfx_front_judge_release(struct rfx_front_judge *j);

/* The sums of a forest. O(nodes). */
struct rfx_front_sums rfx_front_judge_all(struct rfx_front_judge *j,
                                          const struct rfx_forest *forest);

/* Changes are made to a forest with these sums from now on. */
void rfx_front_judge_enter(struct rfx_front_judge *j, const struct rfx_front_sums *all);

/* The sums of a forest that a change, the last one in `forests`, made of the one that was entered,
 * `from`: from the trees that it touched and the one that it made. */
struct rfx_front_sums rfx_front_judge_change(struct rfx_front_judge *j,
                                             const struct rfx_forests *forests,
                                             const struct rfx_forest *from,
                                             const struct rfx_forest *forest,
                                             const struct rfx_forest_tree *made);

/* The logarithm of how many orders of so many trees there are. */
double rfx_front_orders(const struct rfx_front_judge *j, const struct rfx_front_sums *sums,
                        int n_trees);

/* A hash that is the same for states that differ only in items alike from here on (size and end).
 */
uint64_t rfx_front_hash(const struct rfx_front_judge *j, const struct rfx_front_sums *sums,
                        const struct rfx_front_left *left);
#endif
