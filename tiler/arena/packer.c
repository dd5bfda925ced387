/* Runs the greedy packers, then the searches turn by turn; see packer.h.
 *
 * A turn is one search with a capacity and limits. A search with the proven bound as its capacity
 * either finds the optimum or raises the bound. A search with a capacity halfway between the bound
 * and the best answer improves the answer. */
#include "tiler/arena/packer.h"

#include <pthread.h>
#include <string.h>

#include "layers/core/team.h"
#include "tiler/arena/arena_problem.h"
#include "tiler/arena/exact_search.h"
#include "tiler/arena/greedy_packers.h"
#include "tiler/arena/tight_search.h"

/* Node limits and widths double from round to round, so too small first values cost at most a
 * factor of two. They decide which of several best packings is found, and so the offsets of plans.
 * FIRST_BUDGET_NODES: nodes of one order's search. FIRST_WIDTH, MAX_WIDTH: states of the beam.
 * After MAX_WIDTH (a thousand trees per bucket) only the exact search and randomised beams
 * continue.
 */
enum { FIRST_BUDGET_NODES = 250, MAX_ROUNDS = 48, FIRST_WIDTH = 4, MAX_WIDTH = 1024 };

/* A randomised search starts again after this many nodes, in case chance has led it astray. */
enum { RESTART_NODES = 8192 };

/* Each thread has tables of O(n^2) bytes. */
enum { MAX_THREADS = 8 };

enum where { AT_BOUND, AT_TARGET, HALFWAY };

/* A turn. `variant`: the order of the exact search; for the beam search bit 0 means backwards in
 * time, bit 1 randomised. `patient`: only without a node limit, since it takes long. */
struct turn {
    bool tight, patient;
    int variant;
    enum where where;
};

/* A round: every turn once. */
static const struct turn turns[] = {
    {true, false, 0, AT_BOUND},
    {true, false, 1, AT_BOUND},
    {true, false, 0, AT_TARGET},
    {true, false, 1, AT_TARGET},
    {false, false, RFX_EXACT_AREA, AT_BOUND},
    {false, false, RFX_EXACT_AREA, HALFWAY},
    {false, false, RFX_EXACT_LENGTH, AT_BOUND},
    {false, false, RFX_EXACT_LENGTH, HALFWAY},
    {false, false, RFX_EXACT_SIZE, AT_BOUND},
    {false, false, RFX_EXACT_SIZE, HALFWAY},
    {false, false, RFX_EXACT_SHUFFLED, AT_BOUND},
    {false, false, RFX_EXACT_SHUFFLED, HALFWAY},
    {false, true, RFX_EXACT_WAT, AT_BOUND},
    {false, true, RFX_EXACT_WAT, HALFWAY},
    {false, true, RFX_EXACT_TAW, AT_BOUND},
    {false, true, RFX_EXACT_TAW, HALFWAY},
    {false, true, RFX_EXACT_TWA, AT_BOUND},
    {false, true, RFX_EXACT_TWA, HALFWAY},
    {false, true, RFX_EXACT_WAT_SHUFFLED, AT_BOUND},
    {false, true, RFX_EXACT_WAT_SHUFFLED, HALFWAY},
    {true, true, 2, AT_BOUND},
    {true, true, 3, AT_BOUND},
};
enum { N_TURNS = sizeof turns / sizeof *turns };

/* A turn with its limits. */
struct task {
    int turn;
    size_t capacity;
    uint64_t nodes, seed;
    int width;
};

/* State shared by the threads; everything after `lock` is protected by it. */
struct packer {
    const struct rfx_place_problem *problem;
    const struct rfx_packer_limits *limits;
    struct rfx_place_stop stop;
    atomic_bool stopped;
    atomic_flag asking;
    _Atomic int64_t asked_at_ns;
    int64_t begun_ns;
    struct rfx_exact_search *searches[MAX_THREADS]; /* one per thread, like attempts */
    size_t *attempts[MAX_THREADS];                  /* offsets of one turn */

    pthread_mutex_t lock;
    int next, round;         /* the next turn, and its round */
    int first_round;         /* the round in which the bound last rose */
    size_t bound;            /* lower bound in first_round */
    size_t over_at[N_TURNS]; /* per turn of the beam search: the capacity at which it has tried
                                everything; 0: none */
    size_t *offsets;         /* the best answer */
    struct rfx_packer_result result;
    enum rfx_status status;
    struct rfx_error err;
};

static void keep_attempt(struct packer *packer, const size_t *attempt, size_t arena,
                         const char *method) {
    if (arena >= packer->result.arena_bytes) return;
    memcpy(packer->offsets, attempt, (size_t)packer->problem->n * sizeof *attempt);
    packer->result.arena_bytes = arena;
    packer->result.method = method;
}

