/* Mergeable states in memory and in files; see shard_states.h. */
#include "rfexec/shards/shard_states.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Inlined, as in the fingerprints of outputs. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "layers/graph/op.h"
#include "layers/graph/reduction.h"
#include "rfexec/output/output_file.h"
#include "rfexec/shards/shard_json.h"
#include "rfexec/shards/shard_network.h"

#define STATES_FORMAT "rfexec states"
#define STATES_VERSION 2
#define MOST_STATES 65536

void rfx_shard_states_release(struct rfx_shard_states *states) {
    for (int i = 0; i < states->n; i++) rfx_memory_release(states->mem, states->items[i].state);
    if (states->mem != NULL) rfx_memory_release(states->mem, states->items);
    json_decref(states->run);
    json_decref(states->about);
    json_decref(states->picture);
    json_decref(states->shards);
    *states = (struct rfx_shard_states){.mem = states->mem};
}

static bool has_format(const json_t *document) {
    const char *format = json_string_value(json_object_get(document, "format"));
    return format != NULL && strcmp(format, STATES_FORMAT) == 0;
}

bool rfx_shard_states_is_file(const char *path) {
    json_t *document = NULL;
    bool is = rfx_shard_json_load("part", path, &document, NULL) == RFX_OK && has_format(document);
    json_decref(document);
    return is;
}

void *rfx_shard_states_add(struct rfx_shard_states *states, const struct rfx_graph *graph, int node,
                           int round) {
    const struct rfx_node *of = &graph->nodes[node];
    size_t bytes = rfx_node_reduction(of)->state_bytes(of), n = (size_t)states->n + 1;
    struct rfx_shard_state *grown =
        rfx_memory_realloc(states->mem, states->items, n * sizeof *states->items);
    if (grown == NULL) return NULL;
    states->items = grown;
    void *state = rfx_memory_calloc(states->mem, 1, bytes);
    if (state == NULL) return NULL;
    states->items[states->n++] = (struct rfx_shard_state){node, round, bytes, state};
    return state;
}

static void write_hex(const XXH3_state_t *hash, char hex[RFX_FINGERPRINT_CHARS]) {
    XXH128_hash_t sum = XXH3_128bits_digest(hash);
    rfx_shard_json_hash(sum.high64, sum.low64, hex);
}

void rfx_shard_states_hash(const struct rfx_shard_states *states, char hex[RFX_FINGERPRINT_CHARS]) {
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    (void)XXH3_128bits_reset(&hash);
    for (int i = 0; i < states->n; i++)
        (void)XXH3_128bits_update(&hash, states->items[i].state, states->items[i].bytes);
    write_hex(&hash, hex);
}

/* Writes the states, without the JSON file. */
static enum rfx_status write_states(const char *path, const struct rfx_shard_states *states,
                                    struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    enum rfx_status status = rfx_output_file_open(states->mem, path, &file, err);
    for (int i = 0; i < states->n && status == RFX_OK; i++)
        status = rfx_output_file_append(file, states->items[i].state, states->items[i].bytes, err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    return status;
}

static json_t *list_json(const struct rfx_graph *graph, const struct rfx_shard_states *states) {
    json_t *list = json_array();
    for (int i = 0; i < states->n; i++)
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:i, s:I}", "node", graph->nodes[states->items[i].node].name, "round",
                      states->items[i].round, "bytes", (json_int_t)states->items[i].bytes));
    return list;
}

/* Returns a new JSON document that describes the states; NULL: no memory. */
static json_t *states_json(const struct rfx_graph *graph, const struct rfx_shard_states *states) {
    char hash[RFX_FINGERPRINT_CHARS];
    rfx_shard_states_hash(states, hash);
    return json_pack("{s:s, s:i, s:O, s:s, s:i, s:[I,I], s:o, s:s, s:O*, s:O*, s:O*}", "format",
                     STATES_FORMAT, "version", STATES_VERSION, "run", states->run, "output",
                     states->output, "round", states->round, "part", (json_int_t)states->index,
                     (json_int_t)states->count, "states", list_json(graph, states), "hash", hash,
                     "about", states->about, "picture", states->picture, "shards", states->shards);
}

