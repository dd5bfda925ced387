/* Turns a chart into a gnuplot script; see chart_script.h.
 *
 * The script is data blocks of plain numbers, settings, and one plot command. All texts go through
 * rfx_chart_quote, and markup ("enhanced" text) is off, so underscores and braces are themselves.
 * Steps are written out as two points per value: gnuplot's own step styles centre neither first nor
 * last. */
#include "chart_script.h"

#include <math.h>
#include <string.h>

/* In pixels of the SVG; a PNG has PNG_SCALE times as many. */
enum {
    DEFAULT_WIDTH = 900,
    DEFAULT_HEIGHT = 560,
    PNG_SCALE = 2,
    MAX_CATEGORIES_WRITTEN = 46,
    MAX_CATEGORY_LETTERS = 28, /* longer names are cut at the front */
    LABEL_PX = 28,             /* the x axis' label with its margins */
    LEGEND_ROW_PX = 21,
    LEGEND_LETTER_PX = 8,
    LEGEND_SAMPLE_PX = 70,
    TIC_PX = 32,
};

/* What is below the plot: sized here, because gnuplot places neither legend nor label well below
 * names that stand upright. */
struct layout {
    int width, height;
    int every;    /* k-th category is written */
    bool upright; /* categories */
    int tics_px, legend_rows, bottom_px;
};

/* Okabe and Ito's colours for colour-blind readers, the darker ones first; yellow is left out. */
static const char *const palette[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#000000", "#7F7F7F"};
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

/* The end of a category's name that is written. */
static const char *category_text(const char *name) {
    size_t n = strlen(name);
    const char *p = n > MAX_CATEGORY_LETTERS ? name + n - MAX_CATEGORY_LETTERS : name;
    while (((unsigned char)*p & 0xC0) == 0x80) ++p; /* never from inside a character */
    return p;
}

static struct layout make_layout(const struct rfx_chart *chart) {
    struct layout layout = {.width = chart->width_px > 0 ? chart->width_px : DEFAULT_WIDTH,
                            .height = chart->height_px > 0 ? chart->height_px : DEFAULT_HEIGHT,
                            .tics_px = TIC_PX};
    const struct rfx_chart_axis *x = &chart->x;
    layout.every = (x->n_categories + MAX_CATEGORIES_WRITTEN - 1) / MAX_CATEGORIES_WRITTEN;
    int letters = 0, longest = 0, listed = 0, widest = 0;
    for (int i = 0; i < x->n_categories; i += layout.every) {
        int n = (int)strlen(category_text(x->categories[i]));
        letters += n + 2;
        if (n > longest) longest = n;
    }
    layout.upright = letters * 8 > layout.width - 100;
    if (layout.upright) {
        layout.tics_px = longest * 7 + 12;
        layout.height += layout.tics_px - TIC_PX;
    }
    for (int k = 0; k < chart->n_series; ++k) {
        if (chart->series[k].name == NULL) continue;
        int n = (int)strlen(chart->series[k].name) * LEGEND_LETTER_PX + LEGEND_SAMPLE_PX;
        if (n > widest) widest = n;
        ++listed;
    }
    int columns = widest > 0 ? (layout.width - 40) / widest : 1;
    if (columns < 1) columns = 1;
    layout.legend_rows = (listed + columns - 1) / columns;
    if (layout.legend_rows > 2) layout.height += (layout.legend_rows - 2) * LEGEND_ROW_PX;
    layout.bottom_px = layout.tics_px + LABEL_PX + layout.legend_rows * LEGEND_ROW_PX + 14;
    return layout;
}

static void put_terminal(const struct layout *layout, bool png, FILE *stream) {
    int w = layout->width, h = layout->height, s = PNG_SCALE;
    /* points in a PNG, pixels in an SVG; other sizes in the script are in units of the latter */
    if (png)
        fprintf(stream,
                "set terminal pngcairo size %d,%d fontscale %.2f linewidth %d pointscale %d "
                "noenhanced font 'DejaVu Sans,13' background '#ffffff'\n",
                w * s, h * s, 0.78 * s, s, s);
    else
        fprintf(stream,
                "set terminal svg size %d,%d linewidth 1 fontscale 1.15 noenhanced font 'DejaVu "
                "Sans,13' "
                "background '#ffffff'\n",
                w, h);
}

/* The categories along x: every k-th when there are too many, upright when they are not short. */
static void put_categories(const struct rfx_chart_axis *axis, const struct layout *layout,
                           FILE *stream) {
    fprintf(stream, "set xtics %s out nomirror font ',%d' (",
            layout->upright ? "rotate by 90 right" : "norotate", layout->upright ? 10 : 12);
    for (int i = 0; i < axis->n_categories; i += layout->every) {
        if (i > 0) (void)fputs(", ", stream);
        const char *text = category_text(axis->categories[i]);
        if (text != axis->categories[i]) (void)fputs("'…'.", stream);
        rfx_chart_quote(text, stream);
        fprintf(stream, " %d", i);
    }
    fprintf(stream, ")\nset xrange [-0.5:%d.5]\n", axis->n_categories - 1);
}

static double from_bottom(const struct layout *layout, int px) {
    return (double)px / layout->height;
}

/* The legend and the x axis' label, from the lower edge up. */
static void put_bottom(const struct rfx_chart *chart, const struct layout *layout, FILE *stream) {
    int legend_px = layout->legend_rows * LEGEND_ROW_PX;
    fprintf(stream, "set bmargin at screen %.4f\n", from_bottom(layout, layout->bottom_px));
    if (layout->legend_rows > 0)
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
            from_bottom(layout, legend_px + 10 + LABEL_PX / 2));
}

