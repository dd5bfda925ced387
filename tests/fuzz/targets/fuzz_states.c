/* States of global operations: their JSON, a byte of 0xff, the states. Where the JSON has "" as the
 * hash of the states it gets the right one, where it has "" as that of the model too; its sum is
 * always made anew. What is read
 * is the same when it is written and read again, has results, and takes part in merges and rounds
 * as any other. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rf_analysis/part_graph.h"
#include "rfexec/shards/shard_identity.h"
#include "rfexec/shards/shard_json.h"
#include "rfexec/shards/shard_states.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_models.h"
#include "tests/fuzz/fuzz_parts.h"

#define MEMORY_BYTES ((size_t)4 << 20)
enum { MERGES = 40, AGAIN = 1 };

static bool is_empty(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && text[0] == '\0';
}

/* The JSON with hashes where it leaves them out, and the one model that there is. */
static void write_json(const struct rfx_graph *graph, const uint8_t *json, size_t length,
                       const uint8_t *states, size_t size) {
    json_t *document = json_loadb((const char *)json, length, JSON_REJECT_DUPLICATES, NULL);
    json_t *run = json_object_get(document, "run"), *about = json_object_get(document, "about");
    char hex[RFX_FINGERPRINT_CHARS];
    struct rfx_error err = {""};
    if (is_empty(document, "hash")) {
        XXH128_hash_t sum = XXH3_128bits(states, size);
        (void)snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, (uint64_t)sum.high64,
                       (uint64_t)sum.low64);
        (void)json_object_set_new(document, "hash", json_string(hex));
    }
    if (is_empty(about, "model"))
        (void)json_object_set_new(about, "model", json_string(fuzz_model_path("normed")));
    else /* no other file is read */
        (void)json_object_del(about, "model");
    if (is_empty(run, "model")) {
        if (rfx_shard_hash_model(graph->mem, graph, fuzz_model_path("normed"), hex, &err) != RFX_OK)
            fuzz_fail("%s", err.text);
        (void)json_object_set_new(run, "model", json_string(hex));
    }
    if (json_integer_value(json_object_get(document, "version")) == 1)
        (void)json_object_set_new(document, "version", json_integer(2));
    bool sealed = json_is_object(document) && rfx_shard_json_seal(document);
    char *text = sealed ? json_dumps(document, 0) : NULL;
    fuzz_part_write(0, ".json", text != NULL ? (const void *)text : json,
                    text != NULL ? strlen(text) : length);
    free(text);
    json_decref(document);
}

static void write_and_read(const struct rfx_graph *graph, const struct rfx_shard_states *states) {
    struct rfx_shard_states again;
    struct rfx_error err = {""};
    char hash[33], other[33];
    const char *path = fuzz_part_path(AGAIN);
    if (rfx_shard_states_write(path, graph, states, &err) != RFX_OK ||
        rfx_shard_states_read(path, graph, &again, &err) != RFX_OK)
        fuzz_fail("states that were read cannot be written and read: %s", err.text);
    rfx_shard_states_hash(states, hash);
    rfx_shard_states_hash(&again, other);
    if (strcmp(hash, other) != 0 || again.n != states->n || again.round != states->round ||
        again.index != states->index || again.count != states->count ||
        !json_equal(again.run, states->run))
        fuzz_fail("other states when read again");
    rfx_shard_states_release(&again);
}

/* The states as one block of bytes, and read from it. */
static void pack_and_unpack(const struct rfx_graph *graph, const struct rfx_shard_states *states) {
    struct rfx_shard_states again;
    struct rfx_error err = {""};
    char hash[33], other[33];
    unsigned char *bytes;
    size_t n_bytes;
    if (states->n == 0) return; /* a block without a state is refused */
    enum rfx_status status = rfx_shard_states_pack(states, graph, &bytes, &n_bytes, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) return; /* no memory */
    status = rfx_shard_states_unpack(graph, states->run, bytes, n_bytes, &again, &err);
    fuzz_check_status(status, &err);
    rfx_memory_release(states->mem, bytes);
    if (status == RFX_STATUS_MALFORMED) fuzz_fail("packed states cannot be read: %s", err.text);
    if (status != RFX_OK) return;
    rfx_shard_states_hash(states, hash);
    rfx_shard_states_hash(&again, other);
    if (strcmp(hash, other) != 0 || again.n != states->n || again.round != states->round ||
        !json_equal(again.run, states->run))
        fuzz_fail("other states when unpacked");
    rfx_shard_states_release(&again);
}

/* The states with the same ones from another part, time and again, then what comes of them. */
static void use(const struct rfx_graph *graph, struct rfx_shard_states *states) {
    struct rfx_shard_states other;
    struct rfx_part_known *known = NULL;
    struct rfx_part_rounds rounds;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_shard_states_read(fuzz_part_path(0), graph, &other, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) return; /* no memory */
    for (int i = 0; i < MERGES && status == RFX_OK; i++) {
        status = rfx_shard_states_finish(states, graph, &known, &err);
        if (status == RFX_OK) {
            status = rfx_part_graph_rounds(graph, 0, known, states->n, &rounds, &err);
            rfx_shard_states_release_known(states->mem, known, states->n);
        }
        fuzz_check_status(status, &err);
        if (status == RFX_OK) status = rfx_shard_states_merge(states, graph, &other, &err);
        fuzz_check_status(status, &err);
    }
    rfx_shard_states_release(&other);
}

static void load_network(struct rfx_shard_states *states) {
    struct rfx_graph *graph;
    struct rfx_error err = {""};
    int k;
    enum rfx_status status = rfx_shard_states_load_network(states->mem, states, fuzz_part_path(0),
                                                           MEMORY_BYTES, &graph, &k, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) rfx_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rfx_graph *graph;
    struct rfx_error err = {""};
    const uint8_t *json;
    if (graph == NULL) graph = fuzz_model_graph("normed");
    size_t length = fuzz_next_json(&data, &size, &json),
           before = rfx_memory_current_bytes(graph->mem);
    write_json(graph, json, length, data, size);
    fuzz_part_write(0, "", data, size);
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_shard_states states = {.mem = mem};
    enum rfx_status status = rfx_shard_states_peek(mem, fuzz_part_path(0), &states, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) {
        if (!rfx_shard_states_is_file(fuzz_part_path(0))) fuzz_fail("a file of states is none");
        load_network(&states);
    }
    rfx_shard_states_release(&states);
    status = rfx_shard_states_read(fuzz_part_path(0), graph, &states, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) {
        write_and_read(graph, &states);
        pack_and_unpack(graph, &states);
        use(graph, &states);
        rfx_shard_states_release(&states);
    }
    if (rfx_memory_current_bytes(graph->mem) != before) fuzz_fail("memory is left");
    rfx_memory_free(mem);
    return 0;
}
