/* rfexec memory: every placement strategy on the intermediate tensors of a network, with both lower
 * bounds (paper 000, tables 1 and 2). */
#include <stdio.h>

#include "command.h"
#include "job.h"
#include "layers/checked.h"
#include "report.h"
#include "tiler/packer.h"
#include "tiler/placement_objects.h"
#include "tiler/placement_offsets.h"

static const int64_t time_limit_ns = (int64_t)10 * 1000000000;

struct memory_table {
    struct rfx_place_problem *problem;
    size_t objects[RFX_OBJECTS_COUNT], objects_bound;
    size_t offsets[RFX_OFFSETS_COUNT];
    struct rfx_packer_result best;
};

/* As the paper counts: tensors that operators of the network make for each other. The image, the
 * outputs and constants belong to the caller or the model. */
static bool is_intermediate(const struct rfx_graph *graph, int node) {
    enum rfx_op op = graph->nodes[node].op;
    if (op == RFX_OP_INPUT || op == RFX_OP_CONST_MAP || op == RFX_OP_CONST_PLAIN) return false;
    for (int k = 0; k < graph->n_outputs; k++)
        if (graph->outputs[k].node == node) return false;
    return true;
}

static enum rfx_status list_items(struct rfx_memory *mem, const struct rfx_graph *graph,
                                  struct rfx_place_problem **problem, struct rfx_error *err) {
    size_t n_nodes = (size_t)graph->n_nodes;
    int *last_use = rfx_memory_calloc(mem, n_nodes, sizeof *last_use);
    struct rfx_place_item *items = rfx_memory_calloc(mem, n_nodes, sizeof *items);
    enum rfx_status status;
    if (last_use == NULL || items == NULL) {
        status = rfx_memory_fail(mem, "records", n_nodes * sizeof *items, err);
    } else {
        int n = 0;
        rfx_last_uses(graph, last_use);
        for (int i = 0; i < graph->n_nodes; i++) {
            if (!is_intermediate(graph, i)) continue;
            size_t bytes = (size_t)graph->nodes[i].out.elems * sizeof(float);
            struct rfx_place_item item = {i, (int64_t)last_use[i] + 1, rfx_align_up(bytes),
                                          RFX_ALIGNMENT_BYTES};
            items[n++] = item;
        }
        status = rfx_place_problem_create(mem, items, n, problem, err);
    }
    rfx_memory_release(mem, items);
    rfx_memory_release(mem, last_use);
    return status;
}

static enum rfx_status fill(struct rfx_memory *mem, struct memory_table *table,
                            struct rfx_error *err) {
    const struct rfx_place_problem *problem = table->problem;
    size_t n = (size_t)problem->n;
    int *objects = rfx_memory_calloc(mem, n, sizeof *objects);
    size_t *offsets = rfx_memory_calloc(mem, n, sizeof *offsets);
    struct rfx_packer_limits limits = {.time_ns = time_limit_ns};
    enum rfx_status status = RFX_OK;
    if (objects == NULL || offsets == NULL)
        status = rfx_memory_fail(mem, "placements", n * sizeof *offsets, err);
    if (status == RFX_OK) status = rfx_objects_lower_bound(problem, &table->objects_bound, err);
    for (int k = 0; k < RFX_OBJECTS_COUNT && status == RFX_OK; k++)
        status = rfx_objects_place(problem, (enum rfx_object_strategy)k, objects,
                                   &table->objects[k], err);
    for (int k = 0; k < RFX_OFFSETS_COUNT && status == RFX_OK; k++)
        status = rfx_offsets_place(problem, (enum rfx_offset_strategy)k, offsets,
                                   &table->offsets[k], err);
    if (status == RFX_OK) status = rfx_packer_solve(problem, &limits, offsets, &table->best, err);
    rfx_memory_release(mem, objects);
    rfx_memory_release(mem, offsets);
    return status;
}

static double mib(size_t bytes) {
    return (double)bytes / (1024.0 * 1024.0);
}

static int print_json(const struct rfx_cli_options *options, const struct memory_table *table) {
    json_t *objects = json_object();
    json_t *offsets = json_object();
    for (int k = 0; k < RFX_OBJECTS_COUNT; k++)
        (void)json_object_set_new(objects, rfx_object_strategy_name((enum rfx_object_strategy)k),
                                  json_integer((json_int_t)table->objects[k]));
    for (int k = 0; k < RFX_OFFSETS_COUNT; k++)
        (void)json_object_set_new(offsets, rfx_offset_strategy_name((enum rfx_offset_strategy)k),
                                  json_integer((json_int_t)table->offsets[k]));
    json_t *document = rfx_report_document("memory", options->args[0]);
    (void)json_object_update_new(
        document,
        json_pack("{s:i, s:I, s:I, s:I, s:o, s:o, s:{s:I, s:I, s:s, s:b, s:I}}", "tensors",
                  table->problem->n, "naive_bytes", (json_int_t)table->problem->sum_bytes,
                  "shared_objects_lower_bound_bytes", (json_int_t)table->objects_bound,
                  "offsets_lower_bound_bytes", (json_int_t)table->problem->lower_bound,
                  "shared_objects_bytes", objects, "offsets_bytes", offsets, "best", "arena_bytes",
                  (json_int_t)table->best.arena_bytes, "lower_bound_bytes",
                  (json_int_t)table->best.lower_bound_bytes, "strategy", table->best.method,
                  "optimal", table->best.optimal, "nodes", (json_int_t)table->best.nodes));
    return rfx_report_print(document);
}

static void print_text(const struct memory_table *table) {
    const struct rfx_packer_result *best = &table->best;
    printf("%d intermediate tensors, MiB\n\nshared objects\n", table->problem->n);
    for (int k = 0; k < RFX_OBJECTS_COUNT; k++)
        printf("  %-18s %10.3f\n", rfx_object_strategy_name((enum rfx_object_strategy)k),
               mib(table->objects[k]));
    printf("  %-18s %10.3f\n\noffsets\n", "lower bound", mib(table->objects_bound));
    for (int k = 0; k < RFX_OFFSETS_COUNT; k++)
        printf("  %-18s %10.3f\n", rfx_offset_strategy_name((enum rfx_offset_strategy)k),
               mib(table->offsets[k]));
    printf("  %-18s %10.3f  (%s, %s)\n", "best", mib(best->arena_bytes), best->method,
           best->optimal ? "proven: none is smaller" : "not proven");
    printf("  %-18s %10.3f\n\n", "lower bound", mib(best->lower_bound_bytes));
    printf("naive                %10.3f\n", mib(table->problem->sum_bytes));
}

int rfx_cmd_memory(const struct rfx_cli_options *options) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct memory_table table = {0};
    struct rfx_error err = {{0}};
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    int code = rfx_cli_load(mem, options, options->size.y, options->size.x, &graph);
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = list_items(mem, graph, &table.problem, &err);
        if (status == RFX_OK) status = fill(mem, &table, &err);
        if (status != RFX_OK)
            code = rfx_cli_fail(status, &err);
        else if (options->json)
            code = print_json(options, &table);
        else
            print_text(&table);
    }
    rfx_place_problem_free(table.problem);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return code;
}
