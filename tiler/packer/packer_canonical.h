/* MiniMalloc's branching (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
 * Hardware-Accelerated Machine Learning", ASPLOS 2023), from the paper, on the tables of
 * packer_state.h.
 *
 * Items are placed one after the other by rising offset, those of equal offset by rank (canonical
 * solutions): each at the lowest place that is free, so nothing may start below the last one any
 * more and the free place of every section rises to it (section inference). An item is not tried
 * where another could lie wholly below it (dominance), and none is tried after one above which
 * nothing else has to lie. The order of rank is fixed before (preordering). Parts that no longer
 * meet in time are those of packer_search.c. */
#ifndef RFX_TILER_PACKER_PACKER_CANONICAL_H
#define RFX_TILER_PACKER_PACKER_CANONICAL_H

#include "tiler/packer/packer_state.h"

/* Ranks all items by one of the orders WAT, TAW and TWA; ties by position. Before a search begins:
 * uses its pool. */
void rfx_canonical_rank(struct rfx_search *search, enum rfx_search_order order);

/* Fills the frame with what to try; *fits: there may be a packing. false: no memory. */
RFX_NODISCARD bool rfx_canonical_expand(struct rfx_search *search, struct rfx_search_frame *frame,
                                        bool *fits);

/* Item x of the frame's part comes next: sets the frame's level, below which nothing of the part
 * starts any more, and whether a later candidate can do better. */
void rfx_canonical_begin(struct rfx_search *search, struct rfx_search_frame *frame, int x);
#endif
