/* The boundaries between sections in the order in which fronts.h goes through them: from one
 * section on in both directions. */
#ifndef RFX_TILER_FRONTS_FRONTS_TIMES_H
#define RFX_TILER_FRONTS_FRONTS_TIMES_H

#include "tiler/strategies/placement_problem.h"

/* Which way a front goes: to later times or to earlier ones. */
enum { RFX_FRONT_LATER, RFX_FRONT_EARLIER, RFX_FRONT_SIDES };

/* Most ends, and begins, of one boundary: bits of a mask. */
enum { RFX_FRONT_MAX_SIDE = 64 };

/* Seen from the front that passes it: what is alive only before it ends, what is alive only after
 * it begins. */
struct rfx_front_boundary {
    int side;
    int beyond;       /* the section after it */
    int ends, begins; /* in by_end and by_begin */
    int n_ends, n_begins;
};

/* What is left of a boundary for a state: bits by their order there. */
struct rfx_front_left {
    int boundary;
    uint64_t ends, begins;
};

struct rfx_front_times {
    struct rfx_memory *mem;
    int start; /* the section where both fronts begin: the fullest */
    struct rfx_front_boundary *at;
    int n;
    int *by_end, *by_begin;    /* items */
    int *bit[RFX_FRONT_SIDES]; /* per item: its number among the ends of a boundary of that side */
    int *live;                 /* items alive at the start */
    int n_live, max_live;      /* there; most at any time */
    bool possible;             /* every boundary has ends and begins, and not too many */
};

/* Free with rfx_front_times_free. RFX_STATUS_OUT_OF_MEMORY. O(items * sections). */
RFX_NODISCARD enum rfx_status rfx_front_times_create(const struct rfx_place_problem *problem,
                                                     struct rfx_front_times **out,
                                                     struct rfx_error *err);
void rfx_front_times_free(struct rfx_front_times *times);
#endif
