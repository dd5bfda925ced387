/* rfexec explain: describes a plan in sentences and gives the reason for each choice. Prints one
 * sentence a line; on a terminal, long lines break between words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/byte_text.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/splits.h"
#include "tiler/search/plan_counts.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/run_request.h"
#include "tools/study/machine_speed.h"

enum { SENTENCE = 2048, MAX_STAGES_TOLD = 4 };

static void tell(const char *format, ...) RFX_PRINTF(1, 2);

static json_t *sentences; /* of --json; NULL: they are printed */

static void tell(const char *format, ...) {
    char text[SENTENCE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (sentences != NULL)
        (void)json_array_append_new(sentences, json_string(text));
    else
        rfx_table_print_wrapped(stdout, text, 2, rfx_table_terminal_width());
}

/* Returns the number of layers that a stage computes. Each layer of a group counts. */
static int computed(const struct rfx_plan *plan, int stage) {
    int n = 0;
    for (int i = 0; i < plan->graph->n_nodes; ++i) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (!rfx_place_is_computed(plan->stages[stage].places[i]) || rfx_node_is_input(node))
            continue;
        n += node->op == RFX_OP_GROUP ? node->attr.group.last - node->attr.group.first + 1 : 1;
    }
    return n;
}

static const char *last_layer(const struct rfx_plan *plan, int stage) {
    return rfx_split_label(plan->graph, plan->stages[stage].last);
}

/* Describes stage s. told: modes whose reason has been printed for an earlier stage, as bits of
 * enum rfx_mode_knows. */
static void tell_stage(const struct rfx_plan *plan, int s, unsigned *told) {
    const struct rfx_stage_spec *spec = &plan->stages[s].spec;
    char where[160], cut[96] = "";
    int n = computed(plan, s);
    unsigned way = spec->mode->knows & (RFX_KNOWS_BANDS | RFX_KNOWS_TILES_Y);
    bool again = (*told & way) != 0;
    *told |= way;
    (void)snprintf(where, sizeof where, "Stage %d of %d: %d layer%s up to '%.80s'", s + 1,
                   plan->n_stages, n, n == 1 ? "" : "s", last_layer(plan, s));
    if ((way & RFX_KNOWS_BANDS) != 0) {
        if (spec->tiles_x > 1)
            (void)snprintf(cut, sizeof cut, " in %lld column strips, one after the other,",
                           (long long)spec->tiles_x);
        tell("%s: the image's rows stream through%s %lld at a time%s.", where, cut,
             (long long)spec->band_rows,
             again ? ""
                   : "; a row is forgotten when its slowest reader is done, so memory grows with "
                     "the width, not the height");
    } else if ((way & RFX_KNOWS_TILES_Y) != 0) {
        tell("%s: in %lldx%lld tiles, one after the other%s.", where, (long long)spec->tiles_y,
             (long long)spec->tiles_x,
             again ? "" : ", each with the halo that its receptive field asks for");
    } else {
        tell("%s: whole maps, layer by layer%s.", where,
             spec->row_by_row ? ", row by row over dead rows of their inputs" : "");
    }
}

/* Returns whether any stage reads the stored result of a node. */
static bool is_read_later(const struct rfx_plan *plan, int node) {
    for (int s = 0; s < plan->n_stages; ++s)
        if (plan->stages[s].places[node] == RFX_PLACE_READ) return true;
    return false;
}

static bool streams_slide(const struct rfx_plan *plan) {
    for (int s = 0; s < plan->n_stages; ++s)
        if (plan->stages[s].spec.row_by_row && plan->stages[s].spec.mode->slide != NULL)
            return true;
    return false;
}

/* Returns the number of stored feature maps that a later stage computes again. */
static int count_forgotten(const struct rfx_plan *plan) {
    int n = 0;
    for (int s = 0; s < plan->n_stages; ++s)
        for (int f = 0; f < plan->stages[s].spec.n_forgotten; ++f) {
            bool again = false;
            for (int later = s + 1; later < plan->n_stages; ++later)
                again |=
                    rfx_place_is_local(plan->stages[later].places[plan->stages[s].forgotten[f]]);
            n += again;
        }
    return n;
}

