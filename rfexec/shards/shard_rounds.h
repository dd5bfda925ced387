/* Rounds of states: how shards compute an output that depends on global operations.
 *
 * A global operation (a global pool, a norm over the whole map) needs its whole input before any
 * later layer can run. A state is the partial sum of such an operation. In a round every shard adds
 * its rows of the inputs to the states of all operations whose inputs can be computed already. Then
 * the states of all shards are added up. They travel in files (shard_states.h) or in messages
 * (tools/mpi). The sums are exact, so the next round starts from the same bits as a run of the
 * whole image. When no round is left, the shards of the output are computed. If the rest of the
 * network does not read the image, the output is computed at once instead. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_ROUNDS_H
#define RFX_RFEXEC_SHARDS_SHARD_ROUNDS_H

#include "rfexec/image/row_sums.h"
#include "rfexec/run/session.h"
#include "rfexec/shards/shard_states.h"

/* Results of the rounds so far. */
struct rfx_shard_before {
    struct rfx_shard_states states; /* sums over all shards; n 0: no round is complete */
    struct rfx_part_known *known;   /* [states.n] results of the global operations */
    struct rfx_part_rounds rounds;  /* rounds that are left */
};

void rfx_shard_before_release(struct rfx_shard_before *before);

/* Sets `known` and `rounds` from `states`, for output k of the graph or RFX_PART_ALL. */
RFX_NODISCARD enum rfx_status rfx_shard_before_settle(struct rfx_shard_before *before,
                                                      const struct rfx_graph *graph, int k,
                                                      struct rfx_error *err);

/* Checks that output k can be computed in shards (k RFX_PART_ALL: every output). UNSUPPORTED: it
 * cannot, because an operation without a mergeable state needs a whole map. */
RFX_NODISCARD enum rfx_status rfx_shard_rounds_check(const struct rfx_graph *graph, int k,
                                                     const struct rfx_part_rounds *rounds,
                                                     struct rfx_error *err);

/* One shard's part in a round. */
struct rfx_shard_round {
    struct rfx_graph *graph;   /* its outputs are the operations of this round; owned */
    struct rfx_plan *plan;     /* owned */
    struct rfx_row_sums *sums; /* checksums of the image rows read; owned; NULL: reads a map */
};

/* A feature map that a round reads instead of the image. */
struct rfx_shard_source {
    int from; /* a cut (rf_analysis/part_ends.h) */
    struct rfx_image *map;
    struct rfx_source_traits traits; /* traits of the map */
};

/* Plans the part of shard states->index (from 1) of states->count in the next round. On entry
 * `states` has no items; the function adds the states of the rounds before and zeroed states for
 * this round. `asked` gives budget, threads and source. The plan reserves twice the size of the
 * states in the budget. source NULL: reads the image; source->map is not used. The caller releases
 * `round`, whatever the status. */
RFX_NODISCARD enum rfx_status rfx_shard_round_plan(
    const struct rfx_graph *graph, const struct rfx_plan_request *asked, int k,
    const struct rfx_shard_before *before, const struct rfx_shard_source *source,
    struct rfx_shard_states *states, struct rfx_shard_round *round, struct rfx_error *err);

/* Returns a sink that stores the states of a run of round->plan. Valid as long as `states`. */
struct rfx_state_sink rfx_shard_round_sink(struct rfx_shard_states *states);

void rfx_shard_round_release(struct rfx_shard_round *round);

/* The states of all shards of a round, read from files and added up. */
struct rfx_shard_sum {
    struct rfx_graph *graph; /* the network named in the files; owned */
    int k;                   /* number of the output that the states are for */
    struct rfx_shard_before made;
};

/* Reads the states in the files paths[n] and adds them up. The files must be those of all shards of
 * one round of one run. memory_bytes: budget for loading the network; 0: none. The caller releases
 * *out, whatever the status. MALFORMED, with the files in the error: states of different runs, a
 * shard that is missing or given twice, shards that have read different images. */
RFX_NODISCARD enum rfx_status rfx_shard_sum_read(struct rfx_memory *mem, const char *const *paths,
                                                 int n, size_t memory_bytes,
                                                 struct rfx_shard_sum *out, struct rfx_error *err);
void rfx_shard_sum_release(struct rfx_shard_sum *sum);

/* Returns whether the output can be computed from the sum alone: no round is left and no layer
 * after the global operations reads the image. */
bool rfx_shard_sum_is_last(const struct rfx_shard_sum *sum);

/* The run that computes the output from the sum: the rest of the network, its plan, and an image
 * that no step reads. All members are owned. */
struct rfx_shard_rest {
    struct rfx_graph *graph;
    struct rfx_image *image;
    struct rfx_plan *plan;
};

/* Plans the rest of the network for one thread. output_bytes: memory for writing the output,
 * counted in the budget. memory_bytes: the budget; 0: none. The caller releases `rest`, whatever
 * the status.
 */
RFX_NODISCARD enum rfx_status rfx_shard_rest_plan(const struct rfx_shard_sum *sum,
                                                  size_t output_bytes, size_t memory_bytes,
                                                  struct rfx_shard_rest *rest,
                                                  struct rfx_error *err);
void rfx_shard_rest_release(struct rfx_shard_rest *rest);
#endif
