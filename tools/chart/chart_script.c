/* Turns a chart into a gnuplot script; see chart_script.h.
 *
 * The script is data blocks of plain numbers, settings, and one plot command. All texts go through
 * rfx_chart_quote, and markup ("enhanced" text) is off, so underscores and braces are themselves.
 * Steps are written out as two points per value: gnuplot's own step styles centre neither first nor
 * last. */
#include "tools/chart/chart_script.h"

#include <math.h>
#include <string.h>

#include "tools/chart/chart_boxes.h"
#include "tools/chart/chart_layout.h"

enum { PNG_SCALE = 2 }; /* pixels of a PNG per pixel of the SVG, in which sizes are given */

/* Okabe and Ito's colours for colour-blind readers, the darker ones first; yellow is left out. */
static const char *const palette[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#000000", "#7F7F7F"};
/* The same for areas with dark text on them: half way to white, and no grid shines through. */
static const char *const tints[] = {"#8CC0DC", "#ECB78C", "#8CD3C0", "#E8C3D7",
                                    "#F4D48C", "#B3DDF5", "#8C8C8C", "#C5C5C5"};
/* Dashes and marks go round with other periods than the colours, so that no two lines agree. */
static const char *const dashes[] = {"1", "(14,5)", "(4,4)", "(14,4,3,4)", "(8,3,2,3,2,3)"};
static const int marks[] = {7, 5, 9, 13, 11, 6, 4, 8, 12};
enum {
    N_COLORS = sizeof palette / sizeof palette[0],
    N_DASHES = sizeof dashes / sizeof dashes[0],
    N_MARKS = sizeof marks / sizeof marks[0]
};

/* Bytes of the UTF-8 character at p; 0 when there is none. */
static int utf8_length(const unsigned char *p) {
    int n = p[0] < 0x80 ? 1 : p[0] >= 0xC2 && p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] >= 0x80 && (p[0] < 0xC2 || p[0] > 0xF4)) return 0;
    for (int i = 1; i < n; ++i)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if (p[0] == 0xE0 && p[1] < 0xA0) return 0;                          /* overlong */
    if (p[0] == 0xED && p[1] > 0x9F) return 0;                          /* surrogates */
    if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) /* outside Unicode */
        return 0;
    return n;
}

void rfx_chart_quote(const char *text, FILE *stream) {
    (void)fputc('\'', stream);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        int n = utf8_length(p);
        bool control = n == 1 && (*p < 0x20 || *p == 0x7F);
        if (n == 0 || control) {
            (void)fputc(control ? ' ' : '?', stream);
            ++p;
            continue;
        }
        if (*p == '\'') (void)fputc('\'', stream);
        (void)fwrite(p, 1, (size_t)n, stream);
        p += n;
    }
    (void)fputc('\'', stream);
}

static void put_number(double value, FILE *stream) {
    if (isfinite(value))
        fprintf(stream, "%.12g", value);
    else
        (void)fputs("NaN", stream);
}

static double series_x(const struct rfx_chart_series *series, int i) {
    return series->x != NULL ? series->x[i] : (double)i;
}

static void put_point(double x, double y, double low, FILE *stream) {
    put_number(x, stream);
    (void)fputc(' ', stream);
    put_number(y, stream);
    (void)fputc(' ', stream);
    put_number(low, stream);
    (void)fputc('\n', stream);
}

/* One data block: x, y, lower edge of a filled area. */
static void put_data(const struct rfx_chart *chart, int k, FILE *stream) {
    const struct rfx_chart_series *series = &chart->series[k];
    if (rfx_chart_is_boxes(series)) {
        rfx_chart_put_boxes(series, k, stream);
        return;
    }
    bool stepped = series->style == RFX_CHART_STEPS || series->style == RFX_CHART_FILLED;
    double low = chart->y.log || chart->y.min < chart->y.max ? chart->y.min : 0.0;
    fprintf(stream, "$s%d << END_OF_DATA\n", k);
    for (int i = 0; i < series->n; ++i) {
        double x = series_x(series, i), half = stepped ? 0.5 : 0.0;
        put_point(x - half, series->y[i], low, stream);
        if (stepped) put_point(x + half, series->y[i], low, stream);
    }
    (void)fputs("END_OF_DATA\n", stream);
}

