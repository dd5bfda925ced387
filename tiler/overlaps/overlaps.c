/* Rounds of moves, weights, and the laying anew; see overlaps.h.
 *
 * Invariants: 1. neighbours of item i, those alive with it at some time, are begin[i] .. begin[i +
 * 1] of `pairs`, so that each pair is there twice, with equal weights and overlaps; 2. places are
 * floats of bytes and may be rounded: answers come from their order alone (lay_anew); 3. pairs that
 * are not listed do not overlap and have their least weights. */
#include "tiler/overlaps/overlaps.h"

#include <math.h>
#include <string.h>

#include "layers/kernels/kernels.h"

/* A pair's weight, while it overlaps, grows by a tenth and by up to `growth` for the largest
 * overlap of all; else it sinks by `decay` down to what it was at first: the time the two are alive
 * together to the power of `power`. */
static const struct variant {
    float growth, decay, power;
} variants[RFX_OVERLAPS_VARIANTS] = {
    {0.5F, 0.95F, 1.0F}, {0.5F, 0.98F, 1.0F}, {0.5F, 0.95F, 0.75F}, {1.0F, 0.95F, 1.0F}};

static const float least_growth = 1.1F;
static const float most_weight = 1e20F;

struct pair {
    int other;
    float weight, least; /* now; at first and at least */
    float overlap;       /* in bytes, at the begin of the round */
    int twin;            /* the same pair, seen from the other item */
    bool listed;         /* of both the first one is */
};

struct overlaps {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_overlaps_request *request;
    struct variant variant;
    uint64_t random;
    float capacity;
    float *place, *size;  /* per item */
    float *tried, *costs; /* per place that is looked at, and some more (rfx_depths_run) */
    float *bottoms, *tops, *weights; /* per item alive beside the one that moves */
    size_t *begin;                   /* per item: its pairs */
    struct pair *pairs;
    int *order; /* items by their middles */
    int *list;  /* those that overlap with any */
    int *moved; /* since overlaps were counted; each once */
    int n_moved;
    bool *has_moved; /* per item */
    int *n_overlaps; /* per item: pairs that do */
    int *listed;     /* pairs */
    int n_listed;
    size_t *level;   /* per section: the end of the highest item so far */
    size_t *offsets; /* per item: as low as the order allows */
};

/* xorshift64* (Vigna 2016): in [0, n). */
static uint32_t draw(struct overlaps *o, uint32_t n) {
    o->random ^= o->random >> 12;
    o->random ^= o->random << 25;
    o->random ^= o->random >> 27;
    return (uint32_t)(((o->random * 0x2545f4914f6cdd1dU >> 32) * n) >> 32);
}

static float smaller(float a, float b) {
    return a < b ? a : b;
}

static float larger(float a, float b) {
    return a > b ? a : b;
}

/* How far one of two items has to move until they share no byte. */
static float overlap_of(const struct overlaps *o, int i, int j) {
    float up = o->place[j] + o->size[j] - o->place[i];
    float down = o->place[i] + o->size[i] - o->place[j];
    return larger(smaller(up, down), 0);
}

/* Lifts the places that are tried to multiples of the item's alignment, or lowers what would be
 * lifted out of the arena. */
static void align(struct overlaps *o, int i, size_t n) {
    float alignment = (float)o->problem->items[i].alignment;
    for (size_t c = 0; c < n; c++) {
        float place = ceilf(o->tried[c] / alignment) * alignment;
        if (place > o->capacity - o->size[i]) place = floorf(o->tried[c] / alignment) * alignment;
        o->tried[c] = place;
    }
}

/* Moves item i to where the weighted sum of its overlaps is least, which is a place where it
 * touches another, or the bottom or the top; one of them by chance where several are. */
