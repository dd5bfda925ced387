/* Subsets of what ends and of what begins whose sums are close; see fronts_groups.h. */
#include "tiler/fronts/fronts_groups.h"

#include <math.h>
#include <stdlib.h>

/* What bounds the work on one state. MAX_SUBSETS: of the blocks that end, and of each half of the
 * items that begin. MAX_POOL: groups that are compared; MAX_GROUPS: of one block, each of which
 * costs a forest. */
enum { MAX_SUBSETS = 1 << 11, MAX_POOL = 1 << 15, MAX_GROUPS = 1 << 10 };

/* In units of the mean share: more than what evenly drawn shares come to, as that is estimated. */
static const double most_shares = 2.4;

/* Of the logarithms: what a group of two items gains by chance, and what each item more costs. */
static double join_cost = 0.85, p_all = 0.5, tail = 1;
static float too_far = 8;
static double gain_bias = 1;

struct rfx_front_subset {
    size_t sum, lowest, highest; /* blocks: heights, and the least and most room */
    double squares, room, variance;
    uint64_t mask;
    int items, parts;
};

/* Of begins: what a sum of them is compared by. */
struct rfx_front_sum {
    size_t sum;
    float squares;
    int items;
    uint64_t mask;
};

struct rfx_front_value {
    int gone, leaves;
    size_t sum;   /* of the sizes of its leaves */
    size_t spare; /* how much higher its place may be than its height */
    double room, variance;
};

struct rfx_front_block {
    struct rfx_front_subset part;
};

enum rfx_status rfx_front_groups_init(struct rfx_front_groups *g,
                                      const struct rfx_place_problem *problem,
                                      const struct rfx_front_times *times,
                                      struct rfx_forests *forests, size_t capacity,
                                      struct rfx_error *err) {
    struct rfx_memory *mem = problem->mem;
    size_t nodes = 2 * (size_t)times->max_live + 2;
    *g = (struct rfx_front_groups){.mem = mem,
                                   .problem = problem,
                                   .times = times,
                                   .forests = forests,
                                   .capacity = capacity,
                                   .complete = true,
                                   .listed_boundary = -1};
    double free_area = 0;
    double area = 0;
    for (int s = 0; s < problem->n_sections; s++) {
        free_area += (double)(capacity - problem->breadth[s]);
        area += (double)capacity;
    }
    for (int i = 0; i < times->n_live; i++) {
        int item = times->live[i];
        area -= (double)problem->items[item].size *
                (double)(problem->last[item] - problem->first[item]);
    }
    g->shrink = area > 0 ? free_area / area : 0;
    if (g->shrink < 1e-6) g->shrink = 1e-6;
    g->most = most_shares * g->shrink;
    g->list = rfx_memory_calloc(mem, MAX_POOL, sizeof *g->list);
    g->unions = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->unions);
    g->low = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->low);
    g->high = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->high);
    g->blocks = rfx_memory_calloc(mem, RFX_FRONT_MAX_SIDE, sizeof *g->blocks);
    g->values = rfx_memory_calloc(mem, nodes, sizeof *g->values);
    g->items = rfx_memory_calloc(mem, 4 * RFX_FRONT_MAX_SIDE, sizeof *g->items);
    if (g->list != NULL && g->unions != NULL && g->low != NULL && g->high != NULL &&
        g->blocks != NULL && g->values != NULL && g->items != NULL) {
        if (getenv("FR_JOIN")) join_cost = atof(getenv("FR_JOIN"));
        if (getenv("FR_FAR")) too_far = atof(getenv("FR_FAR"));
        if (getenv("FR_TAIL")) tail = atof(getenv("FR_TAIL"));
        if (getenv("FR_ALL")) p_all = atof(getenv("FR_ALL"));
        for (int k = 1; k <= RFX_FRONT_MAX_SIDE; k++)
            g->log_factorial[k] = g->log_factorial[k - 1] + log(k);
        if (getenv("FR_BIAS")) gain_bias = atof(getenv("FR_BIAS"));
        return RFX_OK;
    }
    rfx_front_groups_release(g);
    return rfx_memory_fail(mem, "packer", MAX_POOL * sizeof *g->list, err);
}

void rfx_front_groups_release(struct rfx_front_groups *g) {
    void *const blocks[] = {g->list, g->unions, g->low, g->high, g->blocks, g->values, g->items};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(g->mem, blocks[i]);
}

static int select_items(const int *list, uint64_t mask, int *out) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) out[n++] = list[__builtin_ctzll(mask)];
    return n;
}

