/* rfexec advise: what holds a network back when it is tiled, and what to do for each budget. */
#include <stdio.h>

#include "layers/core/printable.h"
#include "tiler/plan/splits.h"
#include "tools/cli/job.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/curves.h"
#include "tools/commands/run_request.h"
#include "tools/study/advise.h"

enum { MAX_BUDGETS = 16 }; /* two for each doubling: up to about 200 times the smallest budget */
#define MIB ((size_t)1 << 20)

struct budget {
    size_t bytes;
    const struct rfx_curve_point *cut; /* best single cut whose network memory fits `bytes` */
    struct rfx_plan *plan; /* plan of a run whose whole process fits `bytes`; NULL: none */
};

struct advise {
    struct rfx_cli_curves curves;
    struct rfx_cli_job job; /* the graph as it is executed */
    struct rfx_advice *advice;
    size_t untiled_bytes; /* peak memory of a process that runs the network untiled */
    int n_budgets;
    struct budget budgets[MAX_BUDGETS];
};

/* Sets *out to the plan for a budget of `bytes`; 0: the plan with the smallest memory. *out stays
 * NULL when no plan fits. */
static enum rfx_status plan_for(struct advise *a, size_t bytes, struct rfx_plan **out,
                                struct rfx_error *err) {
    struct rfx_plan *smallest = NULL;
    a->job.request.memory_bytes = bytes != 0 ? bytes : 1;
    enum rfx_status status =
        rfx_plan_create_or_smallest(a->job.graph, &a->job.request, out, &smallest, err);
    if (status != RFX_STATUS_BUDGET_IMPOSSIBLE) return status;
    if (bytes == 0)
        *out = smallest;
    else
        rfx_plan_free(smallest);
    return RFX_OK;
}

/* Lists budgets: powers of two and the sizes halfway between them. The first is the smallest memory
 * of any cut, the last the memory of the untiled run. */
static enum rfx_status list_budgets(struct advise *a, struct rfx_error *err) {
    const struct rfx_curve *curve = a->curves.curves[0];
    size_t least = curve->pareto[curve->n_pareto - 1].peak_bytes;
    struct rfx_plan *smallest = NULL;
    enum rfx_status status = plan_for(a, 0, &smallest, err);
    if (status != RFX_OK) return status;
    if (smallest->peak_bytes < least) least = smallest->peak_bytes;
    rfx_plan_free(smallest);
    size_t bytes = MIB;
    while (bytes < least) bytes *= 2;
    if (bytes / 4 * 3 >= least) bytes = bytes / 4 * 3;
    bool untiled = false;
    while (!untiled && a->n_budgets < MAX_BUDGETS) {
        struct budget *budget = &a->budgets[a->n_budgets++];
        budget->bytes = bytes;
        budget->cut = rfx_advice_within(curve, bytes);
        status = plan_for(a, bytes, &budget->plan, err);
        if (status != RFX_OK) return status;
        untiled = budget->cut != NULL && budget->cut->split < 0 && budget->plan != NULL;
        bytes = bytes % 3 == 0 ? bytes / 3 * 4 : bytes / 2 * 3; /* 1, 1.5, 2, 3, 4, 6, ... */
    }
    return RFX_OK;
}

static const char *layer(const struct advise *a, int node) {
    return node < 0 ? "the image" : rfx_split_label(a->curves.graphs[0], node);
}

static double plan_ratio(const struct rfx_plan *plan) {
    return plan->macs_untiled == 0 ? 1.0 : (double)plan->macs / (double)plan->macs_untiled;
}

enum { N_GUIDELINES = 3, LINE_CHARS = 256 };

struct guideline {
    const char *name;
    bool kept;
    char why[LINE_CHARS];
};

