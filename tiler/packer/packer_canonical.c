/* Ranks, candidates and levels; see packer_canonical.h. */
#include "tiler/packer/packer_canonical.h"

#include <string.h>

/* Which of three keys comes first, second and third. */
enum key { KEY_TOTAL, KEY_WIDTH, KEY_AREA, KEY_COUNT };
static const enum key keys_of[][KEY_COUNT] = {
    [RFX_SEARCH_WAT - RFX_SEARCH_SECTION_ORDERS] = {KEY_WIDTH, KEY_AREA, KEY_TOTAL},
    [RFX_SEARCH_TAW - RFX_SEARCH_SECTION_ORDERS] = {KEY_TOTAL, KEY_AREA, KEY_WIDTH},
    [RFX_SEARCH_TWA - RFX_SEARCH_SECTION_ORDERS] = {KEY_TOTAL, KEY_WIDTH, KEY_AREA},
};
_Static_assert(sizeof keys_of / sizeof *keys_of ==
                   RFX_SEARCH_ORDER_COUNT - RFX_SEARCH_SECTION_ORDERS,
               "one row per order");

static uint64_t key_of(const struct rfx_search_item *item, enum key key) {
    uint64_t length = (uint64_t)item->hi - (uint64_t)item->lo;
    switch (key) {
        case KEY_TOTAL:
            return (uint64_t)item->total;
        case KEY_WIDTH:
            return length;
        case KEY_AREA:
        case KEY_COUNT:
            break;
    }
    return (uint64_t)item->size > UINT64_MAX / length ? UINT64_MAX : (uint64_t)item->size * length;
}

static bool comes_before(const struct rfx_search *search, const enum key *keys, int i, int j) {
    for (int k = 0; k < KEY_COUNT; k++) {
        uint64_t a = key_of(&search->items[i], keys[k]);
        uint64_t b = key_of(&search->items[j], keys[k]);
        if (a != b) return a > b;
    }
    return i < j;
}

void rfx_canonical_rank(struct rfx_search *search, enum rfx_search_order order) {
    const enum key *keys = keys_of[order - RFX_SEARCH_SECTION_ORDERS];
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
    for (int k = 0; k < search->n; k++) search->rank[sorted[k]] = (uint64_t)(search->n - k);
}

/* Whether item i comes before j: it lies lower, or as low and has the higher rank. */
static bool is_earlier(const struct rfx_search *search, int i, int j) {
    if (search->floors[i] != search->floors[j]) return search->floors[i] < search->floors[j];
    if (search->rank[i] != search->rank[j]) return search->rank[i] > search->rank[j];
    return i < j;
}

/* Whether item i may be put at its floor after what the part comes from. */
static bool is_canonical(const struct rfx_search *search, const struct rfx_search_frame *frame,
                         int i) {
    const struct rfx_search_item *item = &search->items[i];
    if (item->twin >= 0 && !search->placed[item->twin]) return false;
    if (frame->part.origin < 0) return true;
    const struct rfx_search_frame *last = &search->frames[frame->part.origin];
    if (search->floors[i] != last->level) return true;
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
    for (int k = frame->part.count - 1; k >= 0; k--) { /* lowest first */
        int i = items[k];
        if (search->floors[i] >= below) break;
        if (!is_canonical(search, frame, i)) continue;
        int at = n++;
        for (; at > 0 && is_earlier(search, i, list[at - 1]); at--) list[at] = list[at - 1];
        list[at] = i;
    }
    return n;
}

bool rfx_canonical_expand(struct rfx_search *search, struct rfx_search_frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int64_t below = INT64_MAX; /* where the first item could end: it lies wholly under what is above
                                */
    rfx_search_sort_by_floor(search, &frame->part);
    if (!rfx_search_bounds_hold(search, &frame->part)) return false;
    for (int k = 0; k < frame->part.count; k++) {
        int64_t end = search->floors[items[k]] + search->items[items[k]].size;
        if (end < below) below = end;
    }
    rfx_search_begin_frame(search, frame, list_candidates(search, frame, below));
    return true;
}

bool rfx_canonical_raise(struct rfx_search *search, struct rfx_search_frame *frame, int x) {
    const struct rfx_search_item *item = &search->items[x];
    const int *items = &search->pool[frame->part.start];
    frame->level = rfx_search_item_floor(search, item, true);
    frame->is_last = true;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *other = &search->items[items[k]];
        if (items[k] != x && other->first < item->last && item->first < other->last)
            frame->is_last = false;
        for (int s = other->first; s < other->last; s++) {
            if (search->sections[s].base >= frame->level) continue;
            if (!rfx_search_save(search, s)) return false;
            search->sections[s].base = frame->level;
        }
    }
    return true;
}
