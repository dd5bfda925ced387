/* rfexec run --part: computes a shard of an output, or a shard of a round of states that precedes
 * the output. The graph of the shard is planned and run within the budget, as any other graph. The
 * code of rfexec/shards writes the files. */
#include "tools/commands/run_shard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "rfexec/output/georeferenced.h"
#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_json.h"
#include "rfexec/shards/shard_network.h"
#include "tools/cli/outputs.h"
#include "tools/cli/report.h"
#include "tools/cli/run_once.h"
#include "tools/commands/command_forms.h"

struct shard_run {
    struct rfx_cli_job job; /* job.graph: the whole network; once a shard is planned, the shard */
    struct rfx_graph *whole;
    const struct rfx_cli_run_options *options;
    int k; /* the output of the whole network */
    struct rfx_shard_before before;
    struct rfx_row_sums *sums; /* checksums of the image rows that are read */
    struct rfx_run_report report;
    /* Used for a shard of the output: */
    struct rfx_shard_file shard; /* shard.run is set for states too */
    struct rfx_shard_writer writer;
    /* Used for states: */
    struct rfx_shard_states states;
    struct rfx_shard_round round;
};

static int refuse_share(const char *text) {
    rfx_cli_message("--part '%s' is not I/N, such as 1/4: part I of N, counted from 1", text);
    return RFX_EXIT_USAGE;
}

int rfx_choose_shard_output(const struct rfx_graph *graph,
                            const struct rfx_cli_run_options *options, int *k) {
    const char *name = options->part.part_output;
    for (*k = 0; *k < graph->n_outputs; ++*k)
        if (name != NULL ? strcmp(graph->outputs[*k].name, name) == 0 : graph->n_outputs == 1)
            return RFX_EXIT_DONE;
    if (name != NULL)
        rfx_cli_message("--part-output '%s': no output of the network; there are %d:", name,
                        graph->n_outputs);
    else
        rfx_cli_message("parts are of one output: --part-output says which of %d:",
                        graph->n_outputs);
    for (int i = 0; i < graph->n_outputs; i++) {
        char shape[96];
        const struct rfx_tensor *out = &graph->nodes[graph->outputs[i].node].out;
        rfx_cli_message("    %s  %s", graph->outputs[i].name, rfx_human_shape(&out->shape, shape));
    }
    return RFX_EXIT_USAGE;
}

/* Sets the rectangle of the output that --part or --part-rect names. */
static int choose_rect(struct shard_run *run) {
    const struct rfx_cli_run_options *options = run->options;
    const struct rfx_output *output = &run->job.graph->outputs[run->k];
    const struct rfx_tensor *out = &run->job.graph->nodes[output->node].out;
    struct rfx_rect *rect = &run->shard.rect;
    int64_t index, count;
    if (options->part.part_rect != NULL) {
        if (!rfx_cli_parse_rect(options->part.part_rect, rect)) {
            rfx_cli_message(
                "--part-rect '%s' is not Y0,X0,Y1,X1, a rectangle of the output from "
                "row Y0 to before Y1 and column X0 to before X1",
                options->part.part_rect);
            return RFX_EXIT_USAGE;
        }
        if (rfx_rect_contains(rfx_rect_full(out->h, out->w), *rect)) return RFX_EXIT_DONE;
        rfx_cli_message("--part-rect '%s': output '%s' has %lld rows and %lld columns",
                        options->part.part_rect, output->name, (long long)out->h,
                        (long long)out->w);
        return RFX_EXIT_USAGE;
    }
    if (!rfx_cli_parse_share(options->part.part, &index, &count))
        return refuse_share(options->part.part);
    if (count > out->h) {
        rfx_cli_message("--part '%s': output '%s' has %lld rows, too few for %lld parts",
                        options->part.part, output->name, (long long)out->h, (long long)count);
        return RFX_EXIT_USAGE;
    }
    *rect = rfx_part_map_rows(run->job.graph, output->node, index - 1, count);
    return RFX_EXIT_DONE;
}

/* Sets the cells of the shard, for an output that is joined of several maps: --part I/N takes rows
 * of each map. */
