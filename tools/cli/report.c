/* JSON and text; see report.h. */
#include "tools/cli/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "rfexec/late/late_run.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan_file.h"
#include "tiler/plan/splits.h"
#include "tiler/search/graph_variants.h"
#include "tiler/search/plan_counts.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"
#include "tools/cli/table.h"
#include "tools/study/baseline.h"
#include "tools/study/machine_speed.h"

char *rfx_human_bytes(size_t bytes, char *text) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]; ++unit) value /= 1024.0;
    (void)snprintf(text, RFX_HUMAN_CHARS, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

char *rfx_human_count(uint64_t count, char *text) {
    double value = (double)count;
    if (count >= 1000000000U)
        (void)snprintf(text, RFX_HUMAN_CHARS, "%.3f G", value * 1e-9);
    else if (count >= 1000000U)
        (void)snprintf(text, RFX_HUMAN_CHARS, "%.3f M", value * 1e-6);
    else if (count >= 1000U)
        (void)snprintf(text, RFX_HUMAN_CHARS, "%.3f k", value * 1e-3);
    else
        (void)snprintf(text, RFX_HUMAN_CHARS, "%llu", (unsigned long long)count);
    return text;
}

char *rfx_human_shape(const struct rfx_shape *shape, char text[96]) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < shape->rank && used < 90; ++i) {
        int n = snprintf(text + used, 96 - used, "%s%lld", i == 0 ? "" : "x",
                         (long long)shape->dims[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* Set when any allocation for a report failed. */
static bool no_memory;

static void *noting_malloc(size_t bytes) {
    void *block = malloc(bytes);
    if (block == NULL) no_memory = true;
    return block;
}

void rfx_report_watch_memory(void) {
    json_set_alloc_funcs(noting_malloc, free);
}

void rfx_report_note_no_memory(void) {
    no_memory = true;
}

bool rfx_report_lacks_memory(void) {
    return no_memory;
}

json_t *rfx_report_document(const char *command, const char *model) {
    return json_pack("{s:i, s:s, s:s*}", "schema", RFX_JSON_SCHEMA, "command", command, "model",
                     model);
}

int rfx_report_print(json_t *document) {
    bool printed = document != NULL && !no_memory &&
                   json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 &&
                   putchar('\n') != EOF;
    if (document == NULL || no_memory) rfx_cli_message("out of memory for the JSON document");
    json_decref(document);
    return printed ? RFX_EXIT_DONE : RFX_EXIT_SYSTEM;
}

void rfx_report_conv(json_t *document, const struct rfx_graph *graph) {
    const char *name = rfx_conv_choice_name(rfx_conv_choice_of(graph));
    (void)json_object_set_new(document, "conv", json_string(name));
}

json_t *rfx_report_shape(const struct rfx_shape *shape) {
    json_t *array = json_array();
    for (int i = 0; i < shape->rank; ++i)
        (void)json_array_append_new(array, json_integer(shape->dims[i]));
    return array;
}

json_t *rfx_report_number(double value) {
    if (isnan(value)) return json_string("nan");
    if (isinf(value)) return json_string(value > 0 ? "inf" : "-inf");
    return json_real(value);
}

static json_t *breakdown(const struct rfx_plan_bytes *b) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "arena", (json_int_t)b->arena, "weights",
                     (json_int_t)b->weights, "scratch", (json_int_t)b->scratch, "source",
                     (json_int_t)b->source, "reserve", (json_int_t)b->reserve);
}

static double macs_ratio(const struct rfx_plan *plan) {
    return plan->macs_untiled == 0 ? 1.0 : (double)plan->macs / (double)plan->macs_untiled;
}

/* Returns the first stage of a plan whose mode has tiles along rows, or NULL. */
static const struct rfx_stage *find_grid(const struct rfx_plan *plan) {
    for (int i = 0; i < plan->n_stages; ++i)
        if ((plan->stages[i].spec.mode->knows & RFX_KNOWS_TILES_Y) != 0) return &plan->stages[i];
    return NULL;
}

void rfx_report_csv_text(const char *text) {
    putchar('"');
    for (const char *p = text; *p != '\0'; ++p) {
        if (*p == '"') putchar('"');
        putchar(*p);
    }
    putchar('"');
}

double rfx_report_ratio(uint64_t part, uint64_t untiled) {
    return untiled == 0 ? 1.0 : (double)part / (double)untiled;
}

json_t *rfx_report_summary(const struct rfx_plan_survey *survey,
                           const struct rfx_plan_summary *summary, int threads) {
    return json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f}", "kind",
                     rfx_plan_kind_name(summary->kind), "text", summary->text, "peak_bytes",
                     (json_int_t)summary->peak_bytes, "macs", (json_int_t)summary->macs,
                     "macs_ratio", rfx_report_ratio(summary->macs, survey->macs_untiled),
                     "predicted_time_ratio", rfx_report_ratio(summary->cost, survey->cost_untiled),
                     "predicted_seconds", rfx_machine_seconds(summary->cost, threads));
}

