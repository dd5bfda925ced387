/* rfexec check: reports whether a model can be run, every reason why not, and whether the image can
 * be streamed through the model row by row. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/printable.h"
#include "layers/graph/op.h"
#include "rfexec/late/late.h"
#include "rfexec/onnx/import/onnx_survey.h"
#include "tiler/plan/splits.h"
#include "tiler/search/partition.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

enum { OPEN_SIZE = 512, MAX_NAMED = 6, LEAST_ROWS = 16 }; /* the help says the size */

struct check_options {
    struct rfx_cli_words words;
    struct rfx_cli_model_options model;
    bool json;
};

struct check {
    struct rfx_memory *mem;
    const struct check_options *options;
    struct rfx_onnx_survey *survey; /* NULL for a built-in network */
    struct rfx_graph *graph;        /* NULL when the model cannot be loaded */
    bool size_is_open;
    struct rfx_error why; /* reason why the model cannot be loaded */
    struct rfx_levels levels;
    uint64_t macs;
    int n_whole; /* number of layers that need a whole feature map before they can begin */
};

/* Returns whether early output rows of a node read late rows of input k. Usually the input ranges
 * of the first, middle and last output row rise in this order. They do not when rows are reversed
 * or wrapped around, as in a Slice with a step of -1. */
static bool reads_ahead(const struct rfx_graph *graph, const struct rfx_node *node, int k) {
    int64_t h = node->out.h, extent = graph->nodes[node->in[k]].out.h;
    struct rfx_range at[3];
    if (h < 3 || extent < LEAST_ROWS || !rfx_op_def(node->op)->spatial) return false;
    for (int i = 0; i < 3; i++) {
        int64_t y = i == 0 ? 0 : i == 1 ? h / 2 : h - 1;
        at[i] = rfx_op_in_range(graph, node, k, 0, (struct rfx_range){y, y + 1});
    }
    return at[0].hi - at[1].hi > extent / 4 || at[1].lo - at[2].lo > extent / 4;
}

/* Returns whether node i prevents streaming. A node that computes rows from rows does so when it
 * reads late rows early (reads_ahead). Any other node does so when it reads a feature map as a
 * whole, unless it is a sum that can be accumulated part by part. A reshape does not count; the
 * node that reads its result does. */
static bool ends_streams(const struct check *c, int i) {
    const struct rfx_node *node = &c->graph->nodes[i];
    for (int k = 0; c->levels.local[i] && k < node->n_in; ++k)
        if (reads_ahead(c->graph, node, k)) return true;
    if (c->levels.local[i] || rfx_node_is_constant(node) || rfx_node_is_joined(node) ||
        rfx_node_reduction(node) != NULL)
        return false;
    for (int k = 0; k < node->n_in; ++k) {
        const struct rfx_node *in = &c->graph->nodes[node->in[k]];
        if (c->levels.local[node->in[k]] && in->out.h * in->out.w > 1) return true;
    }
    return false;
}

static int load(struct check *c) {
    const struct check_options *options = c->options;
    struct rfx_load_options load = {.h = options->model.size.y,
                                    .w = options->model.size.x,
                                    .seed = options->model.seed,
                                    .int8 = options->model.int8,
                                    .late = true};
    if (c->survey != NULL && c->survey->image != NULL && load.h == 0) {
        const int64_t *dims = c->survey->image->dims;
        c->size_is_open = c->survey->image->rank == 4 && (dims[2] < 1 || dims[3] < 1);
        if (c->size_is_open) load.h = load.w = OPEN_SIZE;
    }
    enum rfx_status status =
        rfx_model_load(c->mem, options->words.args[0], &load, &c->graph, &c->why);
    if (status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_MALFORMED ||
        status == RFX_STATUS_INVALID_ARGUMENT)
        return RFX_EXIT_DONE; /* the reason in c->why is the answer of the command */
    if (status == RFX_OK) status = rfx_levels_init(&c->levels, c->graph, NULL, 0, &c->why);
    if (status != RFX_OK) return rfx_cli_fail(status, &c->why);
    for (int i = 0; i < c->graph->n_nodes; ++i) {
        const struct rfx_node *node = &c->graph->nodes[i];
        c->macs += rfx_op_macs(c->graph, node, rfx_node_full_rect(node));
        c->n_whole += ends_streams(c, i);
    }
    return RFX_EXIT_DONE;
}

static int look(struct check *c) {
    const char *model = c->options->words.args[0];
    if (rfx_builtin_exists(model)) return load(c);
    if (access(model, R_OK) != 0)
        return rfx_cli_refuse_model(model, "neither a readable file nor a built-in network");
    enum rfx_status status = rfx_onnx_survey_create(c->mem, model, &c->survey, &c->why);
    if (status == RFX_STATUS_MALFORMED && rfx_cli_tell_picture(model)) return RFX_EXIT_REFUSED;
    if (status != RFX_OK && strstr(c->why.text, model) == NULL)
        status = rfx_fail_within(&c->why, status, "model '%s'", model);
    if (status != RFX_OK) return rfx_cli_fail(status, &c->why);
    return c->survey->n_refused == 0 ? load(c) : RFX_EXIT_DONE;
}

