/* rfexec memory: packs the intermediate tensors of a network by every placement strategy and shows
 * both lower bounds (paper 000, tables 1 and 2). */
#include <stdio.h>

#include "layers/core/checked.h"
#include "rf_analysis/analysis.h"
#include "tiler/arena/greedy_packers.h"
#include "tiler/arena/packer.h"
#include "tiler/plan/splits.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/study/chart.h"
#include "tools/study/placement_chart.h"
#include "tools/study/row_run.h"
#include "tools/study/shared_objects.h"
#include "tools/study/tile_placement.h"

/* Arena sizes for a row-by-row run of the same tensors (tile-aware placement), in bytes. */
struct memory_rows {
    size_t slides;                 /* arena of the placement that the executor uses */
    size_t tiles[RFX_TILES_COUNT]; /* arenas of paper 004's tensor orders */
    size_t bound;                  /* lower bound of any placement */
};

/* Fills *rows with the arena sizes for the feature maps of the graph's nodes[n], which are sorted.
 */
static enum rfx_status fill_rows(struct rfx_memory *mem, const struct rfx_graph *graph,
                                 const int *nodes, int n, struct memory_rows *rows,
                                 struct rfx_error *err) {
    struct rfx_row_run *run = NULL;
    struct rfx_tiles_problem *tiles = NULL;
    bool *upwards = NULL;
    size_t *offsets = NULL;
    enum rfx_status status = rfx_row_run_create(mem, graph, nodes, n, &run, err);
    if (status != RFX_OK) return status;
    upwards = rfx_memory_calloc(mem, (size_t)run->n_slides, sizeof *upwards);
    offsets = rfx_memory_calloc(mem, (size_t)n, sizeof *offsets);
    if (upwards == NULL || offsets == NULL)
        status = rfx_memory_fail(mem, "offsets", (size_t)n * sizeof *offsets, err);
    if (status == RFX_OK) status = rfx_row_run_place(run, offsets, upwards, &rows->slides, err);
    if (status == RFX_OK) status = rfx_row_run_bound(run, &rows->bound, err);
    if (status == RFX_OK) status = rfx_row_run_tiles(run, NULL, &tiles, err);
    for (int k = 0; k < RFX_TILES_COUNT && status == RFX_OK; k++)
        status = rfx_tiles_place(tiles, (enum rfx_tiles_order)k, offsets, &rows->tiles[k], err);
    rfx_tiles_problem_free(tiles);
    rfx_memory_release(mem, offsets);
    rfx_memory_release(mem, upwards);
    rfx_row_run_free(run);
    return status;
}

/* Adds row_by_row_bytes and row_by_row_lower_bound_bytes to a document. */
static void add_rows_json(const struct memory_rows *rows, json_t *document) {
    json_t *bytes = json_pack("{s:I}", "slides", (json_int_t)rows->slides);
    for (int k = 0; k < RFX_TILES_COUNT; k++)
        (void)json_object_set_new(bytes, rfx_tiles_order_name((enum rfx_tiles_order)k),
                                  json_integer((json_int_t)rows->tiles[k]));
    (void)json_object_set_new(document, "row_by_row_bytes", bytes);
    (void)json_object_set_new(document, "row_by_row_lower_bound_bytes",
                              json_integer((json_int_t)rows->bound));
}

static void print_rows_line(const char *name, size_t bytes, char mark, const char *known_as) {
    printf("%-16s%14s  %10.3f %c  %s\n", name, "-", (double)bytes / (1024.0 * 1024.0), mark,
           known_as);
}

