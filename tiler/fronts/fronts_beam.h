/* A beam of states that goes from bucket to bucket, a bucket for each number of items that ended.
 *
 * States of a bucket are gone on from in batches, by all threads of a team: what follows a batch is
 * kept, by one thread, while the others make what follows the next one. Which states are kept does
 * not hang on the number of threads. */
#ifndef RFX_TILER_FRONTS_FRONTS_BEAM_H
#define RFX_TILER_FRONTS_FRONTS_BEAM_H

#include "tiler/fronts/fronts_buckets.h"
#include "tiler/fronts/fronts_makers.h"
#include "tiler/packer/packer_slots.h"

/* Why a step was made. */
struct rfx_front_why {
    int previous, boundary;
    struct rfx_front_group group;
};

/* What all beams of a search share. */
struct rfx_front_search {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_fronts_request *request;
    struct rfx_front_times *times;
    struct rfx_front_maker *makers; /* [n_makers]: per thread */
    int n_makers;
    struct rfx_front_why *steps;
    int n_steps;
    size_t steps_capacity;
    uint64_t nodes;
    bool complete; /* no state and no group listed was left out so far */
};

/* What was made of a batch of states with `ended` items that ended, in parts that one thread makes
 * at a time. */
struct rfx_front_made_of {
    struct rfx_front_part *parts; /* [room] */
    int n_parts, room, ended;
    bool failed; /* no memory */
};

struct rfx_front_beam {
    struct rfx_front_search *search;
    struct rfx_front_buckets buckets; /* by how many items ended; as many as one boundary has ends,
                                         and one more: none wraps around */
    struct rfx_front_state *states;   /* [width] of each bucket */
    struct rfx_pq_slots trees;        /* a slot has both sides */
    int ended;                        /* of the next bucket */
    int waiting;                      /* states in all buckets */
    int last;                         /* the bucket of the states that got to the end; -1: none */
    int deepest, n_deepest; /* the steps to the states that were gone on from of the last bucket
                               with any: the first, and how many */
    /* the batch: n_batch states from first_in_heap down; their steps from first_step on */
    int batch_states, first_in_heap, n_batch, first_step;
    int *done;                           /* [parts]: of so many of its states */
    float least[RFX_FRONT_MAX_SIDE + 1]; /* scores of what is kept of so many ends more */
    struct rfx_front_made_of made[2];    /* of the batch and of the one before */
    int at; /* the batch in `made`; what the other one has is still to be kept */
};

/* With no states. All must outlive it. Release with rfx_front_beam_release, after a failure too.
 * RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_beam_init(struct rfx_front_beam *beam,
                                                  struct rfx_front_search *search, int width,
                                                  struct rfx_error *err);
void rfx_front_beam_release(struct rfx_front_beam *beam);

/* The state before all boundaries is its only one. false: no memory. */
RFX_NODISCARD bool rfx_front_beam_begin(struct rfx_front_beam *beam);

/* Drops all states and goes on from where another beam is. false: no memory. */
RFX_NODISCARD bool rfx_front_beam_take_over(struct rfx_front_beam *beam,
                                            const struct rfx_front_beam *from);

/* Goes on from all states of the next bucket, unless they are at the end: then `last` is set. Nor
 * are there any waiting once a limit is reached. false: no memory. */
RFX_NODISCARD bool rfx_front_beam_pass(struct rfx_front_beam *beam);

/* A state of a bucket. */
struct rfx_front_state *rfx_front_beam_state(const struct rfx_front_beam *beam, int bucket,
                                             int state);
#endif
