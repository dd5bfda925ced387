/* The beam; see fronts.h. */
#include "tiler/fronts/fronts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiler/fronts/fronts_way.h"
#include "tiler/packer/packer_hash.h"

enum { BUCKETS = RFX_FRONT_MAX_SIDE + 1 }; /* a group ends 1 .. MAX_SIDE items */

static double order_weight = 1.3; /* of the logarithm of how many orders are left */
static double chance_gain = 4;    /* with a seed: how much better a state may seem */

struct state {
    int previous, from; /* the step before (-1: none), and the boundary and group of the last */
    struct rfx_front_group group;
    struct rfx_front_left left;
    int slot, n_nodes[RFX_FRONT_SIDES], n_trees;
    struct rfx_forest_set linked;
    double gain; /* of all groups */
};

/* Why a step was made. */
struct step {
    int previous, boundary;
    struct rfx_front_group group;
};

struct bucket {
    struct state *states;
    uint64_t *hashes;
    float *scores;
    int n, worst;
};

struct fronts {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_fronts_request *request;
    struct rfx_front_times *times;
    struct rfx_forests forests;
    struct rfx_front_groups groups;
    struct bucket buckets[BUCKETS];
    struct state *states;
    uint64_t *hashes, *trees;
    float *scores;
    struct step *steps;
    struct rfx_pq_node *nodes; /* a slot has both sides */
    int *free_slots;
    double *log_orders; /* of so many children */
    int n_steps, side_nodes, n_slots, n_free;
    size_t steps_capacity, nodes_capacity, slots_capacity;
    struct bucket *last; /* states that got to the end; NULL: none did */
    bool complete; /* no state and no group listed was left out so far */
};

/* false: no memory. */
static bool reserve(struct rfx_memory *mem, void **block, size_t *capacity, size_t wanted,
                    size_t size) {
    if (wanted <= *capacity) return true;
    size_t grown = 2 * wanted;
    void *larger = rfx_memory_realloc(mem, *block, grown * size);
    if (larger == NULL) return false;
    *block = larger;
    *capacity = grown;
    return true;
}

static struct rfx_forest forest_of(const struct fronts *f, const struct state *state) {
    size_t at = 2 * (size_t)state->slot * (size_t)f->side_nodes;
    return (struct rfx_forest){{&f->nodes[at], &f->nodes[at + (size_t)f->side_nodes]},
                               {state->n_nodes[0], state->n_nodes[1]},
                               state->n_trees,
                               state->linked};
}

static int take_slot(struct fronts *f) {
    if (f->n_free > 0) return f->free_slots[--f->n_free];
    void *nodes = f->nodes;
    void *slots = f->free_slots;
    bool enough =
        reserve(f->mem, &nodes, &f->nodes_capacity,
                2 * (size_t)(f->n_slots + 1) * (size_t)f->side_nodes, sizeof *f->nodes) &&
        reserve(f->mem, &slots, &f->slots_capacity, (size_t)f->n_slots + 1, sizeof *f->free_slots);
    f->nodes = nodes;
    f->free_slots = slots;
    return enough ? f->n_slots++ : -1;
}

static void free_slot(struct fronts *f, int slot) {
    f->free_slots[f->n_free++] = slot;
}

static uint64_t hash_item(const struct fronts *f, int side, int item) {
    uint64_t end = (uint64_t)(side == RFX_FRONT_LATER ? f->problem->last[item]
                                                      : f->problem->first[item]);
    return rfx_packer_mix(f->problem->items[item].size ^ rfx_packer_mix(2 * end + (uint64_t)side));
}

/* The hashes of a tree's children in their order and in the reverse one (Q), or of their sum (P). */
struct hashes {
    uint64_t forward, backward;
};

/* Hashes of a tree of a side; adds the logarithm of the number of its orders, but for that of a
 * root that is linked. */
