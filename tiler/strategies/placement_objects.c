/* The shared-objects strategies: an order of the items, then a rule for the object. */
#include "tiler/strategies/placement_objects.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [RFX_OBJECTS_BY_SIZE] = "by-size",
    [RFX_OBJECTS_BY_SIZE_OLDEST] = "by-size-oldest",
    [RFX_OBJECTS_BY_SIZE_IMPROVED] = "by-size-improved",
    [RFX_OBJECTS_BY_BREADTH] = "by-breadth",
    [RFX_OBJECTS_IN_ORDER] = "in-order",
};
_Static_assert(sizeof names / sizeof names[0] == RFX_OBJECTS_COUNT, "one name per strategy");

const char *rfx_object_strategy_name(enum rfx_object_strategy strategy) {
    return names[strategy];
}

struct objects {
    const struct rfx_place_problem *problem;
    struct rfx_place_ranked *order;    /* items, n */
    struct rfx_place_ranked *sections; /* 2 n */
    size_t *sizes;                     /* per object, at most n */
    size_t *maximums;                  /* positional, n */
    size_t *profile;                   /* sizes of one section, n */
    int *object;                       /* per item, -1: none yet */
    int n_objects, n_maximums;
};

/* Time between the item and the nearest one in the object; -1 when they meet. An object that was
 * never used does not exist. */
static int64_t idle_time(const struct objects *o, int i, int object) {
    const struct rfx_place_item *item = &o->problem->items[i];
    int64_t nearest = INT64_MAX;
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* of no use then */
    for (int j = 0; j < o->problem->n; j++) {
        if (o->object[j] != object) continue;
        const struct rfx_place_item *other = &o->problem->items[j];
        if (rfx_place_items_overlap(item, other)) return -1;
        /* unsigned: lifetimes may be as far apart as int64_t reaches */
        uint64_t gap = item->lo >= other->hi ? (uint64_t)item->lo - (uint64_t)other->hi
                                             : (uint64_t)other->lo - (uint64_t)item->hi;
        if (gap < (uint64_t)nearest) nearest = (int64_t)gap;
    }
    return nearest;
}

static void assign(struct objects *o, int i, int object) {
    size_t size = o->problem->items[i].size;
    if (object < 0) {
        object = o->n_objects++;
        o->sizes[object] = 0;
    }
    if (size > o->sizes[object]) o->sizes[object] = size;
    o->object[i] = object;
}

/* The smallest suitable object that is large enough, else the largest suitable one, else -1. */
static int find_object(const struct objects *o, int i) {
    size_t size = o->problem->items[i].size;
    int best = -1;
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* of no use then */
    for (int k = 0; k < o->n_objects; k++) {
        if (idle_time(o, i, k) < 0) continue;
        bool better;
        if (best < 0)
            better = true;
        else if (o->sizes[k] >= size)
            better = o->sizes[best] < size || o->sizes[k] < o->sizes[best];
        else
            better = o->sizes[best] < size && o->sizes[k] > o->sizes[best];
        if (better) best = k;
    }
    return best;
}

/* The first object that is free, else -1. */
static int find_oldest(const struct objects *o, int i) {
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* of no use then */
    for (int k = 0; k < o->n_objects; k++)
        if (idle_time(o, i, k) >= 0) return k;
    return -1;
}

/* The suitable object nearest in size, the larger of two as near. */
static int find_nearest_size(const struct objects *o, int i) {
    size_t size = o->problem->items[i].size;
    int best = -1;
    size_t best_difference = 0;
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* of no use then */
    for (int k = 0; k < o->n_objects; k++) {
        if (idle_time(o, i, k) < 0) continue;
        size_t difference = o->sizes[k] >= size ? o->sizes[k] - size : size - o->sizes[k];
        bool better = best < 0 || difference < best_difference ||
                      (difference == best_difference && o->sizes[k] > o->sizes[best]);
        if (!better) continue;
        best = k;
        best_difference = difference;
    }
    return best;
}

