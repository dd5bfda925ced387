/* The plans of all parts, one after the other. */
#include "tools/parts/part_plan.h"

#include <stdio.h>

#include "rf_analysis/part_graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/output_stream.h"
#include "tools/cli/job.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/parts/part_choice.h"

struct part_plans {
    struct rfx_cli_job job; /* its graph: the whole one, but while a part is planned */
    const struct rfx_cli_options *options;
    struct rfx_table *table;
    json_t *list; /* with --json */
    uint64_t macs, macs_untiled;
};

/* What a part has of the output. */
struct place {
    struct rfx_rect rect;
    struct rfx_part_cells cells; /* of 0: a rectangle */
};

static json_t *place_json(const struct place *place) {
    if (place->cells.of > 0)
        return json_pack("{s:o}", "cells", rfx_part_cells_ranges_json(&place->cells));
    return json_pack("{s:[I,I], s:[I,I]}", "rows", (json_int_t)place->rect.y0,
                     (json_int_t)place->rect.y1, "columns", (json_int_t)place->rect.x0,
                     (json_int_t)place->rect.x1);
}

static void add_json(struct part_plans *p, const struct place *place, struct rfx_rect image,
                     const char *text) {
    const struct rfx_plan *plan = p->job.plan;
    json_t *row = place_json(place);
    (void)json_object_update_new(
        row, json_pack("{s:[I,I], s:[I,I], s:I, s:f, s:I, s:I, s:s}", "image_rows",
                       (json_int_t)image.y0, (json_int_t)image.y1, "image_columns",
                       (json_int_t)image.x0, (json_int_t)image.x1, "macs", (json_int_t)plan->macs,
                       "macs_ratio", rfx_report_ratio(plan->macs, plan->macs_untiled),
                       "arena_bytes", (json_int_t)plan->bytes.arena, "peak_bytes",
                       (json_int_t)plan->peak_bytes, "plan", text));
    (void)json_array_append_new(p->list, row);
}

static void add_row(struct part_plans *p, const struct place *place) {
    const struct rfx_plan *plan = p->job.plan;
    struct rfx_rect image = rfx_part_graph_image(p->job.graph);
    char macs[RFX_HUMAN_CHARS], arena[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS], text[RFX_PLAN_TEXT];
    char cells[RFX_PART_CELLS_CHARS];
    rfx_plan_describe(plan, text, sizeof text);
    p->macs += plan->macs;
    p->macs_untiled = plan->macs_untiled;
    if (p->list != NULL) {
        add_json(p, place, image, text);
        return;
    }
    if (place->cells.of > 0)
        rfx_table_cell(p->table, "%s", rfx_part_cells_text(&place->cells, cells));
    else
        rfx_table_cell(p->table, "%lld to %lld", (long long)place->rect.y0,
                       (long long)place->rect.y1);
    rfx_table_cell(p->table, "%lld to %lld", (long long)image.y0, (long long)image.y1);
    rfx_table_cell(p->table, "%s", rfx_human_count(plan->macs, macs));
    rfx_table_cell(p->table, "%.3f", rfx_report_ratio(plan->macs, plan->macs_untiled));
    rfx_table_cell(p->table, "%s", rfx_human_bytes(plan->bytes.arena, arena));
    rfx_table_cell(p->table, "%s", rfx_human_bytes(plan->peak_bytes, peak));
    rfx_table_cell(p->table, "%s", text);
}

/* The graph of part `index`, from 1, its place and its array. */
static enum rfx_status take_part(const struct part_plans *p, int k, int64_t index,
                                 struct place *place, struct rfx_tensor *tensor,
                                 struct rfx_graph **part, struct rfx_error *err) {
    const struct rfx_graph *whole = p->job.graph;
    const struct rfx_tensor *map = &whole->nodes[whole->outputs[k].node].out;
    *place = (struct place){.rect = rfx_rect_full(0, 0)};
    if (rfx_part_share_cells(whole, k, index - 1, p->options->parts, &place->cells)) {
        *tensor = rfx_part_cells_tensor(&place->cells);
        return rfx_part_graph_share(whole, k, NULL, 0, index - 1, p->options->parts, part, err);
    }
    place->cells.of = 0;
    place->rect = rfx_part_share(map, index, p->options->parts);
    *tensor = rfx_tensor_nhwc(map->c, rfx_rect_rows(place->rect), map->w);
    return rfx_part_graph_create(whole, k, place->rect, part, err);
}

