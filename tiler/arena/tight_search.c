/* The beam search. It goes from boundary to boundary between two sections and tries the groups of
 * each. Of all states in which equally many items have ended, the best are kept. Two states count
 * as one if they differ only in items of the same size and the same end, since nothing
 * distinguishes such items from here on. */
#include "tiler/arena/tight_search.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tiler/arena/arena_problem.h"
#include "tiler/arena/pq_tree.h"

/* Most items that end or begin at an inner boundary: they are bits of a mask. */
#define MAX_SIDE 64

struct boundary_item {
    size_t size;
    int begin, end; /* boundaries */
    int bit;        /* its position among the items that end at `end` */
};

struct boundary {
    int ends, n_ends, begins, n_begins; /* ranges of by_end, by_begin */
};

struct boundaries {
    struct rfx_memory *mem;
    int n_items, n; /* n: sections + 1 */
    int room;       /* for items */
    struct boundary_item *items;
    int *by_end, *by_begin;
    struct boundary *at;
    int max_live;  /* most items live at once, counting both sides of a boundary */
    bool possible; /* no inner boundary has more than MAX_SIDE ends or begins, and the array has
                      room for all fillers (tight_search.h) */
};

/* Adds a filler (tight_search.h) that begins at boundary `at` and has no end yet. */
static void add_filler(struct boundaries *b, size_t size, int at) {
    if (b->n_items == b->room)
        b->possible = false;
    else
        b->items[b->n_items++] = (struct boundary_item){size, at, -1, 0};
}

/* Ends fillers of `less` bytes in total at a boundary: one filler of exactly that size or, if there
 * is none, the youngest fillers. */
static void end_fillers(struct boundaries *b, int first_filler, size_t less, int at) {
    int exact = -1;
    for (int i = b->n_items - 1; i >= first_filler && exact < 0; i--)
        if (b->items[i].end < 0 && b->items[i].size == less) exact = i;
    if (exact >= 0) {
        b->items[exact].end = at;
        return;
    }
    for (int i = b->n_items - 1; less > 0; i--) {
        assert(i >= first_filler);
        if (b->items[i].end >= 0) continue;
        size_t size = b->items[i].size;
        b->items[i].end = at;
        if (size > less) add_filler(b, size - less, at);
        less -= size < less ? size : less;
    }
}

/* Returns the free bytes of a section; sections are counted in the direction of the search. */
static size_t free_bytes(const struct rfx_place_problem *problem, size_t capacity, bool backwards,
                         int section) {
    int sections = problem->n_sections;
    if (section < 0 || section >= sections) return 0;
    return capacity - problem->breadth[backwards ? sections - 1 - section : section];
}

static void make_items(struct boundaries *b, const struct rfx_place_problem *problem,
                       size_t capacity, bool backwards) {
    int sections = problem->n_sections;
    size_t before = 0;
    b->n_items = problem->n;
    for (int i = 0; i < problem->n; i++) {
        struct boundary_item item = {problem->items[i].size, problem->first[i], problem->last[i],
                                     0};
        if (backwards) {
            item.begin = sections - problem->last[i];
            item.end = sections - problem->first[i];
        }
        b->items[i] = item;
    }
    for (int at = 0; at <= sections && b->possible; at++) {
        size_t now = free_bytes(problem, capacity, backwards, at);
        if (now > before) add_filler(b, now - before, at);
        if (now < before) end_fillers(b, problem->n, before - now, at);
        before = now;
    }
}

static void list_boundaries(struct boundaries *b) {
    int live = 0;
    int n_ends = 0;
    int n_begins = 0;
    for (int at = 0; at < b->n; at++) {
        struct boundary *boundary = &b->at[at];
        boundary->ends = n_ends;
        boundary->begins = n_begins;
        for (int i = 0; i < b->n_items; i++) {
            struct boundary_item *item = &b->items[i];
            if (item->begin == at) b->by_begin[n_begins++] = i;
            if (item->end != at) continue;
            item->bit = n_ends - boundary->ends;
            b->by_end[n_ends++] = i;
        }
        boundary->n_ends = n_ends - boundary->ends;
        boundary->n_begins = n_begins - boundary->begins;
        live += boundary->n_begins;
        if (live > b->max_live) b->max_live = live;
        live -= boundary->n_ends;
        bool inner = at > 0 && at < b->n - 1;
        if (inner && (boundary->n_ends > MAX_SIDE || boundary->n_begins > MAX_SIDE))
            b->possible = false;
    }
}

