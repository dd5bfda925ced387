/* The strategies for shared objects. A strategy is an order of the items and a rule that chooses
 * the object of an item. */
#include "tools/study/shared_objects.h"

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

/* A shared object and its items. No two items of an object are live at the same time. */
struct object {
    int *items;   /* [n], sorted by time */
    int n, room;  /* room: allocated items */
    size_t bytes; /* of the largest item */
};

struct objects {
    const struct rfx_place_problem *problem;
    struct rfx_place_ranked *order;    /* [n] items in the order of the strategy */
    struct rfx_place_ranked *sections; /* [2 n] sections by breadth */
    struct object *all;                /* [n], n_objects of them in use */
    size_t *maximums;                  /* [n] positional maximums */
    size_t *profile;                   /* [n] sizes of the items of one section */
    int *object;                       /* [n] object of each item; -1: none yet */
    struct choice *closest;            /* [n] per item */
    int n_objects, n_maximums;
    bool no_memory;
};

/* The object in which an item would leave the least idle time; object -1: no object is free. */
struct choice {
    int64_t idle;
    int object;
};

/* Returns the time between two items; -1 if they overlap. */
static int64_t gap_between(const struct rfx_place_item *item, const struct rfx_place_item *other) {
    if (rfx_place_items_overlap(item, other)) return -1;
    /* unsigned, because the difference may exceed int64_t */
    uint64_t gap = item->lo >= other->hi ? (uint64_t)item->lo - (uint64_t)other->hi
                                         : (uint64_t)other->lo - (uint64_t)item->hi;
    return gap < (uint64_t)INT64_MAX ? (int64_t)gap : INT64_MAX;
}

