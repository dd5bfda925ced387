/* Whether rectangles make up a map, or cells an output, without gap and overlap. */
#ifndef RFX_TOOLS_PARTS_PART_COVER_H
#define RFX_TOOLS_PARTS_PART_COVER_H

#include "layers/core/status.h"
#include "tools/parts/files/part_file.h"

/* MALFORMED, with the files and the numbers: two parts have an element in common, or some belong to
 * none. paths[n]; all are of one run. O(n^2), and for a gap at most O(n^3). */
RFX_NODISCARD enum rfx_status rfx_part_check_cover(const struct rfx_part_file *parts,
                                                   const char *const *paths, int n,
                                                   struct rfx_error *err);
#endif
