/* Where the parts of a chart are, in pixels of the SVG: what gnuplot does not place well by itself.
 * A part of chart_script.c. */
#ifndef RFX_TOOLS_CHART_CHART_LAYOUT_H
#define RFX_TOOLS_CHART_CHART_LAYOUT_H

#include "tools/chart/chart.h"
#include "tools/chart/chart_boxes.h"

enum {
    RFX_CHART_LABEL_PX = 28, /* the x axis' label with its margins */
    RFX_CHART_LEGEND_ROW_PX = 21,
    RFX_CHART_PANEL_LEFT_PX = 104, /* room for any numbers; of a chart that is not alone */
    RFX_CHART_LEFT_PX = 78, /* margins of charts with boxes; gnuplot finds those of the others */
    RFX_CHART_RIGHT_PX = 22,
    RFX_CHART_TOP_PX = 66,
};

struct rfx_chart_layout {
    int width, height;
    int page_height, below_px; /* of the picture; of the panels below this one */
    int every;                 /* k-th category is written */
    bool upright;              /* categories */
    int tics_px, legend_rows, bottom_px;
    int left_px;
    bool boxes, given_margins; /* those at the sides and above; charts with boxes have them */
    int legend_inside_px; /* the upper edge of a legend in a free corner, from below; 0: below */
    struct rfx_chart_scale scale; /* with boxes */
};

/* `panel`: as one of several that have the same margins at the sides. */
struct rfx_chart_layout rfx_chart_layout_make(const struct rfx_chart *chart, bool panel);

/* The end of a category's name that is written. */
const char *rfx_chart_category_text(const char *name);
#endif
