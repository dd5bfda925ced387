/* rfexec curve: the trade-off of every aggregation point, as text, JSON or CSV. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiler/plan/splits.h"
#include "tiler/search/plan_survey.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/curves.h"
#include "tools/study/chart.h"

/* Options of rfexec curve. */
struct curve_options {
    struct rfx_cli_curves_asked asked;
    bool pareto, json, csv;
    const char *file; /* the chart; NULL: none */
};

/* MACs over untiled MACs, both by the equations (1 for a network without MACs). */
enum { NAME_CHARS = 160, MAX_LINES = 3 * RFX_CLI_MAX_ARGS };
static const double SAME_MACS = 0.005; /* points whose MAC ratios differ by less look the same */

/* Values and text of one network's line or mark. The chart points to them. */
struct line {
    double *x, *y;
    char name[NAME_CHARS];
};

struct drawing {
    struct rfx_memory *mem;
    struct line lines[MAX_LINES];
    struct rfx_chart_series series[MAX_LINES];
    int n;
};

static int compare_macs(const void *a, const void *b) {
    const struct rfx_curve_point *p = a, *q = b;
    if (p->macs != q->macs) return p->macs < q->macs ? -1 : 1;
    return p->split < q->split ? -1 : p->split > q->split;
}

/* Returns the untiled run followed by the n points, sorted by MACs so that a line through them
 * never runs backwards. The caller releases the array. NULL: no memory. */
static struct rfx_curve_point *sorted_points(struct rfx_memory *mem, const struct rfx_curve *curve,
                                             const struct rfx_curve_point *points, int n) {
    struct rfx_curve_point *sorted = rfx_memory_calloc(mem, (size_t)n + 1, sizeof *sorted);
    if (sorted == NULL) return NULL;
    sorted[0] = curve->untiled;
    if (n > 0) memcpy(sorted + 1, points, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n + 1, sizeof *sorted, compare_macs);
    return sorted;
}

/* Returns the highest MAC ratio that is drawn: that of the points for the given grid. The Pareto
 * front over all grids has points with far higher ratios. */
static double highest_ratio(const struct rfx_curve *curve) {
    double highest = 2.0;
    for (int i = 0; i < curve->n_points; ++i) {
        double ratio = rfx_curve_macs_ratio(curve, &curve->points[i]);
        if (ratio > highest) highest = ratio;
    }
    return highest;
}

/* Fills the line and returns its number of points. Among points with the same MACs only the best is
 * drawn. Such points occur because a cut after a 1x1 convolution adds no MACs, but stores another
 * map. */
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
        if (same && used > 1) --used; /* never replace the untiled run, which is first */
        line->x[used] = x;
        line->y[used++] = y;
    }
    return used;
}

/* Adds a line through n points to the drawing. Returns false when there is no memory. */
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

/* Draws a ring around the best point. Returns false when there is no memory. */
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

/* Adds the lines and the ring of one network. */
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

