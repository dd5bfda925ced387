/* A beam search over the groups of each boundary between two sections: of the states in which as
 * many items have ended, the best are kept. States that differ only in items alike from here on
 * (size and end) are one. */
#include "tiler/packer_tight.h"

#include <stdlib.h>
#include <string.h>

#include "tiler/packer_boundaries.h"
#include "tiler/packer_common.h"
#include "tiler/packer_pq.h"

enum {
    MAX_SUBSETS = 1 << 11, /* of the blocks that end, and of each half of the items that begin */
    MAX_GROUPS = 1 << 9,   /* of one state */
    MAX_ALIKE = 64,        /* of one union of blocks */
    BUCKETS = RFX_BOUNDARY_MAX_SIDE + 1,
    BIT = 64 /* of a score, which is counted in fractions of bits */
};

/* Some of a boundary's ends and begins (bits by their order there), of equal sums. */
struct group {
    uint64_t ends, begins;
};

struct subset {
    size_t sum;
    uint64_t mask;
};

/* What was done up to a boundary, or within. */
struct state {
    int previous, from; /* the step before (-1: none), and the boundary and group of the last */
    struct group group;
    int boundary;
    uint64_t ends, begins; /* not grouped yet */
    int slot, n_tree;      /* the tree: nodes[slot * slot_nodes] */
    int64_t joined; /* items of all groups so far, beyond one that ends and one that begins */
    int64_t score;
    uint64_t hash;
};

/* A group that was made; the runs are filled when the way is found. */
struct step {
    int previous, boundary;
    struct group group;
    struct rfx_pq_run run;
};

struct tight {
    struct rfx_memory *mem;
    struct rfx_boundaries *b;
    struct rfx_pq *pq;
    int *run_leaves, *order, *block;
    uint64_t *hashes; /* per node of a tree */
    bool *marked;
    struct subset *unions, *low, *high; /* of blocks; of two halves of the begins listed last */
    int n_low, n_high, listed_boundary;
    uint64_t listed_begins;
    struct group *groups; /* to try next */
    int n_groups;
    struct state *states; /* by items ended, modulo BUCKETS: width each */
    int n_states[BUCKETS], width;
    struct step *steps;
    int n_steps;
    struct rfx_pq_node *nodes; /* trees; the slots in free_slots are not in use */
    int *free_slots;
    int slot_nodes, n_slots, n_free;
    size_t steps_capacity, nodes_capacity, slots_capacity;
    bool complete; /* nothing was left out so far */
};

static int compare_subsets(const void *pa, const void *pb) {
    const struct subset *a = pa;
    const struct subset *b = pb;
    if (a->sum != b->sum) return a->sum < b->sum ? -1 : 1;
    return (a->mask > b->mask) - (a->mask < b->mask);
}

static uint64_t all_of(int n) {
    return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* Unions of n parts, of few parts first where there are too many, and always of all. */
static int list_subsets(struct tight *t, const struct subset *parts, int n, bool empty,
                        struct subset *subsets) {
    int count = 0;
    uint64_t all = all_of(n);
    if (n > 62 || (uint64_t)1 << n > MAX_SUBSETS) t->complete = false;
    for (int size = empty ? 0 : 1; size <= n; size++) {
        uint64_t mask = size == n || count >= MAX_SUBSETS - 1 ? all : all_of(size);
        while (mask <= all) {
            struct subset made = {0, 0};
            for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
                made.sum += parts[__builtin_ctzll(rest)].sum;
                made.mask |= parts[__builtin_ctzll(rest)].mask;
            }
            subsets[count++] = made;
            if (mask == all) return count;
            if (mask == 0 || count >= MAX_SUBSETS - 1) break;
            uint64_t lowest = mask & (0 - mask); /* the next larger number of as many bits */
            uint64_t ripple = mask + lowest;
            if (ripple < mask) break;
            mask = ripple | (((mask ^ ripple) >> 2) / lowest);
        }
    }
    return count;
}

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

