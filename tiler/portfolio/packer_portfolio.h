/* Several searches that share the time and the processors: the packer for whoever waits for an
 * answer, as `rfexec alloc` does.
 *
 * Which search solves a problem soon nobody can foretell, so all take turns, each turn with twice
 * as much as the one before, and every processor takes the next turn; on a wide beam of fronts all
 * work together. What one finds or proves is known to all.
 *
 * Invariants: 1. an answer passes the validator and is never larger than the best greedy one;
 * 2. lower_bound_bytes is proven; 3. when the clock or several threads decide, which of several
 * good answers comes out is left to chance; packer.h is for plans. */
#ifndef RFX_TILER_PORTFOLIO_PACKER_PORTFOLIO_H
#define RFX_TILER_PORTFOLIO_PACKER_PORTFOLIO_H

#include "tiler/packer/packer.h"

/* The searches of a portfolio. */
enum rfx_packer_member {
    RFX_MEMBER_TIGHT,     /* packings without a spare byte (packer_tight.h) */
    RFX_MEMBER_SECTIONS,  /* section by section (packer_branch.h) */
    RFX_MEMBER_CANONICAL, /* MiniMalloc's (packer_canonical.h) */
    RFX_MEMBER_SKYLINE,   /* a beam from the bottom up (packer_skyline.h) */
    RFX_MEMBER_LOOSE,     /* packings without a spare byte of larger items (packer_tight.h) */
    RFX_MEMBER_OVERLAPS,  /* moves items until none overlap (overlaps.h) */
    RFX_MEMBER_CLAUSES,   /* packings without a spare byte, learning from dead ends
                             (clauses_packing.h) */
    RFX_MEMBER_FRONTS,    /* smaller items from the fullest time on (fronts.h) */
    RFX_MEMBER_COUNT
};

/* "tight", "sections", ... */
const char *rfx_packer_member_name(enum rfx_packer_member member);

struct rfx_portfolio_limits {
    int64_t time_ns;     /* 0: none. Searches end by themselves, but may take for ever */
    size_t target_bytes; /* as in rfx_packer_limits */
    int threads;         /* at least 1 */
    unsigned only;       /* a bit per member that takes part; 0: all */
    bool (*stop)(void *user, int64_t done_ns); /* asked some ten times a second by one thread at a
                                                  time; true: end now. NULL: nobody is asked */
    void *user;
};

/* Fills offsets[n] and *result; result->method is the name of a member or of a greedy strategy.
 * Running into a limit and being stopped by it are no failures. RFX_STATUS_OUT_OF_MEMORY; CANCELLED
 * when all work is stopped (rfx_memory_set_stop). */
RFX_NODISCARD enum rfx_status rfx_portfolio_solve(const struct rfx_place_problem *problem,
                                                  const struct rfx_portfolio_limits *limits,
                                                  size_t *offsets, struct rfx_packer_result *result,
                                                  struct rfx_error *err);
#endif
