/* Branch and bound over canonical packings, without recursion: frames, and a list of the parts
 * still to be solved. What is tried where: packer_rules.h; what it works on: packer_state.h.
 *
 * Invariant: items are placed by rising offsets within a part, so an item put at its floor rests on
 * a top. */
#include "tiler/packer/packer_search.h"

#include <assert.h>
#include <string.h>

#include "tiler/packer/packer_hash.h"
#include "tiler/packer/packer_rules.h"
#include "tiler/packer/packer_state.h"

/* A node takes time with the number of items, at the beginning with its square: so many items are
 * looked at between two looks at the clock, seldom enough to cost nothing, and far below the time
 * of any limit. Where there is a limit of nodes alone the clock decides nothing. */
enum { CLOCK_EVERY_ITEMS = 8192 };

/* Appends a part of `count` items that start at `start` of the pool. */
static int add_part(struct rfx_search *search, int start, int count, int next, int origin) {
    struct rfx_search_part part = {start, count, next, origin};
    assert(search->n_parts <= search->n);
    search->parts[search->n_parts] = part;
    return search->n_parts++;
}

/* Marks which part each section of these items of the pool is in; returns the number of parts. */
static int find_parts(struct rfx_search *search, int start, int n) {
    const int *items = &search->pool[start];
    const struct rfx_search_part all = {start, n, -1, -1};
    int lo, hi, count = 0, end = 0;
    rfx_search_range(search, &all, &lo, &hi);
    for (int s = lo; s < hi; s++) search->reach[s] = 0;
    for (int k = 0; k < n; k++) {
        const struct rfx_search_item *item = &search->items[items[k]];
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
    int n_parts = find_parts(search, start, n);
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
static bool place_candidate(struct rfx_search *search, struct rfx_search_frame *frame, int *next) {
    int x = search->pool[frame->candidates + frame->next_candidate++];
    int start = search->n_pool;
    bool cut;
    if (search->by_rising_offset) rfx_canonical_begin(search, frame, x);
    if (!rfx_search_place(search, frame, x, &cut)) return false;
    int origin = (int)(frame - search->frames);
    *next = frame->part.next;
    if (cut)
        *next = split_part(search, start, frame->part.next, origin);
    else if (search->n_pool > start)
        *next = add_part(search, start, search->n_pool - start, frame->part.next, origin);
    return true;
}

/* Drops the frames above `origin`, whose part cannot be packed. */
static void go_back(struct rfx_search *search, int origin) {
    while (search->n_frames > origin + 1)
        rfx_search_unplace(search, &search->frames[--search->n_frames]);
}

static uint64_t item_rank(const struct rfx_search *search, const struct rfx_search_request *request,
                          int i) {
    const struct rfx_search_item *item = &search->items[i];
    uint64_t size = (uint64_t)item->size;
    uint64_t length = (uint64_t)(item->last - item->first);
    if (request->order == RFX_SEARCH_AREA)
        return size > UINT64_MAX / length ? UINT64_MAX : size * length;
    if (request->order == RFX_SEARCH_LENGTH) return length;
    if (request->order == RFX_SEARCH_SIZE) return size;
    return rfx_packer_mix(request->seed ^ rfx_packer_mix((uint64_t)i));
}

/* The state before anything is placed; returns the first part. */
static int reset(struct rfx_search *search, const struct rfx_search_request *request) {
    if (request->order >= RFX_SEARCH_SECTION_ORDERS)
        rfx_canonical_rank(search, request->order, request->seed);
    else
        for (int i = 0; i < search->n; i++) search->rank[i] = item_rank(search, request, i);
    rfx_search_clear(search);
    search->by_rising_offset = request->order >= RFX_SEARCH_SECTION_ORDERS;
    search->capacity = (int64_t)request->capacity_bytes / search->unit;
    search->next_bound = INT64_MAX;
    return split_part(search, 0, -1, -1);
}

/* Fills the frame with what to try; *fits: there may be a packing of its part. false: no memory. */
static bool expand(struct rfx_search *search, struct rfx_search_frame *frame, bool *fits) {
    if (search->by_rising_offset) return rfx_canonical_expand(search, frame, fits);
    *fits = rfx_branch_expand(search, frame);
    return true;
}

/* Counts a node; whether the limits are passed. */
static bool spent(struct rfx_search *search, const struct rfx_search_request *request) {
    if (++search->visited > request->nodes) return true;
    uint64_t every = 1 + CLOCK_EVERY_ITEMS / (uint64_t)search->n;
    return search->visited % every == 0 && rfx_place_must_stop(search->mem, request->stop);
}

/* Goes on from the top frame until there is a part to enter (FOUND; -1: all are solved). */
static enum rfx_search_outcome advance(struct rfx_search *search,
                                       const struct rfx_search_request *request, int *next) {
    while (search->n_frames > 0) {
        struct rfx_search_frame *frame = &search->frames[search->n_frames - 1];
        rfx_search_restore(search, frame);
        if (frame->next_candidate < frame->n_candidates && !frame->is_last)
            return place_candidate(search, frame, next) ? RFX_SEARCH_FOUND : RFX_SEARCH_LIMIT;
        if (spent(search, request)) return RFX_SEARCH_LIMIT;
        enum rfx_search_outcome outcome = RFX_SEARCH_EXHAUSTED;
        if (!search->by_rising_offset) outcome = rfx_branch_go_without(search, frame);
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
        struct rfx_search_frame *frame = &search->frames[search->n_frames];
        frame->part = search->parts[part];
        bool fits;
        if (!expand(search, frame, &fits)) return RFX_SEARCH_LIMIT;
        if (fits)
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