static void rank_by_size(struct objects *o) {
    for (int i = 0; i < o->problem->n; i++) {
        struct rfx_place_ranked ranked = {o->problem->items[i].size, i};
        o->order[i] = ranked;
    }
    qsort(o->order, (size_t)o->problem->n, sizeof *o->order, rfx_place_compare_ranked);
}

static void place_by_size(struct objects *o) {
    for (int k = 0; k < o->problem->n; k++)
        assign(o, o->order[k].index, find_object(o, o->order[k].index));
}

static void place_by_size_oldest(struct objects *o) {
    for (int k = 0; k < o->problem->n; k++)
        assign(o, o->order[k].index, find_oldest(o, o->order[k].index));
}

static void place_in_order(struct objects *o) {
    for (int i = 0; i < o->problem->n; i++) {
        struct rfx_place_ranked ranked = {UINT64_MAX - (uint64_t)o->problem->first[i], i};
        o->order[i] = ranked;
    }
    qsort(o->order, (size_t)o->problem->n, sizeof *o->order, rfx_place_compare_ranked);
    for (int k = 0; k < o->problem->n; k++)
        assign(o, o->order[k].index, find_nearest_size(o, o->order[k].index));
}

static void place_by_breadth(struct objects *o) {
    const struct rfx_place_problem *problem = o->problem;
    for (int s = 0; s < problem->n_sections; s++) {
        struct rfx_place_ranked ranked = {problem->breadth[s], s};
        o->sections[s] = ranked;
    }
    qsort(o->sections, (size_t)problem->n_sections, sizeof *o->sections, rfx_place_compare_ranked);
    for (int k = 0; k < problem->n_sections; k++) {
        int s = o->sections[k].index;
        for (int j = 0; j < problem->n; j++) { /* ranked by size */
            int i = o->order[j].index;
            if (o->object[i] >= 0 || s < problem->first[i] || s >= problem->last[i]) continue;
            assign(o, i, find_object(o, i));
        }
    }
}

static int compare_sizes(const void *pa, const void *pb) {
    size_t a = *(const size_t *)pa;
    size_t b = *(const size_t *)pb;
    return (a < b) - (a > b);
}

static void find_maximums(struct objects *o) {
    const struct rfx_place_problem *problem = o->problem;
    o->n_maximums = 0;
    for (int s = 0; s < problem->n_sections; s++) {
        int n = 0;
        for (int i = 0; i < problem->n; i++)
            if (s >= problem->first[i] && s < problem->last[i])
                o->profile[n++] = problem->items[i].size;
        qsort(o->profile, (size_t)n, sizeof *o->profile, compare_sizes);
        for (int k = 0; k < n; k++) {
            if (k == o->n_maximums) o->maximums[o->n_maximums++] = 0;
            if (o->profile[k] > o->maximums[k]) o->maximums[k] = o->profile[k];
        }
    }
}

/* Takes the item and the object that leave the least idle time among the items order[from, to),
 * else the largest item and a new object. */
static void assign_closest(struct objects *o, int from, int to) {
    int best_item = -1;
    int best_object = -1;
    int64_t best = INT64_MAX;
    for (int k = from; k < to; k++) {
        int i = o->order[k].index;
        if (o->object[i] >= 0) continue;
        if (best_item < 0) best_item = i;
        for (int object = 0; object < o->n_objects; object++) {
            int64_t idle = idle_time(o, i, object);
            if (idle < 0 || idle >= best) continue;
            best = idle;
            best_item = i;
            best_object = object;
        }
    }
    assign(o, best_item, best_object);
}

/* A stage holds the sizes equal to a positional maximum, or those strictly between two. */
static void place_improved(struct objects *o) {
    find_maximums(o);
    int from = 0;
    for (int m = 0; from < o->problem->n;) {
        size_t size = (size_t)o->order[from].key;
        int to = from;
        while (m < o->n_maximums && o->maximums[m] > size) m++;
        bool equal = m < o->n_maximums && o->maximums[m] == size;
        size_t floor = m < o->n_maximums ? o->maximums[m] : 0;
        while (to < o->problem->n &&
               (equal ? (size_t)o->order[to].key == size : (size_t)o->order[to].key > floor))
            to++;
        bool stopped = rfx_memory_is_stopped(o->problem->mem);
        for (int k = from; k < to && !stopped; k++) {
            assign_closest(o, from, to);
            stopped = rfx_memory_is_stopped(o->problem->mem);
        }
        from = to;
    }
}