static void boundaries_free(struct boundaries *boundaries) {
    if (boundaries == NULL) return;
    rfx_memory_release(boundaries->mem, boundaries->items);
    rfx_memory_release(boundaries->mem, boundaries->by_end);
    rfx_memory_release(boundaries->mem, boundaries->by_begin);
    rfx_memory_release(boundaries->mem, boundaries->at);
    rfx_memory_release(boundaries->mem, boundaries);
}

/* Lists the boundaries of a problem of n >= 1 items, with fillers where fewer than `capacity` bytes
 * are in use. The capacity is at least the largest breadth. Free with boundaries_free. O(items *
 * sections). */
static enum rfx_status boundaries_create(const struct rfx_place_problem *problem, size_t capacity,
                                         bool backwards, struct boundaries **out,
                                         struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    struct boundaries *b = rfx_memory_calloc(mem, 1, sizeof *b);
    if (b == NULL) return rfx_memory_fail(mem, "packer", sizeof *b, err);
    b->mem = mem;
    b->n = problem->n_sections + 1;
    b->possible = true;
    size_t items =
        (size_t)problem->n + 2 * (size_t)b->n; /* each boundary adds one or two fillers */
    b->room = (int)items;
    b->items = rfx_memory_calloc(mem, items, sizeof *b->items);
    b->by_end = rfx_memory_calloc(mem, items, sizeof *b->by_end);
    b->by_begin = rfx_memory_calloc(mem, items, sizeof *b->by_begin);
    b->at = rfx_memory_calloc(mem, (size_t)b->n, sizeof *b->at);
    if (b->items == NULL || b->by_end == NULL || b->by_begin == NULL || b->at == NULL) {
        boundaries_free(b);
        return rfx_memory_fail(mem, "packer", items * sizeof *b->items, err);
    }
    make_items(b, problem, capacity, backwards);
    if (b->possible) list_boundaries(b);
    *out = b;
    return RFX_OK;
}

/* A group: some of the items that end at a boundary and some of those that begin there, as bits in
 * the boundary's order. */
struct group {
    uint64_t ends, begins;
};

/* The state that groups are made from: the items of a boundary that are in no group yet, and the
 * possible orders of all live items. */
struct group_source {
    int boundary;
    struct group left;
    const struct rfx_pq_node *tree;
    int n_tree;
};

struct groups {
    struct group *list; /* [n], of the last groups_list */
    int n;
    bool complete; /* no group has been left out to save time */

    /* tables and scratch */
    struct rfx_memory *mem;
    const struct boundaries *b; /* borrowed */
    struct rfx_pq *pq;
    int *leaves, *order, *block;        /* per item */
    bool *marked;                       /* per item; false between calls */
    struct subset *unions, *low, *high; /* of blocks; of the two halves of the last listed begins */
    int n_low, n_high, listed_boundary;
    uint64_t listed_begins;
};

/* Returns a mask of the lowest n <= 64 bits. */
static inline uint64_t lowest_bits(int n) {
    return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* Lists the items that a mask selects; returns their number. */
static inline int select_items(const int *list, uint64_t mask, int *out) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) out[n++] = list[__builtin_ctzll(mask)];
    return n;
}

/* Limits of the work on one state; reaching a limit clears `complete`. All three decide which
 * packings are found, and so they decide plans. MAX_SUBSETS: number of unions of blocks that end,
 * and of subsets of each half of the begins. All subsets of up to 11 parts are listed; of more
 * parts, the smallest subsets. MAX_GROUPS: number of groups of a state, each of which takes the
 * time and memory of a tree. MAX_ALIKE: number of groups with the same union of blocks, so that
 * many equal sums leave room for other unions. */
enum { MAX_SUBSETS = 1 << 11, MAX_GROUPS = 1 << 9, MAX_ALIKE = 64 };

/* Masks have 64 bits, and subsets are counted as 1 << n: with more parts the list is never
 * complete. */
enum { MAX_COUNTED_PARTS = 62 };

