/* Charts as SVG or PNG, drawn by gnuplot in a process of its own.
 *
 * A chart is a value: titles, axes, series. rfx_chart_write turns it into a gnuplot script, gives
 * the script to `gnuplot` on standard input and stores what comes out. rfexec links no drawing
 * library, so a chart adds nothing to the resident memory that budgets are held against.
 *
 * Invariants: 1. every text is data: quoted, without control characters, never markup; no shell is
 * involved and no path reaches the script; 2. the file appears under its name only when complete,
 * and nothing is left behind when drawing fails; 3. colour-blind readers can tell colours apart,
 * and lines also differ in dashes and marks. */
#ifndef RFX_TOOLS_STUDY_CHART_H
#define RFX_TOOLS_STUDY_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

enum rfx_chart_style {
    RFX_CHART_LINES = 0,
    RFX_CHART_LINES_POINTS, /* a mark at each point */
    RFX_CHART_POINTS,
    RFX_CHART_RINGS,  /* a ring around each point, to point it out */
    RFX_CHART_STEPS,  /* y[i] holds from x[i] - 0.5 to x[i] + 0.5: one step per category */
    RFX_CHART_FILLED, /* like steps, with the area below filled */
    RFX_CHART_BOXES,  /* filled rectangles from (x, y) to (x_end, y_end) */
    RFX_CHART_FRAMES, /* like boxes, only the edges */
    RFX_CHART_ARROWS, /* a mark above each point, pointing down at it */
    RFX_CHART_STYLE_COUNT
};

/* One line, area or set of marks. Texts and arrays are borrowed. */
struct rfx_chart_series {
    const char *name; /* in the legend; NULL: not listed */
    enum rfx_chart_style style;
    int n;
    const double *x;             /* [n]; NULL: 0, 1, 2, ... */
    const double *y;             /* [n]; NaN breaks the line */
    const double *x_end, *y_end; /* [n]; boxes and frames only */
    /* [n] texts beside the points; NULL: none. The label of a box is inside the box, horizontal or
     * upright. If the label has several lines, only the first line that fits is written. */
    const char *const *labels;
    bool labels_before; /* a label ends at its point */
    bool labels_below;  /* a label is below its point instead of above */
    int color;   /* 0: by the place of the series in the chart; 1 ..: a colour of the palette */
    bool dashed; /* for a second line of the same colour */
};

struct rfx_chart_axis {
    const char *label; /* with its unit: "memory [MiB]" */
    bool log;          /* all values must be positive */
    double min, max; /* the range; equal: chosen from the data. Labels of boxes are written only if
                      * both axes have a range */
    /* Names of 0, 1, ..., n_categories - 1, written along the x axis; NULL entries are not written.
     * If there are too many names to read, only every k-th name is written. */
    const char *const *categories;
    int n_categories;
};

struct rfx_chart {
    const char *title;
    const char *subtitle; /* below the title, smaller; NULL: none */
    struct rfx_chart_axis x, y;
    int n_series;
    const struct rfx_chart_series *series;
    int width_px, height_px; /* 0: 900 x 560; long names below the plot add to the height */
};

/* Returns whether rfx_chart_write can make a file of this name: the name ends in .svg or .png (any
 * case) or is "-" (SVG to standard output). */
bool rfx_chart_name_ok(const char *path);

/* Draws the chart into `path`. Statuses: INVALID_ARGUMENT when the name ends in neither .svg nor
 * .png, when there is nothing to draw, or when a logarithmic axis cannot show a value; IO when
 * gnuplot is missing (the text names its package) or failed, or the file cannot be written;
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_chart_write(const struct rfx_chart *chart, struct rfx_memory *mem,
                                              const char *path, struct rfx_error *err);

/* Draws n charts below each other into one file. All are as wide as the first one and have the same
 * margins. Statuses: those of rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_chart_write_panels(const struct rfx_chart *panels, int n,
                                                     struct rfx_memory *mem, const char *path,
                                                     struct rfx_error *err);

/* Writes the gnuplot script that draws n charts below each other, as PNG or SVG, to the standard
 * output of gnuplot. The caller checks ferror(stream). */
void rfx_chart_script(const struct rfx_chart *panels, int n, bool png, FILE *stream);

/* Writes a text as a gnuplot string '...': quotes doubled, control characters as spaces, bytes that
 * are not UTF-8 as '?'. gnuplot interprets nothing inside single quotes. */
void rfx_chart_quote(const char *text, FILE *stream);

enum {
    RFX_CHART_LABEL_PX = 28, /* label of the x axis with its margins */
    RFX_CHART_LEGEND_ROW_PX = 21,
    RFX_CHART_PANEL_LEFT_PX =
        104,                /* left margin of a chart that is not alone: room for any numbers */
    RFX_CHART_LEFT_PX = 78, /* margins of charts with boxes; gnuplot chooses those of others */
    RFX_CHART_RIGHT_PX = 22,
    RFX_CHART_TOP_PX = 66,
};
#endif