static int draw_lines(struct drawing *drawing, const struct rfx_cli_curves *curves, bool front,
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
    /* The axes begin at the untiled run, not at 0, with a margin, so that small gains are visible.
     */
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

/* Draws memory ratio over MAC ratio to the file `path` (.svg or .png). Each network has one line,
 * ordered by MACs. The best aggregation point of each network has a ring and is in the legend. With
 * `front` a second line shows the Pareto front over all grids. Returns an exit code; prints a
 * message on failure. */
static int draw_curves(const struct rfx_cli_curves *curves, bool front, const char *path) {
    struct drawing drawing = {.mem = curves->mem};
    int code = draw_lines(&drawing, curves, front, path);
    drawing_release(&drawing);
    return code;
}

enum { ALL, TILES, FRONTS, MAX_SERIES = 4 };
static const double Y_END = 3.0; /* above this ratio more MACs hardly lower the budget */

/* --pareto: two Pareto fronts of one network. The first is over all kinds of plans. The second is
 * over the paper's kind alone: one cut, with tiles before the cut. No plan groups layers, because
 * grouping depends on the machine's caches. */
struct fronts {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan_survey *surveys[FRONTS];
};

static int calculate_fronts(struct fronts *f, const struct rfx_cli_curves_asked *asked) {
    static const unsigned kinds[FRONTS] = {~0U, 1U << RFX_PLAN_UNTILED | 1U << RFX_PLAN_TILES};
    struct rfx_error err = {{0}};
    int code = rfx_cli_load(f->mem, asked->words.args[0], &asked->model, asked->model.size.y,
                            asked->model.size.x, 0, &f->graph);
    if (code != RFX_EXIT_DONE) return code;
    const struct rfx_tensor *in = &f->graph->nodes[f->graph->input].out;
    struct rfx_plan_request plan = {.threads = 1, .emit_outputs = true};
    plan.source =
        (struct rfx_source_traits){.h = in->h, .w = in->w, .c = in->c, .random_access = true};
    for (int i = 0; i < FRONTS; ++i) {
        static const char *const names[FRONTS] = {"looking at all plans", "looking at tiles"};
        struct rfx_cli_progress progress;
        struct rfx_survey_request request = {.kinds = kinds[i]};
        rfx_cli_progress_watch(&progress, names[i], f->mem);
        enum rfx_status status =
            rfx_plan_survey_create(f->graph, &plan, &request, &f->surveys[i], &err);
        rfx_cli_progress_unwatch(&progress, f->mem);
        if (status != RFX_OK) return rfx_cli_fail(status, &err);
    }
    return RFX_EXIT_DONE;
}

static json_t *front_json(const struct rfx_plan_survey *survey) {
    json_t *list = json_array();
    for (int i = 0; i < survey->n_front; ++i)
        (void)json_array_append_new(list, rfx_report_summary(survey, &survey->front[i], 1));
    return list;
}

static int print_fronts_json(const struct fronts *f, const char *model) {
    json_t *document = rfx_report_document("curve", model);
    (void)json_object_update_new(
        document,
        json_pack("{s:o, s:i, s:b, s:I, s:o, s:o}", "input",
                  rfx_report_shape(&f->graph->nodes[f->graph->input].out.shape), "threads", 1,
                  "groups", 0, "macs_untiled", (json_int_t)f->surveys[ALL]->macs_untiled, "plans",
                  front_json(f->surveys[ALL]), "plans_tiles_only", front_json(f->surveys[TILES])));
    return rfx_report_print(document);
}

static void print_fronts_csv(const struct fronts *f, const char *model) {
    static const char *const names[FRONTS] = {"all", "tiles only"};
    puts("model,front,kind,peak_bytes,macs,macs_ratio,predicted_time_ratio,plan");
    for (int k = 0; k < FRONTS; ++k)
        for (int i = 0; i < f->surveys[k]->n_front; ++i) {
            const struct rfx_plan_survey *survey = f->surveys[k];
            const struct rfx_plan_summary *p = &survey->front[i];
            rfx_report_csv_text(model);
            printf(",%s,%s,%zu,%llu,%.6f,%.4f,", names[k], rfx_plan_kind_name(p->kind),
                   p->peak_bytes, (unsigned long long)p->macs,
                   rfx_report_ratio(p->macs, survey->macs_untiled),
                   rfx_report_ratio(p->cost, survey->cost_untiled));
            rfx_report_csv_text(p->text);
            putchar('\n');
        }
}

static void print_front(const char *title, const struct rfx_plan_survey *survey) {
    static const struct rfx_table_column columns[] = {{"budget from", RFX_TABLE_NUMBER},
                                                      {"MACs x", RFX_TABLE_NUMBER},
                                                      {"time x", RFX_TABLE_NUMBER},
                                                      {"plan", RFX_TABLE_WORDS}};
    struct rfx_table *table = rfx_table_create(survey->mem, columns, 4);
    char peak[RFX_HUMAN_CHARS];
    puts(title);
    for (int i = 0; i < survey->n_front; ++i) {
        const struct rfx_plan_summary *p = &survey->front[i];
        rfx_table_cell(table, "%s", rfx_human_bytes(p->peak_bytes, peak));
        rfx_table_cell(table, "%.3f", rfx_report_ratio(p->macs, survey->macs_untiled));
        rfx_table_cell(table, "%.2f", rfx_report_ratio(p->cost, survey->cost_untiled));
        rfx_table_cell(table, "%s", p->text);
    }
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
}

/* Returns one front as a line of the chart. The coordinates are stored in values[2 * n]. */
static struct rfx_chart_series front_line(const struct rfx_plan_survey *survey, bool time,
                                          double *values, const char *name, int color) {
    int n = survey->n_front;
    for (int i = 0; i < n; ++i) {
        const struct rfx_plan_summary *p = &survey->front[i];
        values[i] = (double)p->peak_bytes / (1024.0 * 1024.0);
        values[n + i] = rfx_report_ratio(time ? p->cost : p->macs,
                                         time ? survey->cost_untiled : survey->macs_untiled);
    }
    struct rfx_chart_series series = {.name = name,
                                      .style = time ? RFX_CHART_LINES : RFX_CHART_LINES_POINTS,
                                      .n = n,
                                      .x = values,
                                      .y = values + n,
                                      .color = color,
                                      .dashed = time};
    return series;
}

static int draw_fronts(const struct fronts *f, const char *model, const char *path) {
    static const char *const names[MAX_SERIES] = {"all plans: MACs", "all plans: predicted time",
                                                  "one cut in tiles: MACs",
                                                  "one cut in tiles: predicted time"};
    const struct rfx_tensor *in = &f->graph->nodes[f->graph->input].out;
    struct rfx_chart_series series[MAX_SERIES];
    struct rfx_error err = {{0}};
    double *values[MAX_SERIES] = {NULL};
    char subtitle[160];
    enum rfx_status status = RFX_OK;
    int n = 0;
    for (; n < MAX_SERIES && status == RFX_OK; ++n) {
        const struct rfx_plan_survey *survey = f->surveys[n / 2];
        size_t count = 2 * (size_t)survey->n_front + 1;
        values[n] = rfx_memory_calloc(f->mem, count, sizeof *values[n]);
        if (values[n] == NULL)
            status = rfx_memory_fail(f->mem, "chart", count * sizeof *values[n], &err);
        else
            series[n] = front_line(survey, n % 2 != 0, values[n], names[n], n / 2 + 1);
    }
    double least = 1e30, most = 1.0, lowest = 1.0;
    for (int i = 0; status == RFX_OK && i < n; ++i)
        for (int k = 0; k < series[i].n; ++k) {
            if (series[i].y[k] < lowest) lowest = series[i].y[k];
            if (series[i].x[k] < least) least = series[i].x[k];
            if (series[i].x[k] > most) most = series[i].x[k];
        }
    (void)snprintf(subtitle, sizeof subtitle, "%.60s, %lldx%lld pixels, one thread, no groups",
                   model, (long long)in->h, (long long)in->w);
    struct rfx_chart chart = {
        .title = "What a budget of the whole process buys",
        .subtitle = subtitle,
        .x = {.label = "budget [MiB]", .log = true, .min = 0.9 * least, .max = 1.1 * most},
        .y = {.label = "over the untiled run's", .min = lowest - 0.1, .max = Y_END},
        .n_series = MAX_SERIES,
        .series = series};
    if (status == RFX_OK) status = rfx_chart_write(&chart, f->mem, path, &err);
    for (int i = 0; i < MAX_SERIES; ++i) rfx_memory_release(f->mem, values[i]);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int run_fronts(const struct curve_options *options) {
    struct fronts f = {.mem = NULL};
    const char *model = options->asked.words.shown[0];
    if (options->asked.words.n_args > 1) {
        rfx_cli_message("--pareto takes one model, %d given", options->asked.words.n_args);
        return RFX_EXIT_USAGE;
    }
    f.mem = rfx_cli_memory_create();
    if (f.mem == NULL) return RFX_EXIT_SYSTEM;
    int code = calculate_fronts(&f, &options->asked);
    if (code == RFX_EXIT_DONE && options->file != NULL)
        code = draw_fronts(&f, model, options->file);
    if (code == RFX_EXIT_DONE && options->json) {
        code = print_fronts_json(&f, model);
    } else if (code == RFX_EXIT_DONE && options->csv) {
        print_fronts_csv(&f, model);
    } else if (code == RFX_EXIT_DONE) {
        print_front("all kinds of plans, every layer by itself (run --no-groups)", f.surveys[ALL]);
        print_front("\none cut with tiles before it", f.surveys[TILES]);
    }
    for (int i = 0; i < FRONTS; ++i) rfx_plan_survey_free(f.surveys[i]);
    rfx_graph_free(f.graph);
    rfx_memory_free(f.mem);
    return code;
}

static double equations_ratio(const struct rfx_curve_figures *figures) {
    return figures->macs_untiled == 0 ? 1.0 : (double)figures->macs / (double)figures->macs_untiled;
}

/* Returns the figures that the paper's equations give for a point, or JSON null when the equations
 * do not apply to the network. */
static json_t *equations_json(struct rfx_curve_formulas *formulas,
                              const struct rfx_curve_point *point) {
    struct rfx_curve_figures figures;
    if (!rfx_curve_formulas_point(formulas, point, &figures)) return json_null();
    return json_pack("{s:I, s:f, s:I, s:I, s:I}", "macs", (json_int_t)figures.macs, "macs_ratio",
                     equations_ratio(&figures), "peak_bytes", (json_int_t)figures.peak_bytes,
                     "head_bytes", (json_int_t)figures.head_bytes, "tail_bytes",
                     (json_int_t)figures.tail_bytes);
}

static json_t *point_json(struct rfx_curve_formulas *formulas,
                          const struct rfx_curve_point *point) {
    json_t *object = rfx_cli_point_json(formulas->curve, point);
    (void)json_object_set_new(object, "equations", equations_json(formulas, point));
    return object;
}

static json_t *points_json(struct rfx_curve_formulas *formulas,
                           const struct rfx_curve_point *points, int n) {
    json_t *array = json_array();
    for (int i = 0; i < n; ++i)
        (void)json_array_append_new(array, point_json(formulas, &points[i]));
    return array;
}

/* Returns a JSON object with one network's curve. */
static json_t *curve_json(struct rfx_curve_formulas *formulas) {
    const struct rfx_curve *curve = formulas->curve;
    json_t *untiled = json_pack("{s:I, s:I, s:s, s:o}", "macs", (json_int_t)curve->untiled.macs,
                                "peak_bytes", (json_int_t)curve->untiled.peak_bytes, "peak_layer",
                                rfx_split_label(curve->graph, curve->untiled.peak_node),
                                "equations", equations_json(formulas, &curve->untiled));
    json_t *best =
        curve->best < 0 ? json_null() : point_json(formulas, &curve->points[curve->best]);
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o, s:o}", "input",
                     rfx_report_shape(&curve->graph->nodes[curve->graph->input].out.shape),
                     "baseline", rfx_baseline_name(curve->baseline), "weights_bytes",
                     (json_int_t)curve->weights_bytes, "untiled", untiled, "curve",
                     points_json(formulas, curve->points, curve->n_points), "best", best, "pareto",
                     points_json(formulas, curve->pareto, curve->n_pareto));
}

