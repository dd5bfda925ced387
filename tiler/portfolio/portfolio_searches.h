/* What the threads of a portfolio share, and how each search takes its turn. */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_SEARCHES_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_SEARCHES_H

#include <pthread.h>

#include "layers/core/team.h"
#include "tiler/packer/packer_search.h"
#include "tiler/portfolio/packer_portfolio.h"
#include "tiler/portfolio/portfolio_kept.h"
#include "tiler/portfolio/portfolio_turns.h"
#include "tiler/strategies/placement_stop.h"

/* A turn with what it may take. */
struct rfx_portfolio_task {
    int turn;
    size_t capacity;
    uint64_t nodes;
    int width;
    struct rfx_team *team; /* that shares the work; NULL: none */
};

/* What all threads share: everything below `lock` under it. */
struct rfx_portfolio {
    const struct rfx_place_problem *problem;
    const struct rfx_portfolio_limits *limits;
    struct rfx_place_stop stop;
    atomic_bool stopped;
    atomic_flag asking;
    _Atomic int64_t asked_at_ns;
    int64_t begun_ns;
    size_t unit; /* capacities in between gain nothing */

    pthread_mutex_t lock;
    int next, round; /* the next turn */
    bool has_shared; /* the others wait: */
    struct rfx_portfolio_task shared;
    size_t over_at[RFX_N_TURNS]; /* the capacity at which a turn has no more to try */
    struct rfx_kept kept;
    size_t *offsets;               /* the best answer */
    struct rfx_packer_result best; /* nodes: of all */
    enum rfx_status status;
    struct rfx_error err;
};

/* What a thread has for itself. */
struct rfx_portfolio_worker {
    struct rfx_search *search;
    size_t *trial; /* before a turn: the best answer */
};

/* Takes the turn: searches, and takes the answer and what was proven over. */
void rfx_portfolio_run_turn(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                            const struct rfx_portfolio_task *task);

/* Takes the lock, and counts what a turn took; the first failure of all is the portfolio's. */
void rfx_portfolio_end_turn(struct rfx_portfolio *p, uint64_t nodes, enum rfx_status status,
                            const struct rfx_error *err);
#endif
