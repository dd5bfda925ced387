/* Packings of records that were made a little smaller, from the fullest time on in both directions.
 *
 * As packer_tight.h with a tolerance: what begins takes the place of what ends, in groups of about
 * equal sums, and a beam of states goes from boundary to boundary. Here it begins at the fullest
 * section, where the places are known to the byte, and so is how much what comes later may take: a
 * group that is too high is seen when it is made. Boundaries of both directions are passed by how
 * little there is to choose; which orders are left on both sides together is a forest of PQ-trees
 * (fronts_forest.h). Groups are weighed by how likely their sums are (fronts_groups.h). Where few
 * states of a wide beam are left a narrower one looks ahead to the end. That nothing is found
 * proves nothing. */
#ifndef RFX_TILER_FRONTS_FRONTS_H
#define RFX_TILER_FRONTS_FRONTS_H

#include "layers/core/team.h"
#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

/* More items than this, or more of them on a side at a time, are refused (nothing is found): a
 * state takes some 64 bytes for each of the latter. */
#define RFX_FRONTS_MAX_ITEMS 1024
#define RFX_FRONTS_MAX_LIVE 192

/* How many different ways of weighing groups there are. */
enum { RFX_FRONTS_VARIANTS = 3 };

/* What the last states of the beam had placed when none got to the end, each with no two items on
 * the same bytes; it may lie above the capacity. */
struct rfx_fronts_parts {
    int most;        /* states to tell of at most, > 0 */
    int n;           /* of so many; 0 where some got to the end, or a stop said so */
    size_t *offsets; /* [most][n items]; SIZE_MAX: not placed yet */
};

struct rfx_fronts_request {
    size_t capacity_bytes;             /* at least the lower bound */
    int variant;                       /* 0 .. RFX_FRONTS_VARIANTS - 1 */
    int width;                         /* states kept, > 0: the more, the surer and the slower */
    uint64_t seed;                     /* 0: no chance; else of a disturbance of what is kept */
    uint64_t nodes;                    /* groups to try at most, and to compare (64 as one), > 0 */
    const struct rfx_place_stop *stop; /* NULL: none */
    struct rfx_fronts_parts *parts;    /* filled; NULL: not wanted */
    struct rfx_team *team;             /* that shares the work; NULL: the calling thread alone */
};

/* Fills offsets[n] with the lowest answer found and *arena_bytes, which may be above the capacity
 * (SIZE_MAX: there is none); *complete: a larger width finds nothing either. Adds the groups it
 * tried to *nodes. RFX_STATUS_OUT_OF_MEMORY. Where nothing stops it the outcome is a function of
 * problem and request, whatever the team. */
RFX_NODISCARD enum rfx_status rfx_fronts_place(const struct rfx_place_problem *problem,
                                               const struct rfx_fronts_request *request,
                                               size_t *offsets, size_t *arena_bytes, bool *complete,
                                               uint64_t *nodes, struct rfx_error *err);
#endif