/* Prints the curves as JSON. The curve of a single network is merged into the document; several
 * networks have one object each in "models". */
static int print_json(const struct rfx_cli_curves *curves) {
    json_t *document = rfx_report_document("curve", curves->count == 1 ? curves->models[0] : NULL);
    (void)json_object_set_new(
        document, "tiles",
        json_pack("[I,I]", (json_int_t)curves->tiles_y, (json_int_t)curves->tiles_x));
    if (curves->count == 1) {
        (void)json_object_update_new(document, curve_json(curves->formulas[0]));
        return rfx_report_print(document);
    }
    json_t *models = json_array();
    for (int i = 0; i < curves->count; ++i) {
        json_t *item = curve_json(curves->formulas[i]);
        (void)json_object_set_new(item, "model", json_string(curves->models[i]));
        (void)json_array_append_new(models, item);
    }
    (void)json_object_set_new(document, "models", models);
    return rfx_report_print(document);
}

static void csv_rows(const char *model, const char *kind, const struct rfx_curve *curve,
                     const struct rfx_curve_point *points, int n) {
    for (int i = 0; i < n; ++i) {
        const struct rfx_curve_point *p = &points[i];
        rfx_report_csv_text(model);
        printf(",%s,%s,", kind, rfx_baseline_name(curve->baseline));
        rfx_report_csv_text(rfx_cli_point_label(curve, p));
        printf(",%lld,%lld,%.6f,%.6f,%llu,%zu,%zu,%zu,", (long long)p->tiles_y,
               (long long)p->tiles_x, rfx_curve_macs_ratio(curve, p),
               rfx_curve_memory_ratio(curve, p), (unsigned long long)p->macs, p->peak_bytes,
               p->head_bytes, p->tail_bytes);
        rfx_report_csv_text(rfx_split_label(curve->graph, p->peak_node));
        printf(",%lld,%lld\n", (long long)p->tile_h_px, (long long)p->tile_w_px);
    }
}

