/* The search; see fronts.h. */
#include "tiler/fronts/fronts.h"

#include <string.h>

#include "tiler/fronts/fronts_beam.h"
#include "tiler/fronts/fronts_way.h"

/* Where few states are left of many, one in PROBED_OF of the width, what they have in common is
 * mostly right, so a narrower beam, one in PROBE_OF of the width, looks first what becomes of them.
 * That is worth it again once there were GROWN times as many. */
enum { PROBED_OF = 32, PROBE_OF = 16, GROWN = 4, LEAST_PROBE_WIDTH = 64 };

struct fronts {
    struct rfx_front_search search;
    struct rfx_front_beam beam, probe;
};

/* Adds the groups on the way to a step, the last first, to n that are listed; their number. */
static int list_way(const struct rfx_front_search *s, int step, struct rfx_front_step *way, int n) {
    for (int k = step; k > 0; k = s->steps[k].previous)
        way[n++] = (struct rfx_front_step){s->steps[k].boundary, s->steps[k].group};
    return n;
}

/* The offsets of the way to a state. */
static enum rfx_status reconstruct(struct rfx_front_search *s, const struct rfx_front_state *last,
                                   struct rfx_front_step *way, size_t *offsets,
                                   struct rfx_error *err) {
    int n = 0;
    if (last->previous >= 0) way[n++] = (struct rfx_front_step){last->from, last->group};
    n = list_way(s, last->previous, way, n);
    return rfx_front_way(s->problem, s->times, &s->makers[0].forests, way, n, offsets, err);
}

/* The offsets of what is placed on the way to a step. `placed`: per item, false; so after it. */
static enum rfx_status reconstruct_part(struct rfx_front_search *s, int step,
                                        struct rfx_front_step *way, bool *placed, size_t *offsets,
                                        struct rfx_error *err) {
    int n = list_way(s, step, way, 0);
    for (int i = 0; i < s->times->n_live; i++) placed[s->times->live[i]] = true;
    for (int k = 0; k < n; k++) {
        const struct rfx_front_boundary *b = &s->times->at[way[k].boundary];
        for (uint64_t rest = way[k].group.begins; rest != 0; rest &= rest - 1)
            placed[s->times->by_begin[b->begins + __builtin_ctzll(rest)]] = true;
    }
    enum rfx_status status =
        rfx_front_way(s->problem, s->times, &s->makers[0].forests, way, n, offsets, err);
    for (int i = 0; i < s->problem->n; i++) {
        if (!placed[i]) offsets[i] = SIZE_MAX;
        placed[i] = false;
    }
    return status;
}

/* Tells of the states of the last bucket, evenly from the best to the worst. */
static enum rfx_status list_parts(struct rfx_front_search *s, const struct rfx_front_beam *beam,
                                  struct rfx_error *err) {
    struct rfx_fronts_parts *parts = s->request->parts;
    size_t n = (size_t)s->problem->n;
    int64_t states = beam->n_deepest;
    int64_t count = states < parts->most ? states : parts->most;
    enum rfx_status status = RFX_OK;
    bool *placed = rfx_memory_calloc(s->mem, n, sizeof *placed);
    struct rfx_front_step *way = rfx_memory_calloc(s->mem, 2 * n, sizeof *way);
    if (placed == NULL || way == NULL)
        status = rfx_memory_fail(s->mem, "packer", 2 * n * sizeof *way, err);
    for (int64_t k = 0; status == RFX_OK && k < count; k++) {
        if (rfx_place_must_stop(s->mem, s->request->stop)) break;
        int step = beam->deepest + (int)(k * states / count);
        size_t *offsets = &parts->offsets[(size_t)k * n];
        status = reconstruct_part(s, step, way, placed, offsets, err);
        if (status == RFX_OK) parts->n++;
    }
    rfx_memory_release(s->mem, placed);
    rfx_memory_release(s->mem, way);
    return status;
}

/* Keeps the lowest of the packings of the states that got to the end, up to the first that fits:
 * how high places that were cut anew have to be is not known to the byte. */
static enum rfx_status settle(struct rfx_front_search *s, const struct rfx_front_beam *beam,
                              size_t *offsets, size_t *arena, struct rfx_error *err) {
    const struct rfx_place_problem *problem = s->problem;
    size_t n = (size_t)problem->n;
    enum rfx_status status = RFX_OK;
    size_t *trial = rfx_memory_calloc(s->mem, n, sizeof *trial);
    struct rfx_front_step *way = rfx_memory_calloc(s->mem, 2 * n, sizeof *way);
    if (trial == NULL || way == NULL)
        status = rfx_memory_fail(s->mem, "packer", n * sizeof *trial, err);
    for (int i = 0; status == RFX_OK && i < beam->buckets.at[beam->last].n; i++) {
        if (*arena <= s->request->capacity_bytes) break;
        if (i > 0 && rfx_place_must_stop(s->mem, s->request->stop)) break;
        status = reconstruct(s, rfx_front_beam_state(beam, beam->last, i), way, trial, err);
        if (status != RFX_OK) break;
        size_t bytes = rfx_place_arena_bytes(problem->items, problem->n, trial);
        if (bytes >= *arena) continue;
        if (!rfx_place_answer_is_valid(problem->items, problem->n, trial, bytes)) {
            status = rfx_place_fail_check("fronts", problem->n, err);
            break;
        }
        *arena = bytes;
        memcpy(offsets, trial, n * sizeof *trial);
    }
    rfx_memory_release(s->mem, trial);
    rfx_memory_release(s->mem, way);
    return status;
}