static void put_terminal(const struct rfx_chart_layout *layout, bool png, FILE *stream) {
    int w = layout->width, h = layout->page_height, s = PNG_SCALE;
    /* points in a PNG, pixels in an SVG; other sizes in the script are in units of the latter */
    if (png)
        fprintf(stream,
                "set terminal pngcairo size %d,%d fontscale %.2f linewidth %d pointscale %d "
                "noenhanced font 'DejaVu Sans,13' background '#ffffff'\n",
                w * s, h * s, 0.78 * s, s, s);
    else
        fprintf(stream,
                "set terminal svg size %d,%d linewidth 1 fontscale 1.15 noenhanced "
                "font 'sans-serif,13' background '#ffffff'\n",
                w, h);
}

/* The categories along x: every k-th when there are too many, upright when they are not short. */
static void put_categories(const struct rfx_chart_axis *axis, const struct rfx_chart_layout *layout,
                           FILE *stream) {
    fprintf(stream, "set xtics %s out nomirror font ',%d' (",
            layout->upright ? "rotate by 90 right" : "norotate", layout->upright ? 10 : 12);
    for (int i = 0, at = 0; i < axis->n_categories; ++i) {
        if (axis->categories[i] == NULL || at++ % layout->every != 0) continue;
        if (at > 1) (void)fputs(", ", stream);
        const char *text = rfx_chart_category_text(axis->categories[i]);
        if (text != axis->categories[i]) (void)fputs("'…'.", stream);
        rfx_chart_quote(text, stream);
        fprintf(stream, " %d", i);
    }
    fprintf(stream, ")\nset xrange [-0.5:%d.5]\n", axis->n_categories - 1);
}

static double from_bottom(const struct rfx_chart_layout *layout, int px) {
    return (double)(layout->below_px + px) / layout->page_height;
}

/* The legend and the x axis' label, from the lower edge up. */
static void put_bottom(const struct rfx_chart *chart, const struct rfx_chart_layout *layout,
                       FILE *stream) {
    int legend_px =
        layout->legend_inside_px > 0 ? 0 : layout->legend_rows * RFX_CHART_LEGEND_ROW_PX;
    fprintf(stream, "set bmargin at screen %.4f\n", from_bottom(layout, layout->bottom_px));
    if (layout->given_margins)
        fprintf(stream,
                "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset tmargin at screen "
                "%.4f\n",
                (double)layout->left_px / layout->width,
                1.0 - (double)RFX_CHART_RIGHT_PX / layout->width,
                from_bottom(layout, layout->height - RFX_CHART_TOP_PX));
    if (layout->legend_inside_px > 0)
        fprintf(stream,
                "set key at screen %.4f, screen %.4f top right vertical maxrows %d Left reverse "
                "samplen 3 spacing 1.1\n",
                1.0 - (double)(RFX_CHART_RIGHT_PX + 4) / layout->width,
                from_bottom(layout, layout->legend_inside_px), layout->legend_rows);
    else if (layout->legend_rows > 0)
        fprintf(stream,
                "set key at graph 0.5, screen %.4f bottom center vertical maxrows %d Left reverse "
                "samplen 3 spacing 1.1\n",
                from_bottom(layout, 6), layout->legend_rows);
    else
        (void)fputs("unset key\n", stream);
    if (chart->x.label == NULL) return;
    (void)fputs("set label ", stream);
    rfx_chart_quote(chart->x.label, stream);
    fprintf(stream, " at graph 0.5, screen %.4f center\n",
            from_bottom(layout, legend_px + 10 + RFX_CHART_LABEL_PX / 2));
}

/* Whether no value lies below 0, so that the y axis can begin there. */
static bool is_positive(const struct rfx_chart *chart) {
    for (int k = 0; k < chart->n_series; ++k)
        for (int i = 0; i < chart->series[k].n; ++i)
            if (isfinite(chart->series[k].y[i]) && chart->series[k].y[i] < 0.0) return false;
    return true;
}

/* A logarithmic axis of few decades has numbers at 1, 2 and 5 of each, and marks at the others:
 * with 10, 100, 1000 alone hardly anything can be read from it. */
