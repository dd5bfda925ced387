/* Placement with slides. A slide is a pair of records that may share bytes, because one is
 * overwritten row by row by the other. The two must keep the distance of the slide (struct
 * rfx_slide in placement.h).
 *
 * Greedy placement: a record goes to the lowest offset at which it overlaps no placed record that
 * is live with it, and keeps its distance from the records that it shares a slide with, its
 * partners. The first pair of a node that is placed fixes the direction of all slides of the node.
 * Placed records are visited by rising offset, so that one pass finds the next free bytes; partners
 * are visited one by one. If few records are live at a time, each record has a list of the others.
 *
 * Spreading: a map that overwrites another one lies a little lower. So in a series of slides each
 * map lies below the one before. Two such series side by side need room between them, and the
 * greedy placement leaves none. So all records are first placed greedily with loose distances, as
 * if all rows of a map were free at once; a map may then lie exactly where the map that it
 * overwrites lies. From this placement only the order is kept: which of two records lies above the
 * other. Then each record gets the lowest offset that keeps all true distances in this order. */
#include "tiler/arena/placement_slides.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "rf_analysis/regions.h"
#include "tiler/arena/arena_problem.h"
#include "tiler/arena/placement.h"

static size_t map_row_bytes(const struct rfx_node *n) {
    return rfx_tensor_pixel_bytes(&n->out, rfx_rect_cols(n->wanted));
}

/* Number of steps in which a map is computed row by row. With more steps, maps slide over each
 * other more closely, but each step starts the kernels anew. */
#define STEP_PARTS 32

int64_t rfx_row_step_rows(const struct rfx_graph *graph, int node) {
    const struct rfx_node *n = &graph->nodes[node];
    int64_t block = rfx_conv_block_of(graph, n).h;
    int64_t rows = rfx_max_i64(1, rfx_rect_rows(n->wanted));
    return rfx_ceil_div(rfx_ceil_div(rows, STEP_PARTS), block) * block;
}

struct rfx_row_steps rfx_row_steps_of(const struct rfx_graph *graph, int node, int64_t rows) {
    struct rfx_conv_block block = rfx_conv_block_of(graph, &graph->nodes[node]);
    struct rfx_range all = rfx_rect_row_range(graph->nodes[node].wanted);
    int64_t before = rfx_floor_div(all.lo - block.from, block.h) * block.h + block.from;
    struct rfx_row_steps steps = {all, rows, all.lo - before};
    return steps;
}

void rfx_slide_measure(const struct rfx_graph *graph, int node, int k, struct rfx_slide *slide) {
    const struct rfx_node *n = &graph->nodes[node];
    const struct rfx_node *in = &graph->nodes[n->in[k]];
    struct rfx_row_steps steps = rfx_row_steps_of(graph, node, rfx_row_step_rows(graph, node));
    int64_t row_out = (int64_t)map_row_bytes(n);
    int64_t row_in = (int64_t)map_row_bytes(in);
    int64_t down = 0;
    int64_t up = 0;
    struct rfx_range out = steps.all, all = rfx_rect_row_range(in->wanted);
    for (int64_t s = 0; s < rfx_row_step_count(&steps); s++) {
        int64_t lo = rfx_row_step_at(&steps, s).lo, hi = rfx_row_step_at(&steps, s).hi;
        struct rfx_range after = {lo, out.hi};
        struct rfx_range before = {out.lo, hi};
        struct rfx_range ahead = rfx_input_range(graph, n, k, RFX_AXIS_ROWS, after);
        struct rfx_range behind = rfx_input_range(graph, n, k, RFX_AXIS_ROWS, before);
        /* rows relative to the first row of each map's ROI */
        int64_t needed_from = rfx_min_i64(rfx_max_i64(ahead.lo, all.lo), all.hi) - all.lo;
        int64_t needed_to = rfx_max_i64(rfx_min_i64(behind.hi, all.hi), all.lo) - all.lo;
        down = rfx_max_i64(down, (hi - out.lo) * row_out - needed_from * row_in);
        up = rfx_max_i64(up, needed_to * row_in - (lo - out.lo) * row_out);
    }
    slide->down = rfx_align_up((size_t)down) + RFX_RED_ZONE_BYTES;
    slide->up = rfx_align_up((size_t)up) + RFX_RED_ZONE_BYTES;
}

