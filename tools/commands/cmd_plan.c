/* rfexec plan: shows the plan of a run without running it. With -o writes the plan to a file that
 * --plan reads. */
#include <stdio.h>
#include <string.h>

#include "rfexec/output/output_file.h"
#include "tiler/search/plan_counts.h"
#include "tiler/search/plan_survey.h"
#include "tools/cli/job.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"
#include "tools/commands/command_forms.h"
#include "tools/commands/run_request.h"

enum { MAX_GROUP_LINES = 40 }; /* rows of the groups' table in the text; --json has all groups */

static int write_plan(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options) {
    struct rfx_output_file *file = NULL;
    struct rfx_error err = {{0}};
    char *text = NULL;
    enum rfx_status status = rfx_plan_file_text(job->plan, options->words.shown[0], &text, &err);
    if (status == RFX_OK)
        status = rfx_output_file_open(job->mem, options->output.file, &file, &err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), &err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, &err);
    rfx_output_file_free(file);
    rfx_memory_release(job->mem, text);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Returns the reason why the planner did not choose the plan `rival`, or "" when it is the chosen
 * plan. */
static const char *why_lost(const struct rfx_plan *plan, const struct rfx_plan_summary *rival,
                            size_t budget, char text[96]) {
    char over[RFX_HUMAN_CHARS];
    double macs = rfx_report_ratio(rival->macs, plan->macs);
    if (budget != 0 && rival->peak_bytes > budget)
        (void)snprintf(text, 96, "%s over the budget",
                       rfx_human_bytes(rival->peak_bytes - budget, over));
    else if (rival->cost > plan->cost)
        (void)snprintf(text, 96, "x%.3f the time, x%.3f the MACs",
                       (double)rival->cost / (double)plan->cost, macs);
    else
        (void)snprintf(text, 96, "as much time, x%.3f the MACs", macs);
    return text;
}

static bool is_chosen(const struct rfx_plan *plan, const struct rfx_plan_summary *rival) {
    char text[RFX_PLAN_TEXT];
    rfx_plan_describe(plan, text, sizeof text);
    return plan->macs == rival->macs && strcmp(text, rival->text) == 0;
}

static void print_rivals(const struct rfx_cli_job *job, const struct rfx_plan_survey *survey) {
    static const struct rfx_table_column columns[] = {
        {"runners-up", RFX_TABLE_MARK}, {"peak", RFX_TABLE_NUMBER},   {"MACs x", RFX_TABLE_NUMBER},
        {"time x", RFX_TABLE_NUMBER},   {"lost by", RFX_TABLE_WORDS}, {"plan", RFX_TABLE_WORDS}};
    struct rfx_table *table = rfx_table_create(job->mem, columns, 6);
    char peak[RFX_HUMAN_CHARS], why[96];
    for (int i = 0; i < survey->n_rivals; ++i) {
        const struct rfx_plan_summary *r = &survey->rivals[i];
        if (is_chosen(job->plan, r)) continue;
        rfx_table_cell(table, "%s", rfx_plan_kind_name(r->kind));
        rfx_table_cell(table, "%s", rfx_human_bytes(r->peak_bytes, peak));
        rfx_table_cell(table, "%.3f", rfx_report_ratio(r->macs, survey->macs_untiled));
        rfx_table_cell(table, "%.2f", rfx_report_ratio(r->cost, survey->cost_untiled));
        rfx_table_cell(table, "%s", why_lost(job->plan, r, job->request.memory_bytes, why));
        rfx_table_cell(table, "%s", r->text);
    }
    putchar('\n');
    rfx_table_print(table, stdout, rfx_table_terminal_width());
    rfx_table_free(table);
}

static json_t *rivals_json(const struct rfx_cli_job *job, const struct rfx_plan_survey *survey) {
    json_t *list = json_array();
    size_t budget = job->request.memory_bytes;
    for (int i = 0; i < survey->n_rivals; ++i) {
        const struct rfx_plan_summary *r = &survey->rivals[i];
        char why[96];
        if (is_chosen(job->plan, r)) continue;
        bool fits = budget == 0 || r->peak_bytes <= budget;
        json_t *item = rfx_report_summary(survey, r, job->request.threads);
        (void)json_object_update_new(
            item, json_pack("{s:b, s:I, s:s}", "fits", fits, "over_bytes",
                            (json_int_t)(fits ? 0 : r->peak_bytes - budget), "lost_by",
                            why_lost(job->plan, r, budget, why)));
        (void)json_array_append_new(list, item);
    }
    return list;
}

