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
#include "tools/commands/curve_chart.h"
#include "tools/study/chart.h"

/* What every form prints of a layer. */
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

/* A number, with two decimals only where it is no integer. */
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

/* "7" for a square, "7x5" otherwise. */
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

static int totals_json(const struct rfx_cli_options *options, const struct rfx_graph *graph,
                       const struct rfx_analysis *analysis, json_t *layers) {
    json_t *document = rfx_report_document("analyze", options->shown[0]);
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

static int print_layers(const struct rfx_cli_options *options, const struct rfx_graph *graph,
                        const struct rfx_analysis *analysis, const int *splits, int n_splits) {
    json_t *layers = options->json ? json_array() : NULL;
    struct rfx_table *table = NULL; /* of text */
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

/* Whether what belongs to --plot stands beside it; prints why not. */
static bool plot_options_ok(const struct rfx_cli_options *options) {
    bool tiled = options->tiles.y != 0 || options->split != NULL || options->baseline != NULL;
    if (options->plot == NULL && tiled)
        rfx_cli_message("--tiles, --split and --baseline change the chart only: --plot FILE");
    return options->plot != NULL || !tiled;
}

int rfx_cmd_analyze(const struct rfx_cli_options *options) {
    if (!plot_options_ok(options)) return RFX_EXIT_USAGE;
    if (options->plot != NULL) {
        int drawn = rfx_cli_footprint_chart(options);
        if (drawn != RFX_EXIT_DONE) return drawn;
    }
    struct rfx_memory *mem = rfx_cli_memory_create();
    struct rfx_graph *graph = NULL;
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err = {{0}};
    int *splits = NULL;
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    int code = rfx_cli_load(mem, options, options->size.y, options->size.x, &graph);
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
