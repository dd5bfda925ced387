/* The lowest offsets that keep given orders: of the items alive at a time, which lies on which. */
#ifndef RFX_TILER_PACKER_PACKER_ORDERS_H
#define RFX_TILER_PACKER_PACKER_ORDERS_H

#include "tiler/strategies/placement_problem.h"

/* Pairs of items, the second above the first. All zero but for `mem` to begin with; release with
 * rfx_orders_release. */
struct rfx_orders {
    struct rfx_memory *mem;
    int (*pairs)[2];
    size_t n, capacity;
};

/* Adds the order, from the bottom up, of n items alive at one time. false: no memory. O(n). */
RFX_NODISCARD bool rfx_orders_add(struct rfx_orders *orders, const int *items, int n);

/* Fills offsets[n] of the problem, whose items are those of the pairs; no item may lie above
 * itself. Two items alive at one time share no byte if that time's order was added. O(pairs) a
 * sweep; sweeps go on, up and down the pairs, until nothing moves. */
void rfx_orders_settle(const struct rfx_orders *orders, const struct rfx_place_problem *problem,
                       size_t *offsets);

void rfx_orders_release(struct rfx_orders *orders);
#endif
