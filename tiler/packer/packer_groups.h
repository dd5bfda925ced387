/* Which items of a boundary may change places: groups of ends and begins of equal sums.
 *
 * The items of a group that end lie together, those that begin take their place. Every packing
 * without a spare byte makes some group of the block that is in the fewest of them (blocks: what
 * lies together in every order the tree allows), so those are all that has to be tried. */
#ifndef RFX_TILER_PACKER_PACKER_GROUPS_H
#define RFX_TILER_PACKER_PACKER_GROUPS_H

#include "tiler/packer/packer_boundaries.h"
#include "tiler/packer/packer_pq.h"

/* Some of a boundary's ends and begins: bits by their order there. */
struct rfx_group {
    uint64_t ends, begins;
};

/* What groups are made of: the items of a boundary that are in none yet, and the orders of all that
 * lives there. */
struct rfx_group_source {
    int boundary;
    struct rfx_group left;
    const struct rfx_pq_node *tree;
    int n_tree;
};

struct rfx_subset;

struct rfx_groups {
    struct rfx_group *list; /* [n], of the last rfx_groups_list */
    int n;
    bool complete; /* no group was left out so far for the sake of time */

    /* tables and scratch */
    struct rfx_memory *mem;
    const struct rfx_boundaries *b; /* borrowed */
    struct rfx_pq *pq;
    int *leaves, *order, *block;            /* per item */
    bool *marked;                           /* per item; false between calls */
    struct rfx_subset *unions, *low, *high; /* of blocks; of two halves of the begins listed last */
    int n_low, n_high, listed_boundary;
    uint64_t listed_begins;
};

/* The boundaries must outlive it. RFX_STATUS_OUT_OF_MEMORY. Free with rfx_groups_free. */
RFX_NODISCARD enum rfx_status rfx_groups_create(struct rfx_memory *mem,
                                                const struct rfx_boundaries *boundaries,
                                                struct rfx_groups **out, struct rfx_error *err);
void rfx_groups_free(struct rfx_groups *groups);

/* Lists the groups to try: those of one block, one of which every packing makes (when complete).
 * `scratch` has room for a tree. */
void rfx_groups_list(struct rfx_groups *groups, const struct rfx_group_source *from,
                     struct rfx_pq_node *scratch);

/* Replaces the ends of a group of boundary `at` by its begins (rfx_pq_replace). Returns the number
 * of nodes of the tree written to *out; 0: the ends do not lie together in any order. */
int rfx_groups_replace(struct rfx_groups *groups, int at, const struct rfx_pq_node *tree,
                       int n_tree, struct rfx_group group, struct rfx_pq_node *out,
                       struct rfx_pq_run *run);

/* The lowest n <= 64 bits. */
static inline uint64_t rfx_group_all(int n) {
    return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* Items of a list named by the bits of a mask; returns their number. */
static inline int rfx_group_select(const int *list, uint64_t mask, int *out) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) out[n++] = list[__builtin_ctzll(mask)];
    return n;
}
#endif