static void put_decades(char name, const struct rfx_chart_axis *axis, FILE *stream) {
    bool first = true;
    fprintf(stream, "set %ctics out nomirror (", name);
    for (double decade = pow(10.0, floor(log10(axis->min))); decade <= axis->max; decade *= 10.0)
        for (int i = 1; i < 10; ++i) {
            double at = i * decade;
            if (at < axis->min || at > axis->max) continue;
            fprintf(stream, first ? "" : ", ");
            if (i == 1 || i == 2 || i == 5)
                fprintf(stream, "'%.12g' %.12g", at, at);
            else
                fprintf(stream, "'' %.12g 1", at);
            first = false;
        }
    (void)fputs(")\n", stream);
}

static void put_axis(char name, const struct rfx_chart_axis *axis,
                     const struct rfx_chart_layout *layout, bool from_zero, FILE *stream) {
    if (axis->label != NULL && name == 'y') {
        (void)fputs("set ylabel ", stream);
        rfx_chart_quote(axis->label, stream);
        (void)fputc('\n', stream);
    }
    if (axis->log) fprintf(stream, "set logscale %c\n", name);
    if (axis->n_categories > 0 && name == 'x') {
        put_categories(axis, layout, stream);
        return;
    }
    if (axis->log && axis->min > 0.0 && axis->max > 2.0 * axis->min &&
        axis->max < 1000.0 * axis->min)
        put_decades(name, axis, stream);
    else
        fprintf(stream, "set %ctics out nomirror\n", name);
    if (axis->min < axis->max)
        fprintf(stream, "set %crange [%.12g:%.12g]\n", name, axis->min, axis->max);
    else if (!axis->log && name == 'y' && from_zero)
        fprintf(stream, "set yrange [0:*]\nset offsets graph 0, graph 0, graph 0.06, graph 0\n");
}

/* Labels beside the points of lines and marks. */
static void put_labels(const struct rfx_chart_series *series, int k, FILE *stream) {
    int color = (series->color > 0 ? series->color - 1 : k) % N_COLORS;
    for (int i = 0; series->labels != NULL && i < series->n; ++i) {
        if (series->labels[i] == NULL || !isfinite(series->y[i])) continue;
        if (!isfinite(series_x(series, i))) continue;
        (void)fputs("set label ", stream);
        rfx_chart_quote(series->labels[i], stream);
        fprintf(stream, " at %.12g,%.12g %s,%s font ',12' front textcolor '%s'\n",
                series_x(series, i), series->y[i],
                series->labels_before ? "right offset -0.6" : "left offset 0.6",
                series->labels_below || (k % 2 != 0 && series->color == 0) ? "-0.7" : "0.7",
                palette[color]);
    }
}

static void put_texts(const struct rfx_chart *chart, const struct rfx_chart_layout *layout,
                      FILE *stream) {
    if (chart->title != NULL) {
        (void)fputs("set title ", stream);
        rfx_chart_quote(chart->title, stream);
        fprintf(stream, " font ',17' offset 0,%s\n", chart->subtitle != NULL ? "0.7" : "0");
    }
    if (chart->subtitle != NULL) {
        (void)fputs("set label ", stream);
        rfx_chart_quote(chart->subtitle, stream);
        (void)fputs(" at graph 0.5,1 center offset 0,0.8 font ',12' textcolor '#555555'\n", stream);
        if (!layout->given_margins) (void)fputs("set tmargin 4.5\n", stream);
    }
    for (int k = 0; k < chart->n_series; ++k) {
        if (rfx_chart_is_boxes(&chart->series[k]))
            rfx_chart_put_box_labels(&chart->series[k], layout->scale, stream);
        else
            put_labels(&chart->series[k], k, stream);
    }
}

