/* Branch and bound over canonical packings, without recursion: a stack of frames, and a list of the
 * parts that are still to be packed. A part is a set of items that are never live together with any
 * other remaining item.
 *
 * Branching by section: the search goes on with a section below whose level nothing can be placed
 * any more. Either one of the items that rest there starts at that level, or no item does and the
 * level rises.
 *
 * Branching by rising offset is MiniMalloc's rule (Moffitt, "MiniMalloc: A Lightweight Memory
 * Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023), written from the paper. Items
 * are placed by rising offset, and items of equal offset by rank (canonical solutions). Each item
 * lies at the lowest free place, so no later item starts below it (section inference). An item is
 * not tried where another item could lie wholly below it (dominance). After an item above which
 * nothing else has to lie, no further item is tried. Ranks are fixed before the search
 * (preordering). Beyond the paper: an item that cannot be the lowest of the remaining items of a
 * section is raised above the first end of another item there.
 *
 * Sizes in this file are in units of rfx_exact_unit_bytes. Boundary b lies between sections b - 1
 * and b. Invariants: 1. floors only rise on the way down the tree, and every rise is recorded in
 * the trail; 2. the parts of a frame's items lie in ranges of sections that do not overlap; 3.
 * items are placed by rising offsets within a part, so an item placed at its floor rests on another
 * item. */
#include "tiler/arena/exact_search.h"

#include <assert.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/arena/arena_problem.h"
#include "tiler/arena/packer.h"

/* Keys for ranking items: load of the fullest section, lifetime, size times lifetime. */
enum key { KEY_TOTAL, KEY_WIDTH, KEY_AREA, KEY_COUNT };

struct item {
    int64_t size, align;
    int first, last; /* sections */
    uint64_t keys[KEY_COUNT];
    int twin; /* the previous equal item, or -1 */
};

/* An item can start at `floor` or above; `rest_at` <= floor is the end of what is placed below it.
 * Both are aligned. */
struct place {
    int64_t floor, rest_at;
};

/* An entry of the trail: the place of an item before it changed. */
struct undo {
    int item;
    struct place old;
};

/* Items that are never live together with any other remaining item; packed by themselves. */
struct part {
    int start, count; /* in pool */
    int next;         /* the part to solve after this one, or -1 */
    int origin;       /* the frame to return to when this part cannot be packed, or -1 */
};

struct frame {
    struct part part;
    int trail_mark, pool_mark, parts_mark;
    int section, item;                            /* item: the item being tried, or -1 */
    int candidates, n_candidates, next_candidate; /* in pool */
    int64_t level;                                /* the offset of the candidates */
    bool is_last; /* no later candidate can do better (nothing lies above the tried one) */
};

struct rfx_exact_search {
    struct rfx_memory *mem;
    int n, n_sections;
    int64_t unit, min_size;
    struct item *items;
    struct place *places;  /* per item */
    int64_t *offsets;      /* per item */
    int64_t *starts;       /* per item: the lowest start that the branching rule allows */
    int64_t *rest;         /* per section: bytes of the remaining items */
    int64_t *load, *level; /* per section */
    int64_t *second_end;   /* per section, of branching by rising offset */
    int *resting;  /* per section: number of items that may rest at its level; or, by rising offset,
                      the item that could end first */
    int *crossing; /* per boundary: remaining items on both sides */
    int *dirty;    /* per boundary: number of dirty sections before it */
    int *reach, *part_of; /* per section, of split_part */
    uint64_t *rank;       /* per item: higher ranks are tried earlier */
    bool *placed;
    struct undo *trail;
    struct frame *frames;
    struct part *parts;
    int *pool;
    int n_trail, n_frames, n_parts, n_pool;
    size_t trail_capacity;
    bool by_rising_offset; /* branch by rising offset; otherwise by section */
    int64_t capacity, next_bound;
    uint64_t visited;
};

/* Returns `value` rounded up to a multiple of `align`. */
static inline int64_t round_up(int64_t value, int64_t align) {
    return align == 1 ? value : (value + align - 1) / align * align;
}

/* Returns whether `bound` exceeds the capacity; remembers the smallest bound that does. */
static inline bool is_too_high(struct rfx_exact_search *search, int64_t bound) {
    if (bound <= search->capacity) return false;
    if (bound < search->next_bound) search->next_bound = bound;
    return true;
}

/* First capacity of the trail. It is enough where each item is live together with up to about
 * sixteen others. */
enum { FIRST_UNDOS_PER_ITEM = 16, FIRST_UNDOS = 64 };

/* Returns the largest unit of which every bottom-justified offset is a multiple. Alignments that
 * divide it hold by themselves. */
