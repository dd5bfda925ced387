/* From options to a rectangle of an output; see part_choice.h. */
#include "tools/parts/part_choice.h"

#include <stdio.h>
#include <string.h>

#include "layers/graph/op.h"
#include "layers/graph/reduction.h"
#include "rf_analysis/part_ends.h"
#include "tiler/plan/tiling.h"
#include "tools/cli/command.h"
#include "tools/cli/option_values.h"
#include "tools/cli/report.h"

bool rfx_part_parse_share(const char *text, int64_t *index, int64_t *count) {
    long long i, n;
    int used = 0;
    if (sscanf(text, "%9lld/%9lld%n", &i, &n, &used) != 2 || text[used] != '\0') return false;
    if (strspn(text, "0123456789/") != strlen(text) || i < 1 || i > n) return false;
    *index = i;
    *count = n;
    return true;
}

struct rfx_rect rfx_part_share(const struct rfx_tensor *map, int64_t index, int64_t count) {
    struct rfx_range rows = rfx_tile_range(map->h, count, index - 1);
    return rfx_rect_make(rows.lo, rows.hi, 0, map->w);
}

static int find_output(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                       int *k) {
    if (options->part.part_output == NULL && graph->n_outputs == 1) {
        *k = 0;
        return RFX_EXIT_DONE;
    }
    for (int i = 0; options->part.part_output != NULL && i < graph->n_outputs; i++) {
        if (strcmp(graph->outputs[i].name, options->part.part_output) != 0) continue;
        *k = i;
        return RFX_EXIT_DONE;
    }
    if (options->part.part_output != NULL)
        rfx_cli_message("--part-output '%s': no output of the network; there are %d:",
                        options->part.part_output, graph->n_outputs);
    else
        rfx_cli_message("parts are of one output: --part-output says which of %d:",
                        graph->n_outputs);
    for (int i = 0; i < graph->n_outputs; i++) {
        char shape[96];
        const struct rfx_tensor *out = &graph->nodes[graph->outputs[i].node].out;
        rfx_cli_message("    %s  %s", graph->outputs[i].name, rfx_human_shape(&out->shape, shape));
    }
    return RFX_EXIT_USAGE;
}

int rfx_part_choose_output(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                           int *k) {
    int code = find_output(graph, options, k);
    return code;
}

int rfx_part_choose_rect(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                         int k, struct rfx_rect *rect) {
    const struct rfx_tensor *out = &graph->nodes[graph->outputs[k].node].out;
    int64_t index, count;
    if (options->part.part_rect != NULL) {
        if (!rfx_cli_parse_rect(options->part.part_rect, rect)) {
            rfx_cli_message(
                "--part-rect '%s' is not Y0,X0,Y1,X1, a rectangle of the output from "
                "row Y0 to before Y1 and column X0 to before X1",
                options->part.part_rect);
            return RFX_EXIT_USAGE;
        }
        if (rfx_rect_contains(rfx_rect_full(out->h, out->w), *rect)) return RFX_EXIT_DONE;
        rfx_cli_message("--part-rect '%s': output '%s' has %lld rows and %lld columns",
                        options->part.part_rect, graph->outputs[k].name, (long long)out->h,
                        (long long)out->w);
        return RFX_EXIT_USAGE;
    }
    if (!rfx_part_parse_share(options->part.part, &index, &count)) {
        rfx_cli_message("--part '%s' is not I/N, such as 1/4: part I of N, counted from 1",
                        options->part.part);
        return RFX_EXIT_USAGE;
    }
    if (count > out->h) {
        rfx_cli_message("--part '%s': output '%s' has %lld rows, too few for %lld parts",
                        options->part.part, graph->outputs[k].name, (long long)out->h,
                        (long long)count);
        return RFX_EXIT_USAGE;
    }
    *rect = rfx_part_share(out, index, count);
    return RFX_EXIT_DONE;
}

bool rfx_part_share_cells(const struct rfx_graph *graph, int k, int64_t index, int64_t count,
                          struct rfx_part_cells *cells) {
    bool whole = rfx_part_cells_of(graph, k, cells);
    for (int i = 0; whole && i < rfx_part_ends(graph, k); i++) {
        struct rfx_end end = rfx_part_end(graph, k, i);
        whole = rfx_part_cells_add(cells, &end, &graph->nodes[end.node],
                                   rfx_part_end_rows(graph, &end, index, count));
    }
    return whole;
}

int64_t rfx_part_most_shares(const struct rfx_graph *graph, int k) {
    int64_t most = 1;
    for (int i = 0; i < rfx_part_ends(graph, k); i++)
        most = rfx_max_i64(most, graph->nodes[rfx_part_end(graph, k, i).node].out.h);
    return most;
}

int rfx_part_choose_cells(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                          int k, int64_t *index, int64_t *count, struct rfx_part_cells *cells) {
    const char *name = graph->outputs[k].name;
    if (options->part.part_rect != NULL) {
        rfx_cli_message(
            "--part-rect '%s': output '%s' is joined of several maps and has no "
            "rectangles; --part I/N takes rows of each",
            options->part.part_rect, name);
        return RFX_EXIT_USAGE;
    }
    if (!rfx_part_parse_share(options->part.part, index, count)) {
        rfx_cli_message("--part '%s' is not I/N, such as 1/4: part I of N, counted from 1",
                        options->part.part);
        return RFX_EXIT_USAGE;
    }
    int64_t most = rfx_part_most_shares(graph, k);
    if (*count > most) {
        rfx_cli_message(
            "--part '%s': the tallest map of output '%s' has %lld rows, too few for "
            "%lld parts",
            options->part.part, name, (long long)most, (long long)*count);
        return RFX_EXIT_USAGE;
    }
    if (rfx_part_share_cells(graph, k, --*index, *count, cells)) return RFX_EXIT_DONE;
    rfx_cli_message("output '%s' has no parts: it is joined of more than %d maps", name,
                    RFX_PART_MOST_RANGES);
    return RFX_EXIT_REFUSED;
}