static void release(struct objects *o) {
    struct rfx_memory *mem = o->problem->mem;
    rfx_memory_release(mem, o->order);
    rfx_memory_release(mem, o->sections);
    rfx_memory_release(mem, o->sizes);
    rfx_memory_release(mem, o->maximums);
    rfx_memory_release(mem, o->profile);
}

static enum rfx_status prepare(struct objects *o, struct rfx_error *err) {
    struct rfx_memory *mem = o->problem->mem;
    size_t n = (size_t)o->problem->n;
    o->order = rfx_memory_calloc(mem, n, sizeof *o->order);
    o->sections = rfx_memory_calloc(mem, 2 * n, sizeof *o->sections);
    o->sizes = rfx_memory_calloc(mem, n, sizeof *o->sizes);
    o->maximums = rfx_memory_calloc(mem, n, sizeof *o->maximums);
    o->profile = rfx_memory_calloc(mem, n, sizeof *o->profile);
    if (o->order != NULL && o->sections != NULL && o->sizes != NULL && o->maximums != NULL &&
        o->profile != NULL)
        return RFX_OK;
    release(o);
    return rfx_memory_fail(mem, "shared objects", n * sizeof *o->order, err);
}

enum rfx_status rfx_objects_place(const struct rfx_place_problem *problem,
                                  enum rfx_object_strategy strategy, int *objects,
                                  size_t *total_bytes, struct rfx_error *err) {
    struct objects o = {.problem = problem, .object = objects};
    enum rfx_status status = prepare(&o, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < problem->n; i++) objects[i] = -1;
    rank_by_size(&o);
    switch (strategy) {
        case RFX_OBJECTS_BY_SIZE:
        case RFX_OBJECTS_COUNT:
            place_by_size(&o);
            break;
        case RFX_OBJECTS_BY_SIZE_OLDEST:
            place_by_size_oldest(&o);
            break;
        case RFX_OBJECTS_BY_SIZE_IMPROVED:
            place_improved(&o);
            break;
        case RFX_OBJECTS_BY_BREADTH:
            place_by_breadth(&o);
            break;
        case RFX_OBJECTS_IN_ORDER:
            place_in_order(&o);
            break;
    }
    release(&o);
    status = rfx_memory_check_stop(problem->mem, err);
    if (status != RFX_OK) return status;
    if (!rfx_objects_are_valid(problem->items, problem->n, objects, total_bytes))
        return rfx_place_fail_check(rfx_object_strategy_name(strategy), problem->n, err);
    return RFX_OK;
}

enum rfx_status rfx_objects_lower_bound(const struct rfx_place_problem *problem,
                                        size_t *bound_bytes, struct rfx_error *err) {
    struct objects o = {.problem = problem};
    enum rfx_status status = prepare(&o, err);
    if (status != RFX_OK) return status;
    find_maximums(&o);
    *bound_bytes = 0;
    for (int k = 0; k < o.n_maximums; k++) *bound_bytes += o.maximums[k];
    release(&o);
    return RFX_OK;
}

bool rfx_objects_are_valid(const struct rfx_place_item *items, int n, const int *objects,
                           size_t *total_bytes) {
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        bool largest = true; /* of its object; of equal ones the first */
        if (objects[i] < 0) return false;
        for (int j = 0; j < n; j++) {
            if (j == i || objects[j] != objects[i]) continue;
            if (rfx_place_items_overlap(&items[i], &items[j])) return false;
            if (items[j].size > items[i].size || (items[j].size == items[i].size && j < i))
                largest = false;
        }
        if (largest) total += items[i].size;
    }
    *total_bytes = total;
    return true;
}
