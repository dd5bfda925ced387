/* Branch and bound over canonical packings, without recursion: frames, a trail of section states,
 * and a list of the parts still to be solved.
 *
 * All sizes here are in units of rfx_search_unit_bytes. Of a section: `top` is the end of what is
 * placed, `base` >= top the lowest place where anything may still start, `rest` what is left to
 * place. Of an item: `floor` is the highest base of its sections, aligned. Invariant: items are
 * placed by rising offsets within a part, so an item put at its floor rests on a top. */
#include "tiler/packer_search.h"

#include <assert.h>
#include <string.h>

#include "layers/checked.h"
#include "tiler/packer_common.h"

enum { CLOCK_EVERY_NODES = 128, BLOCKED = 1 << 28 };

struct item {
    int64_t size, align;
    int first, last; /* sections */
    int twin;        /* the previous equal item, or -1 */
};

struct section {
    int64_t base, top, rest;
};

struct undo {
    int index;
    struct section old;
};

/* Items that no other items left meet in time, to be packed on their own. */
struct part {
    int start, count; /* in pool */
    int next;         /* the part to solve after this one, or -1 */
    int origin;       /* the frame to go on with when this part cannot be packed, or -1 */
};

struct frame {
    struct part part;
    int trail_mark, pool_mark, parts_mark;
    int section, item;                            /* item: being tried, or -1 */
    int candidates, n_candidates, next_candidate; /* in pool */
    int64_t level;                                /* where the candidates go */
};

struct rfx_search {
    struct rfx_memory *mem;
    int n, n_sections;
    int64_t unit, min_size;
    struct item *items;
    struct section *sections;
    int64_t *offsets, *floors, *load, *level; /* per item, per item, per section, per section */
    int *resting;                             /* per section: items that may be put at its level */
    int *reach, *part_of;                     /* per section, of split_part */
    uint64_t *rank;                           /* per item: the higher, the earlier it is tried */
    bool *placed;
    struct undo *trail;
    struct frame *frames;
    struct part *parts;
    int *pool;
    int n_trail, n_frames, n_parts, n_pool;
    size_t trail_capacity;
    int64_t capacity, next_bound;
    uint64_t visited;
};

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* The largest unit of which every bottom-justified offset is a multiple. An alignment that divides
 * it holds by itself. */
static int64_t find_unit(const struct rfx_place_problem *problem) {
    int64_t unit = 0;
    for (int i = 0; i < problem->n; i++) unit = gcd(unit, (int64_t)problem->items[i].size);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < problem->n; i++) {
            int64_t align = (int64_t)problem->items[i].alignment;
            if (unit % align == 0 || align % unit == 0) continue;
            unit = gcd(unit, align);
            changed = true;
        }
    }
    return unit > 0 ? unit : 1;
}

static bool is_twin(const struct item *a, const struct item *b) {
    return a->size == b->size && a->align == b->align && a->first == b->first && a->last == b->last;
}

static void set_items(struct rfx_search *search, const struct rfx_place_problem *problem) {
    search->min_size = INT64_MAX;
    for (int i = 0; i < search->n; i++) {
        const struct rfx_place_item *from = &problem->items[i];
        struct item *item = &search->items[i];
        int64_t align = (int64_t)from->alignment;
        item->size = (int64_t)from->size / search->unit;
        item->align = align % search->unit == 0 ? align / search->unit : 1;
        item->first = problem->first[i];
        item->last = problem->last[i];
        item->twin = -1;
        for (int j = i - 1; j >= 0 && item->twin < 0; j--)
            if (is_twin(item, &search->items[j])) item->twin = j;
        if (item->size < search->min_size) search->min_size = item->size;
    }
}

/* How long the lists can become: one part and one frame per placed item; a frame's candidates and
 * the items it leaves are at most the items of its part. Only the trail can grow. */
