/* Checks a chart, computes its layout, writes its gnuplot script and runs gnuplot; see chart.h.
 *
 * gnuplot's standard streams are three files: the script (in memory), the temporary file that
 * becomes the chart, and its messages (in memory). There is no pipe that could fill up or break,
 * and no shell: a text of the chart cannot become a command.
 *
 * The script is blocks of numbers, settings and one plot command. Markup ("enhanced" text) is off.
 * The places of the names along x, of the axis label and of the legend are computed here, because
 * gnuplot places neither legend nor label well below upright names. gnuplot neither measures nor
 * cuts texts, so an average width of letters, chosen rather wide, decides whether a label fits into
 * a box.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "tools/study/chart.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "layers/core/printable.h"
#include "rfexec/output/output_file.h"

/* The data block of a box has the columns x, y, x_end, y_end; the plot command needs the middle of
 * the box first. */
#define RFX_CHART_BOX_COLUMNS "using (($1+$3)/2):(($2+$4)/2):1:3:2:4"

struct rfx_chart_scale { /* pixels per unit; 0: unknown */
    double x, y;
};

struct rfx_chart_layout {
    int width, height;
    int page_height, below_px; /* heights of the whole file, and of the panels below this one */
    int every;                 /* every k-th name along x is written */
    bool upright;              /* names along x are upright */
    int tics_px, legend_rows, bottom_px;
    int left_px;
    bool boxes;         /* the chart has boxes */
    bool given_margins; /* the script sets the margins at the sides and above; always with boxes */
    int legend_inside_px; /* height of the upper edge of a legend in a free corner; 0: the legend is
                             below the plot */
    struct rfx_chart_scale scale; /* of charts with boxes */
};

static const double LETTER =
    0.61; /* average width of a letter, divided by the height of the font */
static const double FONT_PX = 1.15; /* pixels per unit of the script's font sizes */
static const double LABEL_GAP_PX =
    8; /* free space in a box beside its label, on both sides together */
static const int font_sizes[] = {12, 11, 10, 9};
enum { N_FONT_SIZES = sizeof font_sizes / sizeof font_sizes[0], MAX_LABEL_BYTES = 160 };

/* Returns whether a series is boxes or frames. */
static bool chart_is_boxes(const struct rfx_chart_series *series) {
    return series->style == RFX_CHART_BOXES || series->style == RFX_CHART_FRAMES;
}

/* Writes data block $s<k> of a series of boxes. */
static void chart_put_boxes(const struct rfx_chart_series *series, int k, FILE *stream) {
    fprintf(stream, "$s%d << END_OF_DATA\n", k);
    for (int i = 0; i < series->n; ++i)
        fprintf(stream, "%.12g %.12g %.12g %.12g\n", series->x[i], series->y[i], series->x_end[i],
                series->y_end[i]);
    (void)fputs("END_OF_DATA\n", stream);
}

/* Returns the number of letters in `n` bytes of UTF-8. */
static int count_letters(const char *text, size_t n) {
    int letters = 0;
    for (size_t i = 0; i < n; ++i) letters += ((unsigned char)text[i] & 0xC0) != 0x80;
    return letters;
}

/* Returns the largest font size at which a text of `letters` letters fits into along_px x across_px
 * pixels; 0: none. */
static int fitting_size(int letters, double along_px, double across_px) {
    for (int s = 0; s < N_FONT_SIZES; ++s) {
        double height = font_sizes[s] * FONT_PX;
        if (letters * LETTER * height + LABEL_GAP_PX <= along_px && 1.25 * height <= across_px)
            return font_sizes[s];
    }
    return 0;
}

/* Writes `n` bytes of text into the middle of box i, which has w x h pixels. Returns false when the
 * text does not fit. */