struct subset {
    size_t sum;
    uint64_t mask;
};

static void groups_free(struct groups *groups) {
    if (groups == NULL) return;
    void *const blocks[] = {groups->leaves, groups->order,  groups->block, groups->marked,
                            groups->list,   groups->unions, groups->low,   groups->high};
    rfx_pq_free(groups->pq);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(groups->mem, blocks[i]);
    rfx_memory_release(groups->mem, groups);
}

/* Allocates the tables for listing groups. The boundaries must outlive them. OUT_OF_MEMORY. Free
 * with groups_free. */
static enum rfx_status groups_create(struct rfx_memory *mem, const struct boundaries *boundaries,
                                     struct groups **out, struct rfx_error *err) {
    size_t items = (size_t)boundaries->n_items;
    struct groups *g = rfx_memory_calloc(mem, 1, sizeof *g);
    if (g == NULL) return rfx_memory_fail(mem, "packer", sizeof *g, err);
    g->mem = mem;
    g->b = boundaries;
    g->complete = true;
    g->listed_boundary = -1;
    enum rfx_status status = rfx_pq_create(mem, boundaries->max_live, &g->pq, err);
    if (status != RFX_OK) goto fail;
    g->leaves = rfx_memory_calloc(mem, items, sizeof *g->leaves);
    g->order = rfx_memory_calloc(mem, items, sizeof *g->order);
    g->block = rfx_memory_calloc(mem, items, sizeof *g->block);
    g->marked = rfx_memory_calloc(mem, items, sizeof *g->marked);
    g->list = rfx_memory_calloc(mem, MAX_GROUPS, sizeof *g->list);
    g->unions = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->unions);
    g->low = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->low);
    g->high = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->high);
    if (g->leaves == NULL || g->order == NULL || g->block == NULL || g->marked == NULL ||
        g->list == NULL || g->unions == NULL || g->low == NULL || g->high == NULL) {
        status = rfx_memory_fail(mem, "packer", 3 * MAX_SUBSETS * sizeof *g->low, err);
        goto fail;
    }
    *out = g;
    return RFX_OK;
fail:
    groups_free(g);
    return status;
}

static int compare_subsets(const void *pa, const void *pb) {
    const struct subset *a = pa;
    const struct subset *b = pb;
    if (a->sum != b->sum) return a->sum < b->sum ? -1 : 1;
    return (a->mask > b->mask) - (a->mask < b->mask);
}

/* Lists the unions of n parts and returns their number. If there are too many, lists unions of few
 * parts first. The union of all parts is always listed. */
static int list_subsets(struct groups *g, const struct subset *parts, int n, bool empty,
                        struct subset *subsets) {
    int count = 0;
    uint64_t all = lowest_bits(n);
    if (n > MAX_COUNTED_PARTS || (uint64_t)1 << n > MAX_SUBSETS) g->complete = false;
    for (int size = empty ? 0 : 1; size <= n; size++) {
        uint64_t mask = size == n || count >= MAX_SUBSETS - 1 ? all : lowest_bits(size);
        while (mask <= all) {
            struct subset made = {0, 0};
            for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
                made.sum += parts[__builtin_ctzll(rest)].sum;
                made.mask |= parts[__builtin_ctzll(rest)].mask;
            }
            subsets[count++] = made;
            if (mask == all) return count;
            if (mask == 0 || count >= MAX_SUBSETS - 1) break;
            uint64_t lowest = mask & (0 - mask); /* the next larger number with as many bits */
            uint64_t ripple = mask + lowest;
            if (ripple < mask) break;
            mask = ripple | (((mask ^ ripple) >> 2) / lowest);
        }
    }
    return count;
}

static void mark(struct groups *g, const int *list, int n, bool marked) {
    for (int i = 0; i < n; i++) g->marked[list[i]] = marked;
}

/* Replaces the ends of a group of boundary `at` by its begins (rfx_pq_replace). Returns the number
 * of nodes of the tree written to *out; 0: the ends are contiguous in no order. */