static int plan_part(struct part_plans *p, int k, int64_t index) {
    static const struct rfx_output_format npy = {.kind = RFX_OUTPUT_NPY};
    struct rfx_graph *whole = p->job.graph, *part;
    struct place place;
    struct rfx_tensor tensor;
    struct rfx_plan_request request = p->job.request;
    struct rfx_error err = {{0}};
    enum rfx_status status = take_part(p, k, index, &place, &tensor, &part, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    p->job.graph = part;
    p->job.request.emit_outputs = true;
    p->job.request.source.fixed_bytes += rfx_output_stream_bytes(&npy, &tensor);
    int code = rfx_cli_job_plan(&p->job, p->options, "plan");
    if (code == RFX_EXIT_DONE) add_row(p, &place);
    rfx_plan_free(p->job.plan);
    p->job.plan = NULL;
    rfx_graph_free(part);
    p->job.graph = whole;
    p->job.request = request;
    return code;
}

/* Networks with global operations: no rows of their own, but rounds. */
static int tell_rounds(const struct part_plans *p, int k, const struct rfx_part_rounds *rounds) {
    const struct rfx_graph *graph = p->job.graph;
    const char *name = graph->outputs[k].name;
    if (rounds->blocking >= 0) {
        rfx_cli_message(
            "output '%s' has no parts: '%s' sees all of a map and has no state that "
            "parts could add up",
            name, graph->nodes[rounds->blocking].name);
        return RFX_EXIT_REFUSED;
    }
    int all = rounds->rounds + (rounds->reads_image ? 1 : 0);
    if (p->options->json) {
        json_t *document = rfx_report_document("plan", p->options->shown[0]);
        (void)json_object_update_new(
            document,
            json_pack("{s:I, s:s, s:i, s:b}", "parts", (json_int_t)p->options->parts, "output",
                      name, "rounds", all, "last_by_merge", !rounds->reads_image));
        return rfx_report_print(document);
    }
    printf("rounds     %d: %d of states, as '%s' and others see all of a map%s\n", all,
           rounds->rounds, graph->nodes[rounds->first].name,
           rounds->reads_image ? ", and one of the output's parts"
                               : "; merge runs what is left, which does not read the image");
    return RFX_EXIT_DONE;
}

static int print_plans(struct part_plans *p) {
    char macs[RFX_HUMAN_CHARS], untiled[RFX_HUMAN_CHARS];
    double ratio = rfx_report_ratio(p->macs, p->macs_untiled);
    if (p->list != NULL) {
        json_t *document = rfx_report_document("plan", p->options->shown[0]);
        rfx_report_conv(document, p->job.graph);
        (void)json_object_update_new(
            document, json_pack("{s:O, s:I, s:I, s:f, s:i}", "parts", p->list, "macs",
                                (json_int_t)p->macs, "macs_untiled", (json_int_t)p->macs_untiled,
                                "macs_ratio", ratio, "rounds", 1));
        return rfx_report_print(document);
    }
    rfx_table_print(p->table, stdout, rfx_table_terminal_width());
    printf("\nMACs       %s in all parts, %.3f x untiled (%s)\n", rfx_human_count(p->macs, macs),
           ratio, rfx_human_count(p->macs_untiled, untiled));
    return RFX_EXIT_DONE;
}

static int plan_all(struct part_plans *p) {
    struct rfx_part_cells cells;
    bool joined = false;
    struct rfx_table_column columns[] = {
        {"output rows", RFX_TABLE_MARK}, {"image rows", RFX_TABLE_MARK}, {"MACs", RFX_TABLE_NUMBER},
        {"x untiled", RFX_TABLE_NUMBER}, {"arena", RFX_TABLE_NUMBER},    {"peak", RFX_TABLE_NUMBER},
        {"plan", RFX_TABLE_WORDS}};
    struct rfx_part_rounds rounds;
    struct rfx_error err = {{0}};
    int k, code = rfx_part_choose_output(p->job.graph, p->options, &k);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = rfx_part_graph_rounds(p->job.graph, k, NULL, 0, &rounds, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (rounds.rounds > 0 || rounds.blocking >= 0) return tell_rounds(p, k, &rounds);
    joined = rfx_part_cells_of(p->job.graph, k, &cells);
    if (joined) columns[0].head = "output cells";
    int64_t most = rfx_part_most_shares(p->job.graph, k);
    if (p->options->parts > most) {
        rfx_cli_message("--parts %lld: %soutput '%s' has %lld rows", (long long)p->options->parts,
                        joined ? "the tallest map of " : "", p->job.graph->outputs[k].name,
                        (long long)most);
        return RFX_EXIT_USAGE;
    }
    p->table = rfx_table_create(p->job.mem, columns, 7);
    if (p->options->json) p->list = json_array();
    for (int64_t i = 1; i <= p->options->parts && code == RFX_EXIT_DONE; i++)
        code = plan_part(p, k, i);
    if (code == RFX_EXIT_DONE) code = print_plans(p);
    rfx_table_free(p->table);
    json_decref(p->list);
    return code;
}

int rfx_part_plan(const struct rfx_cli_options *options) {
    struct part_plans p = {.options = options};
    if (options->output != NULL || options->plan_file != NULL || options->for_output != NULL) {
        rfx_cli_message("--parts excludes -o, --plan and --for-output");
        return RFX_EXIT_USAGE;
    }
    int code = rfx_cli_job_open(&p.job, options, options->n_args > 1 ? options->args[1] : NULL);
    if (code == RFX_EXIT_DONE && options->n_args < 2 &&
        p.job.request.source.fixed_bytes < rfx_image_npy_bytes())
        p.job.request.source.fixed_bytes = rfx_image_npy_bytes(); /* as plan counts it */
    if (code == RFX_EXIT_DONE) code = plan_all(&p);
    rfx_cli_job_free(&p.job);
    return code;
}