static void judge(const struct advise *a, struct guideline *g) {
    const struct rfx_advice *v = a->advice;
    const struct rfx_curve *curve = a->curves.curves[0];
    char x[RFX_HUMAN_CHARS], y[RFX_HUMAN_CHARS];
    g[0].name = "the peak lies in the low layers";
    g[0].kept = !v->late_peak;
    if (v->crossing < 0)
        (void)snprintf(g[0].why, LINE_CHARS, "no cut lies past %s, %.1f %% of the MACs deep",
                       layer(a, curve->untiled.peak_node), 100.0 * v->macs_share);
    else
        (void)snprintf(g[0].why, LINE_CHARS,
                       "%s is %.1f %% of the MACs deep; the first cut past it, %s, costs %.3f x",
                       layer(a, curve->untiled.peak_node), 100.0 * v->macs_share,
                       layer(a, curve->points[v->crossing].split),
                       rfx_curve_macs_ratio(curve, &curve->points[v->crossing]));
    g[1].name = "activations outweigh parameters";
    g[1].kept = !v->weights_dominate;
    (void)snprintf(g[1].why, LINE_CHARS, "activations %s at the peak, parameters %s",
                   rfx_human_bytes(v->activation_bytes, x),
                   rfx_human_bytes(curve->weights_bytes, y));
    g[2].name = "few convolutions between two cuts";
    g[2].kept = !v->long_blocks;
    (void)snprintf(g[2].why, LINE_CHARS, "%d in a row at most, from %s to %s", v->block_convs,
                   layer(a, v->block_first), layer(a, v->block_last));
    for (int i = 0; i < 3; ++i) rfx_trim_cut_character(g[i].why); /* a long name may be cut */
}

static json_t *budgets_json(const struct advise *a) {
    json_t *array = json_array();
    for (int i = 0; i < a->n_budgets; ++i) {
        const struct budget *b = &a->budgets[i];
        json_t *cut =
            b->cut != NULL ? rfx_cli_point_json(a->curves.curves[0], b->cut) : json_null();
        json_t *plan = b->plan != NULL ? rfx_report_plan(b->plan) : json_null();
        (void)json_array_append_new(
            array, json_pack("{s:I, s:o, s:o}", "budget_bytes", (json_int_t)b->bytes, "cut", cut,
                             "plan", plan));
    }
    return array;
}

static json_t *points_json(const struct advise *a) {
    const struct rfx_curve *curve = a->curves.curves[0];
    json_t *array = json_array();
    for (int i = 0; i < curve->n_points; ++i) {
        json_t *item = rfx_cli_point_json(curve, &curve->points[i]);
        enum rfx_case kind = a->advice->cases[i];
        (void)json_object_update_new(
            item, json_pack("{s:i, s:s}", "case", (int)kind, "case_text", rfx_case_text(kind)));
        (void)json_array_append_new(array, item);
    }
    return array;
}

static int print_json(const struct advise *a, const struct guideline *g) {
    const struct rfx_curve *curve = a->curves.curves[0];
    const struct rfx_advice *v = a->advice;
    json_t *document = rfx_report_document("advise", a->curves.models[0]);
    json_t *guidelines = json_array();
    for (int i = 0; i < N_GUIDELINES; ++i)
        (void)json_array_append_new(
            guidelines, json_pack("{s:i, s:s, s:b, s:s}", "number", i + 1, "name", g[i].name,
                                  "kept", g[i].kept, "why", g[i].why));
    json_t *peak = json_pack(
        "{s:s, s:I, s:I, s:I, s:f}", "layer", layer(a, curve->untiled.peak_node), "peak_bytes",
        (json_int_t)curve->untiled.peak_bytes, "activation_bytes", (json_int_t)v->activation_bytes,
        "weights_bytes", (json_int_t)curve->weights_bytes, "macs_share", v->macs_share);
    json_t *barrier = json_null();
    if (v->barrier >= 0)
        barrier = json_pack("{s:s, s:i}", "layer", layer(a, v->barrier), "convolutions_behind",
                            v->barrier_convs);
    json_t *best =
        curve->best < 0 ? json_null() : rfx_cli_point_json(curve, &curve->points[curve->best]);
    (void)json_object_update_new(
        document, json_pack("{s:o, s:s, s:[I,I], s:o, s:o, s:o, s:o, s:o, s:o}", "input",
                            rfx_report_shape(&curve->graph->nodes[curve->graph->input].out.shape),
                            "baseline", rfx_baseline_name(curve->baseline), "tiles",
                            (json_int_t)a->curves.tiles_y, (json_int_t)a->curves.tiles_x, "peak",
                            peak, "points", points_json(a), "guidelines", guidelines, "barrier",
                            barrier, "best", best, "budgets", budgets_json(a)));
    rfx_report_untiled(document, a->job.graph);
    (void)json_object_set_new(document, "run_untiled_bytes",
                              json_integer((json_int_t)a->untiled_bytes));
    return rfx_report_print(document);
}