/* Returns the extension of an output name that has been checked, such as ".npy". */
static const char *ending(const char *output) {
    return strcmp(output, "-") == 0 ? ".npy" : strrchr(output, '.');
}

static void print_counted(const struct rfx_cli_run_options *options) {
    const char *output = rfx_run_request_output(options);
    printf("counted    reading %s, ",
           options->words.n_args > 1 ? options->words.shown[1] : "a .npy picture");
    if (output == NULL)
        puts("writing nothing");
    else
        printf("writing %s (--for-output)\n", ending(output));
}

/* Prints why the plan computes layers several times, if more than one stage reads the image. */
static void print_passes(const struct rfx_plan *plan, const struct rfx_cli_run_options *options) {
    int starts = 0;
    for (int s = 0; s < plan->n_stages; ++s)
        starts += rfx_place_is_computed(plan->stages[s].places[plan->graph->input]);
    if (starts < 2) return;
    printf(
        "passes     %d of %d stages begin at the image: what a later one needs of it, and what "
        "waits for a whole map's norm or pool, is made again%s\n",
        starts, plan->n_stages,
        options->plan.spill == NULL ? " (with --spill DIR it may wait in a file)" : "");
}

static int print_json(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                      const struct rfx_plan_survey *survey, bool checked) {
    json_t *document = rfx_report_document("plan", options->words.shown[0]);
    rfx_report_conv(document, job->graph);
    (void)json_object_set_new(document, "input",
                              rfx_report_shape(&job->graph->nodes[job->graph->input].out.shape));
    (void)json_object_set_new(document, "plan", rfx_report_plan(job->plan));
    rfx_report_untiled(document, job->graph);
    const char *output = rfx_run_request_output(options);
    (void)json_object_set_new(
        document, "counted",
        json_pack("{s:s, s:s?}", "input",
                  options->words.n_args > 1 ? options->words.shown[1] : ".npy", "output",
                  output != NULL ? ending(output) : NULL));
    if (survey != NULL) (void)json_object_set_new(document, "runners_up", rivals_json(job, survey));
    if (checked) (void)json_object_set_new(document, "checked", json_true());
    return rfx_report_print(document);
}

/* Surveys the other plans of the same graph (with the same layer groups), if the planner had a
 * choice. */