/* Prints a table whose columns are those of `memory`, in MiB. */
static void print_rows(const struct memory_rows *rows) {
    static const char *const known_as[] = {"TensorAllocate (Kvochko et al.), larger first",
                                           "TensorAllocate, longer lifetime first",
                                           "TensorAllocate, more peers first"};
    _Static_assert(sizeof known_as / sizeof known_as[0] == RFX_TILES_COUNT, "one per order");
    size_t smallest = rows->slides;
    for (int k = 0; k < RFX_TILES_COUNT; k++)
        if (rows->tiles[k] < smallest) smallest = rows->tiles[k];
    puts("\nrow by row (tile-aware): a tensor may lie over rows of its inputs that are dead");
    print_rows_line("slides", rows->slides, rows->slides == smallest ? '*' : ' ',
                    "what a run row by row uses");
    for (int k = 0; k < RFX_TILES_COUNT; k++)
        print_rows_line(rfx_tiles_order_name((enum rfx_tiles_order)k), rows->tiles[k],
                        rows->tiles[k] == smallest ? '*' : ' ', known_as[k]);
    print_rows_line("lower bound", rows->bound, ' ', "most bytes of rows alive at once");
}

struct memory_options {
    struct rfx_cli_words words;
    struct rfx_cli_model_options model;
    const char *plot;
    bool json;
};

struct memory_table {
    struct rfx_memory *mem;
    struct rfx_place_problem *problem;
    int *nodes;           /* [problem->n] the node that computes each tensor */
    size_t *best_offsets; /* [problem->n] */
    size_t objects[RFX_OBJECTS_COUNT], objects_bound;
    size_t offsets[RFX_GREEDY_COUNT];
    struct rfx_packer_result best;
    struct memory_rows rows;
    size_t with_adds; /* naive sum when each residual addition makes a tensor; 0: the same sum */
};

/* Returns whether a node's result is an intermediate tensor as the paper counts them: computed by
 * one operator and read by another. The image, the outputs and constants do not count, as they
 * belong to the caller or the model. */
static bool is_intermediate(const struct rfx_graph *graph, int node) {
    if (!rfx_memory_is_step(graph, node)) return false;
    return rfx_graph_count_outputs(graph, node) == 0;
}

/* Lists the intermediate tensors as a placement problem. A time of the problem is the step in which
 * an operator runs. */
static enum rfx_status list_items(struct memory_table *table, const struct rfx_graph *graph,
                                  struct rfx_error *err) {
    struct rfx_memory *mem = table->mem;
    size_t n_nodes = (size_t)graph->n_nodes;
    int *last_use = rfx_memory_calloc(mem, 2 * n_nodes, sizeof *last_use), *step;
    struct rfx_place_item *items = rfx_memory_calloc(mem, n_nodes, sizeof *items);
    enum rfx_status status;
    table->nodes = rfx_memory_calloc(mem, n_nodes, sizeof *table->nodes);
    if (last_use == NULL || items == NULL || table->nodes == NULL) {
        status = rfx_memory_fail(mem, "records", n_nodes * sizeof *items, err);
    } else {
        int n = 0, n_steps = 0;
        rfx_last_uses(graph, last_use);
        step = last_use + n_nodes;
        for (int i = 0; i < graph->n_nodes; i++) {
            step[i] = n_steps;
            n_steps += rfx_memory_is_step(graph, i);
        }
        for (int i = 0; i < graph->n_nodes; i++) {
            if (!is_intermediate(graph, i)) continue;
            size_t bytes = rfx_node_out_bytes(&graph->nodes[i]);
            struct rfx_place_item item = {step[i], (int64_t)step[last_use[i]] + 1,
                                          rfx_align_up(bytes), RFX_ALIGNMENT_BYTES};
            table->nodes[n] = i;
            items[n++] = item;
        }
        status = rfx_place_problem_create(mem, items, n, &table->problem, err);
    }
    rfx_memory_release(mem, items);
    rfx_memory_release(mem, last_use);
    return status;
}

