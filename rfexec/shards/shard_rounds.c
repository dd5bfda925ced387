/* Plans a shard's work in a round, and adds up the states of shards; see shard_rounds.h. */
#include "rfexec/shards/shard_rounds.h"

#include <stdio.h>
#include <string.h>

#include "rfexec/image/image_source.h"
#include "rfexec/shards/shard_json.h"
#include "tiler/modes/modes.h"

void rfx_shard_before_release(struct rfx_shard_before *before) {
    if (before->states.mem == NULL) return;
    rfx_shard_states_release_known(before->states.mem, before->known, before->states.n);
    rfx_shard_states_release(&before->states);
    before->known = NULL;
}

enum rfx_status rfx_shard_before_settle(struct rfx_shard_before *before,
                                        const struct rfx_graph *graph, int k,
                                        struct rfx_error *err) {
    enum rfx_status status = rfx_shard_states_finish(&before->states, graph, &before->known, err);
    return status != RFX_OK ? status
                            : rfx_part_graph_rounds(graph, k, before->known, before->states.n,
                                                    &before->rounds, err);
}

enum rfx_status rfx_shard_rounds_check(const struct rfx_graph *graph, int k,
                                       const struct rfx_part_rounds *rounds,
                                       struct rfx_error *err) {
    if (rounds->blocking < 0) return RFX_OK;
    const char *name = graph->nodes[rounds->blocking].name;
    if (k == RFX_PART_ALL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "the network cannot be shared out: '%s' sees all of a map and has no state "
                        "that shares could add up, so every rank would need the whole image",
                        name);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "output '%s' has no parts: '%s' sees all of a map and has no state that parts "
                    "could add up, so every part would need the whole image",
                    graph->outputs[k].name, name);
}

/* Fills `states`: copies of the states of earlier rounds, and zeroed states for the outputs of
 * `graph`, which are the operations of this round. */
static enum rfx_status list_states(const struct rfx_graph *whole,
                                   const struct rfx_shard_before *before,
                                   const struct rfx_graph *graph, struct rfx_shard_states *states,
                                   struct rfx_error *err) {
    for (int i = 0; i < before->states.n; i++) {
        const struct rfx_shard_state *item = &before->states.items[i];
        void *state = rfx_shard_states_add(states, whole, item->node, item->round);
        if (state == NULL) return rfx_memory_fail(states->mem, "states", item->bytes, err);
        memcpy(state, item->state, item->bytes);
    }
    for (int k = 0; k < graph->n_outputs; k++)
        if (rfx_shard_states_add(states, whole, graph->outputs[k].node, states->round) == NULL)
            return rfx_memory_fail(states->mem, "states", 0, err);
    return RFX_OK;
}

/* Plans one stage that streams rows into all states. Takes the first candidate that fits the
 * budget; the candidates begin with tall bands and one column strip. */
static enum rfx_status plan_stage(const struct rfx_graph *graph, struct rfx_plan_request *request,
                                  const int *targets, struct rfx_plan **out,
                                  struct rfx_error *err) {
    static const struct {
        int64_t bands, strips;
        bool staging, by_stage;
    } candidates[] = {{64, 1, false, false}, {16, 1, false, false}, {4, 1, true, false},
                      {2, 2, true, false},   {2, 4, true, true},    {2, 8, true, true},
                      {1, 16, true, true}};
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        struct rfx_stage_spec stage = rfx_ask_bands(candidates[i].bands, candidates[i].strips);
        stage.staging = candidates[i].staging;
        stage.weights_by_stage = candidates[i].by_stage || request->asked.weights_by_stage;
        stage.targets = targets;
        stage.n_targets = graph->n_outputs;
        request->stages = &stage;
        request->n_stages = 1;
        status = rfx_plan_create(graph, request, out, err);
        if (status != RFX_STATUS_BUDGET_IMPOSSIBLE) break;
    }
    return status;
}

/* Plans round->graph. Adds the memory of checksums, and twice that of the states, to the request.
 */
static enum rfx_status plan_states(const struct rfx_plan_request *asked,
                                   const struct rfx_shard_source *source,
                                   const struct rfx_shard_states *states,
                                   struct rfx_shard_round *round, struct rfx_error *err) {
    const struct rfx_graph *graph = round->graph;
    size_t n = (size_t)graph->n_outputs;
    struct rfx_plan_request request = *asked;
    int *targets = rfx_memory_calloc(states->mem, n, sizeof *targets);
    if (targets == NULL) return rfx_memory_fail(states->mem, "states", n * sizeof *targets, err);
    for (size_t k = 0; k < n; k++) targets[k] = graph->outputs[k].node;
    if (source != NULL) request.source = source->traits;
    if (round->sums != NULL)
        request.source.fixed_bytes +=
            rfx_row_sums_bytes(rfx_rect_rows(rfx_part_graph_image(graph)));
    for (int i = 0; i < states->n; i++) request.source.fixed_bytes += 2 * states->items[i].bytes;
    enum rfx_status status = plan_stage(graph, &request, targets, &round->plan, err);
    rfx_memory_release(states->mem, targets);
    return status;
}