static int64_t find_unit(const struct rfx_place_problem *problem) {
    int64_t unit = 0;
    for (int i = 0; i < problem->n; i++) unit = rfx_gcd_i64(unit, (int64_t)problem->items[i].size);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < problem->n; i++) {
            int64_t align = (int64_t)problem->items[i].alignment;
            if (unit % align == 0 || align % unit == 0) continue;
            unit = rfx_gcd_i64(unit, align);
            changed = true;
        }
    }
    return unit > 0 ? unit : 1;
}

static bool is_twin(const struct item *a, const struct item *b) {
    return a->size == b->size && a->align == b->align && a->first == b->first && a->last == b->last;
}

static void set_items(struct rfx_exact_search *search, const struct rfx_place_problem *problem) {
    search->min_size = INT64_MAX;
    for (int i = 0; i < search->n; i++) {
        const struct rfx_place_item *from = &problem->items[i];
        struct item *item = &search->items[i];
        int64_t align = (int64_t)from->alignment;
        item->size = (int64_t)from->size / search->unit;
        item->align = align % search->unit == 0 ? align / search->unit : 1;
        item->first = problem->first[i];
        item->last = problem->last[i];
        uint64_t total = 0, width = (uint64_t)from->hi - (uint64_t)from->lo;
        for (int s = item->first; s < item->last; s++)
            if (problem->breadth[s] > total) total = problem->breadth[s];
        item->keys[KEY_TOTAL] = total;
        item->keys[KEY_WIDTH] = width;
        item->keys[KEY_AREA] = from->size > UINT64_MAX / width ? UINT64_MAX : from->size * width;
        item->twin = -1;
        for (int j = i - 1; j >= 0 && item->twin < 0; j--)
            if (is_twin(item, &search->items[j])) item->twin = j;
        if (item->size < search->min_size) search->min_size = item->size;
    }
}

/* The tables of a search, for n items and their sections. Lengths are bounded: one part and one
 * frame per placed item; the candidates of a frame and the items it leaves are at most the items of
 * its part. Only the trail can grow. */
/* clang-format off */
#define TABLES(X) \
    X(items, n) X(places, n) X(offsets, n) X(starts, n) X(rank, n) X(placed, n) \
    X(rest, sections) X(load, sections) X(level, sections) X(second_end, sections) \
    X(resting, sections) X(reach, sections) X(part_of, sections) \
    X(crossing, sections + 1) X(dirty, sections + 1) X(frames, n + 1) X(parts, n + 1) \
    X(trail, s->trail_capacity) X(pool, squares)
/* clang-format on */

static bool allocate(struct rfx_exact_search *s, size_t n, size_t sections) {
    size_t squares;
    if (!rfx_checked_mul_size(n + 2, 2 * (n + 2), &squares)) return false;
    s->trail_capacity = FIRST_UNDOS_PER_ITEM * n + FIRST_UNDOS;
#define ALLOCATE(table, count) \
    if ((s->table = rfx_memory_calloc(s->mem, count, sizeof *s->table)) == NULL) return false;
    TABLES(ALLOCATE)
    return true;
}

enum rfx_status rfx_exact_create(const struct rfx_place_problem *problem,
                                 struct rfx_exact_search **out, struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct rfx_exact_search *search = rfx_memory_calloc(mem, 1, sizeof *search);
    if (search == NULL) return rfx_memory_fail(mem, "packer", sizeof *search, err);
    search->mem = mem;
    search->n = problem->n;
    search->n_sections = problem->n_sections;
    search->unit = find_unit(problem);
    if (!allocate(search, n, (size_t)problem->n_sections)) {
        rfx_exact_free(search);
        return rfx_memory_fail(mem, "packer tables", 2 * n * n * sizeof(struct part), err);
    }
    set_items(search, problem);
    *out = search;
    return RFX_OK;
}

void rfx_exact_free(struct rfx_exact_search *search) {
    if (search == NULL) return;
#define RELEASE(table, count) rfx_memory_release(search->mem, search->table);
    TABLES(RELEASE)
    rfx_memory_release(search->mem, search);
}

size_t rfx_exact_unit_bytes(const struct rfx_exact_search *search) {
    return (size_t)search->unit;
}

/* Adds an item to the remaining ones, or removes it. */
static void count_left(struct rfx_exact_search *search, int i, int by) {
    const struct item *item = &search->items[i];
    for (int s = item->first; s < item->last; s++) search->rest[s] += by * item->size;
    for (int b = item->first + 1; b < item->last; b++) search->crossing[b] += by;
}

/* Resets the state: nothing is placed, all floors are 0. */
static void clear_state(struct rfx_exact_search *search) {
    size_t sections = (size_t)search->n_sections;
    memset(search->rest, 0, sections * sizeof *search->rest);
    memset(search->crossing, 0, (sections + 1) * sizeof *search->crossing);
    memset(search->dirty, 0, (sections + 1) * sizeof *search->dirty);
    memset(search->places, 0, (size_t)search->n * sizeof *search->places);
    memset(search->placed, 0, (size_t)search->n * sizeof *search->placed);
    search->n_trail = search->n_frames = search->n_parts = search->n_pool = 0;
    for (int i = 0; i < search->n; i++) {
        count_left(search, i, 1);
        search->pool[search->n_pool++] = i;
    }
}

