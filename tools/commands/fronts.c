/* Fronts of plans as text, JSON, CSV and chart; see fronts.h. Every layer is by itself in them:
 * which are grouped depends on the machine's caches. */
#include "tools/commands/fronts.h"

#include <stdio.h>

#include "tiler/search/plan_survey.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/study/chart.h"

enum { ALL, TILES, FRONTS, MAX_SERIES = 4 };
static const double Y_END = 3.0; /* beyond, budgets hardly fall any more */

struct fronts {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan_survey *surveys[FRONTS];
};

static int calculate(struct fronts *f, const struct rfx_cli_options *options) {
    static const unsigned kinds[FRONTS] = {~0U, 1U << RFX_PLAN_UNTILED | 1U << RFX_PLAN_TILES};
    struct rfx_error err = {{0}};
    int code = rfx_cli_load(f->mem, options, options->size.y, options->size.x, &f->graph);
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

static int print_json(const struct fronts *f, const char *model) {
    json_t *document = rfx_report_document("curve", model);
    (void)json_object_update_new(
        document,
        json_pack("{s:o, s:i, s:b, s:I, s:o, s:o}", "input",
                  rfx_report_shape(&f->graph->nodes[f->graph->input].out.shape), "threads", 1,
                  "groups", 0, "macs_untiled", (json_int_t)f->surveys[ALL]->macs_untiled, "plans",
                  front_json(f->surveys[ALL]), "plans_tiles_only", front_json(f->surveys[TILES])));
    return rfx_report_print(document);
}

static void print_csv(const struct fronts *f, const char *model) {
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

/* One line of the chart; values is [2 * n]. */
static struct rfx_chart_series line(const struct rfx_plan_survey *survey, bool time, double *values,
                                    const char *name, int color) {
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

static int draw(const struct fronts *f, const char *model, const char *path) {
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
            series[n] = line(survey, n % 2 != 0, values[n], names[n], n / 2 + 1);
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

int rfx_cli_fronts(const struct rfx_cli_options *options) {
    struct fronts f = {.mem = NULL};
    const char *model = options->shown[0];
    if (options->n_args > 1 || options->tiles.y != 0 || options->baseline != NULL) {
        rfx_cli_message("--pareto takes one model, and neither --tiles nor --baseline");
        return RFX_EXIT_USAGE;
    }
    f.mem = rfx_cli_memory_create();
    if (f.mem == NULL) {
        rfx_cli_message("out of memory at start");
        return RFX_EXIT_SYSTEM;
    }
    int code = calculate(&f, options);
    if (code == RFX_EXIT_DONE && options->output != NULL) code = draw(&f, model, options->output);
    if (code == RFX_EXIT_DONE && options->json) {
        code = print_json(&f, model);
    } else if (code == RFX_EXIT_DONE && options->csv) {
        print_csv(&f, model);
    } else if (code == RFX_EXIT_DONE) {
        print_front("all kinds of plans, every layer by itself (run --no-groups)", f.surveys[ALL]);
        print_front("\none cut with tiles before it", f.surveys[TILES]);
    }
    for (int i = 0; i < FRONTS; ++i) rfx_plan_survey_free(f.surveys[i]);
    rfx_graph_free(f.graph);
    rfx_memory_free(f.mem);
    return code;
}