enum rfx_status rfx_shard_states_write(const char *path, const struct rfx_graph *graph,
                                       const struct rfx_shard_states *states,
                                       struct rfx_error *err) {
    json_t *document = states_json(graph, states);
    /* The JSON file comes first, so that a file of states that has its name is complete. */
    enum rfx_status status = rfx_shard_json_write(states->mem, path, document, "", err);
    if (status == RFX_OK) status = write_states(path, states, err);
    json_decref(document);
    return status;
}

/* Reads all members except the list of states. Returns the name of the first member that is wrong,
 * or NULL. */
static const char *read_members(const json_t *document, struct rfx_shard_states *states) {
    const char *output = json_string_value(json_object_get(document, "output"));
    const json_t *shard = json_object_get(document, "part");
    if (!has_format(document)) return "format";
    if (json_integer_value(json_object_get(document, "version")) != STATES_VERSION)
        return "version";
    if (output == NULL || strlen(output) >= sizeof states->output) return "output";
    memcpy(states->output, output, strlen(output) + 1);
    json_int_t round = json_integer_value(json_object_get(document, "round"));
    if (round < 1 || round > MOST_STATES) return "round";
    states->round = (int)round;
    states->index = json_integer_value(json_array_get(shard, 0));
    states->count = json_integer_value(json_array_get(shard, 1));
    if (json_array_size(shard) != 2 || states->index < 0 || states->index > states->count ||
        (states->index == 0) != (states->count == 0))
        return "part";
    states->run = json_object_get(document, "run");
    if (!json_is_object(states->run)) {
        states->run = NULL;
        return "run";
    }
    json_incref(states->run);
    states->about = json_incref(json_object_get(document, "about"));
    states->picture = json_incref(json_object_get(document, "picture"));
    states->shards = json_incref(json_object_get(document, "shards"));
    return rfx_shard_json_is_sealed(document) ? NULL : "sum";
}

/* Reads and checks the JSON file, except the list of states. The caller frees *document. */
static enum rfx_status peek(const char *path, struct rfx_shard_states *states, json_t **document,
                            struct rfx_error *err) {
    enum rfx_status status = rfx_shard_json_load("states", path, document, err);
    const char *wrong = status == RFX_OK ? read_members(*document, states) : NULL;
    if (status == RFX_OK && wrong == NULL && states->shards != NULL) wrong = "part";
    if (wrong != NULL && strcmp(wrong, "sum") == 0)
        status = rfx_fail(
            err, RFX_STATUS_MALFORMED,
            "%.300s.json was changed since the states were made: its checksum 'sum' does not match",
            path);
    else if (wrong != NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s.json: '%s' is missing or not valid",
                          path, wrong);
    return status;
}

enum rfx_status rfx_shard_states_peek(struct rfx_memory *mem, const char *path,
                                      struct rfx_shard_states *states, struct rfx_error *err) {
    json_t *document = NULL;
    struct rfx_shard_states read = {.mem = mem};
    enum rfx_status status = peek(path, &read, &document, err);
    json_decref(document);
    if (status == RFX_OK)
        *states = read;
    else
        rfx_shard_states_release(&read);
    return status;
}

/* Writes the hash of an open file to `hex`. Sets *bytes to the length of the file. */
static enum rfx_status hash_file(FILE *file, const char *path, char hex[RFX_FINGERPRINT_CHARS],
                                 uint64_t *bytes, struct rfx_error *err) {
    unsigned char chunk[4096];
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    (void)XXH3_128bits_reset(&hash);
    *bytes = 0;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0; *bytes += n)
        (void)XXH3_128bits_update(&hash, chunk, n);
    if (ferror(file) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "states '%.200s': %s", path, strerror(errno));
    write_hex(&hash, hex);
    return RFX_OK;
}