static bool is_done(const struct packer *packer) {
    const struct rfx_packer_result *result = &packer->result;
    size_t target = packer->limits->target_bytes;
    if (result->arena_bytes <= result->lower_bound_bytes) return true;
    return target != 0 && (result->arena_bytes <= target || result->lower_bound_bytes > target);
}

static bool must_end(const struct packer *packer) {
    uint64_t limit = packer->limits->nodes;
    if (packer->status != RFX_OK || is_done(packer)) return true;
    if (limit != 0 && packer->result.nodes >= limit) return true;
    return rfx_place_must_stop(packer->problem->mem, &packer->stop);
}

/* Runs one greedy packer. may_stop: the caller may end it early. */
static enum rfx_status try_strategy(struct packer *packer, enum rfx_greedy_packer strategy,
                                    bool may_stop, struct rfx_error *err) {
    size_t arena = 0;
    size_t *attempt = packer->attempts[0];
    enum rfx_status status = rfx_greedy_place(
        packer->problem, strategy, may_stop ? &packer->stop : NULL, attempt, &arena, err);
    if (status == RFX_OK) keep_attempt(packer, attempt, arena, rfx_greedy_name(strategy));
    return status;
}

/* Runs as many strip packings as there is time for, at least one. */
static enum rfx_status try_many(struct packer *packer, struct rfx_error *err) {
    const struct rfx_packer_limits *limits = packer->limits;
    struct rfx_strip_request request = {.threads = limits->threads > 0 ? limits->threads : 1,
                                        .target_bytes = limits->target_bytes,
                                        .stop = &packer->stop};
    size_t arena = 0;
    size_t *attempt = packer->attempts[0];
    enum rfx_status status = rfx_strip_place_best(packer->problem, &request, attempt, &arena, err);
    if (status == RFX_OK)
        keep_attempt(packer, attempt, arena, rfx_greedy_name(RFX_GREEDY_STRIP_PACKING));
    return status;
}

/* Runs all greedy packers; with too many items for them, only strip packing, which is fast. So
 * there is always an answer. Strip packing runs first if the caller may stop the packer and the
 * other greedy packers would take long. */
static enum rfx_status try_greedy(struct packer *packer, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    bool may_stop = packer->limits->must_stop != NULL;
    packer->result.arena_bytes = SIZE_MAX;
    if (packer->problem->n > RFX_PACKER_MAX_GREEDY_ITEMS) return try_many(packer, err);
    if (may_stop && packer->problem->n > RFX_PACKER_MAX_ITEMS)
        status = try_strategy(packer, RFX_GREEDY_STRIP_PACKING, false, err);
    for (int k = 0; k < RFX_GREEDY_COUNT && status == RFX_OK; k++) {
        status = try_strategy(packer, (enum rfx_greedy_packer)k, may_stop, err);
        if (is_done(packer)) break;
    }
    if (status == RFX_STATUS_CANCELLED) status = RFX_OK;
    if (status == RFX_OK && packer->result.arena_bytes == SIZE_MAX)
        status = try_strategy(packer, RFX_GREEDY_STRIP_PACKING, false, err);
    return status;
}

/* Returns the capacity of turn k; 0: the turn has nothing to do. */
static size_t capacity_of(const struct packer *packer, int k) {
    const struct rfx_packer_result *result = &packer->result;
    size_t bound = result->lower_bound_bytes, target = packer->limits->target_bytes;
    size_t unit = rfx_exact_unit_bytes(packer->searches[0]);
    size_t capacity = bound;
    if (turns[k].patient && packer->limits->nodes != 0) return 0;
    if (turns[k].where == AT_TARGET) capacity = target;
    if (turns[k].where == HALFWAY) /* halfway to the best answer, or at the target */
        capacity = target != 0 ? target : bound + (result->arena_bytes - bound) / 2 / unit * unit;
    if (turns[k].where != AT_BOUND && capacity <= bound) return 0;
    return capacity == packer->over_at[k] ? 0 : capacity;
}

/* Sets the most nodes that a turn may visit. A turn halfway gets half as many, since its failure
 * proves nothing. */
static void set_nodes(const struct packer *packer, struct task *task) {
    uint64_t limit = packer->limits->nodes;
    uint64_t left = limit == 0 ? UINT64_MAX : limit - packer->result.nodes;
    int doublings = packer->round < MAX_ROUNDS ? packer->round : MAX_ROUNDS;
    uint64_t most = (uint64_t)FIRST_BUDGET_NODES << doublings;
    if (turns[task->turn].where == HALFWAY) most /= 2;
    task->nodes = !turns[task->turn].tight && most < left ? most : left;
    task->seed = most; /* a different seed in each round */
}

