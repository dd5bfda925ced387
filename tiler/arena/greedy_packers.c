/* Greedy packers that consist of an order of the items and a rule for choosing a gap; strip
 * packing; and the best of several strip packings, each made by one thread.
 *
 * Strip packing keeps a heap of the skyline's lines and a tree of the items, sorted by their first
 * sections. Invariants: 1. lines cover all sections without gaps, and two adjacent lines differ in
 * height; 2. lines[s] is valid where a line begins at section s, and the heap contains each such s
 * once; 3. a node of the tree holds the best unplaced item below it, and the earliest end of those
 * items. */
#include "tiler/arena/greedy_packers.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/team.h"

/* A step is the height from a line to its lower neighbour. With more than MANY_ITEMS items, a step
 * is small if it is lower than 1 / STEP_PART of the mean item's size and if filling it wastes less
 * than 1 / STEP_SHARE of the area of the item that could go there. Both numbers were found by
 * trial. With fewer items no step is small, as in the published packer. WEIGHED_TIME limits the sum
 * of all weighed lengths of time. */
enum { MAX_DEPTH = 64, NONE = -1, MANY_ITEMS = 1 << 15, STEP_PART = 20, STEP_SHARE = 10 };
static const double WEIGHED_TIME = 4503599627370496.0;

/* Items placed between two checks whether to stop: less than a millisecond. */
enum { ASK_EVERY_PLACED = 256 };

/* The weight of a moment is a power of margin / (margin + 1 - load / bound). Powers and margins
 * were found by trial. */
struct measure {
    int power; /* 0: all moments weigh the same */
    double margin;
};
static const struct measure measures[RFX_STRIP_MEASURES] = {{0, 0}, {4, 0.04}, {3, 0.02}, {3, 0.1}};

struct line {
    size_t height;
    int end;      /* where the next line begins */
    int previous; /* where the previous line begins, or NONE */
    int at;       /* index in the heap */
};

struct node {
    uint64_t lifetime; /* of the best item; kept here because it is read far more often */
    int best;          /* item, or NONE: no item is left */
    int first, latest; /* first sections of the first and the last item */
    int last;          /* earliest last section of the items */
};

struct strip {
    const struct rfx_place_problem *problem;
    struct line *lines; /* per section */
    int *heap;          /* lines, lowest first */
    int64_t *times;     /* per section: when it begins; then the end of the last. Lengths are
                           differences of these, weighed or not */
    int *leaf;          /* per item */
    struct node *nodes; /* tree: node 1 is the root, node n_leaves + k leaf k */
    int n_heap, n_leaves;
    size_t small_step; /* 0: no step is small */
};

static uint64_t length_of(const struct strip *strip, int first, int last) {
    return (uint64_t)strip->times[last] - (uint64_t)strip->times[first];
}

static uint64_t lifetime_of(const struct strip *strip, int i) {
    return length_of(strip, strip->problem->first[i], strip->problem->last[i]);
}

/* Returns whether item i goes before item j (NONE goes last). */
static bool goes_before(const struct strip *strip, int i, int j) {
    if (i == NONE || j == NONE) return j == NONE && i != NONE;
    uint64_t a = lifetime_of(strip, i);
    uint64_t b = lifetime_of(strip, j);
    if (a != b) return a > b;
    const struct rfx_place_item *items = strip->problem->items;
    if (items[i].size != items[j].size) return items[i].size > items[j].size;
    return i < j;
}

/* Returns whether the best item of a node goes before that of another. */
static bool is_better_node(const struct strip *strip, const struct node *a, const struct node *b) {
    if (a->lifetime != b->lifetime) return a->lifetime > b->lifetime;
    return goes_before(strip, a->best, b->best);
}

static bool is_lower(const struct strip *strip, int a, int b) {
    const struct line *lines = strip->lines;
    if (lines[a].height != lines[b].height) return lines[a].height < lines[b].height;
    return a < b;
}

static void put_in_heap(struct strip *strip, int at, int line) {
    strip->heap[at] = line;
    strip->lines[line].at = at;
}

