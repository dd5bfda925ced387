/* What the exact search does at one place of its tree: prune, or say what to try there.
 *
 * The section to go on with is one whose level nothing can go under any more. Either one of the
 * items that rest there starts at that level, or nothing does and the level rises. */
#ifndef RFX_TILER_PACKER_PACKER_BRANCH_H
#define RFX_TILER_PACKER_PACKER_BRANCH_H

#include "tiler/packer/packer_state.h"

/* Prunes, or fills the frame with what to try. false: the part cannot be packed. */
RFX_NODISCARD bool rfx_branch_expand(struct rfx_search *search, struct rfx_search_frame *frame);

/* Leaves the frame's section empty at its level, after all candidates. RFX_SEARCH_FOUND: the frame
 * has more to try; EXHAUSTED: it has not; LIMIT: no memory. */
enum rfx_search_outcome rfx_branch_go_without(struct rfx_search *search,
                                              struct rfx_search_frame *frame);
#endif