static void tell_kept(const struct rfx_plan *plan) {
    const struct rfx_graph *graph = plan->graph;
    size_t sum = 0;
    int n = 0, largest = -1;
    char size[RFX_HUMAN_CHARS], one[RFX_HUMAN_CHARS], shape[96];
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (rfx_node_is_constant(&graph->nodes[i]) || rfx_node_is_input(&graph->nodes[i]) ||
            !is_read_later(plan, i))
            continue;
        size_t bytes = rfx_node_out_bytes(&graph->nodes[i]);
        sum += bytes;
        if (n++ == 0 || bytes > rfx_node_out_bytes(&graph->nodes[largest])) largest = i;
    }
    if (plan->n_stages == 1) return;
    if (n == 0) {
        tell("Nothing is kept from one stage to the next.");
        return;
    }
    const struct rfx_tensor *out = &graph->nodes[largest].out;
    if (n == 1)
        tell("Kept whole for a later stage: '%s' (%s, %s).", rfx_split_label(graph, largest),
             rfx_human_shape(&out->shape, shape), rfx_human_bytes(sum, size));
    else
        tell(
            "Kept whole for later stages: %d tensors, %s if all were there at the same time; the "
            "largest is '%s' (%s, %s).",
            n, rfx_human_bytes(sum, size), rfx_split_label(graph, largest),
            rfx_human_shape(&out->shape, shape), rfx_human_bytes(rfx_tensor_bytes(out), one));
    int forgotten = count_forgotten(plan);
    if (forgotten > 0)
        tell("%d of them for some of the stages that need them: later ones make them again.",
             forgotten);
    if (streams_slide(plan))
        tell("Stages write what they keep over dead rows of what they read for the last time.");
}

/* Returns the number of layers that more than one stage computes. Sets *first to the first of them.
 */
static int computed_again(const struct rfx_plan *plan, int *first) {
    int n = 0;
    *first = -1;
    for (int i = 0; i < plan->graph->n_nodes; ++i) {
        int times = 0;
        if (rfx_node_is_input(&plan->graph->nodes[i])) continue;
        for (int s = 0; s < plan->n_stages; ++s)
            times += rfx_place_is_computed(plan->stages[s].places[i]);
        if (times < 2) continue;
        if (n++ == 0) *first = i;
    }
    return n;
}

static void tell_twice(const struct rfx_plan *plan) {
    struct rfx_plan_group_counts groups = rfx_plan_count_groups(plan);
    char why[512] = "", more[256];
    int first, again = computed_again(plan, &first), parts = 0;
    for (int s = 0; s < plan->n_stages; ++s)
        parts += plan->stages[s].spec.tiles_y * plan->stages[s].spec.tiles_x > 1;
    if (plan->macs <= plan->macs_untiled) {
        tell("Nothing is computed twice: %.3f times the MACs of the whole-image run.",
             rfx_report_ratio(plan->macs, plan->macs_untiled));
        return;
    }
    if (parts > 0) (void)snprintf(why, sizeof why, "where tiles or strips overlap");
    if (groups.groups > 0) {
        (void)snprintf(more, sizeof more, "%sat the edges of column strips inside groups",
                       why[0] != '\0' ? ", " : "");
        (void)strncat(why, more, sizeof why - strlen(why) - 1);
    }
    if (again > 0) {
        (void)snprintf(more, sizeof more,
                       "%sin %d layer%s from '%.80s' on, which a later stage "
                       "makes again instead of keeping their maps",
                       why[0] != '\0' ? ", " : "", again, again == 1 ? "" : "s",
                       rfx_split_label(plan->graph, first));
        (void)strncat(why, more, sizeof why - strlen(why) - 1);
    }
    tell("Computed more than once: %.1f %% more MACs than the whole-image run's%s%s.",
         100.0 * (rfx_report_ratio(plan->macs, plan->macs_untiled) - 1.0),
         why[0] != '\0' ? ", " : "", why);
}

