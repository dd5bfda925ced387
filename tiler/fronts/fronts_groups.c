/* Subsets of what ends and of what begins whose sums are close; see fronts_groups.h. */
#include "tiler/fronts/fronts_groups.h"

#include <math.h>
#include <stdlib.h>

/* What bounds the work on one state. MAX_UNIONS: of the blocks that end, and of each half of the
 * items that begin. MAX_POOL: groups that are compared; MAX_GROUPS: of one block, each of which
 * costs a forest. */
enum { MAX_UNIONS = 1 << 11, MAX_POOL = 1 << 15, MAX_GROUPS = 1 << 10 };

/* Half the square of how many deviations a sum may be off. */
static const float too_far = 8;

/* Blocks together. */
struct rfx_front_union {
    struct rfx_front_block sum;
    int groups;    /* with these ends */
    double orders; /* that a single begin in their place leaves: the logarithm */
};

/* Begins together. */
struct rfx_front_sum {
    size_t sum;
    float squares; /* of the sizes, in all */
    uint64_t mask;
};

enum rfx_status rfx_front_groups_init(struct rfx_front_groups *g,
                                      const struct rfx_place_problem *problem,
                                      const struct rfx_front_times *times,
                                      struct rfx_forests *forests,
                                      const struct rfx_front_judge *judge, size_t capacity,
                                      const struct rfx_front_weights *weights,
                                      struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    *g = (struct rfx_front_groups){.mem = mem,
                                   .problem = problem,
                                   .times = times,
                                   .forests = forests,
                                   .weights = *weights,
                                   .rooms = {.mem = mem},
                                   .complete = true,
                                   .listed_boundary = -1};
    for (int k = 1; k <= RFX_FRONT_MAX_SIDE; k++)
        g->log_factorial[k] = g->log_factorial[k - 1] + log(k);
    g->list = rfx_memory_calloc(mem, MAX_POOL, sizeof *g->list);
    g->unions = rfx_memory_calloc(mem, MAX_UNIONS, sizeof *g->unions);
    g->low = rfx_memory_calloc(mem, MAX_UNIONS, sizeof *g->low);
    g->high = rfx_memory_calloc(mem, MAX_UNIONS, sizeof *g->high);
    g->blocks = rfx_memory_calloc(mem, RFX_FRONT_MAX_SIDE, sizeof *g->blocks);
    g->items = rfx_memory_calloc(mem, RFX_FRONT_MAX_SIDE, sizeof *g->items);
    if (g->list == NULL || g->unions == NULL || g->low == NULL || g->high == NULL ||
        g->blocks == NULL || g->items == NULL)
        return rfx_memory_fail(mem, "packer", MAX_POOL * sizeof *g->list, err);
    enum rfx_status status = rfx_front_rooms_init(&g->rooms, problem, times, capacity, err);
    if (status == RFX_OK)
        status = rfx_front_counts_init(&g->counts, problem, times, forests, judge, err);
    if (status == RFX_OK) g->match = (float)(weights->match - log(g->rooms.shrink));
    return status;
}

void rfx_front_groups_release(struct rfx_front_groups *g) {
    void *const blocks[] = {g->list, g->unions, g->low, g->high, g->blocks, g->items};
    if (g->mem == NULL) return; /* never begun */
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(g->mem, blocks[i]);
    rfx_front_rooms_release(&g->rooms);
    rfx_front_counts_release(&g->counts);
}

static int select_items(const int *list, uint64_t mask, int *out) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) out[n++] = list[__builtin_ctzll(mask)];
    return n;
}

struct rfx_forest_change rfx_front_change(const struct rfx_front_times *times, int boundary,
                                          const struct rfx_front_group *group, int *gone,
                                          int *with) {
    const struct rfx_front_boundary *b = &times->at[boundary];
    struct rfx_forest_change change = {.side = b->side, .gone = gone, .with = with};
    change.n_gone = select_items(&times->by_end[b->ends], group->ends, gone);
    change.n_with = select_items(&times->by_begin[b->begins], group->begins, with);
    return change;
}

static void add_block(struct rfx_front_block *to, const struct rfx_front_block *block) {
    to->mask |= block->mask;
    to->height += block->height;
    to->highest += block->highest;
    to->room += block->room;
    to->variance += block->variance;
}

