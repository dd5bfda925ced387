/* The graph of a share of the states, planned and run; see part_round.h. */
#include "tools/parts/part_round.h"

#include <string.h>

#include "tiler/modes/modes.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/run_once.h"

void rfx_part_before_release(struct rfx_part_before *before) {
    if (before->states.mem == NULL) return;
    rfx_part_states_release_known(before->states.mem, before->known, before->states.n);
    rfx_part_states_release(&before->states);
    before->known = NULL;
}

enum rfx_status rfx_part_before_settle(struct rfx_part_before *before,
                                       const struct rfx_graph *graph, int k,
                                       struct rfx_error *err) {
    enum rfx_status status = rfx_part_states_finish(&before->states, graph, &before->known, err);
    return status != RFX_OK ? status
                            : rfx_part_graph_rounds(graph, k, before->known, before->states.n,
                                                    &before->rounds, err);
}

int rfx_part_round_check(const struct rfx_graph *graph, int k,
                         const struct rfx_part_rounds *rounds) {
    if (rounds->blocking < 0) return RFX_EXIT_DONE;
    const char *name = graph->nodes[rounds->blocking].name;
    if (k == RFX_PART_ALL)
        rfx_cli_message(
            "the network cannot be shared out: '%s' sees all of a map and has no state that "
            "shares could add up, so every rank would need the whole image",
            name);
    else
        rfx_cli_message(
            "output '%s' has no parts: '%s' sees all of a map and has no state that parts could "
            "add up, so every part would need the whole image",
            graph->outputs[k].name, name);
    return RFX_EXIT_REFUSED;
}

/* A round, as far as it is. */
struct round_run {
    struct rfx_cli_job *job;
    const struct rfx_part_source *source; /* NULL: the image */
    struct rfx_part_states *states;
    struct rfx_part_round *round;
};

static void take_state(void *user, int node, const void *state, size_t bytes) {
    struct round_run *run = user;
    for (int i = 0; i < run->states->n; i++)
        if (run->states->items[i].node == node) memcpy(run->states->items[i].state, state, bytes);
}

/* The states of the rounds before, and room for those of this one, which begin as no pixels'. */
static enum rfx_status list_states(struct round_run *run, const struct rfx_part_before *before,
                                   struct rfx_error *err) {
    const struct rfx_graph *whole = run->job->graph;
    struct rfx_part_states *states = run->states;
    for (int i = 0; i < before->states.n; i++) {
        const struct rfx_part_state *item = &before->states.items[i];
        void *state = rfx_part_states_add(states, whole, item->node, item->round);
        if (state == NULL) return rfx_memory_fail(run->job->mem, "states", item->bytes, err);
        memcpy(state, item->state, item->bytes);
    }
    for (int k = 0; k < run->round->graph->n_outputs; k++)
        if (rfx_part_states_add(states, whole, run->round->graph->outputs[k].node, states->round) ==
            NULL)
            return rfx_memory_fail(run->job->mem, "states", 0, err);
    return RFX_OK;
}

/* One stage that streams rows into all states, the tallest bands and fewest strips that fit. */
static enum rfx_status plan_targets(struct round_run *run, const int *targets,
                                    struct rfx_error *err) {
    static const struct {
        int64_t bands, strips;
        bool tight, by_stage;
    } ways[] = {{64, 1, false, false}, {16, 1, false, false}, {4, 1, true, false},
                {2, 2, true, false},   {2, 4, true, true},    {2, 8, true, true},
                {1, 16, true, true}};
    struct rfx_cli_job *job = run->job;
    enum rfx_status status = RFX_OK;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct rfx_stage_spec stage = rfx_ask_bands(ways[w].bands, ways[w].strips);
        stage.staging = ways[w].tight;
        stage.weights_by_stage = ways[w].by_stage || job->request.asked.weights_by_stage;
        stage.targets = targets;
        stage.n_targets = run->round->graph->n_outputs;
        job->request.stages = &stage;
        job->request.n_stages = 1;
        status = rfx_plan_create(run->round->graph, &job->request, &run->round->plan, err);
        job->request.stages = NULL;
        job->request.n_stages = 0;
        if (status != RFX_STATUS_BUDGET_IMPOSSIBLE) break;
    }
    return status;
}

static enum rfx_status plan_states(struct round_run *run, struct rfx_error *err) {
    size_t n = (size_t)run->round->graph->n_outputs;
    const struct rfx_source_traits image = run->job->request.source;
    int *targets = rfx_memory_calloc(run->job->mem, n, sizeof *targets);
    if (targets == NULL) return rfx_memory_fail(run->job->mem, "states", n * sizeof *targets, err);
    for (size_t k = 0; k < n; k++) targets[k] = run->round->graph->outputs[k].node;
    if (run->source != NULL) run->job->request.source = run->source->traits;
    if (run->round->sums != NULL)
        run->job->request.source.fixed_bytes +=
            rfx_row_sums_bytes(rfx_rect_rows(rfx_part_graph_image(run->round->graph)));
    for (int i = 0; i < run->states->n; i++)
        run->job->request.source.fixed_bytes += 2 * run->states->items[i].bytes;
    enum rfx_status status = plan_targets(run, targets, err);
    run->job->request.source = image;
    rfx_memory_release(run->job->mem, targets);
    return status;
}

static enum rfx_status execute(struct round_run *run, struct rfx_error *err) {
    const struct rfx_part_round *round = run->round;
    struct rfx_state_sink sink = {.take = take_state, .user = run};
    const struct rfx_cli_run once = {
        .graph = round->graph,
        .plan = round->plan,
        .image = run->source != NULL ? run->source->map : run->job->image,
        .sums = round->sums, /* none where there is a source */
        .states = &sink,
        .what = round->what != NULL ? round->what : "part"};
    return rfx_cli_run_once(&once, &run->round->report, err);
}

void rfx_part_round_release(struct rfx_part_round *round) {
    rfx_plan_free(round->plan);
    rfx_row_sums_free(round->sums);
    rfx_graph_free(round->graph);
    *round = (struct rfx_part_round){0};
}

enum rfx_status rfx_part_round_plan(struct rfx_cli_job *job, int k,
                                    const struct rfx_part_before *before,
                                    const struct rfx_part_source *source,
                                    struct rfx_part_states *states, struct rfx_part_round *round,
                                    struct rfx_error *err) {
    struct round_run run = {.job = job, .source = source, .states = states, .round = round};
    *round = (struct rfx_part_round){0};
    enum rfx_status status =
        rfx_part_graph_states(job->graph, k, before->known, before->states.n,
                              source != NULL ? source->from : RFX_PART_OUTER, states->index - 1,
                              states->count, &round->graph, err);
    if (status == RFX_OK && source == NULL)
        status =
            rfx_row_sums_create(job->mem, rfx_part_graph_image(round->graph), &round->sums, err);
    if (status == RFX_OK) status = list_states(&run, before, err);
    return status == RFX_OK ? plan_states(&run, err) : status;
}

enum rfx_status rfx_part_round_run(struct rfx_cli_job *job, const struct rfx_part_source *source,
                                   struct rfx_part_states *states, struct rfx_part_round *round,
                                   struct rfx_error *err) {
    struct round_run run = {.job = job, .source = source, .states = states, .round = round};
    return execute(&run, err);
}
