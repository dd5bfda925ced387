/* Which boundary comes when; see fronts_times.h. */
#include "tiler/fronts/fronts_times.h"

#include <stdlib.h>

/* The fullest section, of several the one nearest to the middle. */
static int choose_start(const struct rfx_place_problem *problem) {
    int n = problem->n_sections;
    int best = 0;
    for (int s = 1; s < n; s++) {
        if (problem->breadth[s] < problem->breadth[best]) continue;
        if (problem->breadth[s] > problem->breadth[best] ||
            abs(2 * s + 1 - n) < abs(2 * best + 1 - n))
            best = s;
    }
    return best;
}

/* Lists what ends and begins where a front leaves section s. */
static struct rfx_front_boundary list_boundary(struct rfx_front_times *t,
                                               const struct rfx_place_problem *problem, int side,
                                               int s, int *n_ends, int *n_begins) {
    bool later = side == RFX_FRONT_LATER;
    struct rfx_front_boundary b = {
        .side = side, .beyond = later ? s + 1 : s - 1, .ends = *n_ends, .begins = *n_begins};
    for (int i = 0; i < problem->n; i++) {
        bool alive = problem->first[i] <= s && problem->last[i] > s;
        bool beyond = problem->first[i] <= b.beyond && problem->last[i] > b.beyond;
        if (alive && !beyond) {
            t->bit[side][i] = b.n_ends++;
            t->by_end[(*n_ends)++] = i;
        }
        if (!alive && beyond) {
            b.n_begins++;
            t->by_begin[(*n_begins)++] = i;
        }
    }
    return b;
}

static bool is_possible(const struct rfx_front_boundary *b) {
    return b->n_ends > 0 && b->n_begins > 0 && b->n_ends <= RFX_FRONT_MAX_SIDE &&
           b->n_begins <= RFX_FRONT_MAX_SIDE;
}

/* How little there is to choose at a boundary: what has one end or one begin is a single group. */
static int freedom(const struct rfx_front_boundary *b) {
    int fewer = b->n_ends < b->n_begins ? b->n_ends : b->n_begins;
    if (fewer == 1) return b->n_ends == 1;
    return fewer * 4 * RFX_FRONT_MAX_SIDE + b->n_ends + b->n_begins;
}

/* Whether all that ends at a boundary is there once the boundaries before `done` are passed. */
static bool is_ready(const struct rfx_front_times *t, const struct rfx_front_boundary *b,
                     const int *begun) {
    for (int k = 0; k < b->n_ends; k++)
        if (begun[t->by_end[b->ends + k]] == 0) return false;
    return true;
}

/* Puts the boundaries in the order in which they are passed: whichever has the least freedom of
 * those whose ends are there. Nothing hangs on the order of time, as groups of different boundaries
 * that can both be made have no item in common. `begun`: per item, 0. */
static void order_boundaries(struct rfx_front_times *t, int *begun) {
    int live[RFX_FRONT_SIDES] = {t->n_live, t->n_live};
    t->max_live = t->n_live;
    for (int i = 0; i < t->n_live; i++) begun[t->live[i]] = 1;
    for (int k = 0; k < t->n; k++) {
        int best = -1;
        for (int j = k; j < t->n; j++)
            if (is_ready(t, &t->at[j], begun) &&
                (best < 0 || freedom(&t->at[j]) < freedom(&t->at[best])))
                best = j;
        struct rfx_front_boundary b = t->at[best]; /* there is one: the next in time */
        for (int j = best; j > k; j--) t->at[j] = t->at[j - 1];
        t->at[k] = b;
        for (int i = 0; i < b.n_begins; i++) begun[t->by_begin[b.begins + i]] = 1;
        live[b.side] += b.n_begins;
        if (live[b.side] > t->max_live) t->max_live = live[b.side];
        live[b.side] -= b.n_ends;
    }
}

static void list_boundaries(struct rfx_front_times *t, const struct rfx_place_problem *problem) {
    int n_ends = 0;
    int n_begins = 0;
    t->possible = true;
    for (int s = t->start; s < problem->n_sections - 1; s++)
        t->at[t->n++] = list_boundary(t, problem, RFX_FRONT_LATER, s, &n_ends, &n_begins);
    for (int s = t->start; s > 0; s--)
        t->at[t->n++] = list_boundary(t, problem, RFX_FRONT_EARLIER, s, &n_ends, &n_begins);
    for (int k = 0; k < t->n; k++)
        if (!is_possible(&t->at[k])) t->possible = false;
}

enum rfx_status rfx_front_times_create(const struct rfx_place_problem *problem,
                                       struct rfx_front_times **out, struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct rfx_front_times *t = rfx_memory_calloc(mem, 1, sizeof *t);
    if (t == NULL) return rfx_memory_fail(mem, "packer", sizeof *t, err);
    t->mem = mem;
    t->at = rfx_memory_calloc(mem, (size_t)problem->n_sections, sizeof *t->at);
    t->by_end = rfx_memory_calloc(mem, 2 * n, sizeof *t->by_end);
    t->by_begin = rfx_memory_calloc(mem, n, sizeof *t->by_begin);
    t->live = rfx_memory_calloc(mem, n, sizeof *t->live);
    int *begun = rfx_memory_calloc(mem, n, sizeof *begun);
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        t->bit[side] = rfx_memory_calloc(mem, n, sizeof *t->bit[side]);
    if (t->at == NULL || t->by_end == NULL || t->by_begin == NULL || t->live == NULL ||
        t->bit[0] == NULL || t->bit[1] == NULL || begun == NULL) {
        rfx_memory_release(mem, begun);
        rfx_front_times_free(t);
        return rfx_memory_fail(mem, "packer", 2 * n * sizeof *t->by_end, err);
    }
    t->start = choose_start(problem);
    for (int i = 0; i < problem->n; i++)
        if (problem->first[i] <= t->start && problem->last[i] > t->start) t->live[t->n_live++] = i;
    list_boundaries(t, problem);
    order_boundaries(t, begun);
    rfx_memory_release(mem, begun);
    *out = t;
    return RFX_OK;
}

void rfx_front_times_free(struct rfx_front_times *times) {
    if (times == NULL) return;
    void *const blocks[] = {times->at,   times->by_end, times->by_begin,
                            times->live, times->bit[0], times->bit[1]};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(times->mem, blocks[i]);
    rfx_memory_release(times->mem, times);
}
