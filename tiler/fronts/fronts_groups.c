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

/* Before its sums are known: of a group that is all that is left; of any other that has one end,
 * and that has one begin. */
static const double chance_of_all = 0.5;
static const double chance_of_one = 0.5;

/* Blocks together. */
struct rfx_front_union {
    struct rfx_front_block sum;
    int parts;
};

/* Begins together. */
struct rfx_front_sum {
    size_t sum;
    float squares; /* of the sizes, in all */
    int items;
    uint64_t mask;
};

enum rfx_status rfx_front_groups_init(struct rfx_front_groups *g,
                                      const struct rfx_place_problem *problem,
                                      const struct rfx_front_times *times,
                                      struct rfx_forests *forests, size_t capacity,
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
    g->items = rfx_memory_calloc(mem, 3 * RFX_FRONT_MAX_SIDE, sizeof *g->items);
    if (g->list == NULL || g->unions == NULL || g->low == NULL || g->high == NULL ||
        g->blocks == NULL || g->items == NULL)
        return rfx_memory_fail(mem, "packer", MAX_POOL * sizeof *g->list, err);
    return rfx_front_rooms_init(&g->rooms, problem, times, capacity, err);
}

void rfx_front_groups_release(struct rfx_front_groups *g) {
    void *const blocks[] = {g->list, g->unions, g->low, g->high, g->blocks, g->items};
    if (g->mem == NULL) return; /* never begun */
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(g->mem, blocks[i]);
    rfx_front_rooms_release(&g->rooms);
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
    to->items += block->items;
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
        g->unions[i] = (struct rfx_front_union){.parts = __builtin_popcountll(masks[i])};
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
        struct rfx_front_sum made = {.items = __builtin_popcountll(masks[i])};
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
    g->has_twins = false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (are_twins(g, begins[bits[i]], begins[bits[k]])) g->has_twins = true;
    g->n_low = list_sums(g, begins, bits, n / 2, g->low);
    g->n_high = list_sums(g, begins, &bits[n / 2], n - n / 2, g->high);
    g->listed_boundary = left->boundary;
    g->listed_begins = left->begins;
}

/* The logarithm of n over k. */
static double log_choose(const struct rfx_front_groups *g, int n, int k) {
    return g->log_factorial[n] - g->log_factorial[k] - g->log_factorial[n - k];
}

/* What a group of so many ends and begins gains if its sum is what it should be. */
static double gain_of(const struct rfx_front_groups *g, const struct rfx_front_left *left, int ends,
                      int begins) {
    const struct rfx_front_weights *w = &g->weights;
    int n_ends = __builtin_popcountll(left->ends);
    int n_begins = __builtin_popcountll(left->begins);
    double gain = w->match - log(g->rooms.shrink);
    if (ends == n_ends) return gain + log(chance_of_all);
    double groups = log_choose(g, n_ends - 1, ends - 1) + log_choose(g, n_begins, begins);
    return gain + log(1 - chance_of_all) + 2 * log(chance_of_one) -
           w->size * (log(ends) + log(begins)) - w->among * groups;
}