static enum rfx_status fail(const struct rfx_front_search *s, const struct rfx_front_beam *beam,
                            struct rfx_error *err) {
    return rfx_memory_fail(s->mem, "packer",
                           2 * beam->trees.nodes_capacity * sizeof *beam->trees.nodes, err);
}

/* Goes on from where the beam is with a narrower one, to the end. */
static enum rfx_status look_ahead(struct fronts *f, size_t *offsets, size_t *arena,
                                  struct rfx_error *err) {
    struct rfx_front_search *s = &f->search;
    bool complete = s->complete;
    enum rfx_status status = RFX_OK;
    if (f->probe.search == NULL)
        status = rfx_front_beam_init(&f->probe, s, s->request->width / PROBE_OF, err);
    if (status != RFX_OK) return status;
    bool has_memory = rfx_front_beam_take_over(&f->probe, &f->beam);
    while (has_memory && f->probe.waiting > 0) has_memory = rfx_front_beam_pass(&f->probe);
    if (!has_memory) return fail(s, &f->probe, err);
    if (f->probe.last >= 0) status = settle(s, &f->probe, offsets, arena, err);
    s->complete = complete;
    return status;
}

/* Goes from bucket to bucket until no states are left or an answer fits. */
static enum rfx_status search(struct fronts *f, size_t *offsets, size_t *arena,
                              struct rfx_error *err) {
    struct rfx_front_search *s = &f->search;
    struct rfx_front_beam *beam = &f->beam;
    int few = s->request->width / PROBED_OF;
    bool probes = s->request->width / PROBE_OF >= LEAST_PROBE_WIDTH;
    bool were_many = false;
    enum rfx_status status = RFX_OK;
    if (!rfx_front_beam_begin(beam)) return fail(s, beam, err);
    while (status == RFX_OK && beam->waiting > 0) {
        if (!rfx_front_beam_pass(beam)) return fail(s, beam, err);
        if (beam->waiting > GROWN * few) were_many = true;
        if (!probes || !were_many || beam->waiting > few || beam->waiting == 0) continue;
        were_many = false;
        status = look_ahead(f, offsets, arena, err);
        if (*arena <= s->request->capacity_bytes) return status;
    }
    if (status == RFX_OK && beam->last >= 0) status = settle(s, beam, offsets, arena, err);
    return status;
}

static enum rfx_status prepare(struct fronts *f, struct rfx_error *err) {
    struct rfx_front_search *s = &f->search;
    size_t threads = (size_t)rfx_team_threads(s->request->team);
    s->makers = rfx_memory_calloc(s->mem, threads, sizeof *s->makers);
    if (s->makers == NULL)
        return rfx_memory_fail(s->mem, "packer", threads * sizeof *s->makers, err);
    enum rfx_status status = rfx_front_beam_init(&f->beam, s, s->request->width, err);
    while (status == RFX_OK && s->n_makers < (int)threads)
        status =
            rfx_front_maker_init(&s->makers[s->n_makers++], s->problem, s->request, s->times, err);
    return status;
}

static void release(struct fronts *f) {
    struct rfx_front_search *s = &f->search;
    rfx_front_beam_release(&f->beam);
    rfx_front_beam_release(&f->probe);
    for (int i = 0; i < s->n_makers; i++) rfx_front_maker_release(&s->makers[i]);
    rfx_front_times_free(s->times);
    rfx_memory_release(s->mem, s->makers);
    rfx_memory_release(s->mem, s->steps);
}

enum rfx_status rfx_fronts_place(const struct rfx_place_problem *problem,
                                 const struct rfx_fronts_request *request, size_t *offsets,
                                 size_t *arena_bytes, bool *complete, uint64_t *nodes,
                                 struct rfx_error *err) {
    struct fronts f = {
        .search = {.mem = problem->mem, .problem = problem, .request = request, .complete = true}};
    struct rfx_front_search *s = &f.search;
    *arena_bytes = SIZE_MAX;
    *complete = true;
    if (request->parts != NULL) request->parts->n = 0;
    if (problem->n == 0 || problem->n > RFX_FRONTS_MAX_ITEMS) return RFX_OK;
    enum rfx_status status = rfx_front_times_create(problem, &s->times, err);
    if (status != RFX_OK || !s->times->possible) goto done;
    if (s->times->n_live > RFX_FOREST_MAX_TREES || s->times->max_live > RFX_FRONTS_MAX_LIVE)
        goto done;
    status = prepare(&f, err);
    if (status == RFX_OK) status = search(&f, offsets, arena_bytes, err);
    bool got_there = *arena_bytes <= request->capacity_bytes || f.beam.last >= 0;
    if (status == RFX_OK && !got_there && request->parts != NULL)
        status = list_parts(s, &f.beam, err);
    *complete = s->complete && *arena_bytes == SIZE_MAX;
    for (int i = 0; i < s->n_makers; i++)
        if (!s->makers[i].groups.complete) *complete = false;
done:
    *nodes += s->nodes;
    release(&f);
    return status;
}