static uint64_t all_of(int n) {
    return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
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

static size_t size_of(const struct rfx_front_groups *g, int item) {
    return g->problem->items[item].size;
}

/* Whether what took `height` bytes cannot have become as small as `sum`. */
static bool is_too_low(const struct rfx_front_groups *g, size_t height, size_t sum) {
    return (double)sum < (double)height * (1 - g->most);
}

bool rfx_front_groups_measure(struct rfx_front_groups *g, struct rfx_forest *forest, int side,
                              int tree) {
    int at = rfx_forest_root(forest, side, tree);
    struct rfx_pq_node *nodes = &forest->nodes[side][at];
    struct rfx_front_value *values = g->values;
    for (int i = nodes->span - 1; i >= 0; i--) { /* children come before their parent */
        size_t height = nodes[i].what >= 0 ? size_of(g, nodes[i].what) : 0;
        values[i].sum = height;
        for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) {
            values[i].sum += values[k].sum;
            height += nodes[k].height;
        }
        if (height > nodes[i].height) nodes[i].height = height;
        if (is_too_low(g, nodes[i].height, values[i].sum)) return false;
    }
    struct rfx_pq_node *other = &forest->nodes[1 - side][rfx_forest_root(forest, 1 - side, tree)];
    if (nodes->height > other->height) other->height = nodes->height;
    if (other->height > nodes->height) nodes->height = other->height;
    size_t total = 0;
    for (int k = 0; k < forest->n_nodes[side]; k += forest->nodes[side][k].span)
        total += forest->nodes[side][k].height;
    return total <= g->capacity;
}

/* Fills the values of a side's nodes: what goes, and how much room each has. */
static void value_nodes(struct rfx_front_groups *g, const struct rfx_forest *forest, int side) {
    const struct rfx_pq_node *nodes = forest->nodes[side];
    struct rfx_front_value *values = g->values;
    size_t total = 0;
    for (int i = forest->n_nodes[side] - 1; i >= 0; i--) {
        struct rfx_front_value *v = &values[i];
        bool leaf = nodes[i].what >= 0;
        *v = (struct rfx_front_value){.leaves = leaf,
                                      .gone = leaf && g->forests->marked[nodes[i].what],
                                      .sum = leaf ? size_of(g, nodes[i].what) : 0};
        for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) {
            v->gone += values[k].gone;
            v->leaves += values[k].leaves;
            v->sum += values[k].sum;
        }
    }
    for (int i = 0; i < forest->n_nodes[side]; i += nodes[i].span) total += nodes[i].height;
    for (int i = 0; i < forest->n_nodes[side]; i += nodes[i].span) {
        values[i].spare = g->capacity - total;
        values[i].room = (double)nodes[i].height;
    }
    for (int i = 0; i < forest->n_nodes[side]; i++) {
        size_t height = 0;
        double sum = (double)values[i].sum;
        for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) height += nodes[k].height;
        double slack = (double)nodes[i].height - (double)height;
        for (int k = i + 1; k < i + nodes[i].span; k += nodes[k].span) {
            double share = (double)values[k].sum / sum;
            double spread = slack * share;
            values[k].spare = values[i].spare + nodes[i].height - height;
            values[k].room = values[i].room * share;
            if (values[k].room < (double)nodes[k].height)
                values[k].room = (double)nodes[k].height;
            values[k].variance = values[i].variance * share * share + spread * spread / 6;
        }
    }
}

/* Adds a node, all of which goes, to a block. */
static void add_node(const struct rfx_front_groups *g, const struct rfx_pq_node *nodes, int i,
                     int side, struct rfx_front_subset *block) {
    const struct rfx_front_value *v = &g->values[i];
    block->sum += nodes[i].height;
    block->lowest += nodes[i].height;
    block->highest += nodes[i].height + v->spare;
    block->room += v->room;
    block->variance += v->variance;
    block->items += v->leaves;
    for (int k = i; k < i + nodes[i].span; k++)
        if (nodes[k].what >= 0)
            block->mask |= (uint64_t)1 << g->times->bit[side][nodes[k].what];
}

/* Lists the blocks of what goes: nodes that go wholly, side by side under a Q node together. */
static int list_blocks(struct rfx_front_groups *g, const struct rfx_forest *forest, int side) {
    const struct rfx_pq_node *nodes = forest->nodes[side];
    struct rfx_front_block *blocks = g->blocks;
    int n = 0;
    int parents[RFX_FRONT_MAX_SIDE * 4];
    int depth = 0;
    int after = -1; /* the node after the last block, when that was a child of a Q node */
    for (int i = 0; i < forest->n_nodes[side];) {
        while (depth > 0 && i >= parents[depth - 1] + nodes[parents[depth - 1]].span) depth--;
        if (g->values[i].gone < g->values[i].leaves) {
            if (nodes[i].what < 0) parents[depth++] = i;
            i++;
            continue;
        }
        if (i != after) blocks[n++] = (struct rfx_front_block){{0}};
        add_node(g, nodes, i, side, &blocks[n - 1].part);
        int end = i + nodes[i].span;
        int parent = depth > 0 ? parents[depth - 1] : -1;
        bool in_q = parent >= 0 && nodes[parent].what == RFX_PQ_Q;
        after = in_q && end < parent + nodes[parent].span ? end : -1;
        i = end;
    }
    return n;
}