/* Raises the floor of item i to `at`; `rests`: a placed item ends there. Returns false when there
 * is no memory for the trail. */
static bool lift(struct rfx_exact_search *search, int i, int64_t at, bool rests) {
    struct place *place = &search->places[i];
    at = round_up(at, search->items[i].align);
    bool rises = place->floor < at;
    if (!rises && !(rests && place->rest_at < at)) return true;
    struct undo *trail = rfx_memory_reserve(search->mem, search->trail, &search->trail_capacity,
                                            (size_t)search->n_trail + 1, sizeof *search->trail);
    if (trail == NULL) return false;
    search->trail = trail;
    trail[search->n_trail++] = (struct undo){i, *place};
    if (rises) place->floor = at;
    if (rests && place->rest_at < at) place->rest_at = at;
    return true;
}

/* Places item x at the frame's level: raises the frame's items above it, and appends all others of
 * its part to the pool. *cut: some boundary inside x is crossed by no remaining item. Returns
 * false: no memory. O(items). */
static bool place_item(struct rfx_exact_search *search, struct frame *frame, int x, bool *cut) {
    const struct item *item = &search->items[x];
    const int *items = &search->pool[frame->part.start];
    int64_t top = frame->level + item->size;
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *other = &search->items[items[k]];
        if (items[k] == x) continue;
        search->pool[search->n_pool++] = items[k];
        if (other->first >= item->last || item->first >= other->last) continue;
        if (!lift(search, items[k], top, true)) return false;
    }
    count_left(search, x, -1);
    *cut = false;
    for (int b = item->first + 1; b < item->last; b++) *cut |= search->crossing[b] == 0;
    search->offsets[x] = frame->level;
    search->placed[x] = true;
    frame->item = x;
    return true;
}

/* Computes the range [*lo, *hi) of sections that the part's items live in. */
static void sections_of(const struct rfx_exact_search *search, const struct part *part, int *lo,
                        int *hi) {
    const int *items = &search->pool[part->start];
    *lo = search->n_sections;
    *hi = 0;
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        if (item->first < *lo) *lo = item->first;
        if (item->last > *hi) *hi = item->last;
    }
}

/* Begins a frame whose n candidates were appended to the pool; restore returns to this state. */
static void begin_frame(struct rfx_exact_search *search, struct frame *frame, int n) {
    frame->candidates = search->n_pool;
    frame->n_candidates = n;
    frame->next_candidate = 0;
    frame->item = -1;
    frame->is_last = false;
    search->n_pool += n;
    frame->trail_mark = search->n_trail;
    frame->pool_mark = search->n_pool;
    frame->parts_mark = search->n_parts;
}

/* Removes the frame's item again. */
static void unplace(struct rfx_exact_search *search, struct frame *frame) {
    if (frame->item < 0) return;
    count_left(search, frame->item, 1);
    search->placed[frame->item] = false;
    frame->item = -1;
}

/* Undoes everything since the frame was begun; later frames are dropped. */
static void restore(struct rfx_exact_search *search, struct frame *frame) {
    unplace(search, frame);
    while (search->n_trail > frame->trail_mark) {
        const struct undo *undo = &search->trail[--search->n_trail];
        search->places[undo->item] = undo->old;
    }
    search->n_pool = frame->pool_mark;
    search->n_parts = frame->parts_mark;
}

/* Sorts a list of items by falling start; nearly sorted lists take O(n). */
static void sort_by_start(const struct rfx_exact_search *search, int *items, int n) {
    for (int k = 1; k < n; k++) {
        int i = items[k], at = k;
        int64_t start = search->starts[i];
        for (; at > 0 && search->starts[items[at - 1]] < start; at--) items[at] = items[at - 1];
        items[at] = i;
    }
}

/* Per order: the first, second and third key. */
static const enum key keys_of[][KEY_COUNT] = {
    [RFX_EXACT_WAT - RFX_EXACT_SECTION_ORDERS] = {KEY_WIDTH, KEY_AREA, KEY_TOTAL},
    [RFX_EXACT_TAW - RFX_EXACT_SECTION_ORDERS] = {KEY_TOTAL, KEY_AREA, KEY_WIDTH},
    [RFX_EXACT_TWA - RFX_EXACT_SECTION_ORDERS] = {KEY_TOTAL, KEY_WIDTH, KEY_AREA},
    [RFX_EXACT_WAT_SHUFFLED - RFX_EXACT_SECTION_ORDERS] = {KEY_WIDTH, KEY_AREA, KEY_TOTAL},
};
_Static_assert(sizeof keys_of / sizeof *keys_of == RFX_EXACT_ORDER_COUNT - RFX_EXACT_SECTION_ORDERS,
               "one row per order");