enum rfx_status rfx_shard_states_check(const char *path, struct rfx_error *err) {
    struct rfx_shard_states read = {.mem = NULL};
    json_t *document = NULL;
    char hash[RFX_FINGERPRINT_CHARS];
    uint64_t bytes = 0, wanted = 0;
    enum rfx_status status = peek(path, &read, &document, err);
    FILE *file = status == RFX_OK ? fopen(path, "rbe") : NULL;
    if (status == RFX_OK && file == NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s': %s", path, strerror(errno));
    if (status == RFX_OK) status = hash_file(file, path, hash, &bytes, err);
    const json_t *list = json_object_get(document, "states");
    for (size_t i = 0; i < json_array_size(list); i++)
        wanted += (uint64_t)json_integer_value(json_object_get(json_array_get(list, i), "bytes"));
    const char *given = json_string_value(json_object_get(document, "hash"));
    if (status == RFX_OK && (given == NULL || bytes != wanted || strcmp(hash, given) != 0))
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "states '%.200s' were changed since they were made, or cut off", path);
    if (file != NULL) (void)fclose(file);
    json_decref(document);
    rfx_shard_states_release(&read);
    return status;
}

/* Reads the states that the document lists from the file, and checks their hash. path: name of the
 * file for messages. */
static enum rfx_status read_list(FILE *file, const char *path, const json_t *document,
                                 const struct rfx_graph *graph, struct rfx_shard_states *states,
                                 struct rfx_error *err) {
    const json_t *list = json_object_get(document, "states");
    const char *wanted = json_string_value(json_object_get(document, "hash"));
    enum rfx_status status = RFX_OK;
    char hash[RFX_FINGERPRINT_CHARS];
    for (size_t i = 0; i < json_array_size(list) && status == RFX_OK; i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(item, "node"));
        int node = name == NULL ? -1 : rfx_graph_find(graph, name);
        bool ours = node >= 0 && rfx_node_reduction(&graph->nodes[node]) != NULL;
        int64_t round = json_integer_value(json_object_get(item, "round"));
        for (int k = 0; ours && k < states->n; k++) ours = states->items[k].node != node;
        if (!ours || round < 1 || round > states->round) {
            status = rfx_fail(
                err, RFX_STATUS_MALFORMED,
                "states '%.200s': '%.100s' is not a reduction of the network, or is listed "
                "twice",
                path, name == NULL ? "" : name);
            break;
        }
        void *state = rfx_shard_states_add(states, graph, node, (int)round);
        size_t bytes = state == NULL ? 0 : states->items[states->n - 1].bytes;
        if (state == NULL)
            status = rfx_memory_fail(states->mem, path, bytes, err);
        else if (json_integer_value(json_object_get(item, "bytes")) != (json_int_t)bytes ||
                 fread(state, 1, bytes, file) != bytes)
            status = rfx_fail(err, RFX_STATUS_MALFORMED,
                              "states '%.200s': the state of '%.100s' does not have %zu bytes",
                              path, name, bytes);
        else if (!rfx_node_reduction(&graph->nodes[node])->is_sound(&graph->nodes[node], state))
            status = rfx_fail(err, RFX_STATUS_MALFORMED,
                              "states '%.200s': the state of '%.100s' is not valid", path, name);
    }
    if (status == RFX_OK && fgetc(file) != EOF)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "states '%.200s': the file is longer than its JSON says", path);
    if (status != RFX_OK) return status;
    rfx_shard_states_hash(states, hash);
    if (wanted != NULL && strcmp(hash, wanted) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s' were changed since they were made",
                    path);
}

