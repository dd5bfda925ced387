/* From the groups that were made to the offsets of all items. */
#ifndef RFX_TILER_FRONTS_FRONTS_WAY_H
#define RFX_TILER_FRONTS_FRONTS_WAY_H

#include "tiler/fronts/fronts_groups.h"

/* A group of a boundary. */
struct rfx_front_step {
    int boundary;
    struct rfx_front_group group;
};

/* Makes the n steps, of which the last comes first, again and takes them back from any order of
 * what is left; sorts them. Fills offsets, as low as the orders allow. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_way(const struct rfx_place_problem *problem,
                                            const struct rfx_front_times *times,
                                            struct rfx_forests *forests,
                                            struct rfx_front_step *steps, int n, size_t *offsets,
                                            struct rfx_error *err);
#endif
