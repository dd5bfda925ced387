/* How many orders are left where some of what ends goes and a single item comes in its place.
 *
 * As rfx_forest_replace would make of it, to the bit, without making it: only nodes above what goes
 * are looked at. */
#ifndef RFX_TILER_FRONTS_FRONTS_COUNTS_H
#define RFX_TILER_FRONTS_FRONTS_COUNTS_H

#include "tiler/fronts/fronts_judge.h"

struct rfx_front_count;

struct rfx_front_counts {
    struct rfx_memory *mem;
    const struct rfx_forests *forests;
    const struct rfx_front_judge *judge;
    int *bit_of;                   /* per item: its bit, -1 between calls */
    int *parents;                  /* scratch: nodes */
    struct rfx_front_count *nodes; /* per node of the side, of trees in which something ends */
    uint64_t number;               /* of the question */

    /* of the forest entered last */
    const struct rfx_forest *forest;
    int side;
    uint64_t heads;                  /* one bit for each node all of which ends */
    int node_of[RFX_FRONT_MAX_SIDE]; /* of such bits; the node lies in no other such node */
    struct rfx_forest_set entered;   /* trees in which something ends */
};

/* All must outlive it. Release with rfx_front_counts_release, after a failure too.
 * RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_counts_init(struct rfx_front_counts *c,
                                                    const struct rfx_place_problem *problem,
                                                    const struct rfx_front_times *times,
                                                    const struct rfx_forests *forests,
                                                    const struct rfx_front_judge *judge,
                                                    struct rfx_error *err);
void rfx_front_counts_release(struct rfx_front_counts *c);

/* Of `items` of a side of the forest, those with bits in `ends` are all that may go. Forests and
 * judge have entered it. O(nodes). */
void rfx_front_counts_enter(struct rfx_front_counts *c, const struct rfx_forest *forest, int side,
                            const int *items, uint64_t ends);

/* The logarithm of the number of orders without those of `ends`; negative: they do not lie together
 * in any order. Of items that lie together in every order all go or none. */
double rfx_front_counts_without(struct rfx_front_counts *c, uint64_t ends);
#endif
