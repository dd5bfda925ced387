/* A beam search over the groups of each boundary between two sections: of the states in which as
 * many items have ended, the best are kept. States that differ only in items alike from here on
 * (size and end) are one. */
#include "tiler/packer/packer_tight.h"

#include <string.h>

#include "tiler/packer/packer_groups.h"
#include "tiler/packer/packer_hash.h"
#include "tiler/packer/packer_slots.h"

enum {
    BUCKETS = RFX_BOUNDARY_MAX_SIDE + 1, /* a group ends 1 .. MAX_SIDE items: none wraps around */
    BIT = 64, /* of a score, which is counted in fractions of bits; one item joined costs one bit */
    CHANCE = 4 * BIT /* with a seed: how much better a state may seem */
};

/* What was done up to a boundary, or within. */
struct state {
    int previous, from; /* the step before (-1: none), and the boundary and group of the last */
    struct rfx_group group;
    int boundary;
    struct rfx_group left; /* what is not grouped yet */
    int slot, n_tree;      /* the tree: its slot and nodes */
    int64_t joined; /* items of all groups so far, beyond one that ends and one that begins */
    int64_t score;
    uint64_t hash;
};

/* A group that was made; the runs are filled when the way is found. */
struct step {
    int previous, boundary;
    struct rfx_group group;
    struct rfx_pq_run run;
};

struct tight {
    struct rfx_memory *mem;
    struct rfx_boundaries *b;
    struct rfx_groups *groups;
    int *run_leaves, *order, *with;
    uint64_t *hashes; /* per node of a tree */
    bool *marked;
    struct state *states; /* by items ended, modulo BUCKETS: width each */
    int n_states[BUCKETS], width;
    struct step *steps;
    int n_steps;
    uint64_t seed;
    size_t steps_capacity;
    struct rfx_pq_slots trees;
    bool complete; /* no state and no group listed was left out so far */
};

static enum rfx_status allocate(struct tight *t, struct rfx_error *err) {
    struct rfx_memory *mem = t->mem;
    size_t items = (size_t)t->b->n_items;
    t->run_leaves = rfx_memory_calloc(mem, items, sizeof *t->run_leaves);
    t->order = rfx_memory_calloc(mem, 2 * items, sizeof *t->order);
    t->with = rfx_memory_calloc(mem, items, sizeof *t->with);
    t->hashes = rfx_memory_calloc(mem, 2 * items, sizeof *t->hashes);
    t->marked = rfx_memory_calloc(mem, items, sizeof *t->marked);
    t->states = rfx_memory_calloc(mem, BUCKETS * (size_t)t->width, sizeof *t->states);
    if (t->run_leaves == NULL || t->order == NULL || t->with == NULL || t->hashes == NULL ||
        t->marked == NULL || t->states == NULL)
        return rfx_memory_fail(mem, "packer", BUCKETS * (size_t)t->width * sizeof *t->states, err);
    return rfx_groups_create(mem, t->b, &t->groups, err);
}

static void release(struct tight *t) {
    void *const blocks[] = {t->run_leaves, t->order,  t->with, t->hashes,
                            t->marked,     t->states, t->steps};
    rfx_pq_slots_release(&t->trees);
    rfx_groups_free(t->groups);
    rfx_boundaries_free(t->b);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(t->mem, blocks[i]);
}

static struct rfx_pq_node *tree_of(const struct tight *t, const struct state *state) {
    return rfx_pq_slots_at(&t->trees, state->slot);
}

/* About BIT * log2(n). */
static int64_t bits_of(int n) {
    int whole = 31 - __builtin_clz((unsigned)n);
    return BIT * whole + (int64_t)BIT * (n - (1 << whole)) / (1 << whole);
}

static uint64_t hash_item(const struct rfx_boundary_item *item) {
    return rfx_packer_mix(item->size ^ rfx_packer_mix((uint64_t)item->end));
}

/* The hash of a node's children from those of each: of a P node in any order, of a Q node from
 * either end. */