/* Returns the peak bytes of a whole-image run and sets *node to the layer of the peak. Returns 0,
 * and notes the lack, when there is no memory for the computation. */
static size_t untiled_bytes(const struct rfx_graph *graph, int *node) {
    struct rfx_liveness *live = NULL;
    struct rfx_error err = {{0}};
    if (rfx_liveness_create(graph, RFX_BASELINE_FUSED, &live, &err) != RFX_OK) {
        no_memory = true;
        return 0;
    }
    size_t maps = rfx_liveness_peak(live, 0, graph->n_nodes, live->whole_bytes, node, NULL);
    size_t bytes = maps + live->weights_bytes;
    rfx_liveness_free(live);
    return bytes;
}

void rfx_report_untiled_text(const struct rfx_graph *graph) {
    char text[RFX_HUMAN_CHARS];
    int node = 0;
    const struct rfx_graph *base = graph->base != NULL ? graph->base : graph;
    size_t bytes = untiled_bytes(base, &node);
    if (bytes != 0)
        printf("untiled    %s of maps and parameters at %s, layer by layer as executed\n",
               rfx_human_bytes(bytes, text), rfx_split_label(base, node));
}

void rfx_report_untiled(json_t *document, const struct rfx_graph *graph) {
    int node = 0;
    const struct rfx_graph *base = graph->base != NULL ? graph->base : graph;
    size_t bytes = untiled_bytes(base, &node);
    if (bytes == 0) return;
    (void)json_object_set_new(
        document, "untiled",
        json_pack("{s:I, s:s}", "maps_and_parameters_bytes", (json_int_t)bytes, "peak_layer",
                  rfx_split_label(base, node)));
}

/* Returns the average number of column strips that one thread computes in one step. */
static double items_per_thread(const struct rfx_plan *plan, const struct rfx_plan_group *group) {
    return (double)group->items / (double)rfx_max_i64(1, group->steps * plan->threads);
}

/* Returns the groups of a plan; *n is their number. The caller releases the array. Returns NULL
 * when there are no groups, or when there is no memory, which is noted. */
static struct rfx_plan_group *list_groups(const struct rfx_plan *plan, int *n) {
    struct rfx_error err;
    *n = rfx_plan_count_groups(plan).groups;
    struct rfx_plan_group *groups =
        *n == 0 ? NULL : rfx_memory_calloc(plan->mem, (size_t)*n, sizeof *groups);
    if (groups != NULL && rfx_plan_list_groups(plan, groups, &err) == RFX_OK) return groups;
    rfx_memory_release(plan->mem, groups);
    no_memory = no_memory || *n > 0;
    *n = 0;
    return NULL;
}

static json_t *groups_json(const struct rfx_plan *plan) {
    const struct rfx_node *nodes = plan->graph->nodes;
    json_t *list = json_array();
    int n;
    struct rfx_plan_group *groups = list_groups(plan, &n);
    for (int i = 0; i < n; ++i) {
        const struct rfx_group_attr *g = groups[i].attr;
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:f}", "first",
                      nodes[g->first].name, "last", nodes[g->last].name, "layers",
                      g->last - g->first + 1, "strip_cols", (json_int_t)g->strip_cols, "strips",
                      (json_int_t)g->strips, "step_rows", (json_int_t)g->step_rows, "ring_bytes",
                      (json_int_t)groups[i].ring_bytes, "steps", (json_int_t)groups[i].steps,
                      "items_per_thread", items_per_thread(plan, &groups[i])));
    }
    rfx_memory_release(plan->mem, groups);
    return list;
}