enum rfx_status rfx_shard_round_plan(const struct rfx_graph *graph,
                                     const struct rfx_plan_request *asked, int k,
                                     const struct rfx_shard_before *before,
                                     const struct rfx_shard_source *source,
                                     struct rfx_shard_states *states, struct rfx_shard_round *round,
                                     struct rfx_error *err) {
    *round = (struct rfx_shard_round){0};
    enum rfx_status status = rfx_part_graph_states(
        graph, k, before->known, before->states.n, source != NULL ? source->from : RFX_PART_OUTER,
        states->index - 1, states->count, &round->graph, err);
    if (status == RFX_OK && source == NULL)
        status =
            rfx_row_sums_create(states->mem, rfx_part_graph_image(round->graph), &round->sums, err);
    if (status == RFX_OK) status = list_states(graph, before, round->graph, states, err);
    return status == RFX_OK ? plan_states(asked, source, states, round, err) : status;
}

/* Stores the state of one operation. */
static void take_state(void *user, int node, const void *state, size_t bytes) {
    const struct rfx_shard_states *states = user;
    for (int i = 0; i < states->n; i++)
        if (states->items[i].node == node) memcpy(states->items[i].state, state, bytes);
}

struct rfx_state_sink rfx_shard_round_sink(struct rfx_shard_states *states) {
    return (struct rfx_state_sink){.take = take_state, .user = states};
}

void rfx_shard_round_release(struct rfx_shard_round *round) {
    rfx_plan_free(round->plan);
    rfx_row_sums_free(round->sums);
    rfx_graph_free(round->graph);
    *round = (struct rfx_shard_round){0};
}

/* Adds up files of states. */
struct reading {
    struct rfx_shard_sum *sum;
    const char *const *paths;
    int n;
    bool *seen;     /* [count] which shards were read */
    json_t *images; /* member "picture" of each file read so far */
};

/* Checks that image rows which file i and an earlier file have read have equal checksums. */
static enum rfx_status check_image(struct reading *r, int i, const struct rfx_shard_states *shard,
                                   struct rfx_error *err) {
    int64_t row;
    for (int k = 0; k < i; k++)
        if (!rfx_shard_image_agrees(json_array_get(r->images, (size_t)k), shard->picture, &row))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "states '%.120s' and '%.120s' are not of one image: row %lld was "
                            "another one when they read it",
                            r->paths[k], r->paths[i], (long long)row);
    json_t *image = shard->picture != NULL ? json_incref(shard->picture) : json_null();
    return json_array_append_new(r->images, image) == 0
               ? RFX_OK
               : rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* Checks that the states are of the same run as the first file and of a shard not seen before. */
static enum rfx_status check_shard(const struct reading *r, const char *path,
                                   const struct rfx_shard_states *shard, struct rfx_error *err) {
    const struct rfx_shard_states *all = &r->sum->made.states;
    if (!json_equal(shard->run, all->run) || strcmp(shard->output, all->output) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "states '%.120s' and '%.120s' are not of one run and output", r->paths[0],
                        path);
    if (shard->count == 0 || shard->count != all->count)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "states '%.200s' are part %lld of %lld, others are of %lld parts", path,
                        (long long)shard->index, (long long)shard->count, (long long)all->count);
    if (r->seen[shard->index - 1])
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "states '%.200s': part %lld of %lld is there twice", path,
                        (long long)shard->index, (long long)shard->count);
    return RFX_OK;
}

/* Checks the states of file i against those of the files before, and notes their shard. */
static enum rfx_status note_shard(struct reading *r, int i, const struct rfx_shard_states *shard,
                                  struct rfx_error *err) {
    enum rfx_status status = check_shard(r, r->paths[i], shard, err);
    if (status != RFX_OK) return status;
    r->seen[shard->index - 1] = true;
    return check_image(r, i, shard, err);
}

/* Reads file i and adds its states to the sum. */
static enum rfx_status add_shard(struct reading *r, int i, struct rfx_error *err) {
    const char *path = r->paths[i];
    struct rfx_shard_states shard;
    enum rfx_status status = rfx_shard_states_read(path, r->sum->graph, &shard, err);
    if (status != RFX_OK) return status;
    status = note_shard(r, i, &shard, err);
    if (status == RFX_OK) {
        status = rfx_shard_states_merge(&r->sum->made.states, r->sum->graph, &shard, err);
        if (status == RFX_STATUS_MALFORMED)
            status =
                rfx_fail_within(err, status, "states '%.120s' and '%.120s'", path, r->paths[0]);
    }
    rfx_shard_states_release(&shard);
    return status;
}