static enum rfx_status fill(struct memory_table *table, struct rfx_error *err) {
    struct rfx_memory *mem = table->mem;
    const struct rfx_place_problem *problem = table->problem;
    size_t n = (size_t)problem->n;
    int *objects = rfx_memory_calloc(mem, n, sizeof *objects);
    size_t *offsets = rfx_memory_calloc(mem, n, sizeof *offsets);
    struct rfx_packer_limits limits = {.time_ns = RFX_CLI_PACK_TIME_NS};
    enum rfx_status status = RFX_OK;
    if (objects == NULL || offsets == NULL)
        status = rfx_memory_fail(mem, "placements", n * sizeof *offsets, err);
    if (status == RFX_OK) status = rfx_objects_lower_bound(problem, &table->objects_bound, err);
    for (int k = 0; k < RFX_OBJECTS_COUNT && status == RFX_OK; k++)
        status = rfx_objects_place(problem, (enum rfx_object_strategy)k, objects,
                                   &table->objects[k], err);
    for (int k = 0; k < RFX_GREEDY_COUNT && status == RFX_OK; k++)
        status = rfx_greedy_place(problem, (enum rfx_greedy_packer)k, NULL, offsets,
                                  &table->offsets[k], err);
    if (status == RFX_OK) status = rfx_packer_solve(problem, &limits, offsets, &table->best, err);
    rfx_memory_release(mem, objects);
    table->best_offsets = offsets;
    return status;
}

/* Computes the naive sum for the model with separate residual additions, as in the papers' graphs.
 */
static int sum_with_adds(struct memory_table *table, const struct memory_options *options) {
    static const struct rfx_fuse_options no_add = {true, true, false, true, true};
    struct rfx_graph *graph = NULL;
    if (rfx_cli_fuse(&options->model) != NULL) return RFX_EXIT_DONE;
    int code =
        rfx_cli_load_fused(table->mem, options->words.args[0], &options->model, &no_add, &graph);
    if (code != RFX_EXIT_DONE) return code;
    for (int i = 0; i < graph->n_nodes; i++)
        if (is_intermediate(graph, i))
            table->with_adds += rfx_align_up(rfx_node_out_bytes(&graph->nodes[i]));
    if (table->with_adds == table->problem->sum_bytes) table->with_adds = 0;
    rfx_graph_free(graph);
    return RFX_EXIT_DONE;
}

static enum rfx_status draw(const struct memory_table *table, const struct rfx_graph *graph,
                            const struct memory_options *options, struct rfx_error *err) {
    struct rfx_memory_placement placement = {.graph = graph,
                                             .model = options->words.shown[0],
                                             .problem = table->problem,
                                             .nodes = table->nodes,
                                             .offsets = table->best_offsets,
                                             .result = table->best};
    return rfx_memory_chart(table->mem, &placement, options->plot, err);
}

static double mib(size_t bytes) {
    return (double)bytes / (1024.0 * 1024.0);
}

/* Returns the best placement in the JSON form of `alloc --json`. */
static json_t *items_json(const struct memory_table *table, const struct rfx_graph *graph) {
    json_t *items = json_array();
    for (int i = 0; i < table->problem->n; i++) {
        const struct rfx_place_item *item = &table->problem->items[i];
        const char *name = rfx_split_label(graph, table->nodes[i]);
        json_t *row =
            json_pack("{s:s, s:I, s:I, s:I, s:I}", "id", name, "lower", (json_int_t)item->lo,
                      "upper", (json_int_t)item->hi, "size", (json_int_t)item->size, "offset",
                      (json_int_t)table->best_offsets[i]);
        (void)json_array_append_new(items, row);
    }
    return items;
}

