/* See layer_report.h. Text and JSON are made from the same figures of a row. */
#include "tools/cli/layer_report.h"

#include <stdio.h>
#include <string.h>

#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "tiler/cost/cost.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"

/* What follows from a row's time; 0 where there is none. */
struct figures {
    double share, flops_per_second, peak_share, bytes_per_second;
};

static struct figures figures_of(const struct rfx_layer_times *times,
                                 const struct rfx_machine_peak *peak,
                                 const struct rfx_layer_row *row) {
    struct figures f = {0};
    if (times->run_seconds > 0) f.share = row->seconds / times->run_seconds;
    if (row->seconds <= 0) return f;
    f.flops_per_second = 2.0 * (double)row->macs / row->seconds;
    f.bytes_per_second = (double)row->bytes / row->seconds;
    if (peak->flops_per_second > 0) f.peak_share = f.flops_per_second / peak->flops_per_second;
    return f;
}

enum { N_COLUMNS = 11 };
static const struct rfx_table_column columns[N_COLUMNS] = {
    {"layer", RFX_TABLE_NAMES},  {"op", RFX_TABLE_WORDS},       {"by", RFX_TABLE_WORDS},
    {"output", RFX_TABLE_MARK},  {"ms", RFX_TABLE_NUMBER},      {"share", RFX_TABLE_NUMBER},
    {"MACs", RFX_TABLE_NUMBER},  {"GFLOP/s", RFX_TABLE_NUMBER}, {"of peak", RFX_TABLE_NUMBER},
    {"moved", RFX_TABLE_NUMBER}, {"GB/s", RFX_TABLE_NUMBER},
};

/* The columns of words. */
static void put_words(struct rfx_table *table, const char *name, const char *op,
                      const char *backend, const char *shape) {
    rfx_table_cell(table, "%s", name);
    rfx_table_cell(table, "%s", op);
    rfx_table_cell(table, "%s", backend);
    rfx_table_cell(table, "%s", shape);
}

/* The columns of numbers. What makes no multiply-accumulates has no speed. */
static void put_numbers(struct rfx_table *table, const struct rfx_layer_times *times,
                        const struct rfx_machine_peak *peak, const struct rfx_layer_row *row) {
    struct figures f = figures_of(times, peak, row);
    char human[RFX_HUMAN_CHARS];
    rfx_table_cell(table, "%.3f", row->seconds * 1e3);
    rfx_table_cell(table, "%.1f%%", f.share * 100);
    if (row->macs > 0) {
        rfx_table_cell(table, "%s", rfx_human_count(row->macs, human));
        rfx_table_cell(table, "%.1f", f.flops_per_second * 1e-9);
        rfx_table_cell(table, "%.1f%%", f.peak_share * 100);
    } else {
        for (int i = 0; i < 3; ++i) rfx_table_cell(table, "-");
    }
    if (row->bytes > 0) {
        rfx_table_cell(table, "%s", rfx_human_bytes(row->bytes, human));
        rfx_table_cell(table, "%.1f", f.bytes_per_second * 1e-9);
    } else {
        for (int i = 0; i < 2; ++i) rfx_table_cell(table, "-");
    }
}

static void put_time(struct rfx_table *table, const struct rfx_layer_times *times, const char *name,
                     double seconds) {
    double share = times->run_seconds > 0 ? seconds / times->run_seconds : 0;
    put_words(table, name, "", "", "");
    rfx_table_cell(table, "%.3f", seconds * 1e3);
    rfx_table_cell(table, "%.1f%%", share * 100);
    for (int i = 6; i < N_COLUMNS; ++i) rfx_table_cell(table, "%s", "");
}

void rfx_layer_report_text(const struct rfx_layer_times *times,
                           const struct rfx_machine_peak *peak) {
    const struct rfx_graph *graph = times->plan->graph;
    struct rfx_table *table = rfx_table_create(times->mem, columns, N_COLUMNS);
    char shape[96];
    printf(
        "machine    %s kernels, %d thread%s: %.1f GFLOP/s of multiply-adds, %.1f GB/s of "
        "memory\n\n",
        rfx_kernels()->name, peak->threads, peak->threads == 1 ? "" : "s",
        peak->flops_per_second * 1e-9, peak->bytes_per_second * 1e-9);
    for (int i = 0; i < times->n_rows; ++i) {
        const struct rfx_node *node = &graph->nodes[times->rows[i].node];
        const char *backend = rfx_op_backend(graph, node);
        put_words(table, node->name, rfx_op_def(node->op)->name, backend[0] != '\0' ? backend : "-",
                  rfx_human_shape(&node->out.shape, shape));
        put_numbers(table, times, peak, &times->rows[i]);
    }
    struct rfx_layer_row total = rfx_layer_times_total(times);
    put_words(table, "all layers", "", "", "");
    put_numbers(table, times, peak, &total);
    for (int k = 0; k < RFX_REST_COUNT; ++k)
        put_time(table, times, rfx_layer_rest_name((enum rfx_layer_rest)k), times->rest[k]);
    put_time(table, times, "run", times->run_seconds);
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
}

