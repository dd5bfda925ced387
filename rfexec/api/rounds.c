/* Rounds of states in the public header: one shard's work in a round, merging, and parts of an
 * output after the last round. The work is done in rfexec/shards; here states are bytes.
 *
 * Invariants: 1. states contain the network, output, round and shards to which they belong, and
 * states that do not match are refused; 2. the nodes that a round computes, and so the pixels that
 * it reads, do not depend on the values of states. */
#include <stdio.h>
#include <string.h>

#include "layers/core/float_env.h"
#include "layers/graph/reduction.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/api/api_support.h"
#include "rfexec/api/job.h"
#include "rfexec/api/network.h"
#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_json.h"
#include "rfexec/shards/shard_rounds.h"
#include "tiler/plan/plan.h"

struct rfx_bytes {
    /* the bytes are in this network's memory; kept until they are freed */
    struct rfx_network *network;
    unsigned char *data;
    size_t size;
};

struct rfx_round {
    struct rfx_network *network; /* kept until the round is freed */
    int k, number, rounds;       /* round `number` of `rounds` of output k */
    int64_t index, count;
    struct rfx_rect image; /* rectangle of the image that is read */
};

const void *rfx_bytes_data(const struct rfx_bytes *bytes) {
    return bytes != NULL ? bytes->data : NULL;
}

size_t rfx_bytes_size(const struct rfx_bytes *bytes) {
    return bytes != NULL ? bytes->size : 0;
}

void rfx_bytes_free(struct rfx_bytes *bytes) {
    if (bytes == NULL) return;
    struct rfx_network *network = bytes->network;
    struct rfx_memory *mem = rfx_network_graph(network)->mem;
    rfx_memory_release(mem, bytes->data);
    rfx_memory_release(mem, bytes);
    rfx_network_free(network);
}

/* Sets *out to the states as bytes. */
static enum rfx_status pack(struct rfx_network *network, const struct rfx_shard_states *states,
                            struct rfx_bytes **out, struct rfx_error *err) {
    struct rfx_graph *graph = rfx_network_graph(network);
    struct rfx_bytes *bytes = rfx_memory_calloc(graph->mem, 1, sizeof *bytes);
    if (bytes == NULL) return rfx_memory_fail(graph->mem, "states", sizeof *bytes, err);
    enum rfx_status status = rfx_shard_states_pack(states, graph, &bytes->data, &bytes->size, err);
    if (status != RFX_OK) {
        rfx_memory_release(graph->mem, bytes);
        return status;
    }
    bytes->network = network;
    rfx_network_keep(network);
    *out = bytes;
    return RFX_OK;
}

/* Checks output k and counts its rounds. UNSUPPORTED: the output cannot be split into shards. */
static enum rfx_status count_rounds(struct rfx_network *network, int k,
                                    struct rfx_part_rounds *rounds, struct rfx_error *err) {
    const struct rfx_graph *graph = rfx_network_graph(network);
    enum rfx_status status = rfx_network_refuse_late(network, err);
    if (status != RFX_OK) return status;
    if (k < 0 || k >= graph->n_outputs)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "output %d of %d does not exist", k,
                        graph->n_outputs);
    if (rfx_network_is_part(network))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "a part of an output has no rounds: they are of the whole network");
    status = rfx_part_graph_rounds(graph, k, NULL, 0, rounds, err);
    return status == RFX_OK ? rfx_shard_rounds_check(graph, k, rounds, err) : status;
}

enum rfx_code rfx_network_rounds(struct rfx_network *network, int k, int *rounds,
                                 struct rfx_why *why) {
    struct rfx_error err = {{0}};
    struct rfx_part_rounds all;
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(rounds, "rounds", &err);
    if (status == RFX_OK) status = count_rounds(network, k, &all, &err);
    if (status == RFX_OK) *rounds = all.rounds;
    return rfx_api_result(status, &err, why);
}

/* Zeros in place of the results of global operations (mean over the whole map, and the like). Which
 * pixels a round reads does not depend on the results (invariant 2). */