static int choose_cells(struct shard_run *run) {
    const struct rfx_cli_run_options *options = run->options;
    const struct rfx_graph *graph = run->job.graph;
    const char *name = graph->outputs[run->k].name;
    int64_t *index = &run->writer.index, *count = &run->writer.count;
    if (options->part.part_rect != NULL) {
        rfx_cli_message(
            "--part-rect '%s': output '%s' is joined of several maps and has no "
            "rectangles; --part I/N takes rows of each",
            options->part.part_rect, name);
        return RFX_EXIT_USAGE;
    }
    if (!rfx_cli_parse_share(options->part.part, index, count))
        return refuse_share(options->part.part);
    int64_t most = rfx_shard_most(graph, run->k);
    if (*count > most) {
        rfx_cli_message(
            "--part '%s': the tallest map of output '%s' has %lld rows, too few for "
            "%lld parts",
            options->part.part, name, (long long)most, (long long)*count);
        return RFX_EXIT_USAGE;
    }
    if (rfx_shard_cells_share(graph, run->k, --*index, *count, &run->shard.cells))
        return RFX_EXIT_DONE;
    rfx_cli_message("output '%s' has no parts: it is joined of more than %d maps", name,
                    RFX_SHARD_MOST_RANGES);
    return RFX_EXIT_REFUSED;
}