/* The late nodes of a network: their number, and the names, shapes and types of the cut tensors. */
static json_t *late_json(const struct rfx_graph *graph) {
    json_t *cuts = json_array();
    for (int k = 0; k < graph->late->n_cuts; ++k) {
        const struct rfx_shape shape = rfx_output_shape(graph, k);
        (void)json_array_append_new(
            cuts, json_pack("{s:s, s:o, s:s}", "name", graph->outputs[k].name, "shape",
                            rfx_report_shape(&shape), "type",
                            rfx_type_name(graph->outputs[k].stored.type)));
    }
    return json_pack("{s:I, s:o, s:I}", "nodes", (json_int_t)graph->late->n_nodes, "cut_tensors",
                     cuts, "cut_bytes", (json_int_t)rfx_late_cut_bytes(graph));
}

void rfx_report_late_text(const struct rfx_graph *graph) {
    char bytes[RFX_HUMAN_CHARS];
    if (graph->late == NULL) return;
    bool one = graph->late->n_nodes == 1;
    printf(
        "late       %zu node%s whose sizes depend on data run%s after the plan, on %d tensor%s of "
        "%s\n",
        graph->late->n_nodes, one ? "" : "s", one ? "s" : "", graph->late->n_cuts,
        graph->late->n_cuts == 1 ? "" : "s", rfx_human_bytes(rfx_late_cut_bytes(graph), bytes));
}

json_t *rfx_report_plan(const struct rfx_plan *plan) {
    const struct rfx_node *nodes = plan->graph->nodes;
    json_t *stages = json_array();
    for (int i = 0; i < plan->n_stages; ++i) {
        const struct rfx_stage *stage = &plan->stages[i];
        json_t *targets = json_array(), *spilled = json_array(), *forgotten = json_array();
        for (int n = stage->first; n <= stage->last; ++n) {
            if (stage->places[n] > RFX_PLACE_LOCAL)
                (void)json_array_append_new(targets, json_string(nodes[n].name));
            if (stage->places[n] == RFX_PLACE_SPILLED)
                (void)json_array_append_new(spilled, json_string(nodes[n].name));
        }
        for (int f = 0; f < stage->spec.n_forgotten; ++f)
            (void)json_array_append_new(forgotten, json_string(nodes[stage->forgotten[f]].name));
        (void)json_array_append_new(
            stages, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:[I, I], s:I, s:b, s:b}", "mode",
                              stage->spec.mode->name, "first", nodes[stage->first].name, "last",
                              nodes[stage->last].name, "targets", targets, "spilled", spilled,
                              "forgets", forgotten, "tiles", (json_int_t)stage->spec.tiles_y,
                              (json_int_t)stage->spec.tiles_x, "band_rows",
                              (json_int_t)stage->spec.band_rows, "tight", stage->spec.staging,
                              "row_by_row", stage->spec.row_by_row));
    }
    const struct rfx_stage *grid = find_grid(plan);
    char text[RFX_PLAN_TEXT];
    rfx_plan_describe(plan, text, sizeof text);
    json_t *late = plan->graph->late != NULL ? late_json(plan->graph) : NULL;
    return json_pack(
        "{s:o*, s:s, s:o, s:o, s:s?, s:[I, I], s:i, s:I, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f, "
        "s:{s:I, s:I, s:I}}",
        "late", late, "text", text, "stages", stages, "groups", groups_json(plan), "split",
        plan->split >= 0 ? rfx_split_label(plan->graph, plan->split) : NULL, "tiles",
        (json_int_t)(grid != NULL ? grid->spec.tiles_y : 1),
        (json_int_t)(grid != NULL ? grid->spec.tiles_x : 1), "threads", plan->threads, "peak_bytes",
        (json_int_t)plan->peak_bytes, "breakdown", breakdown(&plan->bytes),
        "arena_lower_bound_bytes", (json_int_t)plan->lower_bound_bytes, "window_rows",
        (json_int_t)plan->window_rows, "macs", (json_int_t)plan->macs, "macs_untiled",
        (json_int_t)plan->macs_untiled, "macs_ratio", macs_ratio(plan), "predicted_time_ratio",
        rfx_report_ratio(plan->cost, plan->cost_untiled), "predicted_seconds",
        rfx_machine_seconds(plan->cost, plan->threads), "spilled", "written_bytes",
        (json_int_t)plan->spill.written, "read_bytes", (json_int_t)plan->spill.read, "most_bytes",
        (json_int_t)plan->spill.most);
}