static void add_part(struct rfx_front_subset *to, const struct rfx_front_subset *part) {
    to->sum += part->sum;
    to->lowest += part->lowest;
    to->highest += part->highest;
    to->squares += part->squares;
    to->room += part->room;
    to->variance += part->variance;
    to->mask |= part->mask;
    to->items += part->items;
}

/* Unions of `size` of n parts, as long as there is room; the number of subsets now. */
static int add_unions(const struct rfx_front_subset *parts, int n, int size,
                      struct rfx_front_subset *subsets, int count) {
    uint64_t all = all_of(n);
    uint64_t mask = all_of(size);
    while (count < MAX_SUBSETS) {
        struct rfx_front_subset made = {.parts = size};
        for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
            add_part(&made, &parts[__builtin_ctzll(rest)]);
        subsets[count++] = made;
        if (mask == 0 || mask == all) break;
        uint64_t lowest = mask & (0 - mask); /* the next larger number of as many bits */
        uint64_t ripple = mask + lowest;
        if (ripple < mask) break;
        mask = ripple | (((mask ^ ripple) >> 2) / lowest);
        if (mask > all) break;
    }
    return count;
}

/* Unions of n parts, of few and of nearly all first where there are too many: a time at which
 * much ends has one large group and some small ones. */
static int list_subsets(struct rfx_front_groups *g, const struct rfx_front_subset *parts, int n,
                        bool empty, struct rfx_front_subset *subsets) {
    int count = 0;
    if (n >= 31 || 1 << n > MAX_SUBSETS) g->complete = false;
    if (empty) count = add_unions(parts, n, 0, subsets, count);
    for (int few = 0; 2 * few < n; few++) {
        count = add_unions(parts, n, n - few, subsets, count);
        if (few + 1 < n - few) count = add_unions(parts, n, few + 1, subsets, count);
    }
    return count;
}

static int compare_sums(const void *pa, const void *pb) {
    const struct rfx_front_sum *a = pa;
    const struct rfx_front_sum *b = pb;
    if (a->sum != b->sum) return a->sum < b->sum ? -1 : 1;
    return (a->mask > b->mask) - (a->mask < b->mask);
}

/* Lists the sums of n parts by size; their number. */
static int list_sums(struct rfx_front_groups *g, const struct rfx_front_subset *parts, int n,
                     struct rfx_front_sum *sums) {
    int count = list_subsets(g, parts, n, true, g->unions);
    for (int i = 0; i < count; i++) {
        const struct rfx_front_subset *from = &g->unions[i];
        sums[i] = (struct rfx_front_sum){from->sum, (float)from->squares, from->items, from->mask};
    }
    qsort(sums, (size_t)count, sizeof *sums, compare_sums);
    return count;
}

static bool are_twins(const struct rfx_front_groups *g, int a, int b) {
    const struct rfx_place_problem *p = g->problem;
    return p->items[a].size == p->items[b].size && p->first[a] == p->first[b] &&
           p->last[a] == p->last[b];
}

/* Lists the sums of the begins left in two halves, unless that was done just before. */
static void list_halves(struct rfx_front_groups *g, const struct rfx_front_left *left) {
    if (g->listed_boundary == left->boundary && g->listed_begins == left->begins) return;
    struct rfx_front_subset parts[RFX_FRONT_MAX_SIDE];
    const int *begins = &g->times->by_begin[g->times->at[left->boundary].begins];
    int n = 0;
    g->has_twins = false;
    for (uint64_t rest = left->begins; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        size_t size = size_of(g, begins[bit]);
        for (uint64_t others = rest & (rest - 1); others != 0; others &= others - 1)
            if (are_twins(g, begins[bit], begins[__builtin_ctzll(others)])) g->has_twins = true;
        parts[n++] = (struct rfx_front_subset){.sum = size,
                                               .squares = (double)size * (double)size,
                                               .mask = (uint64_t)1 << bit,
                                               .items = 1};
    }
    g->n_low = list_sums(g, parts, n / 2, g->low);
    g->n_high = list_sums(g, &parts[n / 2], n - n / 2, g->high);
    g->listed_boundary = left->boundary;
    g->listed_begins = left->begins;
}

