/* See chart_layout.h. Below the plot are the names along x, the axis' label and the legend: sized
 * here, because gnuplot places neither legend nor label well below names that stand upright. Of a
 * chart with boxes the whole plot is placed, and the legend goes into the upper right corner when
 * no box is there. */
#include "tools/chart/chart_layout.h"

#include <string.h>

/* In pixels of the SVG. */
enum {
    DEFAULT_WIDTH = 900, /* what a page of text has across */
    DEFAULT_HEIGHT = 560,
    MAX_CATEGORIES_WRITTEN = 46, /* upright names at the default width: closer, they touch */
    MAX_CATEGORY_LETTERS = 28,   /* longer names are cut at the front */
    LEGEND_LETTER_PX = 8,        /* a letter of the font, rather too wide than too narrow */
    LEGEND_SAMPLE_PX = 70,
    LEGEND_GAP_PX = 12, /* around a legend in a corner */
    TIC_LETTER_PX = 8,
    TIC_PX = 32,
};

/* What the legend holds. */
struct legend {
    int listed, widest_px;
};

const char *rfx_chart_category_text(const char *name) {
    size_t n = strlen(name);
    const char *p = n > MAX_CATEGORY_LETTERS ? name + n - MAX_CATEGORY_LETTERS : name;
    while (((unsigned char)*p & 0xC0) == 0x80) ++p; /* never from inside a character */
    return p;
}

/* Whether the names must stand upright, and the letters of the longest one. */
static bool must_stand(const struct rfx_chart_axis *x, const struct rfx_chart_layout *layout,
                       int *longest) {
    int letters = 0, before = -1, before_n = 0;
    bool close = false;
    for (int i = 0, at = 0; i < x->n_categories; ++i) {
        if (x->categories[i] == NULL || at++ % layout->every != 0) continue;
        int n = (int)strlen(rfx_chart_category_text(x->categories[i]));
        letters += n + 2;
        if (n > *longest) *longest = n;
        int room = (i - before) * (layout->width - 100) / x->n_categories;
        if (before >= 0 && room < (n + before_n + 2) * TIC_LETTER_PX / 2) close = true;
        before = i;
        before_n = n;
    }
    return close || letters * TIC_LETTER_PX > layout->width - 100;
}

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

/* Pixels per unit; 0 where an axis does not say its range. */
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

/* Whether a box reaches into the area right of x and above y. */
static bool is_taken(const struct rfx_chart_series *series, double x, double y) {
    if (!rfx_chart_is_boxes(series)) return false;
    for (int i = 0; i < series->n; ++i)
        if (series->x_end[i] > x && series->y_end[i] > y) return true;
    return false;
}

/* Puts the legend into the upper right corner, below all lines; false: it is not free. */
static bool place_legend_inside(const struct rfx_chart *chart, const struct legend *legend,
                                struct rfx_chart_layout *layout) {
    struct rfx_chart_layout inside = *layout;
    inside.bottom_px = inside.tics_px + RFX_CHART_LABEL_PX + 14;
    inside.scale = measure_scale(chart, &inside);
    if (inside.scale.x <= 0.0 || inside.scale.y <= 0.0 || legend->listed == 0) return false;
    double right = chart->x.n_categories > 0 ? chart->x.n_categories - 0.5 : chart->x.max;
    double top = chart->y.max;
    for (int k = 0; k < chart->n_series; ++k)
        for (int i = 0; i < chart->series[k].n && !rfx_chart_is_boxes(&chart->series[k]); ++i)
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

struct rfx_chart_layout rfx_chart_layout_make(const struct rfx_chart *chart, bool panel) {
    struct rfx_chart_layout layout = {
        .width = chart->width_px > 0 ? chart->width_px : DEFAULT_WIDTH,
        .height = chart->height_px > 0 ? chart->height_px : DEFAULT_HEIGHT};
    struct legend legend = measure_legend(chart);
    for (int k = 0; k < chart->n_series; ++k)
        if (rfx_chart_is_boxes(&chart->series[k])) layout.boxes = true;
    layout.given_margins = layout.boxes || panel;
    layout.left_px = panel ? RFX_CHART_PANEL_LEFT_PX : RFX_CHART_LEFT_PX;
    place_tics(&chart->x, &layout);
    if (layout.boxes && place_legend_inside(chart, &legend, &layout)) return layout;
    place_legend_below(&legend, &layout);
    layout.scale = measure_scale(chart, &layout);
    return layout;
}