static uint64_t hash_children(struct tight *t, const struct rfx_pq_node *tree, int node) {
    uint64_t sum = 0;
    uint64_t forward = 0;
    uint64_t backward = 0;
    int n = 0;
    for (int k = node + 1; k < node + tree[node].span; k += tree[k].span) {
        sum += rfx_packer_mix(t->hashes[k]);
        forward = rfx_packer_mix(forward ^ t->hashes[k]);
        t->order[n++] = k;
    }
    if (tree[node].what == RFX_PQ_P) return rfx_packer_mix(sum);
    while (n > 0) backward = rfx_packer_mix(backward ^ t->hashes[t->order[--n]]);
    return forward + backward;
}

/* Sets how good a state is (how many orders its tree allows, in bits, and how few items had to be
 * joined to groups) and what it looks like to all that is to come. */
static void judge(struct tight *t, struct state *state) {
    const struct rfx_pq_node *tree = tree_of(t, state);
    const int *begins = &t->b->by_begin[t->b->at[state->boundary].begins];
    state->score = -state->joined * BIT;
    for (int i = state->n_tree - 1; i >= 0; i--) { /* children come before their parent */
        if (tree[i].what >= 0) {
            t->hashes[i] = hash_item(&t->b->items[tree[i].what]);
            continue;
        }
        t->hashes[i] = hash_children(t, tree, i);
        int children = 0;
        for (int k = i + 1; k < i + tree[i].span; k += tree[k].span) {
            children++;
            if (tree[i].what == RFX_PQ_P) state->score += bits_of(children);
        }
        if (tree[i].what == RFX_PQ_Q) state->score += BIT;
    }
    state->hash = t->hashes[0];
    for (uint64_t rest = state->left.begins; rest != 0; rest &= rest - 1)
        state->hash += rfx_packer_mix(hash_item(&t->b->items[begins[__builtin_ctzll(rest)]]));
    if (t->seed != 0) state->score += (int64_t)(rfx_packer_mix(state->hash ^ t->seed) % CHANCE);
}

/* Puts a state among those of its bucket, or frees its slot. */
static void insert(struct tight *t, int bucket, struct state state) {
    struct state *states = &t->states[(size_t)bucket * (size_t)t->width];
    int n = t->n_states[bucket];
    int worst = 0;
    for (int i = 0; i < n; i++) {
        if (states[i].hash == state.hash) {
            rfx_pq_slots_give(&t->trees, state.slot);
            return;
        }
        if (states[i].score < states[worst].score) worst = i;
    }
    if (n == t->width) t->complete = false;
    if (n < t->width) {
        states[t->n_states[bucket]++] = state;
    } else if (states[worst].score < state.score) {
        rfx_pq_slots_give(&t->trees, states[worst].slot);
        states[worst] = state;
    } else {
        rfx_pq_slots_give(&t->trees, state.slot);
    }
}

/* All of a boundary is still to be grouped (at the last one nothing). */
static void enter(const struct tight *t, struct state *state, int boundary) {
    bool last = boundary == t->b->n - 1;
    state->boundary = boundary;
    state->left.ends = last ? 0 : rfx_group_all(t->b->at[boundary].n_ends);
    state->left.begins = last ? 0 : rfx_group_all(t->b->at[boundary].n_begins);
}

/* Remembers how a state was reached. false: no memory. */
static bool add_step(struct tight *t, const struct state *state) {
    struct step *steps = rfx_memory_reserve(t->mem, t->steps, &t->steps_capacity,
                                            (size_t)t->n_steps + 1, sizeof *t->steps);
    if (steps == NULL) return false;
    t->steps = steps;
    t->steps[t->n_steps++] = (struct step){state->previous, state->from, state->group, {0}};
    return true;
}

