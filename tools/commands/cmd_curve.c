/* rfexec curve: the trade-off of every aggregation point, as text, JSON or CSV. */
#include <stdio.h>

#include "tiler/plan/splits.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/curve_chart.h"
#include "tools/commands/curves.h"
#include "tools/commands/fronts.h"
#include "tools/study/chart.h"

/* MACs over untiled MACs, both by the equations (1 for a network without MACs). */
static double equations_ratio(const struct rfx_curve_figures *figures) {
    return figures->macs_untiled == 0 ? 1.0 : (double)figures->macs / (double)figures->macs_untiled;
}

/* What the paper's equations give for a point; null when they do not speak of the network. */
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

/* The members of one network's curve. */
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

/* One network: its members beside the document's; several: one object each in "models". */
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

/* The best cut as the paper's equations see it, where they speak of the network. */
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
        /* evenly spread, both ends included */
        int at = shown == 1 ? 0 : (int)((long long)i * (curve->n_pareto - 1) / (shown - 1));
        text_row(curve, &curve->pareto[at], false, table);
    }
    print_table(table);
    if (shown < curve->n_pareto)
        printf("  (%d of %d points; all with --json or --csv)\n", shown, curve->n_pareto);
}

int rfx_cmd_curve(const struct rfx_cli_options *options) {
    struct rfx_cli_curves curves;
    if (options->output != NULL && !rfx_chart_name_ok(options->output)) {
        rfx_cli_message("-o '%s': charts are .svg or .png", options->output);
        return RFX_EXIT_USAGE;
    }
    if (options->pareto) return rfx_cli_fronts(options);
    int code = rfx_cli_curves_open(&curves, options, true, false);
    if (code == RFX_EXIT_DONE && options->output != NULL)
        code = rfx_cli_curve_chart(&curves, curves.count == 1, options->output);
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