/* Returns how many of the object's items begin before item i. */
static int count_before(const struct objects *o, const struct object *object, int i) {
    const struct rfx_place_item *items = o->problem->items;
    int from = 0, to = object->n;
    while (from < to) {
        int middle = from + (to - from) / 2;
        const struct rfx_place_item *other = &items[object->items[middle]];
        bool before =
            other->lo < items[i].lo || (other->lo == items[i].lo && other->hi < items[i].hi);
        if (before)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Returns the time between the item and the nearest one in the object; -1 if they overlap. */
static int64_t idle_time(const struct objects *o, int i, int k) {
    const struct rfx_place_item *items = o->problem->items;
    const struct object *object = &o->all[k];
    int at = count_before(o, object, i);
    int64_t nearest = INT64_MAX;
    for (int j = at > 0 ? at - 1 : 0; j <= at && j < object->n; j++) {
        int64_t gap = gap_between(&items[i], &items[object->items[j]]);
        if (gap < nearest) nearest = gap;
    }
    return nearest;
}

/* Makes room for one more item. Returns false when there is no memory. */
static bool grow(const struct objects *o, struct object *object) {
    struct rfx_memory *mem = o->problem->mem;
    int room = object->room == 0 ? 4 : 2 * object->room;
    int *items = rfx_memory_alloc(mem, (size_t)room * sizeof *items);
    if (items == NULL) return false;
    if (object->n > 0) memcpy(items, object->items, (size_t)object->n * sizeof *items);
    rfx_memory_release(mem, object->items);
    object->items = items;
    object->room = room;
    return true;
}

/* Puts item i into object k, or into a new object if k is -1. */
static void assign(struct objects *o, int i, int k) {
    if (k < 0) k = o->n_objects++;
    struct object *object = &o->all[k];
    size_t size = o->problem->items[i].size;
    if (size > object->bytes) object->bytes = size;
    o->object[i] = k;
    if (object->n == object->room && !grow(o, object)) {
        o->no_memory = true;
        return;
    }
    int at = count_before(o, object, i);
    memmove(object->items + at + 1, object->items + at,
            (size_t)(object->n - at) * sizeof *object->items);
    object->items[at] = i;
    object->n++;
}

/* Returns the smallest free object that is large enough for item i, otherwise the largest free
 * object, otherwise -1. */
static int find_object(const struct objects *o, int i) {
    size_t size = o->problem->items[i].size;
    int best = -1;
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* result not used then */
    for (int k = 0; k < o->n_objects; k++) {
        if (idle_time(o, i, k) < 0) continue;
        bool better;
        if (best < 0)
            better = true;
        else if (o->all[k].bytes >= size)
            better = o->all[best].bytes < size || o->all[k].bytes < o->all[best].bytes;
        else
            better = o->all[best].bytes < size && o->all[k].bytes > o->all[best].bytes;
        if (better) best = k;
    }
    return best;
}

/* Returns the first object that is free during the lifetime of item i, or -1. */
static int find_oldest(const struct objects *o, int i) {
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* result not used then */
    for (int k = 0; k < o->n_objects; k++)
        if (idle_time(o, i, k) >= 0) return k;
    return -1;
}

/* Returns the free object whose size is nearest to that of item i (the larger of two equally near
 * objects), or -1. */
static int find_nearest_size(const struct objects *o, int i) {
    size_t size = o->problem->items[i].size;
    int best = -1;
    size_t best_difference = 0;
    if (rfx_memory_is_stopped(o->problem->mem)) return -1; /* result not used then */
    for (int k = 0; k < o->n_objects; k++) {
        if (idle_time(o, i, k) < 0) continue;
        size_t difference =
            o->all[k].bytes >= size ? o->all[k].bytes - size : size - o->all[k].bytes;
        bool better = best < 0 || difference < best_difference ||
                      (difference == best_difference && o->all[k].bytes > o->all[best].bytes);
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
        for (int j = 0; j < problem->n; j++) { /* sorted by size */
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

/* Computes the positional maximums: maximums[k] is the largest size, over all sections, of the k-th
 * largest item of a section. */
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

/* Returns the free object that item i would leave idle for the shortest time; the first of equal
 * objects. */
static struct choice find_closest(const struct objects *o, int i) {
    struct choice best = {.idle = INT64_MAX, .object = -1};
    for (int object = 0; object < o->n_objects; object++) {
        int64_t idle = idle_time(o, i, object);
        if (idle >= 0 && idle < best.idle) best = (struct choice){idle, object};
    }
    return best;
}

/* Updates the choice of item i after item `added` was put into an object. */
static void update_closest(struct objects *o, int i, int added) {
    int object = o->object[added];
    struct choice *c = &o->closest[i];
    int64_t gap = gap_between(&o->problem->items[i], &o->problem->items[added]);
    if (gap < 0 && c->object == object) *c = find_closest(o, i);
    if (gap < 0 || gap > c->idle || (gap == c->idle && object >= c->object)) return;
    if (idle_time(o, i, object) >= 0) *c = (struct choice){gap, object};
}

/* Chooses, among the items order[from, to), the item and the object that leave the least idle time,
 * and puts the item into the object. If no object is free, puts the largest item into a new object.
 * Returns the item. */
static int assign_closest(struct objects *o, int from, int to) {
    int best = -1;
    for (int k = from; k < to; k++) {
        int i = o->order[k].index;
        if (o->object[i] >= 0) continue;
        if (best < 0 || o->closest[i].idle < o->closest[best].idle) best = i;
    }
    assign(o, best, o->closest[best].object);
    return best;
}

/* Places the items in stages: a stage places all items whose size equals one positional maximum, or
 * all items whose size lies between two neighbouring ones. */
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
        for (int k = from; k < to; k++)
            o->closest[o->order[k].index] = find_closest(o, o->order[k].index);
        for (int n = from; n < to; n++) {
            int added = assign_closest(o, from, to);
            if (rfx_memory_is_stopped(o->problem->mem)) return; /* result not used then */
            for (int k = from; k < to; k++)
                if (o->object[o->order[k].index] < 0) update_closest(o, o->order[k].index, added);
        }
        from = to;
    }
}

static void release(struct objects *o) {
    struct rfx_memory *mem = o->problem->mem;
    rfx_memory_release(mem, o->order);
    rfx_memory_release(mem, o->sections);
    for (int k = 0; k < o->n_objects; k++) rfx_memory_release(mem, o->all[k].items);
    rfx_memory_release(mem, o->all);
    rfx_memory_release(mem, o->maximums);
    rfx_memory_release(mem, o->profile);
    rfx_memory_release(mem, o->closest);
}

static enum rfx_status prepare(struct objects *o, struct rfx_error *err) {
    struct rfx_memory *mem = o->problem->mem;
    size_t n = (size_t)o->problem->n;
    o->order = rfx_memory_calloc(mem, n, sizeof *o->order);
    o->sections = rfx_memory_calloc(mem, 2 * n, sizeof *o->sections);
    o->all = rfx_memory_calloc(mem, n, sizeof *o->all);
    o->maximums = rfx_memory_calloc(mem, n, sizeof *o->maximums);
    o->profile = rfx_memory_calloc(mem, n, sizeof *o->profile);
    o->closest = rfx_memory_calloc(mem, n, sizeof *o->closest);
    if (o->order != NULL && o->sections != NULL && o->all != NULL && o->maximums != NULL &&
        o->profile != NULL && o->closest != NULL)
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
    if (o.no_memory) return rfx_memory_fail(problem->mem, "shared objects", sizeof(int), err);
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
        bool largest =
            true; /* item i is the largest item of its object; of equal items the first counts */
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