void rfx_slide_add(struct rfx_slide *slides, int *n_slides, const struct rfx_slide *slide) {
    for (int s = *n_slides - 1; s >= 0 && slides[s].after == slide->after; s--) {
        struct rfx_slide *have = &slides[s];
        if (have->before != slide->before) continue;
        if (slide->down > have->down) have->down = slide->down;
        if (slide->up > have->up) have->up = slide->up;
        return;
    }
    slides[(*n_slides)++] = *slide;
}

static int compare_ints(const void *pa, const void *pb) {
    int a = *(const int *)pa;
    int b = *(const int *)pb;
    return (a > b) - (a < b);
}

/* Returns how many of the sorted values are below `limit`. */
static int count_below(const int *values, int n, int limit) {
    int lo = 0, hi = n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (values[middle] < limit)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Most perturbed orders that are tried after the fixed orders if the arena is still larger than the
 * bound. Quick placements serve the planner, which compares many plans. Plans depend on both
 * values, as in placement.c. Placing one order takes up to n^2 looks at records; all perturbed
 * orders together take at most LOOKS. */
enum { SHUFFLES = 160, QUICK_SHUFFLES = 12 };
#define LOOKS ((int64_t)300 * 1000 * 1000)
#define QUICK_LOOKS ((int64_t)30 * 1000 * 1000)

/* Limits for lists of peers: the average number of peers of a record. Up to FEW_PEERS, records have
 * lists. Up to SOME_PEERS, they have lists if sorting them (the square of the number of peers)
 * takes less than visiting all placed records. */
enum { FEW_PEERS = 16, SOME_PEERS = 48 };

/* Seed of the random numbers (xorshift32, Marsaglia 2003, the seed of his example). */
static const uint32_t random_seed = 2463534242U;

/* The orders of paper 004, section III-A, and the order of time. If some slide only goes down, two
 * orders are also tried backwards: a map that slides below another one then finds room, because it
 * is placed first. */
enum order { ORDER_SIZE, ORDER_LIFETIME, ORDER_PEERS, ORDER_TIME, ORDER_COUNT };

enum direction { OPEN, DOWN, UP };

/* The other record of a slide: it may share bytes with this one if they keep their distance. */
struct partner {
    int record, slide;
};

/* A record that has been placed. */
struct spot {
    size_t offset, end;
    int first, last, record;
};

/* A direction that was chosen while an offset was tried. */
struct change {
    int lead; /* of the slide's node */
    enum direction before;
};

struct slides {
    struct rfx_memory *mem;
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    bool one_way;             /* some slide can only go down */
    struct partner *partners; /* of record i: [first_partner[i] .. first_partner[i + 1]), rising */
    int *first_partner;
    int *lead;       /* per slide: the first slide of the same node */
    int *partner_of; /* per record: the record being placed, if the two are partners */
    int *n_peers;    /* per record: number of records live with it */
    int *peers; /* of record i: [first_peer[i] .. first_peer[i + 1]); NULL: there are too many */
    int *first_peer;
    struct spot
        *spots; /* [n_spots], by offset: all placed records, or those live with the current one */
    struct rfx_place_ranked *ranked;
    int n_spots, n_changes;
    int *order, *best_order;
    size_t *offset, *best;
    bool *placed;
    enum direction *direction, *best_direction; /* per `lead` */
    int *fixed,
        *best_fixed; /* per `lead`: position in the order of the record that chose the direction */
    int at;          /* position in the order of the current record */
    struct change *changes;
};

/* Fills n_peers: the number of other records that are live with each record. O(n log n). */
static void count_peers(struct slides *s) {
    int n = s->n, *firsts = s->order, *lasts = s->order + n; /* scratch */
    for (int i = 0; i < n; i++) {
        firsts[i] = s->records[i].first;
        lasts[i] = s->records[i].last;
    }
    qsort(firsts, (size_t)n, sizeof *firsts, compare_ints);
    qsort(lasts, (size_t)n, sizeof *lasts, compare_ints);
    /* records that begin before this one ends, less those that ended before it begins, less this
     * one */
    for (int i = 0; i < n; i++)
        s->n_peers[i] = count_below(firsts, n, s->records[i].last + 1) -
                        count_below(lasts, n, s->records[i].first) - 1;
}

/* Fills first_peer and peers. `ranked` holds the records by rising first step. O(n + peers +
 * records live at a time). */
static void list_peers(struct slides *s) {
    const struct rfx_record *records = s->records;
    int n = s->n, n_alive = 0, *at = s->order, *alive = s->order + n; /* scratch */
    s->first_peer[0] = 0;
    for (int i = 0; i < n; i++) {
        at[i] = s->first_peer[i];
        s->first_peer[i + 1] = s->first_peer[i] + s->n_peers[i];
    }
    for (int o = 0; o < n; o++) {
        int i = s->ranked[o].index, kept = 0;
        for (int a = 0; a < n_alive; a++) {
            int other = alive[a];
            if (records[other].last < records[i].first) continue;
            s->peers[at[i]++] = other;
            s->peers[at[other]++] = i;
            alive[kept++] = other;
        }
        alive[kept++] = i;
        n_alive = kept;
    }
}

/* Returns 0 if record i may lie at `at` although `partner` has been placed. If the two then
 * overlap, also fixes the direction of their slide. If record i may not lie there, returns a larger
 * offset to try. */
static size_t collide(struct slides *s, int i, size_t at, const struct partner *partner) {
    const struct rfx_record *mine = &s->records[i];
    size_t other = s->offset[partner->record], other_bytes = s->records[partner->record].bytes;
    if (at + mine->bytes <= other || other + other_bytes <= at) return 0;
    const struct rfx_slide *slide = &s->slides[partner->slide];
    bool mine_dies = slide->before == i;
    size_t before = mine_dies ? at : other;
    size_t after = mine_dies ? other : at;
    int lead = s->lead[partner->slide];
    enum direction direction = s->direction[lead], found = OPEN;
    if (direction != UP && before >= after + slide->down) found = DOWN;
    if (found == OPEN && direction != DOWN && after >= before + slide->up) found = UP;
    if (found != OPEN) {
        s->changes[s->n_changes++] = (struct change){lead, direction};
        s->direction[lead] = found;
        s->fixed[lead] = s->at;
        return 0;
    }
    /* The next offset to try lies above the partner: at the slide's distance, if the direction lets
     * record i lie above, otherwise behind the partner's last byte. */
    size_t reach = mine_dies ? slide->down : slide->up;
    bool allowed = direction != (mine_dies ? UP : DOWN);
    size_t next = other + (allowed && reach < other_bytes ? reach : other_bytes);
    next = rfx_align_up(next);
    return next > at ? next : rfx_align_up(other + other_bytes);
}

/* Returns whether record i keeps its distance from its partners at `at`. If not, *next receives the
 * next offset to try, and the directions of slides stay as they were. */
static bool fits_partners(struct slides *s, int i, size_t at, size_t *next) {
    *next = SIZE_MAX;
    s->n_changes = 0;
    for (int p = s->first_partner[i]; p < s->first_partner[i + 1]; p++) {
        if (!s->placed[s->partners[p].record]) continue;
        size_t moved = collide(s, i, at, &s->partners[p]);
        if (moved != 0 && moved < *next) *next = moved;
    }
    if (*next == SIZE_MAX) return true;
    while (s->n_changes > 0) {
        const struct change *change = &s->changes[--s->n_changes];
        s->direction[change->lead] = change->before;
    }
    return false;
}

/* Returns the lowest offset from `at` on at which record i overlaps no record but its partners. */
static size_t find_free(const struct slides *s, int i, size_t at) {
    const struct rfx_record *mine = &s->records[i];
    for (int k = 0; k < s->n_spots; k++) {
        const struct spot *spot = &s->spots[k];
        if (spot->offset >= at + mine->bytes) break;
        if (spot->end <= at || spot->first > mine->last || spot->last < mine->first) continue;
        if (s->partner_of[spot->record] != i) at = spot->end;
    }
    return at;
}

static struct spot spot_of(const struct slides *s, int i) {
    const struct rfx_record *r = &s->records[i];
    return (struct spot){s->offset[i], s->offset[i] + r->bytes, r->first, r->last, i};
}

/* Lists the placed records that are live with record i, sorted by offset. Insertion is enough: they
 * are few. */
static void list_spots(struct slides *s, int i) {
    s->n_spots = 0;
    for (int p = s->first_peer[i]; p < s->first_peer[i + 1]; p++) {
        if (!s->placed[s->peers[p]]) continue;
        struct spot spot = spot_of(s, s->peers[p]);
        int at = s->n_spots++;
        for (; at > 0 && s->spots[at - 1].offset > spot.offset; at--)
            s->spots[at] = s->spots[at - 1];
        s->spots[at] = spot;
    }
}

/* Adds a record to the sorted list of all placed records. */
static void add_spot(struct slides *s, int i) {
    size_t offset = s->offset[i];
    int lo = 0, hi = s->n_spots;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (s->spots[middle].offset <= offset)
            lo = middle + 1;
        else
            hi = middle;
    }
    memmove(&s->spots[lo + 1], &s->spots[lo], (size_t)(s->n_spots - lo) * sizeof *s->spots);
    s->spots[lo] = spot_of(s, i);
    s->n_spots++;
}

