/* What the exact search works on: its tables, the state of each section, and how to go back.
 *
 * All sizes here are in units of rfx_search_unit_bytes. Only packer_search.c and packer_branch.c
 * include it. */
#ifndef RFX_TILER_PACKER_PACKER_STATE_H
#define RFX_TILER_PACKER_PACKER_STATE_H

#include "tiler/packer/packer_search.h"

struct rfx_search_item {
    int64_t size, align;
    int64_t lo, hi;  /* times */
    int first, last; /* sections */
    int64_t total;   /* the fullest of them */
    int twin;        /* the previous equal item, or -1 */
};

/* `top` is the end of what is placed, `base` >= top the lowest place where anything may still
 * start, `rest` what is left to place. */
struct rfx_search_section {
    int64_t base, top, rest;
};

struct rfx_search_undo {
    int index;
    struct rfx_search_section old;
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
    struct rfx_search_section *sections;
    int64_t *offsets;      /* per item */
    int64_t *floors;       /* per item: the highest base of its sections, aligned */
    int64_t *load, *level; /* per section */
    int *resting;          /* per section: items that may be put at its level */
    int *reach, *part_of;  /* per section, of split_part */
    uint64_t *rank;        /* per item: the higher, the earlier it is tried */
    bool *placed;
    struct rfx_search_undo *trail;
    struct rfx_search_frame *frames;
    struct rfx_search_part *parts;
    int *pool;
    int n_trail, n_frames, n_parts, n_pool;
    size_t trail_capacity;
    int rule; /* 0: by section, 1: canonical */
    int64_t capacity, next_bound;
    uint64_t visited;
};

/* Floors of a part's items, which are put in order of falling floor. */
void rfx_search_sort_by_floor(struct rfx_search *search, const struct rfx_search_part *part);

/* Section-wise bound: items left in a section that start at f or above need their sum above f.
 * false: the part cannot be packed. Fills level (lowest floor in a section). After
 * rfx_search_sort_by_floor. */
RFX_NODISCARD bool rfx_search_bounds_hold(struct rfx_search *search,
                                          const struct rfx_search_part *part);

/* A section's state is about to change. false: no memory to remember it. */
RFX_NODISCARD bool rfx_search_save(struct rfx_search *search, int index);

/* Begins a frame whose n candidates were written behind the end of the pool: none is tried yet, and
 * this is the state that rfx_search_restore goes back to. */
void rfx_search_begin_frame(struct rfx_search *search, struct rfx_search_frame *frame, int n);

/* Takes back all that was done since the frame was begun. */
void rfx_search_restore(struct rfx_search *search, struct rfx_search_frame *frame);

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

/* The lowest offset over the tops (or, with `bases`, the bases) of an item's sections. */
static inline int64_t rfx_search_item_floor(const struct rfx_search *search,
                                            const struct rfx_search_item *item, bool bases) {
    int64_t floor = 0;
    for (int s = item->first; s < item->last; s++) {
        int64_t at = bases ? search->sections[s].base : search->sections[s].top;
        if (at > floor) floor = at;
    }
    return rfx_search_align(floor, item->align);
}
#endif