/* Prints the cases of the points. Consecutive points of the same case share one row. */
static void print_cases(const struct advise *a) {
    static const struct rfx_table_column columns[] = {
        {"case", RFX_TABLE_MARK},     {"memory /", RFX_TABLE_NUMBER}, {"MACs x", RFX_TABLE_NUMBER},
        {"meaning", RFX_TABLE_WORDS}, {"from", RFX_TABLE_NAMES},      {"to", RFX_TABLE_NAMES}};
    const struct rfx_curve *curve = a->curves.curves[0];
    struct rfx_table *table = rfx_table_create(curve->mem, columns, 6);
    printf("\ncuts with %lldx%lld tiles\n", (long long)a->curves.tiles_y,
           (long long)a->curves.tiles_x);
    for (int i = 0, end; i < curve->n_points; i = end) {
        enum rfx_case kind = a->advice->cases[i];
        for (end = i + 1; end < curve->n_points && a->advice->cases[end] == kind;) ++end;
        const struct rfx_curve_point *first = &curve->points[i], *last = &curve->points[end - 1];
        rfx_table_cell(table, "%d", (int)kind);
        rfx_table_cell(table, "%.2f", rfx_curve_memory_ratio(curve, last));
        rfx_table_cell(table, "%.3f", rfx_curve_macs_ratio(curve, last));
        rfx_table_cell(table, "%s", rfx_case_text(kind));
        rfx_table_cell(table, "%s", layer(a, first->split));
        rfx_table_cell(table, "%s", end - i > 1 ? layer(a, last->split) : "");
    }
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
    if (curve->best < 0) return;
    const struct rfx_curve_point *best = &curve->points[curve->best];
    printf("best       %s: memory / %.2f at %.3f x MACs; then %s decides\n", layer(a, best->split),
           rfx_curve_memory_ratio(curve, best), rfx_curve_macs_ratio(curve, best),
           layer(a, best->peak_node));
}

static void print_budgets(const struct advise *a) {
    static const struct rfx_table_column columns[] = {
        {"budget", RFX_TABLE_NUMBER},      {"best single cut", RFX_TABLE_WORDS},
        {"tiles", RFX_TABLE_NUMBER},       {"MACs x", RFX_TABLE_NUMBER},
        {"run --memory", RFX_TABLE_WORDS}, {"MACs x", RFX_TABLE_NUMBER}};
    const struct rfx_curve *curve = a->curves.curves[0];
    struct rfx_table *table = rfx_table_create(curve->mem, columns, 6);
    for (int i = 0; i < a->n_budgets; ++i) {
        const struct budget *b = &a->budgets[i];
        char size[RFX_HUMAN_CHARS], tiles[48] = "-", ratio[24] = "-",
                                    plan[RFX_PLAN_TEXT] = "does not fit";
        if (b->cut != NULL) {
            (void)snprintf(ratio, sizeof ratio, "%.3f", rfx_curve_macs_ratio(curve, b->cut));
            if (b->cut->split >= 0)
                (void)snprintf(tiles, sizeof tiles, "%lldx%lld", (long long)b->cut->tiles_y,
                               (long long)b->cut->tiles_x);
        }
        if (b->plan != NULL) rfx_plan_describe(b->plan, plan, sizeof plan);
        rfx_table_cell(table, "%s", rfx_human_bytes(b->bytes, size));
        rfx_table_cell(table, "%s", b->cut != NULL ? rfx_cli_point_label(curve, b->cut) : "-");
        rfx_table_cell(table, "%s", tiles);
        rfx_table_cell(table, "%s", ratio);
        rfx_table_cell(table, "%s", plan);
        if (b->plan != NULL)
            rfx_table_cell(table, "%.3f", plan_ratio(b->plan));
        else
            rfx_table_cell(table, "-");
    }
    putchar('\n');
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
}

