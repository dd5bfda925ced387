/* What the exact search does at one place of its tree: prune, or say what to try there.
 *
 * The section to go on with is one whose level nothing can go under any more. Either one of the
 * items that rest there starts at that level, or nothing does and the level rises. */
#ifndef RFX_TILER_PACKER_PACKER_BRANCH_H
#define RFX_TILER_PACKER_PACKER_BRANCH_H

#include "tiler/packer/packer_state.h"

/* Prunes, or fills the frame with what to try. false: the part cannot be packed. */
RFX_NODISCARD bool rfx_search_expand(struct rfx_search *search, struct rfx_search_frame *frame);

/* Where the first item of the frame's section can start if nothing starts at its level: it rests
 * on an item that is not in the section. INT64_MAX: nowhere. When even a bound is too high for the
 * capacity, the bound. */
int64_t rfx_search_next_level(struct rfx_search *search, const struct rfx_search_frame *frame);
#endif