static void print_csv(const struct rfx_cli_curves *curves) {
    puts(
        "model,kind,baseline,split,tiles_y,tiles_x,macs_ratio,memory_ratio,macs,peak_bytes,"
        "head_bytes,tail_bytes,peak_layer,tile_h_px,tile_w_px");
    for (int i = 0; i < curves->count; ++i) {
        const struct rfx_curve *curve = curves->curves[i];
        csv_rows(curves->models[i], "curve", curve, curve->points, curve->n_points);
        csv_rows(curves->models[i], "pareto", curve, curve->pareto, curve->n_pareto);
    }
}

static void text_row(const struct rfx_curve *curve, const struct rfx_curve_point *p, bool best,
                     struct rfx_table *table) {
    char human[RFX_HUMAN_CHARS];
    rfx_table_cell(table, "%s", best ? "*" : "");
    rfx_table_cell(table, "%s", rfx_cli_point_label(curve, p));
    rfx_table_cell(table, "%lldx%lld", (long long)p->tiles_y, (long long)p->tiles_x);
    rfx_table_cell(table, "%.3f", rfx_curve_macs_ratio(curve, p));
    rfx_table_cell(table, "%.3f", rfx_curve_memory_ratio(curve, p));
    rfx_table_cell(table, "%s", rfx_human_bytes(p->peak_bytes, human));
    rfx_table_cell(table, "%s", rfx_human_bytes(p->head_bytes, human));
    rfx_table_cell(table, "%s", rfx_human_bytes(p->tail_bytes, human));
    rfx_table_cell(table, "%s", rfx_split_label(curve->graph, p->peak_node));
}