static void move(struct overlaps *o, int i) {
    const struct pair *pairs = &o->pairs[o->begin[i]];
    size_t n_pairs = o->begin[i + 1] - o->begin[i];
    float size = o->size[i];
    float highest = o->capacity - size;
    float *tried = o->tried;
    const float *costs = o->costs;
    size_t n = 0;
    tried[n++] = 0;
    tried[n++] = highest;
    for (size_t k = 0; k < n_pairs; k++) {
        float bottom = o->place[pairs[k].other];
        float top = bottom + o->size[pairs[k].other];
        o->bottoms[k] = bottom;
        o->tops[k] = top;
        o->weights[k] = pairs[k].weight;
        if (top >= 0 && top <= highest) tried[n++] = top; /* not of what lies nowhere */
        if (bottom >= size) tried[n++] = bottom - size;
    }
    if (o->problem->items[i].alignment > 1) align(o, i, n);
    rfx_kernels()->depths(&(struct rfx_depths_run){.places = tried,
                                                   .bottoms = o->bottoms,
                                                   .tops = o->tops,
                                                   .weights = o->weights,
                                                   .costs = o->costs,
                                                   .n = (int64_t)n,
                                                   .others = (int64_t)n_pairs,
                                                   .size = size});
    size_t best = 0;
    uint32_t equal = 1;
    for (size_t c = 1; c < n; c++) {
        if (costs[c] > costs[best]) continue;
        if (costs[c] < costs[best]) equal = 0;
        if (draw(o, ++equal) == 0) best = c;
    }
    o->place[i] = tried[best];
}

/* Sets how far the items of a pair overlap now. */
static void set_overlap(struct overlaps *o, int i, size_t k) {
    struct pair *p = &o->pairs[k], *twin = &o->pairs[p->twin];
    float overlap = overlap_of(o, i, p->other);
    int more = (overlap > 0) - (p->overlap > 0);
    o->n_overlaps[i] += more;
    o->n_overlaps[p->other] += more;
    p->overlap = twin->overlap = overlap;
    int first = (int)k < p->twin ? (int)k : p->twin;
    if (overlap <= 0 || o->pairs[first].listed) return;
    o->pairs[first].listed = true;
    o->listed[o->n_listed++] = first;
}

static void set_moved(struct overlaps *o, int i) {
    if (o->has_moved[i]) return;
    o->has_moved[i] = true;
    o->moved[o->n_moved++] = i;
}

/* Lists the items that overlap with any, in chance order; their number. */
static int find_overlaps(struct overlaps *o, float *largest) {
    int n = 0;
    *largest = 0;
    for (int m = 0; m < o->n_moved; m++) {
        int i = o->moved[m];
        o->has_moved[i] = false;
        for (size_t k = o->begin[i]; k < o->begin[i + 1]; k++) set_overlap(o, i, k);
    }
    o->n_moved = 0;
    for (int l = 0; l < o->n_listed; l++)
        *largest = larger(*largest, o->pairs[o->listed[l]].overlap);
    for (int i = 0; i < o->problem->n; i++)
        if (o->n_overlaps[i] > 0) o->list[n++] = i;
    for (int k = n - 1; k > 0; k--) {
        int other = (int)draw(o, (uint32_t)k + 1);
        int swap = o->list[k];
        o->list[k] = o->list[other];
        o->list[other] = swap;
    }
    return n;
}

static void weigh(struct overlaps *o, float largest) {
    float growth = largest > 0 ? o->variant.growth / largest : 0;
    int n = 0;
    for (int l = 0; l < o->n_listed; l++) {
        struct pair *p = &o->pairs[o->listed[l]];
        if (p->overlap > 0)
            p->weight = smaller(p->weight * (least_growth + growth * p->overlap), most_weight);
        else
            p->weight = larger(p->weight * o->variant.decay, p->least);
        o->pairs[p->twin].weight = p->weight;
        p->listed = p->overlap > 0 || p->weight > p->least;
        if (p->listed) o->listed[n++] = o->listed[l];
    }
    o->n_listed = n;
}

/* Sorts the items by their middles, hardly any of which have changed places, and lays each as low
 * as those before it allow; the arena, or as soon as it is `enough`, some of it. */
static size_t lay_anew(struct overlaps *o, size_t enough) {
    const struct rfx_place_problem *problem = o->problem;
    size_t arena = 0;
    for (int k = 1; k < problem->n; k++) {
        int i = o->order[k];
        float middle = 2 * o->place[i] + o->size[i];
        int to = k;
        for (; to > 0; to--) {
            int j = o->order[to - 1];
            if (2 * o->place[j] + o->size[j] <= middle) break;
            o->order[to] = j;
        }
        o->order[to] = i;
    }
    memset(o->level, 0, (size_t)problem->n_sections * sizeof *o->level);
    for (int k = 0; k < problem->n && arena < enough; k++) {
        int i = o->order[k];
        size_t at = 0;
        for (int s = problem->first[i]; s < problem->last[i]; s++)
            if (o->level[s] > at) at = o->level[s];
        o->offsets[i] = rfx_place_align(at, problem->items[i].alignment);
        at = o->offsets[i] + problem->items[i].size;
        for (int s = problem->first[i]; s < problem->last[i]; s++) o->level[s] = at;
        if (at > arena) arena = at;
    }
    return arena;
}

