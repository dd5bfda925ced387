/* The packer: runs all greedy packers, then searches for what they leave above the lower bound.
 *
 * The exact search (exact_search.h) runs repeatedly in several orders, each time with twice the
 * nodes, because nobody can tell in advance which order solves a problem soon. Between its runs, a
 * beam search looks for packings without a spare byte (tight_search.h). Several threads share these
 * runs: an answer or a bound that one thread finds is used by the others.
 *
 * Invariants: 1. an answer passes the validator and is never larger than the best greedy one; 2.
 * lower_bound_bytes is proven, and `optimal` says that the answer meets it; 3. with one thread, a
 * node limit and no time limit, the answer is a function of the problem alone. */
#ifndef RFX_TILER_ARENA_PACKER_H
#define RFX_TILER_ARENA_PACKER_H

#include "tiler/arena/arena_problem.h"

/* Larger problems are packed greedily only: the search needs O(n^2) bytes, 128 MiB for this many
 * items. */
#define RFX_PACKER_MAX_ITEMS 4096

/* Larger problems still are packed by strip packing only; the other greedy packers take O(n^2)
 * time. */
#define RFX_PACKER_MAX_GREEDY_ITEMS 32768

struct rfx_packer_limits {
    uint64_t nodes; /* of the search tree; 0: no limit */
    int64_t
        time_ns; /* 0: no limit. The search ends by itself, but possibly not in any useful time */
    size_t target_bytes; /* stop when the answer is known to fit or not to fit in this many bytes;
                            0: find the best */
    int threads;         /* 0: one */

    /* Called at most 50 times a second, by one thread at a time, with the time since the start.
     * Returns true to end the search with the best answer so far. NULL: not called. */
    bool (*must_stop)(void *user, int64_t done_ns);
    void *user;
};

struct rfx_packer_result {
    size_t arena_bytes, lower_bound_bytes;
    bool optimal;
    const char *method; /* name of the packer that found the answer: "by-size", ..., "exact" */
    uint64_t nodes;
};

/* Fills offsets[n] and *result. OUT_OF_MEMORY. Reaching a limit is not a failure, nor is must_stop
 * returning true: without any answer yet, strip packing makes one. CANCELLED when all work is
 * stopped (rfx_memory_set_stop). */
RFX_NODISCARD enum rfx_status rfx_packer_solve(const struct rfx_place_problem *problem,
                                               const struct rfx_packer_limits *limits,
                                               size_t *offsets, struct rfx_packer_result *result,
                                               struct rfx_error *err);
#endif