json_t *rfx_report_measured(const struct rfx_run_report *report) {
    return json_pack(
        "{s:I, s:I, s:f, s:I, s:I, s:I}", "peak_rss_bytes", (json_int_t)rfx_peak_rss_bytes(),
        "arena_high_water_bytes", (json_int_t)report->arena_high_water_bytes, "seconds",
        report->seconds, "macs", (json_int_t)report->macs, "spill_written_bytes",
        (json_int_t)report->spill_written, "spill_read_bytes", (json_int_t)report->spill_read);
}

void rfx_report_plan_text(const struct rfx_plan *plan) {
    char text[RFX_PLAN_TEXT], a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS], c[RFX_HUMAN_CHARS],
        d[RFX_HUMAN_CHARS], e[RFX_HUMAN_CHARS], f[RFX_HUMAN_CHARS];
    rfx_plan_describe(plan, text, sizeof text);
    printf("plan       %s, %d thread%s\n", text, plan->threads, plan->threads == 1 ? "" : "s");
    struct rfx_plan_group_counts counts = rfx_plan_count_groups(plan);
    if (counts.groups > 0)
        printf(
            "groups     %d of %d layers in %d group%s, up to %lld column%s and %lld row%s at a "
            "time\n",
            counts.grouped, counts.layers, counts.groups, counts.groups == 1 ? "" : "s",
            (long long)counts.most_cols, counts.most_cols == 1 ? "" : "s",
            (long long)counts.most_rows, counts.most_rows == 1 ? "" : "s");
    printf("predicted  %s peak: activations %s, weights %s, scratch %s, image %s, reserve %s\n",
           rfx_human_bytes(plan->peak_bytes, a), rfx_human_bytes(plan->bytes.arena, b),
           rfx_human_bytes(plan->bytes.weights, c), rfx_human_bytes(plan->bytes.scratch, d),
           rfx_human_bytes(plan->bytes.source, e), rfx_human_bytes(plan->bytes.reserve, f));
    printf("MACs       %s, %.3f x untiled (%s)\n", rfx_human_count(plan->macs, a), macs_ratio(plan),
           rfx_human_count(plan->macs_untiled, b));
    if (plan->spill.written > 0)
        printf("spilled    %s written to files, %s read, %s at a time\n",
               rfx_human_bytes(plan->spill.written, a), rfx_human_bytes(plan->spill.read, b),
               rfx_human_bytes(plan->spill.most, c));
    printf("time       x%.2f of untiled, predicted: %.3g s\n",
           rfx_report_ratio(plan->cost, plan->cost_untiled),
           rfx_machine_seconds(plan->cost, plan->threads));
    rfx_report_late_text(plan->graph);
    int keepers = rfx_factors_count(plan);
    printf("conv       %s", rfx_conv_choice_name(rfx_conv_choice_of(plan->graph)));
    if (keepers > 0)
        printf(", the factors of %d large layer%s kept in memory", keepers,
               keepers == 1 ? "" : "s");
    printf("\n");
}