static bool overlaps_any(const struct overlaps *o, int i) {
    for (size_t k = o->begin[i]; k < o->begin[i + 1]; k++)
        if (overlap_of(o, i, o->pairs[k].other) > 0) return true;
    return false;
}

static void search(struct overlaps *o, size_t *offsets, size_t *arena_bytes, uint64_t *nodes) {
    const struct rfx_place_problem *problem = o->problem;
    uint64_t moves = 0;
    *arena_bytes = SIZE_MAX;
    for (int n_listed = 1; n_listed > 0;) {
        float largest = 0;
        size_t arena = lay_anew(o, *arena_bytes);
        if (arena < *arena_bytes) {
            *arena_bytes = arena;
            memcpy(offsets, o->offsets, (size_t)problem->n * sizeof *offsets);
        }
        if (arena <= o->request->capacity_bytes || moves >= o->request->moves) break;
        n_listed = find_overlaps(o, &largest);
        weigh(o, largest);
        for (int k = 0; k < n_listed; k++) {
            if (rfx_place_must_stop(o->mem, o->request->stop)) n_listed = 0;
            if (n_listed == 0 || !overlaps_any(o, o->list[k])) continue;
            move(o, o->list[k]);
            set_moved(o, o->list[k]);
        }
        moves += (uint64_t)n_listed;
    }
    *nodes += moves;
}

static float time_together(const struct rfx_place_item *a, const struct rfx_place_item *b) {
    int64_t lo = a->lo > b->lo ? a->lo : b->lo;
    int64_t hi = a->hi < b->hi ? a->hi : b->hi;
    return (float)((uint64_t)hi - (uint64_t)lo);
}

/* Where items do not lie yet. */
static const float nowhere = -INFINITY;

/* Of the items that do not lie yet the one that takes the most; -1: all do. */
static int largest_left(const struct overlaps *o) {
    const struct rfx_place_problem *problem = o->problem;
    int best = -1;
    float most = -1;
    for (int i = 0; i < problem->n; i++) {
        float area = o->size[i] * (float)(problem->last[i] - problem->first[i]);
        if (o->place[i] > nowhere || area <= most) continue;
        most = area;
        best = i;
    }
    return best;
}

/* Lays the items of a part of an answer where it has them, and then the others. */
static void complete(struct overlaps *o) {
    const size_t *start = o->request->start;
    for (int i = 0; i < o->problem->n; i++) {
        float place = smaller((float)start[i], larger(o->capacity - o->size[i], 0));
        o->place[i] = start[i] == SIZE_MAX ? nowhere : place;
    }
    for (int i = largest_left(o); i >= 0; i = largest_left(o)) move(o, i);
}

static bool is_part(const size_t *start, int n) {
    for (int i = 0; i < n; i++)
        if (start[i] == SIZE_MAX) return true;
    return false;
}

/* Lays the items anywhere, or where an answer has them, with its height pressed to the capacity. */
static void lay_first(struct overlaps *o) {
    const struct rfx_place_problem *problem = o->problem;
    const size_t *start = o->request->start;
    if (start != NULL && is_part(start, problem->n)) {
        complete(o);
        return;
    }
    size_t height = start == NULL ? 0 : rfx_place_arena_bytes(problem->items, problem->n, start);
    for (int i = 0; i < problem->n; i++) {
        float room = larger(o->capacity - o->size[i], 0);
        float share = (float)draw(o, 1U << 24) / (float)(1U << 24);
        if (start != NULL) share = (float)start[i] / larger((float)height - o->size[i], 1);
        o->place[i] = room * smaller(share, 1);
    }
}

/* The pairs of an item lie by rising numbers of the others, so that those with smaller numbers come
 * in the order in which the others are gone through. */
static void find_twins(struct overlaps *o) {
    int *met = o->n_overlaps; /* pairs of an item with smaller ones; zeros before and after */
    for (int i = 0; i < o->problem->n; i++)
        for (size_t k = o->begin[i]; k < o->begin[i + 1]; k++) {
            int j = o->pairs[k].other;
            if (j < i) continue;
            size_t twin = o->begin[j] + (size_t)met[j]++;
            o->pairs[k].twin = (int)twin;
            o->pairs[twin].twin = (int)k;
        }
    memset(met, 0, (size_t)o->problem->n * sizeof *met);
}

