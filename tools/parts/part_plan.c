/* The plans of all parts, one after the other. */
#include "tools/parts/part_plan.h"

#include <stdio.h>

#include "rf_analysis/part_graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/output_stream.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/measure/machine_speed.h"
#include "tools/parts/files/part_words.h"
#include "tools/parts/part_choice.h"
#include "tools/parts/part_plans.h"

/* What a part has of the output. */
struct place {
    struct rfx_rect rect;
    struct rfx_part_cells cells; /* of 0: a rectangle */
    struct rfx_tensor tensor;    /* its array */
};

static json_t *place_json(const struct place *place) {
    json_int_t bytes = (json_int_t)(place->tensor.elems * (int64_t)sizeof(float));
    if (place->cells.of > 0)
        return json_pack("{s:o, s:I}", "cells", rfx_part_cells_ranges_json(&place->cells),
                         "output_bytes", bytes);
    return json_pack("{s:[I,I], s:[I,I], s:I}", "rows", (json_int_t)place->rect.y0,
                     (json_int_t)place->rect.y1, "columns", (json_int_t)place->rect.x0,
                     (json_int_t)place->rect.x1, "output_bytes", bytes);
}

json_t *rfx_part_plans_json(const struct rfx_plan *plan) {
    struct rfx_rect image = rfx_part_graph_image(plan->graph);
    char text[RFX_PLAN_TEXT];
    rfx_plan_describe(plan, text, sizeof text);
    return json_pack(
        "{s:[I,I], s:[I,I], s:I, s:f, s:I, s:I, s:f, s:s}", "image_rows", (json_int_t)image.y0,
        (json_int_t)image.y1, "image_columns", (json_int_t)image.x0, (json_int_t)image.x1, "macs",
        (json_int_t)plan->macs, "macs_ratio", rfx_report_ratio(plan->macs, plan->macs_untiled),
        "arena_bytes", (json_int_t)plan->bytes.arena, "peak_bytes", (json_int_t)plan->peak_bytes,
        "predicted_seconds", rfx_machine_seconds(plan->cost, plan->threads), "plan", text);
}

static void add_json(struct rfx_part_plans *p, const struct place *place) {
    json_t *row = place_json(place);
    (void)json_object_update_new(row, rfx_part_plans_json(p->job.plan));
    (void)json_array_append_new(p->list, row);
}

static void add_row(struct rfx_part_plans *p, struct rfx_table *table, const struct place *place) {
    const struct rfx_plan *plan = p->job.plan;
    struct rfx_rect image = rfx_part_graph_image(p->job.graph);
    char macs[RFX_HUMAN_CHARS], arena[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS], text[RFX_PLAN_TEXT];
    char cells[RFX_PART_CELLS_CHARS];
    rfx_plan_describe(plan, text, sizeof text);
    if (place->cells.of > 0)
        rfx_table_cell(table, "%s", rfx_part_cells_text(&place->cells, cells));
    else
        rfx_table_cell(table, "%lld to %lld", (long long)place->rect.y0, (long long)place->rect.y1);
    rfx_table_cell(table, "%lld to %lld", (long long)image.y0, (long long)image.y1);
    rfx_table_cell(table, "%s", rfx_human_count(plan->macs, macs));
    rfx_table_cell(table, "%.3f", rfx_report_ratio(plan->macs, plan->macs_untiled));
    rfx_table_cell(table, "%s", rfx_human_bytes(plan->bytes.arena, arena));
    rfx_table_cell(table, "%s", rfx_human_bytes(plan->peak_bytes, peak));
    rfx_table_cell(table, "%s", text);
}

/* The graph of part `index`, from 1, and its place. */
static enum rfx_status take_part(const struct rfx_part_plans *p, int64_t index, struct place *place,
                                 struct rfx_graph **part, struct rfx_error *err) {
    const struct rfx_graph *whole = p->job.graph;
    const struct rfx_tensor *map = &whole->nodes[whole->outputs[p->output].node].out;
    const struct rfx_part_known *known = p->before.known;
    int n = p->before.states.n;
    *place = (struct place){.rect = rfx_rect_full(0, 0)};
    if (rfx_part_share_cells(whole, p->output, index - 1, p->options->part.parts, &place->cells)) {
        place->tensor = rfx_part_cells_tensor(&place->cells);
        return rfx_part_graph_share(whole, p->output, known, n, index - 1, p->options->part.parts,
                                    part, err);
    }
    place->cells.of = 0;
    place->rect = rfx_part_share(map, index, p->options->part.parts);
    place->tensor = rfx_tensor_nhwc(map->c, rfx_rect_rows(place->rect), map->w);
    return rfx_part_graph_after(whole, p->output, known, n, place->rect, part, err);
}