static struct hashes judge_tree(struct fronts *f, int side, const struct rfx_pq_node *tree,
                                bool linked, double *orders) {
    uint64_t *hash = f->trees;
    struct hashes h = {0, 0};
    for (int i = tree->span - 1; i >= 0; i--) { /* children come before their parent */
        if (tree[i].what >= 0) {
            hash[i] = hash_item(f, side, tree[i].what);
            h = (struct hashes){hash[i], hash[i]};
            continue;
        }
        uint64_t sum = 0;
        int n = 0;
        uint64_t forward = 0;
        uint64_t backward = 0;
        uint64_t power = 1;
        for (int k = i + 1; k < i + tree[i].span; k += tree[k].span) {
            uint64_t mixed = rfx_packer_mix(hash[k]);
            sum += mixed;
            forward = forward * 0x9e3779b97f4a7c15U + mixed; /* polynomials of the children */
            backward += mixed * power;
            power *= 0x9e3779b97f4a7c15U;
            n++;
        }
        if (tree[i].what == RFX_PQ_P) {
            *orders += f->log_orders[n];
            hash[i] = rfx_packer_mix(sum + 1);
            h = (struct hashes){hash[i], hash[i]};
        } else {
            if (i > 0 || !linked) *orders += f->log_orders[2];
            h = (struct hashes){rfx_packer_mix(forward), rfx_packer_mix(backward)};
            hash[i] = h.forward + h.backward;
        }
    }
    if (!linked) h.forward = h.backward = hash[0];
    return h;
}

/* The hash of a state, of what it looks like to all that is to come, and its score. */
static uint64_t judge(struct fronts *f, const struct state *state, float *score) {
    struct rfx_forest forest = forest_of(f, state);
    const struct rfx_front_boundary *b = &f->times->at[state->left.boundary];
    uint64_t hash = (uint64_t)state->left.boundary;
    double orders = f->log_orders[forest.n_trees];
    int at[RFX_FRONT_SIDES] = {0, 0};
    for (int t = 0; t < forest.n_trees; t++) {
        bool linked = rfx_forest_has(&forest.linked, t);
        struct hashes h[RFX_FRONT_SIDES];
        for (int side = 0; side < RFX_FRONT_SIDES; side++) {
            const struct rfx_pq_node *tree = &forest.nodes[side][at[side]];
            h[side] = judge_tree(f, side, tree, linked, &orders);
            at[side] += tree->span;
        }
        if (linked) orders += f->log_orders[2];
        hash += rfx_packer_mix(rfx_packer_mix(h[0].forward) ^ h[1].forward) +
                rfx_packer_mix(rfx_packer_mix(h[0].backward) ^ h[1].backward);
    }
    for (uint64_t rest = state->left.begins; rest != 0; rest &= rest - 1) {
        int item = f->times->by_begin[b->begins + __builtin_ctzll(rest)];
        hash += rfx_packer_mix(hash_item(f, b->side, item));
    }
    double worth = state->gain + order_weight * orders;
    if (f->request->seed != 0) {
        uint64_t chance = rfx_packer_mix(hash ^ f->request->seed) >> 40;
        worth += chance_gain * (double)chance * 0x1p-24;
    }
    *score = (float)worth;
    return hash;
}

static void find_worst(struct bucket *b) {
    b->worst = 0;
    for (int i = 1; i < b->n; i++)
        if (b->scores[i] < b->scores[b->worst]) b->worst = i;
}

/* Puts a state among those of its bucket, or frees its slot. */
static void insert(struct fronts *f, struct bucket *b, const struct state *state, uint64_t hash,
                   float score) {
    int at = b->n;
    if (b->n == f->request->width) {
        f->complete = false;
        at = b->worst;
        if (score <= b->scores[at]) {
            free_slot(f, state->slot);
            return;
        }
    }
    for (int i = 0; i < b->n; i++) {
        if (b->hashes[i] != hash) continue;
        if (score <= b->scores[i]) {
            free_slot(f, state->slot);
            return;
        }
        at = i; /* the same, better reached */
    }
    if (at < b->n)
        free_slot(f, b->states[at].slot);
    else
        b->n++;
    b->states[at] = *state;
    b->hashes[at] = hash;
    b->scores[at] = score;
    if (b->n == f->request->width) find_worst(b);
}