/* Takes the next turn that has something to do. */
static void take_turn(struct packer *packer, struct task *task) {
    do {
        int k = packer->next;
        if (k == 0 && packer->result.lower_bound_bytes !=
                          packer->bound) { /* the bound has risen: widths start again */
            packer->bound = packer->result.lower_bound_bytes;
            packer->first_round = packer->round;
        }
        int rounds = packer->round - packer->first_round;
        task->turn = k;
        task->capacity = capacity_of(packer, k);
        set_nodes(packer, task);
        task->width = rounds < 16 ? FIRST_WIDTH << rounds : MAX_WIDTH + 1;
        if (turns[k].tight && task->width > MAX_WIDTH) {
            task->width = MAX_WIDTH; /* only randomised turns are repeated at this width */
            if (turns[k].variant < 2) task->capacity = 0;
        }
        packer->next = (k + 1) % N_TURNS;
        if (packer->next == 0) packer->round++;
    } while (task->capacity == 0);
}

/* Takes the lock, and adds the nodes of a turn. The first failure becomes the packer's. */
static void end_turn(struct packer *packer, uint64_t nodes, enum rfx_status status,
                     const struct rfx_error *err) {
    (void)pthread_mutex_lock(&packer->lock);
    packer->result.nodes += nodes;
    if (status == RFX_OK || packer->status != RFX_OK) return;
    packer->status = status;
    packer->err = *err;
}

static size_t arena_of(const struct packer *packer, const size_t *attempt) {
    return rfx_place_arena_bytes(packer->problem->items, packer->problem->n, attempt);
}

static void search_exactly(struct packer *packer, const struct task *task, int thread) {
    size_t *attempt = packer->attempts[thread];
    struct rfx_exact_request request = {.capacity_bytes = task->capacity,
                                        .order = (enum rfx_exact_order)turns[task->turn].variant,
                                        .seed = task->seed,
                                        .nodes = task->nodes,
                                        .stop = &packer->stop};
    bool restarts = request.order == RFX_EXACT_WAT_SHUFFLED;
    size_t next = 0;
    uint64_t nodes = 0;
    enum rfx_exact_outcome outcome = RFX_EXACT_LIMIT;
    do {
        request.nodes = task->nodes - nodes;
        if (restarts && request.nodes > RESTART_NODES) request.nodes = RESTART_NODES;
        outcome = rfx_exact_probe(packer->searches[thread], &request, attempt, &next, &nodes);
        request.seed++;
    } while (restarts && outcome == RFX_EXACT_LIMIT && nodes < task->nodes &&
             !rfx_place_must_stop(packer->problem->mem, &packer->stop));
    end_turn(packer, nodes, RFX_OK, NULL);
    struct rfx_packer_result *result = &packer->result;
    if (outcome == RFX_EXACT_FOUND)
        keep_attempt(packer, attempt, arena_of(packer, attempt), "exact");
    /* no answer is below `next`, and the best known one is an answer */
    if (outcome == RFX_EXACT_EXHAUSTED && next > result->lower_bound_bytes)
        result->lower_bound_bytes = next < result->arena_bytes ? next : result->arena_bytes;
    (void)pthread_mutex_unlock(&packer->lock);
}

/* Runs the beam search for a packing without a spare byte. */
static void search_tight(struct packer *packer, const struct task *task, int thread) {
    size_t *attempt = packer->attempts[thread];
    int variant = turns[task->turn].variant;
    struct rfx_tight_request request = {
        .capacity_bytes = task->capacity,
        .width = task->width,
        .backwards = (variant & 1) != 0,
        .seed = (variant & 2) != 0 ? task->seed + (uint64_t)task->turn : 0,
        .nodes = task->nodes,
        .stop = &packer->stop};
    enum rfx_tight_outcome outcome = RFX_TIGHT_ALL_TRIED;
    struct rfx_error err = {{0}};
    uint64_t nodes = 0;
    enum rfx_status status =
        rfx_tight_place(packer->problem, &request, attempt, &outcome, &nodes, &err);
    end_turn(packer, nodes, status, &err);
    if (status == RFX_OK && outcome == RFX_TIGHT_FOUND)
        keep_attempt(packer, attempt, arena_of(packer, attempt), "exact");
    if (outcome == RFX_TIGHT_ALL_TRIED) packer->over_at[task->turn] = task->capacity;
    (void)pthread_mutex_unlock(&packer->lock);
}

