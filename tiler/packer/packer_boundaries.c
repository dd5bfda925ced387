/* Items, fillers and boundaries. */
#include "tiler/packer/packer_boundaries.h"

#include <assert.h>

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

/* Bytes that are free in a section, counted in the direction of time. */
static size_t free_bytes(const struct rfx_place_problem *problem, size_t capacity, bool backwards,
                         int section) {
    int sections = problem->n_sections;
    if (section < 0 || section >= sections) return 0;
    return capacity - problem->breadth[backwards ? sections - 1 - section : section];
}

static void make_items(struct rfx_boundaries *b, const struct rfx_place_problem *problem,
                       size_t capacity, bool backwards) {
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
    for (int at = 0; at <= sections && b->possible; at++) {
        size_t now = free_bytes(problem, capacity, backwards, at);
        if (now > before) add_filler(b, now - before, at);
        if (now < before) end_fillers(b, problem->n, before - now, at);
        before = now;
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
                                      bool backwards, struct rfx_boundaries **out,
                                      struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    struct rfx_boundaries *b = rfx_memory_calloc(mem, 1, sizeof *b);
    if (b == NULL) return rfx_memory_fail(mem, "packer", sizeof *b, err);
    b->mem = mem;
    b->n = problem->n_sections + 1;
    b->possible = true;
    size_t items = (size_t)problem->n + 2 * (size_t)b->n; /* each boundary adds a filler or two */
    b->room = (int)items;
    b->items = rfx_memory_calloc(mem, items, sizeof *b->items);
    b->by_end = rfx_memory_calloc(mem, items, sizeof *b->by_end);
    b->by_begin = rfx_memory_calloc(mem, items, sizeof *b->by_begin);
    b->at = rfx_memory_calloc(mem, (size_t)b->n, sizeof *b->at);
    if (b->items == NULL || b->by_end == NULL || b->by_begin == NULL || b->at == NULL) {
        rfx_boundaries_free(b);
        return rfx_memory_fail(mem, "packer", items * sizeof *b->items, err);
    }
    make_items(b, problem, capacity, backwards);
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
