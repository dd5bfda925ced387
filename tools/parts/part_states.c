/* The states of a round, made part by part; see part_states.h. */
#include "tools/parts/part_states.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tools/cli/report.h"
#include "tools/parts/files/part_identity.h"
#include "tools/parts/files/part_json.h"
#include "tools/parts/files/part_picture.h"
#include "tools/parts/files/part_words.h"
#include "tools/parts/part_choice.h"
#include "tools/parts/part_round.h"

int rfx_part_look_before(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                         int k, json_t *run, struct rfx_part_before *before) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    *before = (struct rfx_part_before){.states.mem = job->mem};
    if (options->part.states != NULL) {
        status = rfx_part_states_read(options->part.states, job->graph, &before->states, &err);
        bool ours =
            status != RFX_OK || (json_equal(run, before->states.run) &&
                                 strcmp(before->states.output, job->graph->outputs[k].name) == 0);
        if (!ours)
            status = rfx_fail(&err, RFX_STATUS_MALFORMED,
                              "states '%.200s' are of another run or output", options->part.states);
        if (status == RFX_OK && before->states.count != 0)
            status = rfx_fail(&err, RFX_STATUS_MALFORMED,
                              "states '%.200s' are those of part %lld of %lld alone: merge makes "
                              "one file of all",
                              options->part.states, (long long)before->states.index,
                              (long long)before->states.count);
    }
    if (status == RFX_OK) status = rfx_part_before_settle(before, job->graph, k, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    return rfx_part_round_check(job->graph, k, &before->rounds);
}

/* A part of a round. */
struct state_run {
    struct rfx_cli_job *job;
    const struct rfx_cli_run_options *options;
    struct rfx_part_states states;
    struct rfx_part_round round;
};

/* Whether states that are there say that they are of this part. */
static bool is_this_part(const struct rfx_part_states *s, const struct rfx_part_states *found) {
    return json_equal(s->run, found->run) && s->round == found->round && s->index == found->index &&
           s->count == found->count && strcmp(s->output, found->output) == 0;
}

/* Whether states that are there begin with those of the rounds before. */
static bool goes_on_from(const struct rfx_part_states *found,
                         const struct rfx_part_before *before) {
    bool same = found->n >= before->states.n;
    for (int i = 0; same && i < before->states.n; i++) {
        const struct rfx_part_state *a = &found->items[i], *b = &before->states.items[i];
        same = a->node == b->node && memcmp(a->state, b->state, a->bytes) == 0;
    }
    return same;
}

/* Reads what is there. MALFORMED: it is damaged. *same: it is of this very part. */
static enum rfx_status read_there(const struct state_run *run, const struct rfx_part_before *before,
                                  struct rfx_part_states *found, bool *same,
                                  struct rfx_error *err) {
    const char *path = run->options->output.file;
    enum rfx_status status = rfx_part_states_peek(run->job->mem, path, found, err);
    *same = status != RFX_OK || is_this_part(&run->states, found);
    if (status != RFX_OK || !*same) return status;
    rfx_part_states_release(found);
    status = rfx_part_states_read(path, run->job->graph, found, err);
    *same = status != RFX_OK || goes_on_from(found, before);
    if (status == RFX_OK && *same && !rfx_part_hashes_all(run->options) &&
        !rfx_part_picture_same_file(found->picture, run->options->words.args[1]))
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "'%.200s' may have changed: its size, time or inode is another one",
                          run->options->words.args[1]);
    return status;
}

/* Whether the file is there, of this very part; refused when it is something else. Damaged states
 * are made again. */
static int look_for_file(const struct state_run *run, const struct rfx_part_before *before,
                         bool *there) {
    const char *path = run->options->output.file;
    struct rfx_part_states found = {.mem = run->job->mem};
    struct rfx_error err = {{0}};
    char name[RFX_PART_PATH_CHARS];
    bool same = false;
    *there = false;
    if (access(path, F_OK) != 0) return RFX_EXIT_DONE;
    enum rfx_status status = rfx_part_json_name(path, name, sizeof name, &err);
    if (status == RFX_OK && access(name, F_OK) != 0) {
        rfx_cli_message("'%s' is there and stays as it is: it is no part, as there is no '%s'",
                        path, name);
        return RFX_EXIT_REFUSED;
    }
    if (status == RFX_OK) status = read_there(run, before, &found, &same, &err);
    *there = status == RFX_OK && same;
    if (status == RFX_OK && !same)
        rfx_cli_message(
            "'%s' is there and is no such part: it is part %lld of %lld of round %d, "
            "or of another run",
            path, (long long)found.index, (long long)found.count, found.round);
    rfx_part_states_release(&found);
    if (status != RFX_OK && status != RFX_STATUS_MALFORMED) return rfx_cli_fail(status, &err);
    if (status != RFX_OK) rfx_cli_message("part '%s' is made again: %s", path, err.text);
    return status != RFX_OK || same ? RFX_EXIT_DONE : RFX_EXIT_REFUSED;
}