static bool comes_before(const struct rfx_exact_search *search, const enum key *keys, int i,
                         int j) {
    for (int k = 0; k < KEY_COUNT; k++) {
        uint64_t a = search->items[i].keys[keys[k]], b = search->items[j].keys[keys[k]];
        if (a != b) return a > b;
    }
    return i < j;
}

/* Ranks all items by an order from WAT on; ties by position. Called before a search begins, and
 * uses its pool. */
static void rank_canonical(struct rfx_exact_search *search, enum rfx_exact_order order,
                           uint64_t seed) {
    const enum key *keys = keys_of[order - RFX_EXACT_SECTION_ORDERS];
    int *sorted = search->pool; /* not used otherwise yet */
    for (int i = 0; i < search->n; i++) {
        int lo = 0;
        for (int hi = i; lo < hi;) {
            int middle = lo + (hi - lo) / 2;
            if (comes_before(search, keys, i, sorted[middle]))
                hi = middle;
            else
                lo = middle + 1;
        }
        memmove(&sorted[lo + 1], &sorted[lo], (size_t)(i - lo) * sizeof *sorted);
        sorted[lo] = i;
    }
    /* Randomly, an item moves by up to 5/4 of all places; 1/2 and 6 find fewer answers. */
    uint64_t most = order == RFX_EXACT_WAT_SHUFFLED ? 5 * (uint64_t)search->n : 1;
    for (int k = 0; k < search->n; k++) {
        uint64_t chance = rfx_place_mix(seed ^ rfx_place_mix((uint64_t)sorted[k])) % most;
        search->rank[sorted[k]] = 4 * (uint64_t)(search->n - k) + chance;
    }
}

/* Returns the offset below which nothing of the part may start: that of the last placed item. */
static int64_t low_of(const struct rfx_exact_search *search, const struct frame *frame) {
    return frame->part.origin < 0 ? 0 : search->frames[frame->part.origin].level;
}

static int64_t start_of(const struct rfx_exact_search *search, int i, int64_t low) {
    int64_t floor = search->places[i].floor;
    return floor >= low ? floor : round_up(low, search->items[i].align);
}

/* Returns whether item i comes before j: it starts lower, or as low with a higher rank. */
static bool is_earlier(const struct rfx_exact_search *search, int i, int j) {
    if (search->starts[i] != search->starts[j]) return search->starts[i] < search->starts[j];
    if (search->rank[i] != search->rank[j]) return search->rank[i] > search->rank[j];
    return i < j;
}

/* Returns whether placing item i now at starts[i] keeps the solution canonical. Compared with the
 * last placed item, i must start higher, or as high with a lower rank, or as high with the same
 * rank and a higher number. Of equal items, the earlier one is placed first. */
static bool is_canonical(const struct rfx_exact_search *search, const struct frame *frame, int i) {
    const struct item *item = &search->items[i];
    if (item->twin >= 0 && !search->placed[item->twin]) return false;
    if (frame->part.origin < 0) return true;
    const struct frame *last = &search->frames[frame->part.origin];
    if (search->starts[i] != last->level) return true;
    if (search->rank[i] != search->rank[last->item])
        return search->rank[i] < search->rank[last->item];
    return i > last->item;
}

/* Lists the items to try, lowest first, at the end of the pool; returns their number. */
static int list_lowest(struct rfx_exact_search *search, const struct frame *frame, int64_t below) {
    const int *items = &search->pool[frame->part.start];
    int *list = &search->pool[search->n_pool];
    int n = 0;
    for (int k = 0; k < frame->part.count; k++) {
        int i = items[k];
        if (search->starts[i] >= below || !is_canonical(search, frame, i)) continue;
        int at = n++;
        for (; at > 0 && is_earlier(search, i, list[at - 1]); at--) list[at] = list[at - 1];
        list[at] = i;
    }
    return n;
}

/* The part that infer works on: its sections are [lo, hi), nothing starts below `low`, and `some`
 * lists the items of dirty sections. */
struct view {
    const struct frame *frame;
    int64_t low;
    int lo, hi;
    int *some, n;
};

/* Marks the sections in which a floor has risen since the trail had length `from`, and lists their
 * items by falling start. */