struct stand_ins {
    struct rfx_memory *mem;
    int n;
    struct rfx_part_known *known; /* owned */
    float *zeros; /* as long as the largest result; all of `known` share them; owned */
};

static void release_stand_ins(struct stand_ins *s) {
    rfx_memory_release(s->mem, s->known);
    rfx_memory_release(s->mem, s->zeros);
}

/* Sets *out to zeros for all global operations that the first `rounds` rounds complete. The caller
 * releases *out, whatever the status. */
static enum rfx_status list_stand_ins(const struct rfx_graph *graph, int k, int rounds,
                                      struct stand_ins *out, struct rfx_error *err) {
    size_t n = (size_t)graph->n_nodes, elems = 1;
    *out = (struct stand_ins){.mem = graph->mem};
    for (int i = 0; i < graph->n_nodes; i++)
        if (rfx_node_reduction(&graph->nodes[i]) != NULL &&
            (size_t)graph->nodes[i].out.elems > elems)
            elems = (size_t)graph->nodes[i].out.elems;
    out->known = rfx_memory_calloc(graph->mem, n, sizeof *out->known);
    out->zeros = rfx_memory_calloc(graph->mem, elems, sizeof *out->zeros);
    if (out->known == NULL || out->zeros == NULL)
        return rfx_memory_fail(graph->mem, "rounds", n * sizeof *out->known, err);
    for (int r = 0; r < rounds; r++) {
        struct rfx_graph *round;
        enum rfx_status status =
            rfx_part_graph_states(graph, k, out->known, out->n, RFX_PART_OUTER, 0, 1, &round, err);
        if (status != RFX_OK) return status;
        for (int i = 0; i < round->n_outputs; i++)
            out->known[out->n++] = (struct rfx_part_known){round->outputs[i].node, out->zeros};
        rfx_graph_free(round);
    }
    return RFX_OK;
}

/* Sets round->image to the rectangle of the image that the shard reads. */
static enum rfx_status find_image(struct rfx_round *round, struct rfx_error *err) {
    const struct rfx_graph *graph = rfx_network_graph(round->network);
    struct stand_ins before;
    struct rfx_graph *shard;
    enum rfx_status status = list_stand_ins(graph, round->k, round->number - 1, &before, err);
    if (status == RFX_OK)
        status = rfx_part_graph_states(graph, round->k, before.known, before.n, RFX_PART_OUTER,
                                       round->index - 1, round->count, &shard, err);
    release_stand_ins(&before);
    if (status != RFX_OK) return status;
    round->image = rfx_part_graph_image(shard);
    rfx_graph_free(shard);
    return RFX_OK;
}

/* rfx_round_open after the checks for NULL. */
static enum rfx_status open_round(struct rfx_network *network, int k, int number, int64_t index,
                                  int64_t count, struct rfx_round **out, struct rfx_error *err) {
    struct rfx_graph *graph = rfx_network_graph(network);
    struct rfx_part_rounds all;
    enum rfx_status status = count_rounds(network, k, &all, err);
    if (status != RFX_OK) return status;
    if (number < 1 || number > all.rounds)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "round %d: output '%.200s' has %d rounds",
                        number, graph->outputs[k].name, all.rounds);
    if (index < 1 || index > count)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "shard %lld of %lld: shards are counted from 1", (long long)index,
                        (long long)count);
    struct rfx_round *round = rfx_memory_calloc(graph->mem, 1, sizeof *round);
    if (round == NULL) return rfx_memory_fail(graph->mem, "round", sizeof *round, err);
    *round = (struct rfx_round){.network = network,
                                .k = k,
                                .number = number,
                                .rounds = all.rounds,
                                .index = index,
                                .count = count};
    status = find_image(round, err);
    if (status != RFX_OK) {
        rfx_memory_release(graph->mem, round);
        return status;
    }
    rfx_network_keep(network);
    *out = round;
    return RFX_OK;
}

