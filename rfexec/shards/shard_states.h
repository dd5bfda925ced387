/* The states of global operations in a file: what parts of a round add up, and merge puts together.
 *
 *     NAME        the states, one behind the other
 *     NAME.json   {"format": "rfexec states", "version", "run", "output", "round", "part": [I, N],
 *                  "states": [{"node", "round", "bytes"}], "hash", "about", "picture"}
 *
 * "picture" (part_picture.h) says which rows of the image a part has read; merged states have none.
 * "about" has what --status needs to say how the other parts are made: "words" of the command,
 * "states" that it was given, and of how many "rounds" the states are in all, after which merge
 * makes the output by itself ("last_by_merge") or parts of it follow.
 *
 * A state is exact, so merging in any order gives the bits of one run; it is read by the version
 * that wrote it alone ("run" says which). A file of round r has the whole states of the rounds
 * before it too. Part [0, 0]: the states are merged, of all parts. */
/* The network that states are of, as their JSON says. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_STATES_H
#define RFX_RFEXEC_SHARDS_SHARD_STATES_H

#include <jansson.h>

#include "layers/graph/graph.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/shards/shard_file.h"

struct rfx_shard_state {
    int node, round;
    size_t bytes;
    void *state; /* owned */
};

struct rfx_shard_states {
    struct rfx_memory *mem;
    char output[RFX_SHARD_NAME_CHARS];
    int round;
    int64_t index, count; /* part `index` of `count`; 0, 0: merged */
    json_t *run, *about;  /* owned */
    json_t *picture;      /* of one part: as part_picture.h has it; owned; may be NULL */
    int n;
    struct rfx_shard_state *items; /* owned; by round, then node */
};

void rfx_shard_states_release(struct rfx_shard_states *states);

/* 32 digits of all bytes. */
void rfx_shard_states_hash(const struct rfx_shard_states *states, char hex[33]);

/* Whether the JSON of `path` says that it has states. */
bool rfx_shard_states_is_file(const char *path);

/* Room for one more: zeros, of the reduction's size. NULL: no memory. */
void *rfx_shard_states_add(struct rfx_shard_states *states, const struct rfx_graph *graph, int node,
                           int round);

/* Writes the states, then their JSON. */
RFX_NODISCARD enum rfx_status rfx_shard_states_write(const char *path,
                                                     const struct rfx_graph *graph,
                                                     const struct rfx_shard_states *states,
                                                     struct rfx_error *err);

/* Reads all but the states themselves: what run they are of. To be released. */
RFX_NODISCARD enum rfx_status rfx_shard_states_peek(struct rfx_memory *mem, const char *path,
                                                    struct rfx_shard_states *states,
                                                    struct rfx_error *err);

/* Whether the file is as long as its JSON says and has its hash, without its graph. MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_shard_states_check(const char *path, struct rfx_error *err);

/* Reads the states of this graph too. MALFORMED: they are not the graph's, or not as they were
 * written. */
RFX_NODISCARD enum rfx_status rfx_shard_states_read(const char *path, const struct rfx_graph *graph,
                                                    struct rfx_shard_states *states,
                                                    struct rfx_error *err);

/* Adds another part of the same round; not of the same output, run, round or number of parts:
 * MALFORMED in words. */
RFX_NODISCARD enum rfx_status rfx_shard_states_merge(struct rfx_shard_states *all,
                                                     const struct rfx_graph *graph,
                                                     struct rfx_shard_states *other,
                                                     struct rfx_error *err);

/* The results of merged states: *known has states->n entries; free with release_known. */
RFX_NODISCARD enum rfx_status rfx_shard_states_finish(const struct rfx_shard_states *states,
                                                      const struct rfx_graph *graph,
                                                      struct rfx_part_known **known,
                                                      struct rfx_error *err);
void rfx_shard_states_release_known(struct rfx_memory *mem, struct rfx_part_known *known, int n);

/* Loads the network of states that were peeked at in `path`, and finds their output k. The model is
 * a built-in, the file that the parts were made with, or one of its name beside the states: that
 * runs were in another folder or elsewhere does no harm. MALFORMED, in words: it is nowhere, its
 * hash is not that of the parts, or the JSON does not say what was run. Free with rfx_graph_free.
 */
RFX_NODISCARD enum rfx_status rfx_shard_states_load_network(struct rfx_memory *mem,
                                                            const struct rfx_shard_states *states,
                                                            const char *path, size_t memory_bytes,
                                                            struct rfx_graph **out, int *k,
                                                            struct rfx_error *err);
#endif