/* All of a boundary is still to be grouped (after the last one nothing is). */
static void enter(const struct fronts *f, struct state *state, int boundary) {
    state->left = (struct rfx_front_left){.boundary = boundary};
    if (boundary == f->times->n) return;
    const struct rfx_front_boundary *b = &f->times->at[boundary];
    state->left.ends = b->n_ends == 64 ? UINT64_MAX : ((uint64_t)1 << b->n_ends) - 1;
    state->left.begins = b->n_begins == 64 ? UINT64_MAX : ((uint64_t)1 << b->n_begins) - 1;
}

/* Remembers how a state was reached. false: no memory. */
static bool add_step(struct fronts *f, const struct state *state) {
    void *steps = f->steps;
    if (!reserve(f->mem, &steps, &f->steps_capacity, (size_t)f->n_steps + 1, sizeof *f->steps))
        return false;
    f->steps = steps;
    f->steps[f->n_steps++] = (struct step){state->previous, state->from, state->group};
    return true;
}

/* Tries the groups of a state. false: no memory. */
static bool expand(struct fronts *f, const struct state *state, int ended, uint64_t *nodes) {
    int gone[RFX_FRONT_MAX_SIDE];
    int with[RFX_FRONT_MAX_SIDE];
    int leaves[RFX_FRONT_MAX_SIDE];
    struct state next = {.previous = f->n_steps, .from = state->left.boundary};
    if (!add_step(f, state)) return false;
    next.slot = take_slot(f);
    if (next.slot < 0) return false;
    struct rfx_forest from = forest_of(f, state);
    struct rfx_forest to = forest_of(f, &next);
    rfx_front_groups_list(&f->groups, &from, &state->left, &to);
    if (getenv("FR_LOG2") && state->left.boundary == atoi(getenv("FR_LOG2"))) fprintf(stderr, "ends left %d begins left %d: %d groups, best %.2f ends %d begins %d; trees %d\n", __builtin_popcountll(state->left.ends),  __builtin_popcountll(state->left.begins), f->groups.n, f->groups.n ? f->groups.list[0].gain : 0, __builtin_popcountll(f->groups.n ? f->groups.list[0].ends:0),  __builtin_popcountll(f->groups.n ? f->groups.list[0].begins:0), state->n_trees);
    for (int i = 0; i < f->groups.n; i++) {
        struct rfx_pq_run run = {.leaves = leaves};
        int changed = 0;
        next.group = f->groups.list[i];
        from = forest_of(f, state);
        to = forest_of(f, &next);
        if (*nodes >= f->request->nodes) {
            f->complete = false;
            break;
        }
        ++*nodes;
        struct rfx_forest_change change =
            rfx_front_change(f->times, state->left.boundary, &next.group, gone, with);
        if (!rfx_forest_replace(&f->forests, &from, &change, &to, &changed, &run)) continue;
        if (!rfx_front_groups_measure(&f->groups, &to, change.side, changed)) continue;
        next.n_nodes[0] = to.n_nodes[0];
        next.n_nodes[1] = to.n_nodes[1];
        next.n_trees = to.n_trees;
        next.linked = to.linked;
        next.gain = state->gain + (double)next.group.gain;
        if (next.group.ends == state->left.ends) {
            enter(f, &next, state->left.boundary + 1);
        } else {
            next.left = (struct rfx_front_left){state->left.boundary,
                                                state->left.ends & ~next.group.ends,
                                                state->left.begins & ~next.group.begins};
        }
        float score = 0;
        uint64_t hash = judge(f, &next, &score);
        insert(f, &f->buckets[(ended + change.n_gone) % BUCKETS], &next, hash, score);
        next.slot = take_slot(f);
        if (next.slot < 0) return false;
    }
    free_slot(f, next.slot);
    return true;
}