enum { COLUMNS = 9 };
static const struct rfx_table_column columns[COLUMNS] = {
    {"", RFX_TABLE_MARK},         {"cut after", RFX_TABLE_NAMES}, {"tiles", RFX_TABLE_NUMBER},
    {"MACs x", RFX_TABLE_NUMBER}, {"memory /", RFX_TABLE_NUMBER}, {"peak", RFX_TABLE_NUMBER},
    {"head", RFX_TABLE_NUMBER},   {"tail", RFX_TABLE_NUMBER},     {"peak layer", RFX_TABLE_NAMES},
};

static void print_table(struct rfx_table *table) {
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
}

enum { SHOWN_FRONT = 16 }; /* rows of the Pareto front in the text; all are in JSON and CSV */

/* Prints the figures of the best cut by the paper's equations, if the equations apply to the
 * network. */
static void print_equations(struct rfx_curve_formulas *formulas) {
    const struct rfx_curve_point *best = &formulas->curve->points[formulas->curve->best];
    struct rfx_curve_figures cut, untiled;
    char peak[RFX_HUMAN_CHARS], head[RFX_HUMAN_CHARS], tail[RFX_HUMAN_CHARS];
    if (!rfx_curve_formulas_point(formulas, best, &cut) ||
        !rfx_curve_formulas_point(formulas, &formulas->curve->untiled, &untiled))
        return;
    printf("by equations %s of paper 003: %.3f x MACs, head %s, tail %s; untiled %s\n",
           formulas->residual ? "3 and 4" : "1 and 2", equations_ratio(&cut),
           rfx_human_bytes(cut.head_bytes, head), rfx_human_bytes(cut.tail_bytes, tail),
           rfx_human_bytes(untiled.peak_bytes, peak));
}

