/* rfexec plan --parts: plans all shards, one after the other. The shards of the rounds of states
 * come first, then the shards of the output. */
#include "tools/commands/command_forms.h"

#include <stdio.h>

#include "rf_analysis/part_exchange.h"
#include "rfexec/output/output_stream.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/run_shard.h"
#include "tools/study/machine_speed.h"

struct plan_shards {
    struct rfx_cli_job job; /* job.graph: the whole network; while a shard is planned, the shard */
    const struct rfx_cli_run_options *options;
    int output;                     /* number of the output in the whole network */
    struct rfx_shard_before before; /* rounds planned so far; their states are empty */
    json_t *list, *rounds;          /* with --json: shards of the output; shards of each round */
    uint64_t macs, macs_untiled;    /* of the shards of all rounds */
};

static void add_exchange(json_t *list, const struct rfx_part_exchange *exchange) {
    (void)json_array_append_new(
        list, json_pack("{s:I, s:I, s:i, s:i}", "macs", (json_int_t)exchange->macs, "bytes",
                        (json_int_t)exchange->bytes, "maps", exchange->maps, "messages",
                        exchange->messages));
}

/* The halos that all shards need of one map, and the largest one. */
struct map_halos {
    size_t bytes, most_bytes;
    int64_t most_rows;
};

static void add_halo(struct map_halos *sum, const struct rfx_part_halo *halo) {
    sum->bytes += halo->bytes;
    if (halo->bytes > sum->most_bytes) sum->most_bytes = halo->bytes;
    if (halo->rows > sum->most_rows) sum->most_rows = halo->rows;
}

static json_t *halos_json(const struct rfx_graph *graph, const struct map_halos *sums) {
    json_t *list = json_array();
    for (int i = 0; i < graph->n_nodes; i++)
        if (sums[i].bytes > 0)
            (void)json_array_append_new(
                list,
                json_pack("{s:s, s:I, s:I, s:I, s:I}", "map", graph->nodes[i].name, "map_rows",
                          (json_int_t)graph->nodes[i].out.h, "rows", (json_int_t)sums[i].most_rows,
                          "part_bytes", (json_int_t)sums[i].most_bytes, "bytes",
                          (json_int_t)sums[i].bytes));
    return list;
}

/* Adds "exchange" and "halos" to the document. They describe a run in which shards exchange rows at
 * their borders instead of computing them twice. "exchange": what each shard would compute and
 * send. "halos": the feature maps whose rows would be exchanged. */
static enum rfx_status plan_exchange(const struct plan_shards *p, json_t *document,
                                     struct rfx_error *err) {
    const struct rfx_graph *graph = p->job.graph;
    struct rfx_memory *mem = p->job.mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_part_exchange exchange;
    struct rfx_part_halo *halos = rfx_memory_calloc(mem, n, sizeof *halos);
    struct map_halos *sums = rfx_memory_calloc(mem, n, sizeof *sums);
    enum rfx_status status = RFX_OK;
    if (halos == NULL || sums == NULL)
        status = rfx_memory_fail(mem, "halos", n * sizeof *sums, err);
    json_t *list = json_array();
    for (int64_t i = 0; i < p->options->part.parts && status == RFX_OK; i++) {
        status = rfx_part_exchange_of(graph, p->output, i, p->options->part.parts, halos, &exchange,
                                      err);
        if (status != RFX_OK) break;
        add_exchange(list, &exchange);
        for (size_t j = 0; j < n; j++) add_halo(&sums[j], &halos[j]);
    }
    if (status == RFX_OK)
        (void)json_object_update_new(
            document, json_pack("{s:O, s:o}", "exchange", list, "halos", halos_json(graph, sums)));
    json_decref(list);
    rfx_memory_release(mem, sums);
    rfx_memory_release(mem, halos);
    return status;
}

/* Returns a new JSON object about a shard's plan: "image_rows", "image_columns", "macs",
 * "macs_ratio", "arena_bytes", "peak_bytes", "predicted_seconds", "plan". */
