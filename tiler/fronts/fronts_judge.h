/* What a state looks like to all that is to come, and how many orders it leaves. */
#ifndef RFX_TILER_FRONTS_FRONTS_JUDGE_H
#define RFX_TILER_FRONTS_FRONTS_JUDGE_H

#include "tiler/fronts/fronts_groups.h"

struct rfx_front_judge {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_front_times *times;
    uint64_t *hash;     /* per node of a tree */
    double *log_orders; /* of so many children */
};

/* All must outlive it. Release with rfx_front_judge_release, after a failure
 * too. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_judge_init(struct rfx_front_judge *j,
                                                   const struct rfx_place_problem *problem,
                                                   const struct rfx_front_times *times,
                                                   struct rfx_error *err);
void rfx_front_judge_release(struct rfx_front_judge *j);

/* A hash that is the same for states that differ only in items alike from here on (size and end).
 * O(nodes). */
uint64_t rfx_front_judge(struct rfx_front_judge *j, const struct rfx_forest *forest,
                         const struct rfx_front_left *left);

/* The logarithm of how many orders a forest has. O(nodes). */
double rfx_front_orders(const struct rfx_front_judge *j, const struct rfx_forest *forest);
#endif