static bool allocate(struct tight *t, size_t items) {
    struct rfx_memory *mem = t->mem;
    t->run_leaves = rfx_memory_calloc(mem, items, sizeof *t->run_leaves);
    t->order = rfx_memory_calloc(mem, 2 * items, sizeof *t->order);
    t->block = rfx_memory_calloc(mem, items, sizeof *t->block);
    t->hashes = rfx_memory_calloc(mem, 2 * items, sizeof *t->hashes);
    t->marked = rfx_memory_calloc(mem, items, sizeof *t->marked);
    t->groups = rfx_memory_calloc(mem, MAX_GROUPS, sizeof *t->groups);
    t->states = rfx_memory_calloc(mem, BUCKETS * (size_t)t->width, sizeof *t->states);
    t->unions = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *t->unions);
    t->low = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *t->low);
    t->high = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *t->high);
    return t->run_leaves != NULL && t->order != NULL && t->block != NULL && t->hashes != NULL &&
           t->marked != NULL && t->groups != NULL && t->states != NULL && t->unions != NULL &&
           t->low != NULL && t->high != NULL;
}

static void release(struct tight *t) {
    void *const blocks[] = {t->run_leaves, t->order,  t->block,     t->hashes, t->marked,
                            t->groups,     t->states, t->unions,    t->low,    t->high,
                            t->steps,      t->nodes,  t->free_slots};
    rfx_pq_free(t->pq);
    rfx_boundaries_free(t->b);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(t->mem, blocks[i]);
}

/* Items of a list named by the bits of a mask. */
static int select_items(const int *list, uint64_t mask, int *out) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) out[n++] = list[__builtin_ctzll(mask)];
    return n;
}

static void mark(struct tight *t, const int *list, int n, bool marked) {
    for (int i = 0; i < n; i++) t->marked[list[i]] = marked;
}

/* Whether an equal item of lower number is left out: then the same is found with that one. */
static bool skips_twin(const struct tight *t, const int *list, uint64_t left, uint64_t mask) {
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        const struct rfx_boundary_item *item = &t->b->items[list[bit]];
        for (uint64_t out = left & ~mask & all_of(bit); out != 0; out &= out - 1) {
            const struct rfx_boundary_item *other = &t->b->items[list[__builtin_ctzll(out)]];
            if (other->size == item->size && other->end == item->end) return true;
        }
    }
    return false;
}

static struct rfx_pq_node *tree_of(const struct tight *t, const struct state *state) {
    return &t->nodes[(size_t)state->slot * (size_t)t->slot_nodes];
}

/* The blocks of the items left to end: what lies together in every order the tree still allows.
 * The runs that end side by side are unions of them. */
static int list_blocks(struct tight *t, const struct state *state, struct subset *blocks) {
    const struct rfx_boundary *boundary = &t->b->at[state->boundary];
    int n = select_items(&t->b->by_end[boundary->ends], state->ends, t->order);
    int n_blocks = 0;
    mark(t, t->order, n, true);
    (void)rfx_pq_blocks(t->pq, tree_of(t, state), state->n_tree, t->marked, t->order, t->block);
    mark(t, t->order, n, false);
    for (int i = 0; i < n; i++) {
        const struct rfx_boundary_item *item = &t->b->items[t->order[i]];
        if (t->block[i] == n_blocks) blocks[n_blocks++] = (struct subset){0, 0};
        blocks[t->block[i]].sum += item->size;
        blocks[t->block[i]].mask |= (uint64_t)1 << item->bit;
    }
    return n_blocks;
}

/* Replaces the ends of a group by its begins; returns the number of nodes of the tree written to
 * `out`, 0: impossible. */