static void list_dirty(struct rfx_exact_search *search, struct view *view, int from) {
    const int *items = &search->pool[view->frame->part.start];
    int lo = view->lo, hi = view->hi;
    memset(&search->dirty[lo], 0, (size_t)(hi - lo + 1) * sizeof *search->dirty);
    for (int k = from; k < search->n_trail; k++) {
        const struct item *item = &search->items[search->trail[k].item];
        if (item->first < lo || item->last > hi) continue; /* of another part */
        for (int s = item->first; s < item->last; s++) search->dirty[s + 1] = 1;
    }
    for (int s = lo; s < hi; s++) search->dirty[s + 1] += search->dirty[s];
    view->n = 0;
    for (int k = 0; k < view->frame->part.count; k++) {
        const struct item *item = &search->items[items[k]];
        if (search->dirty[item->last] > search->dirty[item->first])
            view->some[view->n++] = items[k];
    }
    sort_by_start(search, view->some, view->n);
}

/* Checks that the remaining items that start at f or above have room for their sum above f. Fills
 * level (the first end), resting (the item that ends there) and second_end (of the other items) of
 * the dirty sections. Returns false when the part cannot be packed. */
static bool sums_fit(struct rfx_exact_search *search, const struct view *view) {
    for (int s = view->lo; s < view->hi; s++) {
        search->load[s] = 0;
        search->level[s] = search->second_end[s] = INT64_MAX;
    }
    for (int k = 0; k < view->n; k++) {
        int i = view->some[k];
        const struct item *item = &search->items[i];
        int64_t start = search->starts[i], end = start + item->size;
        for (int s = item->first; s < item->last; s++) {
            search->load[s] += item->size;
            if (is_too_high(search, start + search->load[s])) return false;
            if (end < search->level[s]) {
                search->second_end[s] = search->level[s];
                search->level[s] = end;
                search->resting[s] = i;
            } else if (end < search->second_end[s]) {
                search->second_end[s] = end;
            }
        }
    }
    return true;
}

/* If not all remaining items of a section have room above an item's floor, the item is not the
 * lowest there; so it lies above another one, and its floor rises. Capacities for which this does
 * not follow are above next_bound. Returns false: no memory. */
static bool lift_not_lowest(struct rfx_exact_search *search, const struct view *view) {
    for (int k = 0; k < view->n; k++) {
        int i = view->some[k];
        const struct item *item = &search->items[i];
        int64_t start = search->starts[i], lifted = start;
        for (int s = item->first; s < item->last; s++) {
            if (start + search->rest[s] <= search->capacity) continue;
            if (search->dirty[s + 1] == search->dirty[s]) continue;
            int64_t other = search->resting[s] == i ? search->second_end[s] : search->level[s];
            if (other <= start) continue;
            (void)is_too_high(search, start + search->rest[s]);
            if (other > lifted) lifted = other;
        }
        if (lifted > start && !lift(search, i, lifted, false)) return false;
    }
    return true;
}

/* Section inference, repeated where floors have risen since the part's origin placed its item,
 * until none rises any more. *fits: the part may be packable. Returns false: no memory. */
static bool infer(struct rfx_exact_search *search, struct view *view, bool *fits) {
    int origin = view->frame->part.origin;
    int from = origin < 0 ? 0 : search->frames[origin].trail_mark;
    int64_t most = 0;
    *fits = false;
    for (int s = view->lo; s < view->hi; s++)
        if (search->rest[s] > most) most = search->rest[s];
    if (most > 0 && is_too_high(search, view->low + most)) return true;
    while (from < search->n_trail) {
        list_dirty(search, view, from);
        from = search->n_trail;
        if (!sums_fit(search, view)) return true;
        if (!lift_not_lowest(search, view)) return false;
        for (int k = from; k < search->n_trail; k++) {
            int i = search->trail[k].item;
            search->starts[i] = start_of(search, i, view->low);
        }
    }
    *fits = true;
    return true;
}

/* Fills the frame with the items to try; *fits: a packing is possible. Returns false: no memory. */
static bool expand_canonical(struct rfx_exact_search *search, struct frame *frame, bool *fits) {
    const int *items = &search->pool[frame->part.start];
    struct view view = {.frame = frame,
                        .low = low_of(search, frame),
                        .some = &search->pool[search->n_pool]}; /* not used otherwise yet */
    sections_of(search, &frame->part, &view.lo, &view.hi);
    for (int k = 0; k < frame->part.count; k++)
        search->starts[items[k]] = start_of(search, items[k], view.low);
    if (!infer(search, &view, fits)) return false;
    if (!*fits) return true;
    /* The lowest end that any item can have. An item that starts at or above `below` would leave
     * room for that other item wholly below it. */
    int64_t below = INT64_MAX;
    for (int k = 0; k < frame->part.count; k++) {
        int64_t end = search->starts[items[k]] + search->items[items[k]].size;
        if (end < below) below = end;
    }
    begin_frame(search, frame, list_lowest(search, frame, below));
    return true;
}

/* Prepares the placing of item x of the frame's part: sets the frame's level, below which nothing
 * of the part starts any more, and whether a later candidate can do better. */