enum rfx_code rfx_round_open(struct rfx_network *network, int k, int number, int64_t index,
                             int64_t count, struct rfx_round **out, struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) status = open_round(network, k, number, index, count, out, &err);
    return rfx_api_result(status, &err, why);
}

void rfx_round_free(struct rfx_round *round) {
    if (round == NULL) return;
    struct rfx_network *network = round->network;
    rfx_memory_release(rfx_network_graph(network)->mem, round);
    rfx_network_free(network);
}

static void write_area(const struct rfx_network *network, struct rfx_rect rect,
                       struct rfx_area *area) {
    int64_t dims[4];
    rfx_network_input_shape(network, dims);
    *area = (struct rfx_area){.row = rect.y0,
                              .column = rect.x0,
                              .rows = rfx_rect_rows(rect),
                              .columns = rfx_rect_cols(rect),
                              .channels = dims[1]};
}

void rfx_round_input_area(const struct rfx_round *round, struct rfx_area *area) {
    if (area == NULL) return;
    *area = (struct rfx_area){0};
    if (round != NULL) write_area(round->network, round->image, area);
}

/* Computes the identity of the network, on which states depend. *out is a new reference. */
static enum rfx_status identify(struct rfx_network *network, json_t **out, struct rfx_error *err) {
    return rfx_shard_network_identity(rfx_network_graph(network), rfx_network_fit(network),
                                      rfx_network_hash(network), out, err);
}

/* Reads states of this network. The caller releases *out after success. */
static enum rfx_status read_states(struct rfx_network *network, const void *bytes, size_t n_bytes,
                                   struct rfx_shard_states *out, struct rfx_error *err) {
    json_t *identity = NULL;
    if (bytes == NULL) return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "no states are given");
    enum rfx_status status = identify(network, &identity, err);
    if (status == RFX_OK)
        status =
            rfx_shard_states_unpack(rfx_network_graph(network), identity, bytes, n_bytes, out, err);
    json_decref(identity);
    if (status != RFX_OK || json_is_array(out->picture)) return status;
    rfx_shard_states_release(out);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "the states do not say which rows of the image they are of");
}

/* Reads the merged states of round `done` of the `rounds` rounds of output k. If `done` is 0, no
 * states may be given. The caller releases *before, whatever the status. */
static enum rfx_status read_before(struct rfx_network *network, int k, int done, int rounds,
                                   const void *bytes, size_t n_bytes,
                                   struct rfx_shard_before *before, struct rfx_error *err) {
    const struct rfx_graph *graph = rfx_network_graph(network);
    struct rfx_shard_states *states = &before->states;
    *before = (struct rfx_shard_before){.states.mem = graph->mem};
    enum rfx_status status = RFX_OK;
    if (done == 0 && n_bytes != 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "states are given, but there is no round before");
    if (done > 0 && bytes == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the merged states of round %d of output '%.200s' are needed", done,
                        graph->outputs[k].name);
    if (done > 0) status = read_states(network, bytes, n_bytes, states, err);
    if (status != RFX_OK) return status;
    if (done > 0 && strncmp(states->output, graph->outputs[k].name, sizeof states->output - 1) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "the states are of output '%s', not of '%.200s'",
                        states->output, graph->outputs[k].name);
    if (states->round != done)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "the states are of round %d; those of round %d are needed", states->round,
                        done);
    if (states->count != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "the states are of some of %lld shards: merge those of all of them first",
                        (long long)states->count);
    status = rfx_shard_before_settle(before, graph, k, err);
    if (status != RFX_OK || before->rounds.rounds == rounds - done) return status;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "the states of round %d are not those of all its operations", done);
}

/* Returns the first row of the image that has another checksum in this shard than in an earlier
 * round; -1 when there is none. */
static int64_t find_other_row(const struct rfx_shard_states *before,
                              const struct rfx_shard_states *states) {
    int64_t row;
    for (size_t i = 0; i < json_array_size(before->picture); i++)
        if (!rfx_shard_image_agrees(json_array_get(before->picture, i),
                                    json_array_get(states->picture, 0), &row))
            return row;
    return -1;
}

