/* See overlay_choice.h. */
#include "tools/overlay/overlay_choice.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/command.h"
#include "tools/cli/option_values.h"
#include "tools/cli/report.h"

/* The node of an output's map, of more than one pixel, or -1. An output (1, rows, columns) or
 * (rows, columns) is one too where its elements are those of a map of one channel in another
 * shape, as ArgMax without keepdims leaves it. */
static int map_of(const struct rfx_graph *graph, int output) {
    int i = graph->outputs[output].node;
    const struct rfx_shape *shape = &graph->nodes[i].out.shape;
    bool flat = graph->nodes[i].out.layout != RFX_LAYOUT_NHWC;
    while (graph->nodes[i].out.layout != RFX_LAYOUT_NHWC) {
        const struct rfx_node *node = &graph->nodes[i];
        if (node->op != RFX_OP_RESHAPE && node->op != RFX_OP_TO_PLAIN) return -1;
        i = node->in[0];
    }
    const struct rfx_tensor *map = &graph->nodes[i].out;
    if (map->h * map->w <= 1) return -1;
    if (!flat) return i;
    int rank = shape->rank;
    bool same = rank >= 2 && map->c == 1 && shape->dims[rank - 2] == map->h &&
                shape->dims[rank - 1] == map->w;
    return same ? i : -1;
}

/* Whether a map's values count channels. */
static bool has_labels(const struct rfx_graph *graph, int map) {
    const struct rfx_node *node = &graph->nodes[map];
    return node->op == RFX_OP_CHANNEL_REDUCE && rfx_reduce_is_arg(node->attr.reduce.kind);
}

/* Whether each channel is a share of its own, so that the largest says little. */
static bool has_shares(const struct rfx_graph *graph, int map) {
    enum rfx_act_kind kind = graph->nodes[map].act.kind;
    return kind == RFX_ACT_SIGMOID || kind == RFX_ACT_HARD_SIGMOID;
}

static int refuse_all(const struct rfx_graph *graph) {
    char shape[96];
    rfx_cli_message("--overlay: no output of '%s' is a map over the picture, '%s' is %s",
                    graph->name, graph->outputs[0].name,
                    rfx_human_shape(&graph->nodes[graph->outputs[0].node].out.shape, shape));
    rfx_cli_message("--keep TENSOR makes a map inside of the network an output (see analyze)");
    return RFX_EXIT_USAGE;
}

static int choose_output(const struct rfx_graph *graph, const char *name,
                         struct rfx_overlay_choice *choice) {
    char shape[96];
    for (int k = 0; k < graph->n_outputs; ++k) {
        if (name != NULL && strcmp(name, graph->outputs[k].name) != 0) continue;
        choice->output = k;
        choice->map = map_of(graph, k);
        if (choice->map >= 0) return RFX_EXIT_DONE;
        if (name == NULL) continue;
        rfx_cli_message("--overlay-output '%s' is no map over the picture: its shape is %s", name,
                        rfx_human_shape(&graph->nodes[graph->outputs[k].node].out.shape, shape));
        return RFX_EXIT_USAGE;
    }
    if (name == NULL) return refuse_all(graph);
    rfx_cli_message("--overlay-output '%s': there is no such output; the first is '%s'", name,
                    graph->outputs[0].name);
    return RFX_EXIT_USAGE;
}

static int choose_channel(const struct rfx_graph *graph, const char *text,
                          struct rfx_overlay_choice *choice) {
    const struct rfx_tensor *map = rfx_overlay_map(graph, choice);
    int64_t number;
    const char *name = graph->outputs[choice->output].name;
    choice->channel = map->c > 1 || has_labels(graph, choice->map) ? -1 : 0;
    if (text == NULL && map->c > 1 && has_shares(graph, choice->map)) {
        rfx_cli_message(
            "--overlay: output '%s' has %lld channels, each a share by itself (sigmoid): "
            "--overlay-of says which is shown, 1 to %lld, or labels",
            name, (long long)map->c, (long long)map->c);
        return RFX_EXIT_USAGE;
    }
    if (text == NULL) return RFX_EXIT_DONE;
    choice->channel = -1;
    if (strcmp(text, "labels") == 0) return RFX_EXIT_DONE;
    if (!rfx_cli_parse_count(text, map->c, &number)) {
        rfx_cli_message("--overlay-of '%s': labels, or a channel of output '%s', 1 to %lld", text,
                        name, (long long)map->c);
        return RFX_EXIT_USAGE;
    }
    choice->channel = number - 1;
    return RFX_EXIT_DONE;
}

/* Whether a map is, for all that can be seen, what a network makes of pictures: another picture. */
static bool may_be_picture(const struct rfx_graph *graph, int map) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out, *out = &graph->nodes[map].out;
    if (has_labels(graph, map) || has_shares(graph, map)) return false;
    return out->c == 3 || out->h > input->h || out->w > input->w;
}

const struct rfx_tensor *rfx_overlay_map(const struct rfx_graph *graph,
                                         const struct rfx_overlay_choice *choice) {
    return &graph->nodes[choice->map].out;
}

struct rfx_tensor rfx_overlay_picture(const struct rfx_graph *graph) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    return rfx_tensor_nhwc(3, input->h, input->w);
}

int rfx_overlay_choose(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                       struct rfx_overlay_choice *choice) {
    struct rfx_error err = {{0}};
    struct rfx_tensor picture = rfx_overlay_picture(graph);
    char what[256];
    *choice = (struct rfx_overlay_choice){
        .format = {.kind = &rfx_output_npy, .bits = 8, .has_range = true, .range = {0.0, 255.0}}};
    int code = choose_output(graph, options->report.overlay_output, choice);
    if (code == RFX_EXIT_DONE) code = choose_channel(graph, options->report.overlay_of, choice);
    if (code != RFX_EXIT_DONE) return code;
    if (choice->channel < 0 &&
        options->report.overlay_range[0] < options->report.overlay_range[1]) {
        rfx_cli_message(
            "--overlay-range is for the values of a channel (--overlay-of), not labels");
        return RFX_EXIT_USAGE;
    }
    if (options->report.overlay == NULL) return RFX_EXIT_DONE; /* no file of its own */
    const struct rfx_output_kind *kind = rfx_output_kind_of(options->report.overlay);
    if (strcmp(options->report.overlay, "-") == 0) kind = &rfx_output_png;
    if (kind != NULL) choice->format.kind = kind;
    (void)snprintf(what, sizeof what, "--overlay '%.200s'", options->report.overlay);
    enum rfx_status status = rfx_output_format_check(&choice->format, &picture, what, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

int rfx_overlay_choose_for_page(const struct rfx_graph *graph,
                                const struct rfx_cli_run_options *options,
                                struct rfx_overlay_choice *choice, bool *shown) {
    struct rfx_cli_run_options first = *options;
    bool asked = options->report.overlay_of != NULL || options->report.overlay_output != NULL ||
                 options->report.overlay_range[0] < options->report.overlay_range[1];
    *shown = true;
    if (asked) return rfx_overlay_choose(graph, options, choice);
    int map = -1;
    for (int k = 0; k < graph->n_outputs && map < 0; ++k) map = map_of(graph, k);
    *shown = map >= 0 && !may_be_picture(graph, map);
    if (!*shown) return RFX_EXIT_DONE;
    if (has_shares(graph, map)) first.report.overlay_of = "1";
    return rfx_overlay_choose(graph, &first, choice);
}
