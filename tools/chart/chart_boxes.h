/* The boxes of a chart: their data blocks, and labels that stay inside them. A part of
 * chart_script.c. */
#ifndef RFX_TOOLS_CHART_CHART_BOXES_H
#define RFX_TOOLS_CHART_CHART_BOXES_H

#include <stdio.h>

#include "tools/chart/chart.h"

/* A data block has rows x, y, x_end, y_end; what a box's plot takes of them. */
#define RFX_CHART_BOX_COLUMNS "using (($1+$3)/2):(($2+$4)/2):1:3:2:4"

struct rfx_chart_scale { /* pixels per unit; 0: unknown */
    double x, y;
};

/* Whether a series is boxes or frames. */
bool rfx_chart_is_boxes(const struct rfx_chart_series *series);

/* Writes data block $s<k> of a series of boxes. */
void rfx_chart_put_boxes(const struct rfx_chart_series *series, int k, FILE *stream);

/* Writes the labels that fit, each in the middle of its box. */
void rfx_chart_put_box_labels(const struct rfx_chart_series *series, struct rfx_chart_scale scale,
                              FILE *stream);
#endif
