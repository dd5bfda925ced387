/* The beam; see fronts.h. */
#include "tiler/fronts/fronts.h"

#include <string.h>

#include "tiler/fronts/fronts_buckets.h"
#include "tiler/fronts/fronts_judge.h"
#include "tiler/fronts/fronts_way.h"
#include "tiler/packer/packer_hash.h"
#include "tiler/packer/packer_slots.h"

enum { COMPARED_PER_NODE = 64 }; /* what they cost */
enum { NODES_OF_LINE = 64 / sizeof(struct rfx_pq_node) };

/* With a seed: how much better a state may seem. */
static const double chance_gain = 4;

/* More than what rounding makes of a score. */
static const double score_error = 0.01;

/* The second one as it would have to be if all that is known were counted. The others are for
 * places that were cut in all directions: those that leave more orders do better still, or, of
 * boundaries with many groups, small ones. */
static const struct rfx_front_weights variants[RFX_FRONTS_VARIANTS] = {
    {.match = 1.5, .orders = 1.5, .size = 1, .among = 0.4},
    {.match = -5, .orders = 1},
    {.match = -1, .orders = 2}};

/* By chance something between the variant and another one. */
static struct rfx_front_weights weights_of(const struct rfx_fronts_request *request) {
    struct rfx_front_weights w = variants[request->variant];
    if (request->seed == 0) return w;
    uint64_t chance = rfx_packer_mix(request->seed);
    const struct rfx_front_weights *other = &variants[chance % RFX_FRONTS_VARIANTS];
    double part = (double)(chance >> 40) * 0x1p-24;
    w.match += part * (other->match - w.match);
    w.orders += part * (other->orders - w.orders);
    w.size += part * (other->size - w.size);
    w.among += part * (other->among - w.among);
    return w;
}

struct state {
    int previous, from; /* the step before (-1: none), and the boundary and group of the last */
    struct rfx_front_group group;
    struct rfx_front_left left;
    int slot, n_nodes[RFX_FRONT_SIDES], n_trees;
    struct rfx_forest_set linked;
    struct rfx_front_sums sums; /* of its forest */
    double gain;                /* of all groups */
};

/* Why a step was made. */
struct step {
    int previous, boundary;
    struct rfx_front_group group;
};

struct fronts {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_fronts_request *request;
    struct rfx_front_times *times;
    struct rfx_forests forests;
    struct rfx_front_groups groups;
    struct rfx_front_judge judge;
    struct rfx_front_buckets buckets; /* by how many items ended; as many as one boundary has ends,
                                         and one more: none wraps around */
    struct state *states;             /* [width] of each bucket */
    struct step *steps;
    int n_steps;
    size_t steps_capacity;
    struct rfx_pq_slots trees; /* a slot has both sides */
    int last;                  /* the bucket of the states that got to the end; -1: none did */
    int deepest;               /* the first step to what the last bucket with any states had */
    bool complete;             /* no state and no group listed was left out so far */
};

/* The forest of a state, which moves when a slot is taken. */
static struct rfx_forest forest_of(const struct fronts *f, const struct state *state) {
    struct rfx_pq_node *nodes = rfx_pq_slots_at(&f->trees, state->slot);
    return (struct rfx_forest){{nodes, nodes + f->trees.slot_nodes / RFX_FRONT_SIDES},
                               {state->n_nodes[0], state->n_nodes[1]},
                               state->n_trees,
                               state->linked};
}

static struct state *state_at(const struct fronts *f, int bucket, int state) {
    return &f->states[(size_t)bucket * (size_t)f->buckets.width + (size_t)state];
}

/* Puts a state among those of its bucket, or frees its slot. */
static void insert(struct fronts *f, int bucket, const struct state *state, uint64_t hash,
                   float score) {
    struct rfx_front_put put = rfx_front_buckets_put(&f->buckets, bucket, hash, score);
    if (put.left_out) f->complete = false;
    if (put.state < 0) {
        rfx_pq_slots_give(&f->trees, state->slot);
        return;
    }
    struct state *to = state_at(f, bucket, put.state);
    if (put.instead) rfx_pq_slots_give(&f->trees, to->slot);
    *to = *state;
}

/* All of a boundary is still to be grouped (after the last one nothing is). */
static void enter(const struct fronts *f, struct state *state, int boundary) {
    state->left = (struct rfx_front_left){.boundary = boundary};
    if (boundary == f->times->n) return;
    const struct rfx_front_boundary *b = &f->times->at[boundary];
    state->left.ends = rfx_front_all(b->n_ends);
    state->left.begins = rfx_front_all(b->n_begins);
}