static void tell_groups(const struct rfx_plan *plan) {
    struct rfx_plan_group_counts counts = rfx_plan_count_groups(plan);
    if (counts.groups == 0) return;
    tell(
        "%d of %d layers run depth first in %d group%s, at most %lld columns and %lld rows at a "
        "time, so that the maps between them stay in a core's cache and are never stored.",
        counts.grouped, counts.layers, counts.groups, counts.groups == 1 ? "" : "s",
        (long long)counts.most_cols, (long long)counts.most_rows);
}

static void tell_bytes(const struct rfx_plan *plan, bool writes) {
    char peak[RFX_HUMAN_CHARS], a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS], c[RFX_HUMAN_CHARS],
        d[RFX_HUMAN_CHARS], e[RFX_HUMAN_CHARS];
    tell(
        "Memory: at most %s for the whole process: activations %s, weights %s%s, scratch %s, "
        "reading the image%s %s, and %s for code, libraries and stacks.",
        rfx_human_bytes(plan->peak_bytes, peak), rfx_human_bytes(plan->bytes.arena, a),
        rfx_human_bytes(plan->bytes.weights, b),
        rfx_plan_loads_by_stage(plan) ? " (the others are loaded when their stage begins)" : "",
        rfx_human_bytes(plan->bytes.scratch, c), writes ? " and writing files" : "",
        rfx_human_bytes(plan->bytes.source, d), rfx_human_bytes(plan->bytes.reserve, e));
}

static void tell_why(const struct rfx_cli_run_options *options, size_t untiled) {
    char whole[RFX_BYTE_TEXT], budget[RFX_BYTE_TEXT];
    rfx_byte_texts(untiled, options->plan.memory_bytes, whole, budget);
    if (rfx_cli_plan_is_asked(options))
        tell("The way of running is given by the options; the whole-image run would take %s.",
             whole);
    else if (options->plan.memory_bytes == 0)
        tell("Without --memory whole maps are made: the run takes %s.", whole);
    else if (untiled > options->plan.memory_bytes)
        tell(
            "The whole-image run would take %s, more than the budget of %s; of the plans that "
            "fit, this one is predicted to be the fastest.",
            whole, budget);
    else
        tell(
            "The whole-image run would take %s and fit the budget of %s; this plan is the one "
            "predicted to be the fastest.",
            whole, budget);
}

static void tell_time(const struct rfx_plan *plan) {
    tell("Time: %.2f times that of the whole-image run, predicted; about %.2g s on this processor.",
         rfx_report_ratio(plan->cost, plan->cost_untiled),
         rfx_machine_seconds(plan->cost, plan->threads));
}

static void tell_least(const struct rfx_plan *plan, const struct rfx_cli_least *least) {
    char bytes[RFX_HUMAN_CHARS];
    tell("Smallest possible budget over all plans: --memory %zu (%s)%s%s.", least->bytes,
         rfx_human_bytes(least->bytes, bytes), plan->threads > 1 ? " with --threads 1" : "",
         least->other_plan ? ", and no option that says how to run" : "");
}

static bool writes_files(const struct rfx_cli_run_options *options) {
    bool any = options->output.file != NULL || options->report.page != NULL ||
               options->report.overlay != NULL || options->report.viewer != NULL;
    for (int i = 0; i < options->model.kept.n; ++i) any |= options->model.kept.files[i] != NULL;
    return any;
}

static void explain(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                    size_t untiled, const struct rfx_cli_least *least) {
    const struct rfx_plan *plan = job->plan;
    char shape[96];
    tell("%s on an image of %s (batch, channels, rows, columns), with %d thread%s.",
         options->words.shown[0],
         rfx_human_shape(&job->graph->nodes[job->graph->input].out.shape, shape), plan->threads,
         plan->threads == 1 ? "" : "s");
    tell_why(options, untiled);
    unsigned told = 0;
    for (int s = 0; s < plan->n_stages && s < MAX_STAGES_TOLD; ++s) tell_stage(plan, s, &told);
    if (plan->n_stages > MAX_STAGES_TOLD)
        tell("And %d stages more; 'rfexec plan --json' has them all.",
             plan->n_stages - MAX_STAGES_TOLD);
    tell_kept(plan);
    tell_groups(plan);
    tell_twice(plan);
    tell_bytes(plan, writes_files(options));
    tell_time(plan);
    tell_least(plan, least);
    tell("The bits of the result are those of the whole-image run.");
}