/* Tries the groups of a state, up to a number of nodes. false: no memory. */
static bool expand(struct tight *t, const struct state *state, int ended, uint64_t limit,
                   uint64_t *nodes) {
    int slot = rfx_pq_slots_take(&t->trees);
    if (slot < 0 || !add_step(t, state)) return false;
    struct rfx_group_source from = {state->boundary, state->left, tree_of(t, state), state->n_tree};
    rfx_groups_list(t->groups, &from, rfx_pq_slots_at(&t->trees, slot));
    for (int i = 0; i < t->groups->n; i++) {
        struct rfx_group group = t->groups->list[i];
        struct rfx_pq_run run = {.leaves = t->run_leaves};
        struct state next = {t->n_steps - 1, state->boundary, group, .slot = slot};
        int items = __builtin_popcountll(group.ends) + __builtin_popcountll(group.begins);
        if (*nodes >= limit) {
            t->complete = false;
            break;
        }
        ++*nodes;
        next.n_tree = rfx_groups_replace(t->groups, state->boundary, tree_of(t, state),
                                         state->n_tree, group, tree_of(t, &next), &run);
        if (next.n_tree == 0) continue;
        if (group.ends == state->left.ends) {
            enter(t, &next, state->boundary + 1);
        } else {
            next.boundary = state->boundary;
            next.left.ends = state->left.ends & ~group.ends;
            next.left.begins = state->left.begins & ~group.begins;
        }
        next.joined = state->joined + items - 2;
        judge(t, &next);
        insert(t, (ended + __builtin_popcountll(group.ends)) % BUCKETS, next);
        slot = rfx_pq_slots_take(&t->trees);
        if (slot < 0) return false;
    }
    rfx_pq_slots_give(&t->trees, slot);
    return true;
}

/* Puts the run of a step back where the items that began lie in the order of n items; returns their
 * number. */
static int undo(struct tight *t, const struct step *step, int n) {
    const int *begins = &t->b->by_begin[t->b->at[step->boundary].begins];
    int n_with = rfx_group_select(begins, step->group.begins, t->with);
    int n_gone = step->run.count;
    int start = 0;
    bool reversed = false;
    for (int i = 0; i < n_with; i++) t->marked[t->with[i]] = true;
    while (!t->marked[t->order[start]]) start++;
    for (int i = 0; i < n_with; i++) t->marked[t->with[i]] = false;
    for (int i = 0; i < n && step->run.anchor >= 0; i++)
        if (t->order[i] == step->run.anchor) reversed = (i < start) != step->run.anchor_first;
    memmove(&t->order[start + n_gone], &t->order[start + n_with],
            (size_t)(n - start - n_with) * sizeof *t->order);
    for (int i = 0; i < n_gone; i++)
        t->order[start + i] = step->run.leaves[reversed ? n_gone - 1 - i : i];
    return n - n_with + n_gone;
}

/* The offsets of all items of the order (those of the problem). */
static void set_offsets(const struct tight *t, int n, int n_items, size_t *offsets) {
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        int item = t->order[i];
        if (item < n_items) offsets[item] = at;
        at += t->b->items[item].size;
    }
}

/* The way to a state as the steps 0 .. n - 1, whose order is turned over in place; returns n. */
static int gather_steps(struct tight *t, const struct state *state) {
    int n = 0;
    int *way = t->with; /* one group ends at least one item */
    struct step last = {state->previous, state->from, state->group, {0}};
    for (int k = state->previous; k > 0; k = t->steps[k].previous) way[n++] = k;
    for (int i = 0; i < n; i++) t->steps[i] = t->steps[way[n - 1 - i]]; /* each moves down */
    t->steps[n] = last;
    return n + 1;
}

/* Goes the way to the state again, for the runs; then from an order of what is live at the end back
 * to the beginning. */
