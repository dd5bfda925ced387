/* Greedy placement with pairwise distances. A record goes to the lowest offset at which it keeps
 * its distance from every placed record alive with it; the distance of two records in a slide is
 * the slide's, and choosing one side fixes the direction of that node. */
#include "tiler/placement/placement_slides.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/strategies/placement_problem.h"

/* How many changed orders are tried after the fixed ones where the bound is not met. Quick ones
 * serve the planner, which compares many plans; as in placement.c plans hang on both values. */
enum { SHUFFLES = 160, QUICK_SHUFFLES = 12 };

/* Start of the generator (Marsaglia 2003, xorshift32, with his example's seed): a constant, so that
 * a placement is a function of the records. */
static const uint32_t random_seed = 2463534242U;

/* Paper 004, section III-A, and the order of time. */
enum order { ORDER_SIZE, ORDER_LIFETIME, ORDER_PEERS, ORDER_TIME, ORDER_COUNT };

enum direction { OPEN, DOWN, UP };

/* A record that may not simply share bytes with another. */
struct peer {
    int record;
    int slide; /* -1: none, they must be apart */
};

struct slides {
    struct rfx_memory *mem;
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    struct peer *peers; /* of record i: peers[first_peer[i] .. first_peer[i + 1]) */
    int *first_peer;
    int *order, *best_order;
    size_t *offset, *best;
    bool *placed;
    enum direction *direction; /* per slide; those of one node agree */
    enum direction *trial, *best_direction;
};

/* What is wrong with laying record i at `at` beside the peer; 0 when nothing is, else a larger
 * offset to try. Fixes the direction of a slide in `trial` where it decides. */
static size_t collide(struct slides *s, int i, size_t at, const struct peer *peer) {
    const struct rfx_record *mine = &s->records[i];
    size_t other = s->offset[peer->record];
    size_t other_bytes = s->records[peer->record].bytes;
    if (at + mine->bytes <= other || other + other_bytes <= at) return 0;
    if (peer->slide < 0) return other + other_bytes;
    const struct rfx_slide *slide = &s->slides[peer->slide];
    bool mine_dies = slide->before == i;
    size_t before = mine_dies ? at : other;
    size_t after = mine_dies ? other : at;
    enum direction *direction = &s->trial[peer->slide];
    enum direction found = OPEN;
    if (*direction != UP && before >= after + slide->down) found = DOWN;
    if (found == OPEN && *direction != DOWN && after >= before + slide->up) found = UP;
    if (found != OPEN) {
        for (int k = 0; k < s->n_slides; k++)
            if (s->slides[k].node == slide->node && s->slides[k].stage == slide->stage)
                s->trial[k] = found;
        return 0;
    }
    /* higher up: far enough above for the direction that lets me lie above, else apart */
    size_t reach = mine_dies ? slide->down : slide->up;
    bool allowed = *direction != (mine_dies ? UP : DOWN);
    size_t next = other + (allowed && reach < other_bytes ? reach : other_bytes);
    next = rfx_align_up(next);
    return next > at ? next : rfx_align_up(other + other_bytes);
}

/* Whether record i fits at `at`; otherwise *next is the next offset worth trying. */
static bool fits(struct slides *s, int i, size_t at, size_t *next) {
    size_t bytes = (size_t)s->n_slides * sizeof *s->trial;
    if (bytes != 0) memcpy(s->trial, s->direction, bytes);
    *next = SIZE_MAX;
    bool good = true;
    for (int p = s->first_peer[i]; p < s->first_peer[i + 1]; p++) {
        if (!s->placed[s->peers[p].record]) continue;
        size_t moved = collide(s, i, at, &s->peers[p]);
        if (moved == 0) continue;
        good = false;
        if (moved < *next) *next = moved;
    }
    if (good && bytes != 0) memcpy(s->direction, s->trial, bytes);
    return good;
}

/* Goes no further once the arena is larger than `most`. */
static size_t place_in_order(struct slides *s, size_t most) {
    size_t arena = 0;
    for (int i = 0; i < s->n; i++) s->placed[i] = false;
    for (int k = 0; k < s->n_slides; k++) s->direction[k] = OPEN;
    for (int o = 0; o < s->n && arena <= most; o++) {
        int i = s->order[o];
        size_t at = 0;
        size_t next = 0;
        while (!fits(s, i, at, &next)) at = next;
        s->offset[i] = at;
        s->placed[i] = true;
        if (at + s->records[i].bytes > arena) arena = at + s->records[i].bytes;
    }
    return arena;
}

static int slide_of(const struct slides *s, int i, int j) {
    for (int k = 0; k < s->n_slides; k++) {
        const struct rfx_slide *slide = &s->slides[k];
        if ((slide->before == i && slide->after == j) || (slide->before == j && slide->after == i))
            return k;
    }
    return -1;
}

static int list_peers(struct slides *s, struct peer *peers) {
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (peers != NULL) s->first_peer[i] = n;
        for (int j = 0; j < s->n; j++) {
            if (i == j || !rfx_records_overlap(&s->records[i], &s->records[j])) continue;
            struct peer peer = {j, slide_of(s, i, j)};
            if (peers != NULL) peers[n] = peer;
            n++;
        }
    }
    if (peers != NULL) s->first_peer[s->n] = n;
    return n;
}