static int groups_replace(struct groups *g, int at, const struct rfx_pq_node *tree, int n_tree,
                          struct group group, struct rfx_pq_node *out, struct rfx_pq_run *run) {
    const struct boundary *boundary = &g->b->at[at];
    int n_gone = select_items(&g->b->by_end[boundary->ends], group.ends, g->order);
    int n_with = select_items(&g->b->by_begin[boundary->begins], group.begins, g->block);
    mark(g, g->order, n_gone, true);
    int n = rfx_pq_replace(g->pq, tree, n_tree, g->marked, n_gone, g->block, n_with, out, run);
    mark(g, g->order, n_gone, false);
    return n;
}

/* Returns whether the mask leaves out an item that equals a selected one and comes before it. The
 * same packing is found with the earlier item. */
static bool skips_twin(const struct groups *g, const int *list, uint64_t left, uint64_t mask) {
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        const struct boundary_item *item = &g->b->items[list[bit]];
        for (uint64_t out = left & ~mask & lowest_bits(bit); out != 0; out &= out - 1) {
            const struct boundary_item *other = &g->b->items[list[__builtin_ctzll(out)]];
            if (other->size == item->size && other->end == item->end) return true;
        }
    }
    return false;
}

/* Lists the blocks of the remaining ends: items that are contiguous in every order the tree allows.
 * Contiguous runs of ends are unions of blocks. */
static int list_blocks(struct groups *g, const struct group_source *from, struct subset *blocks) {
    const struct boundary *boundary = &g->b->at[from->boundary];
    int n = select_items(&g->b->by_end[boundary->ends], from->left.ends, g->order);
    int n_blocks = 0;
    mark(g, g->order, n, true);
    (void)rfx_pq_blocks(g->pq, from->tree, from->n_tree, g->marked, g->order, g->block);
    mark(g, g->order, n, false);
    for (int i = 0; i < n; i++) {
        const struct boundary_item *item = &g->b->items[g->order[i]];
        if (g->block[i] == n_blocks) blocks[n_blocks++] = (struct subset){0, 0};
        blocks[g->block[i]].sum += item->size;
        blocks[g->block[i]].mask |= (uint64_t)1 << item->bit;
    }
    return n_blocks;
}

/* Adds the groups of these ends. The begins of a group have the same sum as its ends; their sums
 * are looked up in the two halves of the begins. */
static void add_groups(struct groups *g, const struct group_source *from, struct subset ends) {
    const int *begins = &g->b->by_begin[g->b->at[from->boundary].begins];
    const struct subset *low = g->low;
    const struct subset *high = g->high;
    int most = g->n + MAX_ALIKE < MAX_GROUPS ? g->n + MAX_ALIKE : MAX_GROUPS;
    int h = g->n_high - 1;
    for (int l = 0; l < g->n_low && low[l].sum <= ends.sum; l++) {
        while (h >= 0 && high[h].sum > ends.sum - low[l].sum) h--;
        for (int k = h; k >= 0 && high[k].sum == ends.sum - low[l].sum; k--) {
            struct group group = {ends.mask, low[l].mask | high[k].mask};
            if (g->n == most) {
                g->complete = false;
                return;
            }
            if ((group.ends == from->left.ends) != (group.begins == from->left.begins)) continue;
            if (skips_twin(g, begins, from->left.begins, group.begins)) continue;
            g->list[g->n++] = group;
        }
    }
}

/* Keeps only the groups of one block: the block that occurs in the fewest groups. Every packing
 * without a spare byte makes one of these groups. */
static void keep_fewest(struct groups *g, const struct subset *blocks, int n) {
    uint64_t best = 0;
    int fewest = INT32_MAX;
    for (int b = 0; b < n; b++) {
        int count = 0;
        for (int i = 0; i < g->n; i++) count += (g->list[i].ends & blocks[b].mask) != 0;
        if (count >= fewest) continue;
        fewest = count;
        best = blocks[b].mask;
    }
    int kept = 0;
    for (int i = 0; i < g->n; i++)
        if ((g->list[i].ends & best) != 0) g->list[kept++] = g->list[i];
    g->n = kept;
}

