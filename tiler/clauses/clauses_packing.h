/* Packings without a spare byte as clauses: of two items alive at one time, which lies below?
 *
 * Where every byte is in use before and after a time, an item that goes on keeps its place exactly
 * when the items below it that end are as many bytes as those below it that begin. These sums for
 * each time and each item that goes on, with "what lies below something lies below all above it",
 * say all that a packing has to be. Which ends and begins lie side by side, in groups that what
 * goes on lies between, is said as well: dead ends mostly come from a few of these.
 *
 * Bytes that are free at a time are guessed to be items (packer_boundaries.h). A proof that there
 * is no packing tells at which times the guess was used: at that of them with the most free bytes
 * nothing is guessed from then on (at more of them after a long proof). How many bytes are free
 * below each item is a number then, which does not fall from an item to one above it, and is part
 * of the sums before and after. What is found is checked like every answer. */
#ifndef RFX_TILER_CLAUSES_CLAUSES_PACKING_H
#define RFX_TILER_CLAUSES_CLAUSES_PACKING_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

/* More items than this are refused (nothing is found). */
#define RFX_CLAUSES_MAX_ITEMS 1024

/* Where more units than this are free, what is free stays a guess: each item would have as many
 * variables. */
#define RFX_CLAUSES_MAX_UNITS 1024

struct rfx_clauses_packing_request {
    size_t capacity_bytes;
    bool backwards, split; /* in time; RFX_FILLERS_SPLIT: other guesses of what was free */
    uint64_t seed;         /* 0: no chance */
};

enum rfx_clauses_packing_outcome {
    RFX_CLAUSES_PACKING_FOUND,     /* offsets are filled, a valid answer */
    RFX_CLAUSES_PACKING_SOME_LEFT, /* nothing, within the limits */
    RFX_CLAUSES_PACKING_ALL_TRIED, /* no more conflicts find anything either */
};

struct rfx_clauses_packing;

/* The problem stays as it is for as long. RFX_STATUS_OUT_OF_MEMORY. Free with
 * rfx_clauses_packing_free. */
RFX_NODISCARD enum rfx_status rfx_clauses_packing_create(
    const struct rfx_place_problem *problem, const struct rfx_clauses_packing_request *request,
    struct rfx_clauses_packing **out, struct rfx_error *err);
void rfx_clauses_packing_free(struct rfx_clauses_packing *packing);

/* Fills offsets[n] when FOUND; adds the dead ends it met, `most` > 0 or hardly more, to *conflicts.
 * After SOME_LEFT it can be called again, and goes on with what was learnt.
 * RFX_STATUS_OUT_OF_MEMORY. Where nothing stops it the outcome is a function of problem, request
 * and calls so far. */
RFX_NODISCARD enum rfx_status rfx_clauses_packing_search(
    struct rfx_clauses_packing *packing, uint64_t most, const struct rfx_place_stop *stop,
    size_t *offsets, enum rfx_clauses_packing_outcome *outcome, uint64_t *conflicts,
    struct rfx_error *err);

/* The dead ends of all calls so far. */
uint64_t rfx_clauses_packing_conflicts(const struct rfx_clauses_packing *packing);
#endif