static bool put_label(const struct rfx_chart_series *series, int i, const char *text, size_t n,
                      double w, double h, FILE *stream) {
    char label[MAX_LABEL_BYTES];
    if (n == 0 || n >= sizeof label) return false;
    int letters = count_letters(text, n);
    int level = fitting_size(letters, w, h), upright = fitting_size(letters, h, w);
    if (level == 0 && upright == 0) return false;
    memcpy(label, text, n);
    label[n] = '\0';
    (void)fputs("set label ", stream);
    rfx_chart_quote(label, stream);
    fprintf(stream, " at %.12g,%.12g center%s font ',%d' front textcolor '#111111'\n",
            (series->x[i] + series->x_end[i]) / 2, (series->y[i] + series->y_end[i]) / 2,
            level >= upright ? "" : " rotate by 90", level >= upright ? level : upright);
    return true;
}

/* Writes the label of each box in the middle of the box: the first line of the label that fits. */
static void chart_put_box_labels(const struct rfx_chart_series *series,
                                 struct rfx_chart_scale scale, FILE *stream) {
    for (int i = 0; series->labels != NULL && i < series->n; ++i) {
        double w = (series->x_end[i] - series->x[i]) * scale.x;
        double h = (series->y_end[i] - series->y[i]) * scale.y;
        for (const char *text = series->labels[i]; text != NULL;) {
            size_t n = strcspn(text, "\n");
            if (put_label(series, i, text, n, w, h, stream)) break;
            text = text[n] == '\n' ? text + n + 1 : NULL;
        }
    }
}

/* In pixels of the SVG. */
enum {
    DEFAULT_WIDTH = 900, /* the width of a page of text */
    DEFAULT_HEIGHT = 560,
    MAX_CATEGORIES_WRITTEN = 46, /* number of upright names that fit at the default width */
    MAX_CATEGORY_LETTERS = 28,   /* the beginning of longer names is left out */
    LEGEND_LETTER_PX = 8,        /* rather too wide than too narrow */
    LEGEND_SAMPLE_PX = 70,
    LEGEND_GAP_PX = 12, /* around a legend in a corner */
    TIC_LETTER_PX = 8,
    TIC_PX = 32,
};

/* Number of entries of the legend, and width of the widest one. */
struct legend {
    int listed, widest_px;
};

/* Returns the part of a name along x that is written: the end of a long name. */
static const char *chart_category_text(const char *name) {
    size_t n = strlen(name);
    const char *p = n > MAX_CATEGORY_LETTERS ? name + n - MAX_CATEGORY_LETTERS : name;
    while (((unsigned char)*p & 0xC0) == 0x80) ++p; /* do not begin inside a character */
    return p;
}

/* Returns whether the names along x must be upright because they would touch each other. *longest:
 * letters of the longest name. */
static bool must_stand(const struct rfx_chart_axis *x, const struct rfx_chart_layout *layout,
                       int *longest) {
    int letters = 0, before = -1, before_n = 0;
    bool close = false;
    for (int i = 0, at = 0; i < x->n_categories; ++i) {
        if (x->categories[i] == NULL || at++ % layout->every != 0) continue;
        int n = (int)strlen(chart_category_text(x->categories[i]));
        letters += n + 2;
        if (n > *longest) *longest = n;
        int room = (i - before) * (layout->width - 100) / x->n_categories;
        if (before >= 0 && room < (n + before_n + 2) * TIC_LETTER_PX / 2) close = true;
        before = i;
        before_n = n;
    }
    return close || letters * TIC_LETTER_PX > layout->width - 100;
}

/* Decides how the names along x are written, and makes the chart higher for upright names. */
static void place_tics(const struct rfx_chart_axis *x, struct rfx_chart_layout *layout) {
    int named = 0, longest = 0;
    for (int i = 0; i < x->n_categories; ++i) named += x->categories[i] != NULL;
    int most = MAX_CATEGORIES_WRITTEN * layout->width / DEFAULT_WIDTH;
    layout->every = (named + most - 1) / most;
    layout->upright = must_stand(x, layout, &longest);
    layout->tics_px = TIC_PX;
    if (!layout->upright) return;
    layout->tics_px = longest * 7 + 12;
    layout->height += layout->tics_px - TIC_PX;
}

