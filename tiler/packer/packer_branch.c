/* Bounds, dominance and the choice of a section; see packer_rules.h. */
#include "tiler/packer/packer_rules.h"

#include <assert.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/packer/packer.h"

/* In place of a count of items: not to be branched on. Twice as much still fits an int. */
enum { BLOCKED = 1 << 28 };
_Static_assert((int)BLOCKED > RFX_PACKER_MAX_ITEMS, "no count of items is BLOCKED");

/* Section-wise bound: items left in a section that start at f or above need their sum above f.
 * false: the part cannot be packed. Fills level, the lowest floor in a section. Puts the items in
 * order of falling floor. */
static bool bounds_hold(struct rfx_search *search, const struct rfx_search_part *part) {
    int *items = &search->pool[part->start];
    int lo, hi;
    rfx_search_range(search, part, &lo, &hi);
    memset(&search->load[lo], 0, (size_t)(hi - lo) * sizeof *search->load);
    memset(&search->resting[lo], 0, (size_t)(hi - lo) * sizeof *search->resting);
    for (int k = 0; k < part->count; k++) search->starts[items[k]] = search->places[items[k]].floor;
    rfx_search_sort_by_start(search, items, part->count);
    for (int k = 0; k < part->count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        int64_t floor = search->starts[items[k]];
        for (int s = item->first; s < item->last; s++) {
            search->load[s] += item->size;
            if (rfx_search_is_too_high(search, floor + search->load[s])) return false;
            search->level[s] = floor;
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

/* The section to branch on: one that is not blocked, with the fewest candidates, then the least
 * slack. The lowest level is never blocked. */
static int choose_section(const struct rfx_search *search, const struct rfx_search_part *part) {
    int best = -1, lo, hi;
    int64_t best_slack = 0;
    rfx_search_range(search, part, &lo, &hi);
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

/* Lists the items to try at the frame's section, best rank first, behind the end of the pool; their
 * number. */
static int list_candidates(struct rfx_search *search, const struct rfx_search_frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int *list = &search->pool[search->n_pool];
    int n = 0;
    for (int k = 0; k < frame->part.count; k++) {
        int i = items[k];
        const struct rfx_search_item *item = &search->items[i];
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

bool rfx_branch_expand(struct rfx_search *search, struct rfx_search_frame *frame) {
    if (!bounds_hold(search, &frame->part) || !count_resting(search, &frame->part)) return false;
    frame->section = choose_section(search, &frame->part);
    frame->level = search->level[frame->section];
    rfx_search_begin_frame(search, frame, list_candidates(search, frame));
    return true;
}

/* Where the first item of the frame's section can start if nothing starts at its level: it rests
 * on an item that is not in the section. INT64_MAX: nowhere. When even a bound is too high for the
 * capacity, the bound. */
static int64_t next_level(const struct rfx_search *search, const struct rfx_search_frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int section = frame->section;
    int64_t next = INT64_MAX;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        int64_t floor = search->places[items[k]].floor;
        if (floor > frame->level && floor < next) next = floor;
    }
    int64_t bound = rfx_min_i64(next, frame->level + search->min_size);
    if (bound + search->rest[section] > search->capacity) return bound;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        if (search->places[items[k]].floor > frame->level) continue;
        for (int j = 0; j < frame->part.count; j++) {
            const struct rfx_search_item *under = &search->items[items[j]];
            if (section >= under->first && section < under->last) continue;
            if (under->first >= item->last || item->first >= under->last) continue;
            int64_t at =
                rfx_search_align(search->places[items[j]].floor + under->size, item->align);
            if (at < next) next = at;
        }
    }
    return next;
}

enum rfx_search_outcome rfx_branch_go_without(struct rfx_search *search,
                                              struct rfx_search_frame *frame) {
    const int *items = &search->pool[frame->part.start];
    int section = frame->section;
    int64_t next = next_level(search, frame);
    if (next == INT64_MAX || rfx_search_is_too_high(search, next + search->rest[section]))
        return RFX_SEARCH_EXHAUSTED;
    for (int k = 0; k < frame->part.count; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
        if (section < item->first || section >= item->last) continue;
        if (!rfx_search_lift(search, items[k], next, false)) return RFX_SEARCH_LIMIT;
    }
    search->n_pool = frame->candidates;
    return rfx_branch_expand(search, frame) ? RFX_SEARCH_FOUND : RFX_SEARCH_EXHAUSTED;
}
