/* Strip packings with different measures of lifetimes, one per thread at a time; see
 * placement_many.h. */
#include "tiler/strategies/placement_many.h"

#include <pthread.h>
#include <string.h>

#include "layers/core/team.h"
#include "tiler/strategies/placement_strip.h"

/* Up to FEW_ITEMS, where it takes some tenths of a second, every measure is tried. */
enum { FEW_ITEMS = 1 << 18 };

/* In which order; with more items only as many of the first two as there are threads, so that all
 * take no longer than one. */
static const int measures[] = {1, 2, 3, 0};
enum { N_MEASURES = sizeof measures / sizeof *measures, N_OF_MANY = 2 };
_Static_assert((int)N_MEASURES == (int)RFX_STRIP_MEASURES, "each once");

/* What the threads share: everything below `lock` under it. */
struct many {
    const struct rfx_place_problem *problem;
    const struct rfx_many_request *request;
    size_t enough;
    int count;

    pthread_mutex_t lock;
    size_t *offsets; /* the best answer */
    size_t arena;    /* SIZE_MAX: there is none */
    int best;        /* where its measure is in the order */
    enum rfx_status status;
    struct rfx_error err;
};

/* Whether the answer of measure k would be taken if it had this arena. Under the lock. */
static bool is_better(const struct many *many, int k, size_t arena) {
    if (many->arena == SIZE_MAX) return true;
    if (many->arena <= many->enough) return k < many->best && arena <= many->enough;
    return arena < many->arena || (arena == many->arena && k < many->best);
}

/* Whether there is a use for measure k still. */
static bool is_wanted(struct many *many, int k) {
    if (k > 0 && rfx_place_must_stop(many->problem->mem, many->request->stop)) return false;
    (void)pthread_mutex_lock(&many->lock);
    bool wanted = many->status == RFX_OK && is_better(many, k, 0);
    (void)pthread_mutex_unlock(&many->lock);
    return wanted;
}

static void keep(struct many *many, int k, const size_t *offsets) {
    const struct rfx_place_problem *problem = many->problem;
    size_t arena = rfx_place_arena_bytes(problem->items, problem->n, offsets);
    (void)pthread_mutex_lock(&many->lock);
    if (is_better(many, k, arena)) {
        memcpy(many->offsets, offsets, (size_t)problem->n * sizeof *offsets);
        many->arena = arena;
        many->best = k;
    }
    (void)pthread_mutex_unlock(&many->lock);
}

static void place_measured(void *user, int64_t index, int thread) {
    struct many *many = user;
    const struct rfx_place_problem *problem = many->problem;
    int k = (int)index;
    (void)thread;
    if (!is_wanted(many, k)) return;
    struct rfx_error err = {{0}};
    size_t *offsets = rfx_memory_calloc(problem->mem, (size_t)problem->n, sizeof *offsets);
    enum rfx_status status = RFX_OK;
    if (offsets == NULL)
        status =
            rfx_memory_fail(problem->mem, "offsets", (size_t)problem->n * sizeof *offsets, &err);
    if (status == RFX_OK)
        status = rfx_strip_place_measured(problem, measures[k], k > 0 ? many->request->stop : NULL,
                                          offsets, &err);
    if (status == RFX_OK) keep(many, k, offsets);
    rfx_memory_release(problem->mem, offsets);
    if (status == RFX_OK || status == RFX_STATUS_CANCELLED) return;
    (void)pthread_mutex_lock(&many->lock);
    if (many->status == RFX_OK) {
        many->status = status;
        many->err = err;
    }
    (void)pthread_mutex_unlock(&many->lock);
}

static void place_together(struct rfx_team *team, void *user) {
    struct many *many = user;
    rfx_team_for(team, many->count, place_measured, many);
}

enum rfx_status rfx_many_place(const struct rfx_place_problem *problem,
                               const struct rfx_many_request *request, size_t *offsets,
                               size_t *arena_bytes, struct rfx_error *err) {
    struct many many = {.problem = problem,
                        .request = request,
                        .enough = problem->lower_bound,
                        .count = N_MEASURES,
                        .offsets = offsets,
                        .arena = SIZE_MAX};
    if (request->target_bytes > many.enough) many.enough = request->target_bytes;
    if (pthread_mutex_init(&many.lock, NULL) != 0)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "placement: no mutex");
    if (problem->n > FEW_ITEMS) many.count = request->threads < N_OF_MANY ? 1 : N_OF_MANY;
    int threads = request->threads < many.count ? request->threads : many.count;
    rfx_team_run(threads, place_together, &many);
    if (many.arena == SIZE_MAX && threads > 1) { /* there may be memory for one */
        many.status = RFX_OK;
        place_measured(&many, 0, 0);
    }
    (void)pthread_mutex_destroy(&many.lock);
    *arena_bytes = many.arena;
    if (many.arena != SIZE_MAX) return RFX_OK;
    if (err != NULL) *err = many.err;
    return many.status;
}
