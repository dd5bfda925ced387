/* rfexec analyze: the per-layer table, as text, JSON or CSV. */
#include <stdio.h>
#include <stdlib.h>

#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "tiler/plan/splits.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/curves.h"
#include "tools/study/chart.h"

struct analyze_options {
    struct rfx_cli_curves_asked asked;
    const char *plot, *split;
    bool json, csv;
};

enum { N_SERIES = 4, TEXT_CHARS = 160 };

/* Arrays for the chart of memory over layers. Each array has one element for each layer that makes
 * an activation. */
struct footprint {
    struct rfx_memory *mem;
    int n;
    const char **names;
    double *weights_mib, *untiled_mib, *tiled_mib;
    size_t *bytes; /* per node of the graph */
};

static double mib(size_t bytes) {
    return (double)bytes / (1024.0 * 1024.0);
}

static bool shown(const struct rfx_graph *graph, int node) {
    return !rfx_node_is_constant(&graph->nodes[node]);
}

/* Copies the bytes of the shown nodes to `values`, converted to MiB. */
static void take_values(const struct rfx_graph *graph, const size_t *bytes, double *values) {
    for (int i = 0, k = 0; i < graph->n_nodes; ++i)
        if (shown(graph, i)) values[k++] = mib(bytes[i]);
}

static enum rfx_status fill_footprint(struct footprint *f, const struct rfx_curve *curve,
                                      const struct rfx_curve_point *point, struct rfx_error *err) {
    const struct rfx_graph *graph = curve->graph;
    enum rfx_status status = rfx_curve_footprint(curve, NULL, f->bytes, err);
    if (status != RFX_OK) return status;
    take_values(graph, f->bytes, f->untiled_mib);
    if (point != NULL) {
        status = rfx_curve_footprint(curve, point, f->bytes, err);
        if (status != RFX_OK) return status;
        take_values(graph, f->bytes, f->tiled_mib);
    }
    f->n = 0;
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (!shown(graph, i)) continue;
        f->names[f->n] = rfx_split_label(graph, i);
        f->weights_mib[f->n++] = mib(curve->weights_bytes);
    }
    return RFX_OK;
}

/* Returns the index of a node among the shown nodes. */
static int place_of(const struct rfx_graph *graph, int node) {
    int k = 0;
    for (int i = 0; i < node; ++i) k += shown(graph, i);
    return k;
}

static enum rfx_status draw_chart(const struct footprint *f, const struct rfx_cli_curves *curves,
                                  const struct rfx_curve_point *point, const char *path,
                                  struct rfx_error *err) {
    const struct rfx_curve *curve = curves->curves[0];
    const struct rfx_graph *graph = curve->graph;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    char title[TEXT_CHARS], subtitle[TEXT_CHARS], weights[TEXT_CHARS], untiled[TEXT_CHARS],
        tiled[TEXT_CHARS], cut[TEXT_CHARS], size[RFX_HUMAN_CHARS], name[32];
    (void)snprintf(title, sizeof title, "%.80s, %lldx%lld: memory over the layers",
                   curves->models[0], (long long)in->h, (long long)in->w);
    (void)snprintf(weights, sizeof weights, "parameters: %s",
                   rfx_human_bytes(curve->weights_bytes, size));
    (void)snprintf(untiled, sizeof untiled, "with activations, untiled: peak %s at %.60s",
                   rfx_human_bytes(curve->untiled.peak_bytes, size),
                   rfx_split_label(graph, curve->untiled.peak_node));
    (void)snprintf(subtitle, sizeof subtitle, "%s", rfx_cli_curves_baseline(curves, name));
    struct rfx_chart_series series[N_SERIES] = {
        {.name = weights, .style = RFX_CHART_FILLED, .n = f->n, .y = f->weights_mib, .color = 8},
        {.name = untiled, .style = RFX_CHART_STEPS, .n = f->n, .y = f->untiled_mib, .color = 1}};
    double cut_x[2] = {0}, cut_y[2] = {0, mib(curve->untiled.peak_bytes)};
    if (point != NULL) {
        (void)snprintf(subtitle, sizeof subtitle, "%s; %lldx%lld tiles, MACs x %.3f, memory / %.2f",
                       rfx_cli_curves_baseline(curves, name), (long long)point->tiles_y,
                       (long long)point->tiles_x, rfx_curve_macs_ratio(curve, point),
                       rfx_curve_memory_ratio(curve, point));
        (void)snprintf(tiled, sizeof tiled, "with activations, tiled: peak %s at %.60s",
                       rfx_human_bytes(point->peak_bytes, size),
                       rfx_split_label(graph, point->peak_node));
        (void)snprintf(cut, sizeof cut, "cut after %.80s", rfx_split_label(graph, point->split));
        cut_x[0] = cut_x[1] = place_of(graph, point->split) + 0.5;
        series[2] = (struct rfx_chart_series){
            .name = tiled, .style = RFX_CHART_STEPS, .n = f->n, .y = f->tiled_mib, .color = 2};
        series[3] = (struct rfx_chart_series){.name = cut,
                                              .style = RFX_CHART_LINES,
                                              .n = 2,
                                              .x = cut_x,
                                              .y = cut_y,
                                              .color = 7,
                                              .dashed = true};
    }
    struct rfx_chart chart = {.title = title,
                              .subtitle = subtitle,
                              .x = {.label = "layers in the order they run",
                                    .categories = f->names,
                                    .n_categories = f->n},
                              .y = {.label = "memory [MiB]"},
                              .n_series = point != NULL ? 4 : 2,
                              .series = series};
    return rfx_chart_write(&chart, f->mem, path, err);
}