/* Remembers how a state was reached. false: no memory. */
static bool add_step(struct fronts *f, const struct state *state) {
    struct step *steps = rfx_memory_reserve(f->mem, f->steps, &f->steps_capacity,
                                            (size_t)f->n_steps + 1, sizeof *f->steps);
    if (steps == NULL) return false;
    f->steps = steps;
    f->steps[f->n_steps++] = (struct step){state->previous, state->from, state->group};
    return true;
}

/* Sets what a state is after a group was made at its boundary, and puts it in its bucket. */
static void add_state(struct fronts *f, const struct state *before, struct state *next,
                      const struct rfx_forest *from, const struct rfx_forest *forest,
                      const struct rfx_forest_tree *made, int ended) {
    next->n_nodes[0] = forest->n_nodes[0];
    next->n_nodes[1] = forest->n_nodes[1];
    next->n_trees = forest->n_trees;
    next->linked = forest->linked;
    next->gain = before->gain + (double)next->group.gain;
    if (next->group.ends == before->left.ends)
        enter(f, next, before->left.boundary + 1);
    else
        next->left =
            (struct rfx_front_left){before->left.boundary, before->left.ends & ~next->group.ends,
                                    before->left.begins & ~next->group.begins};
    next->sums = rfx_front_judge_change(&f->judge, &f->forests, from, forest, made);
    uint64_t hash = rfx_front_hash(&f->judge, &next->sums, &next->left);
    double orders = rfx_front_orders(&f->judge, &next->sums, forest->n_trees);
    double score = next->gain + f->groups.weights.orders * orders;
    if (f->request->seed != 0) {
        uint64_t chance = rfx_packer_mix(hash ^ f->request->seed) >> 40;
        score += chance_gain * (double)chance * 0x1p-24;
    }
    insert(f, ended % f->buckets.n, next, hash, (float)score);
}

/* The score that a group of n ends has to be better than: what it makes of the state would be left
 * out else. */
static float least_of(const struct fronts *f, const struct state *state, int ended, int n) {
    double least = rfx_front_buckets_least(&f->buckets, (ended + n) % f->buckets.n);
    double chance = f->request->seed != 0 ? chance_gain : 0;
    return (float)(least - state->gain - chance - score_error);
}

/* Tries the groups of a state. false: no memory. */
static bool expand(struct fronts *f, const struct state *state, int ended, uint64_t *nodes) {
    int gone[RFX_FRONT_MAX_SIDE];
    int with[RFX_FRONT_MAX_SIDE];
    int leaves[RFX_FRONT_MAX_SIDE];
    float least[RFX_FRONT_MAX_SIDE + 1];
    struct state next = {.previous = f->n_steps, .from = state->left.boundary};
    if (!add_step(f, state)) return false;
    next.slot = rfx_pq_slots_take(&f->trees);
    if (next.slot < 0) return false;
    struct rfx_forest from = forest_of(f, state);
    rfx_front_judge_enter(&f->judge, &state->sums);
    rfx_forest_enter(&f->forests, &from, f->times->at[state->left.boundary].side);
    int most = __builtin_popcountll(state->left.ends);
    for (int n = 0; n <= most; n++) least[n] = least_of(f, state, ended, n);
    rfx_front_groups_list(&f->groups, &from, &state->left, least);
    *nodes += (uint64_t)f->groups.n_compared / COMPARED_PER_NODE;
    for (int i = 0; i < f->groups.n; i++) {
        struct rfx_pq_run run = {.leaves = leaves};
        struct rfx_forest_tree made;
        next.group = f->groups.list[i];
        from = forest_of(f, state);
        struct rfx_forest to = forest_of(f, &next);
        if (*nodes >= f->request->nodes) {
            f->complete = false;
            break;
        }
        int n = __builtin_popcountll(next.group.ends);
        if (next.group.score <= least_of(f, state, ended, n)) {
            f->complete = false;
            continue;
        }
        ++*nodes;
        struct rfx_forest_change change =
            rfx_front_change(f->times, state->left.boundary, &next.group, gone, with);
        if (!rfx_forest_replace(&f->forests, &from, &change, &to, &made, &run)) continue;
        if (!rfx_front_measure(&f->groups.rooms, &to, change.side, &made)) continue;
        add_state(f, state, &next, &from, &to, &made, ended + change.n_gone);
        next.slot = rfx_pq_slots_take(&f->trees);
        if (next.slot < 0) return false;
    }
    rfx_pq_slots_give(&f->trees, next.slot);
    return true;
}

/* Asks memory for the forest of a state that comes soon: there are too many for any cache. */
static void expect(const struct fronts *f, const struct state *state) {
    struct rfx_forest forest = forest_of(f, state);
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        for (int i = 0; i < forest.n_nodes[side]; i += NODES_OF_LINE)
            __builtin_prefetch(&forest.nodes[side][i]);
}

