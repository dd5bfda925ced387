/* Greedy offset strategies: an order of the items, then a rule for the gap; and strip packing. */
#include "tiler/strategies/placement_offsets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tiler/strategies/placement_strip.h"

enum order_kind { ORDER_SIZE, ORDER_BREADTH, ORDER_TIME, ORDER_LENGTH, ORDER_STRIP };
enum fit_kind { FIT_FIRST, FIT_BEST };

struct strategy_row {
    const char *name;
    enum order_kind order;
    enum fit_kind fit;
};

static const struct strategy_row rows[] = {
    [RFX_OFFSETS_BY_SIZE] = {"by-size", ORDER_SIZE, FIT_BEST},
    [RFX_OFFSETS_BY_BREADTH] = {"by-breadth", ORDER_BREADTH, FIT_BEST},
    [RFX_OFFSETS_STRIP_PACKING] = {"strip-packing", ORDER_STRIP, FIT_FIRST},
    [RFX_OFFSETS_FIRST_FIT] = {"first-fit", ORDER_TIME, FIT_FIRST},
    [RFX_OFFSETS_BEST_FIT] = {"best-fit", ORDER_TIME, FIT_BEST},
    [RFX_OFFSETS_LONGER_FIRST] = {"longer-first", ORDER_LENGTH, FIT_FIRST},
    [RFX_OFFSETS_BIGGER_FIRST] = {"bigger-first", ORDER_SIZE, FIT_FIRST},
};
_Static_assert(sizeof rows / sizeof rows[0] == RFX_OFFSETS_COUNT, "one row per strategy");

const char *rfx_offset_strategy_name(enum rfx_offset_strategy strategy) {
    return rows[strategy].name;
}

/* Tables of one placement. */
struct scratch {
    struct rfx_place_ranked *items;    /* n, in the order of placing */
    struct rfx_place_ranked *sections; /* n_sections */
    struct rfx_place_ranked *placed;   /* n: keys unused, sorted by offset */
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

/* Items or sections between two questions whether to stop: some milliseconds. */
enum { ASK_EVERY = 64 };

static bool is_stopped(const struct rfx_place_problem *problem, const struct rfx_place_stop *stop,
                       int step) {
    return step % ASK_EVERY == 0 && rfx_place_must_stop(problem->mem, stop);
}

/* Rearranges items ranked by size: section by section of falling breadth. false: stopped. */
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

/* The offset for item i among the first n_placed items placed, which are sorted by offset. */
static size_t find_gap(const struct rfx_place_problem *problem,
                       const struct rfx_place_ranked *placed, int n_placed, const size_t *offsets,
                       int i, enum fit_kind fit) {
    const struct rfx_place_item *item = &problem->items[i];
    size_t best = 0;
    size_t best_gap = SIZE_MAX;
    size_t end = 0; /* of all overlapping items so far */
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

/* false: stopped. */
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

enum rfx_status rfx_offsets_place(const struct rfx_place_problem *problem,
                                  enum rfx_offset_strategy strategy, size_t *offsets,
                                  size_t *arena_bytes, struct rfx_error *err) {
    return rfx_offsets_place_until(problem, strategy, NULL, offsets, arena_bytes, err);
}

enum rfx_status rfx_offsets_place_until(const struct rfx_place_problem *problem,
                                        enum rfx_offset_strategy strategy,
                                        const struct rfx_place_stop *stop, size_t *offsets,
                                        size_t *arena_bytes, struct rfx_error *err) {
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
        status = rfx_strip_place(problem, offsets, err);
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
    if (status == RFX_OK) status = rfx_memory_check_stop(mem, err); /* placing breaks off then */
    if (status != RFX_OK) return status;
    *arena_bytes = rfx_place_arena_bytes(problem->items, problem->n, offsets);
    if (!rfx_place_answer_is_valid(problem->items, problem->n, offsets, *arena_bytes))
        return rfx_place_fail_check(rfx_offset_strategy_name(strategy), problem->n, err);
    return RFX_OK;
}
