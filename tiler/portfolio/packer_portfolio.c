/* Turns, and what the threads that take them share; see packer_portfolio.h. */
#include "tiler/portfolio/packer_portfolio.h"

#include <pthread.h>
#include <string.h>

#include "layers/core/team.h"
#include "tiler/overlaps/overlaps.h"
#include "tiler/packer/packer_search.h"
#include "tiler/packer/packer_skyline.h"
#include "tiler/packer/packer_tight.h"
#include "tiler/portfolio/portfolio_kept.h"
#include "tiler/portfolio/portfolio_mend.h"
#include "tiler/portfolio/portfolio_slack.h"
#include "tiler/portfolio/portfolio_turns.h"

/* FIRST_NODES: of the quick look by packer.h, which needs no threads. FIRST_BUDGET_NODES: of the
 * first turn of a tree search. Doubled from round to round, so what they are costs at most a factor
 * of two. */
enum {
    FIRST_NODES = 50,
    FIRST_BUDGET_NODES = 2000,
    MOVES_PER_NODE = 16,     /* what they cost */
    GROUPS_PER_STATE = 4096, /* of a beam's width: more than it takes where it is of use */
    MAX_ROUNDS = 40,
    MAX_WORKERS = 8, /* each has tables of O(n^2) bytes, and there are not many more turns */
};

/* The share of a turn with clauses, in dead ends: as many as other searches' nodes where little is
 * free, where nothing else but *tight* finds anything after the first rounds, else half as many. */
enum { NODES_PER_CONFLICT = 2 };

/* What all threads share: everything below `lock` under it. */
struct portfolio {
    const struct rfx_place_problem *problem;
    const struct rfx_portfolio_limits *limits;
    struct rfx_place_stop stop;
    atomic_bool stopped;
    atomic_flag asking;
    _Atomic int64_t asked_at_ns;
    int64_t begun_ns;
    size_t unit; /* capacities in between gain nothing */

    pthread_mutex_t lock;
    int next, round;             /* the next turn */
    size_t over_at[RFX_N_TURNS]; /* the capacity at which a turn has no more to try */
    struct rfx_kept kept;
    size_t *offsets;               /* the best answer */
    struct rfx_packer_result best; /* nodes: of all */
    enum rfx_status status;
    struct rfx_error err;
};

/* What a thread has for itself. */
struct worker {
    struct rfx_search *search;
    size_t *trial; /* before a turn: the best answer */
};

/* A turn with what it may take. */
struct task {
    int turn;
    size_t capacity;
    uint64_t nodes;
    int width;
};

static bool ask_user(void *user) {
    struct portfolio *p = user;
    return p->limits->stop(p->limits->user, rfx_place_now_ns() - p->begun_ns);
}

static size_t goal_of(const struct portfolio *p) {
    return p->limits->target_bytes != 0 ? p->limits->target_bytes : p->best.lower_bound_bytes;
}

static bool is_done(const struct portfolio *p) {
    size_t target = p->limits->target_bytes;
    if (p->best.arena_bytes <= p->best.lower_bound_bytes) return true;
    return target != 0 && (p->best.arena_bytes <= target || p->best.lower_bound_bytes > target);
}

/* The capacity of a turn now; 0: there is nothing for it to do. */
static size_t capacity_of(const struct portfolio *p, const struct rfx_turn *turn) {
    size_t goal = goal_of(p);
    size_t part = (p->best.arena_bytes - goal) / (turn->where == RFX_HALFWAY ? 2 : 16);
    size_t capacity = (p->best.arena_bytes - (part > 0 ? part : 1)) / p->unit * p->unit;
    unsigned only = p->limits->only;
    bool seeks_target = p->limits->target_bytes != 0 && p->round % 3 != 1; /* above all */
    if (only != 0 && (only >> turn->member & 1) == 0) return 0;
    if (only == 0 && !rfx_turn_is_of_use(p->problem, goal, turn->member, p->round)) return 0;
    if (turn->member == RFX_MEMBER_LOOSE && rfx_slack_tolerance(p->problem, goal) == 0) return 0;
    bool is_split = turn->member == RFX_MEMBER_CLAUSES && (turn->variant & 2) != 0;
    if (is_split && !rfx_slack_is_none(p->problem, goal) &&
        !rfx_slack_is_beyond_counting(p->problem, goal, p->unit))
        return 0;
    switch (turn->where) {
        case RFX_AT_GOAL:
            return goal;
        case RFX_WHERE_FULL:
            return rfx_slack_is_none(p->problem, goal) ? goal : 0;
        case RFX_WHERE_FREE:
            return rfx_slack_is_none(p->problem, goal) ? 0 : goal;
        case RFX_AT_BOUND:
            return p->best.lower_bound_bytes < goal ? p->best.lower_bound_bytes : 0;
        case RFX_HALFWAY:
        case RFX_BELOW_BEST:
            return capacity > goal && !seeks_target ? capacity : 0;
    }
    return 0;
}