/* Places the first `kept` records of the order as in the best order, which begins with the same
 * records: a record's offset depends only on the records before it. Returns the size of their
 * arena. */
static size_t keep_begin(struct slides *s, int kept) {
    size_t arena = 0;
    s->n_spots = 0;
    for (int i = 0; i < s->n; i++) s->placed[i] = false;
    for (int k = 0; k < s->n_slides; k++) {
        bool stays = s->best_direction[k] != OPEN && s->best_fixed[k] < kept;
        s->direction[k] = stays ? s->best_direction[k] : OPEN;
        s->fixed[k] = s->best_fixed[k];
    }
    for (int o = 0; o < kept; o++) {
        int i = s->order[o];
        s->offset[i] = s->best[i];
        s->placed[i] = true;
        if (s->peers == NULL) add_spot(s, i);
        size_t end = s->offset[i] + s->records[i].bytes;
        if (end > arena) arena = end;
    }
    return arena;
}

/* Places all records in an order whose first `kept` records are those of the best order. Returns
 * the size of the arena. SIZE_MAX: the arena is larger than `most`, or the work was stopped. */
static size_t place_in_order(struct slides *s, int kept, size_t most) {
    size_t arena = keep_begin(s, kept);
    for (int o = kept; o < s->n; o++) {
        int i = s->order[o];
        s->at = o;
        size_t next = 0;
        if (s->peers != NULL) list_spots(s, i);
        for (int p = s->first_partner[i]; p < s->first_partner[i + 1]; p++)
            s->partner_of[s->partners[p].record] = i;
        do s->offset[i] = find_free(s, i, next);
        while (!fits_partners(s, i, s->offset[i], &next));
        s->placed[i] = true;
        if (s->peers == NULL) add_spot(s, i);
        size_t end = s->offset[i] + s->records[i].bytes;
        if (end > arena) arena = end;
        if (arena > most || rfx_memory_is_stopped(s->mem)) return SIZE_MAX;
    }
    return arena;
}