/* Lists the sums of the remaining begins in two halves, unless they were just listed. */
static void list_halves(struct groups *g, const struct group_source *from) {
    if (g->listed_boundary == from->boundary && g->listed_begins == from->left.begins) return;
    struct subset parts[MAX_SIDE];
    const int *begins = &g->b->by_begin[g->b->at[from->boundary].begins];
    int n = 0;
    for (uint64_t rest = from->left.begins; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        parts[n++] = (struct subset){g->b->items[begins[bit]].size, (uint64_t)1 << bit};
    }
    g->n_low = list_subsets(g, parts, n / 2, true, g->low);
    g->n_high = list_subsets(g, &parts[n / 2], n - n / 2, true, g->high);
    qsort(g->low, (size_t)g->n_low, sizeof *g->low, compare_subsets);
    qsort(g->high, (size_t)g->n_high, sizeof *g->high, compare_subsets);
    g->listed_boundary = from->boundary;
    g->listed_begins = from->left.begins;
}

/* Lists the groups to try. When complete, every packing makes one of them. `scratch` has room for a
 * tree. */
static void groups_list(struct groups *groups, const struct group_source *from,
                        struct rfx_pq_node *scratch) {
    struct groups *g = groups;
    struct subset blocks[MAX_SIDE];
    int n_blocks = list_blocks(g, from, blocks);
    int n_unions = list_subsets(g, blocks, n_blocks, false, g->unions);
    struct rfx_pq_run run = {.leaves = g->leaves};
    list_halves(g, from);
    g->n = 0;
    for (int u = 0; u < n_unions; u++) {
        int before = g->n;
        add_groups(g, from, g->unions[u]);
        if (g->n > before && u >= n_blocks &&
            groups_replace(g, from->boundary, from->tree, from->n_tree, g->list[before], scratch,
                           &run) == 0)
            g->n = before; /* these blocks are never contiguous */
    }
    keep_fewest(g, blocks, n_blocks);
}

/* Slots of equal size for the PQ-trees of the beam's states. All zero to begin with, except for
 * `mem` and `slot_nodes`, the number of nodes of a slot. */
struct slots {
    struct rfx_memory *mem;
    struct rfx_pq_node *nodes;
    int *free_slots;
    int slot_nodes, n_slots, n_free;
    size_t nodes_capacity, free_capacity;
};

/* Returns a slot whose nodes are not set; -1: no memory. All slots may move. */
static int take_slot(struct slots *slots) {
    if (slots->n_free > 0) return slots->free_slots[--slots->n_free];
    size_t wanted = (size_t)slots->n_slots + 1;
    struct rfx_pq_node *nodes =
        rfx_memory_reserve(slots->mem, slots->nodes, &slots->nodes_capacity,
                           wanted * (size_t)slots->slot_nodes, sizeof *nodes);
    if (nodes == NULL) return -1;
    slots->nodes = nodes;
    int *free_slots = rfx_memory_reserve(slots->mem, slots->free_slots, &slots->free_capacity,
                                         wanted, sizeof *free_slots);
    if (free_slots == NULL) return -1;
    slots->free_slots = free_slots;
    return slots->n_slots++;
}

static void give_slot(struct slots *slots, int slot) {
    slots->free_slots[slots->n_free++] = slot;
}

/* The nodes of a slot. */
static struct rfx_pq_node *slot_at(const struct slots *slots, int slot) {
    return &slots->nodes[(size_t)slot * (size_t)slots->slot_nodes];
}

static void release_slots(struct slots *slots) {
    rfx_memory_release(slots->mem, slots->nodes);
    rfx_memory_release(slots->mem, slots->free_slots);
}

enum {
    BUCKETS = MAX_SIDE + 1, /* a group ends 1 .. MAX_SIDE items, so buckets do not wrap around */
    BIT = 64,               /* scores count fractions of bits; one joined item costs one bit */
    CHANCE = 4 * BIT        /* with a seed: largest random bonus of a state */
};

/* A state of the search: the groups that have been made up to, or within, a boundary. */
struct state {
    int previous, from; /* the previous step (-1: none), and the boundary of the last group */
    struct group group;
    int boundary;
    struct group left; /* items that are in no group yet */
    int slot, n_tree;  /* slot and number of nodes of its tree */
    int64_t joined; /* items of all groups so far, not counting one end and one begin per group */
    int64_t score;
    uint64_t hash;
};

/* A group that was made; runs are filled when a packing is found. */
struct step {
    int previous, boundary;
    struct group group;
    struct rfx_pq_run run;
};