static int look_around(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                       struct rfx_plan_survey **survey) {
    struct rfx_survey_request request = {.rivals = true};
    struct rfx_error err = {{0}};
    bool by_hand = options->plan.plan_file != NULL || options->plan.untiled ||
                   options->plan.bands != 0 || options->plan.tiles.y != 0 ||
                   options->plan.split != NULL;
    if (by_hand) return RFX_EXIT_DONE;
    enum rfx_status status =
        rfx_plan_survey_create(job->plan->graph, &job->request, &request, survey, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int run(void *values) {
    const struct rfx_cli_run_options *options = values;
    struct rfx_cli_job job;
    struct rfx_plan_survey *survey = NULL;
    bool checked = options->plan.check || options->plan.plan_file != NULL;
    /* The network of the run that is planned: what it writes decides which outputs there are. */
    struct rfx_cli_run_options planned = *options;
    planned.output.file = rfx_run_request_output(options);
    planned.model.late = true;
    planned.model.join_cuts = options->part.parts != 0;
    if (planned.model.join_cuts) {
        planned.output.file = options->output.file;
        return rfx_plan_shards(&planned);
    }
    rfx_cli_answers_settle(&planned.output);
    int code =
        rfx_cli_job_open(&job, &planned, options->words.n_args > 1 ? options->words.args[1] : NULL);
    if (code == RFX_EXIT_DONE) code = rfx_run_request_count(&job, options);
    job.plans_again = true;
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&job, options, "plan");
    if (code == RFX_EXIT_DONE) code = look_around(&job, options, &survey);
    if (code == RFX_EXIT_DONE && options->output.file != NULL) code = write_plan(&job, options);
    if (code == RFX_EXIT_DONE && options->json) {
        code = print_json(&job, options, survey, checked);
    } else if (code == RFX_EXIT_DONE) {
        rfx_report_plan_text(job.plan);
        rfx_report_untiled_text(job.graph);
        print_passes(job.plan, options);
        print_counted(options);
        if (checked) puts("checked    sound");
        if (rfx_plan_count_groups(job.plan).groups <= MAX_GROUP_LINES)
            rfx_report_groups_text(job.plan);
        if (survey != NULL) print_rivals(&job, survey);
    }
    rfx_plan_survey_free(survey);
    rfx_cli_job_free(&job);
    return code;
}

static const struct rfx_cli_option check_rows[] = {
    RFX_CLI_OPTION(rfx_cli_run_options, "check", FLAG, plan.check, NULL,
                   "check the plan with a checker that shares no code with the planner (always "
                   "done with --plan)"),
};
static const struct rfx_cli_group check_group = RFX_CLI_GROUP(rfx_cli_heading_plan, check_rows);

static const struct rfx_cli_option file_rows[] = {
    RFX_CLI_OPTION(rfx_cli_run_options, "for-output", TEXT, output.for_output, "FILE",
                   "the -o of the run that is planned, or the --boxes if FILE ends in .json: "
                   "writing it takes memory (default: a .npy file; none: no file)"),
};
static const struct rfx_cli_group file_group = RFX_CLI_GROUP(rfx_cli_heading_output, file_rows);

static const struct rfx_cli_option parts_rows[] = {
    RFX_CLI_OPTION(rfx_cli_run_options, "parts", COUNT, part.parts, "N",
                   "show what each of N parts of the output (run --part I/N) takes",
                   .most = RFX_CLI_MOST, .excludes = "output plan for-output"),
    RFX_CLI_OPTION(rfx_cli_run_options, "part-output", TEXT, part.part_output, "NAME",
                   "output that --parts is about, where there are several"),
};
static const struct rfx_cli_group parts_group = RFX_CLI_GROUP(rfx_cli_heading_parts, parts_rows);

static struct rfx_cli_run_options values;

static const struct rfx_cli_use uses[] = {
    RFX_CLI_USE(size, rfx_cli_run_options, model),
    RFX_CLI_USES_OF_JOB,
    {&check_group, 0},
    RFX_CLI_USE(file, rfx_cli_run_options, output),
    {&file_group, 0},
    RFX_CLI_USE(format, rfx_cli_run_options, output),
    RFX_CLI_USES_OF_ANSWERS,
    {&parts_group, 0},
    RFX_CLI_USE(json, rfx_cli_run_options, json),
};

const struct rfx_cli_command rfx_cmd_plan = {
    .name = "plan",
    .args =
        "MODEL [INPUT] [--size HxW] [PLAN OPTIONS] [--for-output FILE] [--parts N] "
        "[-o plan.json] [--json]",
    .summary = "show how a network would be run and how much memory it would take",
    .details =
        "Runs nothing. The plan is for INPUT, or for a .npy image of --size. The memory that\n"
        "'rfexec run' takes to write -o map.npy counts, so a run with the same budget uses the\n"
        "same plan; --for-output names another file, or none. With --regions, --points,\n"
        "--summary, --text and --boxes there is none unless --for-output names one.\n"
        "\n"
        "-o writes the plan as JSON. Its stages (mode, targets, tiles, band_rows, row_by_row,\n"
        "forgets) and flags may be edited. run, verify, bench and plan take the file with --plan:\n"
        "they calculate memory and time anew, and a checker walks the plan before it is used.\n"
        "\n"
        "--parts N shows what each of N parts of the output (run --part I/N) takes: its rows, the\n"
        "rows of the image that it reads, MACs with the halo, memory; and the same for each round\n"
        "of global operations before it. --json adds what parts would exchange if no row were\n"
        "computed twice.\n",
    .examples =
        "rfexec plan mobilenet_v2 --size 4096x4096 --memory 256MiB -o plan.json\n"
        "rfexec plan mobilenet_v2 --size 4096x4096 --plan plan.json\n"
        "rfexec plan resnet50 --size 2048x2048 --tiles 4x4 --split layer2.3 --json\n"
        "rfexec plan fsrcnn --size 8192x8192 --memory 64MiB --parts 8\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 2,
    .input = 2,
    .values = &values,
    .run = run,
};
