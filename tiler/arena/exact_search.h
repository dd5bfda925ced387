/* The exact search of the packer: does a placement problem fit into a capacity?
 *
 * The search is depth-first and builds packings from the bottom up. It visits every packing in
 * which no item can be pushed further down exactly once, so an exhausted search is a proof that the
 * capacity is too small. There are two branching rules (exact_search.c), chosen by the order.
 * Where the remaining items fall apart in time, the parts are solved one after the other; a part
 * that cannot be packed sends the search back to the item whose placement split it off. */
#ifndef RFX_TILER_ARENA_EXACT_SEARCH_H
#define RFX_TILER_ARENA_EXACT_SEARCH_H

#include "tiler/arena/arena_problem.h"

enum rfx_exact_outcome {
    RFX_EXACT_FOUND,     /* offsets are filled */
    RFX_EXACT_EXHAUSTED, /* impossible: next_bytes is a proven lower bound, larger than the capacity
                          */
    RFX_EXACT_LIMIT,     /* undecided within the limits */
};

/* The order in which items are tried. The first four orders branch on one section's lowest free
 * place, the others on all items that can come next by rising offset (exact_search.c). */
enum rfx_exact_order {
    RFX_EXACT_AREA,
    RFX_EXACT_LENGTH,
    RFX_EXACT_SIZE,
    RFX_EXACT_SHUFFLED,
    RFX_EXACT_SECTION_ORDERS,
    /* MiniMalloc's orders. The letters say what is compared first: the load of the item's fullest
       section (total), its lifetime (width), size times lifetime (area). */
    RFX_EXACT_WAT = RFX_EXACT_SECTION_ORDERS,
    RFX_EXACT_TAW,
    RFX_EXACT_TWA,
    RFX_EXACT_WAT_SHUFFLED, /* WAT, strongly randomised */
    RFX_EXACT_ORDER_COUNT
};

struct rfx_exact_search;

/* Allocates the tables for a problem, which must outlive the search. O(n^2) bytes. */
RFX_NODISCARD enum rfx_status rfx_exact_create(const struct rfx_place_problem *problem,
                                               struct rfx_exact_search **out,
                                               struct rfx_error *err);

void rfx_exact_free(struct rfx_exact_search *search);

/* Returns the unit: every offset is a multiple of it, so capacities in between gain nothing. */
size_t rfx_exact_unit_bytes(const struct rfx_exact_search *search);

struct rfx_exact_request {
    size_t capacity_bytes;
    enum rfx_exact_order order;
    uint64_t seed;                     /* of SHUFFLED and WAT_SHUFFLED */
    uint64_t nodes;                    /* limit, > 0 */
    const struct rfx_place_stop *stop; /* NULL: none */
};

/* Runs one search, and adds the visited nodes to *nodes. Sets *next_bytes when EXHAUSTED. A failed
 * allocation (of the trail) counts as a limit. */
enum rfx_exact_outcome rfx_exact_probe(struct rfx_exact_search *search,
                                       const struct rfx_exact_request *request, size_t *offsets,
                                       size_t *next_bytes, uint64_t *nodes);
#endif
