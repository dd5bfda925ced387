/* The two rules of branching of the exact search: at one place of its tree, prune or say what to
 * try.
 *
 * By section: the section to go on with is one whose level nothing can go under any more. Either
 * one of the items that rest there starts at that level, or nothing does and the level rises.
 *
 * By rising offset, MiniMalloc's (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
 * Hardware-Accelerated Machine Learning", ASPLOS 2023), from the paper: items are placed one after
 * the other by rising offset, those of equal offset by rank (canonical solutions): each at the
 * lowest place that is free, so nothing may start below the last one any more (section inference).
 * An item is not tried where another could lie wholly below it (dominance), and none is tried after
 * one above which nothing else has to lie. The rank is fixed before (preordering). Beyond the
 * paper, an item that cannot be the lowest of those left in a section rises above the first end of
 * one. */
#ifndef RFX_TILER_PACKER_PACKER_RULES_H
#define RFX_TILER_PACKER_PACKER_RULES_H

#include "tiler/packer/packer_state.h"

/* Prunes, or fills the frame with what to try. false: the part cannot be packed. */
RFX_NODISCARD bool rfx_branch_expand(struct rfx_search *search, struct rfx_search_frame *frame);

/* Leaves the frame's section empty at its level, after all candidates. RFX_SEARCH_FOUND: the frame
 * has more to try; EXHAUSTED: it has not; LIMIT: no memory. */
enum rfx_search_outcome rfx_branch_go_without(struct rfx_search *search,
                                              struct rfx_search_frame *frame);

/* Ranks all items by one of the orders from WAT on; ties by position. Before a search begins: uses
 * its pool. */
void rfx_canonical_rank(struct rfx_search *search, enum rfx_search_order order, uint64_t seed);

/* Fills the frame with what to try; *fits: there may be a packing. false: no memory. */
RFX_NODISCARD bool rfx_canonical_expand(struct rfx_search *search, struct rfx_search_frame *frame,
                                        bool *fits);

/* Item x of the frame's part comes next: sets the frame's level, below which nothing of the part
 * starts any more, and whether a later candidate can do better. */
void rfx_canonical_begin(struct rfx_search *search, struct rfx_search_frame *frame, int x);
#endif