static json_t *numbers_json(const struct rfx_layer_times *times,
                            const struct rfx_machine_peak *peak, const struct rfx_layer_row *row) {
    struct figures f = figures_of(times, peak, row);
    return json_pack("{s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:I, s:f}", "steps",
                     (json_int_t)row->steps, "seconds", row->seconds, "cpu_seconds",
                     row->cpu_seconds, "share", f.share, "macs", (json_int_t)row->macs,
                     "gflops_per_second", f.flops_per_second * 1e-9, "fma_peak_share", f.peak_share,
                     "bytes", (json_int_t)row->bytes, "gb_per_second", f.bytes_per_second * 1e-9);
}

static json_t *row_json(const struct rfx_layer_times *times, const struct rfx_machine_peak *peak,
                        const struct rfx_layer_row *row) {
    const struct rfx_graph *graph = times->plan->graph;
    const struct rfx_node *node = &graph->nodes[row->node];
    const char *backend = rfx_op_backend(graph, node);
    json_t *item =
        json_pack("{s:s, s:s, s:s?, s:s, s:o}", "name", node->name, "op",
                  rfx_op_def(node->op)->name, "backend", backend[0] != '\0' ? backend : NULL,
                  "class", rfx_layer_class_name(rfx_layer_class_of(node)), "shape",
                  rfx_report_shape(&node->out.shape));
    json_t *numbers = numbers_json(times, peak, row);
    (void)json_object_update(item, numbers);
    json_decref(numbers);
    return item;
}

/* What the cost model counts of a row: names and numbers, those that are not 0. */
static json_t *counts_json(const struct rfx_cost_counts *counts) {
    json_t *item = json_object();
    for (int u = 0; u < RFX_COST_UNITS; ++u)
        if (counts->n[u] != 0.0)
            (void)json_object_set_new(item, rfx_cost_unit_name((enum rfx_cost_unit)u),
                                      json_real(counts->n[u]));
    return item;
}

/* Adds "counts" to each item, and "image_counts" to the document. */
static void add_counts(const struct rfx_layer_times *times, json_t *layers, json_t *document) {
    const struct rfx_graph *graph = times->plan->graph;
    struct rfx_caches caches = rfx_machine_caches();
    size_t bytes = (size_t)graph->n_nodes * sizeof(struct rfx_cost_counts);
    struct rfx_cost_counts *counts = rfx_memory_alloc(times->mem, bytes);
    struct rfx_error err;
    if (counts != NULL && rfx_cost_count_plan(times->plan, &caches, counts, &err) == RFX_OK) {
        for (int i = 0; i < times->n_rows; ++i)
            (void)json_object_set_new(json_array_get(layers, (size_t)i), "counts",
                                      counts_json(&counts[times->rows[i].node]));
        if (graph->input >= 0)
            (void)json_object_set_new(document, "image_counts", counts_json(&counts[graph->input]));
    }
    rfx_memory_release(times->mem, counts);
}

void rfx_layer_report_json(const struct rfx_layer_times *times, const struct rfx_machine_peak *peak,
                           json_t *document) {
    json_t *layers = json_array(), *rest = json_array();
    for (int i = 0; i < times->n_rows; ++i)
        (void)json_array_append_new(layers, row_json(times, peak, &times->rows[i]));
    for (int k = 0; k < RFX_REST_COUNT; ++k)
        (void)json_array_append_new(
            rest, json_pack("{s:s, s:f, s:f}", "name", rfx_layer_rest_name((enum rfx_layer_rest)k),
                            "seconds", times->rest[k], "cpu_seconds", times->rest_cpu[k]));
    add_counts(times, layers, document);
    struct rfx_layer_row total = rfx_layer_times_total(times);
    (void)json_object_set_new(
        document, "machine",
        json_pack("{s:s, s:i, s:f, s:f}", "kernels", rfx_kernels()->name, "threads", peak->threads,
                  "fma_gflops_per_second", peak->flops_per_second * 1e-9, "memory_gb_per_second",
                  peak->bytes_per_second * 1e-9));
    (void)json_object_set_new(document, "layers", layers);
    (void)json_object_set_new(document, "layers_total", numbers_json(times, peak, &total));
    (void)json_object_set_new(document, "rest", rest);
}
