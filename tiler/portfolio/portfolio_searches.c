/* From a turn to the request of its search; see portfolio_searches.h. */
#include "tiler/portfolio/portfolio_searches.h"

#include <string.h>

#include "tiler/overlaps/overlaps.h"
#include "tiler/packer/packer_skyline.h"
#include "tiler/packer/packer_tight.h"
#include "tiler/portfolio/portfolio_mend.h"
#include "tiler/portfolio/portfolio_slack.h"

enum {
    MOVES_PER_NODE = 16,     /* what they cost */
    GROUPS_PER_STATE = 4096, /* of a beam's width: more than it takes where it is of use */
};

/* The share of a turn with clauses, in dead ends: as many as other searches' nodes where little is
 * free, where nothing else but *tight* finds anything after the first rounds, else half as many. */
enum { NODES_PER_CONFLICT = 2 };

/* Takes over an answer that fits the capacity and is better than the best. Under the lock. */
static void keep(struct rfx_portfolio *p, const struct rfx_portfolio_worker *w,
                 enum rfx_packer_member member) {
    const struct rfx_place_problem *problem = p->problem;
    size_t arena = rfx_place_arena_bytes(problem->items, problem->n, w->trial);
    if (arena >= p->best.arena_bytes) return;
    memcpy(p->offsets, w->trial, (size_t)problem->n * sizeof *w->trial);
    p->best.arena_bytes = arena;
    p->best.method = rfx_packer_member_name(member);
}

void rfx_portfolio_end_turn(struct rfx_portfolio *p, uint64_t nodes, enum rfx_status status,
                            const struct rfx_error *err) {
    (void)pthread_mutex_lock(&p->lock);
    p->best.nodes += nodes;
    if (status == RFX_OK || p->status != RFX_OK) return;
    p->status = status;
    p->err = *err;
}