static int replace(struct tight *t, int at, const struct rfx_pq_node *tree, int n_tree,
                   struct group group, struct rfx_pq_node *out, struct rfx_pq_run *run) {
    const struct rfx_boundary *boundary = &t->b->at[at];
    int n_gone = select_items(&t->b->by_end[boundary->ends], group.ends, t->order);
    int n_with = select_items(&t->b->by_begin[boundary->begins], group.begins, t->block);
    mark(t, t->order, n_gone, true);
    int n = rfx_pq_replace(t->pq, tree, n_tree, t->marked, n_gone, t->block, n_with, out, run);
    mark(t, t->order, n_gone, false);
    return n;
}

/* Adds the groups of these ends: begins of the same sum, found in two halves. */
static void add_groups(struct tight *t, const struct state *state, struct subset ends) {
    const int *begins = &t->b->by_begin[t->b->at[state->boundary].begins];
    const struct subset *low = t->low;
    const struct subset *high = t->high;
    int most = t->n_groups + MAX_ALIKE < MAX_GROUPS ? t->n_groups + MAX_ALIKE : MAX_GROUPS;
    int h = t->n_high - 1;
    for (int l = 0; l < t->n_low && low[l].sum <= ends.sum; l++) {
        while (h >= 0 && high[h].sum > ends.sum - low[l].sum) h--;
        for (int k = h; k >= 0 && high[k].sum == ends.sum - low[l].sum; k--) {
            struct group group = {ends.mask, low[l].mask | high[k].mask};
            if (t->n_groups == most) {
                t->complete = false;
                return;
            }
            if ((group.ends == state->ends) != (group.begins == state->begins)) continue;
            if (skips_twin(t, begins, state->begins, group.begins)) continue;
            t->groups[t->n_groups++] = group;
        }
    }
}

/* Keeps the groups of the block that is in the fewest. */
static void keep_fewest(struct tight *t, const struct subset *blocks, int n) {
    uint64_t best = 0;
    int fewest = INT32_MAX;
    for (int b = 0; b < n; b++) {
        int count = 0;
        for (int i = 0; i < t->n_groups; i++) count += (t->groups[i].ends & blocks[b].mask) != 0;
        if (count >= fewest) continue;
        fewest = count;
        best = blocks[b].mask;
    }
    int kept = 0;
    for (int i = 0; i < t->n_groups; i++)
        if ((t->groups[i].ends & best) != 0) t->groups[kept++] = t->groups[i];
    t->n_groups = kept;
}

/* Lists the sums of the state's begins in two halves, unless that was done just before. */
static void list_halves(struct tight *t, const struct state *state) {
    if (t->listed_boundary == state->boundary && t->listed_begins == state->begins) return;
    struct subset parts[RFX_BOUNDARY_MAX_SIDE];
    const int *begins = &t->b->by_begin[t->b->at[state->boundary].begins];
    int n = 0;
    for (uint64_t rest = state->begins; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        parts[n++] = (struct subset){t->b->items[begins[bit]].size, (uint64_t)1 << bit};
    }
    t->n_low = list_subsets(t, parts, n / 2, true, t->low);
    t->n_high = list_subsets(t, &parts[n / 2], n - n / 2, true, t->high);
    qsort(t->low, (size_t)t->n_low, sizeof *t->low, compare_subsets);
    qsort(t->high, (size_t)t->n_high, sizeof *t->high, compare_subsets);
    t->listed_boundary = state->boundary;
    t->listed_begins = state->begins;
}

/* Lists the groups to try for one block of the state. */
static void list_groups(struct tight *t, const struct state *state, struct rfx_pq_node *scratch) {
    struct subset blocks[RFX_BOUNDARY_MAX_SIDE];
    int n_blocks = list_blocks(t, state, blocks);
    int n_unions = list_subsets(t, blocks, n_blocks, false, t->unions);
    struct rfx_pq_run run = {.leaves = t->run_leaves};
    list_halves(t, state);
    t->n_groups = 0;
    for (int u = 0; u < n_unions; u++) {
        int before = t->n_groups;
        add_groups(t, state, t->unions[u]);
        if (t->n_groups > before && u >= n_blocks &&
            replace(t, state->boundary, tree_of(t, state), state->n_tree, t->groups[before],
                    scratch, &run) == 0)
            t->n_groups = before; /* these blocks cannot lie together */
    }
    keep_fewest(t, blocks, n_blocks);
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
    for (uint64_t rest = state->begins; rest != 0; rest &= rest - 1)
        state->hash += rfx_packer_mix(hash_item(&t->b->items[begins[__builtin_ctzll(rest)]]));
}