struct tight {
    struct rfx_memory *mem;
    struct boundaries *b;
    struct groups *groups;
    int *run_leaves, *order, *with;
    uint64_t *hashes; /* per node of a tree */
    bool *marked;
    struct state *states; /* by number of ended items, modulo BUCKETS: `width` states each */
    int n_states[BUCKETS], width;
    struct step *steps;
    int n_steps;
    uint64_t seed;
    size_t steps_capacity;
    struct slots trees;
    bool complete; /* no state and no listed group has been left out */
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
    return groups_create(mem, t->b, &t->groups, err);
}

static void release(struct tight *t) {
    void *const blocks[] = {t->run_leaves, t->order,  t->with, t->hashes,
                            t->marked,     t->states, t->steps};
    release_slots(&t->trees);
    groups_free(t->groups);
    boundaries_free(t->b);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(t->mem, blocks[i]);
}

static struct rfx_pq_node *tree_of(const struct tight *t, const struct state *state) {
    return slot_at(&t->trees, state->slot);
}

/* Returns about BIT * log2(n). */
static int64_t bits_of(int n) {
    int whole = 31 - __builtin_clz((unsigned)n);
    return BIT * whole + (int64_t)BIT * (n - (1 << whole)) / (1 << whole);
}

static uint64_t hash_item(const struct boundary_item *item) {
    return rfx_place_mix(item->size ^ rfx_place_mix((uint64_t)item->end));
}

/* Hashes a node's children: of a P node in any order, of a Q node from either end. */
static uint64_t hash_children(struct tight *t, const struct rfx_pq_node *tree, int node) {
    uint64_t sum = 0;
    uint64_t forward = 0;
    uint64_t backward = 0;
    int n = 0;
    for (int k = node + 1; k < node + tree[node].span; k += tree[k].span) {
        sum += rfx_place_mix(t->hashes[k]);
        forward = rfx_place_mix(forward ^ t->hashes[k]);
        t->order[n++] = k;
    }
    if (tree[node].what == RFX_PQ_P) return rfx_place_mix(sum);
    while (n > 0) backward = rfx_place_mix(backward ^ t->hashes[t->order[--n]]);
    return forward + backward;
}

/* Computes a state's score (in bits: how many orders its tree allows, less the joined items) and
 * the hash of everything that matters from here on. */
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
        state->hash += rfx_place_mix(hash_item(&t->b->items[begins[__builtin_ctzll(rest)]]));
    if (t->seed != 0) state->score += (int64_t)(rfx_place_mix(state->hash ^ t->seed) % CHANCE);
}

/* Adds a state to its bucket, or frees its slot. */
static void insert(struct tight *t, int bucket, struct state state) {
    struct state *states = &t->states[(size_t)bucket * (size_t)t->width];
    int n = t->n_states[bucket];
    int worst = 0;
    for (int i = 0; i < n; i++) {
        if (states[i].hash == state.hash) {
            give_slot(&t->trees, state.slot);
            return;
        }
        if (states[i].score < states[worst].score) worst = i;
    }
    if (n == t->width) t->complete = false;
    if (n < t->width) {
        states[t->n_states[bucket]++] = state;
    } else if (states[worst].score < state.score) {
        give_slot(&t->trees, states[worst].slot);
        states[worst] = state;
    } else {
        give_slot(&t->trees, state.slot);
    }
}

/* Enters a boundary: none of its items is in a group yet. At the last boundary no groups are made.
 */
static void enter(const struct tight *t, struct state *state, int boundary) {
    bool last = boundary == t->b->n - 1;
    state->boundary = boundary;
    state->left.ends = last ? 0 : lowest_bits(t->b->at[boundary].n_ends);
    state->left.begins = last ? 0 : lowest_bits(t->b->at[boundary].n_begins);
}

/* Records how a state was reached. Returns false: no memory. */
static bool add_step(struct tight *t, const struct state *state) {
    struct step *steps = rfx_memory_reserve(t->mem, t->steps, &t->steps_capacity,
                                            (size_t)t->n_steps + 1, sizeof *t->steps);
    if (steps == NULL) return false;
    t->steps = steps;
    t->steps[t->n_steps++] = (struct step){state->previous, state->from, state->group, {0}};
    return true;
}

