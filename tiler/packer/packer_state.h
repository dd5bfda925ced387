/* What the exact search works on: its tables, where each item may lie, and how to go back.
 *
 * All sizes here are in units of rfx_search_unit_bytes. A boundary b lies between sections b - 1
 * and b. Invariants: 1. floors only rise on the way down the tree, and each rise is in the trail;
 * 2. the parts of a frame's items lie in ranges of sections that do not overlap. */
#ifndef RFX_TILER_PACKER_PACKER_STATE_H
#define RFX_TILER_PACKER_PACKER_STATE_H

#include "tiler/packer/packer_search.h"

/* What items are ranked by: the bytes of their fullest section, their time, size times time. */
enum rfx_search_key { RFX_KEY_TOTAL, RFX_KEY_WIDTH, RFX_KEY_AREA, RFX_KEY_COUNT };

struct rfx_search_item {
    int64_t size, align;
    int first, last; /* sections */
    uint64_t keys[RFX_KEY_COUNT];
    int twin; /* the previous equal item, or -1 */
};

/* An item can start at `floor` or above; `rest_at` <= floor is the end of what is placed below it.
 * Both are aligned. */
struct rfx_search_place {
    int64_t floor, rest_at;
};

struct rfx_search_undo {
    int item;
    struct rfx_search_place old;
};

/* Items that no other items left meet in time, to be packed on their own. */
struct rfx_search_part {
    int start, count; /* in pool */
    int next;         /* the part to solve after this one, or -1 */
    int origin;       /* the frame to go on with when this part cannot be packed, or -1 */
};

struct rfx_search_frame {
    struct rfx_search_part part;
    int trail_mark, pool_mark, parts_mark;
    int section, item;                            /* item: being tried, or -1 */
    int candidates, n_candidates, next_candidate; /* in pool */
    int64_t level;                                /* where the candidates go */
    bool is_last;                                 /* no other candidate can do better (hatless) */
};

struct rfx_search {
    struct rfx_memory *mem;
    int n, n_sections;
    int64_t unit, min_size;
    struct rfx_search_item *items;
    struct rfx_search_place *places; /* per item */
    int64_t *offsets;                /* per item */
    int64_t *starts;                 /* per item: the lowest start that the rule allows */
    int64_t *rest;                   /* per section: bytes of the items left */
    int64_t *load, *level;           /* per section */
    int64_t *second_end;             /* per section, of packer_canonical.c */
    int *resting;                    /* per section: items that may be put at its level */
    int *crossing;                   /* per boundary: items left on both sides */
    int *dirty;                      /* per boundary: sections before it to look at anew */
    int *reach, *part_of;            /* per section, of split_part */
    uint64_t *rank;                  /* per item: the higher, the earlier it is tried */
    bool *placed;
    struct rfx_search_undo *trail;
    struct rfx_search_frame *frames;
    struct rfx_search_part *parts;
    int *pool;
    int n_trail, n_frames, n_parts, n_pool;
    size_t trail_capacity;
    bool by_rising_offset; /* the rule that it branches by; else by section */
    int64_t capacity, next_bound;
    uint64_t visited;
};

/* Nothing is placed, all floors are 0. */
void rfx_search_clear(struct rfx_search *search);

/* Item i can only start at `at` or above; `rests`: because something placed ends there. false: no
 * memory to remember what was. */
RFX_NODISCARD bool rfx_search_lift(struct rfx_search *search, int i, int64_t at, bool rests);

/* Item x is placed at the frame's level: lifts the frame's items above it, and writes all others of
 * its part behind the end of the pool. *cut: nothing left goes on over some boundary inside x.
 * false: no memory. O(items). */
RFX_NODISCARD bool rfx_search_place(struct rfx_search *search, struct rfx_search_frame *frame,
                                    int x, bool *cut);

/* Sections [*lo, *hi) that the part's items are in. */
void rfx_search_range(const struct rfx_search *search, const struct rfx_search_part *part, int *lo,
                      int *hi);

/* Begins a frame whose n candidates were written behind the end of the pool: none is tried yet, and
 * this is the state that rfx_search_restore goes back to. */
void rfx_search_begin_frame(struct rfx_search *search, struct rfx_search_frame *frame, int n);

/* Takes the frame's item out again. */
void rfx_search_unplace(struct rfx_search *search, struct rfx_search_frame *frame);

/* Takes back all that was done since the frame was begun; later frames are gone. */
void rfx_search_restore(struct rfx_search *search, struct rfx_search_frame *frame);

/* Writes the items of a list with search->starts in falling order; nearly sorted ones take O(n). */
void rfx_search_sort_by_start(const struct rfx_search *search, int *items, int n);

/* `value` rounded up to a multiple of `align`. */
static inline int64_t rfx_search_align(int64_t value, int64_t align) {
    return align == 1 ? value : (value + align - 1) / align * align;
}

/* Whether `bound` passes the capacity; remembers the smallest that does. */
static inline bool rfx_search_is_too_high(struct rfx_search *search, int64_t bound) {
    if (bound <= search->capacity) return false;
    if (bound < search->next_bound) search->next_bound = bound;
    return true;
}
#endif
