/* Bounds, dominance and the choice of a section; see packer_branch.h. */
#include "tiler/packer/packer_branch.h"

#include <assert.h>

#include "layers/core/checked.h"
#include "tiler/packer/packer.h"

/* In place of a count of items: not to be branched on. Twice as much still fits an int. */
enum { BLOCKED = 1 << 28 };
_Static_assert((int)BLOCKED > RFX_PACKER_MAX_ITEMS, "no count of items is BLOCKED");

void rfx_search_sort_by_floor(struct rfx_search *search, const struct rfx_search_part *part) {
    int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        int i = items[k];
        int64_t floor = rfx_search_item_floor(search, &search->items[i], true);
        search->floors[i] = floor;
        int at = k;
        for (; at > 0 && search->floors[items[at - 1]] < floor; at--) items[at] = items[at - 1];
        items[at] = i;
    }
}

bool rfx_search_bounds_hold(struct rfx_search *search, const struct rfx_search_part *part) {
    const int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        for (int s = item->first; s < item->last; s++) search->load[s] = 0;
    }
    for (int k = 0; k < part->count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        int64_t floor = search->floors[items[k]];
        for (int s = item->first; s < item->last; s++) {
            search->load[s] += item->size;
            if (rfx_search_is_too_high(search, floor + search->load[s])) return false;
            search->level[s] = floor;
            search->resting[s] = 0;
        }
    }
    return true;
}

/* Whether an item that was kept from resting on a top could go back there below all that is to
 * come: then the same packing with it there is found elsewhere. */
static bool could_sink(const struct rfx_search *search, const struct rfx_search_item *item,
                       int64_t rest_at) {
    for (int s = item->first; s < item->last; s++)
        if (search->level[s] < rest_at + item->size) return false;
    return true;
}

/* Counts the items that may be put at each section's level; BLOCKED where one that starts at the
 * level reaches over a lower section, so that something could still go under it. false: dominated.
 */
static bool count_resting(struct rfx_search *search, const struct rfx_search_part *part) {
    const int *items = &search->pool[part->start];
    for (int k = 0; k < part->count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        int64_t floor = search->floors[items[k]];
        int64_t rest_at = rfx_search_item_floor(search, item, false);
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
static int choose_section(const struct rfx_search *search, const struct rfx_search_part *part) {
    const int *items = &search->pool[part->start];
    int best = -1;
    int64_t best_slack = 0;
    for (int k = 0; k < part->count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
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

/* Lists the items to try at the frame's section, best rank first, behind the end of the pool; their
 * number. */
static int list_candidates(struct rfx_search *search, const struct rfx_search_frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int *list = &search->pool[search->n_pool];
    int n = 0;
    for (int k = 0; k < frame->part.count; k++) {
        int i = items[k];
        const struct rfx_search_item *item = &search->items[i];
        if (search->floors[i] != frame->level) continue;
        if (frame->section < item->first || frame->section >= item->last) continue;
        if (item->twin >= 0 && !search->placed[item->twin]) continue;
        if (rfx_search_item_floor(search, item, false) != frame->level) continue;
        int at = n++;
        for (; at > 0 && (search->rank[list[at - 1]] < search->rank[i] ||
                          (search->rank[list[at - 1]] == search->rank[i] && list[at - 1] > i));
             at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    return n;
}

bool rfx_search_expand(struct rfx_search *search, struct rfx_search_frame *frame) {
    rfx_search_sort_by_floor(search, &frame->part);
    if (!rfx_search_bounds_hold(search, &frame->part) || !count_resting(search, &frame->part))
        return false;
    frame->section = choose_section(search, &frame->part);
    frame->level = search->level[frame->section];
    rfx_search_begin_frame(search, frame, list_candidates(search, frame));
    return true;
}

int64_t rfx_search_next_level(struct rfx_search *search, const struct rfx_search_frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int section = frame->section;
    int64_t next = INT64_MAX;
    rfx_search_sort_by_floor(search, &frame->part);
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        int64_t floor = search->floors[items[k]];
        if (floor > frame->level && floor < next) next = floor;
    }
    int64_t bound = rfx_min_i64(next, frame->level + search->min_size);
    if (bound + search->sections[section].rest > search->capacity) return bound;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        if (search->floors[items[k]] > frame->level) continue;
        for (int j = 0; j < frame->part.count; j++) {
            const struct rfx_search_item *under = &search->items[items[j]];
            if (section >= under->first && section < under->last) continue;
            if (under->first >= item->last || item->first >= under->last) continue;
            int64_t at = rfx_search_align(search->floors[items[j]] + under->size, item->align);
            if (at < next) next = at;
        }
    }
    return next;
}
