/* The gnuplot script of a chart: everything that decides how charts look. */
#ifndef RFX_TOOLS_CHART_CHART_SCRIPT_H
#define RFX_TOOLS_CHART_CHART_SCRIPT_H

#include <stdio.h>

#include "tools/chart/chart.h"

/* Writes the script that draws n charts, one below the other, to gnuplot's standard output, as PNG
 * or else SVG. Whether writing succeeded is left to ferror(stream). */
void rfx_chart_script(const struct rfx_chart *panels, int n, bool png, FILE *stream);

/* Writes a text as a gnuplot string: '...' with quotes doubled, control characters as spaces and
 * bytes that are not UTF-8 as '?'. Nothing inside single quotes is interpreted. */
void rfx_chart_quote(const char *text, FILE *stream);
#endif