enum rfx_status rfx_shard_states_read(const char *path, const struct rfx_graph *graph,
                                      struct rfx_shard_states *states, struct rfx_error *err) {
    json_t *document = NULL;
    struct rfx_shard_states read = {.mem = graph->mem};
    enum rfx_status status = peek(path, &read, &document, err);
    FILE *file = status == RFX_OK ? fopen(path, "rb") : NULL;
    if (status == RFX_OK && file == NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s': there is no file", path);
    if (status == RFX_OK) status = read_list(file, path, document, graph, &read, err);
    if (file != NULL) (void)fclose(file);
    json_decref(document);
    if (status == RFX_OK)
        *states = read;
    else
        rfx_shard_states_release(&read);
    return status;
}

enum rfx_status rfx_shard_states_pack(const struct rfx_shard_states *states,
                                      const struct rfx_graph *graph, unsigned char **out,
                                      size_t *n_bytes, struct rfx_error *err) {
    json_t *document = states_json(graph, states);
    char *text = document != NULL && rfx_shard_json_seal(document)
                     ? json_dumps(document, JSON_COMPACT)
                     : NULL;
    size_t used = text != NULL ? strlen(text) + 1 : 0, all = used;
    json_decref(document);
    if (text == NULL) return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "no memory for states");
    for (int i = 0; i < states->n; i++) all += states->items[i].bytes;
    unsigned char *bytes = rfx_memory_alloc(states->mem, all);
    if (bytes != NULL) memcpy(bytes, text, used);
    free(text);
    if (bytes == NULL) return rfx_memory_fail(states->mem, "states", all, err);
    for (int i = 0; i < states->n; used += states->items[i++].bytes)
        memcpy(bytes + used, states->items[i].state, states->items[i].bytes);
    *out = bytes;
    *n_bytes = all;
    return RFX_OK;
}

/* rfx_shard_states_unpack without cleaning up on failure. */
static enum rfx_status unpack(const struct rfx_graph *graph, const json_t *run, const void *bytes,
                              size_t n_bytes, struct rfx_shard_states *states,
                              struct rfx_error *err) {
    static const char name[] = "in memory";
    union {
        const void *in;
        void *out;
    } block = {bytes};
    const char *end = n_bytes > 0 ? memchr(bytes, '\0', n_bytes) : NULL;
    size_t text = end != NULL ? (size_t)(end - (const char *)bytes) : n_bytes, rest = text + 1;
    json_t *document =
        rest < n_bytes ? json_loadb(bytes, text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (document == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%zu bytes that are no states", n_bytes);
    const char *wrong = read_members(document, states);
    enum rfx_status status = RFX_OK;
    if (wrong != NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "states: '%s' is missing or not valid, or the bytes were changed", wrong);
    else if (!json_equal(run, states->run))
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "the states are of another network, image size, arithmetic or version");
    FILE *file = status == RFX_OK ? fmemopen((char *)block.out + rest, n_bytes - rest, "rb") : NULL;
    if (status == RFX_OK && file == NULL)
        status = rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "no memory for states");
    if (status == RFX_OK) status = read_list(file, name, document, graph, states, err);
    if (file != NULL) (void)fclose(file);
    json_decref(document);
    return status;
}

enum rfx_status rfx_shard_states_unpack(const struct rfx_graph *graph, const json_t *run,
                                        const void *bytes, size_t n_bytes,
                                        struct rfx_shard_states *states, struct rfx_error *err) {
    struct rfx_shard_states read = {.mem = graph->mem};
    enum rfx_status status = unpack(graph, run, bytes, n_bytes, &read, err);
    if (status == RFX_OK)
        *states = read;
    else
        rfx_shard_states_release(&read);
    return status;
}

