/* The best states of each step of a beam: which is the worst, and whether one is there already.
 *
 * What a state is, is the caller's: here it is a number, a hash and a score. */
#ifndef RFX_TILER_FRONTS_FRONTS_BUCKETS_H
#define RFX_TILER_FRONTS_FRONTS_BUCKETS_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

struct rfx_front_bucket {
    int n;            /* states: 0 .. n - 1 */
    uint64_t *hashes; /* per state, as all below but the last */
    float *scores;
    int *heap, *place; /* a heap of states, the worst first; where in it a state is */
    int *next, *first; /* lists of the states whose hashes have the same lowest bits */
};

struct rfx_front_buckets {
    struct rfx_memory *mem;
    struct rfx_front_bucket *at; /* [n] */
    int n, width;                /* the most states of each */
    size_t n_lists;
    uint64_t *hashes; /* of all */
    float *scores;
    int *numbers;
};

/* n > 0 empty buckets of width > 0. Release with rfx_front_buckets_release, after a failure too.
 * RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_buckets_init(struct rfx_front_buckets *buckets,
                                                     struct rfx_memory *mem, int n, int width,
                                                     struct rfx_error *err);
void rfx_front_buckets_release(struct rfx_front_buckets *buckets);

/* What becomes of a state. */
struct rfx_front_put {
    int state;     /* its number, -1: it is not kept */
    bool instead;  /* of the one that had that number */
    bool left_out; /* one that is not the same as any kept is not kept */
};

/* Keeps a state if it is better than the one with the same hash, or, of a bucket that is full, than
 * the worst. O(log width). */
struct rfx_front_put rfx_front_buckets_put(struct rfx_front_buckets *buckets, int bucket,
                                           uint64_t hash, float score);

/* The score that a state has to be better than if it is not to be left out for certain; -INFINITY
 * while there is room. */
float rfx_front_buckets_least(const struct rfx_front_buckets *buckets, int bucket);

void rfx_front_buckets_clear(struct rfx_front_buckets *buckets, int bucket);
#endif