static int print_json(const struct rfx_run_request *run, size_t untiled,
                      const struct rfx_cli_least *least) {
    json_t *document = rfx_report_document("explain", run->options->words.shown[0]);
    (void)json_object_update_new(
        document, json_pack("{s:o, s:o, s:I, s:I}", "sentences", sentences, "plan",
                            rfx_report_plan(run->job.plan), "run_untiled_bytes",
                            (json_int_t)untiled, "smallest_bytes", (json_int_t)least->bytes));
    return rfx_report_print(document);
}

/* Explains the plan as text or as a JSON document. */
static int explain_as(const struct rfx_run_request *run, size_t untiled,
                      const struct rfx_cli_least *least) {
    sentences = run->options->json ? json_array() : NULL;
    if (run->options->json && sentences == NULL) rfx_report_note_no_memory();
    explain(&run->job, run->options, untiled, least);
    return run->options->json ? print_json(run, untiled, least) : RFX_EXIT_DONE;
}

/* Returns a message when the options ask for something other than a single run on a whole image;
 * otherwise NULL. */
static const char *other_work(const struct rfx_cli_run_options *options) {
    if (options->list.list != NULL)
        return "--list: explain is about one picture, give INPUT instead";
    if (options->part.mask != NULL)
        return "--mask: what is left out depends on the mask; explain is about the whole output";
    if (options->part.part != NULL || options->part.part_rect != NULL)
        return "--part: explain is about the whole output; 'rfexec plan --parts N' is about parts";
    return NULL;
}

static int run(void *values) {
    struct rfx_cli_run_options *options = values;
    struct rfx_run_request run = {.images = 1};
    struct rfx_cli_least least;
    size_t untiled = 0;
    const char *other = other_work(options);
    if (other != NULL) {
        rfx_cli_message("%s", other);
        return RFX_EXIT_USAGE;
    }
    const char *spec = options->words.n_args > 1 ? options->words.args[1] : NULL;
    int code = rfx_run_request_open(&run, options, spec);
    run.job.plans_again = true;
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&run.job, options, "explain");
    if (code == RFX_EXIT_DONE) code = rfx_run_request_untiled(&run.job, &untiled);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_least(&run.job, options, &least);
    if (code == RFX_EXIT_DONE) code = explain_as(&run, untiled, &least);
    rfx_run_request_release(&run);
    return code;
}

static struct rfx_cli_run_options values;

static const struct rfx_cli_use uses[] = {RFX_CLI_USE(size, rfx_cli_run_options, model),
                                          RFX_CLI_USES_OF_RUN};

const struct rfx_cli_command rfx_cmd_explain = {
    .name = "explain",
    .args = "MODEL [INPUT] [--size HxW] [options of run] [--json]",
    .summary = "say in sentences how a network would be run, and why",
    .details =
        "Runs nothing and writes no file. Says in which stages the network would run with these\n"
        "options, what is kept between the stages, what is computed twice, what takes the memory,\n"
        "and how the time compares with the whole-image run. Takes the options of run and gives\n"
        "the same figures: the memory that -o, --report, --viewer and --overlay take counts.\n"
        "Without INPUT the figures are for a .npy image of --size.\n",
    .examples =
        "rfexec explain mobilenet_v2 --size 4096x4096 --memory 64MiB\n"
        "rfexec explain net.onnx photo.png --tiles 4x4 -o map.tif\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 2,
    .input = 2,
    .writes_nothing = true,
    .values = &values,
    .run = run,
};