/* Sets the output, round, shard and network of the states. */
static enum rfx_status describe(const struct rfx_round *round, struct rfx_shard_states *states,
                                struct rfx_error *err) {
    const struct rfx_graph *graph = rfx_network_graph(round->network);
    *states = (struct rfx_shard_states){
        .mem = graph->mem, .round = round->number, .index = round->index, .count = round->count};
    (void)snprintf(states->output, sizeof states->output, "%s", graph->outputs[round->k].name);
    return identify(round->network, &states->run, err);
}

/* Stores the checksums of the image rows that were read, and compares them with the earlier rounds.
 */
static enum rfx_status note_image(const struct rfx_shard_before *before,
                                  const struct rfx_shard_round *planned,
                                  struct rfx_shard_states *states, struct rfx_error *err) {
    json_t *image = rfx_shard_image_json("", rfx_part_graph_image(planned->graph), planned->sums);
    states->picture = image != NULL ? json_pack("[o]", image) : NULL;
    if (states->picture == NULL)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "no memory for states");
    int64_t row = find_other_row(&before->states, states);
    if (row < 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "row %lld of the image is not the one that an earlier round has read",
                    (long long)row);
}

/* Plans the shard's work in the round, within the budget of the job. */
static enum rfx_status plan(const struct rfx_round *round, const struct rfx_job *job,
                            size_t bytes_before, const struct rfx_shard_before *before,
                            struct rfx_shard_states *states, struct rfx_shard_round *planned,
                            struct rfx_error *err) {
    struct rfx_plan_request request = {.source = job->traits,
                                       .threads = job->options.threads,
                                       .memory_bytes = job->options.memory_bytes,
                                       .caches = rfx_machine_caches()};
    request.source.fixed_bytes +=
        bytes_before; /* checksums of the image rows that were read before */
    if (job->files.n > 0 || job->options.plan_file != NULL || job->options.mask != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "a round has no outputs and no plan file: `files`, `plan_file` and `mask` "
                        "must be empty");
    return rfx_shard_round_plan(job->graph, &request, round->k, before, NULL, states, planned, err);
}

/* Runs the round on the image file `picture`, or on the source when `picture` is NULL. */
static enum rfx_status run_round(const struct rfx_round *round, struct rfx_job *job,
                                 const void *bytes, size_t n_bytes, const char *picture,
                                 const struct rfx_source *source, struct rfx_bytes **out,
                                 struct rfx_error *err) {
    static const float nothing;
    struct rfx_shard_before before;
    struct rfx_shard_states states = {.mem = job->mem};
    struct rfx_shard_round planned = {0};
    bool reads = !rfx_rect_is_empty(round->image);
    enum rfx_status status = read_before(round->network, round->k, round->number - 1, round->rounds,
                                         bytes, n_bytes, &before, err);
    if (status == RFX_OK) status = describe(round, &states, err);
    if (status == RFX_OK)
        status = picture != NULL           ? rfx_job_use_picture(job, picture, err)
                 : source != NULL || reads ? rfx_job_use_source(job, source, err)
                                           : rfx_job_use_values(job, &nothing, err);
    if (status == RFX_OK) status = plan(round, job, n_bytes, &before, &states, &planned, err);
    if (status == RFX_OK) {
        const struct rfx_state_sink sink = rfx_shard_round_sink(&states);
        job->graph = planned.graph;
        job->states = &sink;
        job->sums = planned.sums;
        rfx_job_follow(job, planned.plan, NULL);
        status = rfx_job_prepare(job, err);
        if (status == RFX_OK) status = rfx_job_execute(job, err);
        job->states = NULL;
    }
    if (status == RFX_OK) status = note_image(&before, &planned, &states, err);
    rfx_run_release(&job->run); /* frees memory before the states are copied */
    if (status == RFX_OK) status = pack(round->network, &states, out, err);
    status = rfx_memory_settle(job->mem, status, err);
    rfx_shard_states_release(&states);
    rfx_shard_before_release(&before);
    rfx_job_close(job);
    rfx_shard_round_release(&planned);
    return status;
}