static int print_states(const struct state_run *run, int rounds) {
    if (run->options->json) {
        json_t *document = rfx_report_document("run", run->options->words.shown[0]);
        (void)json_object_update_new(
            document, json_pack("{s:o, s:o, s:{s:s, s:i, s:i, s:[I,I], s:i}}", "plan",
                                rfx_report_plan(run->round.plan), "measured",
                                rfx_report_measured(&run->round.report), "states", "output",
                                run->states.output, "round", run->states.round, "rounds_left",
                                rounds, "part", (json_int_t)run->states.index,
                                (json_int_t)run->states.count, "count", run->states.n));
        return rfx_report_print(document);
    }
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS];
    rfx_report_plan_text(run->round.plan);
    printf("measured   %s peak RSS, %s of activations, %.3f s\n",
           rfx_human_bytes(rfx_peak_rss_bytes(), a),
           rfx_human_bytes(run->round.report.arena_high_water_bytes, b), run->round.report.seconds);
    printf("states     round %d, part %lld of %lld; %d round%s of states in all: merge them next\n",
           run->states.round, (long long)run->states.index, (long long)run->states.count,
           run->states.round + rounds - 1, run->states.round + rounds == 2 ? "" : "s");
    return RFX_EXIT_DONE;
}

static int check_share(const struct rfx_cli_run_options *o, int rounds, int64_t *index,
                       int64_t *count) {
    const char *end = strrchr(o->output.file, '.');
    if (o->part.part == NULL) {
        rfx_cli_message(
            "a network with %d global operation%s one after the other takes parts "
            "--part I/N: their states are of rows",
            rounds, rounds == 1 ? "" : "s");
        return RFX_EXIT_USAGE;
    }
    if (end != NULL && strcasecmp(end, ".npy") == 0) {
        rfx_cli_message(
            "-o '%s': this part is no array but the states of global operations (%d more round%s); "
            "give it another name, such as part.states",
            o->output.file, rounds, rounds == 1 ? "" : "s");
        return RFX_EXIT_USAGE;
    }
    if (rfx_part_parse_share(o->part.part, index, count)) return RFX_EXIT_DONE;
    rfx_cli_message("--part '%s' is not I/N, such as 1/4: part I of N, counted from 1",
                    o->part.part);
    return RFX_EXIT_USAGE;
}

static int make(struct state_run *run, int k, const struct rfx_part_before *before) {
    struct rfx_error err = {{0}};
    enum rfx_status status =
        rfx_part_round_plan(run->job, k, before, NULL, &run->states, &run->round, &err);
    if (status == RFX_OK)
        status = rfx_part_round_run(run->job, NULL, &run->states, &run->round, &err);
    if (status == RFX_OK)
        run->states.picture = rfx_part_picture_json(
            run->options->words.args[1], rfx_part_graph_image(run->round.graph), run->round.sums);
    rfx_memory_set_stop(run->job->mem, NULL, NULL); /* from here on files become complete */
    if (status == RFX_OK)
        status =
            rfx_part_states_write(run->options->output.file, run->job->graph, &run->states, &err);
    return status == RFX_OK ? print_states(run, before->rounds.rounds) : rfx_cli_fail(status, &err);
}

int rfx_part_make_states(struct rfx_cli_job *job, const struct rfx_cli_run_options *options, int k,
                         json_t *json, const struct rfx_part_before *before) {
    struct state_run run = {.job = job, .options = options, .states.mem = job->mem};
    struct rfx_part_states *s = &run.states;
    bool there = false;
    int code = check_share(options, before->rounds.rounds, &s->index, &s->count);
    if (code != RFX_EXIT_DONE) return code;
    (void)snprintf(s->output, sizeof s->output, "%s", job->graph->outputs[k].name);
    s->round = before->states.round + 1;
    s->run = json_incref(json);
    s->about = json_pack("{s:s, s:s, s:i, s:b}", "model", options->words.args[0], "input",
                         options->words.shown[1], "rounds", s->round + before->rounds.rounds - 1,
                         "last_by_merge", !before->rounds.reads_image);
    rfx_part_words_add(s->about, options);
    code = look_for_file(&run, before, &there);
    if (code == RFX_EXIT_DONE && there)
        rfx_cli_message("part '%s' is there already, of the same run: nothing is done",
                        options->output.file);
    else if (code == RFX_EXIT_DONE)
        code = make(&run, k, before);
    rfx_part_round_release(&run.round);
    rfx_part_states_release(&run.states);
    return code;
}