static void print_text(const struct advise *a, const struct guideline *g) {
    const struct rfx_curve *curve = a->curves.curves[0];
    char x[RFX_HUMAN_CHARS], y[RFX_HUMAN_CHARS], z[RFX_HUMAN_CHARS];
    printf("%s, baseline %s\n", a->curves.models[0], rfx_baseline_name(curve->baseline));
    printf("peak       %s at %s by this baseline: activations %s, parameters %s\n",
           rfx_human_bytes(curve->untiled.peak_bytes, x), layer(a, curve->untiled.peak_node),
           rfx_human_bytes(a->advice->activation_bytes, y),
           rfx_human_bytes(curve->weights_bytes, z));
    rfx_report_untiled_text(a->job.graph);
    printf("run        %s peak of the process without --memory, reading and writing .npy\n",
           rfx_human_bytes(a->untiled_bytes, x));
    for (int i = 0; i < N_GUIDELINES; ++i)
        printf("guideline  %d %s: %s (%s)\n", i + 1, g[i].kept ? "kept" : "BROKEN", g[i].name,
               g[i].why);
    if (a->advice->barrier >= 0)
        printf("barrier    %s needs its whole map: %d convolutions behind it cannot be tiled\n",
               layer(a, a->advice->barrier), a->advice->barrier_convs);
    if (curve->n_points > 0)
        print_cases(a);
    else
        puts("\nthis network cannot be cut: no single tensor that is local in space is alive");
    print_budgets(a);
}

struct advise_options {
    struct rfx_cli_curves_asked asked;
    bool json;
};

static int run(void *given) {
    static struct rfx_cli_run_options of_run; /* options of a run of the same model */
    const struct advise_options *options = given;
    struct advise a = {.n_budgets = 0};
    struct guideline guidelines[N_GUIDELINES];
    struct rfx_error err = {{0}};
    int code = rfx_cli_curves_open(&a.curves, &options->asked, true, false);
    of_run.words = options->asked.words;
    of_run.model = options->asked.model;
    of_run.plan.threads.n = rfx_cli_usable_processors();
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_open(&a.job, &of_run, NULL);
    if (code != RFX_EXIT_DONE) goto done;
    code = rfx_run_request_count(&a.job, &of_run);
    if (code == RFX_EXIT_DONE) code = rfx_run_request_untiled(&a.job, &a.untiled_bytes);
    if (code != RFX_EXIT_DONE) goto done;
    enum rfx_status status = rfx_advice_create(a.curves.curves[0], &a.advice, &err);
    if (status == RFX_OK) status = list_budgets(&a, &err);
    if (status != RFX_OK) {
        code = rfx_cli_fail(status, &err);
        goto done;
    }
    judge(&a, guidelines);
    if (options->json)
        code = print_json(&a, guidelines);
    else
        print_text(&a, guidelines);
done:
    for (int i = 0; i < a.n_budgets; ++i) rfx_plan_free(a.budgets[i].plan);
    rfx_advice_free(a.advice);
    rfx_cli_job_free(&a.job);
    rfx_cli_curves_free(&a.curves);
    return code;
}

static struct advise_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(curves, advise_options, asked),
    RFX_CLI_USE(size, advise_options, asked.model),
    RFX_CLI_USE(no_fuse, advise_options, asked.model),
    RFX_CLI_USE(int8, advise_options, asked.model),
    RFX_CLI_USE(seed, advise_options, asked.model),
    RFX_CLI_USE(json, advise_options, json),
};

const struct rfx_cli_command rfx_cmd_advise = {
    .name = "advise",
    .args = "MODEL [--size HxW] [--tiles N|RxC] [--baseline NAME] [--json]",
    .summary = "show which layer limits tiling, and the best cut and tiles for each budget",
    .details =
        "Runs nothing. The cases are those of section 3.3 of paper 003: 1 before the peak, 2 the\n"
        "ratio does not change, 3 the ratio rises, 4 the ratio falls. Budgets of the table count\n"
        "the weights and activations of the network; the column 'run --memory' shows the plan of\n"
        "that command with as many bytes for the whole process.\n",
    .examples =
        "rfexec advise mobilenet_v2 --size 1024x1024\n"
        "rfexec advise net.onnx --size 4096x4096 --json\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