static enum rfx_code run(struct rfx_round *round, const void *states, size_t n_bytes,
                         const char *picture, const struct rfx_source *source,
                         const struct rfx_run_options *options, struct rfx_bytes **out,
                         struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_job job = {0};
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(round, "round", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    const struct rfx_graph *graph = rfx_network_graph(round->network);
    status = rfx_job_open(&job, graph, graph->mem, options, &err);
    if (status == RFX_OK)
        status = run_round(round, &job, states, n_bytes, picture, source, out, &err);
    else
        rfx_job_close(&job);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_round_run_file(struct rfx_round *round, const void *states, size_t n_bytes,
                                 const char *picture, const struct rfx_run_options *options,
                                 struct rfx_bytes **out, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(picture, "picture", &err);
    if (status != RFX_OK) return rfx_api_result(status, &err, why);
    return run(round, states, n_bytes, picture, NULL, options, out, why);
}

enum rfx_code rfx_round_run_source(struct rfx_round *round, const void *states, size_t n_bytes,
                                   const struct rfx_source *source,
                                   const struct rfx_run_options *options, struct rfx_bytes **out,
                                   struct rfx_why *why) {
    return run(round, states, n_bytes, NULL, source, options, out, why);
}

/* A set of shards as ranges [lo, hi), ascending and not adjacent. */
struct shard_set {
    struct rfx_memory *mem;
    int n;
    struct rfx_range *items; /* owned */
};

/* Reads the set of shards whose states were added up. The array has memory for `more` further
 * ranges. MALFORMED: the states of all shards are merged already, or the list is not valid. */
static enum rfx_status read_set(const struct rfx_shard_states *states, int more,
                                struct shard_set *out, struct rfx_error *err) {
    size_t n = states->shards != NULL ? json_array_size(states->shards) : 1;
    *out = (struct shard_set){.mem = states->mem};
    if (states->count == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "the states of all shards are merged already: there are no others to add");
    out->items = rfx_memory_calloc(states->mem, n + (size_t)more + 1, sizeof *out->items);
    if (out->items == NULL) return rfx_memory_fail(states->mem, "shards", n, err);
    int64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(states->shards, i);
        bool one = states->shards == NULL;
        struct rfx_range *item = &out->items[i];
        item->lo = one ? states->index : json_integer_value(json_array_get(pair, 0));
        item->hi = one ? states->index : json_integer_value(json_array_get(pair, 1));
        if (item->lo <= end || item->hi < item->lo || item->hi > states->count)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "states: their list of shards is not valid");
        end = item->hi++;
    }
    out->n = (int)n;
    return RFX_OK;
}

/* Adds the shards of `b` to `a`, whose array is large enough. MALFORMED: a shard is in both. */
static enum rfx_status unite(struct shard_set *a, const struct shard_set *b, int64_t count,
                             struct rfx_error *err) {
    for (int i = 0; i < b->n; i++) {
        int at = a->n++;
        for (; at > 0 && a->items[at - 1].lo > b->items[i].lo; at--)
            a->items[at] = a->items[at - 1];
        a->items[at] = b->items[i];
    }
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        struct rfx_range item = a->items[i];
        if (n > 0 && item.lo < a->items[n - 1].hi)
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "states of shard %lld of %lld are there twice", (long long)item.lo,
                            (long long)count);
        if (n > 0 && item.lo == a->items[n - 1].hi)
            a->items[n - 1].hi = item.hi;
        else
            a->items[n++] = item;
    }
    a->n = n;
    return RFX_OK;
}

/* Stores which shards the states include: index 0 and count 0 for all shards, else index and
 * `shards`. */
