/* Turns, and what the threads that take them share; see packer_portfolio.h. */
#include "tiler/portfolio/packer_portfolio.h"

#include <string.h>

#include "tiler/fronts/fronts.h"
#include "tiler/portfolio/portfolio_searches.h"
#include "tiler/portfolio/portfolio_slack.h"

/* FIRST_NODES: of the quick look by packer.h, which needs no threads. FIRST_BUDGET_NODES: of the
 * first turn of a tree search. Doubled from round to round, so what they are costs at most a factor
 * of two. */
enum {
    FIRST_NODES = 50,
    FIRST_BUDGET_NODES = 2000,
    MAX_ROUNDS = 40,
    MAX_WORKERS = 8, /* each has tables of O(n^2) bytes, and there are not many more turns */
};

/* Beams of so many states are wide enough for all threads to work on one. */
enum { SHARED_WIDTH = 2048 };

/* Beams by chance are not shared: there are enough of them for every thread, and in later rounds,
 * in which there are no others, the turns that would have to end first are long. */
static bool is_shared(const struct rfx_portfolio_task *task) {
    const struct rfx_turn *turn = &rfx_turns[task->turn];
    return turn->member == RFX_MEMBER_FRONTS && turn->variant < RFX_FRONTS_VARIANTS &&
           task->width >= SHARED_WIDTH;
}

static bool ask_user(void *user) {
    struct rfx_portfolio *p = user;
    return p->limits->stop(p->limits->user, rfx_place_now_ns() - p->begun_ns);
}

static size_t goal_of(const struct rfx_portfolio *p) {
    return p->limits->target_bytes != 0 ? p->limits->target_bytes : p->best.lower_bound_bytes;
}

static bool is_done(const struct rfx_portfolio *p) {
    size_t target = p->limits->target_bytes;
    if (p->best.arena_bytes <= p->best.lower_bound_bytes) return true;
    return target != 0 && (p->best.arena_bytes <= target || p->best.lower_bound_bytes > target);
}

/* The capacity of a turn now; 0: there is nothing for it to do. */
static size_t capacity_of(const struct rfx_portfolio *p, const struct rfx_turn *turn) {
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
static bool take_turn(struct rfx_portfolio *p, struct rfx_portfolio_task *task) {
    for (int idle = 0; idle < RFX_N_TURNS; idle++) {
        int k = p->next;
        int doublings = p->round < MAX_ROUNDS ? p->round : MAX_ROUNDS;
        task->turn = k;
        task->capacity = capacity_of(p, &rfx_turns[k]);
        task->nodes = (uint64_t)FIRST_BUDGET_NODES << doublings;
        task->width = rfx_turn_width(&rfx_turns[k], doublings);
        task->team = NULL;
        p->next = (k + 1) % RFX_N_TURNS;
        if (p->next == 0) p->round++;
        if (task->capacity != 0 && task->capacity != p->over_at[k]) return true;
    }
    return false;
}

/* A portfolio's threads. */
struct crew {
    struct rfx_portfolio *p;
    struct rfx_portfolio_worker workers[MAX_WORKERS];
    int n_workers;
};

static enum rfx_status prepare(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                               struct rfx_error *err) {
    struct rfx_memory *mem = p->problem->mem;
    size_t n = (size_t)p->problem->n;
    if (w->trial == NULL) w->trial = rfx_memory_calloc(mem, n, sizeof *w->trial);
    if (w->trial == NULL) return rfx_memory_fail(mem, "packer", n * sizeof *w->trial, err);
    return w->search == NULL ? rfx_search_create(p->problem, &w->search, err) : RFX_OK;
}

/* Whether no turn is to be taken any more. Under the lock. */
static bool must_end(struct rfx_portfolio *p) {
    return p->status != RFX_OK || is_done(p) || rfx_place_must_stop(p->problem->mem, &p->stop);
}

static void run_turn(struct rfx_portfolio *p, struct rfx_portfolio_worker *w,
                     const struct rfx_portfolio_task *task) {
    memcpy(w->trial, p->offsets, (size_t)p->problem->n * sizeof *w->trial);
    (void)pthread_mutex_unlock(&p->lock);
    rfx_portfolio_run_turn(p, w, task);
    (void)pthread_mutex_lock(&p->lock);
}

/* One thread: turns until all is done, or until one comes that all threads work on. */
static void work(void *user, int64_t index, int thread) {
    struct crew *crew = user;
    struct rfx_portfolio *p = crew->p;
    struct rfx_portfolio_worker *w = &crew->workers[index];
    struct rfx_error err = {{0}};
    (void)thread;
    enum rfx_status status = prepare(p, w, &err);
    rfx_portfolio_end_turn(p, 0, status, &err); /* no turn yet */
    if (status == RFX_OK) p->unit = rfx_search_unit_bytes(w->search);
    struct rfx_portfolio_task task;
    while (!p->has_shared && !must_end(p) && take_turn(p, &task)) {
        if (crew->n_workers > 1 && is_shared(&task)) {
            p->has_shared = true;
            p->shared = task;
        } else {
            run_turn(p, w, &task);
        }
    }
    if (!p->has_shared) atomic_store(&p->stopped, true); /* the others too */
    (void)pthread_mutex_unlock(&p->lock);
}

static void work_together(struct rfx_team *team, void *user) {
    struct crew *crew = user;
    struct rfx_portfolio *p = crew->p;
    crew->n_workers = rfx_team_threads(team);
    do {
        p->has_shared = false;
        rfx_team_for(team, crew->n_workers, work, crew);
        if (!p->has_shared) break;
        (void)pthread_mutex_lock(&p->lock);
        p->shared.team = team;
        if (!must_end(p)) run_turn(p, &crew->workers[0], &p->shared);
        (void)pthread_mutex_unlock(&p->lock);
    } while (true);
}

static void search(struct rfx_portfolio *p) {
    struct crew crew = {.p = p};
    int threads = p->limits->threads;
    rfx_team_run(threads < MAX_WORKERS ? threads : MAX_WORKERS, work_together, &crew);
    for (int i = 0; i < MAX_WORKERS; i++) {
        rfx_search_free(crew.workers[i].search);
        rfx_memory_release(p->problem->mem, crew.workers[i].trial);
    }
}

/* The best of the greedy strategies and of a short search. */
static enum rfx_status look_quickly(struct rfx_portfolio *p, struct rfx_error *err) {
    const struct rfx_portfolio_limits *all = p->limits;
    uint64_t nodes = all->only == 0 ? FIRST_NODES : 1;
    struct rfx_packer_limits limits = {nodes, 0, all->target_bytes, &p->stop, all->threads};
    return rfx_packer_solve(p->problem, &limits, p->offsets, &p->best, err);
}

static void start_clock(struct rfx_portfolio *p) {
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
    struct rfx_portfolio p = {.problem = problem, .limits = limits, .offsets = offsets, .unit = 1};
    if (pthread_mutex_init(&p.lock, NULL) != 0)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "packer: no mutex");
    start_clock(&p);
    enum rfx_status status = look_quickly(&p, err);
    bool is_small = problem->n <= RFX_PACKER_MAX_ITEMS; /* else packer.h has checked the answer */
    if (status == RFX_OK && !is_done(&p) && is_small) {
        search(&p);
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