/* Sets *out to the point that --split names, or else to the best point. Sets *out to NULL when
 * neither --tiles nor --split is given. */
static enum rfx_status choose_point(const struct rfx_curve *curve,
                                    const struct rfx_cli_curves_asked *asked, const char *named,
                                    const struct rfx_curve_point **out, struct rfx_error *err) {
    *out = NULL;
    if (asked->tiles.y == 0 && named == NULL) return RFX_OK;
    if (named == NULL) {
        if (curve->best < 0)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: this network cannot be cut",
                            asked->words.args[0]);
        *out = &curve->points[curve->best];
        return RFX_OK;
    }
    int split;
    enum rfx_status status = rfx_split_find(curve->graph, named, &split, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < curve->n_points; ++i)
        if (curve->points[i].split == split) *out = &curve->points[i];
    return *out != NULL ? RFX_OK
                        : rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                   "--split '%s': not a point of the curve", named);
}

/* Draws memory over the layers of the first model to `file`. The lines are parameters, the untiled
 * run and, when --tiles is given or `split` is not NULL, the tiled run. Returns an exit code;
 * prints a message on failure. */
static int draw_footprint(const struct rfx_cli_curves_asked *asked, const char *split,
                          const char *file) {
    struct rfx_cli_curves curves;
    struct rfx_error err = {{0}};
    struct footprint f = {0};
    int code = rfx_cli_curves_open(&curves, asked, false, true);
    if (code != RFX_EXIT_DONE) goto done;
    const struct rfx_curve *curve = curves.curves[0];
    const struct rfx_curve_point *point;
    enum rfx_status status = choose_point(curve, asked, split, &point, &err);
    size_t n = (size_t)curve->graph->n_nodes;
    f.mem = curves.mem;
    f.names = rfx_memory_calloc(f.mem, n, sizeof *f.names);
    f.weights_mib = rfx_memory_calloc(f.mem, 3 * n, sizeof *f.weights_mib);
    f.bytes = rfx_memory_calloc(f.mem, n, sizeof *f.bytes);
    if (status == RFX_OK && (f.names == NULL || f.weights_mib == NULL || f.bytes == NULL))
        status = rfx_memory_fail(f.mem, "chart", n * sizeof *f.bytes, &err);
    if (status == RFX_OK) {
        f.untiled_mib = f.weights_mib + n;
        f.tiled_mib = f.untiled_mib + n;
        status = fill_footprint(&f, curve, point, &err);
    }
    if (status == RFX_OK) status = draw_chart(&f, &curves, point, file, &err);
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    rfx_memory_release(f.mem, f.bytes);
    rfx_memory_release(f.mem, f.weights_mib);
    rfx_memory_release(f.mem, f.names);
done:
    rfx_cli_curves_free(&curves);
    return code;
}

