/* The chart of `curve -o`; see curve_chart.h. */
#include "tools/commands/curve_chart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiler/plan/splits.h"
#include "tools/study/chart.h"

enum { NAME_CHARS = 160, MAX_SERIES = 3 * RFX_CLI_MAX_ARGS };
static const double SAME_MACS = 0.005; /* of the MAC ratio: points that the eye cannot tell apart */

/* One network's line or mark: values and text that the chart borrows. */
struct line {
    double *x, *y;
    char name[NAME_CHARS];
};

struct drawing {
    struct rfx_memory *mem;
    struct line lines[MAX_SERIES];
    struct rfx_chart_series series[MAX_SERIES];
    int n;
};

static int compare_macs(const void *a, const void *b) {
    const struct rfx_curve_point *p = a, *q = b;
    if (p->macs != q->macs) return p->macs < q->macs ? -1 : 1;
    return p->split < q->split ? -1 : p->split > q->split;
}

/* Sorted by MACs, so that a line never runs backwards; the untiled run is its first point. */
static struct rfx_curve_point *sorted_points(struct rfx_memory *mem, const struct rfx_curve *curve,
                                             const struct rfx_curve_point *points, int n) {
    struct rfx_curve_point *sorted = rfx_memory_calloc(mem, (size_t)n + 1, sizeof *sorted);
    if (sorted == NULL) return NULL;
    sorted[0] = curve->untiled;
    if (n > 0) memcpy(sorted + 1, points, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n + 1, sizeof *sorted, compare_macs);
    return sorted;
}

/* The highest MAC ratio of a network's own points: the front over all grids goes far beyond. */
static double highest_ratio(const struct rfx_curve *curve) {
    double highest = 2.0;
    for (int i = 0; i < curve->n_points; ++i) {
        double ratio = rfx_curve_macs_ratio(curve, &curve->points[i]);
        if (ratio > highest) highest = ratio;
    }
    return highest;
}

/* Fills the line and returns its number of points. Of points with the same MACs the best is drawn:
 * a cut after a 1x1 convolution costs the tiles nothing and stores another map. */
static int fill_line(struct line *line, const struct rfx_curve *curve,
                     const struct rfx_curve_point *sorted, int n) {
    int used = 0;
    double highest = highest_ratio(curve);
    for (int i = 0; i < n; ++i) {
        double x = rfx_curve_macs_ratio(curve, &sorted[i]);
        double y = rfx_curve_memory_ratio(curve, &sorted[i]);
        if (x > highest) break;
        bool same = used > 0 && x - line->x[used - 1] <= SAME_MACS;
        if (same && y <= line->y[used - 1]) continue;
        if (same && used > 1) --used; /* the untiled run stays */
        line->x[used] = x;
        line->y[used++] = y;
    }
    return used;
}

/* Adds a line through n points; false: no memory. */
static bool add_line(struct drawing *drawing, const struct rfx_curve *curve,
                     const struct rfx_curve_point *points, int n, int color, bool front) {
    struct line *line = &drawing->lines[drawing->n];
    size_t count = (size_t)n + 1;
    line->x = rfx_memory_calloc(drawing->mem, count, sizeof *line->x);
    line->y = rfx_memory_calloc(drawing->mem, count, sizeof *line->y);
    struct rfx_curve_point *sorted = sorted_points(drawing->mem, curve, points, n);
    struct rfx_chart_series *series = &drawing->series[drawing->n++]; /* freed with the drawing */
    bool ok = line->x != NULL && line->y != NULL && sorted != NULL;
    *series = (struct rfx_chart_series){.name = line->name,
                                        .style = front ? RFX_CHART_LINES : RFX_CHART_LINES_POINTS,
                                        .n = ok ? fill_line(line, curve, sorted, n + 1) : 0,
                                        .x = line->x,
                                        .y = line->y,
                                        .color = color,
                                        .dashed = front};
    rfx_memory_release(drawing->mem, sorted);
    return ok;
}