/* The next turn that has something to do; false: none has. Under the lock. */
static bool take_turn(struct portfolio *p, struct task *task) {
    for (int idle = 0; idle < RFX_N_TURNS; idle++) {
        int k = p->next;
        int doublings = p->round < MAX_ROUNDS ? p->round : MAX_ROUNDS;
        task->turn = k;
        task->capacity = capacity_of(p, &rfx_turns[k]);
        task->nodes = (uint64_t)FIRST_BUDGET_NODES << doublings;
        task->width = rfx_turn_width(rfx_turns[k].member, doublings);
        p->next = (k + 1) % RFX_N_TURNS;
        if (p->next == 0) p->round++;
        if (task->capacity != 0 && task->capacity != p->over_at[k]) return true;
    }
    return false;
}

/* Takes over an answer that fits the capacity and is better than the best. Under the lock. */
static void keep(struct portfolio *p, const struct worker *w, enum rfx_packer_member member) {
    const struct rfx_place_problem *problem = p->problem;
    size_t arena = rfx_place_arena_bytes(problem->items, problem->n, w->trial);
    if (arena >= p->best.arena_bytes) return;
    memcpy(p->offsets, w->trial, (size_t)problem->n * sizeof *w->trial);
    p->best.arena_bytes = arena;
    p->best.method = rfx_packer_member_name(member);
}

/* Takes the lock, and counts what a turn took; the first failure of all is the portfolio's. */
static void end_turn(struct portfolio *p, uint64_t nodes, enum rfx_status status,
                     const struct rfx_error *err) {
    (void)pthread_mutex_lock(&p->lock);
    p->best.nodes += nodes;
    if (status == RFX_OK || p->status != RFX_OK) return;
    p->status = status;
    p->err = *err;
}