/* The next larger number of as many bits; 0: there is none. */
static uint64_t next_mask(uint64_t mask) {
    uint64_t lowest = mask & (0 - mask);
    uint64_t ripple = mask + lowest;
    return mask == 0 || ripple < mask ? 0 : ripple | (((mask ^ ripple) >> 2) / lowest);
}

/* Masks of n parts, of few and of nearly all first where there are too many: a boundary at which
 * much ends has one large group and some small ones. Returns their number. */
static int list_masks(struct rfx_front_groups *g, int n, bool empty, uint64_t *masks) {
    int count = 0;
    if (n >= 31 || 1 << n > MAX_UNIONS) g->complete = false;
    if (empty) masks[count++] = 0;
    for (int k = 0; k < n; k++) {
        int size = k % 2 == 0 ? n - k / 2 : k / 2 + 1; /* n, 1, n - 1, 2, ... */
        uint64_t mask = rfx_front_all(size);
        for (; mask != 0 && mask <= rfx_front_all(n) && count < MAX_UNIONS; mask = next_mask(mask))
            masks[count++] = mask;
    }
    return count;
}

static int list_unions(struct rfx_front_groups *g, int n_blocks) {
    uint64_t masks[MAX_UNIONS];
    int n = list_masks(g, n_blocks, false, masks);
    for (int i = 0; i < n; i++) {
        g->unions[i] = (struct rfx_front_union){.groups = 0};
        for (uint64_t rest = masks[i]; rest != 0; rest &= rest - 1)
            add_block(&g->unions[i].sum, &g->blocks[__builtin_ctzll(rest)]);
    }
    return n;
}

static int compare_sums(const void *pa, const void *pb) {
    const struct rfx_front_sum *a = pa;
    const struct rfx_front_sum *b = pb;
    if (a->sum != b->sum) return a->sum < b->sum ? -1 : 1;
    return (a->mask > b->mask) - (a->mask < b->mask);
}

/* Lists the sums of begins named by bits, the smallest first; their number. */
static int list_sums(struct rfx_front_groups *g, const int *begins, const int *bits, int n,
                     struct rfx_front_sum *sums) {
    uint64_t masks[MAX_UNIONS];
    int count = list_masks(g, n, true, masks);
    for (int i = 0; i < count; i++) {
        struct rfx_front_sum made = {.sum = 0};
        for (uint64_t rest = masks[i]; rest != 0; rest &= rest - 1) {
            int bit = bits[__builtin_ctzll(rest)];
            size_t size = g->problem->items[begins[bit]].size;
            made.sum += size;
            made.squares += (float)size * (float)size;
            made.mask |= (uint64_t)1 << bit;
        }
        sums[i] = made;
    }
    qsort(sums, (size_t)count, sizeof *sums, compare_sums);
    return count;
}

static bool are_twins(const struct rfx_front_groups *g, int a, int b) {
    const struct rfx_place_problem *p = g->problem;
    return p->items[a].size == p->items[b].size && p->first[a] == p->first[b] &&
           p->last[a] == p->last[b];
}

/* Whether an equal item of lower number is left out: then the same is found with that one. */
static bool skips_twin(const struct rfx_front_groups *g, const int *list, uint64_t left,
                       uint64_t mask) {
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        for (uint64_t out = left & ~mask & rfx_front_all(bit); out != 0; out &= out - 1)
            if (are_twins(g, list[__builtin_ctzll(out)], list[bit])) return true;
    }
    return false;
}

/* Lists the sums of the begins left in two halves, unless that was done just before. */
static void list_halves(struct rfx_front_groups *g, const struct rfx_front_left *left) {
    int bits[RFX_FRONT_MAX_SIDE];
    const int *begins = &g->times->by_begin[g->times->at[left->boundary].begins];
    int n = 0;
    if (g->listed_boundary == left->boundary && g->listed_begins == left->begins) return;
    for (uint64_t rest = left->begins; rest != 0; rest &= rest - 1)
        bits[n++] = __builtin_ctzll(rest);
    g->listed_sum = 0;
    g->listed_squares = 0;
    for (int i = 0; i < n; i++) {
        size_t size = g->problem->items[begins[bits[i]]].size;
        g->listed_sum += size;
        g->listed_squares += (float)size * (float)size;
    }
    g->has_twins = false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (are_twins(g, begins[bits[i]], begins[bits[k]])) g->has_twins = true;
    g->n_low = list_sums(g, begins, bits, n / 2, g->low);
    g->n_high = list_sums(g, begins, &bits[n / 2], n - n / 2, g->high);
    g->listed_boundary = left->boundary;
    g->listed_begins = left->begins;
}