/* Looks for states after the last boundary: sets last. false: no memory. */
static bool search(struct fronts *f, uint64_t *nodes) {
    struct state first = {.previous = -1};
    int waiting = 1;
    first.slot = take_slot(f);
    if (first.slot < 0) return false;
    struct rfx_forest forest = forest_of(f, &first);
    rfx_forest_make(f->problem, f->times->live, f->times->n_live, &forest);
    first.n_nodes[0] = first.n_nodes[1] = first.n_trees = forest.n_trees;
    enter(f, &first, 0);
    f->buckets[0].states[0] = first;
    f->buckets[0].n = 1;
    int deepest = 0;
    for (int ended = 0; waiting > 0; ended++) {
        struct bucket *bucket = &f->buckets[ended % BUCKETS];
        for (int i = 0; i < bucket->n; i++) {
            struct state *state = &bucket->states[i];
            if (state->left.boundary > deepest) deepest = state->left.boundary;
            if (state->left.boundary == f->times->n) {
                f->last = bucket;
                return true;
            }
            if (*nodes >= f->request->nodes || rfx_place_must_stop(f->mem, f->request->stop)) {
                f->complete = false;
                return true;
            }
            if (!expand(f, state, ended, nodes)) return false;
            free_slot(f, state->slot);
        }
        bucket->n = 0;
        waiting = 0;
        for (int b = 0; b < BUCKETS; b++) waiting += f->buckets[b].n;
    }
    if (getenv("FR_LOG") && deepest < f->times->n)
        (void)fprintf(stderr, "  side %d ends %d begins %d section %d alive %d; ", f->times->at[deepest].side, f->times->at[deepest].n_ends, f->times->at[deepest].n_begins, f->times->at[deepest].beyond, f->times->max_live);
    if (getenv("FR_LOG"))
        (void)fprintf(stderr, "width %d: boundary %d of %d, %lu nodes\n", f->request->width, deepest, f->times->n, *nodes);
    return true;
}

static enum rfx_status allocate(struct fronts *f, struct rfx_error *err) {
    struct rfx_memory *mem = f->mem;
    size_t width = (size_t)f->request->width;
    size_t children = 2 * (size_t)f->times->max_live + 3;
    f->states = rfx_memory_calloc(mem, BUCKETS * width, sizeof *f->states);
    f->hashes = rfx_memory_calloc(mem, BUCKETS * width, sizeof *f->hashes);
    f->scores = rfx_memory_calloc(mem, BUCKETS * width, sizeof *f->scores);
    f->trees = rfx_memory_calloc(mem, children, sizeof *f->trees);
    f->log_orders = rfx_memory_calloc(mem, children, sizeof *f->log_orders);
    if (f->states == NULL || f->hashes == NULL || f->scores == NULL || f->trees == NULL ||
        f->log_orders == NULL)
        return rfx_memory_fail(mem, "packer", BUCKETS * width * sizeof *f->states, err);
    for (size_t k = 0; k < BUCKETS; k++)
        f->buckets[k] = (struct bucket){.states = &f->states[k * width],
                                        .hashes = &f->hashes[k * width],
                                        .scores = &f->scores[k * width]};
    for (size_t k = 2; k < children; k++)
        f->log_orders[k] = f->log_orders[k - 1] + log((double)k);
    enum rfx_status status =
        rfx_forests_init(&f->forests, mem, f->problem->n, f->times->max_live, err);
    if (status != RFX_OK) return status;
    return rfx_front_groups_init(&f->groups, f->problem, f->times, &f->forests,
                                 f->request->capacity_bytes, err);
}

static void release(struct fronts *f) {
    void *const blocks[] = {f->states, f->hashes, f->scores,     f->trees,
                            f->steps,  f->nodes,  f->free_slots, f->log_orders};
    rfx_front_groups_release(&f->groups);
    rfx_forests_release(&f->forests);
    rfx_front_times_free(f->times);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(f->mem, blocks[i]);
}