/* A slot for a tree; -1: no memory. */
static int take_slot(struct tight *t) {
    if (t->n_free > 0) return t->free_slots[--t->n_free];
    void *nodes = t->nodes;
    void *slots = t->free_slots;
    bool enough =
        reserve(t->mem, &nodes, &t->nodes_capacity,
                (size_t)(t->n_slots + 1) * (size_t)t->slot_nodes, sizeof *t->nodes) &&
        reserve(t->mem, &slots, &t->slots_capacity, (size_t)t->n_slots + 1, sizeof *t->free_slots);
    t->nodes = nodes;
    t->free_slots = slots;
    return enough ? t->n_slots++ : -1;
}

/* Puts a state among those of its bucket, or frees its slot. */
static void insert(struct tight *t, int bucket, struct state state) {
    struct state *states = &t->states[(size_t)bucket * (size_t)t->width];
    int n = t->n_states[bucket];
    int worst = 0;
    for (int i = 0; i < n; i++) {
        if (states[i].hash == state.hash) {
            t->free_slots[t->n_free++] = state.slot;
            return;
        }
        if (states[i].score < states[worst].score) worst = i;
    }
    if (n == t->width) t->complete = false;
    if (n < t->width) {
        states[t->n_states[bucket]++] = state;
    } else if (states[worst].score < state.score) {
        t->free_slots[t->n_free++] = states[worst].slot;
        states[worst] = state;
    } else {
        t->free_slots[t->n_free++] = state.slot;
    }
}

/* All of a boundary is still to be grouped (at the last one nothing). */
static void enter(const struct tight *t, struct state *state, int boundary) {
    bool last = boundary == t->b->n - 1;
    state->boundary = boundary;
    state->ends = last ? 0 : all_of(t->b->at[boundary].n_ends);
    state->begins = last ? 0 : all_of(t->b->at[boundary].n_begins);
}

/* Remembers how a state was reached. false: no memory. */
static bool add_step(struct tight *t, const struct state *state) {
    void *steps = t->steps;
    if (!reserve(t->mem, &steps, &t->steps_capacity, (size_t)t->n_steps + 1, sizeof *t->steps))
        return false;
    t->steps = steps;
    t->steps[t->n_steps++] = (struct step){state->previous, state->from, state->group, {0}};
    return true;
}

/* Tries the groups of a state, up to a number of nodes. false: no memory. */
static bool expand(struct tight *t, const struct state *state, int ended, uint64_t limit,
                   uint64_t *nodes) {
    int slot = take_slot(t);
    if (slot < 0 || !add_step(t, state)) return false;
    list_groups(t, state, &t->nodes[(size_t)slot * (size_t)t->slot_nodes]);
    for (int i = 0; i < t->n_groups; i++) {
        struct group group = t->groups[i];
        struct rfx_pq_run run = {.leaves = t->run_leaves};
        struct state next = {t->n_steps - 1, state->boundary, group, .slot = slot};
        int items = __builtin_popcountll(group.ends) + __builtin_popcountll(group.begins);
        if (*nodes >= limit) {
            t->complete = false;
            break;
        }
        ++*nodes;
        next.n_tree = replace(t, state->boundary, tree_of(t, state), state->n_tree, group,
                              tree_of(t, &next), &run);
        if (next.n_tree == 0) continue;
        if (group.ends == state->ends) {
            enter(t, &next, state->boundary + 1);
        } else {
            next.boundary = state->boundary;
            next.ends = state->ends & ~group.ends;
            next.begins = state->begins & ~group.begins;
        }
        next.joined = state->joined + items - 2;
        judge(t, &next);
        insert(t, (ended + __builtin_popcountll(group.ends)) % BUCKETS, next);
        slot = take_slot(t);
        if (slot < 0) return false;
    }
    t->free_slots[t->n_free++] = slot;
    return true;
}