json_t *rfx_shard_command_words(const struct rfx_cli_run_options *options) {
    enum { MOST_WORDS = 256, MOST_CHARS = 16384 };
    static const char *const of_one[] = {"part", "part-rect", "states", "output", "json", "parts"};
    const char *words[MOST_WORDS];
    int n = rfx_cli_options_words(&options->words, of_one, sizeof of_one / sizeof of_one[0], words,
                                  MOST_WORDS);
    size_t chars = 0;
    json_t *list = n <= MOST_WORDS ? json_array() : NULL;
    for (int i = 0; list != NULL && i < n; i++) {
        chars += strlen(words[i]);
        if (chars <= MOST_CHARS && json_array_append_new(list, json_string(words[i])) == 0)
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* Adds the command's words and the file of --states to "about". */
static void add_command(json_t *about, const struct rfx_cli_run_options *options) {
    json_t *words = rfx_shard_command_words(options);
    if (about != NULL && words != NULL) (void)json_object_set_new(about, "words", words);
    json_t *states = options->part.states != NULL ? json_string(options->part.states) : NULL;
    if (about != NULL && states != NULL) (void)json_object_set_new(about, "states", states);
}

struct rfx_shard_run rfx_cli_shard_run(const struct rfx_cli_job *job,
                                       const struct rfx_cli_run_options *options,
                                       struct rfx_image_options *read) {
    *read = rfx_cli_image_options(options, 0);
    return (struct rfx_shard_run){.graph = job->graph,
                                  .model = options->words.args[0],
                                  .input = options->words.args[1],
                                  .image = job->image,
                                  .read = read,
                                  .nodata_of_file = options->input.nodata.of_file,
                                  .fit = options->model.fit,
                                  .seed = options->model.seed,
                                  .fuse = rfx_cli_fuse(&options->model),
                                  .whole_input = options->part.whole_input_hash};
}

enum rfx_status rfx_cli_run_round(const struct rfx_cli_job *job,
                                  const struct rfx_shard_source *source, const char *what,
                                  struct rfx_shard_states *states, struct rfx_shard_round *round,
                                  struct rfx_run_report *report, struct rfx_error *err) {
    const struct rfx_state_sink sink = rfx_shard_round_sink(states);
    const struct rfx_cli_run once = {.plan = round->plan,
                                     .image = source != NULL ? source->map : job->image,
                                     .sums = round->sums, /* NULL when there is a source */
                                     .states = &sink,
                                     .what = what};
    return rfx_cli_run_once(&once, report, err);
}

/* Looks for an existing file with the name of -o. *there: a shard file exists and must be compared
 * with this shard. A file that is not a shard is refused, as the user may still want it. */
static int look_for_file(const struct shard_run *run, bool *there) {
    char name[RFX_SHARD_PATH_CHARS];
    struct rfx_error err = {{0}};
    const char *path = run->options->output.file;
    *there = access(path, F_OK) == 0;
    if (!*there) return RFX_EXIT_DONE;
    enum rfx_status status = rfx_shard_json_name(path, name, sizeof name, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (access(name, F_OK) == 0) return RFX_EXIT_DONE;
    rfx_cli_message("'%s' exists and is left alone: it is not a part, as there is no '%s'", path,
                    name);
    return RFX_EXIT_REFUSED;
}

/* Checks that the input has not changed since the existing shard file was made. Needed only when
 * the input file was too large for a hash of all its bytes. Returns MALFORMED when the input may
 * have changed. */
static enum rfx_status check_input(const struct shard_run *run, const json_t *picture,
                                   struct rfx_error *err) {
    const char *input = run->options->words.args[1];
    if (rfx_shard_hashes_all(input, run->options->part.whole_input_hash) ||
        rfx_shard_image_same_file(picture, input))
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "'%.200s' may have changed: its size, time or inode is different", input);
}

/* After looking into the file that is there. MALFORMED: it is damaged and is made again. */
static int tell_there(const struct shard_run *run, enum rfx_status status,
                      const struct rfx_error *err, bool *there) {
    *there = status == RFX_OK;
    if (status != RFX_OK && status != RFX_STATUS_MALFORMED) return rfx_cli_fail(status, err);
    if (*there)
        rfx_cli_message("part '%s' is there already, of the same run: nothing is done",
                        run->options->output.file);
    else
        rfx_cli_message("part '%s' is made again: %s", run->options->output.file, err->text);
    return RFX_EXIT_DONE;
}

/* Whether states that are there begin with those of the rounds before. */
static bool goes_on_from(const struct rfx_shard_states *found,
                         const struct rfx_shard_before *before) {
    bool same = found->n >= before->states.n;
    for (int i = 0; same && i < before->states.n; i++) {
        const struct rfx_shard_state *a = &found->items[i], *b = &before->states.items[i];
        same = a->node == b->node && memcmp(a->state, b->state, a->bytes) == 0;
    }
    return same;
}

/* Reads an existing file of states. *same: the file is of exactly this shard. */
static enum rfx_status read_states(const struct shard_run *run, struct rfx_shard_states *found,
                                   bool *same, struct rfx_error *err) {
    const struct rfx_shard_states *s = &run->states;
    const char *path = run->options->output.file;
    enum rfx_status status = rfx_shard_states_peek(run->job.mem, path, found, err);
    *same = status != RFX_OK || (json_equal(s->run, found->run) && s->round == found->round &&
                                 s->index == found->index && s->count == found->count &&
                                 strcmp(s->output, found->output) == 0);
    if (status != RFX_OK || !*same) return status;
    rfx_shard_states_release(found);
    status = rfx_shard_states_read(path, run->job.graph, found, err);
    *same = status != RFX_OK || goes_on_from(found, &run->before);
    return status == RFX_OK && *same ? check_input(run, found->picture, err) : status;
}

static int look_for_states(const struct shard_run *run, bool *there) {
    struct rfx_shard_states found = {.mem = run->job.mem};
    struct rfx_error err = {{0}};
    bool same = false;
    int code = look_for_file(run, there);
    if (code != RFX_EXIT_DONE || !*there) return code;
    enum rfx_status status = read_states(run, &found, &same, &err);
    if (status == RFX_OK && !same) {
        rfx_cli_message(
            "'%s' exists and is not this part: it is part %lld of %lld of round %d, "
            "or of another run",
            run->options->output.file, (long long)found.index, (long long)found.count, found.round);
        code = RFX_EXIT_REFUSED;
    } else {
        code = tell_there(run, status, &err, there);
    }
    rfx_shard_states_release(&found);
    return code;
}

static void print_measured(const struct rfx_plan *plan, const struct rfx_run_report *report) {
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS];
    rfx_report_plan_text(plan);
    printf("measured   %s peak RSS, %s of activations, %.3f s\n",
           rfx_human_bytes(rfx_peak_rss_bytes(), a),
           rfx_human_bytes(report->arena_high_water_bytes, b), report->seconds);
}

static int print_states(const struct shard_run *run) {
    const struct rfx_shard_states *s = &run->states;
    int rounds = run->before.rounds.rounds;
    if (run->options->json) {
        json_t *document = rfx_report_document("run", run->options->words.shown[0]);
        (void)json_object_update_new(
            document, json_pack("{s:o, s:o, s:{s:s, s:i, s:i, s:[I,I], s:i}}", "plan",
                                rfx_report_plan(run->round.plan), "measured",
                                rfx_report_measured(&run->report), "states", "output", s->output,
                                "round", s->round, "rounds_left", rounds, "part",
                                (json_int_t)s->index, (json_int_t)s->count, "count", s->n));
        return rfx_report_print(document);
    }
    print_measured(run->round.plan, &run->report);
    printf("states     round %d, part %lld of %lld; %d round%s of states in all: merge them next\n",
           s->round, (long long)s->index, (long long)s->count, s->round + rounds - 1,
           s->round + rounds == 2 ? "" : "s");
    return RFX_EXIT_DONE;
}

/* Returns whether -o names an .npy file. */
static bool is_npy(const char *output) {
    const char *end = strrchr(output, '.');
    return end != NULL && strcasecmp(end, ".npy") == 0;
}

/* Checks that the options suit a shard of states. Prints a message when one is missing or wrong. */
static int check_states_options(struct shard_run *run) {
    const struct rfx_cli_run_options *o = run->options;
    int rounds = run->before.rounds.rounds;
    if (o->part.part == NULL) {
        rfx_cli_message(
            "a network with %d global operation%s one after the other takes parts "
            "--part I/N: their states are of rows",
            rounds, rounds == 1 ? "" : "s");
        return RFX_EXIT_USAGE;
    }
    if (is_npy(o->output.file)) {
        rfx_cli_message(
            "-o '%s': this part is not an array but the states of global operations (%d more "
            "round%s); "
            "give it another name, such as part.states",
            o->output.file, rounds, rounds == 1 ? "" : "s");
        return RFX_EXIT_USAGE;
    }
    return rfx_cli_parse_share(o->part.part, &run->states.index, &run->states.count)
               ? RFX_EXIT_DONE
               : refuse_share(o->part.part);
}

/* Plans, runs and writes the states of this shard. */
static int compute_states(struct shard_run *run) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_shard_round_plan(job->graph, &job->request, run->k, &run->before,
                                                  NULL, &run->states, &run->round, &err);
    if (status == RFX_OK)
        status =
            rfx_cli_run_round(job, NULL, "part", &run->states, &run->round, &run->report, &err);
    if (status == RFX_OK)
        run->states.picture = rfx_shard_image_json(
            run->options->words.args[1], rfx_part_graph_image(run->round.graph), run->round.sums);
    rfx_memory_set_stop(job->mem, NULL, NULL); /* from here on files become complete */
    if (status == RFX_OK)
        status = rfx_shard_states_write(run->options->output.file, job->graph, &run->states, &err);
    return status == RFX_OK ? print_states(run) : rfx_cli_fail(status, &err);
}

