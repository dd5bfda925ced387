/* A guess that makes tight problems small: items that probably lie side by side in a packing
 * without a spare byte are joined to one.
 *
 * Where every byte is in use before and after a time, what begins there fills exactly the holes of
 * what ends there. So an item that begins as the only one of its size, where one of that size ends,
 * is taken to follow in the same place; and two of one lifetime are taken to lie on each other. A
 * packing of the joined items is one of the items; that none is found proves nothing. */
#ifndef RFX_TILER_PACKER_MERGE_H
#define RFX_TILER_PACKER_MERGE_H

#include "tiler/placement_problem.h"

/* The joined items as a problem of its own; item i lies `relative[i]` bytes above the start of
 * joined item `owner[i]`. O(n^3) at worst. Free with rfx_place_problem_free. */
RFX_NODISCARD enum rfx_status rfx_packer_merge(const struct rfx_place_problem *problem, int *owner,
                                               size_t *relative, struct rfx_place_problem **merged,
                                               struct rfx_error *err);
#endif
