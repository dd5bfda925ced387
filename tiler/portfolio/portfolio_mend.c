/* Parts and moves; see portfolio_mend.h. */
#include "tiler/portfolio/portfolio_mend.h"

#include <stdatomic.h>
#include <string.h>

#include "tiler/overlaps/overlaps.h"

/* A part is tried for so many states of the beam's width, so that narrow beams, which soon end, are
 * not outweighed; each with so many moves, some hundredths of a second. Parts that lack more than a
 * third of the items were never mended. */
enum { STATES_PER_PART = 32, MAX_PARTS = 16, MOVES = 50000, LEAST_PLACED_OF_3 = 2 };

static int parts_of(int width) {
    int parts = width / STATES_PER_PART;
    if (parts > MAX_PARTS) return MAX_PARTS;
    return parts > 0 ? parts : 1;
}

static bool is_of_use(const size_t *part, int n) {
    int placed = 0;
    for (int i = 0; i < n; i++) placed += part[i] != SIZE_MAX;
    return 3 * (int64_t)placed >= LEAST_PLACED_OF_3 * (int64_t)n;
}

/* What the threads that mend share. */
struct mending {
    const struct rfx_place_problem *problem;
    const struct rfx_fronts_request *request;
    const struct rfx_fronts_parts *parts; /* become answers where they are mended */
    struct {
        size_t arena; /* SIZE_MAX: not mended */
        uint64_t moves;
        enum rfx_status status;
        struct rfx_error err;
    } of[MAX_PARTS];
    atomic_int first; /* the first one that fits; parts->n: none does yet */
};

static void mend_part(void *user, int64_t index, int thread) {
    struct mending *m = user;
    const struct rfx_place_problem *problem = m->problem;
    int k = (int)index;
    size_t *part = &m->parts->offsets[(size_t)k * (size_t)problem->n];
    (void)thread;
    m->of[k].arena = SIZE_MAX;
    if (atomic_load(&m->first) < k || !is_of_use(part, problem->n)) return;
    if (rfx_place_must_stop(problem->mem, m->request->stop)) return;
    struct rfx_overlaps_request moves = {.capacity_bytes = m->request->capacity_bytes,
                                         .variant = k % 2,
                                         .start = part,
                                         .seed = m->request->seed + (uint64_t)k,
                                         .moves = MOVES,
                                         .stop = m->request->stop};
    m->of[k].status =
        rfx_overlaps_place(problem, &moves, part, &m->of[k].arena, &m->of[k].moves, &m->of[k].err);
    if (m->of[k].status != RFX_OK || m->of[k].arena > m->request->capacity_bytes) return;
    int first = atomic_load(&m->first);
    while (k < first && !atomic_compare_exchange_weak(&m->first, &first, k)) {
    }
}

/* Mends parts until an answer fits: the first that does is taken, else the lowest. */
static enum rfx_status mend(const struct rfx_place_problem *problem,
                            const struct rfx_fronts_request *request,
                            const struct rfx_fronts_parts *parts, size_t *offsets,
                            size_t *arena_bytes, uint64_t *nodes, struct rfx_error *err) {
    struct mending m = {.problem = problem, .request = request, .parts = parts};
    size_t n = (size_t)problem->n;
    atomic_init(&m.first, parts->n);
    rfx_team_for(request->team, parts->n, mend_part, &m);
    for (int k = 0; k < parts->n; k++) {
        *nodes += m.of[k].moves;
        if (k > atomic_load(&m.first)) continue;
        if (m.of[k].status != RFX_OK) {
            if (err != NULL) *err = m.of[k].err;
            return m.of[k].status;
        }
        if (m.of[k].arena >= *arena_bytes) continue;
        *arena_bytes = m.of[k].arena;
        memcpy(offsets, &parts->offsets[(size_t)k * n], n * sizeof *offsets);
    }
    return RFX_OK;
}

enum rfx_status rfx_mended_fronts_place(const struct rfx_place_problem *problem,
                                        const struct rfx_fronts_request *request, size_t *offsets,
                                        size_t *arena_bytes, bool *complete, uint64_t *nodes,
                                        struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    struct rfx_fronts_parts parts = {.most = parts_of(request->width)};
    struct rfx_fronts_request own = *request;
    size_t count = (size_t)parts.most * (size_t)problem->n;
    enum rfx_status status = RFX_OK;
    parts.offsets = rfx_memory_calloc(mem, count, sizeof *parts.offsets);
    own.parts = &parts;
    if (parts.offsets == NULL)
        status = rfx_memory_fail(mem, "packer", count * sizeof *parts.offsets, err);
    if (status == RFX_OK)
        status = rfx_fronts_place(problem, &own, offsets, arena_bytes, complete, nodes, err);
    if (status == RFX_OK && parts.n > 0)
        status = mend(problem, request, &parts, offsets, arena_bytes, nodes, err);
    rfx_memory_release(mem, parts.offsets);
    return status;
}