static int compare_partners(const void *pa, const void *pb) {
    const struct partner *a = pa, *b = pb;
    if (a->record != b->record) return a->record < b->record ? -1 : 1;
    return (a->slide > b->slide) - (a->slide < b->slide);
}

/* Lists the partners of each record. */
static void list_partners(struct slides *s) {
    int *at = s->n_peers; /* scratch */
    memset(s->first_partner, 0, ((size_t)s->n + 1) * sizeof *s->first_partner);
    for (int k = 0; k < s->n_slides; k++) {
        s->first_partner[s->slides[k].before + 1]++;
        s->first_partner[s->slides[k].after + 1]++;
    }
    for (int i = 0; i < s->n; i++) {
        s->first_partner[i + 1] += s->first_partner[i];
        at[i] = s->first_partner[i];
    }
    for (int k = 0; k < s->n_slides; k++) {
        const struct rfx_slide *slide = &s->slides[k];
        bool same = k > 0 && slide[-1].node == slide->node && slide[-1].stage == slide->stage;
        s->one_way |= slide->up >= s->records[slide->before].bytes;
        s->lead[k] = same ? s->lead[k - 1] : k;
        s->partners[at[slide->before]++] = (struct partner){slide->after, k};
        s->partners[at[slide->after]++] = (struct partner){slide->before, k};
    }
    for (int i = 0; i < s->n; i++) {
        size_t count = (size_t)(s->first_partner[i + 1] - s->first_partner[i]);
        if (count > 1)
            qsort(&s->partners[s->first_partner[i]], count, sizeof *s->partners, compare_partners);
        s->partner_of[i] = -1;
    }
}