static int print_json(const struct memory_options *options, const struct memory_table *table,
                      const struct rfx_graph *graph) {
    json_t *objects = json_object();
    json_t *offsets = json_object();
    for (int k = 0; k < RFX_OBJECTS_COUNT; k++)
        (void)json_object_set_new(objects, rfx_object_strategy_name((enum rfx_object_strategy)k),
                                  json_integer((json_int_t)table->objects[k]));
    for (int k = 0; k < RFX_GREEDY_COUNT; k++)
        (void)json_object_set_new(offsets, rfx_greedy_name((enum rfx_greedy_packer)k),
                                  json_integer((json_int_t)table->offsets[k]));
    json_t *document = rfx_report_document("memory", options->words.shown[0]);
    add_rows_json(&table->rows, document);
    if (table->with_adds != 0)
        (void)json_object_set_new(document, "naive_with_adds_bytes",
                                  json_integer((json_int_t)table->with_adds));
    (void)json_object_update_new(
        document,
        json_pack("{s:i, s:I, s:I, s:I, s:o, s:o, s:{s:I, s:I, s:s, s:b, s:I, s:o}}", "tensors",
                  table->problem->n, "naive_bytes", (json_int_t)table->problem->sum_bytes,
                  "shared_objects_lower_bound_bytes", (json_int_t)table->objects_bound,
                  "offsets_lower_bound_bytes", (json_int_t)table->problem->lower_bound,
                  "shared_objects_bytes", objects, "offsets_bytes", offsets, "best", "arena_bytes",
                  (json_int_t)table->best.arena_bytes, "lower_bound_bytes",
                  (json_int_t)table->best.lower_bound_bytes, "strategy", table->best.method,
                  "optimal", table->best.optimal, "nodes", (json_int_t)table->best.nodes, "items",
                  items_json(table, graph)));
    return rfx_report_print(document);
}

/* A row of the table: the shared-objects strategy and the offsets strategy of the same name. */
struct table_row {
    int objects, offsets; /* -1: there is none */
    const char *known_as; /* name of the row in the papers' tables */
};

static const struct table_row table_rows[] = {
    {RFX_OBJECTS_BY_SIZE, RFX_GREEDY_BY_SIZE, "Greedy by Size"},
    {RFX_OBJECTS_BY_SIZE_OLDEST, -1, "the same into the largest free object"},
    {RFX_OBJECTS_BY_SIZE_IMPROVED, -1, "Greedy by Size Improved"},
    {RFX_OBJECTS_BY_BREADTH, RFX_GREEDY_BY_BREADTH, "Greedy by Breadth"},
    {RFX_OBJECTS_IN_ORDER, -1, "Greedy (Lee et al.)"},
    {-1, RFX_GREEDY_STRIP_PACKING, "Strip Packing (Sekiyama et al.)"},
    {-1, RFX_GREEDY_FIRST_FIT, "first-fit (Occamy)"},
    {-1, RFX_GREEDY_BEST_FIT, "best-fit (Occamy); Greedy (Lee et al.)"},
    {-1, RFX_GREEDY_LONGER_FIRST, "longer-first (Occamy)"},
    {-1, RFX_GREEDY_BIGGER_FIRST, "bigger-first (Occamy)"},
};
enum { N_TABLE_ROWS = sizeof table_rows / sizeof table_rows[0] };

/* Prints a size in MiB, with a mark when it is the smallest of its column. */
static void print_cell(int width, size_t bytes, size_t smallest) {
    printf("%*.3f %c", width, mib(bytes), bytes == smallest ? '*' : ' ');
}

static void print_row(const struct memory_table *table, const struct table_row *row,
                      size_t smallest_objects) {
    const char *name = row->offsets >= 0
                           ? rfx_greedy_name((enum rfx_greedy_packer)row->offsets)
                           : rfx_object_strategy_name((enum rfx_object_strategy)row->objects);
    printf("%-16s", name);
    if (row->objects >= 0)
        print_cell(14, table->objects[row->objects], smallest_objects);
    else
        printf("%14s  ", "-");
    if (row->offsets >= 0)
        print_cell(10, table->offsets[row->offsets], table->best.arena_bytes);
    else
        printf("%10s  ", "-");
    printf("  %s\n", row->known_as);
}

