/* Parts and moves; see portfolio_mend.h. */
#include "tiler/portfolio/portfolio_mend.h"

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

/* Mends one part after the other until an answer fits; keeps the lowest. */
static enum rfx_status mend(const struct rfx_place_problem *problem,
                            const struct rfx_fronts_request *request,
                            const struct rfx_fronts_parts *parts, size_t *trial, size_t *offsets,
                            size_t *arena_bytes, uint64_t *nodes, struct rfx_error *err) {
    size_t n = (size_t)problem->n;
    for (int k = 0; k < parts->n; k++) {
        size_t *part = &parts->offsets[(size_t)k * n];
        struct rfx_overlaps_request moves = {.capacity_bytes = request->capacity_bytes,
                                             .variant = k % 2,
                                             .start = part,
                                             .seed = request->seed + (uint64_t)k,
                                             .moves = MOVES,
                                             .stop = request->stop};
        size_t arena = SIZE_MAX;
        if (rfx_place_must_stop(problem->mem, request->stop)) break;
        if (!is_of_use(part, problem->n)) continue;
        enum rfx_status status = rfx_overlaps_place(problem, &moves, trial, &arena, nodes, err);
        if (status != RFX_OK) return status;
        if (arena >= *arena_bytes) continue;
        *arena_bytes = arena;
        memcpy(offsets, trial, n * sizeof *offsets);
        if (arena <= request->capacity_bytes) break;
    }
    return RFX_OK;
}

enum rfx_status rfx_mended_fronts_place(const struct rfx_place_problem *problem,
                                        const struct rfx_fronts_request *request, size_t *offsets,
                                        size_t *arena_bytes, bool *complete, uint64_t *nodes,
                                        struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct rfx_fronts_parts parts = {.most = parts_of(request->width)};
    struct rfx_fronts_request own = *request;
    size_t count = ((size_t)parts.most + 1) * n; /* one more is scratch */
    enum rfx_status status = RFX_OK;
    parts.offsets = rfx_memory_calloc(mem, count, sizeof *parts.offsets);
    own.parts = &parts;
    if (parts.offsets == NULL)
        status = rfx_memory_fail(mem, "packer", count * sizeof *parts.offsets, err);
    if (status == RFX_OK)
        status = rfx_fronts_place(problem, &own, offsets, arena_bytes, complete, nodes, err);
    if (status == RFX_OK && parts.n > 0)
        status = mend(problem, request, &parts, &parts.offsets[(size_t)parts.most * n], offsets,
                      arena_bytes, nodes, err);
    rfx_memory_release(mem, parts.offsets);
    return status;
}
