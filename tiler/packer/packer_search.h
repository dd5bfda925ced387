/* The exact search behind rfx_packer: does a problem fit into a capacity?
 *
 * Depth-first over packings that cannot be pushed down, from the bottom up, by one of two rules
 * (packer_rules.h). Both enumerate each of them once, so that an exhausted search is a proof. Where
 * the items left fall apart in time, the parts are solved one by one, and the failure of one goes
 * back to where they fell apart. */
#ifndef RFX_TILER_PACKER_PACKER_SEARCH_H
#define RFX_TILER_PACKER_PACKER_SEARCH_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

enum rfx_search_outcome {
    RFX_SEARCH_FOUND,     /* offsets are filled */
    RFX_SEARCH_EXHAUSTED, /* impossible: next_bytes is a proven lower bound above the capacity */
    RFX_SEARCH_LIMIT,     /* neither, within the limits */
};

/* In which order the items of one place are tried. The first four branch on one section's lowest
 * free place (packer_rules.h), the others on all items that may come next by rising offset. */
enum rfx_search_order {
    RFX_SEARCH_AREA,
    RFX_SEARCH_LENGTH,
    RFX_SEARCH_SIZE,
    RFX_SEARCH_SHUFFLED,
    RFX_SEARCH_SECTION_ORDERS,
    /* MiniMalloc's, of which the letters say what comes first: the fullest section of the item
     * (total), length (width), area. */
    RFX_SEARCH_WAT = RFX_SEARCH_SECTION_ORDERS,
    RFX_SEARCH_TAW,
    RFX_SEARCH_TWA,
    RFX_SEARCH_WAT_SHUFFLED, /* WAT, with much chance */
    RFX_SEARCH_ORDER_COUNT
};

struct rfx_search;

/* Allocates the tables for a problem, which must outlive it. O(n^2) bytes. */
RFX_NODISCARD enum rfx_status rfx_search_create(const struct rfx_place_problem *problem,
                                                struct rfx_search **out, struct rfx_error *err);

void rfx_search_free(struct rfx_search *search);

/* All offsets are multiples of this many bytes: capacities in between gain nothing. */
size_t rfx_search_unit_bytes(const struct rfx_search *search);

struct rfx_search_request {
    size_t capacity_bytes;
    enum rfx_search_order order;
    uint64_t seed;                     /* of SHUFFLED and WAT_SHUFFLED */
    uint64_t nodes;                    /* at most so many, > 0 */
    const struct rfx_place_stop *stop; /* NULL: none */
};

/* One search; adds the nodes it visited to *nodes. *next_bytes is set when EXHAUSTED. A failed
 * allocation (of the undo list) counts as a limit. */
enum rfx_search_outcome rfx_search_probe(struct rfx_search *search,
                                         const struct rfx_search_request *request, size_t *offsets,
                                         size_t *next_bytes, uint64_t *nodes);
#endif