enum rfx_status rfx_shard_states_merge(struct rfx_shard_states *all, const struct rfx_graph *graph,
                                       struct rfx_shard_states *other, struct rfx_error *err) {
    bool alike = all->n == other->n && all->round == other->round && all->count == other->count;
    for (int i = 0; alike && i < all->n; i++) {
        const struct rfx_shard_state *a = &all->items[i], *b = &other->items[i];
        alike = a->node == b->node && a->round == b->round;
        if (alike && a->round < all->round) alike = memcmp(a->state, b->state, a->bytes) == 0;
    }
    if (!alike)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "states of round %d, %lld parts and of round %d, %lld parts, or after "
                        "other rounds, do not add up",
                        other->round, (long long)other->count, all->round, (long long)all->count);
    for (int i = 0; i < all->n; i++) {
        const struct rfx_node *node = &graph->nodes[all->items[i].node];
        const struct rfx_reduction *reduction = rfx_node_reduction(node);
        if (all->items[i].round != all->round) continue;
        reduction->merge(node, all->items[i].state, other->items[i].state);
        if (!reduction->is_sound(node, all->items[i].state))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "the states of '%.100s' add up to more than any network makes",
                            node->name);
    }
    return RFX_OK;
}

void rfx_shard_states_release_known(struct rfx_memory *mem, struct rfx_part_known *known, int n) {
    for (int i = 0; known != NULL && i < n; i++) {
        union {
            const float *in;
            float *out;
        } values = {known[i].values};
        rfx_memory_release(mem, values.out);
    }
    rfx_memory_release(mem, known);
}

/* Computes the result of one operation. The caller frees known->values, whatever the status. */
static enum rfx_status finish_one(const struct rfx_graph *graph, struct rfx_memory *mem,
                                  const struct rfx_shard_state *item, struct rfx_part_known *known,
                                  struct rfx_error *err) {
    const struct rfx_node *node = &graph->nodes[item->node];
    const struct rfx_tensor *in = &graph->nodes[node->in[0]].out;
    float *values = rfx_memory_calloc(mem, (size_t)node->out.elems, sizeof *values);
    void *state =
        rfx_memory_alloc(mem, item->bytes); /* a copy, because `finish` may change the state */
    *known = (struct rfx_part_known){item->node, values};
    if (values != NULL && state != NULL) {
        struct rfx_view out = rfx_view_of(&node->out, values, rfx_rect_full(1, 1));
        memcpy(state, item->state, item->bytes);
        rfx_node_reduction(node)->finish(node, state, in->h, in->w, &out);
    }
    bool all = values != NULL && state != NULL;
    rfx_memory_release(mem, state);
    return all ? RFX_OK : rfx_memory_fail(mem, "states", item->bytes, err);
}

enum rfx_status rfx_shard_states_finish(const struct rfx_shard_states *states,
                                        const struct rfx_graph *graph,
                                        struct rfx_part_known **known, struct rfx_error *err) {
    struct rfx_memory *mem = states->mem;
    struct rfx_part_known *list = rfx_memory_calloc(mem, (size_t)states->n + 1, sizeof *list);
    if (list == NULL) return rfx_memory_fail(mem, "states", sizeof *list, err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < states->n && status == RFX_OK; i++)
        status = finish_one(graph, mem, &states->items[i], &list[i], err);
    if (status == RFX_OK)
        *known = list;
    else
        rfx_shard_states_release_known(mem, list, states->n);
    return status;
}

/* Sets *k to the number of the output `name`. */
static enum rfx_status find_output(const struct rfx_graph *graph, const char *name,
                                   const char *path, int *k, struct rfx_error *err) {
    for (*k = 0; *k < graph->n_outputs; ++*k)
        if (strcmp(graph->outputs[*k].name, name) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "states '%.120s' are of output '%.100s', which their model does not have", path,
                    name);
}

enum rfx_status rfx_shard_states_load_network(struct rfx_memory *mem,
                                              const struct rfx_shard_states *states,
                                              const char *path, size_t memory_bytes,
                                              struct rfx_graph **out, int *k,
                                              struct rfx_error *err) {
    const struct rfx_shard_network of = {"states", path, states->run, states->about, memory_bytes};
    struct rfx_graph *graph;
    enum rfx_status status = rfx_shard_network_load(mem, &of, &graph, err);
    if (status != RFX_OK) return status;
    status = find_output(graph, states->output, path, k, err);
    if (status == RFX_OK)
        *out = graph;
    else
        rfx_graph_free(graph);
    return status;
}