static void search_tree(struct portfolio *p, struct worker *w, const struct task *task) {
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
    end_turn(p, nodes, RFX_OK, NULL);
    if (outcome == RFX_SEARCH_FOUND) keep(p, w, turn->member);
    if (outcome == RFX_SEARCH_EXHAUSTED && next > p->best.lower_bound_bytes)
        p->best.lower_bound_bytes = next < p->best.arena_bytes ? next : p->best.arena_bytes;
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_tight(struct portfolio *p, struct worker *w, const struct task *task) {
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
    end_turn(p, nodes, status, &err);
    if (status == RFX_OK && outcome == RFX_TIGHT_FOUND)
        keep(p, w, rfx_turns[task->turn].member);
    else if (outcome == RFX_TIGHT_ALL_TRIED ||
             (task->width >= RFX_TURN_MAX_WIDTH && request.seed == 0))
        p->over_at[task->turn] = task->capacity;
    (void)pthread_mutex_unlock(&p->lock);
}

/* Goes on where the last such turn ended. */
static void search_clauses(struct portfolio *p, struct worker *w, const struct task *task) {
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
    end_turn(p, nodes, status, &err);
    if (status == RFX_OK && outcome == RFX_CLAUSES_PACKING_FOUND)
        keep(p, w, RFX_MEMBER_CLAUSES);
    else if (outcome == RFX_CLAUSES_PACKING_ALL_TRIED)
        p->over_at[task->turn] = task->capacity;
    rfx_kept_give(&p->kept, task->turn, task->capacity, packing);
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_skyline(struct portfolio *p, struct worker *w, const struct task *task) {
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
    end_turn(p, nodes, status, &err);
    if (found) keep(p, w, RFX_MEMBER_SKYLINE);
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_overlaps(struct portfolio *p, struct worker *w, const struct task *task) {
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
    end_turn(p, nodes, status, &err);
    if (status == RFX_OK && arena != SIZE_MAX) keep(p, w, RFX_MEMBER_OVERLAPS);
    (void)pthread_mutex_unlock(&p->lock);
}

static void search_fronts(struct portfolio *p, struct worker *w, const struct task *task) {
    int variant = rfx_turns[task->turn].variant;
    struct rfx_fronts_request request = {
        .capacity_bytes = task->capacity,
        .width = task->width,
        .variant = variant % RFX_FRONTS_VARIANTS,
        .seed = variant >= RFX_FRONTS_VARIANTS ? task->nodes + (uint64_t)task->turn : 0,
        .nodes = GROUPS_PER_STATE * (uint64_t)task->width,
        .stop = &p->stop};
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    size_t arena = SIZE_MAX;
    bool complete = false;
    enum rfx_status status =
        rfx_mended_fronts_place(p->problem, &request, w->trial, &arena, &complete, &nodes, &err);
    end_turn(p, nodes, status, &err);
    if (status == RFX_OK && arena != SIZE_MAX) keep(p, w, RFX_MEMBER_FRONTS);
    if (complete || (task->width >= RFX_FRONTS_MAX_WIDTH && request.seed == 0))
        p->over_at[task->turn] = task->capacity;
    (void)pthread_mutex_unlock(&p->lock);
}

static void run_turn(struct portfolio *p, struct worker *w, const struct task *task) {
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

/* One thread: turns until all is done. */
static void work(void *user, int64_t index, int thread) {
    struct portfolio *p = user;
    struct rfx_memory *mem = p->problem->mem;
    struct worker w = {.trial = rfx_memory_calloc(mem, (size_t)p->problem->n, sizeof *w.trial)};
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    (void)index, (void)thread;
    if (w.trial == NULL)
        status = rfx_memory_fail(mem, "packer", (size_t)p->problem->n * sizeof *w.trial, &err);
    if (status == RFX_OK) status = rfx_search_create(p->problem, &w.search, &err);
    end_turn(p, 0, status, &err); /* no turn yet */
    if (status == RFX_OK) p->unit = rfx_search_unit_bytes(w.search);
    struct task task;
    while (p->status == RFX_OK && !is_done(p) && !rfx_place_must_stop(mem, &p->stop) &&
           take_turn(p, &task)) {
        memcpy(w.trial, p->offsets, (size_t)p->problem->n * sizeof *w.trial);
        (void)pthread_mutex_unlock(&p->lock);
        run_turn(p, &w, &task);
        (void)pthread_mutex_lock(&p->lock);
    }
    atomic_store(&p->stopped, true); /* the others too */
    (void)pthread_mutex_unlock(&p->lock);
    rfx_search_free(w.search);
    rfx_memory_release(mem, w.trial);
}

static void work_together(struct rfx_team *team, void *user) {
    struct portfolio *p = user;
    rfx_team_for(team, rfx_team_threads(team), work, p);
}

/* The best of the greedy strategies and of a short search. */
static enum rfx_status look_quickly(struct portfolio *p, struct rfx_error *err) {
    const struct rfx_portfolio_limits *all = p->limits;
    uint64_t nodes = all->only == 0 ? FIRST_NODES : 1;
    struct rfx_packer_limits limits = {nodes, 0, all->target_bytes, &p->stop, all->threads};
    return rfx_packer_solve(p->problem, &limits, p->offsets, &p->best, err);
}

static void start_clock(struct portfolio *p) {
    const struct rfx_portfolio_limits *limits = p->limits;
    p->begun_ns = rfx_place_now_ns();
    atomic_init(&p->stopped, false);
    atomic_init(&p->asked_at_ns, 0);
    atomic_flag_clear(&p->asking);
    p->stop.stopped = &p->stopped;
    if (limits->time_ns != 0) p->stop.deadline_ns = p->begun_ns + limits->time_ns;
    if (limits->stop == NULL) return;
    p->stop.ask = ask_user;
    p->stop.user = p;
    p->stop.asking = &p->asking;
    p->stop.asked_at_ns = &p->asked_at_ns;
}

enum rfx_status rfx_portfolio_solve(const struct rfx_place_problem *problem,
                                    const struct rfx_portfolio_limits *limits, size_t *offsets,
                                    struct rfx_packer_result *result, struct rfx_error *err) {
    struct portfolio p = {.problem = problem, .limits = limits, .offsets = offsets, .unit = 1};
    if (pthread_mutex_init(&p.lock, NULL) != 0)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "packer: no mutex");
    start_clock(&p);
    enum rfx_status status = look_quickly(&p, err);
    bool is_small = problem->n <= RFX_PACKER_MAX_ITEMS; /* else packer.h has checked the answer */
    if (status == RFX_OK && !is_done(&p) && is_small) {
        int workers = limits->threads < MAX_WORKERS ? limits->threads : MAX_WORKERS;
        rfx_team_run(workers, work_together, &p);
        status = p.status;
        if (status != RFX_OK && err != NULL) *err = p.err;
    }
    rfx_kept_release(&p.kept);
    (void)pthread_mutex_destroy(&p.lock);
    if (status == RFX_OK && is_small &&
        !rfx_place_answer_is_valid(problem->items, problem->n, offsets, p.best.arena_bytes))
        status = rfx_place_fail_check(p.best.method, problem->n, err);
    p.best.optimal = p.best.arena_bytes <= p.best.lower_bound_bytes;
    if (status == RFX_OK) status = rfx_memory_check_stop(problem->mem, err);
    if (status == RFX_OK) *result = p.best;
    return status;
}