/* Plans `part` as what run --part or merge computes into an array of this form. */
static int plan_graph(struct rfx_part_plans *p, struct rfx_graph *part,
                      const struct rfx_tensor *tensor) {
    static const struct rfx_output_format npy = {.kind = &rfx_output_npy};
    struct rfx_plan_request *request = &p->job.request; /* keeps what a failing search has noted */
    bool emit = request->emit_outputs;
    size_t fixed = request->source.fixed_bytes;
    p->job.graph = part;
    request->emit_outputs = true;
    request->source.fixed_bytes += rfx_output_stream_bytes(&npy, tensor);
    int code = rfx_cli_job_plan(&p->job, p->options, "plan");
    request->emit_outputs = emit;
    request->source.fixed_bytes = fixed;
    if (code != RFX_EXIT_DONE) return code;
    p->macs += p->job.plan->macs;
    p->macs_untiled = p->job.plan->macs_untiled;
    return code;
}

/* Back to the whole graph. */
static void leave_graph(struct rfx_part_plans *p, struct rfx_graph *whole) {
    rfx_plan_free(p->job.plan);
    p->job.plan = NULL;
    rfx_graph_free(p->job.graph);
    p->job.graph = whole;
}

static int plan_part(struct rfx_part_plans *p, struct rfx_table *table, int64_t index) {
    struct rfx_graph *whole = p->job.graph, *part;
    struct place place;
    struct rfx_error err = {{0}};
    enum rfx_status status = take_part(p, index, &place, &part, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    int code = plan_graph(p, part, &place.tensor);
    if (code == RFX_EXIT_DONE && p->options->json) add_json(p, &place);
    if (code == RFX_EXIT_DONE && !p->options->json) add_row(p, table, &place);
    leave_graph(p, whole);
    return code;
}

/* What merge, or one rank, computes from the states alone. */
static int plan_rest(struct rfx_part_plans *p, json_t *document) {
    struct rfx_graph *whole = p->job.graph, *rest;
    const struct rfx_tensor *out = &whole->nodes[whole->outputs[p->output].node].out;
    struct rfx_error err = {{0}};
    enum rfx_status status =
        rfx_part_graph_after(whole, p->output, p->before.known, p->before.states.n,
                             rfx_rect_full(out->h, out->w), &rest, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    int code = plan_graph(p, rest, out);
    if (code == RFX_EXIT_DONE && document != NULL)
        (void)json_object_set_new(
            document, "merge",
            json_pack("{s:I, s:f, s:I}", "macs", (json_int_t)p->job.plan->macs, "predicted_seconds",
                      rfx_machine_seconds(p->job.plan->cost, p->job.plan->threads), "output_bytes",
                      (json_int_t)(out->elems * (int64_t)sizeof(float))));
    leave_graph(p, whole);
    return code;
}

/* Networks with global operations: rounds before the output's rows. */
static int tell_rounds(const struct rfx_part_plans *p) {
    const struct rfx_graph *graph = p->job.graph;
    const struct rfx_part_rounds *rounds = &p->before.rounds;
    if (rounds->blocking >= 0) {
        rfx_cli_message(
            "output '%s' has no parts: '%s' sees all of a map and has no state that "
            "parts could add up",
            graph->outputs[p->output].name, graph->nodes[rounds->blocking].name);
        return RFX_EXIT_REFUSED;
    }
    if (rounds->rounds == 0 || p->options->json) return RFX_EXIT_DONE;
    printf("rounds     %d: %d of states, as '%s' and others see all of a map%s\n\n",
           rounds->rounds + (rounds->reads_image ? 1 : 0), rounds->rounds,
           graph->nodes[rounds->first].name,
           rounds->reads_image ? ", and one of the output's parts"
                               : "; merge runs what is left, which does not read the image");
    return RFX_EXIT_DONE;
}

static int print_json(struct rfx_part_plans *p, json_t *document, bool by_merge) {
    struct rfx_graph *graph = p->job.graph;
    struct rfx_error err = {{0}};
    rfx_report_conv(document, graph);
    (void)json_object_update_new(
        document, json_pack("{s:o, s:s, s:i, s:b, s:O, s:O, s:I, s:I, s:f}", "input",
                            rfx_report_shape(&graph->nodes[graph->input].out.shape), "output",
                            graph->outputs[p->output].name, "rounds",
                            (int)json_array_size(p->rounds) + (by_merge ? 0 : 1), "last_by_merge",
                            by_merge, "states", p->rounds, "parts", p->list, "macs",
                            (json_int_t)p->macs, "macs_untiled", (json_int_t)p->macs_untiled,
                            "macs_ratio", rfx_report_ratio(p->macs, p->macs_untiled)));
    (void)json_object_set_new(document, "part_count", json_integer(p->options->part.parts));
    json_t *words = p->options->words.n_args > 1 ? rfx_part_words(p->options) : NULL;
    if (words != NULL) (void)json_object_set_new(document, "words", words);
    enum rfx_status status = rfx_part_plans_exchange(p, document, &err);
    if (status == RFX_OK) return rfx_report_print(document);
    json_decref(document);
    return rfx_cli_fail(status, &err);
}

static int print_text(const struct rfx_part_plans *p, const struct rfx_table *table,
                      bool by_merge) {
    char macs[RFX_HUMAN_CHARS], untiled[RFX_HUMAN_CHARS];
    double ratio = rfx_report_ratio(p->macs, p->macs_untiled);
    if (!by_merge) {
        rfx_table_print(table, stdout, rfx_table_terminal_width());
        putchar('\n');
    }
    printf("MACs       %s in all parts%s, %.3f x untiled (%s)\n", rfx_human_count(p->macs, macs),
           p->before.states.n > 0 ? " and rounds" : "", ratio,
           rfx_human_count(p->macs_untiled, untiled));
    return RFX_EXIT_DONE;
}

static int check_count(const struct rfx_part_plans *p, bool joined) {
    const struct rfx_graph *graph = p->job.graph;
    const struct rfx_output *output = &graph->outputs[p->output];
    if (!joined && graph->nodes[output->node].out.layout != RFX_LAYOUT_NHWC) {
        rfx_cli_message("output '%s' is no map of rows and columns: it has no parts", output->name);
        return RFX_EXIT_REFUSED;
    }
    int64_t most = rfx_part_most_shares(graph, p->output);
    if (p->options->part.parts <= most) return RFX_EXIT_DONE;
    rfx_cli_message("--parts %lld: %soutput '%s' has %lld rows", (long long)p->options->part.parts,
                    joined ? "the tallest map of " : "", output->name, (long long)most);
    return RFX_EXIT_USAGE;
}

/* The parts of the output, or what merge makes of it. */
static int plan_output(struct rfx_part_plans *p, bool by_merge) {
    struct rfx_part_cells cells;
    struct rfx_table_column columns[] = {
        {"output rows", RFX_TABLE_MARK}, {"image rows", RFX_TABLE_MARK}, {"MACs", RFX_TABLE_NUMBER},
        {"x untiled", RFX_TABLE_NUMBER}, {"arena", RFX_TABLE_NUMBER},    {"peak", RFX_TABLE_NUMBER},
        {"plan", RFX_TABLE_WORDS}};
    json_t *document =
        p->options->json ? rfx_report_document("plan", p->options->words.shown[0]) : NULL;
    if (rfx_part_cells_of(p->job.graph, p->output, &cells)) columns[0].head = "output cells";
    struct rfx_table *table = rfx_table_create(p->job.mem, columns, 7);
    int code = by_merge ? plan_rest(p, document) : RFX_EXIT_DONE;
    for (int64_t i = 1; i <= p->options->part.parts && !by_merge && code == RFX_EXIT_DONE; i++)
        code = plan_part(p, table, i);
    if (code == RFX_EXIT_DONE && document != NULL)
        code = print_json(p, document, by_merge);
    else if (code == RFX_EXIT_DONE)
        code = print_text(p, table, by_merge);
    else
        json_decref(document);
    rfx_table_free(table);
    return code;
}

static int plan_all(struct rfx_part_plans *p) {
    struct rfx_part_cells cells;
    struct rfx_error err = {{0}};
    int code = rfx_part_choose_output(p->job.graph, p->options, &p->output);
    if (code != RFX_EXIT_DONE) return code;
    p->before.states.mem = p->job.mem;
    enum rfx_status status = rfx_part_before_settle(&p->before, p->job.graph, p->output, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    code = tell_rounds(p);
    bool by_merge = p->before.rounds.rounds > 0 && !p->before.rounds.reads_image;
    if (code == RFX_EXIT_DONE && !by_merge)
        code = check_count(p, rfx_part_cells_of(p->job.graph, p->output, &cells));
    if (code == RFX_EXIT_DONE && p->before.rounds.rounds > 0) code = rfx_part_plans_rounds(p);
    return code == RFX_EXIT_DONE ? plan_output(p, by_merge) : code;
}

int rfx_part_plan(const struct rfx_cli_run_options *options) {
    struct rfx_part_plans p = {.options = options};
    int code = rfx_cli_job_open(&p.job, options,
                                options->words.n_args > 1 ? options->words.args[1] : NULL);
    if (code == RFX_EXIT_DONE && options->words.n_args < 2 &&
        p.job.request.source.fixed_bytes < rfx_image_npy_bytes())
        p.job.request.source.fixed_bytes = rfx_image_npy_bytes(); /* as plan counts it */
    p.list = json_array();
    p.rounds = json_array();
    if (code == RFX_EXIT_DONE) code = plan_all(&p);
    json_decref(p.list);
    json_decref(p.rounds);
    rfx_part_before_release(&p.before);
    rfx_cli_job_free(&p.job);
    return code;
}