static struct legend measure_legend(const struct rfx_chart *chart) {
    struct legend legend = {0};
    for (int k = 0; k < chart->n_series; ++k) {
        if (chart->series[k].name == NULL) continue;
        int n = (int)strlen(chart->series[k].name) * LEGEND_LETTER_PX + LEGEND_SAMPLE_PX;
        if (n > legend.widest_px) legend.widest_px = n;
        ++legend.listed;
    }
    return legend;
}

static void place_legend_below(const struct legend *legend, struct rfx_chart_layout *layout) {
    int columns = legend->widest_px > 0 ? (layout->width - 40) / legend->widest_px : 1;
    if (columns < 1) columns = 1;
    layout->legend_rows = (legend->listed + columns - 1) / columns;
    if (layout->legend_rows > 2)
        layout->height += (layout->legend_rows - 2) * RFX_CHART_LEGEND_ROW_PX;
    layout->bottom_px =
        layout->tics_px + RFX_CHART_LABEL_PX + layout->legend_rows * RFX_CHART_LEGEND_ROW_PX + 14;
}

/* Returns pixels per unit; 0 for an axis without a range. */
static struct rfx_chart_scale measure_scale(const struct rfx_chart *chart,
                                            const struct rfx_chart_layout *layout) {
    struct rfx_chart_scale scale = {0};
    const struct rfx_chart_axis *x = &chart->x, *y = &chart->y;
    double width = layout->width - layout->left_px - RFX_CHART_RIGHT_PX;
    double height = layout->height - RFX_CHART_TOP_PX - layout->bottom_px;
    if (x->n_categories > 0) scale.x = width / x->n_categories;
    if (x->n_categories == 0 && x->min < x->max) scale.x = width / (x->max - x->min);
    if (y->min < y->max) scale.y = height / (y->max - y->min);
    return scale;
}

/* Returns whether a box of the series reaches into the area right of x and above y. */
static bool is_taken(const struct rfx_chart_series *series, double x, double y) {
    if (!chart_is_boxes(series)) return false;
    for (int i = 0; i < series->n; ++i)
        if (series->x_end[i] > x && series->y_end[i] > y) return true;
    return false;
}

/* Puts the legend into the upper right corner, below all lines. Returns false, without a change,
 * when the corner is not free. */
static bool place_legend_inside(const struct rfx_chart *chart, const struct legend *legend,
                                struct rfx_chart_layout *layout) {
    struct rfx_chart_layout inside = *layout;
    inside.bottom_px = inside.tics_px + RFX_CHART_LABEL_PX + 14;
    inside.scale = measure_scale(chart, &inside);
    if (inside.scale.x <= 0.0 || inside.scale.y <= 0.0 || legend->listed == 0) return false;
    double right = chart->x.n_categories > 0 ? chart->x.n_categories - 0.5 : chart->x.max;
    double top = chart->y.max;
    for (int k = 0; k < chart->n_series; ++k)
        for (int i = 0; i < chart->series[k].n && !chart_is_boxes(&chart->series[k]); ++i)
            if (chart->series[k].y[i] < top) top = chart->series[k].y[i];
    top -= LEGEND_GAP_PX / inside.scale.y;
    double x = right - (legend->widest_px + LEGEND_GAP_PX) / inside.scale.x;
    int rows_px = legend->listed * RFX_CHART_LEGEND_ROW_PX + LEGEND_GAP_PX;
    double y = top - rows_px / inside.scale.y;
    if (y <= chart->y.min) return false;
    for (int k = 0; k < chart->n_series; ++k)
        if (is_taken(&chart->series[k], x, y)) return false;
    *layout = inside;
    layout->legend_rows = legend->listed;
    layout->legend_inside_px = layout->bottom_px + (int)((top - chart->y.min) * layout->scale.y);
    return true;
}

