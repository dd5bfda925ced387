/* Mergeable states of global operations, and their files. A shard's state is the contribution of
 * the shard's rows to the operation. The sum of the states of all shards, in any order, gives the
 * same bits as a run of the whole image.
 *
 *     NAME        the states, one after the other
 *     NAME.json   {"format": "rfexec states", "version", "run", "output", "round", "part": [I, N],
 *                  "states": [{"node", "round", "bytes"}], "hash", "about", "picture"}
 *
 * "part" is [0, 0] for merged states of all shards. "picture" (shard_json.h) describes the image
 * rows that a shard has read; merged states have no "picture". "about" is for merge --status:
 * "words" of the command, the "states" file given to it, the total number of "rounds", and
 * "last_by_merge": whether merge computes the output after the last round. A file of round r also
 * contains the merged states of the rounds before. Only the version of rfexec that wrote states can
 * read them ("run" contains the version). */
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
    json_t *shards;       /* the shards in a partial sum, not written to files; owned; NULL: the
                           * states are of one shard or of all shards */
    int n;
    struct rfx_shard_state *items; /* owned; sorted by round, then by node */
};

void rfx_shard_states_release(struct rfx_shard_states *states);

/* Writes the hash of all states to `hex`, as 32 hexadecimal digits. */
void rfx_shard_states_hash(const struct rfx_shard_states *states, char hex[RFX_FINGERPRINT_CHARS]);

/* Returns whether the JSON file of `path` describes states. */
bool rfx_shard_states_is_file(const char *path);

/* Appends a zeroed state for a reduction and returns its memory. NULL: no memory. */
void *rfx_shard_states_add(struct rfx_shard_states *states, const struct rfx_graph *graph, int node,
                           int round);

/* Writes the JSON file, then the file of states. */
RFX_NODISCARD enum rfx_status rfx_shard_states_write(const char *path,
                                                     const struct rfx_graph *graph,
                                                     const struct rfx_shard_states *states,
                                                     struct rfx_error *err);

/* Reads only the JSON file. The caller frees `states` with rfx_shard_states_release. */
RFX_NODISCARD enum rfx_status rfx_shard_states_peek(struct rfx_memory *mem, const char *path,
                                                    struct rfx_shard_states *states,
                                                    struct rfx_error *err);

/* Checks that the file has the length and hash given in its JSON file. Needs no graph. MALFORMED:
 * it has not. */
RFX_NODISCARD enum rfx_status rfx_shard_states_check(const char *path, struct rfx_error *err);

/* Reads the JSON file and the states. The caller frees `states` with rfx_shard_states_release.
 * MALFORMED: the states are not of this graph, or were changed since they were written. */
RFX_NODISCARD enum rfx_status rfx_shard_states_read(const char *path, const struct rfx_graph *graph,
                                                    struct rfx_shard_states *states,
                                                    struct rfx_error *err);

/* Writes the states as one block of *n_bytes bytes, allocated from states->mem. */
RFX_NODISCARD enum rfx_status rfx_shard_states_pack(const struct rfx_shard_states *states,
                                                    const struct rfx_graph *graph,
                                                    unsigned char **out, size_t *n_bytes,
                                                    struct rfx_error *err);

/* Reads a block made by rfx_shard_states_pack, as rfx_shard_states_read reads files. The states are
 * copied, so the block may be freed. MALFORMED also when the states are of another run than `run`.
 */
RFX_NODISCARD enum rfx_status rfx_shard_states_unpack(const struct rfx_graph *graph,
                                                      const json_t *run, const void *bytes,
                                                      size_t n_bytes,
                                                      struct rfx_shard_states *states,
                                                      struct rfx_error *err);

/* Adds the states `other` of the same round to `all`. MALFORMED: they are of another round, of
 * another number of shards or of other operations, or the sum exceeds that of any network. */
RFX_NODISCARD enum rfx_status rfx_shard_states_merge(struct rfx_shard_states *all,
                                                     const struct rfx_graph *graph,
                                                     struct rfx_shard_states *other,
                                                     struct rfx_error *err);

/* Computes the results of the operations from merged states. *known has states->n entries; the
 * caller frees it with rfx_shard_states_release_known. */
RFX_NODISCARD enum rfx_status rfx_shard_states_finish(const struct rfx_shard_states *states,
                                                      const struct rfx_graph *graph,
                                                      struct rfx_part_known **known,
                                                      struct rfx_error *err);
void rfx_shard_states_release_known(struct rfx_memory *mem, struct rfx_part_known *known, int n);

/* Loads the network of the states and sets *k to their output. Called after rfx_shard_states_peek.
 * The model is a built-in network, the file named in the JSON file, or a file of the same name in
 * the folder of the states. The caller frees *out with rfx_graph_free. MALFORMED: the model cannot
 * be found or has another hash, or the JSON file does not identify the run. */
RFX_NODISCARD enum rfx_status rfx_shard_states_load_network(struct rfx_memory *mem,
                                                            const struct rfx_shard_states *states,
                                                            const char *path, size_t memory_bytes,
                                                            struct rfx_graph **out, int *k,
                                                            struct rfx_error *err);
#endif