/* Computes this shard's states of the next round, unless their file exists already. */
static int make_states(struct shard_run *run) {
    struct rfx_shard_states *s = &run->states;
    bool there = false;
    s->mem = run->job.mem;
    int code = check_states_options(run);
    if (code != RFX_EXIT_DONE) return code;
    (void)snprintf(s->output, sizeof s->output, "%s", run->job.graph->outputs[run->k].name);
    s->round = run->before.states.round + 1;
    s->run = json_incref(run->shard.run);
    s->about =
        json_pack("{s:s, s:s, s:i, s:b}", "model", run->options->words.args[0], "input",
                  run->options->words.shown[1], "rounds", s->round + run->before.rounds.rounds - 1,
                  "last_by_merge", !run->before.rounds.reads_image);
    add_command(s->about, run->options);
    code = look_for_states(run, &there);
    return code != RFX_EXIT_DONE || there ? code : compute_states(run);
}

static enum rfx_status execute(struct shard_run *run, struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    enum rfx_status status = rfx_shard_writer_open(&run->writer, run->options->output.file, err);
    if (status != RFX_OK) return status;
    struct rfx_output_sink sink = rfx_shard_writer_sink(&run->writer);
    const struct rfx_cli_run once = {.plan = job->plan,
                                     .image = job->image,
                                     .sums = run->sums,
                                     .sink = &sink,
                                     .spill = run->options->plan.spill,
                                     .what = "part"};
    status = rfx_cli_run_once(&once, &run->report, err);
    run->shard.picture = rfx_shard_image_json(run->options->words.args[1],
                                              rfx_part_graph_image(job->graph), run->sums);
    rfx_memory_set_stop(job->mem, NULL, NULL); /* from here on files become complete */
    return status == RFX_OK ? rfx_shard_writer_commit(&run->writer, run->options->output.file, err)
                            : status;
}