static void print_text(const char *model, struct rfx_curve_formulas *formulas) {
    const struct rfx_curve *curve = formulas->curve;
    char peak[RFX_HUMAN_CHARS], weights[RFX_HUMAN_CHARS], macs[RFX_HUMAN_CHARS];
    printf("%s, baseline %s: untiled %s at %s (weights %s), %s MACs\n\n", model,
           rfx_baseline_name(curve->baseline), rfx_human_bytes(curve->untiled.peak_bytes, peak),
           rfx_split_label(curve->graph, curve->untiled.peak_node),
           rfx_human_bytes(curve->weights_bytes, weights),
           rfx_human_count(curve->untiled.macs, macs));
    if (curve->best < 0) {
        puts("this network cannot be cut: no single tensor that is local in space is alive");
        return;
    }
    struct rfx_table *table = rfx_table_create(curve->mem, columns, COLUMNS);
    for (int i = 0; i < curve->n_points; ++i)
        text_row(curve, &curve->points[i], i == curve->best, table);
    print_table(table);
    puts("* smallest peak with this grid");
    print_equations(formulas);
    puts("\nPareto front, all grids");
    table = rfx_table_create(curve->mem, columns, COLUMNS);
    int shown = curve->n_pareto < SHOWN_FRONT ? curve->n_pareto : SHOWN_FRONT;
    for (int i = 0; i < shown; ++i) {
        /* evenly spaced rows of the front, both ends included */
        int at = shown == 1 ? 0 : (int)((long long)i * (curve->n_pareto - 1) / (shown - 1));
        text_row(curve, &curve->pareto[at], false, table);
    }
    print_table(table);
    if (shown < curve->n_pareto)
        printf("  (%d of %d points; all with --json or --csv)\n", shown, curve->n_pareto);
}

static int run(void *given) {
    const struct curve_options *options = given;
    struct rfx_cli_curves curves;
    if (options->pareto) return run_fronts(options);
    int code = rfx_cli_curves_open(&curves, &options->asked, true, false);
    if (code == RFX_EXIT_DONE && options->file != NULL)
        code = draw_curves(&curves, curves.count == 1, options->file);
    if (code == RFX_EXIT_DONE && options->json) {
        code = print_json(&curves);
    } else if (code == RFX_EXIT_DONE && options->csv) {
        print_csv(&curves);
    } else if (code == RFX_EXIT_DONE) {
        for (int i = 0; i < curves.count; ++i) {
            if (i > 0) putchar('\n');
            print_text(curves.models[i], curves.formulas[i]);
        }
    }
    rfx_cli_curves_free(&curves);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(curve_options, "pareto", FLAG, pareto, NULL,
                   "show all kinds of plans instead: which budget of a process buys how few MACs "
                   "and how little time",
                   .excludes = "tiles baseline"),
    RFX_CLI_OPTION(curve_options, "output", RESULT, file, "FILE", "draw a chart, .svg or .png",
                   .letter = 'o', .ends = ".svg .png"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("curve options", rows);

static struct curve_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(curves, curve_options, asked),     {&group, 0},
    RFX_CLI_USE(size, curve_options, asked.model), RFX_CLI_USE(no_fuse, curve_options, asked.model),
    RFX_CLI_USE(int8, curve_options, asked.model), RFX_CLI_USE(seed, curve_options, asked.model),
    RFX_CLI_USE(json, curve_options, json),        RFX_CLI_USE(csv, curve_options, csv),
};

const struct rfx_cli_command rfx_cmd_curve = {
    .name = "curve",
    .args =
        "MODEL [MODEL ...] [--size HxW] [--tiles N|RxC] [--baseline NAME] [--json|--csv] "
        "[-o FILE] [--pareto]",
    .summary = "show what tiling costs in MACs and saves in memory, for every cut",
    .details =
        "Runs nothing. For each layer where the network can be cut: MACs and peak memory over\n"
        "those of the whole-image run, weights included. The Pareto front is over all cuts and\n"
        "all grids of tiles. --pareto is about whole processes and every kind of plan (streams,\n"
        "strips, tiles, ...): each row is the plan that the planner takes from that budget on,\n"
        "with one thread.\n",
    .examples =
        "rfexec curve mobilenet_v2 --size 1024x1024 --tiles 16\n"
        "rfexec curve resnet18 resnet50 --size 1024x1024 --tiles 4x4 --baseline eager --csv\n"
        "rfexec curve vgg16 resnet18 mobilenet_v2 --size 1024x1024 -o curves.svg\n"
        "rfexec curve mobilenet_v2 --size 4096x4096 --pareto -o front.svg\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = RFX_CLI_MAX_ARGS,
    .values = &values,
    .run = run,
};