static int n_compute_layers(const struct rfx_graph *graph) {
    int n = 0;
    for (int i = 0; i < graph->n_nodes; ++i)
        n += !rfx_node_is_constant(&graph->nodes[i]) && !rfx_node_is_input(&graph->nodes[i]) &&
             !rfx_node_is_joined(&graph->nodes[i]);
    return n;
}

static void print_model(const struct check *c) {
    const struct rfx_onnx_survey *survey = c->survey;
    char params[RFX_HUMAN_CHARS];
    if (survey == NULL) {
        printf("model      %s: built-in, weights seeded, not trained\n",
               c->options->words.shown[0]);
        return;
    }
    printf("model      %s: ONNX, opset %lld, %zu nodes, %s weights\n", c->options->words.shown[0],
           (long long)survey->model.opset, survey->model.n_nodes,
           rfx_human_count(survey->weight_elems, params));
    if (survey->n_refused == 0) {
        printf("operators  all %zu are supported\n", survey->n_ops);
        return;
    }
    printf("operators  %zu of %zu%s are not supported:\n", survey->n_refused, survey->n_ops,
           survey->other_nodes > 0 ? " and more" : "");
    for (size_t i = 0; i < survey->n_refused; ++i) {
        const struct rfx_onnx_op_count *op = &survey->ops[i];
        char name[200], shown[4 * sizeof name];
        (void)snprintf(name, sizeof name, "%s%s%s", op->domain, op->domain[0] != '\0' ? "." : "",
                       op->name);
        rfx_printable(name, shown, sizeof shown);
        printf("           %-24s %4zu node%s: %s\n", shown, op->nodes, op->nodes == 1 ? " " : "s",
               op->why);
    }
}

/* Prints the layers that prevent streaming by rows, MAX_NAMED at most. */
static void print_whole(const struct check *c) {
    char shape[96], size[RFX_HUMAN_CHARS];
    int named = 0;
    for (int i = 0; i < c->graph->n_nodes && named < MAX_NAMED; ++i) {
        if (!ends_streams(c, i)) continue;
        const struct rfx_node *node = &c->graph->nodes[i];
        const struct rfx_node *in = &c->graph->nodes[node->in[0]];
        printf("           %s '%s' needs all of its input, %s (%s)\n", rfx_op_def(node->op)->name,
               rfx_split_label(c->graph, i), rfx_human_shape(&in->out.shape, shape),
               rfx_human_bytes(rfx_node_out_bytes(in), size));
        named++;
    }
    if (c->n_whole > named) printf("           and %d layers more\n", c->n_whole - named);
}

static void print_streams(const struct check *c) {
    int sums = c->levels.n_feeds;
    if (c->levels.n == 0) {
        puts("streams    no layer makes its map from a part of its input: it runs on whole maps");
        return;
    }
    if (c->n_whole == 0)
        puts(
            "streams    yes: rows go through all layers that make maps, and memory grows with the "
            "image's width, not its height");
    else
        puts("streams    in part: rows go as far as these layers, which keep maps whole");
    print_whole(c);
    if (sums > 0 && c->levels.n > 1)
        printf(
            "           in up to %d passes: what follows %d sum%s over the whole map (such as "
            "'%s') has to wait for %s\n",
            c->levels.n, sums, sums == 1 ? "" : "s", rfx_split_label(c->graph, c->levels.feeds[0]),
            sums == 1 ? "it" : "them");
}

static void print_text(const struct check *c) {
    const struct rfx_graph *graph = c->graph;
    char shape[96], macs[RFX_HUMAN_CHARS], params[RFX_HUMAN_CHARS];
    print_model(c);
    if (graph == NULL) {
        if (c->why.text[0] != '\0') printf("runs       no: %s\n", c->why.text);
        return;
    }
    printf("runs       yes: %d layers, %s MACs, %s parameters\n", n_compute_layers(graph),
           rfx_human_count(c->macs, macs), rfx_human_count(rfx_graph_param_count(graph), params));
    printf("input      %s%s\n", rfx_human_shape(&graph->nodes[graph->input].out.shape, shape),
           c->size_is_open ? " (the model leaves rows and columns open: --size HxW)" : "");
    for (int k = 0; k < graph->n_outputs; ++k) {
        const struct rfx_shape output = rfx_output_shape(graph, k);
        enum rfx_type type = graph->outputs[k].stored.type;
        printf("%-10s %s %s%s%s\n", graph->late != NULL ? "cut at" : "output",
               graph->outputs[k].name, rfx_human_shape(&output, shape),
               type == RFX_TYPE_FLOAT32 ? "" : " ",
               type == RFX_TYPE_FLOAT32 ? "" : rfx_type_name(type));
    }
    for (size_t k = 0; graph->late != NULL && k < graph->late->n_outputs; ++k)
        printf("output     %s, of a size that depends on data\n", graph->late->outputs[k].name);
    rfx_report_late_text(graph);
    print_streams(c);
}