static bool allocate(struct rfx_search *s, struct rfx_memory *mem, size_t n, size_t sections) {
    size_t squares;
    if (!rfx_checked_mul_size(n + 2, 2 * (n + 2), &squares)) return false;
    s->trail_capacity = 16 * n + 64;
    s->sections = rfx_memory_calloc(mem, sections, sizeof *s->sections);
    s->offsets = rfx_memory_calloc(mem, n, sizeof *s->offsets);
    s->floors = rfx_memory_calloc(mem, n, sizeof *s->floors);
    s->load = rfx_memory_calloc(mem, sections, sizeof *s->load);
    s->level = rfx_memory_calloc(mem, sections, sizeof *s->level);
    s->resting = rfx_memory_calloc(mem, sections, sizeof *s->resting);
    s->reach = rfx_memory_calloc(mem, sections, sizeof *s->reach);
    s->part_of = rfx_memory_calloc(mem, sections, sizeof *s->part_of);
    s->rank = rfx_memory_calloc(mem, n, sizeof *s->rank);
    s->placed = rfx_memory_calloc(mem, n, sizeof *s->placed);
    s->trail = rfx_memory_calloc(mem, s->trail_capacity, sizeof *s->trail);
    s->frames = rfx_memory_calloc(mem, n + 1, sizeof *s->frames);
    s->parts = rfx_memory_calloc(mem, n + 1, sizeof *s->parts);
    s->pool = rfx_memory_calloc(mem, squares, sizeof *s->pool);
    return s->sections != NULL && s->offsets != NULL && s->floors != NULL && s->load != NULL &&
           s->level != NULL && s->resting != NULL && s->reach != NULL && s->part_of != NULL &&
           s->rank != NULL && s->placed != NULL && s->trail != NULL && s->frames != NULL &&
           s->parts != NULL && s->pool != NULL;
}

enum rfx_status rfx_search_create(const struct rfx_place_problem *problem, struct rfx_search **out,
                                  struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct rfx_search *search = rfx_memory_calloc(mem, 1, sizeof *search);
    if (search == NULL) return rfx_memory_fail(mem, "packer", sizeof *search, err);
    search->mem = mem;
    search->n = problem->n;
    search->n_sections = problem->n_sections;
    search->unit = find_unit(problem);
    search->items = rfx_memory_calloc(mem, n, sizeof *search->items);
    if (search->items != NULL) set_items(search, problem);
    if (search->items == NULL || !allocate(search, mem, n, (size_t)problem->n_sections)) {
        rfx_search_free(search);
        return rfx_memory_fail(mem, "packer tables", 2 * n * n * sizeof(struct part), err);
    }
    *out = search;
    return RFX_OK;
}

void rfx_search_free(struct rfx_search *search) {
    if (search == NULL) return;
    void *const blocks[] = {search->items,  search->sections, search->offsets, search->floors,
                            search->load,   search->level,    search->resting, search->rank,
                            search->placed, search->trail,    search->frames,  search->parts,
                            search->pool,   search->reach,    search->part_of};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(search->mem, blocks[i]);
    rfx_memory_release(search->mem, search);
}

size_t rfx_search_unit_bytes(const struct rfx_search *search) {
    return (size_t)search->unit;
}

static int64_t align_up(int64_t value, int64_t align) {
    return align == 1 ? value : (value + align - 1) / align * align;
}

/* Whether `bound` passes the capacity; remembers the smallest that does. */
static bool too_high(struct rfx_search *search, int64_t bound) {
    if (bound <= search->capacity) return false;
    if (bound < search->next_bound) search->next_bound = bound;
    return true;
}

/* A section's state is about to change. false: no memory to remember it. */
static bool save_section(struct rfx_search *search, int index) {
    if ((size_t)search->n_trail == search->trail_capacity) {
        size_t capacity = 2 * search->trail_capacity;
        struct undo *trail =
            rfx_memory_realloc(search->mem, search->trail, capacity * sizeof *search->trail);
        if (trail == NULL) return false;
        search->trail = trail;
        search->trail_capacity = capacity;
    }
    struct undo undo = {index, search->sections[index]};
    search->trail[search->n_trail++] = undo;
    return true;
}

/* Takes back all that was done since the frame was expanded. */
static void restore(struct rfx_search *search, struct frame *frame) {
    if (frame->item >= 0) search->placed[frame->item] = false;
    frame->item = -1;
    while (search->n_trail > frame->trail_mark) {
        const struct undo *undo = &search->trail[--search->n_trail];
        search->sections[undo->index] = undo->old;
    }
    search->n_pool = frame->pool_mark;
    search->n_parts = frame->parts_mark;
}

/* The lowest offset over the tops (or, with `bases`, the bases) of an item's sections. */
static int64_t item_floor(const struct rfx_search *search, const struct item *item, bool bases) {
    int64_t floor = 0;
    for (int s = item->first; s < item->last; s++) {
        int64_t at = bases ? search->sections[s].base : search->sections[s].top;
        if (at > floor) floor = at;
    }
    return align_up(floor, item->align);
}

