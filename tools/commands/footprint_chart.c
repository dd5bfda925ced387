/* The chart of `analyze --plot`; see curve_chart.h. */
#include <stdio.h>

#include "layers/graph/op.h"
#include "tiler/plan/splits.h"
#include "tools/cli/report.h"
#include "tools/commands/curve_chart.h"
#include "tools/study/chart.h"

enum { N_SERIES = 4, TEXT_CHARS = 160 };

/* The arrays of a footprint: one element per layer that makes an activation. */
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

/* Copies bytes[] of the shown nodes as MiB. */
static void take_values(const struct rfx_graph *graph, const size_t *bytes, double *values) {
    for (int i = 0, k = 0; i < graph->n_nodes; ++i)
        if (shown(graph, i)) values[k++] = mib(bytes[i]);
}

static enum rfx_status fill(struct footprint *f, const struct rfx_curve *curve,
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

/* The place of a node among the shown ones. */
static int place(const struct rfx_graph *graph, int node) {
    int k = 0;
    for (int i = 0; i < node; ++i) k += shown(graph, i);
    return k;
}

static enum rfx_status draw(const struct footprint *f, const struct rfx_cli_curves *curves,
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
        cut_x[0] = cut_x[1] = place(graph, point->split) + 0.5;
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

/* The point that --split names, else the best one; NULL: neither --tiles nor --split was given. */
static enum rfx_status choose_point(const struct rfx_curve *curve,
                                    const struct rfx_cli_options *options,
                                    const struct rfx_curve_point **out, struct rfx_error *err) {
    *out = NULL;
    if (options->tiles.y == 0 && options->split == NULL) return RFX_OK;
    if (options->split == NULL) {
        if (curve->best < 0)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: this network cannot be cut",
                            options->args[0]);
        *out = &curve->points[curve->best];
        return RFX_OK;
    }
    int split;
    enum rfx_status status = rfx_split_find(curve->graph, options->split, &split, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < curve->n_points; ++i)
        if (curve->points[i].split == split) *out = &curve->points[i];
    return *out != NULL ? RFX_OK
                        : rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                   "--split '%s': not a point of the curve", options->split);
}

int rfx_cli_footprint_chart(const struct rfx_cli_options *options) {
    struct rfx_cli_curves curves;
    struct rfx_error err = {{0}};
    struct footprint f = {0};
    int code = rfx_cli_curves_open(&curves, options, false, true);
    if (code != RFX_EXIT_DONE) goto done;
    const struct rfx_curve *curve = curves.curves[0];
    const struct rfx_curve_point *point;
    enum rfx_status status = choose_point(curve, options, &point, &err);
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
        status = fill(&f, curve, point, &err);
    }
    if (status == RFX_OK) status = draw(&f, &curves, point, options->plot, &err);
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    rfx_memory_release(f.mem, f.bytes);
    rfx_memory_release(f.mem, f.weights_mib);
    rfx_memory_release(f.mem, f.names);
done:
    rfx_cli_curves_free(&curves);
    return code;
}