/* Returns the layout of a chart. panel: the chart is one of several with the same margins. */
static struct rfx_chart_layout chart_layout_make(const struct rfx_chart *chart, bool panel) {
    struct rfx_chart_layout layout = {
        .width = chart->width_px > 0 ? chart->width_px : DEFAULT_WIDTH,
        .height = chart->height_px > 0 ? chart->height_px : DEFAULT_HEIGHT};
    struct legend legend = measure_legend(chart);
    for (int k = 0; k < chart->n_series; ++k)
        if (chart_is_boxes(&chart->series[k])) layout.boxes = true;
    layout.given_margins = layout.boxes || panel;
    layout.left_px = panel ? RFX_CHART_PANEL_LEFT_PX : RFX_CHART_LEFT_PX;
    place_tics(&chart->x, &layout);
    if (layout.boxes && place_legend_inside(chart, &legend, &layout)) return layout;
    place_legend_below(&legend, &layout);
    layout.scale = measure_scale(chart, &layout);
    return layout;
}

enum {
    PNG_SCALE = 2
}; /* pixels of a PNG for one pixel of an SVG; sizes are given in pixels of an SVG */

/* Okabe and Ito's colours for colour-blind readers, the darker ones first, without yellow. */
static const char *const palette[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#000000", "#7F7F7F"};

/* The same colours, half way to white, for areas with dark text on them. They are opaque, so that
 * no grid line is seen through them. */
static const char *const tints[] = {"#8CC0DC", "#ECB78C", "#8CD3C0", "#E8C3D7",
                                    "#F4D48C", "#B3DDF5", "#8C8C8C", "#C5C5C5"};

/* Dashes and marks repeat with other periods than colours, so that no two lines look alike. */
static const char *const dashes[] = {"1", "(14,5)", "(4,4)", "(14,4,3,4)", "(8,3,2,3,2,3)"};
static const int marks[] = {7, 5, 9, 13, 11, 6, 4, 8, 12};
enum {
    N_COLORS = sizeof palette / sizeof palette[0],
    N_DASHES = sizeof dashes / sizeof dashes[0],
    N_MARKS = sizeof marks / sizeof marks[0]
};

void rfx_chart_quote(const char *text, FILE *stream) {
    (void)fputc('\'', stream);
    for (const char *p = text; *p != '\0';) {
        int n = rfx_utf8_bytes(p);
        bool control = n == 1 && ((unsigned char)*p < 0x20 || *p == 0x7F);
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

/* Writes data block $s<k> of a series: x, y, and the lower edge of a filled area. */
static void put_data(const struct rfx_chart *chart, int k, FILE *stream) {
    const struct rfx_chart_series *series = &chart->series[k];
    if (chart_is_boxes(series)) {
        chart_put_boxes(series, k, stream);
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
    /* gnuplot counts sizes in points for a PNG and in pixels for an SVG; the rest of the script
     * uses pixels of an SVG */
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

/* Writes the names along x: every k-th if there are too many, upright if they are long. */
static void put_categories(const struct rfx_chart_axis *axis, const struct rfx_chart_layout *layout,
                           FILE *stream) {
    fprintf(stream, "set xtics %s out nomirror font ',%d' (",
            layout->upright ? "rotate by 90 right" : "norotate", layout->upright ? 10 : 12);
    for (int i = 0, at = 0; i < axis->n_categories; ++i) {
        if (axis->categories[i] == NULL || at++ % layout->every != 0) continue;
        if (at > 1) (void)fputs(", ", stream);
        const char *text = chart_category_text(axis->categories[i]);
        if (text != axis->categories[i]) (void)fputs("'…'.", stream);
        rfx_chart_quote(text, stream);
        fprintf(stream, " %d", i);
    }
    fprintf(stream, ")\nset xrange [-0.5:%d.5]\n", axis->n_categories - 1);
}

/* Returns the height `px` above the lower edge of a panel as a share of the page. */
static double from_bottom(const struct rfx_chart_layout *layout, int px) {
    return (double)(layout->below_px + px) / layout->page_height;
}

/* Writes the margins, the legend and the label of the x axis. */
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

/* Returns whether no value is below 0, so that the y axis can begin at 0. */
static bool is_positive(const struct rfx_chart *chart) {
    for (int k = 0; k < chart->n_series; ++k)
        for (int i = 0; i < chart->series[k].n; ++i)
            if (isfinite(chart->series[k].y[i]) && chart->series[k].y[i] < 0.0) return false;
    return true;
}

/* Writes the tics of a logarithmic axis of few decades: numbers at 1, 2 and 5 of each decade, marks
 * without a number between them. The numbers 10, 100, 1000 alone would be hard to read. */
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

/* Writes labels beside the points of lines and marks. */
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
        if (chart_is_boxes(&chart->series[k]))
            chart_put_box_labels(&chart->series[k], layout->scale, stream);
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

/* Writes the script of one chart: data, settings and plot command. */
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
    struct rfx_chart_layout page = chart_layout_make(&panels[0], n > 1);
    page.page_height = 0;
    for (int i = 0; i < n; ++i) page.page_height += chart_layout_make(&panels[i], n > 1).height;
    (void)fputs("set encoding utf8\n", stream);
    put_terminal(&page, png, stream);
    if (n > 1) (void)fputs("set multiplot\n", stream);
    int above_px = 0;
    for (int i = 0; i < n; ++i) {
        struct rfx_chart_layout layout = chart_layout_make(&panels[i], n > 1);
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

extern char **environ;

static bool ends_with(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcasecmp(path + n - m, suffix) == 0;
}

bool rfx_chart_name_ok(const char *path) {
    return strcmp(path, "-") == 0 || ends_with(path, ".svg") || ends_with(path, ".png");
}

/* Returns the number of points that can be drawn; -1: a logarithmic axis cannot show one of them.
 */
static int64_t drawable_points(const struct rfx_chart *chart) {
    int64_t count = 0;
    for (int k = 0; k < chart->n_series; ++k) {
        const struct rfx_chart_series *series = &chart->series[k];
        for (int i = 0; i < series->n; ++i) {
            double x = series->x != NULL ? series->x[i] : i, y = series->y[i];
            if (!isfinite(x) || !isfinite(y)) continue;
            if ((chart->x.log && x <= 0) || (chart->y.log && y <= 0)) return -1;
            ++count;
        }
    }
    return count;
}

static enum rfx_status check(const struct rfx_chart *panels, int n, const char *path,
                             struct rfx_error *err) {
    if (!rfx_chart_name_ok(path))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "chart '%s': the name must end in .svg or .png", path);
    for (int i = 0; i < n; ++i) {
        int64_t points = drawable_points(&panels[i]);
        if (points < 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "chart '%s': a logarithmic axis cannot show values of 0 or less", path);
        if (points == 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "chart '%s': nothing to draw", path);
    }
    return RFX_OK;
}

/* Returns a descriptor of a file in memory with the script, at its beginning; -1 with errno set
 * when that fails. */
static int script_open(const struct rfx_chart *panels, int n, bool png) {
    int fd = memfd_create("chart script", MFD_CLOEXEC);
    if (fd < 0) return -1;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *stream = copy < 0 ? NULL : fdopen(copy, "w");
    bool ok = stream != NULL;
    if (ok) {
        rfx_chart_script(panels, n, png, stream);
        ok = ferror(stream) == 0;
        if (fclose(stream) != 0) ok = false;
        ok = ok && lseek(fd, 0, SEEK_SET) == 0;
    } else if (copy >= 0) {
        (void)close(copy);
    }
    if (ok) return fd;
    (void)close(fd);
    return -1;
}

/* Copies the last line of gnuplot's messages that names an error, or else the first line. */
static void read_reason(int fd, char *text, size_t size) {
    char buffer[1024];
    ssize_t n = pread(fd, buffer, sizeof buffer - 1, 0);
    buffer[n > 0 ? n : 0] = '\0';
    char *save = NULL, *line = strtok_r(buffer, "\n", &save);
    const char *best = line;
    for (; line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strstr(line, "line ") != NULL || strstr(line, "rror") != NULL) best = line;
    (void)snprintf(text, size, "%s", best != NULL ? best : "it said nothing");
}

/* Waits for a child process. Returns false when the work has to stop; the child has then been
 * ended.
 */
static bool wait_for(pid_t pid, const struct rfx_memory *mem, int *code) {
    const struct timespec moment = {0, 5 * 1000 * 1000};
    for (;;) {
        pid_t ended = waitpid(pid, code, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return true;
        if (rfx_memory_is_stopped(mem)) break;
        (void)nanosleep(&moment, NULL);
    }
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, code, 0) < 0)
        if (errno != EINTR) break;
    return false;
}

/* Runs gnuplot with `script` as standard input and `image` as standard output, and waits for its
 * end. */
static enum rfx_status run_gnuplot(int script, int image, const struct rfx_memory *mem,
                                   const char *path, struct rfx_error *err) {
    char name[] = "gnuplot", no_settings[] = "-d";
    char *argv[] = {name, no_settings, NULL};
    enum rfx_status status = RFX_OK;
    pid_t pid;
    int code = 0, messages = memfd_create("gnuplot messages", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    if (messages < 0 || posix_spawn_file_actions_init(&actions) != 0) {
        if (messages >= 0) (void)close(messages);
        return rfx_fail(err, RFX_STATUS_IO, "chart '%s': %s", path, strerror(errno));
    }
    int why = posix_spawn_file_actions_adddup2(&actions, script, 0);
    if (why == 0) why = posix_spawn_file_actions_adddup2(&actions, image, 1);
    if (why == 0) why = posix_spawn_file_actions_adddup2(&actions, messages, 2);
    if (why == 0) why = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (why == ENOENT) {
        status = rfx_fail(err, RFX_STATUS_IO,
                          "chart '%s': charts are drawn by gnuplot, which is not installed "
                          "(Debian package gnuplot-nox)",
                          path);
    } else if (why != 0) {
        status = rfx_fail(err, RFX_STATUS_IO, "chart '%s': gnuplot cannot be started: %s", path,
                          strerror(why));
    } else {
        if (!wait_for(pid, mem, &code)) status = rfx_memory_check_stop(mem, err);
        char reason[256];
        read_reason(messages, reason, sizeof reason);
        struct stat info;
        bool empty = fstat(image, &info) != 0 || (S_ISREG(info.st_mode) && info.st_size == 0);
        bool stopped = status != RFX_OK;
        if (!stopped && (!WIFEXITED(code) || WEXITSTATUS(code) != 0 || empty))
            status = rfx_fail(err, RFX_STATUS_IO, "chart '%s': gnuplot failed: %s", path, reason);
    }
    (void)close(messages);
    return status;
}

enum rfx_status rfx_chart_write(const struct rfx_chart *chart, struct rfx_memory *mem,
                                const char *path, struct rfx_error *err) {
    return rfx_chart_write_panels(chart, 1, mem, path, err);
}

enum rfx_status rfx_chart_write_panels(const struct rfx_chart *panels, int n,
                                       struct rfx_memory *mem, const char *path,
                                       struct rfx_error *err) {
    enum rfx_status status = check(panels, n, path, err);
    if (status != RFX_OK) return status;
    struct rfx_output_file *file = NULL;
    status = rfx_output_file_open(mem, path, &file, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "chart");
    int script = script_open(panels, n, ends_with(path, ".png"));
    if (script < 0)
        status = rfx_fail(err, RFX_STATUS_IO, "chart '%s': %s", path, strerror(errno));
    else
        status = run_gnuplot(script, rfx_output_file_descriptor(file), mem, path, err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    if (script >= 0) (void)close(script);
    rfx_output_file_free(file);
    return status;
}