static int compare_groups(const void *pa, const void *pb) {
    const struct rfx_front_group *a = pa;
    const struct rfx_front_group *b = pb;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->ends != b->ends) return a->ends < b->ends ? -1 : 1;
    return (a->begins > b->begins) - (a->begins < b->begins);
}

/* Keeps the best groups of those listed so far. */
static void keep_best(struct rfx_front_groups *g) {
    qsort(g->list, (size_t)g->n, sizeof *g->list, compare_groups);
    if (g->n <= MAX_GROUPS) return;
    g->complete = false;
    g->n = MAX_GROUPS;
}

/* The logarithm of n over k. */
static double log_choose(const struct rfx_front_groups *g, int n, int k) {
    return g->log_factorial[n] - g->log_factorial[k] - g->log_factorial[n - k];
}

/* What a group loses for its size alone. */
static double loss_of(const struct rfx_front_groups *g, const struct rfx_front_left *left,
                      const struct rfx_front_group *group) {
    const struct rfx_front_weights *w = &g->weights;
    if ((w->size == 0 && w->among == 0) || group->ends == left->ends) return 0;
    int n_ends = __builtin_popcountll(left->ends), n_begins = __builtin_popcountll(left->begins);
    int ends = __builtin_popcountll(group->ends), begins = __builtin_popcountll(group->begins);
    double groups = log_choose(g, n_ends - 1, ends - 1) + log_choose(g, n_begins, begins);
    return w->size * (log(ends) + log(begins)) + w->among * groups;
}

/* Lists a group, whose score lacks the orders of its begins, if that is better than `least`. */
static void add_group(struct rfx_front_groups *g, const struct rfx_front_left *left,
                      struct rfx_front_group group, float least) {
    double orders = g->log_factorial[__builtin_popcountll(group.begins)];
    group.gain -= (float)loss_of(g, left, &group);
    group.score += group.gain + (float)(g->weights.orders * orders);
    if (group.score > least)
        g->list[g->n++] = group;
    else
        g->complete = false;
}

/* Sums of begins that may be close to what ends: [lo, hi], or a little more. */
struct close_sums {
    size_t lo, hi;
};

static struct close_sums close_sums_of(const struct rfx_front_groups *g,
                                       const struct rfx_front_block *ends, bool all_ends,
                                       float expected, float spread) {
    struct close_sums c = {(size_t)((double)ends->height * (1 - g->rooms.most)), ends->highest};
    if (all_ends) { /* then all begin */
        if (c.lo < g->listed_sum) c.lo = g->listed_sum;
        if (c.hi > g->listed_sum) c.hi = g->listed_sum;
        return c;
    }
    float most = g->listed_squares * spread + 1 + (float)ends->variance; /* that a sum varies by */
    float reach = 1.01F * sqrtf(2 * too_far * most) + 1;
    float lo = expected - reach, hi = expected + reach;
    if (hi < 0) hi = 0;
    if (lo > 0 && c.lo < (size_t)lo) c.lo = (size_t)lo;
    if (hi < (float)c.hi) c.hi = (size_t)hi + 1;
    return c;
}

/* Finds the groups of these ends with all begins whose sum is close, up to `most`; their number.
 * With `least` they are listed, if they are better. */