static enum rfx_status write_set(struct rfx_shard_states *states, const struct shard_set *set,
                                 struct rfx_error *err) {
    json_decref(states->shards);
    states->shards = NULL;
    states->index = set->items[0].lo;
    if (set->n == 1 && set->items[0].lo == 1 && set->items[0].hi == states->count + 1) {
        states->index = states->count = 0;
        return RFX_OK;
    }
    states->shards = json_array();
    for (int i = 0; i < set->n; i++)
        if (json_array_append_new(states->shards, json_pack("[I,I]", (json_int_t)set->items[i].lo,
                                                            (json_int_t)set->items[i].hi - 1)) != 0)
            return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "no memory for states");
    return RFX_OK;
}

/* Adds the shards of `other` to those of `all`. MALFORMED: a shard is in both. */
static enum rfx_status merge_sets(struct rfx_shard_states *all,
                                  const struct rfx_shard_states *other, struct rfx_error *err) {
    struct shard_set a = {0}, b = {0};
    enum rfx_status status = read_set(other, 0, &b, err);
    if (status == RFX_OK) status = read_set(all, b.n, &a, err);
    if (status == RFX_OK) status = unite(&a, &b, all->count, err);
    if (status == RFX_OK) status = write_set(all, &a, err);
    if (a.items != NULL) rfx_memory_release(a.mem, a.items);
    if (b.items != NULL) rfx_memory_release(b.mem, b.items);
    return status;
}

/* Checks that rows of the image that were read for both are equal, and adds the checksums of
 * `other` to `all`. */
static enum rfx_status merge_images(struct rfx_shard_states *all,
                                    const struct rfx_shard_states *other, struct rfx_error *err) {
    size_t n_a = json_array_size(all->picture), n_b = json_array_size(other->picture);
    int64_t row;
    for (size_t i = 0; i < n_a * n_b; i++)
        if (!rfx_shard_image_agrees(json_array_get(all->picture, i / n_b),
                                    json_array_get(other->picture, i % n_b), &row))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "the shards have not read one image: row %lld differs", (long long)row);
    if (n_b == 0 || json_array_extend(all->picture, other->picture) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "no memory for states");
}

/* Reads states and adds them to `all`. */
static enum rfx_status add_states(struct rfx_network *network, const void *bytes, size_t n_bytes,
                                  struct rfx_shard_states *all, struct rfx_error *err) {
    struct rfx_shard_states other;
    enum rfx_status status = read_states(network, bytes, n_bytes, &other, err);
    if (status != RFX_OK) return status;
    if (strcmp(all->output, other.output) != 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "states of output '%s' and of output '%s'",
                          all->output, other.output);
    int64_t count = all->count;
    if (status == RFX_OK && (all->round != other.round || count != other.count))
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "states of round %d of %lld shards and of round %d of %lld shards",
                          all->round, (long long)count, other.round, (long long)other.count);
    if (status == RFX_OK) status = merge_images(all, &other, err);
    if (status == RFX_OK)
        status = rfx_shard_states_merge(all, rfx_network_graph(network), &other, err);
    if (status == RFX_OK) status = merge_sets(all, &other, err);
    rfx_shard_states_release(&other);
    return status;
}

/* rfx_network_merge_states after the checks for NULL. */
static enum rfx_status merge(struct rfx_network *network, const void *const *states,
                             const size_t *n_bytes, int n, struct rfx_bytes **out,
                             struct rfx_error *err) {
    struct rfx_shard_states all;
    if (n < 1) return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%d states to merge", n);
    enum rfx_status status = read_states(network, states[0], n_bytes[0], &all, err);
    if (status != RFX_OK) return status;
    for (int i = 1; i < n && status == RFX_OK; i++)
        status = add_states(network, states[i], n_bytes[i], &all, err);
    if (status == RFX_OK && n == 1 && all.count == 1) /* the only shard is the whole set */
        all.index = all.count = 0;
    if (status == RFX_OK) status = pack(network, &all, out, err);
    rfx_shard_states_release(&all);
    return status;
}