static void begin_canonical(struct rfx_exact_search *search, struct frame *frame, int x) {
    const struct item *item = &search->items[x];
    const int *items = &search->pool[frame->part.start];
    frame->level = start_of(search, x, low_of(search, frame));
    frame->is_last = true;
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *other = &search->items[items[k]];
        if (items[k] != x && other->first < item->last && item->first < other->last)
            frame->is_last = false;
    }
}

/* Marks a section that must not be branched on, in place of a count of items. Twice the value still
 * fits an int. */
enum { BLOCKED = 1 << 28 };
_Static_assert((int)BLOCKED > RFX_PACKER_MAX_ITEMS, "no count of items is BLOCKED");

/* Section-wise bound: the remaining items of a section that start at f or above need room for their
 * sum above f. Fills level, the lowest floor of each section, and sorts the items by falling floor.
 * Returns false when the part cannot be packed. */
static bool bounds_hold(struct rfx_exact_search *search, const struct part *part) {
    int *items = &search->pool[part->start];
    int lo, hi;
    sections_of(search, part, &lo, &hi);
    memset(&search->load[lo], 0, (size_t)(hi - lo) * sizeof *search->load);
    memset(&search->resting[lo], 0, (size_t)(hi - lo) * sizeof *search->resting);
    for (int k = 0; k < part->count; k++) search->starts[items[k]] = search->places[items[k]].floor;
    sort_by_start(search, items, part->count);
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        int64_t floor = search->starts[items[k]];
        for (int s = item->first; s < item->last; s++) {
            search->load[s] += item->size;
            if (is_too_high(search, floor + search->load[s])) return false;
            search->level[s] = floor;
        }
    }
    return true;
}

/* Returns whether an item that was not allowed to start at `rest_at` could sink back to it, below
 * everything that is still to be placed. Another branch then finds the same packing with the item
 * at `rest_at`. */
static bool could_sink(const struct rfx_exact_search *search, const struct item *item,
                       int64_t rest_at) {
    for (int s = item->first; s < item->last; s++)
        if (search->level[s] < rest_at + item->size) return false;
    return true;
}

/* Counts the items that may rest at each section's level. The count is BLOCKED where an item at the
 * level also lives in a section with a lower level, because another item could still go under it.
 * Returns false when the part is dominated. */
static bool count_resting(struct rfx_exact_search *search, const struct part *part) {
    const int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        int64_t floor = search->places[items[k]].floor;
        int64_t rest_at = search->places[items[k]].rest_at;
        if (rest_at != floor && could_sink(search, item, rest_at)) return false;
        bool waits = rest_at != floor || (item->twin >= 0 && !search->placed[item->twin]);
        int add = waits ? 0 : 1;
        for (int s = item->first; s < item->last && add != BLOCKED; s++)
            if (search->level[s] != floor) add = BLOCKED;
        for (int s = item->first; s < item->last; s++)
            if (search->level[s] == floor && search->resting[s] < BLOCKED)
                search->resting[s] += add;
    }
    return true;
}

/* Chooses the section to branch on: not blocked, with the fewest candidates, then the least slack.
 * The section of the lowest level is never blocked. */
static int choose_section(const struct rfx_exact_search *search, const struct part *part) {
    int best = -1, lo, hi;
    int64_t best_slack = 0;
    sections_of(search, part, &lo, &hi);
    for (int s = lo; s < hi; s++) {
        if (search->load[s] == 0 || search->resting[s] >= BLOCKED) continue;
        if (best >= 0 && search->resting[s] > search->resting[best]) continue;
        int64_t slack = search->capacity - search->level[s] - search->rest[s];
        if (best >= 0 && search->resting[s] == search->resting[best] && slack >= best_slack)
            continue;
        best = s;
        best_slack = slack;
    }
    assert(best >= 0);
    return best;
}

/* Lists the items to try at the frame's section, best rank first, at the end of the pool; returns
 * their number. */