void rfx_report_groups_text(const struct rfx_plan *plan) {
    static const struct rfx_table_column columns[] = {
        {"groups: first", RFX_TABLE_NAMES}, {"last", RFX_TABLE_NAMES},
        {"layers", RFX_TABLE_NUMBER},       {"cols", RFX_TABLE_NUMBER},
        {"strips", RFX_TABLE_NUMBER},       {"rows", RFX_TABLE_NUMBER},
        {"rings", RFX_TABLE_NUMBER},        {"items/thread", RFX_TABLE_NUMBER},
    };
    const struct rfx_graph *graph = plan->graph;
    char rings[RFX_HUMAN_CHARS];
    int n;
    struct rfx_plan_group *groups = list_groups(plan, &n);
    if (n == 0) return;
    struct rfx_table *table = rfx_table_create(plan->mem, columns, 8);
    for (int i = 0; i < n; ++i) {
        const struct rfx_group_attr *g = groups[i].attr;
        rfx_table_cell(table, "%s", rfx_split_label(graph, g->first));
        rfx_table_cell(table, "%s", rfx_split_label(graph, g->last));
        rfx_table_cell(table, "%d", g->last - g->first + 1);
        rfx_table_cell(table, "%lld", (long long)g->strip_cols);
        rfx_table_cell(table, "%lld", (long long)g->strips);
        rfx_table_cell(table, "%lld", (long long)g->step_rows);
        rfx_table_cell(table, "%s", rfx_human_bytes(groups[i].ring_bytes, rings));
        rfx_table_cell(table, "%.1f", items_per_thread(plan, &groups[i]));
    }
    putchar('\n');
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
    rfx_memory_release(plan->mem, groups);
}

/* Returns the text about the options, apart from --memory, that are needed to reach `least`. */
static const char *options_of_least(const struct rfx_plan *smallest,
                                    const struct rfx_cli_least *least) {
    bool fewer = least->threads < smallest->threads;
    if (fewer && least->other_plan) return " --threads 1, and no option that says how to run";
    if (fewer) return " --threads 1";
    return least->other_plan ? ", and no option that says how to run" : "";
}

void rfx_report_smallest(const char *command, const char *model, size_t budget_bytes,
                         const struct rfx_plan *smallest, const struct rfx_cli_least *least,
                         bool json) {
    char text[RFX_PLAN_TEXT], mib[RFX_HUMAN_CHARS];
    size_t fits = smallest->peak_bytes;
    bool is_least = least->bytes >= fits;
    rfx_plan_describe(smallest, text, sizeof text);
    /* The library's message, which was printed before, contains the breakdown of the bytes. */
    rfx_cli_message("the smallest %s is for %s: run again with --memory %zu",
                    is_least ? "possible budget" : "budget with these options", text, fits);
    if (!is_least)
        rfx_cli_message("the smallest possible budget is %s, for %s: --memory %zu%s",
                        rfx_human_bytes(least->bytes, mib), least->text, least->bytes,
                        options_of_least(smallest, least));
    if (!json) return;
    json_t *document = rfx_report_document(command, model);
    rfx_report_conv(document, smallest->graph);
    (void)json_object_update_new(
        document,
        json_pack("{s:s, s:I, s:I, s:o, s:o, s:{s:I, s:i, s:s, s:b}}", "error", "budget impossible",
                  "budget_bytes", (json_int_t)budget_bytes, "smallest_bytes", (json_int_t)fits,
                  "breakdown", breakdown(&smallest->bytes), "plan", rfx_report_plan(smallest),
                  "least", "bytes", (json_int_t)(is_least ? fits : least->bytes), "threads",
                  is_least ? smallest->threads : least->threads, "plan",
                  is_least ? text : least->text, "other_plan", least->other_plan));
    (void)rfx_report_print(document);
}

void rfx_report_no_budget(const struct rfx_plan *plan, const struct rfx_cli_least *least) {
    char needs[RFX_HUMAN_CHARS], fits[RFX_HUMAN_CHARS];
    rfx_cli_message(
        "without --memory this needs %s: give a budget, of which the smallest possible "
        "is %s, for %s: --memory %zu%s",
        rfx_human_bytes(plan->peak_bytes, needs), rfx_human_bytes(least->bytes, fits), least->text,
        least->bytes, options_of_least(plan, least));
}

/* Returns the number of bytes in the line "KEY: n kB" of a /proc file, or 0 when there is no such
 * line. */
static size_t kernel_bytes(const char *path, const char *key) {
    FILE *file = fopen(path, "r");
    char line[256];
    unsigned long long kib = 0;
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoull(line + strlen(key), NULL, 10);
    (void)fclose(file);
    return (size_t)kib * 1024;
}

size_t rfx_peak_rss_bytes(void) {
    return kernel_bytes("/proc/self/status", "VmHWM:");
}

size_t rfx_resident_bytes(void) {
    return kernel_bytes("/proc/self/status", "VmRSS:");
}

size_t rfx_available_bytes(void) {
    return kernel_bytes("/proc/meminfo", "MemAvailable:");
}
