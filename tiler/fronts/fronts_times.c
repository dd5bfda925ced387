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

static int weight(const struct rfx_front_boundary *b) {
    return b->n_ends + b->n_begins;
}

/* The side whose next boundary has fewer ends and begins comes first. */
static void list_boundaries(struct rfx_front_times *t, const struct rfx_place_problem *problem) {
    int n_ends = 0;
    int n_begins = 0;
    int s[RFX_FRONT_SIDES] = {t->start, t->start};
    struct rfx_front_boundary next[RFX_FRONT_SIDES];
    bool has[RFX_FRONT_SIDES] = {false, false};
    t->possible = true;
    for (;;) {
        if (!has[0] && s[0] < problem->n_sections - 1) {
            next[0] = list_boundary(t, problem, 0, s[0]++, &n_ends, &n_begins);
            has[0] = true;
        }
        if (!has[1] && s[1] > 0) {
            next[1] = list_boundary(t, problem, 1, s[1]--, &n_ends, &n_begins);
            has[1] = true;
        }
        if (!has[0] && !has[1]) return;
        int side = !has[0] || (has[1] && weight(&next[1]) < weight(&next[0]));
        has[side] = false;
        t->at[t->n++] = next[side];
        if (!is_possible(&next[side])) t->possible = false;
    }
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
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        t->bit[side] = rfx_memory_calloc(mem, n, sizeof *t->bit[side]);
    if (t->at == NULL || t->by_end == NULL || t->by_begin == NULL || t->live == NULL ||
        t->bit[0] == NULL || t->bit[1] == NULL) {
        rfx_front_times_free(t);
        return rfx_memory_fail(mem, "packer", 2 * n * sizeof *t->by_end, err);
    }
    t->start = choose_start(problem);
    int live_most = 0;
    for (int s = 0; s < problem->n_sections; s++) {
        int live = 0;
        for (int i = 0; i < problem->n; i++) {
            if (problem->first[i] > s || problem->last[i] <= s) continue;
            if (s == t->start) t->live[live] = i;
            live++;
        }
        if (s == t->start) t->n_live = live;
        if (live > live_most) live_most = live;
    }
    list_boundaries(t, problem);
    for (int k = 0; k < t->n; k++) /* some begin before others end */
        if (t->at[k].n_begins > t->max_live) t->max_live = t->at[k].n_begins;
    t->max_live += live_most;
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