/* Returns the reason why an existing shard file is not this shard, or NULL when it is. The reason
 * may be stored in `why`. */
static const char *find_other(const struct shard_run *run, const struct rfx_shard_file *found,
                              char why[400]) {
    char cells[RFX_SHARD_CELLS_CHARS];
    if (!rfx_shard_file_same_run(&run->shard, found, why, 400)) return why;
    if (!rfx_rect_equal(run->shard.rect, found->rect))
        (void)snprintf(why, 400, "it is another part, rows %lld to %lld and columns %lld to %lld",
                       (long long)found->rect.y0, (long long)found->rect.y1,
                       (long long)found->rect.x0, (long long)found->rect.x1);
    else if (!rfx_shard_cells_equal(&run->shard.cells, &found->cells))
        (void)snprintf(why, 400, "it is another part, cells %s",
                       rfx_shard_cells_text(&found->cells, cells));
    else
        return NULL;
    return why;
}

static int look_for_shard(struct shard_run *run, bool *there) {
    const char *path = run->options->output.file;
    struct rfx_shard_file found = {.run = NULL};
    struct rfx_error err = {{0}};
    char why[400];
    int code = look_for_file(run, there);
    if (code != RFX_EXIT_DONE || !*there) return code;
    enum rfx_status status = rfx_shard_file_read(path, &found, &err);
    if (status == RFX_OK && find_other(run, &found, why) != NULL) {
        rfx_cli_message("'%s' exists and is not this part: %s", path, why);
        rfx_shard_file_release(&found);
        return RFX_EXIT_REFUSED;
    }
    if (status == RFX_OK) status = rfx_shard_file_check(run->job.mem, path, &found, &err);
    if (status == RFX_OK) status = check_input(run, found.picture, &err);
    rfx_shard_file_release(&found);
    return tell_there(run, status, &err, there);
}

static json_t *about_json(const struct shard_run *run) {
    const struct rfx_plan *plan = run->job.plan;
    struct rfx_rect image = rfx_part_graph_image(run->job.graph);
    char text[RFX_PLAN_TEXT];
    int64_t index, count;
    rfx_plan_describe(plan, text, sizeof text);
    json_t *about = json_pack(
        "{s:s, s:s, s:[I,I], s:[I,I], s:s, s:I, s:I}", "model", run->options->words.shown[0],
        "input", run->options->words.shown[1], "image_rows", (json_int_t)image.y0,
        (json_int_t)image.y1, "image_columns", (json_int_t)image.x0, (json_int_t)image.x1, "plan",
        text, "macs", (json_int_t)plan->macs, "macs_untiled", (json_int_t)plan->macs_untiled);
    if (about != NULL && run->options->part.part != NULL &&
        rfx_cli_parse_share(run->options->part.part, &index, &count))
        (void)json_object_set_new(about, "part",
                                  json_pack("[I,I]", (json_int_t)index, (json_int_t)count));
    json_t *geo =
        rfx_shard_geo_json(&run->job.geo.geo); /* the image's georeference identifies it */
    if (geo != NULL && about != NULL) (void)json_object_set_new(about, "image_geo", geo);
    if (rfx_shard_has_late_nodes(run->shard.run))
        (void)json_object_update_new(
            about, json_pack("{s:o}", "image_place",
                             rfx_shard_source_json(&run->job.geo, run->options->input.no_orient)));
    add_command(about, run->options);
    return about;
}