static void search_tree(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                        const struct rfx_portfolio_task *task) {
    const struct rfx_turn *turn = &rfx_turns[task->turn];
    struct rfx_search_request request = {.capacity_bytes = task->capacity,
                                         .rule = turn->member == RFX_MEMBER_CANONICAL
                                                     ? RFX_SEARCH_BY_CANONICAL
                                                     : RFX_SEARCH_BY_SECTION,
                                         .order = (enum rfx_search_order)turn->variant,
                                         .seed = task->nodes,
                                         .nodes = task->nodes,
                                         .stop = &p->stop};
    size_t next = 0;
    uint64_t nodes = 0;
    enum rfx_search_outcome outcome =
        rfx_search_probe(w->search, &request, w->trial, &next, &nodes);
    rfx_portfolio_end_turn(p, nodes, RFX_OK, NULL);
    if (outcome == RFX_SEARCH_FOUND) keep(p, w, turn->member);
    if (outcome == RFX_SEARCH_EXHAUSTED && next > p->best.lower_bound_bytes)
        p->best.lower_bound_bytes = next < p->best.arena_bytes ? next : p->best.arena_bytes;
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_tight(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                         const struct rfx_portfolio_task *task) {
    int variant = rfx_turns[task->turn].variant;
    struct rfx_tight_request request = {
        .capacity_bytes = task->capacity,
        .width = task->width,
        .backwards = (variant & 1) != 0,
        .tolerance = rfx_turns[task->turn].member == RFX_MEMBER_LOOSE
                         ? rfx_slack_tolerance(p->problem, task->capacity)
                         : 0,
        .seed = (variant & 2) != 0 ? task->nodes + (uint64_t)task->turn : 0,
        .nodes = UINT64_MAX,
        .stop = &p->stop};
    enum rfx_tight_outcome outcome = RFX_TIGHT_ALL_TRIED;
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    enum rfx_status status =
        rfx_tight_place(p->problem, &request, w->trial, &outcome, &nodes, &err);
    rfx_portfolio_end_turn(p, nodes, status, &err);
    if (status == RFX_OK && outcome == RFX_TIGHT_FOUND)
        keep(p, w, rfx_turns[task->turn].member);
    else if (outcome == RFX_TIGHT_ALL_TRIED ||
             (task->width >= RFX_TURN_MAX_WIDTH && request.seed == 0))
        p->over_at[task->turn] = task->capacity;
    (void)pthread_mutex_unlock(&p->lock);
}

/* Goes on where the last such turn ended. */
static void search_clauses(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                           const struct rfx_portfolio_task *task) {
    int variant = rfx_turns[task->turn].variant;
    struct rfx_clauses_packing_request request = {.capacity_bytes = task->capacity,
                                                  .backwards = (variant & 1) != 0,
                                                  .split = (variant & 2) != 0,
                                                  .seed = task->nodes};
    enum rfx_clauses_packing_outcome outcome = RFX_CLAUSES_PACKING_ALL_TRIED;
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    bool is_little = rfx_slack_kind(p->problem, task->capacity) == RFX_SLACK_LITTLE;
    uint64_t most = is_little ? task->nodes : task->nodes / NODES_PER_CONFLICT;
    enum rfx_status status = RFX_OK;
    (void)pthread_mutex_lock(&p->lock);
    struct rfx_clauses_packing *packing = rfx_kept_take(&p->kept, task->turn, task->capacity);
    (void)pthread_mutex_unlock(&p->lock);
    if (packing == NULL) status = rfx_clauses_packing_create(p->problem, &request, &packing, &err);
    if (status == RFX_OK)
        status =
            rfx_clauses_packing_search(packing, most, &p->stop, w->trial, &outcome, &nodes, &err);
    rfx_portfolio_end_turn(p, nodes, status, &err);
    if (status == RFX_OK && outcome == RFX_CLAUSES_PACKING_FOUND)
        keep(p, w, RFX_MEMBER_CLAUSES);
    else if (outcome == RFX_CLAUSES_PACKING_ALL_TRIED)
        p->over_at[task->turn] = task->capacity;
    rfx_kept_give(&p->kept, task->turn, task->capacity, packing);
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_skyline(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                           const struct rfx_portfolio_task *task) {
    struct rfx_skyline_request request = {
        .capacity_bytes = task->capacity,
        .unit_bytes = rfx_search_unit_bytes(w->search),
        .width = task->width,
        .rough = rfx_turns[task->turn].variant == 1,
        .seed = task->width > RFX_TURN_FIRST_WIDTH ? task->nodes : 0,
        .stop = &p->stop};
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    bool found = false;
    enum rfx_status status =
        rfx_skyline_place(p->problem, &request, w->trial, &found, &nodes, &err);
    rfx_portfolio_end_turn(p, nodes, status, &err);
    if (found) keep(p, w, RFX_MEMBER_SKYLINE);
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_overlaps(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                            const struct rfx_portfolio_task *task) {
    struct rfx_overlaps_request request = {
        .capacity_bytes = task->capacity,
        .variant = rfx_turns[task->turn].variant,
        .start = rfx_turns[task->turn].variant % 2 == 0 ? w->trial : NULL,
        .seed = task->nodes,
        .moves = MOVES_PER_NODE * task->nodes,
        .stop = &p->stop};
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    size_t arena = 0;
    enum rfx_status status =
        rfx_overlaps_place(p->problem, &request, w->trial, &arena, &nodes, &err);
    rfx_portfolio_end_turn(p, nodes, status, &err);
    if (status == RFX_OK && arena != SIZE_MAX) keep(p, w, RFX_MEMBER_OVERLAPS);
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_fronts(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                          const struct rfx_portfolio_task *task) {
    int variant = rfx_turns[task->turn].variant;
    struct rfx_fronts_request request = {
        .capacity_bytes = task->capacity,
        .width = task->width,
        .variant = variant % RFX_FRONTS_VARIANTS,
        .seed = variant >= RFX_FRONTS_VARIANTS ? task->nodes + (uint64_t)task->turn : 0,
        .nodes = GROUPS_PER_STATE * (uint64_t)task->width,
        .stop = &p->stop,
        .team = task->team};
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    size_t arena = SIZE_MAX;
    bool complete = false;
    enum rfx_status status =
        rfx_mended_fronts_place(p->problem, &request, w->trial, &arena, &complete, &nodes, &err);
    rfx_portfolio_end_turn(p, nodes, status, &err);
    if (status == RFX_OK && arena != SIZE_MAX) keep(p, w, RFX_MEMBER_FRONTS);
    if (complete || (task->width >= RFX_FRONTS_MAX_WIDTH && request.seed == 0))
        p->over_at[task->turn] = task->capacity;
    (void)pthread_mutex_unlock(&p->lock);
}

void rfx_portfolio_run_turn(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                            const struct rfx_portfolio_task *task) {
    switch (rfx_turns[task->turn].member) {
        case RFX_MEMBER_TIGHT:
        case RFX_MEMBER_LOOSE:
            search_tight(p, w, task);
            break;
        case RFX_MEMBER_SKYLINE:
            search_skyline(p, w, task);
            break;
        case RFX_MEMBER_OVERLAPS:
            search_overlaps(p, w, task);
            break;
        case RFX_MEMBER_CLAUSES:
            search_clauses(p, w, task);
            break;
        case RFX_MEMBER_FRONTS:
            search_fronts(p, w, task);
            break;
        case RFX_MEMBER_SECTIONS:
        case RFX_MEMBER_CANONICAL:
        case RFX_MEMBER_COUNT:
            search_tree(p, w, task);
            break;
    }
}