/* Floors of a part's items, which are put in order of falling floor. */
static void sort_by_floor(struct rfx_search *search, const struct part *part) {
    int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        int i = items[k];
        int64_t floor = item_floor(search, &search->items[i], true);
        search->floors[i] = floor;
        int at = k;
        for (; at > 0 && search->floors[items[at - 1]] < floor; at--) items[at] = items[at - 1];
        items[at] = i;
    }
}

/* Section-wise bound: items left in a section that start at f or above need their sum above f.
 * false: the part cannot be packed. Fills level (lowest floor in a section). */
static bool bounds_hold(struct rfx_search *search, const struct part *part) {
    const int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        for (int s = item->first; s < item->last; s++) search->load[s] = 0;
    }
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        int64_t floor = search->floors[items[k]];
        for (int s = item->first; s < item->last; s++) {
            search->load[s] += item->size;
            if (too_high(search, floor + search->load[s])) return false;
            search->level[s] = floor;
            search->resting[s] = 0;
        }
    }
    return true;
}

/* Whether an item that was kept from resting on a top could go back there below all that is to
 * come: then the same packing with it there is found elsewhere. */
static bool could_sink(const struct rfx_search *search, const struct item *item, int64_t rest_at) {
    for (int s = item->first; s < item->last; s++)
        if (search->level[s] < rest_at + item->size) return false;
    return true;
}

/* Counts the items that may be put at each section's level; BLOCKED where one that starts at the
 * level reaches over a lower section, so that something could still go under it. false: dominated.
 */
static bool count_resting(struct rfx_search *search, const struct part *part) {
    const int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        int64_t floor = search->floors[items[k]];
        int64_t rest_at = item_floor(search, item, false);
        if (rest_at != floor && could_sink(search, item, rest_at)) return false;
        bool waits = rest_at != floor || (item->twin >= 0 && !search->placed[item->twin]);
        int add = waits ? 0 : 1;
        for (int s = item->first; s < item->last; s++)
            if (search->level[s] != floor) add = BLOCKED;
        for (int s = item->first; s < item->last; s++)
            if (search->level[s] == floor && search->resting[s] < BLOCKED)
                search->resting[s] += add;
    }
    return true;
}

/* The section to branch on: one that is not blocked, with the fewest candidates, then the least
 * slack. The lowest level is never blocked. */
static int choose_section(const struct rfx_search *search, const struct part *part) {
    const int *items = &search->pool[part->start];
    int best = -1;
    int64_t best_slack = 0;
    for (int k = 0; k < part->count; k++) {
        const struct item *item = &search->items[items[k]];
        for (int s = item->first; s < item->last; s++) {
            if (search->resting[s] >= BLOCKED) continue;
            if (best >= 0 && search->resting[s] > search->resting[best]) continue;
            int64_t slack = search->capacity - search->level[s] - search->sections[s].rest;
            bool better = best < 0 || search->resting[s] < search->resting[best] ||
                          slack < best_slack || (slack == best_slack && s < best);
            if (!better) continue;
            best = s;
            best_slack = slack;
        }
    }
    assert(best >= 0);
    return best;
}