/* Adds the groups of these ends with all begins whose sum is close. */
static void add_groups(struct rfx_front_groups *g, const struct rfx_front_left *left,
                       const struct rfx_front_block *ends) {
    const int *begins = &g->times->by_begin[g->times->at[left->boundary].begins];
    const struct rfx_front_sum *low = g->low;
    const struct rfx_front_sum *high = g->high;
    bool all_ends = ends->mask == left->ends;
    int n_begins = __builtin_popcountll(left->begins);
    float gains[RFX_FRONT_MAX_SIDE + 1];
    for (int k = 1; k <= n_begins; k++) gains[k] = (float)gain_of(g, left, ends->items, k);
    size_t least = (size_t)((double)ends->height * (1 - g->rooms.most));
    float spread = (float)(g->rooms.shrink * g->rooms.shrink / 3); /* of a share from 0 to twice */
    float expected = (float)(ends->room * (1 - g->rooms.shrink));
    int h = g->n_high - 1;
    for (int l = 0; l < g->n_low; l++) {
        while (h >= 0 && high[h].sum + low[l].sum > ends->highest) h--;
        for (int k = h; k >= 0 && high[k].sum + low[l].sum >= least; k--) {
            uint64_t mask = low[l].mask | high[k].mask;
            float own = (high[k].squares + low[l].squares) * spread + 1;
            float variance = own + (float)ends->variance;
            float difference = expected - (float)(high[k].sum + low[l].sum);
            float far = difference * difference / (2 * variance);
            if (mask == 0 || all_ends != (mask == left->begins)) continue;
            if (far > too_far && !all_ends) continue;
            if (g->has_twins && skips_twin(g, begins, left->begins, mask)) continue;
            if (g->n == MAX_POOL) {
                g->complete = false;
                return;
            }
            float gain = gains[high[k].items + low[l].items] - far - logf(variance / own) / 2;
            g->list[g->n++] = (struct rfx_front_group){ends->mask, mask, gain};
        }
    }
}

static int compare_groups(const void *pa, const void *pb) {
    const struct rfx_front_group *a = pa;
    const struct rfx_front_group *b = pb;
    if (a->gain != b->gain) return a->gain > b->gain ? -1 : 1;
    if (a->ends != b->ends) return a->ends < b->ends ? -1 : 1;
    return (a->begins > b->begins) - (a->begins < b->begins);
}

/* Keeps the groups of the block that is in the fewest, the likeliest. */
static void keep_fewest(struct rfx_front_groups *g, int n_blocks) {
    uint64_t best = 0;
    int fewest = INT32_MAX;
    for (int b = 0; b < n_blocks; b++) {
        int count = 0;
        for (int i = 0; i < g->n; i++) count += (g->list[i].ends & g->blocks[b].mask) != 0;
        if (count >= fewest) continue;
        fewest = count;
        best = g->blocks[b].mask;
    }
    int kept = 0;
    for (int i = 0; i < g->n; i++)
        if ((g->list[i].ends & best) != 0) g->list[kept++] = g->list[i];
    qsort(g->list, (size_t)kept, sizeof *g->list, compare_groups);
    if (kept > MAX_GROUPS) g->complete = false;
    g->n = kept < MAX_GROUPS ? kept : MAX_GROUPS;
}

void rfx_front_groups_list(struct rfx_front_groups *g, const struct rfx_forest *forest,
                           const struct rfx_front_left *left, struct rfx_forest *scratch) {
    const struct rfx_front_boundary *b = &g->times->at[left->boundary];
    bool *marked = g->forests->marked;
    int *gone = g->items;
    int *with = gone + RFX_FRONT_MAX_SIDE;
    int n_gone = select_items(&g->times->by_end[b->ends], left->ends, gone);
    for (int i = 0; i < n_gone; i++) marked[gone[i]] = true;
    int n_blocks = rfx_front_blocks(&g->rooms, forest, b->side, marked, g->blocks);
    for (int i = 0; i < n_gone; i++) marked[gone[i]] = false;
    int n_unions = list_unions(g, n_blocks);
    list_halves(g, left);
    g->n = 0;
    for (int u = 0; u < n_unions; u++) {
        int before = g->n;
        int changed = 0;
        struct rfx_pq_run run = {.leaves = with + RFX_FRONT_MAX_SIDE};
        add_groups(g, left, &g->unions[u].sum);
        if (g->n == before || g->unions[u].parts == 1) continue;
        struct rfx_forest_change change =
            rfx_front_change(g->times, left->boundary, &g->list[before], gone, with);
        if (!rfx_forest_replace(g->forests, forest, &change, scratch, &changed, &run))
            g->n = before; /* these blocks cannot lie together */
    }
    g->n_compared = g->n;
    keep_fewest(g, n_blocks);
}
