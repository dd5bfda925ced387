/* Items, fillers and boundaries. */
#include "tiler/packer/packer_boundaries.h"

#include <assert.h>

/* MAX_ALIVE: of the fillers alive at a time, the youngest of which some may be found that end
 * together. PIECES: room for those of cut fillers, per boundary. */
enum { MAX_ALIVE = 12, PIECES = 16 };

static void add_filler(struct rfx_boundaries *b, size_t size, int at) {
    if (b->n_items == b->room)
        b->possible = false;
    else
        b->items[b->n_items++] = (struct rfx_boundary_item){size, at, -1, 0};
}

/* Ends fillers of `less` bytes at a boundary: one of that size, else the youngest. */
static void end_fillers(struct rfx_boundaries *b, int first_filler, size_t less, int at) {
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

/* Lists the youngest fillers that are alive; their number. */
static int list_alive(const struct rfx_boundaries *b, int first_filler, int alive[MAX_ALIVE]) {
    int n = 0;
    for (int i = b->n_items - 1; i >= first_filler && n < MAX_ALIVE; i--)
        if (b->items[i].end < 0) alive[n++] = i;
    return n;
}

/* The fewest of some fillers that are `sum` bytes: bits of them, 0: there are none. */
static unsigned find_sum(const struct rfx_boundaries *b, const int *fillers, int n, size_t sum) {
    unsigned best = 0;
    for (unsigned mask = 1; mask < 1U << n; mask++) {
        size_t bytes = 0;
        if (best != 0 && __builtin_popcount(mask) >= __builtin_popcount(best)) continue;
        for (int k = 0; k < n; k++)
            if ((mask >> k & 1) != 0) bytes += b->items[fillers[k]].size;
        if (bytes == sum) best = mask;
    }
    return best;
}

/* Cuts a filler in two from its beginning on, `size` bytes of it coming first. */
static void split_filler(struct rfx_boundaries *b, int filler, size_t size) {
    if (b->items[filler].size <= size) return;
    add_filler(b, b->items[filler].size - size, b->items[filler].begin);
    b->items[filler].size = size;
}

/* As end_fillers where fillers are cut: the fewest of as many bytes end. Where there are none, one
 * that is larger may have ended where a smaller one began: with `split` all such are two. */
static void end_pieces(struct rfx_boundaries *b, int first_filler, size_t less, bool split,
                       int at) {
    int alive[MAX_ALIVE];
    int n = list_alive(b, first_filler, alive);
    unsigned together = find_sum(b, alive, n, less);
    for (int k = 0; k < n && split && together == 0; k++) split_filler(b, alive[k], less);
    if (split && together == 0) together = find_sum(b, alive, n, less);
    for (int k = 0; k < n && less > 0; k++) {
        if (together != 0 && (together >> k & 1) == 0) continue;
        split_filler(b, alive[k], less);
        b->items[alive[k]].end = at;
        less -= b->items[alive[k]].size;
    }
    if (less > 0) end_fillers(b, first_filler, less, at);
}

/* Bytes that are free in a section, counted in the direction of time. */
static size_t free_bytes(const struct rfx_place_problem *problem, size_t capacity, bool backwards,
                         int section) {
    int sections = problem->n_sections;
    if (section < 0 || section >= sections) return 0;
    return capacity - problem->breadth[backwards ? sections - 1 - section : section];
}

static void make_items(struct rfx_boundaries *b, const struct rfx_place_problem *problem,
                       size_t capacity, enum rfx_boundary_fillers fillers, bool backwards) {
    int sections = problem->n_sections;
    size_t before = 0;
    b->n_items = problem->n;
    for (int i = 0; i < problem->n; i++) {
        struct rfx_boundary_item item = {problem->items[i].size, problem->first[i],
                                         problem->last[i], 0};
        if (backwards) {
            item.begin = sections - problem->last[i];
            item.end = sections - problem->first[i];
        }
        b->items[i] = item;
    }
    for (int at = 0; at <= sections && capacity > 0 && b->possible; at++) {
        size_t now = free_bytes(problem, capacity, backwards, at);
        if (now > before) add_filler(b, now - before, at);
        if (now < before && fillers == RFX_FILLERS_WHOLE)
            end_fillers(b, problem->n, before - now, at);
        if (now < before && fillers != RFX_FILLERS_WHOLE)
            end_pieces(b, problem->n, before - now, fillers == RFX_FILLERS_SPLIT, at);
        before = now;
    }
    if (fillers == RFX_FILLERS_WHOLE) return;
    for (int i = problem->n; i < b->n_items; i++) { /* pieces come behind, and have their turn */
        int end = b->items[i].end;
        for (int at = b->items[i].begin + 1; at < end && b->items[i].end == end; at++) {
            if (free_bytes(problem, capacity, backwards, at) ==
                free_bytes(problem, capacity, backwards, at - 1))
                continue;
            add_filler(b, b->items[i].size, at);
            b->items[b->n_items - 1].end = end;
            b->items[i].end = at;
        }
    }
}

static void list_boundaries(struct rfx_boundaries *b) {
    int live = 0;
    int n_ends = 0;
    int n_begins = 0;
    for (int at = 0; at < b->n; at++) {
        struct rfx_boundary *boundary = &b->at[at];
        boundary->ends = n_ends;
        boundary->begins = n_begins;
        for (int i = 0; i < b->n_items; i++) {
            struct rfx_boundary_item *item = &b->items[i];
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
        if (inner && (boundary->n_ends > RFX_BOUNDARY_MAX_SIDE ||
                      boundary->n_begins > RFX_BOUNDARY_MAX_SIDE))
            b->possible = false;
    }
}

enum rfx_status rfx_boundaries_create(const struct rfx_place_problem *problem, size_t capacity,
                                      enum rfx_boundary_fillers fillers, bool backwards,
                                      struct rfx_boundaries **out, struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    struct rfx_boundaries *b = rfx_memory_calloc(mem, 1, sizeof *b);
    if (b == NULL) return rfx_memory_fail(mem, "packer", sizeof *b, err);
    b->mem = mem;
    b->n = problem->n_sections + 1;
    b->possible = true;
    size_t items = (size_t)problem->n + 2 * (size_t)b->n; /* each boundary adds a filler or two */
    if (fillers != RFX_FILLERS_WHOLE) items += PIECES * (size_t)b->n;
    b->room = (int)items;
    b->items = rfx_memory_calloc(mem, items, sizeof *b->items);
    b->by_end = rfx_memory_calloc(mem, items, sizeof *b->by_end);
    b->by_begin = rfx_memory_calloc(mem, items, sizeof *b->by_begin);
    b->at = rfx_memory_calloc(mem, (size_t)b->n, sizeof *b->at);
    if (b->items == NULL || b->by_end == NULL || b->by_begin == NULL || b->at == NULL) {
        rfx_boundaries_free(b);
        return rfx_memory_fail(mem, "packer", items * sizeof *b->items, err);
    }
    make_items(b, problem, capacity, fillers, backwards);
    if (b->possible) list_boundaries(b);
    *out = b;
    return RFX_OK;
}

void rfx_boundaries_free(struct rfx_boundaries *boundaries) {
    if (boundaries == NULL) return;
    rfx_memory_release(boundaries->mem, boundaries->items);
    rfx_memory_release(boundaries->mem, boundaries->by_end);
    rfx_memory_release(boundaries->mem, boundaries->by_begin);
    rfx_memory_release(boundaries->mem, boundaries->at);
    rfx_memory_release(boundaries->mem, boundaries);
}