/* One thread: takes turns until the packer is done. */
static void work(void *user, int64_t index, int thread) {
    struct packer *packer = user;
    int k = (int)index;
    size_t n = (size_t)packer->problem->n;
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK;
    struct task task;
    (void)thread;
    if (k > 0) { /* thread 0 has its own */
        packer->attempts[k] =
            rfx_memory_calloc(packer->problem->mem, n, sizeof *packer->attempts[k]);
        if (packer->attempts[k] == NULL)
            status = rfx_memory_fail(packer->problem->mem, "packer", n * sizeof(size_t), &err);
        if (status == RFX_OK)
            status = rfx_exact_create(packer->problem, &packer->searches[k], &err);
    }
    end_turn(packer, 0, status, &err); /* no turn was taken yet */
    while (!must_end(packer)) {
        take_turn(packer, &task);
        (void)pthread_mutex_unlock(&packer->lock);
        if (turns[task.turn].tight)
            search_tight(packer, &task, k);
        else
            search_exactly(packer, &task, k);
        (void)pthread_mutex_lock(&packer->lock);
    }
    atomic_store(&packer->stopped, true); /* stops the other threads */
    (void)pthread_mutex_unlock(&packer->lock);
}

static void work_together(struct rfx_team *team, void *user) {
    rfx_team_for(team, rfx_team_threads(team), work, user);
}

/* Runs the turns on all threads. If nodes are limited, runs them on one thread, so that the answer
 * is deterministic. */
static enum rfx_status search_all(struct packer *packer, struct rfx_error *err) {
    const struct rfx_packer_limits *limits = packer->limits;
    int threads = limits->nodes == 0 && limits->threads > 1 ? limits->threads : 1;
    enum rfx_status status = rfx_exact_create(packer->problem, &packer->searches[0], err);
    if (status != RFX_OK) return status;
    packer->stop.stopped = &packer->stopped;
    rfx_team_run(threads < MAX_THREADS ? threads : MAX_THREADS, work_together, packer);
    if (packer->status != RFX_OK && err != NULL) *err = packer->err;
    return packer->status;
}

static bool ask_caller(void *user) {
    struct packer *packer = user;
    return packer->limits->must_stop(packer->limits->user, rfx_place_now_ns() - packer->begun_ns);
}

static void start_clock(struct packer *packer) {
    const struct rfx_packer_limits *limits = packer->limits;
    bool is_timed = limits->time_ns != 0 || limits->must_stop != NULL;
    packer->begun_ns = is_timed ? rfx_place_now_ns() : 0;
    atomic_init(&packer->stopped, false);
    atomic_init(&packer->asked_at_ns, 0);
    atomic_flag_clear(&packer->asking);
    if (limits->time_ns != 0) packer->stop.deadline_ns = packer->begun_ns + limits->time_ns;
    if (limits->must_stop == NULL) return;
    packer->stop.ask = ask_caller;
    packer->stop.user = packer;
    packer->stop.asking = &packer->asking;
    packer->stop.asked_at_ns = &packer->asked_at_ns;
}

static enum rfx_status solve(struct packer *packer, struct rfx_error *err) {
    const struct rfx_place_problem *problem = packer->problem;
    packer->attempts[0] = rfx_memory_calloc(problem->mem, (size_t)problem->n, sizeof(size_t));
    if (packer->attempts[0] == NULL)
        return rfx_memory_fail(problem->mem, "packer", (size_t)problem->n * sizeof(size_t), err);
    enum rfx_status status = try_greedy(packer, err);
    if (status == RFX_OK && !is_done(packer) && problem->n <= RFX_PACKER_MAX_ITEMS)
        status = search_all(packer, err);
    if (status == RFX_OK) status = rfx_memory_check_stop(problem->mem, err);
    if (status == RFX_OK && !rfx_place_answer_is_valid(problem->items, problem->n, packer->offsets,
                                                       packer->result.arena_bytes))
        status = rfx_place_fail_check(packer->result.method, problem->n, err);
    return status;
}

enum rfx_status rfx_packer_solve(const struct rfx_place_problem *problem,
                                 const struct rfx_packer_limits *limits, size_t *offsets,
                                 struct rfx_packer_result *result, struct rfx_error *err) {
    struct packer packer = {.problem = problem, .limits = limits, .offsets = offsets};
    packer.result.lower_bound_bytes = problem->lower_bound;
    if (pthread_mutex_init(&packer.lock, NULL) != 0)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "packer: no mutex");
    start_clock(&packer);
    enum rfx_status status = solve(&packer, err);
    for (int k = 0; k < MAX_THREADS; k++) {
        rfx_exact_free(packer.searches[k]);
        rfx_memory_release(problem->mem, packer.attempts[k]);
    }
    (void)pthread_mutex_destroy(&packer.lock);
    packer.result.optimal = packer.result.arena_bytes <= packer.result.lower_bound_bytes;
    if (status == RFX_OK) *result = packer.result;
    return status;
}