/* Largest accepted number of shards. A damaged file may contain any number. */
#define MOST_SHARDS 1000000000

/* Adds the other files to the states of the first, and checks that no shard is missing. */
static enum rfx_status add_shards(struct reading *r, struct rfx_error *err) {
    int64_t count = r->sum->made.states.count, missing = 0, first = 0;
    struct rfx_memory *mem = r->sum->made.states.mem;
    if (count < 1 || count > MOST_SHARDS)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s' are merged already",
                        r->paths[0]);
    r->seen = rfx_memory_calloc(mem, (size_t)count, sizeof *r->seen);
    if (r->seen == NULL) return rfx_memory_fail(mem, "parts", (size_t)count, err);
    enum rfx_status status = note_shard(r, 0, &r->sum->made.states, err); /* read already */
    for (int i = 1; i < r->n && status == RFX_OK; i++) status = add_shard(r, i, err);
    if (status != RFX_OK) return status;
    for (int64_t i = count; i > 0; i--)
        if (!r->seen[i - 1]) {
            missing++;
            first = i;
        }
    if (missing == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "beside states '%.200s' %lld of %lld parts are missing, the first one %lld",
                    r->paths[0], (long long)missing, (long long)count, (long long)first);
}

enum rfx_status rfx_shard_sum_read(struct rfx_memory *mem, const char *const *paths, int n,
                                   size_t memory_bytes, struct rfx_shard_sum *out,
                                   struct rfx_error *err) {
    struct rfx_shard_states *all = &out->made.states;
    struct reading r = {.sum = out, .paths = paths, .n = n, .images = json_array()};
    *out = (struct rfx_shard_sum){.made.states.mem = mem};
    enum rfx_status status = rfx_shard_states_peek(mem, paths[0], all, err);
    if (status == RFX_OK)
        status = rfx_shard_states_load_network(mem, all, paths[0], memory_bytes, &out->graph,
                                               &out->k, err);
    if (status == RFX_OK) {
        rfx_shard_states_release(all);
        status = rfx_shard_states_read(paths[0], out->graph, all, err);
    }
    if (status == RFX_OK) status = add_shards(&r, err);
    if (status == RFX_OK) status = rfx_shard_before_settle(&out->made, out->graph, out->k, err);
    rfx_memory_release(mem, r.seen);
    json_decref(r.images);
    all->index = all->count = 0; /* the sum is of all shards */
    json_decref(all->picture);
    all->picture = NULL;
    return status;
}

void rfx_shard_sum_release(struct rfx_shard_sum *sum) {
    rfx_shard_before_release(&sum->made);
    rfx_graph_free(sum->graph);
}

bool rfx_shard_sum_is_last(const struct rfx_shard_sum *sum) {
    return sum->made.rounds.rounds == 0 && !sum->made.rounds.reads_image;
}

enum rfx_status rfx_shard_rest_plan(const struct rfx_shard_sum *sum, size_t output_bytes,
                                    size_t memory_bytes, struct rfx_shard_rest *rest,
                                    struct rfx_error *err) {
    char spec[64];
    const struct rfx_graph *graph = sum->graph;
    const struct rfx_tensor *out = &graph->nodes[graph->outputs[sum->k].node].out;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    struct rfx_image_options options = rfx_image_default_options();
    options.channels = in->c;
    *rest = (struct rfx_shard_rest){0};
    (void)snprintf(spec, sizeof spec, "synthetic:%lldx%lld", (long long)in->h, (long long)in->w);
    enum rfx_status status =
        rfx_part_graph_after(graph, sum->k, sum->made.known, sum->made.states.n,
                             rfx_rect_full(out->h, out->w), &rest->graph, err);
    if (status == RFX_OK) status = rfx_image_open(graph->mem, spec, &options, &rest->image, err);
    if (status != RFX_OK) return status;
    struct rfx_plan_request request = {
        .source = rfx_image_traits(rest->image), .threads = 1, .memory_bytes = memory_bytes};
    request.source.fixed_bytes += output_bytes;
    return rfx_plan_create(rest->graph, &request, &rest->plan, err);
}

void rfx_shard_rest_release(struct rfx_shard_rest *rest) {
    rfx_plan_free(rest->plan);
    rfx_image_free(rest->image);
    rfx_graph_free(rest->graph);
}