static int print_result(const struct shard_run *run) {
    const struct rfx_shard_file *shard = &run->shard;
    struct rfx_rect image = rfx_part_graph_image(run->job.graph);
    char cells[RFX_SHARD_CELLS_CHARS];
    if (run->options->json) {
        const struct rfx_shape *shape =
            shard->stored.reshaped ? &shard->stored.shape : &shard->shape;
        json_t *document = rfx_report_document("run", run->options->words.shown[0]);
        rfx_report_conv(document, run->job.graph);
        (void)json_object_update_new(
            document,
            json_pack("{s:s, s:o, s:o, s:{s:s, s:o, s:[I,I], s:[I,I], s:s}}", "input",
                      run->options->words.shown[1], "plan", rfx_report_plan(run->job.plan),
                      "measured", rfx_report_measured(&run->report), "part", "output",
                      shard->output, "shape", rfx_report_shape(shape), "image_rows",
                      (json_int_t)image.y0, (json_int_t)image.y1, "image_columns",
                      (json_int_t)image.x0, (json_int_t)image.x1, "hash", shard->fingerprint));
        (void)json_object_update_new(json_object_get(document, "part"),
                                     rfx_shard_file_place_json(shard));
        return rfx_report_print(document);
    }
    print_measured(run->job.plan, &run->report);
    printf("image      rows %lld to %lld, columns %lld to %lld\n", (long long)image.y0,
           (long long)image.y1, (long long)image.x0, (long long)image.x1);
    if (shard->cells.of > 0)
        printf("part       %s cells %s of %lld, hash %s\n", shard->output,
               rfx_shard_cells_text(&shard->cells, cells), (long long)shard->cells.of,
               shard->fingerprint);
    else
        printf("part       %s rows %lld to %lld, columns %lld to %lld, hash %s\n", shard->output,
               (long long)shard->rect.y0, (long long)shard->rect.y1, (long long)shard->rect.x0,
               (long long)shard->rect.x1, shard->fingerprint);
    return RFX_EXIT_DONE;
}

/* Reads the file of --states and checks that the file belongs to this run. */
static enum rfx_status read_before(struct shard_run *run, struct rfx_error *err) {
    const char *path = run->options->part.states;
    const struct rfx_graph *graph = run->job.graph;
    struct rfx_shard_states *states = &run->before.states;
    states->mem = run->job.mem;
    enum rfx_status status = RFX_OK;
    if (path != NULL) status = rfx_shard_states_read(path, graph, states, err);
    if (path == NULL || status != RFX_OK) return status;
    if (!json_equal(run->shard.run, states->run) ||
        strcmp(states->output, graph->outputs[run->k].name) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s' are of another run or output",
                        path);
    if (states->count != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "states '%.200s' are those of part %lld of %lld alone: merge makes "
                        "one file of all",
                        path, (long long)states->index, (long long)states->count);
    return RFX_OK;
}