static int list_resting(struct rfx_exact_search *search, const struct frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int *list = &search->pool[search->n_pool];
    int n = 0;
    for (int k = 0; k < frame->part.count; k++) {
        int i = items[k];
        const struct item *item = &search->items[i];
        if (search->places[i].floor != frame->level) continue;
        if (frame->section < item->first || frame->section >= item->last) continue;
        if (item->twin >= 0 && !search->placed[item->twin]) continue;
        if (search->places[i].rest_at != frame->level) continue;
        int at = n++;
        for (; at > 0 && (search->rank[list[at - 1]] < search->rank[i] ||
                          (search->rank[list[at - 1]] == search->rank[i] && list[at - 1] > i));
             at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    return n;
}

/* Prunes the part, or fills the frame with items to try. Returns false when the part cannot be
 * packed. */
static bool expand_section(struct rfx_exact_search *search, struct frame *frame) {
    if (!bounds_hold(search, &frame->part) || !count_resting(search, &frame->part)) return false;
    frame->section = choose_section(search, &frame->part);
    frame->level = search->level[frame->section];
    begin_frame(search, frame, list_resting(search, frame));
    return true;
}

/* Returns the lowest offset at which an item of the frame's section can start if none starts at the
 * section's level; such an item rests on an item that does not live in the section. INT64_MAX:
 * there is no such offset. Returns a lower bound of the offset when that bound already exceeds the
 * capacity. */
static int64_t next_level(const struct rfx_exact_search *search, const struct frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int section = frame->section;
    int64_t next = INT64_MAX;
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        int64_t floor = search->places[items[k]].floor;
        if (floor > frame->level && floor < next) next = floor;
    }
    int64_t bound = rfx_min_i64(next, frame->level + search->min_size);
    if (bound + search->rest[section] > search->capacity) return bound;
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        if (search->places[items[k]].floor > frame->level) continue;
        for (int j = 0; j < frame->part.count; j++) {
            const struct item *under = &search->items[items[j]];
            if (section >= under->first && section < under->last) continue;
            if (under->first >= item->last || item->first >= under->last) continue;
            int64_t at = round_up(search->places[items[j]].floor + under->size, item->align);
            if (at < next) next = at;
        }
    }
    return next;
}

/* Called when all candidates of a frame were tried: lets no item start at the level of the frame's
 * section, and raises that level. Returns FOUND when the frame has more candidates to try,
 * EXHAUSTED when it has none, LIMIT when there is no memory. */
static enum rfx_exact_outcome go_without(struct rfx_exact_search *search, struct frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int section = frame->section;
    int64_t next = next_level(search, frame);
    if (next == INT64_MAX || is_too_high(search, next + search->rest[section]))
        return RFX_EXACT_EXHAUSTED;
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        if (!lift(search, items[k], next, false)) return RFX_EXACT_LIMIT;
    }
    search->n_pool = frame->candidates;
    return expand_section(search, frame) ? RFX_EXACT_FOUND : RFX_EXACT_EXHAUSTED;
}

/* Items visited between two looks at the clock. A node takes time proportional to the number of
 * items, near the root to the square of that number. At this interval the looks take no noticeable
 * time, and the interval is far shorter than any time limit. With a node limit alone, the clock
 * decides nothing. */
enum { CLOCK_EVERY_ITEMS = 8192 };

/* Appends a part of `count` items that start at `start` of the pool. */
static int add_part(struct rfx_exact_search *search, int start, int count, int next, int origin) {
    struct part part = {start, count, next, origin};
    assert(search->n_parts <= search->n);
    search->parts[search->n_parts] = part;
    return search->n_parts++;
}

/* Computes which part each section of these items belongs to; returns the number of parts. */
static int find_parts(struct rfx_exact_search *search, int start, int n) {
    const int *items = &search->pool[start];
    const struct part all = {start, n, -1, -1};
    int lo, hi, count = 0, end = 0;
    sections_of(search, &all, &lo, &hi);
    for (int s = lo; s < hi; s++) search->reach[s] = 0;
    for (int k = 0; k < n; k++) {
        const struct item *item = &search->items[items[k]];
        if (item->last > search->reach[item->first]) search->reach[item->first] = item->last;
    }
    for (int s = lo; s < hi; s++) {
        if (s >= end && search->reach[s] > 0) count++;
        if (search->reach[s] > end) end = search->reach[s];
        search->part_of[s] = count - 1;
    }
    return count;
}

/* Cuts the items at the end of the pool, from `start` on, into parts; returns the first part of a
 * list that continues with `next`. */
static int split_part(struct rfx_exact_search *search, int start, int next, int origin) {
    int n = search->n_pool - start;
    int *items = &search->pool[start];
    int n_parts = find_parts(search, start, n);
    int done = 0; /* items before it are in parts */
    for (int p = n_parts - 1; p >= 0; p--) {
        int begin = done;
        for (int k = done; k < n; k++) { /* keeps falling floors nearly sorted */
            int i = items[k];
            if (search->part_of[search->items[i].first] != p) continue;
            items[k] = items[done];
            items[done++] = i;
        }
        next = add_part(search, start + begin, done - begin, next, origin);
    }
    return next;
}

/* Places the frame's next candidate; *next receives the next part to pack (-1: all are packed).
 * Returns false: no memory. */
static bool place_candidate(struct rfx_exact_search *search, struct frame *frame, int *next) {
    int x = search->pool[frame->candidates + frame->next_candidate++];
    int start = search->n_pool;
    bool cut;
    if (search->by_rising_offset) begin_canonical(search, frame, x);
    if (!place_item(search, frame, x, &cut)) return false;
    int origin = (int)(frame - search->frames);
    *next = frame->part.next;
    if (cut)
        *next = split_part(search, start, frame->part.next, origin);
    else if (search->n_pool > start)
        *next = add_part(search, start, search->n_pool - start, frame->part.next, origin);
    return true;
}

