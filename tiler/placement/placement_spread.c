/* Slides with room for all of them, one after the other.
 *
 * A map that is written over another one lies a little below it, so that each map in a row of
 * slides lies below the one before, and two such rows side by side need room between them that a
 * greedy placement leaves for neither. So everything is placed as if rows died at once, so that
 * what slides lies where the other lies; which of two records lies above the other is taken from
 * that, and offsets are the least that keep all true distances in that order. */
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/placement/placement_slides.h"
#include "tiler/strategies/arena_problem.h"

enum { MOST_RECORDS = 4096 }; /* each pair is looked at */

struct spread {
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    struct rfx_slide *loose; /* [n_slides]: distances as if rows died at once */
    bool *upwards;           /* [n_slides] */
    size_t *kept, *offset;   /* [n]: as they were, and spread */
    int *order;              /* [n]: from the lowest on */
    int *slide_of;           /* [n]: of the record at hand and each other one; -1: none */
};

/* Records and where they lie, to be sorted. */
struct place {
    size_t offset;
    int first, record;
};

/* From the lowest on; of those that lie together what is made later, which will lie below. */
static int compare_places(const void *pa, const void *pb) {
    const struct place *a = pa, *b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->first != b->first) return a->first > b->first ? -1 : 1;
    return (a->record > b->record) - (a->record < b->record);
}

/* What the sizes alone ask for: of a longer map what is longer. Streams do not slide upwards. */
static void loosen(const struct spread *s) {
    for (int k = 0; k < s->n_slides; k++) {
        const struct rfx_slide *slide = &s->slides[k];
        size_t before = s->records[slide->before].bytes, after = s->records[slide->after].bytes;
        size_t down = after > before ? after - before : 0, up = before > after ? before - after : 0;
        s->loose[k] = *slide;
        if (down < slide->down) s->loose[k].down = down;
        if (up < slide->up && slide->up < before) s->loose[k].up = up;
    }
}

/* How far record i lies above record j, which is below it, at least. */
static size_t distance(const struct spread *s, int i, int j) {
    size_t apart = s->records[j].bytes;
    int k = s->slide_of[j];
    if (k < 0) return apart;
    bool i_dies = s->slides[k].before == i;
    if (i_dies == s->upwards[k]) return apart; /* it would slide the other way */
    size_t reach = i_dies ? s->slides[k].down : s->slides[k].up;
    return reach < apart ? reach : apart;
}

/* Lays all records in their order; returns the arena. */
static size_t spread_out(const struct spread *s) {
    size_t arena = 0;
    for (int o = 0; o < s->n; o++) {
        int i = s->order[o];
        for (int k = 0; k < s->n_slides; k++) {
            if (s->slides[k].before == i) s->slide_of[s->slides[k].after] = k;
            if (s->slides[k].after == i) s->slide_of[s->slides[k].before] = k;
        }
        size_t at = 0;
        for (int below = 0; below < o; below++) {
            int j = s->order[below];
            if (!rfx_records_overlap(&s->records[i], &s->records[j])) continue;
            size_t least = s->offset[j] + distance(s, i, j);
            if (least > at) at = least;
        }
        s->offset[i] = rfx_align_up(at);
        if (s->offset[i] + s->records[i].bytes > arena) arena = s->offset[i] + s->records[i].bytes;
        for (int k = 0; k < s->n_slides; k++)
            s->slide_of[s->slides[k].before] = s->slide_of[s->slides[k].after] = -1;
    }
    return arena;
}

static enum rfx_status sort_places(struct rfx_memory *mem, const struct spread *s,
                                   struct rfx_error *err) {
    size_t bytes = (size_t)s->n * sizeof(struct place);
    struct place *places = rfx_memory_alloc(mem, bytes);
    if (places == NULL) return rfx_memory_fail(mem, "row placement", bytes, err);
    for (int i = 0; i < s->n; i++)
        places[i] = (struct place){s->records[i].offset, s->records[i].first, i};
    qsort(places, (size_t)s->n, sizeof *places, compare_places);
    for (int i = 0; i < s->n; i++) s->order[i] = places[i].record;
    rfx_memory_release(mem, places);
    return RFX_OK;
}

/* Tries it, where it may be better than what the records have; keeps what is. */
static enum rfx_status try_spread(struct rfx_memory *mem, struct spread *s,
                                  struct rfx_record *records, bool quick, size_t bound,
                                  bool *upwards, size_t *arena_bytes, struct rfx_error *err) {
    size_t loose_arena;
    loosen(s);
    for (int i = 0; i < s->n; i++) s->kept[i] = records[i].offset;
    enum rfx_status status = rfx_slides_place_greedily(mem, records, s->n, s->loose, s->n_slides,
                                                       quick, bound, s->upwards, &loose_arena, err);
    bool worth_it = status == RFX_OK && loose_arena < *arena_bytes;
    if (worth_it) status = sort_places(mem, s, err);
    size_t arena = worth_it && status == RFX_OK ? spread_out(s) : SIZE_MAX;
    bool better = arena < *arena_bytes;
    for (int i = 0; i < s->n; i++) records[i].offset = better ? s->offset[i] : s->kept[i];
    if (!better) return status;
    if (!rfx_place_is_valid(records, s->n, s->slides, s->n_slides, s->upwards, arena))
        return rfx_place_fail_check("spread rows", s->n, err);
    memcpy(upwards, s->upwards, (size_t)s->n_slides * sizeof *upwards);
    *arena_bytes = arena;
    return RFX_OK;
}

enum rfx_status rfx_slides_place(struct rfx_memory *mem, struct rfx_record *records, int n,
                                 const struct rfx_slide *slides, int n_slides, bool quick,
                                 size_t bound, bool *upwards, size_t *arena_bytes,
                                 struct rfx_error *err) {
    enum rfx_status status = rfx_slides_place_greedily(mem, records, n, slides, n_slides, quick,
                                                       bound, upwards, arena_bytes, err);
    if (status != RFX_OK || *arena_bytes <= bound || n_slides < 2 || n > MOST_RECORDS)
        return status;
    struct spread s = {.records = records, .slides = slides, .n = n, .n_slides = n_slides};
    size_t count = (size_t)n;
    s.loose = rfx_memory_calloc(mem, (size_t)n_slides, sizeof *s.loose);
    s.upwards = rfx_memory_calloc(mem, (size_t)n_slides, sizeof *s.upwards);
    s.kept = rfx_memory_calloc(mem, 2 * count, sizeof *s.kept);
    s.order = rfx_memory_calloc(mem, 2 * count, sizeof *s.order);
    if (s.loose == NULL || s.upwards == NULL || s.kept == NULL || s.order == NULL) {
        status = rfx_memory_fail(mem, "row placement", count * sizeof *s.kept, err);
    } else {
        s.offset = s.kept + n;
        s.slide_of = s.order + n;
        for (int i = 0; i < n; i++) s.slide_of[i] = -1;
        status = try_spread(mem, &s, records, quick, bound, upwards, arena_bytes, err);
    }
    rfx_memory_release(mem, s.order);
    rfx_memory_release(mem, s.kept);
    rfx_memory_release(mem, s.upwards);
    rfx_memory_release(mem, s.loose);
    return status;
}