/* Whether no value lies below 0, so that the y axis can begin there. */
static bool is_positive(const struct rfx_chart *chart) {
    for (int k = 0; k < chart->n_series; ++k)
        for (int i = 0; i < chart->series[k].n; ++i)
            if (isfinite(chart->series[k].y[i]) && chart->series[k].y[i] < 0.0) return false;
    return true;
}

static void put_axis(char name, const struct rfx_chart_axis *axis, const struct layout *layout,
                     bool from_zero, FILE *stream) {
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
    fprintf(stream, "set %ctics out nomirror\n", name);
    if (axis->min < axis->max)
        fprintf(stream, "set %crange [%.12g:%.12g]\n", name, axis->min, axis->max);
    else if (!axis->log && name == 'y' && from_zero)
        fprintf(stream, "set yrange [0:*]\nset offsets graph 0, graph 0, graph 0.06, graph 0\n");
}

static void put_texts(const struct rfx_chart *chart, FILE *stream) {
    if (chart->title != NULL) {
        (void)fputs("set title ", stream);
        rfx_chart_quote(chart->title, stream);
        fprintf(stream, " font ',17' offset 0,%s\n", chart->subtitle != NULL ? "0.7" : "0");
    }
    if (chart->subtitle != NULL) {
        (void)fputs("set label ", stream);
        rfx_chart_quote(chart->subtitle, stream);
        (void)fputs(" at graph 0.5,1 center offset 0,0.8 font ',12' textcolor '#555555'\n", stream);
        (void)fputs("set tmargin 4.5\n", stream);
    }
    for (int k = 0; k < chart->n_series; ++k) {
        const struct rfx_chart_series *series = &chart->series[k];
        for (int i = 0; series->labels != NULL && i < series->n; ++i) {
            if (series->labels[i] == NULL || !isfinite(series->y[i])) continue;
            if (!isfinite(series_x(series, i))) continue;
            (void)fputs("set label ", stream);
            rfx_chart_quote(series->labels[i], stream);
            fprintf(stream, " at %.12g,%.12g left offset 0.6,%s font ',12' front textcolor '%s'\n",
                    series_x(series, i), series->y[i], k % 2 == 0 ? "0.7" : "-0.7",
                    palette[k % N_COLORS]);
        }
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
        case RFX_CHART_STYLE_COUNT:
            break;
    }
}

void rfx_chart_script(const struct rfx_chart *chart, bool png, FILE *stream) {
    (void)fputs("set encoding utf8\n", stream);
    for (int k = 0; k < chart->n_series; ++k) put_data(chart, k, stream);
    struct layout layout = make_layout(chart);
    put_terminal(&layout, png, stream);
    (void)fputs(
        "set border 3 linecolor '#555555'\nset grid xtics ytics back linecolor '#dddddd' "
        "linewidth 1 dashtype 1\n",
        stream);
    put_axis('x', &chart->x, &layout, false, stream);
    put_axis('y', &chart->y, &layout, is_positive(chart), stream);
    put_bottom(chart, &layout, stream);
    put_texts(chart, stream);
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