static json_t *operators_json(const struct rfx_onnx_survey *survey) {
    json_t *list = json_array();
    for (size_t i = 0; survey != NULL && i < survey->n_ops; ++i) {
        const struct rfx_onnx_op_count *op = &survey->ops[i];
        char name[200], domain[200];
        rfx_printable(op->name, name, sizeof name);
        rfx_printable(op->domain, domain, sizeof domain);
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:b, s:s?}", "name", name, "domain", domain, "nodes",
                            (json_int_t)op->nodes, "supported", op->why == NULL, "why", op->why));
    }
    return list;
}

static json_t *whole_json(const struct check *c) {
    json_t *list = json_array();
    for (int i = 0; i < c->graph->n_nodes; ++i) {
        if (!ends_streams(c, i)) continue;
        const struct rfx_node *node = &c->graph->nodes[i];
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:o}", "name", node->name, "op", rfx_op_def(node->op)->name,
                            "input", rfx_report_shape(&c->graph->nodes[node->in[0]].out.shape)));
    }
    return list;
}

static int print_json(const struct check *c) {
    json_t *document = rfx_report_document("check", c->options->words.shown[0]);
    const struct rfx_graph *graph = c->graph;
    (void)json_object_set_new(document, "runs", json_boolean(graph != NULL));
    (void)json_object_set_new(document, "operators", operators_json(c->survey));
    if (c->survey != NULL)
        (void)json_object_set_new(document, "opset", json_integer(c->survey->model.opset));
    if (graph == NULL) {
        if (c->why.text[0] != '\0')
            (void)json_object_set_new(document, "why", json_string(c->why.text));
        return rfx_report_print(document);
    }
    json_t *outputs = json_array();
    for (int k = 0; k < graph->n_outputs; ++k) {
        const struct rfx_shape output = rfx_output_shape(graph, k);
        (void)json_array_append_new(
            outputs, json_pack("{s:s, s:o, s:s}", "name", graph->outputs[k].name, "shape",
                               rfx_report_shape(&output), "type",
                               rfx_type_name(graph->outputs[k].stored.type)));
    }
    (void)json_object_update_new(
        document, json_pack("{s:o, s:b, s:o, s:I, s:I, s:b, s:i, s:o}", "input",
                            rfx_report_shape(&graph->nodes[graph->input].out.shape), "size_is_open",
                            c->size_is_open, "outputs", outputs, "macs", (json_int_t)c->macs,
                            "params", (json_int_t)rfx_graph_param_count(graph), "streams",
                            c->levels.n > 0 && c->n_whole == 0, "passes", c->levels.n, "whole",
                            whole_json(c)));
    return rfx_report_print(document);
}

/* Prints the refusal on stderr too, for users who look only there. The full answer is on stdout. */
static int refuse(const struct check *c) {
    rfx_cli_message("model '%s' cannot be run", c->options->words.shown[0]);
    return RFX_EXIT_REFUSED;
}

static int run(void *given) {
    const struct check_options *options = given;
    struct check c = {.mem = rfx_cli_memory_create(), .options = options};
    if (c.mem == NULL) return RFX_EXIT_SYSTEM;
    int code = look(&c);
    if (code == RFX_EXIT_DONE && options->json)
        code = print_json(&c);
    else if (code == RFX_EXIT_DONE)
        print_text(&c);
    if (code == RFX_EXIT_DONE && c.graph == NULL) code = refuse(&c);
    rfx_levels_release(&c.levels);
    rfx_graph_free(c.graph);
    rfx_onnx_survey_free(c.survey);
    rfx_memory_free(c.mem);
    return code;
}

static struct check_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(size, check_options, model),
    RFX_CLI_USE(int8, check_options, model),
    RFX_CLI_USE(seed, check_options, model),
    RFX_CLI_USE(json, check_options, json),
};

const struct rfx_cli_command rfx_cmd_check = {
    .name = "check",
    .args = "MODEL [--size HxW] [--json]",
    .summary = "show whether a model can be run, and whether rows stream through it",
    .details =
        "Runs nothing. Lists all operators that are not supported, with the number of their\n"
        "nodes. If there are none, loads the model for --size or its own size (512x512 where the\n"
        "model leaves its size open) and names the layers that keep maps from being streamed row\n"
        "by row. The exit code is 3 when the model cannot be run.\n",
    .examples =
        "rfexec check net.onnx --size 2048x3072\n"
        "rfexec check resnet50 --json\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
