/* The overlay: the picture made small, with a box round every found (green), missed (red) and
 * falsely reported (yellow) defect. */
#ifndef RFX_TOOLS_DEMO_OVERLAY_H
#define RFX_TOOLS_DEMO_OVERLAY_H

#include "defect_truth.h"

/* Reads `image` row by row and writes `path` with sides of at most `max_side` pixels. 0, or -1
 * after printing the reason. */
int demo_overlay_write(const char *image, const char *path, int64_t max_side,
                       const struct truth *truth, const struct defect_spots *spots,
                       int64_t cell_px);
#endif