static void put_style(const struct rfx_chart *chart, int k, FILE *stream) {
    const struct rfx_chart_series *series = &chart->series[k];
    int color = (series->color > 0 ? series->color - 1 : k) % N_COLORS;
    const char *dash = dashes[series->dashed ? 1 : series->color > 0 ? 0 : k % N_DASHES];
    int mark = marks[(series->color > 0 ? color : k) % N_MARKS];
    const char *rgb = palette[color];
    switch (series->style) {
        case RFX_CHART_LINES:
        case RFX_CHART_STEPS:
            fprintf(stream, "using 1:2 with lines linecolor '%s' linewidth 2 dashtype %s", rgb,
                    dash);
            break;
        case RFX_CHART_LINES_POINTS:
            fprintf(stream,
                    "using 1:2 with linespoints linecolor '%s' linewidth 2 dashtype %s "
                    "pointtype %d pointsize 0.7",
                    rgb, dash, mark);
            break;
        case RFX_CHART_POINTS:
            fprintf(stream, "using 1:2 with points linecolor '%s' pointtype %d pointsize 1.1", rgb,
                    mark);
            break;
        case RFX_CHART_RINGS:
            fprintf(stream,
                    "using 1:2 with points linecolor '%s' linewidth 2 pointtype 6 pointsize 1.8",
                    rgb);
            break;
        case RFX_CHART_FILLED:
            fprintf(stream,
                    "using 1:2:3 with filledcurves fillcolor '%s' fillstyle solid 0.35 noborder",
                    rgb);
            break;
        case RFX_CHART_BOXES:
            fprintf(stream,
                    RFX_CHART_BOX_COLUMNS
                    " with boxxyerror fillcolor '%s' fillstyle solid 1.0 border linecolor '%s' "
                    "linewidth 0.7",
                    tints[color], rgb);
            break;
        case RFX_CHART_FRAMES:
            fprintf(stream,
                    RFX_CHART_BOX_COLUMNS
                    " with boxxyerror linecolor '%s' linewidth 1.8 dashtype %s fillstyle empty",
                    rgb, dash);
            break;
        case RFX_CHART_ARROWS:
            fprintf(stream, "using 1:2 with points linecolor '%s' pointtype 11 pointsize 1.2", rgb);
            break;
        case RFX_CHART_STYLE_COUNT:
            break;
    }
}

/* One chart, from its data to its plot command. */
static void put_chart(const struct rfx_chart *chart, const struct rfx_chart_layout *layout,
                      FILE *stream) {
    for (int k = 0; k < chart->n_series; ++k) put_data(chart, k, stream);
    (void)fputs(
        "set border 3 linecolor '#555555'\nset grid xtics ytics back linecolor '#dddddd' "
        "linewidth 1 dashtype 1\n",
        stream);
    put_axis('x', &chart->x, layout, false, stream);
    put_axis('y', &chart->y, layout, is_positive(chart), stream);
    put_bottom(chart, layout, stream);
    put_texts(chart, layout, stream);
    (void)fputs("plot ", stream);
    for (int k = 0; k < chart->n_series; ++k) {
        fprintf(stream, "%s$s%d ", k > 0 ? ", \\\n  " : "", k);
        put_style(chart, k, stream);
        if (chart->series[k].name != NULL) {
            (void)fputs(" title ", stream);
            rfx_chart_quote(chart->series[k].name, stream);
        } else {
            (void)fputs(" notitle", stream);
        }
    }
    (void)fputc('\n', stream);
}

void rfx_chart_script(const struct rfx_chart *panels, int n, bool png, FILE *stream) {
    struct rfx_chart_layout page = rfx_chart_layout_make(&panels[0], n > 1);
    page.page_height = 0;
    for (int i = 0; i < n; ++i) page.page_height += rfx_chart_layout_make(&panels[i], n > 1).height;
    (void)fputs("set encoding utf8\n", stream);
    put_terminal(&page, png, stream);
    if (n > 1) (void)fputs("set multiplot\n", stream);
    int above_px = 0;
    for (int i = 0; i < n; ++i) {
        struct rfx_chart_layout layout = rfx_chart_layout_make(&panels[i], n > 1);
        above_px += layout.height;
        layout.page_height = page.page_height;
        layout.below_px = page.page_height - above_px;
        layout.width = page.width;
        if (n > 1)
            fprintf(stream, "reset\nset origin 0,%.4f\nset size 1,%.4f\n", from_bottom(&layout, 0),
                    (double)layout.height / page.page_height);
        put_chart(&panels[i], &layout, stream);
    }
    if (n > 1) (void)fputs("unset multiplot\n", stream);
}
