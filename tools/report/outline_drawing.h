/* The outline of a convex quadrilateral, row by row: the pixels whose centres lie inside within a
 * line's width of a side, or outside within half a pixel. */
#ifndef RFX_TOOLS_REPORT_OUTLINE_DRAWING_H
#define RFX_TOOLS_REPORT_OUTLINE_DRAWING_H

#include "layers/core/rect.h"

struct rfx_outline {
    double corner[4][2];  /* x and y in drawn pixels, one after the other around it */
    double turn;          /* 1: clockwise in the picture; -1: the other way round */
    int64_t line;         /* width of the line */
    struct rfx_rect rect; /* pixels outside of it are not drawn */
};

/* Sets the pixels of a row: columns [run[i][0], run[i][1]) for i of 0 and 1, each possibly empty.
 */
void rfx_outline_row(const struct rfx_outline *outline, int64_t row, int64_t run[2][2]);
#endif