/* Tries the groups of a state, up to a node limit. Returns false: no memory. */
static bool expand(struct tight *t, const struct state *state, int ended, uint64_t limit,
                   uint64_t *nodes) {
    int slot = take_slot(&t->trees);
    if (slot < 0 || !add_step(t, state)) return false;
    struct group_source from = {state->boundary, state->left, tree_of(t, state), state->n_tree};
    groups_list(t->groups, &from, slot_at(&t->trees, slot));
    for (int i = 0; i < t->groups->n; i++) {
        struct group group = t->groups->list[i];
        struct rfx_pq_run run = {.leaves = t->run_leaves};
        struct state next = {t->n_steps - 1, state->boundary, group, .slot = slot};
        int items = __builtin_popcountll(group.ends) + __builtin_popcountll(group.begins);
        if (*nodes >= limit) {
            t->complete = false;
            break;
        }
        ++*nodes;
        next.n_tree = groups_replace(t->groups, state->boundary, tree_of(t, state), state->n_tree,
                                     group, tree_of(t, &next), &run);
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
        slot = take_slot(&t->trees);
        if (slot < 0) return false;
    }
    give_slot(&t->trees, slot);
    return true;
}

/* Reverts a step: puts its run back in place of the begun items, in an order of n items; returns
 * their new number. */
static int undo(struct tight *t, const struct step *step, int n) {
    const int *begins = &t->b->by_begin[t->b->at[step->boundary].begins];
    int n_with = select_items(begins, step->group.begins, t->with);
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

/* Computes the offsets of the problem's items in this order. */
static void set_offsets(const struct tight *t, int n, int n_items, size_t *offsets) {
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        int item = t->order[i];
        if (item < n_items) offsets[item] = at;
        at += t->b->items[item].size;
    }
}

/* Writes the path to a state as steps 0 .. n - 1, in place; returns n. */
static int gather_steps(struct tight *t, const struct state *state) {
    int n = 0;
    int *path = t->with; /* long enough, because each group ends at least one item */
    struct step last = {state->previous, state->from, state->group, {0}};
    for (int k = state->previous; k > 0; k = t->steps[k].previous) path[n++] = k;
    for (int i = 0; i < n; i++) t->steps[i] = t->steps[path[n - 1 - i]]; /* each step moves down */
    t->steps[n] = last;
    return n + 1;
}

/* Walks the path to the state again and records the run of each step. Then takes an order of the
 * items that are live at the end, undoes the steps from the last to the first, and so finds the
 * offsets of all items. */
static void reconstruct(struct tight *t, const struct state *state, int n_items, size_t *offsets) {
    const struct boundary *start = &t->b->at[0];
    struct rfx_pq_node *tree =
        slot_at(&t->trees, 0); /* this slot and the next are no longer used */
    struct rfx_pq_node *next = slot_at(&t->trees, 1);
    int n_tree = rfx_pq_make(&t->b->by_begin[start->begins], start->n_begins, tree);
    int n_steps = state->previous < 0 ? 0 : gather_steps(t, state);
    int *leaves = t->run_leaves;
    for (int k = 0; k < n_steps; k++) {
        struct step *step = &t->steps[k];
        struct rfx_pq_node *swap = tree;
        step->run.leaves = leaves;
        n_tree =
            groups_replace(t->groups, step->boundary, tree, n_tree, step->group, next, &step->run);
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

/* Searches for a state at the last boundary. If it finds one, fills *last; otherwise leaves
 * last->boundary below 0. Returns false: no memory. */
static bool search(struct tight *t, const struct rfx_tight_request *request, uint64_t *nodes,
                   struct state *last) {
    const struct boundary *start = &t->b->at[0];
    struct state first = {.previous = -1};
    int waiting = 1;
    if (take_slot(&t->trees) < 0 || take_slot(&t->trees) < 0)
        return false; /* reconstruct needs two trees */
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
            give_slot(&t->trees, states[i].slot);
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
        boundaries_create(problem, request->capacity_bytes, request->backwards, &t.b, err);
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
        *outcome = RFX_TIGHT_FOUND; /* otherwise an alignment is violated */
done:
    *nodes += visited;
    release(&t);
    return status;
}
