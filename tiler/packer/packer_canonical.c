/* Ranks, candidates and levels; see packer_rules.h. */
#include "tiler/packer/packer_rules.h"

#include <string.h>

#include "tiler/packer/packer_hash.h"

/* Which of the keys comes first, second and third. */
static const enum rfx_search_key keys_of[][RFX_KEY_COUNT] = {
    [RFX_SEARCH_WAT - RFX_SEARCH_SECTION_ORDERS] = {RFX_KEY_WIDTH, RFX_KEY_AREA, RFX_KEY_TOTAL},
    [RFX_SEARCH_TAW - RFX_SEARCH_SECTION_ORDERS] = {RFX_KEY_TOTAL, RFX_KEY_AREA, RFX_KEY_WIDTH},
    [RFX_SEARCH_TWA - RFX_SEARCH_SECTION_ORDERS] = {RFX_KEY_TOTAL, RFX_KEY_WIDTH, RFX_KEY_AREA},
    [RFX_SEARCH_WAT_SHUFFLED -
        RFX_SEARCH_SECTION_ORDERS] = {RFX_KEY_WIDTH, RFX_KEY_AREA, RFX_KEY_TOTAL},
};
_Static_assert(sizeof keys_of / sizeof *keys_of ==
                   RFX_SEARCH_ORDER_COUNT - RFX_SEARCH_SECTION_ORDERS,
               "one row per order");

static bool comes_before(const struct rfx_search *search, const enum rfx_search_key *keys, int i,
                         int j) {
    for (int k = 0; k < RFX_KEY_COUNT; k++) {
        uint64_t a = search->items[i].keys[keys[k]], b = search->items[j].keys[keys[k]];
        if (a != b) return a > b;
    }
    return i < j;
}

void rfx_canonical_rank(struct rfx_search *search, enum rfx_search_order order, uint64_t seed) {
    const enum rfx_search_key *keys = keys_of[order - RFX_SEARCH_SECTION_ORDERS];
    int *sorted = search->pool; /* of no other use yet */
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
    /* By chance an item moves by up to 5/4 of all places; 1/2 and 6 find fewer answers. */
    uint64_t most = order == RFX_SEARCH_WAT_SHUFFLED ? 5 * (uint64_t)search->n : 1;
    for (int k = 0; k < search->n; k++) {
        uint64_t chance = rfx_packer_mix(seed ^ rfx_packer_mix((uint64_t)sorted[k])) % most;
        search->rank[sorted[k]] = 4 * (uint64_t)(search->n - k) + chance;
    }
}

/* Where nothing of the part starts below any more: where the last item of it was placed. */
static int64_t low_of(const struct rfx_search *search, const struct rfx_search_frame *frame) {
    return frame->part.origin < 0 ? 0 : search->frames[frame->part.origin].level;
}

static int64_t start_of(const struct rfx_search *search, int i, int64_t low) {
    int64_t floor = search->places[i].floor;
    return floor >= low ? floor : rfx_search_align(low, search->items[i].align);
}

/* Whether item i comes before j: it lies lower, or as low and has the higher rank. */
static bool is_earlier(const struct rfx_search *search, int i, int j) {
    if (search->starts[i] != search->starts[j]) return search->starts[i] < search->starts[j];
    if (search->rank[i] != search->rank[j]) return search->rank[i] > search->rank[j];
    return i < j;
}

/* Whether item i may be put at its start after what the part comes from. */
static bool is_canonical(const struct rfx_search *search, const struct rfx_search_frame *frame,
                         int i) {
    const struct rfx_search_item *item = &search->items[i];
    if (item->twin >= 0 && !search->placed[item->twin]) return false;
    if (frame->part.origin < 0) return true;
    const struct rfx_search_frame *last = &search->frames[frame->part.origin];
    if (search->starts[i] != last->level) return true;
    if (search->rank[i] != search->rank[last->item])
        return search->rank[i] < search->rank[last->item];
    return i > last->item;
}