/* Moves a line to its place in the heap. */
static void sift(struct strip *strip, int line) {
    int at = strip->lines[line].at;
    for (; at > 0 && is_lower(strip, line, strip->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put_in_heap(strip, at, strip->heap[(at - 1) / 2]);
    for (int child = 2 * at + 1; child < strip->n_heap; child = 2 * at + 1) {
        if (child + 1 < strip->n_heap &&
            is_lower(strip, strip->heap[child + 1], strip->heap[child]))
            child++;
        if (!is_lower(strip, strip->heap[child], line)) break;
        put_in_heap(strip, at, strip->heap[child]);
        at = child;
    }
    put_in_heap(strip, at, line);
}

/* Adds a line; the caller links its neighbours. */
static void add_line(struct strip *strip, int begin, int end, int previous, size_t height) {
    struct line line = {height, end, previous, strip->n_heap};
    strip->lines[begin] = line;
    strip->heap[strip->n_heap++] = begin;
    sift(strip, begin);
    if (end < strip->problem->n_sections) strip->lines[end].previous = begin;
}

static void remove_from_heap(struct strip *strip, int line) {
    int at = strip->lines[line].at;
    int moved = strip->heap[--strip->n_heap];
    if (moved == line) return;
    put_in_heap(strip, at, moved);
    sift(strip, moved);
}

/* Joins a line with the next one if they have the same height. */
static void join_next(struct strip *strip, int line) {
    int next = strip->lines[line].end;
    if (next >= strip->problem->n_sections ||
        strip->lines[next].height != strip->lines[line].height)
        return;
    remove_from_heap(strip, next);
    strip->lines[line].end = strip->lines[next].end;
    if (strip->lines[line].end < strip->problem->n_sections)
        strip->lines[strip->lines[line].end].previous = line;
}

/* Sets the height of a line, and joins it with neighbours of the same height. */
static void set_height(struct strip *strip, int line, size_t height) {
    strip->lines[line].height = height;
    sift(strip, line);
    join_next(strip, line);
    if (strip->lines[line].previous != NONE) join_next(strip, strip->lines[line].previous);
}

/* Cuts a line so that one begins at section `at`. */
static void cut_line(struct strip *strip, int line, int at) {
    int end = strip->lines[line].end;
    if (at <= line || at >= end) return;
    strip->lines[line].end = at;
    add_line(strip, at, end, line, strip->lines[line].height);
}

static void set_node(struct strip *strip, int node) {
    const struct node *a = &strip->nodes[2 * node];
    const struct node *b = &strip->nodes[2 * node + 1];
    struct node made = is_better_node(strip, b, a) ? *b : *a;
    made.first = a->first < b->first ? a->first : b->first;
    made.latest = a->latest > b->latest ? a->latest : b->latest;
    made.last = a->last < b->last ? a->last : b->last;
    strip->nodes[node] = made;
}

static const struct node no_items = {0, NONE, INT32_MAX, -1, INT32_MAX};

/* Returns whether a node may hold an item within sections [lo, hi) that is better than another
 * node's best.
 */
static bool may_hold(const struct strip *strip, const struct node *node, int lo, int hi,
                     const struct node *best) {
    if (node->best == NONE || node->last > hi || node->first >= hi || node->latest < lo)
        return false;
    if (node->lifetime < best->lifetime) return false;
    int first = node->first > lo ? node->first : lo;
    return length_of(strip, first, hi) >= best->lifetime && is_better_node(strip, node, best);
}

/* Returns the item of longest lifetime within sections [lo, hi), or NONE. A node is skipped when
 * its best item, or the room from its first item on, is no better than the item found so far. */
static int longest_within(const struct strip *strip, int lo, int hi) {
    int stack[2 * MAX_DEPTH];
    int n = 0;
    const struct node *best = &no_items;
    stack[n++] = 1;
    while (n > 0) {
        int index = stack[--n];
        const struct node *node = &strip->nodes[index];
        if (!may_hold(strip, node, lo, hi, best)) continue;
        if (strip->problem->first[node->best] >= lo && strip->problem->last[node->best] <= hi) {
            best = node; /* nothing below the node is better */
        } else if (index < strip->n_leaves) {
            stack[n++] = 2 * index + 1;
            stack[n++] = 2 * index; /* visited first: it has more room */
        }
    }
    return best->best;
}

static void place_item(struct strip *strip, int line, int i, size_t *offsets) {
    const struct rfx_place_problem *problem = strip->problem;
    offsets[i] = rfx_place_align(strip->lines[line].height, problem->items[i].alignment);
    strip->nodes[strip->n_leaves + strip->leaf[i]] = no_items;
    for (int node = (strip->n_leaves + strip->leaf[i]) / 2; node > 0; node /= 2)
        set_node(strip, node);
    cut_line(strip, line, problem->first[i]);
    cut_line(strip, problem->first[i], problem->last[i]);
    set_height(strip, problem->first[i], offsets[i] + problem->items[i].size);
}

/* Returns the height of the lower neighbour of a line; SIZE_MAX: it has none. */
static size_t neighbours_height(const struct strip *strip, int line) {
    const struct line *at = &strip->lines[line];
    size_t height = SIZE_MAX;
    if (at->previous != NONE) height = strip->lines[at->previous].height;
    if (at->end < strip->problem->n_sections && strip->lines[at->end].height < height)
        height = strip->lines[at->end].height;
    return height;
}

/* Raises a line to its lower neighbour. */
static void rise(struct strip *strip, int line) {
    size_t height = neighbours_height(strip, line);
    assert(height != SIZE_MAX); /* a line over all sections has room for every item */
    set_height(strip, line, height);
}

/* Returns whether a line should rise to its lower neighbour instead of taking item i. Rising wastes
 * little area compared with the item's. The longer line then takes longer items, which would
 * otherwise end up on top of all others. */
static bool is_small_step(const struct strip *strip, int line, int i) {
    const struct rfx_place_item *item = &strip->problem->items[i];
    size_t step = neighbours_height(strip, line) - strip->lines[line].height;
    if (step >= strip->small_step) return false;
    double room = (double)length_of(strip, line, strip->lines[line].end);
    return STEP_SHARE * (double)step * room < (double)item->size * (double)lifetime_of(strip, i);
}

/* Stretches time where the load is near the bound. */
static void weigh(struct strip *strip, const struct measure *measure) {
    const struct rfx_place_problem *problem = strip->problem;
    int64_t *times = strip->times;
    double scale = WEIGHED_TIME / (double)length_of(strip, 0, problem->n_sections);
    int64_t begin = times[0];
    int64_t weighed = 0;
    for (int s = 0; s < problem->n_sections; s++) {
        double load = (double)problem->breadth[s] / (double)problem->lower_bound;
        double near = measure->margin / (measure->margin + 1 - load);
        double length = (double)((uint64_t)times[s + 1] - (uint64_t)begin) * scale;
        for (int k = 0; k < measure->power; k++) length *= near;
        begin = times[s + 1];
        times[s] = weighed;
        weighed += 1 + (int64_t)length;
    }
    times[problem->n_sections] = weighed;
}

/* Numbers the leaves by the first sections of their items, by counting; `heap` is still empty. */
static void sort_leaves(struct strip *strip) {
    const struct rfx_place_problem *problem = strip->problem;
    int *next = strip->heap;
    int leaves = 0;
    for (int i = 0; i < problem->n; i++) next[problem->first[i]]++;
    for (int s = 0; s < problem->n_sections; s++) {
        int count = next[s];
        next[s] = leaves;
        leaves += count;
    }
    for (int i = 0; i < problem->n; i++) strip->leaf[i] = next[problem->first[i]]++;
}

static void set_up(struct strip *strip, const struct measure *measure) {
    const struct rfx_place_problem *problem = strip->problem;
    for (int i = 0; i < problem->n; i++) {
        strip->times[problem->first[i]] = problem->items[i].lo;
        strip->times[problem->last[i]] = problem->items[i].hi;
    }
    if (measure->power > 0) weigh(strip, measure);
    sort_leaves(strip);
    for (int k = strip->n_leaves; k < 2 * strip->n_leaves; k++) strip->nodes[k] = no_items;
    for (int i = 0; i < problem->n; i++)
        strip->nodes[strip->n_leaves + strip->leaf[i]] = (struct node){
            lifetime_of(strip, i), i, problem->first[i], problem->first[i], problem->last[i]};
    for (int node = strip->n_leaves - 1; node > 0; node--) set_node(strip, node);
    add_line(strip, 0, problem->n_sections, NONE, 0);
    if (problem->n > MANY_ITEMS)
        strip->small_step = problem->sum_bytes / (size_t)problem->n / STEP_PART;
}

/* Returns false when stopped. */
static bool place_all(struct strip *strip, const struct rfx_place_stop *stop, size_t *offsets) {
    for (int left = strip->problem->n; left > 0;) {
        int line = strip->heap[0];
        int i = longest_within(strip, line, strip->lines[line].end);
        if (i == NONE || is_small_step(strip, line, i)) {
            rise(strip, line);
            continue;
        }
        place_item(strip, line, i, offsets);
        left--;
        if (stop != NULL && left % ASK_EVERY_PLACED == 0 &&
            rfx_place_must_stop(strip->problem->mem, stop))
            return false;
    }
    return true;
}

enum rfx_status rfx_strip_place(const struct rfx_place_problem *problem, int measure,
                                const struct rfx_place_stop *stop, size_t *offsets,
                                struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    struct strip strip = {.problem = problem, .n_leaves = 1};
    size_t n = (size_t)problem->n;
    size_t sections = (size_t)problem->n_sections;
    if (n == 0) return RFX_OK;
    while (strip.n_leaves < problem->n) strip.n_leaves *= 2;
    size_t n_nodes = 2 * (size_t)strip.n_leaves;
    strip.lines = rfx_memory_calloc(mem, sections, sizeof *strip.lines);
    strip.heap = rfx_memory_calloc(mem, sections, sizeof *strip.heap);
    strip.times = rfx_memory_calloc(mem, sections + 1, sizeof *strip.times);
    strip.leaf = rfx_memory_calloc(mem, n, sizeof *strip.leaf);
    strip.nodes = rfx_memory_calloc(mem, n_nodes, sizeof *strip.nodes);
    enum rfx_status status = RFX_OK;
    if (strip.lines == NULL || strip.heap == NULL || strip.times == NULL || strip.leaf == NULL ||
        strip.nodes == NULL) {
        status = rfx_memory_fail(mem, "placement tables", n_nodes * sizeof *strip.nodes, err);
    } else {
        set_up(&strip, &measures[measure]);
        if (!place_all(&strip, stop, offsets)) status = RFX_STATUS_CANCELLED;
    }
    void *const blocks[] = {strip.lines, strip.heap, strip.times, strip.leaf, strip.nodes};
    for (size_t k = 0; k < sizeof blocks / sizeof blocks[0]; k++)
        rfx_memory_release(mem, blocks[k]);
    return status;
}

/* With up to FEW_ITEMS items, every measure is tried: that takes some tenths of a second. */
enum { FEW_ITEMS = 1 << 18 };

/* The order in which measures are tried. With more than FEW_ITEMS items only the first two are
 * tried, one per thread, so that all packings together take no longer than one. */
static const int measure_order[] = {1, 2, 3, 0};
enum { N_MEASURES = sizeof measure_order / sizeof *measure_order, N_OF_MANY = 2 };
_Static_assert((int)N_MEASURES == (int)RFX_STRIP_MEASURES, "each once");

/* State shared by the threads; everything after `lock` is protected by it. */
struct many {
    const struct rfx_place_problem *problem;
    const struct rfx_strip_request *request;
    size_t enough;
    int count;

    pthread_mutex_t lock;
    size_t *offsets; /* the best answer */
    size_t arena;    /* SIZE_MAX: no answer yet */
    int best;        /* position of its measure in the order */
    enum rfx_status status;
    struct rfx_error err;
};

/* Returns whether an answer with this arena, by the k-th measure in the order, would replace the
 * best answer. Called under the lock. */
static bool is_better_answer(const struct many *many, int k, size_t arena) {
    if (many->arena == SIZE_MAX) return true;
    if (many->arena <= many->enough) return k < many->best && arena <= many->enough;
    return arena < many->arena || (arena == many->arena && k < many->best);
}

/* Returns whether the k-th measure can still improve the answer. */
static bool is_wanted(struct many *many, int k) {
    if (k > 0 && rfx_place_must_stop(many->problem->mem, many->request->stop)) return false;
    (void)pthread_mutex_lock(&many->lock);
    bool wanted = many->status == RFX_OK && is_better_answer(many, k, 0);
    (void)pthread_mutex_unlock(&many->lock);
    return wanted;
}

static void keep(struct many *many, int k, const size_t *offsets) {
    const struct rfx_place_problem *problem = many->problem;
    size_t arena = rfx_place_arena_bytes(problem->items, problem->n, offsets);
    (void)pthread_mutex_lock(&many->lock);
    if (is_better_answer(many, k, arena)) {
        memcpy(many->offsets, offsets, (size_t)problem->n * sizeof *offsets);
        many->arena = arena;
        many->best = k;
    }
    (void)pthread_mutex_unlock(&many->lock);
}

static void place_measured(void *user, int64_t index, int thread) {
    struct many *many = user;
    const struct rfx_place_problem *problem = many->problem;
    int k = (int)index;
    (void)thread;
    if (!is_wanted(many, k)) return;
    struct rfx_error err = {{0}};
    size_t *offsets = rfx_memory_calloc(problem->mem, (size_t)problem->n, sizeof *offsets);
    enum rfx_status status = RFX_OK;
    if (offsets == NULL)
        status =
            rfx_memory_fail(problem->mem, "offsets", (size_t)problem->n * sizeof *offsets, &err);
    if (status == RFX_OK)
        status = rfx_strip_place(problem, measure_order[k], k > 0 ? many->request->stop : NULL,
                                 offsets, &err);
    if (status == RFX_OK) keep(many, k, offsets);
    rfx_memory_release(problem->mem, offsets);
    if (status == RFX_OK || status == RFX_STATUS_CANCELLED) return;
    (void)pthread_mutex_lock(&many->lock);
    if (many->status == RFX_OK) {
        many->status = status;
        many->err = err;
    }
    (void)pthread_mutex_unlock(&many->lock);
}

static void place_together(struct rfx_team *team, void *user) {
    struct many *many = user;
    rfx_team_for(team, many->count, place_measured, many);
}

enum rfx_status rfx_strip_place_best(const struct rfx_place_problem *problem,
                                     const struct rfx_strip_request *request, size_t *offsets,
                                     size_t *arena_bytes, struct rfx_error *err) {
    struct many many = {.problem = problem,
                        .request = request,
                        .enough = problem->lower_bound,
                        .count = N_MEASURES,
                        .offsets = offsets,
                        .arena = SIZE_MAX};
    if (request->target_bytes > many.enough) many.enough = request->target_bytes;
    if (pthread_mutex_init(&many.lock, NULL) != 0)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "placement: no mutex");
    if (problem->n > FEW_ITEMS) many.count = request->threads < N_OF_MANY ? 1 : N_OF_MANY;
    int threads = request->threads < many.count ? request->threads : many.count;
    rfx_team_run(threads, place_together, &many);
    if (many.arena == SIZE_MAX && threads > 1) { /* there may be memory for one packing alone */
        many.status = RFX_OK;
        place_measured(&many, 0, 0);
    }
    (void)pthread_mutex_destroy(&many.lock);
    *arena_bytes = many.arena;
    if (many.arena != SIZE_MAX) return RFX_OK;
    if (err != NULL) *err = many.err;
    return many.status;
}

enum order_kind { ORDER_SIZE, ORDER_BREADTH, ORDER_TIME, ORDER_LENGTH, ORDER_STRIP };
enum fit_kind { FIT_FIRST, FIT_BEST };

struct strategy_row {
    const char *name;
    enum order_kind order;
    enum fit_kind fit;
};

static const struct strategy_row rows[] = {
    [RFX_GREEDY_BY_SIZE] = {"by-size", ORDER_SIZE, FIT_BEST},
    [RFX_GREEDY_BY_BREADTH] = {"by-breadth", ORDER_BREADTH, FIT_BEST},
    [RFX_GREEDY_STRIP_PACKING] = {"strip-packing", ORDER_STRIP, FIT_FIRST},
    [RFX_GREEDY_FIRST_FIT] = {"first-fit", ORDER_TIME, FIT_FIRST},
    [RFX_GREEDY_BEST_FIT] = {"best-fit", ORDER_TIME, FIT_BEST},
    [RFX_GREEDY_LONGER_FIRST] = {"longer-first", ORDER_LENGTH, FIT_FIRST},
    [RFX_GREEDY_BIGGER_FIRST] = {"bigger-first", ORDER_SIZE, FIT_FIRST},
};
_Static_assert(sizeof rows / sizeof rows[0] == RFX_GREEDY_COUNT, "one row per strategy");

const char *rfx_greedy_name(enum rfx_greedy_packer strategy) {
    return rows[strategy].name;
}

/* Tables of one placement. */
struct scratch {
    struct rfx_place_ranked *items;    /* n, in placing order */
    struct rfx_place_ranked *sections; /* n_sections */
    struct rfx_place_ranked *placed;   /* n, sorted by offset; keys are unused */
    bool *taken;                       /* n */
};

static uint64_t item_key(const struct rfx_place_problem *problem, enum order_kind order, int i) {
    const struct rfx_place_item *item = &problem->items[i];
    switch (order) {
        case ORDER_SIZE:
        case ORDER_BREADTH:
        case ORDER_STRIP:
            return item->size;
        case ORDER_TIME:
            return UINT64_MAX - (uint64_t)problem->first[i];
        case ORDER_LENGTH:
            return (uint64_t)item->hi - (uint64_t)item->lo;
    }
    return 0;
}

static void rank_items(const struct rfx_place_problem *problem, enum order_kind order,
                       struct rfx_place_ranked *items) {
    for (int i = 0; i < problem->n; i++) {
        items[i].key = item_key(problem, order, i);
        items[i].index = i;
    }
    qsort(items, (size_t)problem->n, sizeof *items, rfx_place_compare_ranked);
}

/* Items or sections visited between two checks whether to stop: some milliseconds. */
enum { ASK_EVERY = 64 };

static bool is_stopped(const struct rfx_place_problem *problem, const struct rfx_place_stop *stop,
                       int step) {
    return step % ASK_EVERY == 0 && rfx_place_must_stop(problem->mem, stop);
}

/* Orders the items, which are ranked by size, by sections of falling breadth: the items of the
 * broadest section come first. Returns false when stopped. */
static bool rank_by_breadth(const struct rfx_place_problem *problem,
                            const struct rfx_place_stop *stop, struct scratch *scratch) {
    struct rfx_place_ranked *by_size = scratch->placed;
    int n = 0;
    memcpy(by_size, scratch->items, (size_t)problem->n * sizeof *by_size);
    memset(scratch->taken, 0, (size_t)problem->n * sizeof *scratch->taken);
    for (int s = 0; s < problem->n_sections; s++) {
        struct rfx_place_ranked section = {problem->breadth[s], s};
        scratch->sections[s] = section;
    }
    qsort(scratch->sections, (size_t)problem->n_sections, sizeof *scratch->sections,
          rfx_place_compare_ranked);
    for (int k = 0; k < problem->n_sections && n < problem->n; k++) {
        int s = scratch->sections[k].index;
        if (is_stopped(problem, stop, k)) return false;
        for (int j = 0; j < problem->n; j++) {
            int i = by_size[j].index;
            if (scratch->taken[i] || s < problem->first[i] || s >= problem->last[i]) continue;
            scratch->taken[i] = true;
            scratch->items[n++] = by_size[j];
        }
    }
    assert(n == problem->n);
    return true;
}

/* Returns the offset for item i among the first n_placed placed items, which are sorted by offset.
 */
static size_t find_gap(const struct rfx_place_problem *problem,
                       const struct rfx_place_ranked *placed, int n_placed, const size_t *offsets,
                       int i, enum fit_kind fit) {
    const struct rfx_place_item *item = &problem->items[i];
    size_t best = 0;
    size_t best_gap = SIZE_MAX;
    size_t end = 0; /* largest end of overlapping items so far */
    for (int k = 0; k < n_placed; k++) {
        int j = placed[k].index;
        if (!rfx_place_items_overlap(item, &problem->items[j])) continue;
        size_t start = rfx_place_align(end, item->alignment);
        if (offsets[j] >= start && offsets[j] - start >= item->size &&
            offsets[j] - start < best_gap) {
            best = start;
            best_gap = offsets[j] - start;
            if (fit == FIT_FIRST) return best;
        }
        size_t next = offsets[j] + problem->items[j].size;
        if (next > end) end = next;
    }
    return best_gap == SIZE_MAX ? rfx_place_align(end, item->alignment) : best;
}

/* Returns false when stopped. */
static bool place_in_order(const struct rfx_place_problem *problem, enum fit_kind fit,
                           const struct rfx_place_stop *stop, struct scratch *scratch,
                           size_t *offsets) {
    for (int k = 0; k < problem->n; k++) {
        if (is_stopped(problem, stop, k)) return false;
        int i = scratch->items[k].index;
        offsets[i] = find_gap(problem, scratch->placed, k, offsets, i, fit);
        int at = k;
        while (at > 0 && offsets[scratch->placed[at - 1].index] > offsets[i]) at--;
        memmove(&scratch->placed[at + 1], &scratch->placed[at],
                (size_t)(k - at) * sizeof *scratch->placed);
        scratch->placed[at].index = i;
    }
    return true;
}

enum rfx_status rfx_greedy_place(const struct rfx_place_problem *problem,
                                 enum rfx_greedy_packer strategy, const struct rfx_place_stop *stop,
                                 size_t *offsets, size_t *arena_bytes, struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    const struct strategy_row *row = &rows[strategy];
    size_t n = (size_t)problem->n;
    struct scratch scratch = {
        .items = rfx_memory_calloc(mem, n, sizeof *scratch.items),
        .sections = rfx_memory_calloc(mem, 2 * n, sizeof *scratch.sections),
        .placed = rfx_memory_calloc(mem, n, sizeof *scratch.placed),
        .taken = rfx_memory_calloc(mem, n, sizeof *scratch.taken),
    };
    enum rfx_status status = RFX_OK;
    if (scratch.items == NULL || scratch.sections == NULL || scratch.placed == NULL ||
        scratch.taken == NULL) {
        status = rfx_memory_fail(mem, "placement tables", n * sizeof *scratch.items, err);
    } else if (row->order == ORDER_STRIP) {
        status = rfx_strip_place(problem, 0, NULL, offsets, err);
    } else {
        rank_items(problem, row->order, scratch.items);
        if ((row->order == ORDER_BREADTH && !rank_by_breadth(problem, stop, &scratch)) ||
            !place_in_order(problem, row->fit, stop, &scratch, offsets))
            status = RFX_STATUS_CANCELLED;
    }
    rfx_memory_release(mem, scratch.items);
    rfx_memory_release(mem, scratch.sections);
    rfx_memory_release(mem, scratch.placed);
    rfx_memory_release(mem, scratch.taken);
    if (status == RFX_OK) status = rfx_memory_check_stop(mem, err); /* a stop ends placing early */
    if (status != RFX_OK) return status;
    *arena_bytes = rfx_place_arena_bytes(problem->items, problem->n, offsets);
    if (!rfx_place_answer_is_valid(problem->items, problem->n, offsets, *arena_bytes))
        return rfx_place_fail_check(rfx_greedy_name(strategy), problem->n, err);
    return RFX_OK;
}