/* Looks for states after the last boundary: sets last. false: no memory. */
static bool search(struct fronts *f, uint64_t *nodes) {
    struct state first = {.previous = -1};
    int waiting = 1;
    first.slot = rfx_pq_slots_take(&f->trees);
    if (first.slot < 0) return false;
    struct rfx_forest forest = forest_of(f, &first);
    rfx_forest_make(f->problem, f->times->live, f->times->n_live, &forest);
    first.n_nodes[0] = first.n_nodes[1] = first.n_trees = forest.n_trees;
    first.sums = rfx_front_judge_all(&f->judge, &forest);
    enter(f, &first, 0);
    insert(f, 0, &first, 0, 0);
    for (int ended = 0; waiting > 0; ended++) {
        int bucket = ended % f->buckets.n;
        if (f->buckets.at[bucket].n > 0) f->deepest = f->n_steps;
        for (int i = f->buckets.at[bucket].n - 1; i >= 0; i--) { /* the best first, more or less */
            const struct state *state = state_at(f, bucket, f->buckets.at[bucket].heap[i]);
            if (i > 0) expect(f, state_at(f, bucket, f->buckets.at[bucket].heap[i - 1]));
            if (state->left.boundary == f->times->n) { /* all of the bucket are there */
                f->last = bucket;
                return true;
            }
            if (*nodes >= f->request->nodes || rfx_place_must_stop(f->mem, f->request->stop)) {
                f->complete = false;
                return true;
            }
            if (!expand(f, state, ended, nodes)) return false;
            rfx_pq_slots_give(&f->trees, state->slot);
        }
        rfx_front_buckets_clear(&f->buckets, bucket);
        waiting = 0;
        for (int b = 0; b < f->buckets.n; b++) waiting += f->buckets.at[b].n;
    }
    return true;
}

static enum rfx_status allocate(struct fronts *f, struct rfx_error *err) {
    struct rfx_memory *mem = f->mem;
    int width = f->request->width;
    int n = 1;
    for (int k = 0; k < f->times->n; k++)
        if (f->times->at[k].n_ends >= n) n = f->times->at[k].n_ends + 1;
    size_t states = (size_t)n * (size_t)width;
    f->states = rfx_memory_calloc(mem, states, sizeof *f->states);
    if (f->states == NULL) return rfx_memory_fail(mem, "packer", states * sizeof *f->states, err);
    enum rfx_status status = rfx_front_buckets_init(&f->buckets, mem, n, width, err);
    if (status == RFX_OK)
        status = rfx_forests_init(&f->forests, mem, f->problem->n, f->times->max_live, err);
    if (status == RFX_OK) status = rfx_front_judge_init(&f->judge, f->problem, f->times, err);
    if (status != RFX_OK) return status;
    struct rfx_front_weights weights = weights_of(f->request);
    return rfx_front_groups_init(&f->groups, f->problem, f->times, &f->forests, &f->judge,
                                 f->request->capacity_bytes, &weights, err);
}

static void release(struct fronts *f) {
    void *const blocks[] = {f->states, f->steps};
    rfx_pq_slots_release(&f->trees);
    rfx_front_buckets_release(&f->buckets);
    rfx_front_groups_release(&f->groups);
    rfx_front_judge_release(&f->judge);
    rfx_forests_release(&f->forests);
    rfx_front_times_free(f->times);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(f->mem, blocks[i]);
}

/* Adds the groups on the way to a step, the last first, to n that are listed; their number. */
static int list_way(const struct fronts *f, int step, struct rfx_front_step *way, int n) {
    for (int k = step; k > 0; k = f->steps[k].previous)
        way[n++] = (struct rfx_front_step){f->steps[k].boundary, f->steps[k].group};
    return n;
}

/* The offsets of the way to a state. */
static enum rfx_status reconstruct(struct fronts *f, const struct state *last,
                                   struct rfx_front_step *way, size_t *offsets,
                                   struct rfx_error *err) {
    int n = 0;
    if (last->previous >= 0) way[n++] = (struct rfx_front_step){last->from, last->group};
    n = list_way(f, last->previous, way, n);
    return rfx_front_way(f->problem, f->times, &f->forests, way, n, offsets, err);
}