/* Rings the best point; false: no memory. */
static bool add_ring(struct drawing *drawing, const struct rfx_curve *curve, int color) {
    struct line *line = &drawing->lines[drawing->n];
    line->x = rfx_memory_calloc(drawing->mem, 1, sizeof *line->x);
    line->y = rfx_memory_calloc(drawing->mem, 1, sizeof *line->y);
    drawing->series[drawing->n++] = (struct rfx_chart_series){
        .style = RFX_CHART_RINGS, .n = 1, .x = line->x, .y = line->y, .color = color};
    if (line->x == NULL || line->y == NULL) return false;
    line->x[0] = rfx_curve_macs_ratio(curve, &curve->points[curve->best]);
    line->y[0] = rfx_curve_memory_ratio(curve, &curve->points[curve->best]);
    return true;
}

/* Adds all of one network. */
static bool add_network(struct drawing *drawing, const struct rfx_curve *curve, const char *model,
                        int color, bool front) {
    char *name = drawing->lines[drawing->n].name;
    if (!add_line(drawing, curve, curve->points, curve->n_points, color, false)) return false;
    (void)snprintf(name, NAME_CHARS, "%.60s", model);
    if (curve->best >= 0) {
        const struct rfx_curve_point *best = &curve->points[curve->best];
        (void)snprintf(name, NAME_CHARS, "%.60s: %.2f after %.60s", model,
                       rfx_curve_memory_ratio(curve, best),
                       rfx_split_label(curve->graph, best->split));
        if (!add_ring(drawing, curve, color)) return false;
    }
    if (!front) return true;
    name = drawing->lines[drawing->n].name;
    (void)snprintf(name, NAME_CHARS, "%.60s, all grids and cuts", model);
    return add_line(drawing, curve, curve->pareto, curve->n_pareto, color + 1, true);
}

static void drawing_release(struct drawing *drawing) {
    for (int i = drawing->n - 1; i >= 0; --i) {
        rfx_memory_release(drawing->mem, drawing->lines[i].y);
        rfx_memory_release(drawing->mem, drawing->lines[i].x);
    }
}

static int draw(struct drawing *drawing, const struct rfx_cli_curves *curves, bool front,
                const char *path) {
    struct rfx_error err = {{0}};
    char subtitle[NAME_CHARS];
    bool ok = true;
    for (int i = 0; i < curves->count && ok; ++i)
        ok = add_network(drawing, curves->curves[i], curves->models[i], i + 1, front);
    if (!ok) return rfx_cli_fail(rfx_memory_fail(curves->mem, "chart", 0, &err), &err);
    const struct rfx_tensor *in = &curves->graphs[0]->nodes[curves->graphs[0]->input].out;
    (void)snprintf(subtitle, sizeof subtitle,
                   "%lldx%lld pixels, %lldx%lld tiles, %s baseline, weights counted",
                   (long long)in->h, (long long)in->w, (long long)curves->tiles_y,
                   (long long)curves->tiles_x, rfx_baseline_name(curves->baseline));
    double x_end = 1.0, y_low = 1.0, y_end = 1.0;
    for (int k = 0; k < drawing->n; ++k) {
        const struct rfx_chart_series *series = &drawing->series[k];
        for (int i = 0; i < series->n; ++i) {
            if (series->x[i] > x_end) x_end = series->x[i];
            if (series->y[i] < y_low) y_low = series->y[i];
            if (series->y[i] > y_end) y_end = series->y[i];
        }
    }
    /* from the untiled run up, with a margin, so that small gains can be seen */
    double x_margin = 0.03 * (x_end - 1.0) + 0.01, y_margin = 0.08 * (y_end - y_low) + 0.01;
    struct rfx_chart chart = {
        .title = "What tiling costs and buys",
        .subtitle = subtitle,
        .x = {.label = "MACs, tiled / untiled", .min = 1.0 - x_margin, .max = x_end + x_margin},
        .y = {.label = "peak memory, untiled / tiled",
              .min = y_low - y_margin,
              .max = y_end + y_margin},
        .n_series = drawing->n,
        .series = drawing->series};
    enum rfx_status status = rfx_chart_write(&chart, curves->mem, path, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

int rfx_cli_curve_chart(const struct rfx_cli_curves *curves, bool front, const char *path) {
    struct drawing drawing = {.mem = curves->mem};
    int code = draw(&drawing, curves, front, path);
    drawing_release(&drawing);
    return code;
}