/* Larger keys come first; ties by position. */
static uint64_t sort_key(const struct slides *s, enum order order, int i) {
    const struct rfx_record *r = &s->records[i];
    switch (order) {
        case ORDER_SIZE:
            return r->bytes;
        case ORDER_LIFETIME:
            return (uint64_t)(r->last - r->first);
        case ORDER_PEERS:
            return (uint64_t)s->n_peers[i];
        case ORDER_TIME:
        case ORDER_COUNT:
            break;
    }
    return (uint64_t)(INT32_MAX - r->first);
}

/* Sorts by falling key; ties in the order of the records, or backwards. */
static void rank(struct slides *s, enum order order, bool backwards) {
    for (int i = 0; i < s->n; i++) {
        int r = backwards ? s->n - 1 - i : i;
        bool late = backwards && order == ORDER_TIME;
        uint64_t key = late ? (uint64_t)s->records[r].first : sort_key(s, order, r);
        s->ranked[i] = (struct rfx_place_ranked){key, i};
    }
    qsort(s->ranked, (size_t)s->n, sizeof *s->ranked, rfx_place_compare_ranked);
}

static void sort_order(struct slides *s, enum order order, bool backwards) {
    rank(s, order, backwards);
    for (int i = 0; i < s->n; i++)
        s->order[i] = backwards ? s->n - 1 - s->ranked[i].index : s->ranked[i].index;
}

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Moves one record to another place in the order; returns how many records before it keep their
 * place. */
static int perturb(struct slides *s, uint32_t *random) {
    memcpy(s->order, s->best_order, (size_t)s->n * sizeof *s->order);
    int from = (int)(next_random(random) % (uint32_t)s->n);
    int to = (int)(next_random(random) % (uint32_t)s->n);
    int moved = s->order[from];
    int step = from < to ? 1 : -1;
    for (int i = from; i != to; i += step) s->order[i] = s->order[i + step];
    s->order[to] = moved;
    return from < to ? from : to;
}

static void try_order(struct slides *s, int kept, size_t *best_arena) {
    size_t arena = place_in_order(s, kept, *best_arena);
    if (arena > *best_arena) return;
    *best_arena = arena;
    memcpy(s->best_order, s->order, (size_t)s->n * sizeof *s->order);
    memcpy(s->best, s->offset, (size_t)s->n * sizeof *s->best);
    for (int k = 0; k < s->n_slides; k++) {
        s->best_direction[k] = s->direction[k];
        s->best_fixed[k] = s->fixed[k];
    }
}

/* Returns how many perturbed orders are tried at most. */
static int count_shuffles(const struct slides *s, bool quick) {
    int64_t looks = quick ? QUICK_LOOKS : LOOKS;
    int64_t most = quick && !s->one_way ? QUICK_SHUFFLES : SHUFFLES;
    return s->n < 2 ? 0 : (int)rfx_min_i64(most, looks / ((int64_t)s->n * s->n));
}

static void release(struct slides *s) {
    void *const blocks[] = {s->partners, s->peers,  s->first_partner, s->spots,     s->ranked,
                            s->order,    s->offset, s->placed,        s->direction, s->changes};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(s->mem, blocks[i]);
}

static enum rfx_status init(struct slides *s, struct rfx_error *err) {
    size_t n = (size_t)s->n, m = (size_t)s->n_slides;
    s->partners = rfx_memory_calloc(s->mem, 2 * m + 1, sizeof *s->partners);
    s->first_partner = rfx_memory_calloc(s->mem, 4 * n + 3 * m + 2, sizeof *s->first_partner);
    s->spots = rfx_memory_calloc(s->mem, n, sizeof *s->spots);
    s->ranked = rfx_memory_calloc(s->mem, n, sizeof *s->ranked);
    s->order = rfx_memory_calloc(s->mem, 2 * n, sizeof *s->order);
    s->offset = rfx_memory_calloc(s->mem, 2 * n, sizeof *s->offset);
    s->placed = rfx_memory_calloc(s->mem, n, sizeof *s->placed);
    s->direction = rfx_memory_calloc(s->mem, 2 * m + 1, sizeof *s->direction);
    s->changes = rfx_memory_calloc(s->mem, m + 1, sizeof *s->changes);
    if (s->partners == NULL || s->first_partner == NULL || s->spots == NULL || s->ranked == NULL ||
        s->order == NULL || s->offset == NULL || s->placed == NULL || s->direction == NULL ||
        s->changes == NULL)
        return rfx_memory_fail(s->mem, "row placement", n * sizeof *s->spots, err);
    s->partner_of = s->first_partner + n + 1;
    s->n_peers = s->partner_of + n;
    s->first_peer = s->n_peers + n;
    s->lead = s->first_peer + n + 1;
    s->fixed = s->lead + m;
    s->best_fixed = s->fixed + m;
    s->best_order = s->order + n;
    s->best = s->offset + n;
    s->best_direction = s->direction + m;
    list_partners(s);
    count_peers(s);
    size_t peers = 0;
    for (int i = 0; i < s->n; i++) peers += (size_t)s->n_peers[i];
    if (peers > n * FEW_PEERS && (peers > n * SOME_PEERS || peers / n * peers > 2 * n * n))
        return RFX_OK;
    s->peers = rfx_memory_calloc(s->mem, peers + 1, sizeof *s->peers);
    if (s->peers == NULL)
        return rfx_memory_fail(s->mem, "row placement", peers * sizeof *s->peers, err);
    rank(s, ORDER_TIME, false);
    list_peers(s);
    return RFX_OK;
}