static void reconstruct(struct tight *t, const struct state *state, int n_items, size_t *offsets) {
    const struct rfx_boundary *start = &t->b->at[0];
    struct rfx_pq_node *tree = rfx_pq_slots_at(&t->trees, 0); /* of no more use, as the next */
    struct rfx_pq_node *next = rfx_pq_slots_at(&t->trees, 1);
    int n_tree = rfx_pq_make(&t->b->by_begin[start->begins], start->n_begins, tree);
    int n_steps = state->previous < 0 ? 0 : gather_steps(t, state);
    int *leaves = t->run_leaves;
    for (int k = 0; k < n_steps; k++) {
        struct step *step = &t->steps[k];
        struct rfx_pq_node *swap = tree;
        step->run.leaves = leaves;
        n_tree = rfx_groups_replace(t->groups, step->boundary, tree, n_tree, step->group, next,
                                    &step->run);
        leaves += step->run.count;
        tree = next;
        next = swap;
    }
    int n = 0;
    for (int i = 0; i < n_tree; i++)
        if (tree[i].what >= 0) t->order[n++] = tree[i].what;
    set_offsets(t, n, n_items, offsets);
    for (int k = n_steps - 1; k >= 0; k--) {
        n = undo(t, &t->steps[k], n);
        if (k > 0 && t->steps[k - 1].boundary == t->steps[k].boundary) continue;
        set_offsets(t, n, n_items, offsets);
    }
}

/* Looks for a state at the last boundary: last->boundary is set. false: no memory. */
static bool search(struct tight *t, const struct rfx_tight_request *request, uint64_t *nodes,
                   struct state *last) {
    const struct rfx_boundary *start = &t->b->at[0];
    struct state first = {.previous = -1};
    int waiting = 1;
    if (rfx_pq_slots_take(&t->trees) < 0 || rfx_pq_slots_take(&t->trees) < 0)
        return false; /* two trees for reconstruct */
    enter(t, &first, 1);
    struct rfx_pq_node *tree = tree_of(t, &first);
    first.n_tree = rfx_pq_make(&t->b->by_begin[start->begins], start->n_begins, tree);
    t->states[0] = first;
    t->n_states[0] = 1;
    for (int ended = 0; waiting > 0; ended++) {
        int bucket = ended % BUCKETS;
        const struct state *states = &t->states[(size_t)bucket * (size_t)t->width];
        for (int i = 0; i < t->n_states[bucket]; i++) {
            if (states[i].boundary == t->b->n - 1) {
                *last = states[i];
                return true;
            }
            if (*nodes >= request->nodes || rfx_place_must_stop(t->mem, request->stop)) {
                t->complete = false;
                return true;
            }
            if (!expand(t, &states[i], ended, request->nodes, nodes)) return false;
            rfx_pq_slots_give(&t->trees, states[i].slot);
        }
        t->n_states[bucket] = 0;
        waiting = 0;
        for (int b = 0; b < BUCKETS; b++) waiting += t->n_states[b];
    }
    return true;
}

enum rfx_status rfx_tight_place(const struct rfx_place_problem *problem,
                                const struct rfx_tight_request *request, size_t *offsets,
                                enum rfx_tight_outcome *outcome, uint64_t *nodes,
                                struct rfx_error *err) {
    struct tight t = {.mem = problem->mem,
                      .trees = {.mem = problem->mem},
                      .width = request->width,
                      .seed = request->seed,
                      .complete = true};
    struct state last = {.boundary = -1};
    uint64_t visited = 0;
    *outcome = RFX_TIGHT_ALL_TRIED;
    if (problem->n == 0 || problem->n > RFX_TIGHT_MAX_ITEMS) return RFX_OK;
    enum rfx_status status =
        rfx_boundaries_create(problem, request->capacity_bytes, request->backwards, &t.b, err);
    if (status != RFX_OK || !t.b->possible) goto done;
    t.trees.slot_nodes = 2 * t.b->max_live;
    status = allocate(&t, err);
    if (status != RFX_OK) goto done;
    if (!search(&t, request, &visited, &last)) {
        status = rfx_memory_fail(t.mem, "packer",
                                 2 * t.trees.nodes_capacity * sizeof *t.trees.nodes, err);
        goto done;
    }
    if (!t.complete || !t.groups->complete) *outcome = RFX_TIGHT_SOME_LEFT;
    if (last.boundary < 0) goto done;
    reconstruct(&t, &last, problem->n, offsets);
    if (rfx_place_answer_is_valid(problem->items, problem->n, offsets, request->capacity_bytes))
        *outcome = RFX_TIGHT_FOUND; /* else an alignment was in the way */
done:
    *nodes += visited;
    release(&t);
    return status;
}
