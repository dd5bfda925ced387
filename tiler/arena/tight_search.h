/* Beam search for packings without a spare byte at any time.
 *
 * Where every byte is in use before and after a moment, the items that begin fill exactly the holes
 * of the items that end. So the ends and begins of a moment fall into groups of equal sums: the
 * ends of a group lie together, its begins take their place, and nothing else moves. The orders of
 * the live items that remain possible are kept exactly, as a PQ-tree (pq_tree.h); only the choice
 * of the groups has to be tried. A beam of `width` states goes through time.
 *
 * Where bytes are free at a moment, the search assumes items ("fillers") that live from where the
 * number of free bytes rises to where it falls by as much. Finding nothing therefore proves
 * nothing. */
#ifndef RFX_TILER_ARENA_TIGHT_SEARCH_H
#define RFX_TILER_ARENA_TIGHT_SEARCH_H

#include "tiler/arena/arena_problem.h"

/* Larger problems are refused (nothing is found): listing the boundaries takes items times
 * sections, and every state of the beam holds a tree of that many leaves. */
#define RFX_TIGHT_MAX_ITEMS 1024

struct rfx_tight_request {
    size_t capacity_bytes;
    int width;      /* states kept, > 0: more states find more, and take longer */
    bool backwards; /* run backwards in time */
    uint64_t
        seed; /* 0: deterministic order; otherwise a seed that perturbs which states are kept */
    uint64_t nodes;                    /* limit of groups to try, > 0 */
    const struct rfx_place_stop *stop; /* NULL: none */
};

enum rfx_tight_outcome {
    RFX_TIGHT_FOUND,     /* offsets are filled with a valid answer */
    RFX_TIGHT_SOME_LEFT, /* nothing found within the width and the limits */
    RFX_TIGHT_ALL_TRIED, /* nothing found, and a larger width would find nothing either */
};

/* Fills offsets[n] when FOUND, and adds the tried groups to *nodes. OUT_OF_MEMORY. Unless it is
 * stopped, the outcome is a function of problem and request. */
RFX_NODISCARD enum rfx_status rfx_tight_place(const struct rfx_place_problem *problem,
                                              const struct rfx_tight_request *request,
                                              size_t *offsets, enum rfx_tight_outcome *outcome,
                                              uint64_t *nodes, struct rfx_error *err);
#endif