/* The weights hang on shares of the whole time, so that no power of them is beyond floats. */
static void set_up(struct overlaps *o) {
    const struct rfx_place_item *items = o->problem->items;
    int n = o->problem->n;
    float longest = 1;
    size_t at = 0;
    for (int i = 0; i < n; i++) longest = larger(longest, time_together(&items[i], &items[i]));
    for (int i = 0; i < n; i++) {
        o->begin[i] = at;
        for (int j = 0; j < n; j++) {
            if (i == j || !rfx_place_items_overlap(&items[i], &items[j])) continue;
            float share = time_together(&items[i], &items[j]) / longest;
            float weight = larger(powf(share, o->variant.power), 1e-6F);
            o->pairs[at++] = (struct pair){.other = j, .weight = weight, .least = weight};
        }
        o->order[i] = i;
        o->size[i] = (float)items[i].size;
    }
    o->begin[n] = at;
    find_twins(o);
    lay_first(o);
    for (int i = 0; i < n; i++) set_moved(o, i);
}

/* Floats lie in one block, which begins with `place`, numbers of items in one that begins with
 * `order`. */
static bool allocate(struct overlaps *o, size_t pairs, size_t most) {
    size_t n = (size_t)o->problem->n, places = 2 * most + 2 + RFX_DEPTHS_FILLED;
    o->place = rfx_memory_calloc(o->mem, 2 * n + 2 * places + 3 * most, sizeof *o->place);
    o->order = rfx_memory_calloc(o->mem, 4 * n, sizeof *o->order);
    o->begin = rfx_memory_calloc(o->mem, n + 1, sizeof *o->begin);
    o->pairs = rfx_memory_calloc(o->mem, pairs + 1, sizeof *o->pairs);
    o->has_moved = rfx_memory_calloc(o->mem, n, sizeof *o->has_moved);
    o->listed = rfx_memory_calloc(o->mem, pairs / 2 + 1, sizeof *o->listed);
    o->level = rfx_memory_calloc(o->mem, (size_t)o->problem->n_sections, sizeof *o->level);
    o->offsets = rfx_memory_calloc(o->mem, n, sizeof *o->offsets);
    if (o->place == NULL || o->order == NULL || o->begin == NULL || o->pairs == NULL ||
        o->has_moved == NULL || o->listed == NULL || o->level == NULL || o->offsets == NULL)
        return false;
    o->size = o->place + n;
    o->tried = o->size + n;
    o->costs = o->tried + places;
    o->bottoms = o->costs + places;
    o->tops = o->bottoms + most;
    o->weights = o->tops + most;
    o->list = o->order + n;
    o->moved = o->list + n;
    o->n_overlaps = o->moved + n;
    return true;
}

enum rfx_status rfx_overlaps_place(const struct rfx_place_problem *problem,
                                   const struct rfx_overlaps_request *request, size_t *offsets,
                                   size_t *arena_bytes, uint64_t *nodes, struct rfx_error *err) {
    struct overlaps o = {
        .mem = problem->mem,
        .problem = problem,
        .request = request,
        .variant = variants[request->variant],
        .random = (request->seed * 2 + 1) * 0x9e3779b97f4a7c15U, /* odd, so not zero */
        .capacity = (float)request->capacity_bytes};
    enum rfx_status status = RFX_OK;
    size_t most = 0;
    *arena_bytes = SIZE_MAX;
    size_t pairs = rfx_place_count_pairs(problem, &most);
    if (problem->n == 0 || pairs > RFX_OVERLAPS_MAX_PAIRS) return RFX_OK;
    if (allocate(&o, pairs, most)) {
        set_up(&o);
        search(&o, offsets, arena_bytes, nodes);
    } else {
        status = rfx_memory_fail(o.mem, "packer", pairs * sizeof *o.pairs, err);
    }
    void *const blocks[] = {o.place,     o.order,  o.begin, o.pairs,
                            o.has_moved, o.listed, o.level, o.offsets};
    for (size_t k = 0; k < sizeof blocks / sizeof blocks[0]; k++)
        rfx_memory_release(o.mem, blocks[k]);
    return status;
}
