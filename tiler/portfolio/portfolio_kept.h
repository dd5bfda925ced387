/* Searches by clauses that go on in the next turn of their kind, with what they have learnt. */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_KEPT_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_KEPT_H

#include "tiler/clauses/clauses_packing.h"
#include "tiler/portfolio/portfolio_turns.h"

/* To begin with all zero. Whoever calls takes care that nobody else does. */
struct rfx_kept {
    struct rfx_clauses_packing *of_turn[RFX_N_TURNS]; /* NULL: none, or it is taken */
    size_t capacity[RFX_N_TURNS];
};

/* Takes what is kept of a turn at a capacity; NULL: nothing. */
struct rfx_clauses_packing *rfx_kept_take(struct rfx_kept *kept, int turn, size_t capacity);

/* Keeps it, or, where another one that has searched longer is kept by now, frees it. */
void rfx_kept_give(struct rfx_kept *kept, int turn, size_t capacity,
                   struct rfx_clauses_packing *packing);

void rfx_kept_release(struct rfx_kept *kept);
#endif