/* The larger, the earlier; ties by position. */
static uint64_t sort_key(const struct slides *s, enum order order, int i) {
    const struct rfx_record *r = &s->records[i];
    switch (order) {
        case ORDER_SIZE:
            return r->bytes;
        case ORDER_LIFETIME:
            return (uint64_t)(r->last - r->first);
        case ORDER_PEERS:
            return (uint64_t)(s->first_peer[i + 1] - s->first_peer[i]);
        case ORDER_TIME:
        case ORDER_COUNT:
            break;
    }
    return (uint64_t)(INT32_MAX - r->first);
}

/* Insertion sort, largest key first: stable, and n is some hundreds. */
static void sort_order(struct slides *s, enum order order) {
    for (int i = 0; i < s->n; i++) {
        int at = i;
        uint64_t key = sort_key(s, order, i);
        while (at > 0 && sort_key(s, order, s->order[at - 1]) < key) {
            s->order[at] = s->order[at - 1];
            at--;
        }
        s->order[at] = i;
    }
}

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Moves one record to an earlier place in the order. */
static void perturb(struct slides *s, uint32_t *random) {
    memcpy(s->order, s->best_order, (size_t)s->n * sizeof *s->order);
    int from = (int)(next_random(random) % (uint32_t)s->n);
    int to = (int)(next_random(random) % (uint32_t)s->n);
    int moved = s->order[from];
    int step = from < to ? 1 : -1;
    for (int i = from; i != to; i += step) s->order[i] = s->order[i + step];
    s->order[to] = moved;
}

static void try_order(struct slides *s, size_t *best_arena) {
    size_t arena = place_in_order(s, *best_arena);
    if (arena > *best_arena) return;
    *best_arena = arena;
    memcpy(s->best_order, s->order, (size_t)s->n * sizeof *s->order);
    memcpy(s->best, s->offset, (size_t)s->n * sizeof *s->best);
    if (s->n_slides > 0)
        memcpy(s->best_direction, s->direction, (size_t)s->n_slides * sizeof *s->best_direction);
}

static void release(struct slides *s) {
    rfx_memory_release(s->mem, s->peers);
    rfx_memory_release(s->mem, s->first_peer);
    rfx_memory_release(s->mem, s->order);
    rfx_memory_release(s->mem, s->offset);
    rfx_memory_release(s->mem, s->placed);
    rfx_memory_release(s->mem, s->direction);
}

static enum rfx_status init(struct slides *s, struct rfx_error *err) {
    size_t n = (size_t)s->n;
    size_t m = (size_t)s->n_slides;
    s->first_peer = rfx_memory_calloc(s->mem, n + 1, sizeof *s->first_peer);
    s->order = rfx_memory_calloc(s->mem, 2 * n, sizeof *s->order);
    s->offset = rfx_memory_calloc(s->mem, 2 * n, sizeof *s->offset);
    s->placed = rfx_memory_calloc(s->mem, n, sizeof *s->placed);
    s->direction = rfx_memory_calloc(s->mem, 3 * m + 1, sizeof *s->direction);
    size_t n_peers = (size_t)list_peers(s, NULL) + 1;
    s->peers = rfx_memory_calloc(s->mem, n_peers, sizeof *s->peers);
    if (s->first_peer == NULL || s->order == NULL || s->offset == NULL || s->placed == NULL ||
        s->direction == NULL || s->peers == NULL)
        return rfx_memory_fail(s->mem, "row placement", n_peers * sizeof *s->peers, err);
    s->best_order = s->order + n;
    s->best = s->offset + n;
    s->trial = s->direction + m;
    s->best_direction = s->trial + m;
    (void)list_peers(s, s->peers);
    return RFX_OK;
}

enum rfx_status rfx_slides_place(struct rfx_memory *mem, struct rfx_record *records, int n,
                                 const struct rfx_slide *slides, int n_slides, bool quick,
                                 size_t bound, bool *upwards, size_t *arena_bytes,
                                 struct rfx_error *err) {
    struct slides s = {
        .mem = mem, .records = records, .slides = slides, .n = n, .n_slides = n_slides};
    size_t arena = SIZE_MAX;
    uint32_t random = random_seed;
    enum rfx_status status = init(&s, err);
    if (status != RFX_OK) goto done;
    for (int order = 0; order < ORDER_COUNT && arena > bound; order++) {
        sort_order(&s, (enum order)order);
        try_order(&s, &arena);
    }
    int shuffles = n < 2 ? 0 : quick ? QUICK_SHUFFLES : SHUFFLES;
    for (int i = 0; i < shuffles && arena > bound; i++) {
        perturb(&s, &random);
        try_order(&s, &arena);
    }
    for (int i = 0; i < n; i++) records[i].offset = s.best[i];
    for (int k = 0; k < n_slides; k++) upwards[k] = s.best_direction[k] == UP;
    *arena_bytes = arena;
    if (!rfx_place_is_valid(records, n, slides, n_slides, upwards, arena))
        status = rfx_place_fail_check("row by row", n, err);
done:
    release(&s);
    return status;
}