static void print_text(const struct memory_table *table, const struct rfx_graph *graph,
                       const char *model) {
    const struct rfx_packer_result *best = &table->best;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    size_t smallest_objects = table->objects[0];
    for (int k = 1; k < RFX_OBJECTS_COUNT; k++)
        if (table->objects[k] < smallest_objects) smallest_objects = table->objects[k];
    printf("%s, %lldx%lld: %d intermediate tensors\n\n", model, (long long)in->h, (long long)in->w,
           table->problem->n);
    printf("%-16s%14s  %10s\n", "MiB", "shared objects", "one arena");
    for (int k = 0; k < N_TABLE_ROWS; k++) print_row(table, &table_rows[k], smallest_objects);
    printf("%-16s%14s  ", "best of all", "-");
    print_cell(10, best->arena_bytes, best->arena_bytes);
    printf("  %s%s\n", best->method, best->optimal ? "; proven: none is smaller" : "");
    printf("%-16s%14.3f  %10.3f    Lower Bound: sum of positional maximums; largest breadth\n",
           "lower bound", mib(table->objects_bound), mib(best->lower_bound_bytes));
    printf("%-16s%14.3f  %10.3f    Naive: nothing shared\n", "naive",
           mib(table->problem->sum_bytes), mib(table->problem->sum_bytes));
    if (table->with_adds != 0)
        printf("%-16s%14.3f  %10.3f    the same before residual additions are fused\n",
               "naive, with Adds", mib(table->with_adds), mib(table->with_adds));
    print_rows(&table->rows);
    puts("\n* smallest of its column");
}

static int run(void *given) {
    const struct memory_options *options = given;
    struct rfx_memory *mem = rfx_cli_memory_create();
    struct rfx_graph *graph = NULL;
    struct memory_table table = {.mem = mem};
    struct rfx_error err = {{0}};
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    int code = rfx_cli_load(mem, options->words.args[0], &options->model, options->model.size.y,
                            options->model.size.x, 0, &graph);
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = list_items(&table, graph, &err);
        if (status == RFX_OK) status = fill(&table, &err);
        if (status == RFX_OK)
            status = fill_rows(mem, graph, table.nodes, table.problem->n, &table.rows, &err);
        if (status == RFX_OK && options->plot != NULL) status = draw(&table, graph, options, &err);
        code = status == RFX_OK ? sum_with_adds(&table, options) : rfx_cli_fail(status, &err);
        if (code == RFX_EXIT_DONE && options->json)
            code = print_json(options, &table, graph);
        else if (code == RFX_EXIT_DONE)
            print_text(&table, graph, options->words.shown[0]);
    }
    rfx_memory_release(mem, table.best_offsets);
    rfx_memory_release(mem, table.nodes);
    rfx_place_problem_free(table.problem);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(memory_options, "plot", RESULT, plot, "FILE",
                   "draw the best placement: time across, address up", .ends = ".svg .png"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP(rfx_cli_heading_report, rows);

static struct memory_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(size, memory_options, model),
    RFX_CLI_USE(fuse, memory_options, model),
    RFX_CLI_USE(int8, memory_options, model),
    RFX_CLI_USE(seed, memory_options, model),
    {&group, 0},
    RFX_CLI_USE(json, memory_options, json),
};

const struct rfx_cli_command rfx_cmd_memory = {
    .name = "memory",
    .args = "MODEL [--size HxW] [--no-fuse] [--plot FILE] [--json]",
    .summary = "show how much memory the tensors between layers need with every packer",
    .details =
        "The figures are for a run of whole feature maps. Shared objects: tensors take turns in\n"
        "buffers of their own. One arena: each tensor has an offset in the arena. No arena is\n"
        "smaller than the lower bound; naive gives every tensor its own bytes. The image and the\n"
        "outputs do not count. Row by row: each layer computes its map in steps of rows and may\n"
        "overwrite input rows that are no longer needed.\n",
    .examples =
        "rfexec memory mobilenet_v2 --size 224x224\n"
        "rfexec memory net.onnx --size 512x512 --plot placement.svg\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