enum rfx_status rfx_slides_place_greedily(struct rfx_memory *mem, struct rfx_record *records, int n,
                                          const struct rfx_slide *slides, int n_slides, bool quick,
                                          size_t bound, bool *upwards, size_t *arena_bytes,
                                          struct rfx_error *err) {
    struct slides s = {
        .mem = mem, .records = records, .slides = slides, .n = n, .n_slides = n_slides};
    size_t arena = SIZE_MAX;
    uint32_t random = random_seed; /* constant seed: a placement is a function of the records */
    enum rfx_status status = init(&s, err);
    if (status != RFX_OK) goto done;
    for (int order = 0; order < ORDER_COUNT && arena > bound; order++) {
        sort_order(&s, (enum order)order, false);
        try_order(&s, 0, &arena);
    }
    for (int k = 0; s.one_way && k < 2 && arena > bound; k++) {
        sort_order(&s, k == 0 ? ORDER_SIZE : ORDER_TIME, true);
        try_order(&s, 0, &arena);
    }
    int shuffles = count_shuffles(&s, quick);
    for (int i = 0; i < shuffles && arena > bound; i++) {
        int kept = perturb(&s, &random);
        try_order(&s, kept, &arena);
    }
    status = rfx_memory_check_stop(mem, err);
    if (status != RFX_OK) goto done;
    for (int i = 0; i < n; i++) records[i].offset = s.best[i];
    for (int k = 0; k < n_slides; k++) upwards[k] = s.best_direction[s.lead[k]] == UP;
    *arena_bytes = arena;
    if (!rfx_place_is_valid(records, n, slides, n_slides, upwards, arena))
        status = rfx_place_fail_check("row by row", n, err);
done:
    release(&s);
    return status;
}

enum { MOST_RECORDS = 4096 }; /* limit for spreading, which looks at each pair of records */

struct spread {
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    struct rfx_slide *loose; /* [n_slides]: the slides with loose distances */
    bool *upwards;           /* [n_slides] */
    size_t *kept, *offset;   /* [n]: offsets before and after spreading */
    int *order;              /* [n]: from the lowest record on */
    int *slide_of;           /* [n]: slide of the current record with each other record; -1: none */
};

/* Records with their offsets, for sorting. */
struct place {
    size_t offset;
    int first, record;
};

/* Sorts records by offset, lowest first. Of two records with the same offset, the one whose first
 * step is later comes first, so that spread_out places it below the other. */
static int compare_places(const void *pa, const void *pb) {
    const struct place *a = pa, *b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->first != b->first) return a->first > b->first ? -1 : 1;
    return (a->record > b->record) - (a->record < b->record);
}

/* Sets loose distances: the smallest that the sizes of the two maps alone require. Does not loosen
 * `up` of a slide that can only go down; in streams all slides are of this kind. */
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

/* Returns the least difference between the offsets of record i and record j, where i lies above
 * j. */
static size_t distance(const struct spread *s, int i, int j) {
    size_t apart = s->records[j].bytes;
    int k = s->slide_of[j];
    if (k < 0) return apart;
    bool i_dies = s->slides[k].before == i;
    if (i_dies == s->upwards[k]) return apart; /* they slide the other way */
    size_t reach = i_dies ? s->slides[k].down : s->slides[k].up;
    return reach < apart ? reach : apart;
}

/* Places all records in their order with true distances. Returns the size of the arena. */
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

/* Spreads the records where that may improve the placement, and keeps the better placement. */
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
