/* Rounds of states: how an output behind global operations is made from shards.
 *
 * What comes after a global operation (a global pool, a norm over the whole map) needs all of what
 * comes before it. In a round every shard adds its rows of the inputs to the states of the
 * operations that can be reached. The states of all shards are added up, whoever carries them: in
 * files (shard_states.h) or in messages (tools/mpi). The sums are exact, so the next round starts
 * from the same bits as one run of the whole. When no round is left, shards of the output follow,
 * or the output itself where the rest of the network does not read the image. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_ROUNDS_H
#define RFX_RFEXEC_SHARDS_SHARD_ROUNDS_H

#include "rfexec/image/row_sums.h"
#include "rfexec/run/session.h"
#include "rfexec/shards/shard_states.h"

/* What the rounds so far have found. */
struct rfx_shard_before {
    struct rfx_shard_states states; /* added up over all shards; n 0: no round was made */
    struct rfx_part_known *known;   /* [states.n] results of the operations */
    struct rfx_part_rounds rounds;  /* that are left */
};

void rfx_shard_before_release(struct rfx_shard_before *before);

/* Sets `known` and `rounds` from `states`, for output k of the graph or RFX_PART_ALL. */
RFX_NODISCARD enum rfx_status rfx_shard_before_settle(struct rfx_shard_before *before,
                                                      const struct rfx_graph *graph, int k,
                                                      struct rfx_error *err);

/* UNSUPPORTED: output k (or, of RFX_PART_ALL, some output) has no shards, because an operation
 * without a mergeable state needs all of a map. */
RFX_NODISCARD enum rfx_status rfx_shard_rounds_check(const struct rfx_graph *graph, int k,
                                                     const struct rfx_part_rounds *rounds,
                                                     struct rfx_error *err);

/* One shard's part in a round. */
struct rfx_shard_round {
    struct rfx_graph *graph;   /* whose outputs are the operations of this round; owned */
    struct rfx_plan *plan;     /* owned */
    struct rfx_row_sums *sums; /* of the image rows that it reads; owned; NULL: it reads a map */
};

/* What a round reads in place of the image. */
struct rfx_shard_source {
    int from; /* a cut (rf_analysis/part_ends.h) */
    struct rfx_image *map;
    struct rfx_source_traits traits; /* of the map */
};

/* Plans the part of shard states->index (from 1) of states->count in the next round. `states`,
 * which has no items yet, gets those of the rounds before and zeroed room for those of this round.
 * `asked` says budget, threads and source; the plan leaves room in the budget for the states twice.
 * source: NULL reads the image; source->map is not looked at. `round` is to be released whatever
 * the status. */
RFX_NODISCARD enum rfx_status rfx_shard_round_plan(
    const struct rfx_graph *graph, const struct rfx_plan_request *asked, int k,
    const struct rfx_shard_before *before, const struct rfx_shard_source *source,
    struct rfx_shard_states *states, struct rfx_shard_round *round, struct rfx_error *err);

/* Takes the states of a run of round->plan. Valid as long as `states`. */
struct rfx_state_sink rfx_shard_round_sink(struct rfx_shard_states *states);

void rfx_shard_round_release(struct rfx_shard_round *round);

/* The states of all shards of a round, read from files and added up. */
struct rfx_shard_sum {
    struct rfx_graph *graph; /* of the network that the files name; owned */
    int k;                   /* the output that they are of */
    struct rfx_shard_before made;
};

/* Reads states from paths[n], which must be those of all shards of one round of one run. The budget
 * is that of loading the network; 0: none. To be released whatever the status. MALFORMED, with the
 * files: states of other runs, shards that are missing or there twice, shards that have read
 * different images. */
RFX_NODISCARD enum rfx_status rfx_shard_sum_read(struct rfx_memory *mem, const char *const *paths,
                                                 int n, size_t memory_bytes,
                                                 struct rfx_shard_sum *out, struct rfx_error *err);
void rfx_shard_sum_release(struct rfx_shard_sum *sum);

/* Whether the output can be made from the sum alone: no round is left and nothing behind the states
 * reads the image. */
bool rfx_shard_sum_is_last(const struct rfx_shard_sum *sum);

/* The run that makes the output from the sum: the rest of the network, its plan, and an image that
 * no step reads. All owned. */
struct rfx_shard_rest {
    struct rfx_graph *graph;
    struct rfx_image *image;
    struct rfx_plan *plan;
};

/* Plans the rest in one thread. output_bytes: what writing the output holds, counted in the budget
 * (0: none). To be released whatever the status. */
RFX_NODISCARD enum rfx_status rfx_shard_rest_plan(const struct rfx_shard_sum *sum,
                                                  size_t output_bytes, size_t memory_bytes,
                                                  struct rfx_shard_rest *rest,
                                                  struct rfx_error *err);
void rfx_shard_rest_release(struct rfx_shard_rest *rest);
#endif