/* Drops the frames above `origin`, whose part cannot be packed. */
static void go_back(struct rfx_exact_search *search, int origin) {
    while (search->n_frames > origin + 1) unplace(search, &search->frames[--search->n_frames]);
}

static uint64_t item_rank(const struct rfx_exact_search *search,
                          const struct rfx_exact_request *request, int i) {
    const struct item *item = &search->items[i];
    uint64_t size = (uint64_t)item->size;
    uint64_t length = (uint64_t)(item->last - item->first);
    if (request->order == RFX_EXACT_AREA)
        return size > UINT64_MAX / length ? UINT64_MAX : size * length;
    if (request->order == RFX_EXACT_LENGTH) return length;
    if (request->order == RFX_EXACT_SIZE) return size;
    return rfx_place_mix(request->seed ^ rfx_place_mix((uint64_t)i));
}

/* Resets the search for a request; returns the first part. */
static int reset(struct rfx_exact_search *search, const struct rfx_exact_request *request) {
    if (request->order >= RFX_EXACT_SECTION_ORDERS)
        rank_canonical(search, request->order, request->seed);
    else
        for (int i = 0; i < search->n; i++) search->rank[i] = item_rank(search, request, i);
    clear_state(search);
    search->by_rising_offset = request->order >= RFX_EXACT_SECTION_ORDERS;
    search->capacity = (int64_t)request->capacity_bytes / search->unit;
    search->next_bound = INT64_MAX;
    return split_part(search, 0, -1, -1);
}

/* Fills the frame with items to try; *fits: a packing of its part is possible. Returns false: no
 * memory. */
static bool expand(struct rfx_exact_search *search, struct frame *frame, bool *fits) {
    if (search->by_rising_offset) return expand_canonical(search, frame, fits);
    *fits = expand_section(search, frame);
    return true;
}

/* Counts a node; returns whether a limit is exceeded. */
static bool spent(struct rfx_exact_search *search, const struct rfx_exact_request *request) {
    if (++search->visited > request->nodes) return true;
    uint64_t every = 1 + CLOCK_EVERY_ITEMS / (uint64_t)search->n;
    return search->visited % every == 0 && rfx_place_must_stop(search->mem, request->stop);
}

/* Continues from the top frame until there is a part to enter (FOUND; -1: all parts are packed). */
static enum rfx_exact_outcome advance(struct rfx_exact_search *search,
                                      const struct rfx_exact_request *request, int *next) {
    while (search->n_frames > 0) {
        struct frame *frame = &search->frames[search->n_frames - 1];
        restore(search, frame);
        if (frame->next_candidate < frame->n_candidates && !frame->is_last)
            return place_candidate(search, frame, next) ? RFX_EXACT_FOUND : RFX_EXACT_LIMIT;
        if (spent(search, request)) return RFX_EXACT_LIMIT;
        enum rfx_exact_outcome outcome = RFX_EXACT_EXHAUSTED;
        if (!search->by_rising_offset) outcome = go_without(search, frame);
        if (outcome == RFX_EXACT_LIMIT) return outcome;
        if (outcome == RFX_EXACT_EXHAUSTED) go_back(search, frame->part.origin);
    }
    return RFX_EXACT_EXHAUSTED;
}

static enum rfx_exact_outcome run(struct rfx_exact_search *search,
                                  const struct rfx_exact_request *request) {
    int part = reset(search, request);
    while (part >= 0) {
        if (spent(search, request)) return RFX_EXACT_LIMIT;
        struct frame *frame = &search->frames[search->n_frames];
        frame->part = search->parts[part];
        bool fits;
        if (!expand(search, frame, &fits)) return RFX_EXACT_LIMIT;
        if (fits)
            search->n_frames++;
        else
            go_back(search, frame->part.origin);
        enum rfx_exact_outcome outcome = advance(search, request, &part);
        if (outcome != RFX_EXACT_FOUND) return outcome;
    }
    return RFX_EXACT_FOUND;
}

enum rfx_exact_outcome rfx_exact_probe(struct rfx_exact_search *search,
                                       const struct rfx_exact_request *request, size_t *offsets,
                                       size_t *next_bytes, uint64_t *nodes) {
    search->visited = 0;
    enum rfx_exact_outcome outcome = run(search, request);
    *nodes += search->visited;
    if (outcome == RFX_EXACT_FOUND)
        for (int i = 0; i < search->n; i++)
            offsets[i] = (size_t)(search->offsets[i] * search->unit);
    if (outcome == RFX_EXACT_EXHAUSTED)
        *next_bytes = search->next_bound == INT64_MAX ? SIZE_MAX
                                                      : (size_t)(search->next_bound * search->unit);
    return outcome;
}