/* The facts about a layer that text, JSON and CSV all print. */
struct layer_row {
    const char *name, *alias, *op;
    const struct rfx_tensor *out;
    int64_t kernel[2], stride[2];
    struct rfx_pads pads;
    const struct rfx_layer_info *info;
    bool split;
};

static struct layer_row row_make(const struct rfx_graph *graph, const struct rfx_analysis *analysis,
                                 int i, bool split) {
    const struct rfx_node *node = &graph->nodes[i];
    const struct rfx_window window = rfx_op_window(node);
    struct layer_row row = {.name = node->name,
                            .alias = node->alias,
                            .op = rfx_op_def(node->op)->name,
                            .out = &node->out,
                            .kernel = {window.kernel[0], window.kernel[1]},
                            .stride = {window.stride[0], window.stride[1]},
                            .pads = window.pads,
                            .info = &analysis->layers[i],
                            .split = split};
    return row;
}

static double ratio(struct rfx_ratio r) {
    return r.den == 0 ? 0.0 : (double)r.num / (double)r.den;
}

/* Writes a ratio, with two decimals only when it is not an integer. Returns `text`. */
static const char *ratio_text(struct rfx_ratio r, char text[24]) {
    if (r.den == 1)
        (void)snprintf(text, 24, "%lld", (long long)r.num);
    else
        (void)snprintf(text, 24, "%.2f", ratio(r));
    return text;
}

static json_t *jump_json(struct rfx_ratio r) {
    return r.den == 1 ? json_integer(r.num) : json_real(ratio(r));
}

static json_t *row_json(const struct layer_row *row) {
    const struct rfx_axis_field *f = row->info->field;
    json_t *item =
        json_pack("{s:s, s:s?, s:s, s:[I,I,I], s:[I,I], s:[I,I], s:[I,I,I,I], s:b}", "name",
                  row->name, "alias", row->alias, "op", row->op, "output", (json_int_t)row->out->c,
                  (json_int_t)row->out->h, (json_int_t)row->out->w, "kernel",
                  (json_int_t)row->kernel[0], (json_int_t)row->kernel[1], "stride",
                  (json_int_t)row->stride[0], (json_int_t)row->stride[1], "padding",
                  (json_int_t)row->pads.top, (json_int_t)row->pads.left,
                  (json_int_t)row->pads.bottom, (json_int_t)row->pads.right, "split", row->split);
    json_t *more = json_pack(
        "{s:b, s:[I,I], s:[o,o], s:[I,I], s:I, s:I, s:I, s:I}", "global", row->info->global, "rf",
        (json_int_t)f[0].size_px, (json_int_t)f[1].size_px, "jump", jump_json(f[0].jump),
        jump_json(f[1].jump), "rf_padding", (json_int_t)f[0].padding_px,
        (json_int_t)f[1].padding_px, "macs", (json_int_t)row->info->macs, "params",
        (json_int_t)row->info->params, "output_bytes", (json_int_t)row->info->output_bytes,
        "live_bytes", (json_int_t)row->info->live_bytes);
    (void)json_object_update_new(item, more);
    return item;
}

static void row_csv(const struct layer_row *row) {
    const struct rfx_axis_field *f = row->info->field;
    char jy[24], jx[24];
    rfx_report_csv_text(row->name);
    printf(",%s,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,", row->op,
           (long long)row->out->c, (long long)row->out->h, (long long)row->out->w,
           (long long)row->kernel[0], (long long)row->kernel[1], (long long)row->stride[0],
           (long long)row->stride[1], (long long)row->pads.top, (long long)row->pads.left,
           (long long)row->pads.bottom, (long long)row->pads.right);
    printf("%d,%lld,%lld,%s,%s,%lld,%lld,%llu,%llu,%zu,%zu,%d\n", row->info->global,
           (long long)f[0].size_px, (long long)f[1].size_px, ratio_text(f[0].jump, jy),
           ratio_text(f[1].jump, jx), (long long)f[0].padding_px, (long long)f[1].padding_px,
           (unsigned long long)row->info->macs, (unsigned long long)row->info->params,
           row->info->output_bytes, row->info->live_bytes, row->split);
}