static json_t *plan_json(const struct rfx_plan *plan) {
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

/* Sums and maxima over the shards of a round. */
struct round_sum {
    struct plan_shards *p;
    json_t *list; /* with --json */
    uint64_t macs, most_macs;
    size_t arena_bytes, peak_bytes; /* the largest of any shard */
    size_t states_bytes;
    int states;
};

static void add_to_round(struct round_sum *sum, const struct rfx_plan *plan) {
    sum->macs += plan->macs;
    if (plan->macs > sum->most_macs) sum->most_macs = plan->macs;
    if (plan->bytes.arena > sum->arena_bytes) sum->arena_bytes = plan->bytes.arena;
    if (plan->peak_bytes > sum->peak_bytes) sum->peak_bytes = plan->peak_bytes;
    sum->p->macs_untiled = plan->macs_untiled;
    if (sum->list != NULL) (void)json_array_append_new(sum->list, plan_json(plan));
}

/* Plans shard `index` (from 1) of a round. `states` gets the states of the rounds before and memory
 * for the new ones. */
static enum rfx_status plan_share(struct round_sum *sum, int64_t index,
                                  struct rfx_shard_states *states, struct rfx_error *err) {
    struct plan_shards *p = sum->p;
    struct rfx_shard_round round;
    *states = (struct rfx_shard_states){.mem = p->job.mem,
                                        .round = p->before.states.round + 1,
                                        .index = index,
                                        .count = p->options->part.parts};
    enum rfx_status status = rfx_shard_round_plan(p->job.graph, &p->job.request, p->output,
                                                  &p->before, NULL, states, &round, err);
    if (status == RFX_OK) add_to_round(sum, round.plan);
    rfx_shard_round_release(&round);
    return status;
}

static enum rfx_status plan_round(struct round_sum *sum, struct rfx_error *err) {
    struct plan_shards *p = sum->p;
    struct rfx_shard_states states = {.mem = p->job.mem};
    enum rfx_status status = RFX_OK;
    for (int64_t i = 1; i <= p->options->part.parts && status == RFX_OK; i++) {
        rfx_shard_states_release(&states);
        status = plan_share(sum, i, &states, err);
    }
    for (int i = 0; i < states.n && status == RFX_OK; i++) {
        if (states.items[i].round != states.round) continue;
        sum->states++;
        sum->states_bytes += states.items[i].bytes;
    }
    rfx_shard_before_release(&p->before);
    p->before.states = states;
    return status == RFX_OK ? rfx_shard_before_settle(&p->before, p->job.graph, p->output, err)
                            : status;
}

static void tell_round(const struct round_sum *sum, struct rfx_table *table) {
    struct plan_shards *p = sum->p;
    char macs[RFX_HUMAN_CHARS], most[RFX_HUMAN_CHARS], states[RFX_HUMAN_CHARS];
    char arena[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS];
    double ratio = rfx_report_ratio(sum->macs, p->macs_untiled);
    int round = p->before.states.round;
    p->macs += sum->macs;
    if (sum->list != NULL) {
        (void)json_array_append_new(
            p->rounds, json_pack("{s:i, s:i, s:I, s:I, s:f, s:o}", "round", round, "count",
                                 sum->states, "bytes", (json_int_t)sum->states_bytes, "macs",
                                 (json_int_t)sum->macs, "macs_ratio", ratio, "parts", sum->list));
        return;
    }
    rfx_table_cell(table, "%d", round);
    rfx_table_cell(table, "%d", sum->states);
    rfx_table_cell(table, "%s", rfx_human_bytes(sum->states_bytes, states));
    rfx_table_cell(table, "%s", rfx_human_count(sum->macs, macs));
    rfx_table_cell(table, "%.3f", ratio);
    rfx_table_cell(table, "%s", rfx_human_count(sum->most_macs, most));
    rfx_table_cell(table, "%s", rfx_human_bytes(sum->arena_bytes, arena));
    rfx_table_cell(table, "%s", rfx_human_bytes(sum->peak_bytes, peak));
}

/* Plans all rounds of states and adds them to p->before. Prints a table without --json. Returns an
 * exit code. */
static int plan_rounds(struct plan_shards *p) {
    static const struct rfx_table_column columns[] = {
        {"round", RFX_TABLE_NUMBER},     {"states", RFX_TABLE_NUMBER},
        {"bytes", RFX_TABLE_NUMBER},     {"MACs", RFX_TABLE_NUMBER},
        {"x untiled", RFX_TABLE_NUMBER}, {"most of a part", RFX_TABLE_NUMBER},
        {"arena", RFX_TABLE_NUMBER},     {"peak", RFX_TABLE_NUMBER}};
    struct rfx_table *table = rfx_table_create(p->job.mem, columns, 8);
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    while (p->before.rounds.rounds > 0 && status == RFX_OK) {
        struct round_sum sum = {.p = p, .list = p->options->json ? json_array() : NULL};
        status = plan_round(&sum, &err);
        if (status == RFX_OK)
            tell_round(&sum, table);
        else
            json_decref(sum.list);
    }
    if (status == RFX_OK && !p->options->json) {
        rfx_table_print(table, stdout, rfx_table_terminal_width());
        putchar('\n');
    }
    rfx_table_free(table);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static void add_json(struct plan_shards *p, const struct rfx_shard_file *shard) {
    json_t *row = rfx_shard_file_place_json(shard);
    const struct rfx_tensor tensor = rfx_shard_file_tensor(shard);
    (void)json_object_set_new(row, "output_bytes",
                              json_integer((json_int_t)rfx_tensor_bytes(&tensor)));
    (void)json_object_update_new(row, plan_json(p->job.plan));
    (void)json_array_append_new(p->list, row);
}

static void add_row(struct plan_shards *p, struct rfx_table *table,
                    const struct rfx_shard_file *shard) {
    const struct rfx_plan *plan = p->job.plan;
    struct rfx_rect image = rfx_part_graph_image(p->job.graph);
    char macs[RFX_HUMAN_CHARS], arena[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS], text[RFX_PLAN_TEXT];
    char cells[RFX_SHARD_CELLS_CHARS];
    rfx_plan_describe(plan, text, sizeof text);
    if (shard->cells.of > 0)
        rfx_table_cell(table, "%s", rfx_shard_cells_text(&shard->cells, cells));
    else
        rfx_table_cell(table, "%lld to %lld", (long long)shard->rect.y0, (long long)shard->rect.y1);
    rfx_table_cell(table, "%lld to %lld", (long long)image.y0, (long long)image.y1);
    rfx_table_cell(table, "%s", rfx_human_count(plan->macs, macs));
    rfx_table_cell(table, "%.3f", rfx_report_ratio(plan->macs, plan->macs_untiled));
    rfx_table_cell(table, "%s", rfx_human_bytes(plan->bytes.arena, arena));
    rfx_table_cell(table, "%s", rfx_human_bytes(plan->peak_bytes, peak));
    rfx_table_cell(table, "%s", text);
}

/* Sets *shard to the place of shard `index` (from 1) in the output, and *graph to the graph that
 * computes the shard. */
static enum rfx_status make_graph(const struct plan_shards *p, int64_t index,
                                  struct rfx_shard_file *shard, struct rfx_graph **graph,
                                  struct rfx_error *err) {
    const struct rfx_graph *whole = p->job.graph;
    int node = whole->outputs[p->output].node;
    int64_t count = p->options->part.parts;
    *shard = (struct rfx_shard_file){.shape = whole->nodes[node].out.shape};
    if (!rfx_shard_cells_share(whole, p->output, index - 1, count, &shard->cells)) {
        shard->cells.of = 0;
        shard->rect = rfx_part_map_rows(whole, node, index - 1, count);
    }
    return rfx_shard_file_graph(shard, whole, p->output, p->before.known, p->before.states.n,
                                index - 1, count, graph, err);
}

/* Plans a graph as run --part or merge would. The memory for writing `tensor` to a .npy file is
 * counted. */
static int plan_graph(struct plan_shards *p, struct rfx_graph *part,
                      const struct rfx_tensor *tensor) {
    static const struct rfx_output_format npy = {.kind = &rfx_output_npy};
    struct rfx_plan_request *request = &p->job.request; /* in place: a failed search updates it */
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

/* Frees a shard's plan and graph and sets job.graph back to the whole network. */
static void leave_graph(struct plan_shards *p, struct rfx_graph *whole) {
    rfx_plan_free(p->job.plan);
    p->job.plan = NULL;
    rfx_graph_free(p->job.graph);
    p->job.graph = whole;
}

static int plan_part(struct plan_shards *p, struct rfx_table *table, int64_t index) {
    struct rfx_graph *whole = p->job.graph, *part;
    struct rfx_shard_file shard;
    struct rfx_error err = {{0}};
    enum rfx_status status = make_graph(p, index, &shard, &part, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    const struct rfx_tensor tensor = rfx_shard_file_tensor(&shard);
    int code = plan_graph(p, part, &tensor);
    if (code == RFX_EXIT_DONE && p->options->json) add_json(p, &shard);
    if (code == RFX_EXIT_DONE && !p->options->json) add_row(p, table, &shard);
    leave_graph(p, whole);
    return code;
}

/* Plans the rest of the network that merge, or one MPI rank, computes from the states alone. */
static int plan_rest(struct plan_shards *p, json_t *document) {
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
                      (json_int_t)rfx_tensor_bytes(out)));
    leave_graph(p, whole);
    return code;
}

/* Prints how many rounds of states precede the output. */
static int tell_rounds(const struct plan_shards *p) {
    const struct rfx_graph *graph = p->job.graph;
    const struct rfx_part_rounds *rounds = &p->before.rounds;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_shard_rounds_check(graph, p->output, rounds, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (rounds->rounds == 0 || p->options->json) return RFX_EXIT_DONE;
    printf("rounds     %d: %d of states, as '%s' and others see all of a map%s\n\n",
           rounds->rounds + (rounds->reads_image ? 1 : 0), rounds->rounds,
           graph->nodes[rounds->first].name,
           rounds->reads_image ? ", and one of the output's parts"
                               : "; merge runs what is left, which does not read the image");
    return RFX_EXIT_DONE;
}

static int print_json(struct plan_shards *p, json_t *document, bool by_merge) {
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
    json_t *words = p->options->words.n_args > 1 ? rfx_shard_command_words(p->options) : NULL;
    if (words != NULL) (void)json_object_set_new(document, "words", words);
    enum rfx_status status = plan_exchange(p, document, &err);
    if (status == RFX_OK) return rfx_report_print(document);
    json_decref(document);
    return rfx_cli_fail(status, &err);
}

static int print_text(const struct plan_shards *p, const struct rfx_table *table, bool by_merge) {
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

static int check_count(const struct plan_shards *p, bool joined) {
    const struct rfx_graph *graph = p->job.graph;
    const struct rfx_output *output = &graph->outputs[p->output];
    if (!joined && graph->nodes[output->node].out.layout != RFX_LAYOUT_NHWC) {
        rfx_cli_message("output '%s' is not a map of rows and columns: it has no parts",
                        output->name);
        return RFX_EXIT_REFUSED;
    }
    int64_t most = rfx_shard_most(graph, p->output);
    if (p->options->part.parts <= most) return RFX_EXIT_DONE;
    rfx_cli_message("--parts %lld: %soutput '%s' has %lld rows", (long long)p->options->part.parts,
                    joined ? "the tallest map of " : "", output->name, (long long)most);
    return RFX_EXIT_USAGE;
}

/* Plans the shards of the output or, with by_merge, the rest of the network that merge runs. */
static int plan_output(struct plan_shards *p, bool by_merge) {
    struct rfx_shard_cells cells;
    struct rfx_table_column columns[] = {
        {"output rows", RFX_TABLE_MARK}, {"image rows", RFX_TABLE_MARK}, {"MACs", RFX_TABLE_NUMBER},
        {"x untiled", RFX_TABLE_NUMBER}, {"arena", RFX_TABLE_NUMBER},    {"peak", RFX_TABLE_NUMBER},
        {"plan", RFX_TABLE_WORDS}};
    json_t *document =
        p->options->json ? rfx_report_document("plan", p->options->words.shown[0]) : NULL;
    if (rfx_shard_cells_of(p->job.graph, p->output, &cells)) columns[0].head = "output cells";
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

static int plan_all(struct plan_shards *p) {
    struct rfx_shard_cells cells;
    struct rfx_error err = {{0}};
    int code = rfx_choose_shard_output(p->job.graph, p->options, &p->output);
    if (code != RFX_EXIT_DONE) return code;
    p->before.states.mem = p->job.mem;
    enum rfx_status status = rfx_shard_before_settle(&p->before, p->job.graph, p->output, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    code = tell_rounds(p);
    bool by_merge = p->before.rounds.rounds > 0 && !p->before.rounds.reads_image;
    if (code == RFX_EXIT_DONE && !by_merge)
        code = check_count(p, rfx_shard_cells_of(p->job.graph, p->output, &cells));
    if (code == RFX_EXIT_DONE && p->before.rounds.rounds > 0) code = plan_rounds(p);
    return code == RFX_EXIT_DONE ? plan_output(p, by_merge) : code;
}

int rfx_plan_shards(const struct rfx_cli_run_options *options) {
    struct plan_shards p = {.options = options};
    int code = rfx_cli_job_open(&p.job, options,
                                options->words.n_args > 1 ? options->words.args[1] : NULL);
    if (code == RFX_EXIT_DONE && options->words.n_args < 2 &&
        p.job.request.source.fixed_bytes < rfx_image_npy_bytes())
        p.job.request.source.fixed_bytes =
            rfx_image_npy_bytes(); /* the same amount as the plan command counts */
    p.list = json_array();
    p.rounds = json_array();
    if (code == RFX_EXIT_DONE) code = plan_all(&p);
    json_decref(p.list);
    json_decref(p.rounds);
    rfx_shard_before_release(&p.before);
    rfx_cli_job_free(&p.job);
    return code;
}
