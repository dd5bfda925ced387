/* Mergeable states of global operations, and their files. A shard's states hold what its rows add
 * to the operation; added up over all shards in any order, they give the bits of one run.
 *
 *     NAME        the states, one after the other
 *     NAME.json   {"format": "rfexec states", "version", "run", "output", "round", "part": [I, N],
 *                  "states": [{"node", "round", "bytes"}], "hash", "about", "picture"}
 *
 * "part" is [0, 0] where the states of all shards are merged. "picture" (shard_json.h) says which
 * rows of the image a shard has read; merged states have none. "about" is for merge --status:
 * "words" of the command, the file of "states" that it was given, the number of "rounds" in all,
 * and "last_by_merge", whether merge makes the output after the last round. A file of round r also
 * holds the merged states of the rounds before. Only the version that wrote states can read them
 * ("run" names it). */
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
    int64_t index, count; /* shard `index` (from 1) of `count`; 0, 0: merged */
    json_t *run, *about;  /* owned */
    json_t *picture;      /* owned; may be NULL */
    json_t *shards;       /* of a sum of some shards, in memory only; owned; NULL: one, or all */
    int n;
    struct rfx_shard_state *items; /* owned; sorted by round, then by node */
};

void rfx_shard_states_release(struct rfx_shard_states *states);

/* Writes 32 hexadecimal digits, a hash of all bytes. */
void rfx_shard_states_hash(const struct rfx_shard_states *states, char hex[33]);

/* Whether the JSON beside `path` describes states. */
bool rfx_shard_states_is_file(const char *path);

/* Appends zeroed room for the state of a reduction and returns it. NULL: no memory. */
void *rfx_shard_states_add(struct rfx_shard_states *states, const struct rfx_graph *graph, int node,
                           int round);

/* Writes the JSON, then the states. */
RFX_NODISCARD enum rfx_status rfx_shard_states_write(const char *path,
                                                     const struct rfx_graph *graph,
                                                     const struct rfx_shard_states *states,
                                                     struct rfx_error *err);

/* Reads the JSON, without the states. To be released. */
RFX_NODISCARD enum rfx_status rfx_shard_states_peek(struct rfx_memory *mem, const char *path,
                                                    struct rfx_shard_states *states,
                                                    struct rfx_error *err);

/* Checks the length and hash of the file against its JSON; needs no graph. MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_shard_states_check(const char *path, struct rfx_error *err);

/* Reads the JSON and the states, to be released. MALFORMED: they are not of this graph, or were
 * changed since they were written. */
RFX_NODISCARD enum rfx_status rfx_shard_states_read(const char *path, const struct rfx_graph *graph,
                                                    struct rfx_shard_states *states,
                                                    struct rfx_error *err);

/* Writes the states as one block of *n_bytes bytes, allocated from states->mem. */
RFX_NODISCARD enum rfx_status rfx_shard_states_pack(const struct rfx_shard_states *states,
                                                    const struct rfx_graph *graph,
                                                    unsigned char **out, size_t *n_bytes,
                                                    struct rfx_error *err);

/* Reads such a block, which is not kept, as rfx_shard_states_read reads files. MALFORMED also: they
 * are of another run than `run`. */
RFX_NODISCARD enum rfx_status rfx_shard_states_unpack(const struct rfx_graph *graph,
                                                      const json_t *run, const void *bytes,
                                                      size_t n_bytes,
                                                      struct rfx_shard_states *states,
                                                      struct rfx_error *err);

/* Adds another shard's states of the same round to `all`. MALFORMED: they are of another round,
 * number of shards or other operations, or the sum is more than any network can make. */
RFX_NODISCARD enum rfx_status rfx_shard_states_merge(struct rfx_shard_states *all,
                                                     const struct rfx_graph *graph,
                                                     struct rfx_shard_states *other,
                                                     struct rfx_error *err);

/* Computes the results of merged states: *known has states->n entries, freed with release_known. */
RFX_NODISCARD enum rfx_status rfx_shard_states_finish(const struct rfx_shard_states *states,
                                                      const struct rfx_graph *graph,
                                                      struct rfx_part_known **known,
                                                      struct rfx_error *err);
void rfx_shard_states_release_known(struct rfx_memory *mem, struct rfx_part_known *known, int n);

/* Loads the network that states are of, after rfx_shard_states_peek, and finds their output *k. The
 * model is a built-in, the file named in the JSON, or a file of that name in the folder of the
 * states. MALFORMED: the model cannot be found or has another hash, or the JSON does not say what
 * was run. Free with rfx_graph_free. */
RFX_NODISCARD enum rfx_status rfx_shard_states_load_network(struct rfx_memory *mem,
                                                            const struct rfx_shard_states *states,
                                                            const char *path, size_t memory_bytes,
                                                            struct rfx_graph **out, int *k,
                                                            struct rfx_error *err);
#endif