/* Finds the output, the identity of the run, and the rounds of states that are still missing. */
static int look_at_run(struct shard_run *run) {
    const struct rfx_graph *graph = run->job.graph;
    struct rfx_image_options read;
    struct rfx_error err = {{0}};
    int code = rfx_choose_shard_output(graph, run->options, &run->k);
    if (code != RFX_EXIT_DONE) return code;
    const struct rfx_shard_run all = rfx_cli_shard_run(&run->job, run->options, &read);
    enum rfx_status status = rfx_shard_identity(&all, &run->shard.run, &err);
    if (status == RFX_OK) status = read_before(run, &err);
    if (status == RFX_OK) status = rfx_shard_before_settle(&run->before, graph, run->k, &err);
    if (status == RFX_OK) status = rfx_shard_rounds_check(graph, run->k, &run->before.rounds, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Determines which part of the output the shard covers. */
static int describe_shard(struct shard_run *run) {
    const struct rfx_graph *graph = run->job.graph;
    const struct rfx_output *output = &graph->outputs[run->k];
    const struct rfx_tensor *out = &graph->nodes[output->node].out;
    struct rfx_shard_file *shard = &run->shard;
    bool cells = rfx_shard_cells_of(graph, run->k, &shard->cells);
    if (!cells && out->layout != RFX_LAYOUT_NHWC) {
        rfx_cli_message("output '%s' is not a map of rows and columns: it has no parts",
                        output->name);
        return RFX_EXIT_REFUSED;
    }
    (void)snprintf(shard->output, sizeof shard->output, "%s", output->name);
    shard->shape = out->shape;
    shard->stored = output->stored;
    for (int axis = 0; axis < 2; axis++) shard->image[axis] = rfx_graph_image_extent(graph, axis);
    if (shard->stored.reshaped) shard->stored.shape = rfx_output_shape(graph, run->k);
    if (run->before.states.n > 0) { /* record the hash of the states that the shard depends on */
        char hash[RFX_FINGERPRINT_CHARS];
        rfx_shard_states_hash(&run->before.states, hash);
        (void)json_object_set_new(shard->run, "states", json_string(hash));
    }
    return cells ? choose_cells(run) : choose_rect(run);
}

/* Finds the georeference and the grid of the whole output, which merge needs. Cells have those of
 * the picture. */
static enum rfx_status find_georeference(struct shard_run *run, struct rfx_error *err) {
    struct rfx_georeference geo;
    char words[RFX_GEOREFERENCED_WORDS];
    struct rfx_cli_job *job = &run->job;
    int k = run->shard.cells.of > 0 ? -1 : run->k;
    enum rfx_status status = rfx_georeferenced(job->mem, job->graph, k, &job->geo,
                                               run->options->input.no_orient, &geo, words, err);
    if (status != RFX_OK) return status;
    if (words[0] != '\0') rfx_cli_message("%s", words);
    run->shard.geo = rfx_shard_geo_json(&geo);
    rfx_georeference_release(&geo);
    struct rfx_answer_place place;
    status = rfx_output_place(job->graph, k, &job->geo, &place, err);
    if (status == RFX_OK) run->shard.grid = rfx_shard_grid_json(&place);
    return status;
}

/* Plans the shard. From here on the job's graph is that of the shard. */
static int plan_shard(struct shard_run *run) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_error err = {{0}};
    struct rfx_graph *graph = NULL;
    run->writer.shard = &run->shard;
    run->writer.base = job->graph;
    run->writer.k = run->k;
    enum rfx_status status = find_georeference(run, &err);
    if (status == RFX_OK)
        status = rfx_shard_file_graph(&run->shard, job->graph, run->k, run->before.known,
                                      run->before.states.n, run->writer.index, run->writer.count,
                                      &graph, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    run->whole = job->graph;
    job->graph = graph;
    job->request.emit_outputs = true;
    struct rfx_rect image = rfx_part_graph_image(graph);
    job->request.source.fixed_bytes +=
        rfx_shard_writer_bytes(&run->shard) + rfx_row_sums_bytes(rfx_rect_rows(image));
    status = rfx_row_sums_create(job->mem, image, &run->sums, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    int code = rfx_cli_job_plan(job, run->options, "run");
    if (code == RFX_EXIT_DONE) run->shard.about = about_json(run);
    return code;
}

/* Computes a shard of the output, unless its file exists already. */
static int make_shard(struct shard_run *run) {
    struct rfx_error err = {{0}};
    bool there = false;
    if (!is_npy(run->options->output.file)) {
        rfx_cli_message("-o '%s': a part of an output is written as -o PART.npy",
                        run->options->output.file);
        return RFX_EXIT_USAGE;
    }
    int code = describe_shard(run);
    if (code == RFX_EXIT_DONE) code = look_for_shard(run, &there);
    if (code == RFX_EXIT_DONE && !there) code = plan_shard(run);
    if (code != RFX_EXIT_DONE || there) return code;
    enum rfx_status status = execute(run, &err);
    return status == RFX_OK ? print_result(run) : rfx_cli_fail(status, &err);
}

int rfx_run_shard(const struct rfx_cli_run_options *options) {
    struct shard_run run = {.options = options};
    int code = rfx_cli_job_open(&run.job, options, options->words.args[1]);
    if (code == RFX_EXIT_DONE) code = look_at_run(&run);
    if (code == RFX_EXIT_DONE)
        code = run.before.rounds.rounds > 0 ? make_states(&run) : make_shard(&run);
    rfx_shard_writer_free(&run.writer);
    rfx_row_sums_free(run.sums);
    rfx_shard_file_release(&run.shard);
    rfx_shard_round_release(&run.round);
    if (run.states.mem != NULL) rfx_shard_states_release(&run.states);
    rfx_plan_free(run.job.plan);
    run.job.plan = NULL;
    if (run.whole != NULL) {
        rfx_graph_free(run.job.graph);
        run.job.graph = run.whole;
    }
    rfx_shard_before_release(&run.before);
    rfx_cli_job_free(&run.job);
    return code;
}