/* Whether an equal item of lower number is left out: then the same is found with that one. */
static bool skips_twin(const struct rfx_front_groups *g, const int *list, uint64_t left,
                       uint64_t mask) {
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        int item = list[bit];
        for (uint64_t out = left & ~mask & all_of(bit); out != 0; out &= out - 1)
            if (are_twins(g, list[__builtin_ctzll(out)], item)) return true;
    }
    return false;
}

/* The logarithm of n over k. */
static double log_choose(const struct rfx_front_groups *g, int n, int k) {
    return g->log_factorial[n] - g->log_factorial[k] - g->log_factorial[n - k];
}

/* How likely a group is before its sums are known: all that is left is one group half of the time,
 * else any of so many of the ends and of the begins that are left. */
static double prior_of(const struct rfx_front_groups *g, const struct rfx_front_left *left,
                       int ends, int begins) {
    int n_ends = __builtin_popcountll(left->ends);
    int n_begins = __builtin_popcountll(left->begins);
    if (ends == n_ends) return log(p_all);
    return log(1 - p_all) + 2 * log(0.5) - tail * (log(ends) + log(begins)) -
           join_cost * (log_choose(g, n_ends - 1, ends - 1) + log_choose(g, n_begins, begins));
}

/* Adds the groups of these ends with all begins whose sum is close. */
static void add_groups(struct rfx_front_groups *g, const struct rfx_front_left *left,
                       const struct rfx_front_subset *ends) {
    const int *begins = &g->times->by_begin[g->times->at[left->boundary].begins];
    const struct rfx_front_sum *low = g->low;
    const struct rfx_front_sum *high = g->high;
    bool all_ends = ends->mask == left->ends;
    int n_begins = __builtin_popcountll(left->begins);
    float prior[RFX_FRONT_MAX_SIDE + 1];
    for (int k = 1; k <= n_begins; k++)
        prior[k] = (float)(prior_of(g, left, ends->items, k) + gain_bias + log(1.7 / g->shrink));
    size_t least = (size_t)((double)ends->lowest * (1 - g->most));
    float spread = (float)(4 * g->shrink * g->shrink / 12);
    float expected = (float)(ends->room * (1 - g->shrink));
    float unknown = (float)ends->variance;
    int h = g->n_high - 1;
    for (int l = 0; l < g->n_low; l++) {
        while (h >= 0 && high[h].sum + low[l].sum > ends->highest) h--;
        for (int k = h; k >= 0 && high[k].sum + low[l].sum >= least; k--) {
            uint64_t mask = low[l].mask | high[k].mask;
            float own = (high[k].squares + low[l].squares) * spread + 1;
            float difference = expected - (float)(high[k].sum + low[l].sum);
            float variance = own + unknown;
            float far = difference * difference / (2 * variance);
            if (mask == 0 || all_ends != (mask == left->begins)) continue;
            if (far > too_far && !all_ends) continue;
            if (g->has_twins && skips_twin(g, begins, left->begins, mask)) continue;
            if (g->n == MAX_POOL) {
                g->complete = false;
                return;
            }
            float gain = prior[high[k].items + low[l].items] - far - logf(variance / own) / 2;
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
        for (int i = 0; i < g->n; i++)
            count += (g->list[i].ends & g->blocks[b].part.mask) != 0;
        if (count >= fewest) continue;
        fewest = count;
        best = g->blocks[b].part.mask;
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
    struct rfx_front_subset parts[RFX_FRONT_MAX_SIDE];
    int *gone = g->items;
    int *with = g->items + RFX_FRONT_MAX_SIDE;
    int *leaves = g->items + 2 * RFX_FRONT_MAX_SIDE;
    int n_gone = select_items(&g->times->by_end[b->ends], left->ends, gone);
    for (int i = 0; i < n_gone; i++) g->forests->marked[gone[i]] = true;
    value_nodes(g, forest, b->side);
    int n_blocks = list_blocks(g, forest, b->side);
    for (int i = 0; i < n_gone; i++) g->forests->marked[gone[i]] = false;
    for (int i = 0; i < n_blocks; i++) parts[i] = g->blocks[i].part;
    list_halves(g, left); /* which uses the unions too */
    int n_unions = list_subsets(g, parts, n_blocks, false, g->unions);
    g->n = 0;
    for (int u = 0; u < n_unions; u++) {
        int before = g->n;
        add_groups(g, left, &g->unions[u]);
        if (g->n == before || g->unions[u].parts == 1) continue;
        struct rfx_pq_run run = {.leaves = leaves};
        int changed = 0;
        struct rfx_forest_change change =
            rfx_front_change(g->times, left->boundary, &g->list[before], gone, with);
        if (!rfx_forest_replace(g->forests, forest, &change, scratch, &changed, &run))
            g->n = before; /* these blocks cannot lie together */
    }
    keep_fewest(g, n_blocks);
}