static int find_groups(struct rfx_front_groups *g, const struct rfx_front_left *left,
                       const struct rfx_front_union *u, const float *least, int most) {
    const int *begins = &g->times->by_begin[g->times->at[left->boundary].begins];
    const struct rfx_front_block *ends = &u->sum;
    const struct rfx_front_sum *low = g->low;
    const struct rfx_front_sum *high = g->high;
    bool all_ends = ends->mask == left->ends;
    float spread = (float)(g->rooms.shrink * g->rooms.shrink / 3); /* of a share from 0 to twice */
    float expected = (float)(ends->room * (1 - g->rooms.shrink));
    float score = (float)(g->weights.orders * u->orders), given = (float)ends->variance;
    struct close_sums close = close_sums_of(g, ends, all_ends, expected, spread);
    int found = 0;
    int h = g->n_high - 1;
    for (int l = 0; l < g->n_low; l++) {
        while (h >= 0 && high[h].sum + low[l].sum > close.hi) h--;
        for (int k = h; k >= 0 && high[k].sum + low[l].sum >= close.lo; k--) {
            uint64_t mask = low[l].mask | high[k].mask;
            float own = (high[k].squares + low[l].squares) * spread + 1;
            float variance = own + given;
            float difference = expected - (float)(high[k].sum + low[l].sum);
            float square = difference * difference;
            if (mask == 0 || all_ends != (mask == left->begins)) continue;
            if (square > 2 * too_far * variance && !all_ends) continue;
            if (g->has_twins && skips_twin(g, begins, left->begins, mask)) continue;
            if (found == most) return found;
            found++;
            if (least == NULL) continue;
            float gain = g->match - square / (2 * variance) - logf(variance / own) / 2;
            add_group(g, left, (struct rfx_front_group){ends->mask, mask, gain, score}, *least);
        }
    }
    return found;
}

/* Of the blocks the one that is in the fewest groups. */
static uint64_t find_fewest(const struct rfx_front_groups *g, int n_unions, int n_blocks) {
    uint64_t best = 0;
    int fewest = INT32_MAX;
    for (int b = 0; b < n_blocks; b++) {
        int count = 0;
        for (int u = 0; u < n_unions; u++)
            if ((g->unions[u].sum.mask & g->blocks[b].mask) != 0) count += g->unions[u].groups;
        if (count >= fewest) continue;
        fewest = count;
        best = g->blocks[b].mask;
    }
    return best;
}

/* Lists the groups of a union that are better than `least`. What is known without looking at them
 * is often enough: none gains more than a perfect match of as many begins as there are. */
static void list_union(struct rfx_front_groups *g, const struct rfx_front_left *left,
                       const struct rfx_front_union *u, float least) {
    double begins = g->log_factorial[__builtin_popcountll(left->begins)];
    double most = (double)g->match + g->weights.orders * (u->orders + begins);
    if (most > (double)least)
        (void)find_groups(g, left, u, &least, u->groups);
    else
        g->complete = false;
}

void rfx_front_groups_list(struct rfx_front_groups *g, const struct rfx_forest *forest,
                           const struct rfx_front_left *left, const float *least) {
    const struct rfx_front_boundary *b = &g->times->at[left->boundary];
    bool *marked = g->forests->marked;
    int *gone = g->items;
    int n_gone = select_items(&g->times->by_end[b->ends], left->ends, gone);
    for (int i = 0; i < n_gone; i++) marked[gone[i]] = true;
    int n_blocks = rfx_front_blocks(&g->rooms, forest, b->side, marked, g->blocks);
    for (int i = 0; i < n_gone; i++) marked[gone[i]] = false;
    rfx_front_counts_enter(&g->counts, forest, b->side, &g->times->by_end[b->ends], left->ends);
    int n_unions = list_unions(g, n_blocks);
    list_halves(g, left);
    g->n = g->n_compared = 0;
    for (int k = 0; k < n_unions; k++) {
        struct rfx_front_union *u = &g->unions[k];
        u->groups = find_groups(g, left, u, NULL, MAX_POOL - g->n_compared);
        if (u->groups == 0) continue;
        u->orders = rfx_front_counts_without(&g->counts, u->sum.mask);
        if (u->orders < 0) u->groups = 0;
        g->n_compared += u->groups;
    }
    if (g->n_compared == MAX_POOL) g->complete = false;
    uint64_t block = find_fewest(g, n_unions, n_blocks);
    for (int k = 0; k < n_unions; k++) {
        const struct rfx_front_union *u = &g->unions[k];
        if (u->groups > 0 && (u->sum.mask & block) != 0)
            list_union(g, left, u, least[__builtin_popcountll(u->sum.mask)]);
    }
    keep_best(g);
}