/* Lists the items to try at the frame's section, best rank first. */
static void list_candidates(struct rfx_search *search, struct frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int *list = &search->pool[search->n_pool];
    int n = 0;
    for (int k = 0; k < frame->part.count; k++) {
        int i = items[k];
        const struct item *item = &search->items[i];
        if (search->floors[i] != frame->level) continue;
        if (frame->section < item->first || frame->section >= item->last) continue;
        if (item->twin >= 0 && !search->placed[item->twin]) continue;
        if (item_floor(search, item, false) != frame->level) continue;
        int at = n++;
        for (; at > 0 && (search->rank[list[at - 1]] < search->rank[i] ||
                          (search->rank[list[at - 1]] == search->rank[i] && list[at - 1] > i));
             at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    frame->candidates = search->n_pool;
    frame->n_candidates = n;
    frame->next_candidate = 0;
    search->n_pool += n;
}

/* Prunes, or fills the frame with what to try. false: the part cannot be packed. */
static bool expand(struct rfx_search *search, struct frame *frame) {
    sort_by_floor(search, &frame->part);
    if (!bounds_hold(search, &frame->part) || !count_resting(search, &frame->part)) return false;
    frame->section = choose_section(search, &frame->part);
    frame->level = search->level[frame->section];
    list_candidates(search, frame);
    frame->item = -1;
    frame->trail_mark = search->n_trail;
    frame->pool_mark = search->n_pool;
    frame->parts_mark = search->n_parts;
    return true;
}

/* Where the first item of the frame's section can start if nothing starts at its level: it rests
 * on an item that is not in the section. INT64_MAX: nowhere. When even a bound is too high for the
 * capacity, the bound. */
static int64_t next_level(struct rfx_search *search, const struct frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int section = frame->section;
    int64_t next = INT64_MAX;
    sort_by_floor(search, &frame->part);
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        int64_t floor = search->floors[items[k]];
        if (floor > frame->level && floor < next) next = floor;
    }
    int64_t bound = rfx_min_i64(next, frame->level + search->min_size);
    if (bound + search->sections[section].rest > search->capacity) return bound;
    for (int k = 0; k < frame->part.count; k++) {
        const struct item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        if (search->floors[items[k]] > frame->level) continue;
        for (int j = 0; j < frame->part.count; j++) {
            const struct item *under = &search->items[items[j]];
            if (section >= under->first && section < under->last) continue;
            if (under->first >= item->last || item->first >= under->last) continue;
            int64_t at = align_up(search->floors[items[j]] + under->size, item->align);
            if (at < next) next = at;
        }
    }
    return next;
}

/* Appends a part of `count` items that start at `start` of the pool. */
static int add_part(struct rfx_search *search, int start, int count, int next, int origin) {
    struct part part = {start, count, next, origin};
    assert(search->n_parts <= search->n);
    search->parts[search->n_parts] = part;
    return search->n_parts++;
}

/* Marks which part each section of these items is in; returns the number of parts. */
static int find_parts(struct rfx_search *search, const int *items, int n) {
    int lo = search->n_sections;
    int hi = 0;
    int count = 0;
    int end = 0;
    for (int k = 0; k < n; k++) {
        const struct item *item = &search->items[items[k]];
        if (item->first < lo) lo = item->first;
        if (item->last > hi) hi = item->last;
    }
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

/* Cuts items (those at the end of the pool from `start` on) into parts; returns the first of the
 * list, which goes on with `next`. */
static int split_part(struct rfx_search *search, int start, int next, int origin) {
    int n = search->n_pool - start;
    int *items = &search->pool[start];
    int n_parts = find_parts(search, items, n);
    int done = 0; /* items before it are in parts */
    for (int p = n_parts - 1; p >= 0; p--) {
        int begin = done;
        for (int k = done; k < n; k++) { /* stable enough: falling floors stay nearly sorted */
            int i = items[k];
            if (search->part_of[search->items[i].first] != p) continue;
            items[k] = items[done];
            items[done++] = i;
        }
        next = add_part(search, start + begin, done - begin, next, origin);
    }
    return next;
}

/* Puts the frame's next candidate in place; the next part to solve into *next (-1: all solved).
 * false: no memory. */
static bool place_candidate(struct rfx_search *search, struct frame *frame, int *next) {
    int x = search->pool[frame->candidates + frame->next_candidate++];
    const struct item *item = &search->items[x];
    for (int s = item->first; s < item->last; s++) {
        if (!save_section(search, s)) return false;
        struct section *section = &search->sections[s];
        section->base = section->top = frame->level + item->size;
        section->rest -= item->size;
    }
    search->offsets[x] = frame->level;
    search->placed[x] = true;
    frame->item = x;
    int start = search->n_pool;
    for (int k = 0; k < frame->part.count; k++) {
        int i = search->pool[frame->part.start + k];
        if (i != x) search->pool[search->n_pool++] = i;
    }
    *next = frame->part.next;
    if (search->n_pool > start)
        *next = split_part(search, start, frame->part.next, (int)(frame - search->frames));
    return true;
}

/* Leaves the frame's section empty at its level. RFX_SEARCH_FOUND: there is more to try. */
static enum rfx_search_outcome raise_level(struct rfx_search *search, struct frame *frame) {
    int64_t next = next_level(search, frame);
    struct section *section = &search->sections[frame->section];
    if (next == INT64_MAX || too_high(search, next + section->rest)) return RFX_SEARCH_EXHAUSTED;
    if (!save_section(search, frame->section)) return RFX_SEARCH_LIMIT;
    section->base = next;
    search->n_pool = frame->candidates;
    return expand(search, frame) ? RFX_SEARCH_FOUND : RFX_SEARCH_EXHAUSTED;
}

/* Drops the frames above `origin`, whose part cannot be packed. */
static void go_back(struct rfx_search *search, int origin) {
    while (search->n_frames > origin + 1) {
        const struct frame *frame = &search->frames[--search->n_frames];
        if (frame->item >= 0) search->placed[frame->item] = false;
    }
}

static uint64_t item_rank(const struct rfx_search *search, const struct rfx_search_request *request,
                          int i) {
    const struct item *item = &search->items[i];
    uint64_t size = (uint64_t)item->size;
    uint64_t length = (uint64_t)(item->last - item->first);
    switch (request->order) {
        case RFX_SEARCH_AREA:
            return size > UINT64_MAX / length ? UINT64_MAX : size * length;
        case RFX_SEARCH_LENGTH:
            return length;
        case RFX_SEARCH_SIZE:
            return size;
        case RFX_SEARCH_SHUFFLED:
        case RFX_SEARCH_ORDER_COUNT:
            break;
    }
    return rfx_packer_mix(request->seed ^ rfx_packer_mix((uint64_t)i));
}

/* The state before anything is placed; returns the first part. */
static int reset(struct rfx_search *search, const struct rfx_search_request *request) {
    memset(search->sections, 0, (size_t)search->n_sections * sizeof *search->sections);
    memset(search->placed, 0, (size_t)search->n * sizeof *search->placed);
    for (int i = 0; i < search->n; i++) {
        const struct item *item = &search->items[i];
        for (int s = item->first; s < item->last; s++) search->sections[s].rest += item->size;
        search->rank[i] = item_rank(search, request, i);
        search->pool[i] = i;
    }
    search->capacity = (int64_t)request->capacity_bytes / search->unit;
    search->next_bound = INT64_MAX;
    search->n_trail = search->n_frames = search->n_parts = 0;
    search->n_pool = search->n;
    return split_part(search, 0, -1, -1);
}

/* Counts a node; whether the limits are passed. */
static bool spent(struct rfx_search *search, const struct rfx_search_request *request) {
    if (++search->visited > request->nodes) return true;
    return search->visited % CLOCK_EVERY_NODES == 0 && rfx_packer_is_past(request->deadline_ns);
}

/* Goes on from the top frame until there is a part to enter (FOUND; -1: all are solved). */
static enum rfx_search_outcome advance(struct rfx_search *search,
                                       const struct rfx_search_request *request, int *next) {
    while (search->n_frames > 0) {
        struct frame *frame = &search->frames[search->n_frames - 1];
        restore(search, frame);
        if (frame->next_candidate < frame->n_candidates)
            return place_candidate(search, frame, next) ? RFX_SEARCH_FOUND : RFX_SEARCH_LIMIT;
        if (spent(search, request)) return RFX_SEARCH_LIMIT;
        enum rfx_search_outcome outcome = raise_level(search, frame);
        if (outcome == RFX_SEARCH_LIMIT) return outcome;
        if (outcome == RFX_SEARCH_EXHAUSTED) go_back(search, frame->part.origin);
    }
    return RFX_SEARCH_EXHAUSTED;
}

static enum rfx_search_outcome run(struct rfx_search *search,
                                   const struct rfx_search_request *request) {
    int part = reset(search, request);
    while (part >= 0) {
        if (spent(search, request)) return RFX_SEARCH_LIMIT;
        struct frame *frame = &search->frames[search->n_frames];
        frame->part = search->parts[part];
        if (expand(search, frame))
            search->n_frames++;
        else
            go_back(search, frame->part.origin);
        enum rfx_search_outcome outcome = advance(search, request, &part);
        if (outcome != RFX_SEARCH_FOUND) return outcome;
    }
    return RFX_SEARCH_FOUND;
}

enum rfx_search_outcome rfx_search_probe(struct rfx_search *search,
                                         const struct rfx_search_request *request, size_t *offsets,
                                         size_t *next_bytes, uint64_t *nodes) {
    search->visited = 0;
    enum rfx_search_outcome outcome = run(search, request);
    *nodes += search->visited;
    if (outcome == RFX_SEARCH_FOUND)
        for (int i = 0; i < search->n; i++)
            offsets[i] = (size_t)(search->offsets[i] * search->unit);
    if (outcome == RFX_SEARCH_EXHAUSTED)
        *next_bytes = search->next_bound == INT64_MAX ? SIZE_MAX
                                                      : (size_t)(search->next_bound * search->unit);
    return outcome;
}