/* Lists the items to try, lowest first, behind the end of the pool; their number. */
static int list_candidates(struct rfx_search *search, const struct rfx_search_frame *frame,
                           int64_t below) {
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

/* What is looked at of a part: sections [lo, hi), and `some` items, those of the dirty sections. */
struct view {
    const struct rfx_search_frame *frame;
    int64_t low;
    int lo, hi;
    int *some, n;
};

/* Marks the sections in which a floor has risen since the trail was `from` long, and lists their
 * items in order of falling start. */
static void list_dirty(struct rfx_search *search, struct view *view, int from) {
    const int *items = &search->pool[view->frame->part.start];
    int lo = view->lo, hi = view->hi;
    memset(&search->dirty[lo], 0, (size_t)(hi - lo + 1) * sizeof *search->dirty);
    for (int k = from; k < search->n_trail; k++) {
        const struct rfx_search_item *item = &search->items[search->trail[k].item];
        if (item->first < lo || item->last > hi) continue; /* of another part */
        for (int s = item->first; s < item->last; s++) search->dirty[s + 1] = 1;
    }
    for (int s = lo; s < hi; s++) search->dirty[s + 1] += search->dirty[s];
    view->n = 0;
    for (int k = 0; k < view->frame->part.count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (search->dirty[item->last] > search->dirty[item->first])
            view->some[view->n++] = items[k];
    }
    rfx_search_sort_by_start(search, view->some, view->n);
}

/* The items left that start at f or above need their sum above f. Fills first_end, second_end and
 * `resting`: where, of the items of a dirty section, one could end first, which one that is, and
 * where another could. false: the part cannot be packed. */
static bool sums_fit(struct rfx_search *search, const struct view *view) {
    for (int s = view->lo; s < view->hi; s++) {
        search->load[s] = 0;
        search->level[s] = search->second_end[s] = INT64_MAX;
    }
    for (int k = 0; k < view->n; k++) {
        int i = view->some[k];
        const struct rfx_search_item *item = &search->items[i];
        int64_t start = search->starts[i], end = start + item->size;
        for (int s = item->first; s < item->last; s++) {
            search->load[s] += item->size;
            if (rfx_search_is_too_high(search, start + search->load[s])) return false;
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

/* An item above whose floor not all that is left of a section has room is not the lowest there, so
 * it lies above another one: lifts its floor. Capacities at which that does not follow are above
 * next_bound. false: no memory. */
static bool lift_not_lowest(struct rfx_search *search, const struct view *view) {
    for (int k = 0; k < view->n; k++) {
        int i = view->some[k];
        const struct rfx_search_item *item = &search->items[i];
        int64_t start = search->starts[i], lifted = start;
        for (int s = item->first; s < item->last; s++) {
            if (start + search->rest[s] <= search->capacity) continue;
            if (search->dirty[s + 1] == search->dirty[s]) continue;
            int64_t other = search->resting[s] == i ? search->second_end[s] : search->level[s];
            if (other <= start) continue;
            (void)rfx_search_is_too_high(search, start + search->rest[s]);
            if (other > lifted) lifted = other;
        }
        if (lifted > start && !rfx_search_lift(search, i, lifted, false)) return false;
    }
    return true;
}

/* Section inference, where floors have risen since the part's origin placed its item, until none
 * rises any more. *fits: the part may be packed. false: no memory. */
static bool infer(struct rfx_search *search, struct view *view, bool *fits) {
    int origin = view->frame->part.origin;
    int from = origin < 0 ? 0 : search->frames[origin].trail_mark;
    int64_t most = 0;
    *fits = false;
    for (int s = view->lo; s < view->hi; s++)
        if (search->rest[s] > most) most = search->rest[s];
    if (most > 0 && rfx_search_is_too_high(search, view->low + most)) return true;
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

bool rfx_canonical_expand(struct rfx_search *search, struct rfx_search_frame *frame, bool *fits) {
    const int *items = &search->pool[frame->part.start];
    struct view view = {.frame = frame,
                        .low = low_of(search, frame),
                        .some = &search->pool[search->n_pool]}; /* of no other use yet */
    rfx_search_range(search, &frame->part, &view.lo, &view.hi);
    for (int k = 0; k < frame->part.count; k++)
        search->starts[items[k]] = start_of(search, items[k], view.low);
    if (!infer(search, &view, fits)) return false;
    if (!*fits) return true;
    int64_t below = INT64_MAX; /* where an item could end: it lies wholly under what is above */
    for (int k = 0; k < frame->part.count; k++) {
        int64_t end = search->starts[items[k]] + search->items[items[k]].size;
        if (end < below) below = end;
    }
    rfx_search_begin_frame(search, frame, list_candidates(search, frame, below));
    return true;
}

void rfx_canonical_begin(struct rfx_search *search, struct rfx_search_frame *frame, int x) {
    const struct rfx_search_item *item = &search->items[x];
    const int *items = &search->pool[frame->part.start];
    frame->level = start_of(search, x, low_of(search, frame));
    frame->is_last = true;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *other = &search->items[items[k]];
        if (items[k] != x && other->first < item->last && item->first < other->last)
            frame->is_last = false;
    }
}