/* Puts the run of a step back where the items that began lie in the order of n items; returns their
 * number. */
static int undo(struct tight *t, const struct step *step, int n) {
    const int *begins = &t->b->by_begin[t->b->at[step->boundary].begins];
    int n_with = select_items(begins, step->group.begins, t->block);
    int n_gone = step->run.count;
    int start = 0;
    bool reversed = false;
    mark(t, t->block, n_with, true);
    while (!t->marked[t->order[start]]) start++;
    mark(t, t->block, n_with, false);
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
    int *way = t->block; /* one group ends at least one item */
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
    struct rfx_pq_node *tree = t->nodes; /* the first two slots, of no more use */
    struct rfx_pq_node *next = tree + t->slot_nodes;
    int n_tree = rfx_pq_make(&t->b->by_begin[start->begins], start->n_begins, tree);
    int n_steps = state->previous < 0 ? 0 : gather_steps(t, state);
    int *leaves = t->run_leaves;
    for (int k = 0; k < n_steps; k++) {
        struct step *step = &t->steps[k];
        struct rfx_pq_node *swap = tree;
        step->run.leaves = leaves;
        n_tree = replace(t, step->boundary, tree, n_tree, step->group, next, &step->run);
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
        if (k == 0 || t->steps[k - 1].boundary != t->steps[k].boundary)
            set_offsets(t, n, n_items, offsets);
    }
}

/* Looks for a state at the last boundary: last->boundary is set. false: no memory. */
static bool search(struct tight *t, const struct rfx_tight_request *request, uint64_t *nodes,
                   struct state *last) {
    const struct rfx_boundary *start = &t->b->at[0];
    struct state first = {.previous = -1};
    int waiting = 1;
    if (take_slot(t) < 0 || take_slot(t) < 0) return false; /* two trees for reconstruct */
    enter(t, &first, 1);
    first.n_tree = rfx_pq_make(&t->b->by_begin[start->begins], start->n_begins, t->nodes);
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
            if (*nodes >= request->nodes || rfx_packer_is_past(request->deadline_ns)) {
                t->complete = false;
                return true;
            }
            if (!expand(t, &states[i], ended, request->nodes, nodes)) return false;
            t->free_slots[t->n_free++] = states[i].slot;
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
    struct tight t = {
        .mem = problem->mem, .width = request->width, .complete = true, .listed_boundary = -1};
    struct state last = {.boundary = -1};
    uint64_t visited = 0;
    *outcome = RFX_TIGHT_ALL_TRIED;
    if (problem->n == 0 || problem->n > RFX_TIGHT_MAX_ITEMS) return RFX_OK;
    enum rfx_status status =
        rfx_boundaries_create(problem, request->capacity_bytes, request->backwards, &t.b, err);
    if (status != RFX_OK || !t.b->possible) goto done;
    status = rfx_pq_create(t.mem, t.b->max_live, &t.pq, err);
    if (status != RFX_OK) goto done;
    t.slot_nodes = 2 * t.b->max_live;
    if (!allocate(&t, (size_t)t.b->n_items) || !search(&t, request, &visited, &last)) {
        status = rfx_memory_fail(t.mem, "packer", 2 * t.nodes_capacity * sizeof *t.nodes, err);
        goto done;
    }
    if (!t.complete) *outcome = RFX_TIGHT_SOME_LEFT;
    if (last.boundary < 0) goto done;
    reconstruct(&t, &last, problem->n, offsets);
    if (rfx_place_answer_is_valid(problem->items, problem->n, offsets, request->capacity_bytes))
        *outcome = RFX_TIGHT_FOUND; /* else an alignment was in the way */
done:
    *nodes += visited;
    release(&t);
    return status;
}