enum rfx_code rfx_network_merge_states(struct rfx_network *network, const void *const *states,
                                       const size_t *n_bytes, int n, struct rfx_bytes **out,
                                       struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(states, "states", &err);
    if (status == RFX_OK) status = rfx_api_need(n_bytes, "n_bytes", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) status = merge(network, states, n_bytes, n, out, &err);
    return rfx_api_result(status, &err, why);
}

/* Sets *out to the rectangle `part` of output k; NULL: the whole output. INVALID_ARGUMENT: a
 * rectangle of an output that is no map. */
static enum rfx_status read_part(const struct rfx_network *network, int k,
                                 const struct rfx_area *part, struct rfx_rect *out,
                                 struct rfx_error *err) {
    const struct rfx_graph *graph = rfx_network_graph_of(network);
    const struct rfx_tensor *t = &graph->nodes[graph->outputs[k].node].out;
    *out = rfx_rect_full(t->h, t->w);
    if (part == NULL) return RFX_OK;
    if (t->layout != RFX_LAYOUT_NHWC)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "output '%.200s' is no map: it is made as a whole", graph->outputs[k].name);
    return rfx_network_read_part(network, k, part, out, err);
}

/* rfx_network_open_part_after after the checks for NULL. */
static enum rfx_status open_part(struct rfx_network *network, int k, const struct rfx_area *part,
                                 const void *states, size_t n_bytes, struct rfx_network **out,
                                 struct rfx_error *err) {
    struct rfx_shard_before before = {0};
    struct rfx_part_rounds all;
    struct rfx_graph *graph = NULL;
    struct rfx_rect rect;
    enum rfx_status status = count_rounds(network, k, &all, err);
    if (status == RFX_OK) status = read_part(network, k, part, &rect, err);
    if (status == RFX_OK)
        status = read_before(network, k, all.rounds, all.rounds, states, n_bytes, &before, err);
    if (status == RFX_OK)
        status = rfx_part_graph_after(rfx_network_graph(network), k, before.known, before.states.n,
                                      rect, &graph, err);
    rfx_shard_before_release(&before);
    return status == RFX_OK ? rfx_network_of_graph(network, graph, out, err) : status;
}

enum rfx_code rfx_network_open_part_after(struct rfx_network *network, int k,
                                          const struct rfx_area *part, const void *states,
                                          size_t n_bytes, struct rfx_network **out,
                                          struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK) status = open_part(network, k, part, states, n_bytes, out, &err);
    return rfx_api_result(status, &err, why);
}

/* rfx_network_part_area_after after the checks for NULL. */
static enum rfx_status find_part_area(struct rfx_network *network, int k,
                                      const struct rfx_area *part, struct rfx_area *area,
                                      struct rfx_error *err) {
    const struct rfx_graph *graph = rfx_network_graph(network);
    struct rfx_part_rounds all;
    struct stand_ins before = {.mem = graph->mem};
    struct rfx_graph *rest;
    struct rfx_rect rect;
    enum rfx_status status = count_rounds(network, k, &all, err);
    if (status == RFX_OK) status = read_part(network, k, part, &rect, err);
    if (status == RFX_OK) status = list_stand_ins(graph, k, all.rounds, &before, err);
    if (status == RFX_OK)
        status = rfx_part_graph_after(graph, k, before.known, before.n, rect, &rest, err);
    release_stand_ins(&before);
    if (status != RFX_OK) return status;
    write_area(network, rfx_part_graph_image(rest), area);
    rfx_graph_free(rest);
    return RFX_OK;
}

enum rfx_code rfx_network_part_area_after(struct rfx_network *network, int k,
                                          const struct rfx_area *part, struct rfx_area *area,
                                          struct rfx_why *why) {
    RFX_DEFAULT_FLOAT_ENV;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_api_need(network, "network", &err);
    if (status == RFX_OK) status = rfx_api_need(area, "area", &err);
    if (status == RFX_OK) status = find_part_area(network, k, part, area, &err);
    return rfx_api_result(status, &err, why);
}