/* Sorts steps, the last first, by side and by time. */
static void sort_by_time(const struct fronts *f, struct rfx_front_step *way, int n) {
    for (int i = 0; i < n / 2; i++) {
        struct rfx_front_step swap = way[i];
        way[i] = way[n - 1 - i];
        way[n - 1 - i] = swap;
    }
    for (int i = 1; i < n; i++) {
        struct rfx_front_step step = way[i];
        const struct rfx_front_boundary *b = &f->times->at[step.boundary];
        int to = i;
        for (; to > 0; to--) {
            const struct rfx_front_boundary *a = &f->times->at[way[to - 1].boundary];
            bool in_order = b->side == RFX_FRONT_LATER ? a->beyond <= b->beyond : a->beyond >= b->beyond;
            if (a->side < b->side || (a->side == b->side && in_order)) break;
            way[to] = way[to - 1];
        }
        way[to] = step;
    }
}

/* The offsets of the way to a state. */
static enum rfx_status reconstruct(struct fronts *f, const struct state *last, size_t *offsets,
                                   struct rfx_error *err) {
    int n = 0;
    struct rfx_front_step *way =
        rfx_memory_calloc(f->mem, 2 * (size_t)f->problem->n, sizeof *way);
    if (way == NULL) return rfx_memory_fail(f->mem, "packer", sizeof *way, err);
    if (last->previous >= 0) way[n++] = (struct rfx_front_step){last->from, last->group};
    for (int k = last->previous; k > 0; k = f->steps[k].previous)
        way[n++] = (struct rfx_front_step){f->steps[k].boundary, f->steps[k].group};
    sort_by_time(f, way, n);
    enum rfx_status status =
        rfx_front_way(f->problem, f->times, &f->forests, way, n, offsets, err);
    rfx_memory_release(f->mem, way);
    return status;
}

/* Keeps the lowest of the packings of the states that got to the end, up to the first that fits:
 * heights of places that were cut anew are not known to the byte. */
static enum rfx_status settle(struct fronts *f, size_t *offsets, size_t *arena,
                              struct rfx_error *err) {
    size_t n = (size_t)f->problem->n;
    enum rfx_status status = RFX_OK;
    size_t *trial = rfx_memory_calloc(f->mem, n, sizeof *trial);
    if (trial == NULL) return rfx_memory_fail(f->mem, "packer", n * sizeof *trial, err);
    for (int i = 0; i < f->last->n; i++) {
        if (*arena <= f->request->capacity_bytes || status != RFX_OK) break;
        status = reconstruct(f, &f->last->states[i], trial, err);
        size_t bytes = rfx_place_arena_bytes(f->problem->items, f->problem->n, trial);
        if (getenv("FR_LOG")) fprintf(stderr, "final %d arena %zu valid %d\n", i, bytes, rfx_place_answer_is_valid(f->problem->items, f->problem->n, trial, bytes));
        if (status != RFX_OK || bytes >= *arena) continue;
        *arena = bytes;
        memcpy(offsets, trial, n * sizeof *trial);
    }
    rfx_memory_release(f->mem, trial);
    return status;
}

enum rfx_status rfx_fronts_place(const struct rfx_place_problem *problem,
                                 const struct rfx_fronts_request *request, size_t *offsets,
                                 size_t *arena_bytes, bool *complete, uint64_t *nodes,
                                 struct rfx_error *err) {
    struct fronts f = {
        .mem = problem->mem, .problem = problem, .request = request, .complete = true};
    uint64_t visited = 0;
    *arena_bytes = SIZE_MAX;
    *complete = true;
    if (getenv("FR_ORDER")) order_weight = atof(getenv("FR_ORDER"));
    if (problem->n == 0 || problem->n > RFX_FRONTS_MAX_ITEMS) return RFX_OK;
    enum rfx_status status = rfx_front_times_create(problem, &f.times, err);
    if (status != RFX_OK || !f.times->possible || f.times->n_live > RFX_FOREST_MAX_TREES) goto done;
    f.side_nodes = 2 * f.times->max_live;
    status = allocate(&f, err);
    if (status != RFX_OK) goto done;
    if (!search(&f, &visited))
        status = rfx_memory_fail(f.mem, "packer", 2 * f.nodes_capacity * sizeof *f.nodes, err);
    *complete = f.complete && f.groups.complete && f.last == NULL;
    if (status == RFX_OK && f.last != NULL) status = settle(&f, offsets, arena_bytes, err);
done:
    *nodes += visited;
    release(&f);
    return status;
}
