/* Making the tables of a search; see packer_state.h. */
#include "tiler/packer/packer_state.h"

#include <string.h>

#include "layers/core/checked.h"

/* Room of the trail to begin with: where up to some sixteen items meet each it never grows. */
enum { FIRST_UNDOS_PER_ITEM = 16, FIRST_UNDOS = 64 };

/* The largest unit of which every bottom-justified offset is a multiple. An alignment that divides
 * it holds by itself. */
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

static bool is_twin(const struct rfx_search_item *a, const struct rfx_search_item *b) {
    return a->size == b->size && a->align == b->align && a->first == b->first && a->last == b->last;
}

static void set_items(struct rfx_search *search, const struct rfx_place_problem *problem) {
    search->min_size = INT64_MAX;
    for (int i = 0; i < search->n; i++) {
        const struct rfx_place_item *from = &problem->items[i];
        struct rfx_search_item *item = &search->items[i];
        int64_t align = (int64_t)from->alignment;
        item->size = (int64_t)from->size / search->unit;
        item->align = align % search->unit == 0 ? align / search->unit : 1;
        item->first = problem->first[i];
        item->last = problem->last[i];
        uint64_t total = 0, width = (uint64_t)from->hi - (uint64_t)from->lo;
        for (int s = item->first; s < item->last; s++)
            if (problem->breadth[s] > total) total = problem->breadth[s];
        item->keys[RFX_KEY_TOTAL] = total;
        item->keys[RFX_KEY_WIDTH] = width;
        item->keys[RFX_KEY_AREA] =
            from->size > UINT64_MAX / width ? UINT64_MAX : from->size * width;
        item->twin = -1;
        for (int j = i - 1; j >= 0 && item->twin < 0; j--)
            if (is_twin(item, &search->items[j])) item->twin = j;
        if (item->size < search->min_size) search->min_size = item->size;
    }
}

/* The tables of a search, for n items and so many sections. How long the lists can become: one part
 * and one frame per placed item; a frame's candidates and the items it leaves are at most the items
 * of its part. Only the trail can grow. */
/* clang-format off */
#define TABLES(X) \
    X(items, n) X(places, n) X(offsets, n) X(starts, n) X(rank, n) X(placed, n) \
    X(rest, sections) X(load, sections) X(level, sections) X(second_end, sections) \
    X(resting, sections) X(reach, sections) X(part_of, sections) \
    X(crossing, sections + 1) X(dirty, sections + 1) X(frames, n + 1) X(parts, n + 1) \
    X(trail, s->trail_capacity) X(pool, squares)
/* clang-format on */

static bool allocate(struct rfx_search *s, size_t n, size_t sections) {
    size_t squares;
    if (!rfx_checked_mul_size(n + 2, 2 * (n + 2), &squares)) return false;
    s->trail_capacity = FIRST_UNDOS_PER_ITEM * n + FIRST_UNDOS;
#define ALLOCATE(table, count) \
    if ((s->table = rfx_memory_calloc(s->mem, count, sizeof *s->table)) == NULL) return false;
    TABLES(ALLOCATE)
    return true;
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
    if (!allocate(search, n, (size_t)problem->n_sections)) {
        rfx_search_free(search);
        return rfx_memory_fail(mem, "packer tables", 2 * n * n * sizeof(struct rfx_search_part),
                               err);
    }
    set_items(search, problem);
    *out = search;
    return RFX_OK;
}

void rfx_search_free(struct rfx_search *search) {
    if (search == NULL) return;
#define RELEASE(table, count) rfx_memory_release(search->mem, search->table);
    TABLES(RELEASE)
    rfx_memory_release(search->mem, search);
}

size_t rfx_search_unit_bytes(const struct rfx_search *search) {
    return (size_t)search->unit;
}

/* Counts an item among those left, or no longer. */
static void count_left(struct rfx_search *search, int i, int by) {
    const struct rfx_search_item *item = &search->items[i];
    for (int s = item->first; s < item->last; s++) search->rest[s] += by * item->size;
    for (int b = item->first + 1; b < item->last; b++) search->crossing[b] += by;
}

void rfx_search_clear(struct rfx_search *search) {
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

bool rfx_search_lift(struct rfx_search *search, int i, int64_t at, bool rests) {
    struct rfx_search_place *place = &search->places[i];
    at = rfx_search_align(at, search->items[i].align);
    bool rises = place->floor < at;
    if (!rises && !(rests && place->rest_at < at)) return true;
    struct rfx_search_undo *trail =
        rfx_memory_reserve(search->mem, search->trail, &search->trail_capacity,
                           (size_t)search->n_trail + 1, sizeof *search->trail);
    if (trail == NULL) return false;
    search->trail = trail;
    trail[search->n_trail++] = (struct rfx_search_undo){i, *place};
    if (rises) place->floor = at;
    if (rests && place->rest_at < at) place->rest_at = at;
    return true;
}

bool rfx_search_place(struct rfx_search *search, struct rfx_search_frame *frame, int x, bool *cut) {
    const struct rfx_search_item *item = &search->items[x];
    const int *items = &search->pool[frame->part.start];
    int64_t top = frame->level + item->size;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *other = &search->items[items[k]];
        if (items[k] == x) continue;
        search->pool[search->n_pool++] = items[k];
        if (other->first >= item->last || item->first >= other->last) continue;
        if (!rfx_search_lift(search, items[k], top, true)) return false;
    }
    count_left(search, x, -1);
    *cut = false;
    for (int b = item->first + 1; b < item->last; b++) *cut |= search->crossing[b] == 0;
    search->offsets[x] = frame->level;
    search->placed[x] = true;
    frame->item = x;
    return true;
}

void rfx_search_range(const struct rfx_search *search, const struct rfx_search_part *part, int *lo,
                      int *hi) {
    const int *items = &search->pool[part->start];
    *lo = search->n_sections;
    *hi = 0;
    for (int k = 0; k < part->count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (item->first < *lo) *lo = item->first;
        if (item->last > *hi) *hi = item->last;
    }
}

void rfx_search_begin_frame(struct rfx_search *search, struct rfx_search_frame *frame, int n) {
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

void rfx_search_unplace(struct rfx_search *search, struct rfx_search_frame *frame) {
    if (frame->item < 0) return;
    count_left(search, frame->item, 1);
    search->placed[frame->item] = false;
    frame->item = -1;
}

void rfx_search_restore(struct rfx_search *search, struct rfx_search_frame *frame) {
    rfx_search_unplace(search, frame);
    while (search->n_trail > frame->trail_mark) {
        const struct rfx_search_undo *undo = &search->trail[--search->n_trail];
        search->places[undo->item] = undo->old;
    }
    search->n_pool = frame->pool_mark;
    search->n_parts = frame->parts_mark;
}

void rfx_search_sort_by_start(const struct rfx_search *search, int *items, int n) {
    for (int k = 1; k < n; k++) {
        int i = items[k], at = k;
        int64_t start = search->starts[i];
        for (; at > 0 && search->starts[items[at - 1]] < start; at--) items[at] = items[at - 1];
        items[at] = i;
    }
}