/* The offsets of what is placed on the way to a step. `placed`: per item, false; so after it. */
static enum rfx_status reconstruct_part(struct fronts *f, int step, struct rfx_front_step *way,
                                        bool *placed, size_t *offsets, struct rfx_error *err) {
    int n = list_way(f, step, way, 0);
    for (int i = 0; i < f->times->n_live; i++) placed[f->times->live[i]] = true;
    for (int k = 0; k < n; k++) {
        const struct rfx_front_boundary *b = &f->times->at[way[k].boundary];
        for (uint64_t rest = way[k].group.begins; rest != 0; rest &= rest - 1)
            placed[f->times->by_begin[b->begins + __builtin_ctzll(rest)]] = true;
    }
    enum rfx_status status = rfx_front_way(f->problem, f->times, &f->forests, way, n, offsets, err);
    for (int i = 0; i < f->problem->n; i++) {
        if (!placed[i]) offsets[i] = SIZE_MAX;
        placed[i] = false;
    }
    return status;
}

/* Tells of the states of the last bucket, evenly from the best to the worst. */
static enum rfx_status list_parts(struct fronts *f, struct rfx_error *err) {
    struct rfx_fronts_parts *parts = f->request->parts;
    size_t n = (size_t)f->problem->n;
    int64_t states = f->n_steps - f->deepest;
    int64_t count = states < parts->most ? states : parts->most;
    enum rfx_status status = RFX_OK;
    bool *placed = rfx_memory_calloc(f->mem, n, sizeof *placed);
    struct rfx_front_step *way = rfx_memory_calloc(f->mem, 2 * n, sizeof *way);
    if (placed == NULL || way == NULL)
        status = rfx_memory_fail(f->mem, "packer", 2 * n * sizeof *way, err);
    for (int64_t k = 0; status == RFX_OK && k < count; k++) {
        if (rfx_place_must_stop(f->mem, f->request->stop)) break;
        int step = f->deepest + (int)(k * states / count);
        size_t *offsets = &parts->offsets[(size_t)k * n];
        status = reconstruct_part(f, step, way, placed, offsets, err);
        if (status == RFX_OK) parts->n++;
    }
    rfx_memory_release(f->mem, placed);
    rfx_memory_release(f->mem, way);
    return status;
}

/* Keeps the lowest of the packings of the states that got to the end, up to the first that fits:
 * how high places that were cut anew have to be is not known to the byte. */
static enum rfx_status settle(struct fronts *f, size_t *offsets, size_t *arena,
                              struct rfx_error *err) {
    const struct rfx_place_problem *problem = f->problem;
    size_t n = (size_t)problem->n;
    enum rfx_status status = RFX_OK;
    size_t *trial = rfx_memory_calloc(f->mem, n, sizeof *trial);
    struct rfx_front_step *way = rfx_memory_calloc(f->mem, 2 * n, sizeof *way);
    if (trial == NULL || way == NULL)
        status = rfx_memory_fail(f->mem, "packer", n * sizeof *trial, err);
    for (int i = 0; status == RFX_OK && i < f->buckets.at[f->last].n; i++) {
        if (*arena <= f->request->capacity_bytes) break;
        if (i > 0 && rfx_place_must_stop(f->mem, f->request->stop)) break;
        status = reconstruct(f, state_at(f, f->last, i), way, trial, err);
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
    rfx_memory_release(f->mem, trial);
    rfx_memory_release(f->mem, way);
    return status;
}

enum rfx_status rfx_fronts_place(const struct rfx_place_problem *problem,
                                 const struct rfx_fronts_request *request, size_t *offsets,
                                 size_t *arena_bytes, bool *complete, uint64_t *nodes,
                                 struct rfx_error *err) {
    struct fronts f = {.mem = problem->mem,
                       .problem = problem,
                       .request = request,
                       .trees = {.mem = problem->mem},
                       .last = -1,
                       .complete = true};
    uint64_t visited = 0;
    *arena_bytes = SIZE_MAX;
    *complete = true;
    if (request->parts != NULL) request->parts->n = 0;
    if (problem->n == 0 || problem->n > RFX_FRONTS_MAX_ITEMS) return RFX_OK;
    enum rfx_status status = rfx_front_times_create(problem, &f.times, err);
    if (status != RFX_OK || !f.times->possible) goto done;
    if (f.times->n_live > RFX_FOREST_MAX_TREES || f.times->max_live > RFX_FRONTS_MAX_LIVE)
        goto done;
    f.trees.slot_nodes = RFX_FRONT_SIDES * 2 * f.times->max_live;
    status = allocate(&f, err);
    if (status != RFX_OK) goto done;
    if (!search(&f, &visited))
        status = rfx_memory_fail(f.mem, "packer",
                                 2 * f.trees.nodes_capacity * sizeof *f.trees.nodes, err);
    if (status == RFX_OK && f.last >= 0) status = settle(&f, offsets, arena_bytes, err);
    if (status == RFX_OK && f.last < 0 && request->parts != NULL) status = list_parts(&f, err);
    *complete = f.complete && f.groups.complete && f.last < 0;
done:
    *nodes += visited;
    release(&f);
    return status;
}
