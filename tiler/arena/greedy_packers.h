/* Greedy packers: each takes the items of a placement problem one after the other, in an order of
 * its own, gives each an offset and never moves it again.
 *
 * Sources: paper 000 section 5 (by size, by breadth), paper 001 section III-C (first-fit, best-fit,
 * longer-first, bigger-first), Sekiyama et al., "Profile-guided memory optimization for deep neural
 * networks" (2018; strip packing), which builds on the best fit of Burke, Kendall and Whitwell
 * (2004). Ties are broken by the items' positions in the problem, so that an answer is a function
 * of the problem alone.
 *
 * Strip packing: the lowest line of the skyline takes the item of longest lifetime that fits
 * between its neighbours, or rises to the lower neighbour when none fits. It is the one greedy
 * packer that is fast for millions of items, and where many items are alive at once it comes close
 * to the lower bound. With more than 32,768 items, a line only little lower than its neighbour
 * rises before it takes an item. */
#ifndef RFX_TILER_ARENA_GREEDY_PACKERS_H
#define RFX_TILER_ARENA_GREEDY_PACKERS_H

#include "tiler/arena/arena_problem.h"

enum rfx_greedy_packer {
    RFX_GREEDY_BY_SIZE,       /* larger first, smallest gap that fits */
    RFX_GREEDY_BY_BREADTH,    /* sections by falling breadth, in each the larger item first */
    RFX_GREEDY_STRIP_PACKING, /* the lowest place takes the longest item that fits */
    RFX_GREEDY_FIRST_FIT,     /* in order of time, lowest gap */
    RFX_GREEDY_BEST_FIT,      /* in order of time, smallest gap */
    RFX_GREEDY_LONGER_FIRST,  /* longer lifetime first, lowest gap */
    RFX_GREEDY_BIGGER_FIRST,  /* larger first, lowest gap */
    RFX_GREEDY_COUNT
};

/* Returns the packer's name, such as "by-size". */
const char *rfx_greedy_name(enum rfx_greedy_packer strategy);

/* Places all items with one of the greedy packers: fills offsets[n] and the arena's size. Returns
 * OUT_OF_MEMORY, or CANCELLED without a text where `stop` (NULL: none) ends the work.
 * O(n^2 + n * sections). */
RFX_NODISCARD enum rfx_status rfx_greedy_place(const struct rfx_place_problem *problem,
                                               enum rfx_greedy_packer strategy,
                                               const struct rfx_place_stop *stop, size_t *offsets,
                                               size_t *arena_bytes, struct rfx_error *err);

/* Measures of how long a lifetime is. 0: its length. Others: moments weigh more the nearer their
 * load is to the lower bound. Bytes left unused below an item enlarge the arena only at moments
 * whose load is near the bound, and the longest item that fits leaves the fewest. */
enum { RFX_STRIP_MEASURES = 4 };

/* Strip packing by one measure (0 .. RFX_STRIP_MEASURES - 1): fills offsets[n]. Of items of equal
 * lifetime the larger goes first, then the earlier one in the problem; of equally low lines the
 * earlier one in time. Returns OUT_OF_MEMORY, or CANCELLED without a text where `stop` (NULL: none)
 * ends the work. O(n log n), but for the search for the longest item that fits: it visits about ten
 * nodes of a tree on problems with many short items, and n nodes in the worst case. */
RFX_NODISCARD enum rfx_status rfx_strip_place(const struct rfx_place_problem *problem, int measure,
                                              const struct rfx_place_stop *stop, size_t *offsets,
                                              struct rfx_error *err);

struct rfx_strip_request {
    int threads;                       /* at least 1 */
    size_t target_bytes;               /* an arena that is small enough; 0: the lower bound */
    const struct rfx_place_stop *stop; /* NULL: none. The first packing is always completed */
};

/* Runs strip packing with several measures and takes the best: fills offsets[n] and the arena's
 * size; the answer is not checked. Of several answers that reach the target it takes the first in
 * order, for any number of threads; but with more than 262,144 items a second thread makes a second
 * packing. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_strip_place_best(const struct rfx_place_problem *problem,
                                                   const struct rfx_strip_request *request,
                                                   size_t *offsets, size_t *arena_bytes,
                                                   struct rfx_error *err);
#endif