/* Writes "7" when y and x are equal, "7x5" otherwise. Returns `text`. */
static const char *pair_text(int64_t y, int64_t x, char text[48]) {
    (void)snprintf(text, 48, y == x ? "%lld" : "%lldx%lld", (long long)y, (long long)x);
    return text;
}

static const struct rfx_table_column columns[] = {
    {"", RFX_TABLE_MARK},         {"layer", RFX_TABLE_NAMES},
    {"op", RFX_TABLE_WORDS},      {"output CxHxW", RFX_TABLE_NUMBER},
    {"kern", RFX_TABLE_NUMBER},   {"str", RFX_TABLE_NUMBER},
    {"rf", RFX_TABLE_NUMBER},     {"jump", RFX_TABLE_NUMBER},
    {"rf pad", RFX_TABLE_NUMBER}, {"MACs", RFX_TABLE_NUMBER},
    {"params", RFX_TABLE_NUMBER}, {"live", RFX_TABLE_NUMBER},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static void row_text(const struct layer_row *row, struct rfx_table *table) {
    const struct rfx_axis_field *f = row->info->field;
    char kernel[48], stride[48], field[48], pad[48], jump[24], human[RFX_HUMAN_CHARS];
    bool all = row->info->global;
    rfx_table_cell(table, "%s", row->split ? "*" : "");
    rfx_table_cell(table, "%s", row->alias != NULL ? row->alias : row->name);
    rfx_table_cell(table, "%s", row->op);
    rfx_table_cell(table, "%lldx%lldx%lld", (long long)row->out->c, (long long)row->out->h,
                   (long long)row->out->w);
    rfx_table_cell(table, "%s", pair_text(row->kernel[0], row->kernel[1], kernel));
    rfx_table_cell(table, "%s", pair_text(row->stride[0], row->stride[1], stride));
    rfx_table_cell(table, "%s", all ? "all" : pair_text(f[0].size_px, f[1].size_px, field));
    rfx_table_cell(table, "%s", all ? "-" : ratio_text(f[0].jump, jump));
    rfx_table_cell(table, "%s", all ? "-" : pair_text(f[0].padding_px, f[1].padding_px, pad));
    rfx_table_cell(table, "%s", rfx_human_count(row->info->macs, human));
    rfx_table_cell(table, "%s", rfx_human_count(row->info->params, human));
    rfx_table_cell(table, "%s", rfx_human_bytes(row->info->live_bytes, human));
}

static void head_csv(void) {
    puts(
        "name,op,out_c,out_h,out_w,kernel_h,kernel_w,stride_h,stride_w,pad_top,pad_left,"
        "pad_bottom,pad_right,global,rf_h,rf_w,jump_h,jump_w,rf_padding_h,rf_padding_w,macs,params,"
        "output_bytes,live_bytes,split");
}

static int totals_json(const struct analyze_options *options, const struct rfx_graph *graph,
                       const struct rfx_analysis *analysis, json_t *layers) {
    json_t *document = rfx_report_document("analyze", options->asked.words.shown[0]);
    json_t *totals = json_pack("{s:I, s:I, s:I, s:s}", "macs", (json_int_t)analysis->macs, "params",
                               (json_int_t)analysis->params, "peak_live_bytes",
                               (json_int_t)analysis->peak_live_bytes, "peak_layer",
                               graph->nodes[analysis->peak_layer].name);
    (void)json_object_set_new(document, "input",
                              rfx_report_shape(&graph->nodes[graph->input].out.shape));
    rfx_report_untiled(document, graph);
    (void)json_object_set_new(document, "totals", totals);
    (void)json_object_set_new(document, "layers", layers);
    return rfx_report_print(document);
}

static void totals_text(const struct rfx_graph *graph, const struct rfx_analysis *analysis) {
    char macs[RFX_HUMAN_CHARS], live[RFX_HUMAN_CHARS];
    printf("\n%llu MACs (%s), %llu parameters; largest live memory %s at %s\n",
           (unsigned long long)analysis->macs, rfx_human_count(analysis->macs, macs),
           (unsigned long long)analysis->params, rfx_human_bytes(analysis->peak_live_bytes, live),
           rfx_split_label(graph, analysis->peak_layer));
    rfx_report_untiled_text(graph);
    puts("* the network can be cut here (--split)");
}

static int print_layers(const struct analyze_options *options, const struct rfx_graph *graph,
                        const struct rfx_analysis *analysis, const int *splits, int n_splits) {
    json_t *layers = options->json ? json_array() : NULL;
    struct rfx_table *table = NULL; /* used for text only */
    if (options->csv) head_csv();
    if (!options->json && !options->csv) table = rfx_table_create(graph->mem, columns, N_COLUMNS);
    for (int i = 0, s = 0; i < graph->n_nodes; ++i) {
        bool split = s < n_splits && splits[s] == i;
        s += split;
        struct layer_row row = row_make(graph, analysis, i, split);
        if (layers != NULL)
            (void)json_array_append_new(layers, row_json(&row));
        else if (options->csv)
            row_csv(&row);
        else
            row_text(&row, table);
    }
    if (layers != NULL) return totals_json(options, graph, analysis, layers);
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
    if (!options->csv) totals_text(graph, analysis);
    return RFX_EXIT_DONE;
}

static int run(void *given) {
    const struct analyze_options *options = given;
    if (options->plot != NULL) {
        int drawn = draw_footprint(&options->asked, options->split, options->plot);
        if (drawn != RFX_EXIT_DONE) return drawn;
    }
    struct rfx_memory *mem = rfx_cli_memory_create();
    struct rfx_graph *graph = NULL;
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err = {{0}};
    int *splits = NULL;
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    int code = rfx_cli_load(mem, options->asked.words.args[0], &options->asked.model,
                            options->asked.model.size.y, options->asked.model.size.x, 0, &graph);
    if (code != RFX_EXIT_DONE) goto done;
    enum rfx_status status = rfx_analysis_create(graph, &analysis, &err);
    splits = rfx_memory_calloc(mem, (size_t)graph->n_nodes, sizeof *splits);
    if (status == RFX_OK && splits == NULL)
        status = rfx_memory_fail(mem, "splits", (size_t)graph->n_nodes * sizeof *splits, &err);
    code = status == RFX_OK
               ? print_layers(options, graph, analysis, splits, rfx_splits_list(graph, splits))
               : rfx_cli_fail(status, &err);
done:
    rfx_memory_release(mem, splits);
    rfx_analysis_free(analysis);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(analyze_options, "plot", RESULT, plot, "FILE",
                   "draw the memory over the layers; tiled too where --tiles or --split is given",
                   .ends = ".svg .png"),
    RFX_CLI_OPTION(
        analyze_options, "split", TEXT, split, "NAME",
        "last layer that is computed by tiles (default: where the least memory is needed)",
        .letter = 's', .needs = "plot"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("chart options", rows);

static struct analyze_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(size, analyze_options, asked.model),
    RFX_CLI_USE(fuse, analyze_options, asked.model),
    RFX_CLI_USE(int8, analyze_options, asked.model),
    RFX_CLI_USE(seed, analyze_options, asked.model),
    {&group, 0},
    RFX_CLI_USE(curves, analyze_options, asked),
    RFX_CLI_USE(json, analyze_options, json),
    RFX_CLI_USE(csv, analyze_options, csv),
};

const struct rfx_cli_command rfx_cmd_analyze = {
    .name = "analyze",
    .args =
        "MODEL [--size HxW] [--no-fuse] [--json|--csv] "
        "[--plot FILE [--tiles N|RxC] [--split NAME]]",
    .summary = "show receptive field, MACs, parameters and memory of every layer",
    .details =
        "MODEL is an .onnx file or a built-in name. Batch norms, activations and residual Adds\n"
        "are shown inside the convolutions that compute them. Layers where the network can be cut\n"
        "(--split) are marked with *. rf, jump and padding are rows x columns in image pixels.\n"
        "--plot draws the memory over the layers: parameters and live activations.\n",
    .examples =
        "rfexec analyze mobilenet_v2\n"
        "rfexec analyze net.onnx --size 2048x3072 --csv\n"
        "rfexec analyze mobilenet_v2 --size 1024x1024 --plot memory.svg --tiles 16\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
