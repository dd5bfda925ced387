/* Subsets of equal sums: unions of what can end side by side on one hand, of what begins
 * on the other, the latter in two halves that are met in the middle. */
#include "tiler/packer/packer_groups.h"

#include <stdlib.h>

/* What bounds the work on one state; where a bound bites, `complete` is cleared. Packings that are
 * found hang on all three, and plans on packings.
 * MAX_SUBSETS: of the blocks that end, and of each half of the items that begin: all of 11 parts,
 * the small unions of more. MAX_GROUPS: a state's groups, each of which costs a tree.
 * MAX_ALIKE: of one union of blocks, so that many equal sums leave room for other unions. */
enum { MAX_SUBSETS = 1 << 11, MAX_GROUPS = 1 << 9, MAX_ALIKE = 64 };

/* Masks have 64 bits and a subset is counted as 1 << n: more parts than this are never listed in
 * full. */
enum { MAX_COUNTED_PARTS = 62 };

struct rfx_subset {
    size_t sum;
    uint64_t mask;
};

enum rfx_status rfx_groups_create(struct rfx_memory *mem, const struct rfx_boundaries *boundaries,
                                  struct rfx_groups **out, struct rfx_error *err) {
    size_t items = (size_t)boundaries->n_items;
    struct rfx_groups *g = rfx_memory_calloc(mem, 1, sizeof *g);
    if (g == NULL) return rfx_memory_fail(mem, "packer", sizeof *g, err);
    g->mem = mem;
    g->b = boundaries;
    g->complete = true;
    g->listed_boundary = -1;
    enum rfx_status status = rfx_pq_create(mem, boundaries->max_live, &g->pq, err);
    if (status != RFX_OK) goto fail;
    g->leaves = rfx_memory_calloc(mem, items, sizeof *g->leaves);
    g->order = rfx_memory_calloc(mem, items, sizeof *g->order);
    g->block = rfx_memory_calloc(mem, items, sizeof *g->block);
    g->marked = rfx_memory_calloc(mem, items, sizeof *g->marked);
    g->list = rfx_memory_calloc(mem, MAX_GROUPS, sizeof *g->list);
    g->unions = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->unions);
    g->low = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->low);
    g->high = rfx_memory_calloc(mem, MAX_SUBSETS, sizeof *g->high);
    if (g->leaves == NULL || g->order == NULL || g->block == NULL || g->marked == NULL ||
        g->list == NULL || g->unions == NULL || g->low == NULL || g->high == NULL) {
        status = rfx_memory_fail(mem, "packer", 3 * MAX_SUBSETS * sizeof *g->low, err);
        goto fail;
    }
    *out = g;
    return RFX_OK;
fail:
    rfx_groups_free(g);
    return status;
}

void rfx_groups_free(struct rfx_groups *groups) {
    if (groups == NULL) return;
    void *const blocks[] = {groups->leaves, groups->order,  groups->block, groups->marked,
                            groups->list,   groups->unions, groups->low,   groups->high};
    rfx_pq_free(groups->pq);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(groups->mem, blocks[i]);
    rfx_memory_release(groups->mem, groups);
}

static int compare_subsets(const void *pa, const void *pb) {
    const struct rfx_subset *a = pa;
    const struct rfx_subset *b = pb;
    if (a->sum != b->sum) return a->sum < b->sum ? -1 : 1;
    return (a->mask > b->mask) - (a->mask < b->mask);
}

/* Unions of n parts, of few parts first where there are too many, and always of all. */
static int list_subsets(struct rfx_groups *g, const struct rfx_subset *parts, int n, bool empty,
                        struct rfx_subset *subsets) {
    int count = 0;
    uint64_t all = rfx_group_all(n);
    if (n > MAX_COUNTED_PARTS || (uint64_t)1 << n > MAX_SUBSETS) g->complete = false;
    for (int size = empty ? 0 : 1; size <= n; size++) {
        uint64_t mask = size == n || count >= MAX_SUBSETS - 1 ? all : rfx_group_all(size);
        while (mask <= all) {
            struct rfx_subset made = {0, 0};
            for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
                made.sum += parts[__builtin_ctzll(rest)].sum;
                made.mask |= parts[__builtin_ctzll(rest)].mask;
            }
            subsets[count++] = made;
            if (mask == all) return count;
            if (mask == 0 || count >= MAX_SUBSETS - 1) break;
            uint64_t lowest = mask & (0 - mask); /* the next larger number of as many bits */
            uint64_t ripple = mask + lowest;
            if (ripple < mask) break;
            mask = ripple | (((mask ^ ripple) >> 2) / lowest);
        }
    }
    return count;
}

static void mark(struct rfx_groups *g, const int *list, int n, bool marked) {
    for (int i = 0; i < n; i++) g->marked[list[i]] = marked;
}

int rfx_groups_replace(struct rfx_groups *g, int at, const struct rfx_pq_node *tree, int n_tree,
                       struct rfx_group group, struct rfx_pq_node *out, struct rfx_pq_run *run) {
    const struct rfx_boundary *boundary = &g->b->at[at];
    int n_gone = rfx_group_select(&g->b->by_end[boundary->ends], group.ends, g->order);
    int n_with = rfx_group_select(&g->b->by_begin[boundary->begins], group.begins, g->block);
    mark(g, g->order, n_gone, true);
    int n = rfx_pq_replace(g->pq, tree, n_tree, g->marked, n_gone, g->block, n_with, out, run);
    mark(g, g->order, n_gone, false);
    return n;
}

/* Whether an equal item of lower number is left out: then the same is found with that one. */
static bool skips_twin(const struct rfx_groups *g, const int *list, uint64_t left, uint64_t mask) {
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        const struct rfx_boundary_item *item = &g->b->items[list[bit]];
        for (uint64_t out = left & ~mask & rfx_group_all(bit); out != 0; out &= out - 1) {
            const struct rfx_boundary_item *other = &g->b->items[list[__builtin_ctzll(out)]];
            if (other->size == item->size && other->end == item->end) return true;
        }
    }
    return false;
}

/* The blocks of the items left to end: what lies together in every order the tree still allows.
 * The runs that end side by side are unions of them. */
static int list_blocks(struct rfx_groups *g, const struct rfx_group_source *from,
                       struct rfx_subset *blocks) {
    const struct rfx_boundary *boundary = &g->b->at[from->boundary];
    int n = rfx_group_select(&g->b->by_end[boundary->ends], from->left.ends, g->order);
    int n_blocks = 0;
    mark(g, g->order, n, true);
    (void)rfx_pq_blocks(g->pq, from->tree, from->n_tree, g->marked, g->order, g->block);
    mark(g, g->order, n, false);
    for (int i = 0; i < n; i++) {
        const struct rfx_boundary_item *item = &g->b->items[g->order[i]];
        if (g->block[i] == n_blocks) blocks[n_blocks++] = (struct rfx_subset){0, 0};
        blocks[g->block[i]].sum += item->size;
        blocks[g->block[i]].mask |= (uint64_t)1 << item->bit;
    }
    return n_blocks;
}

/* Adds the groups of these ends: begins of the same sum, found in two halves. */
static void add_groups(struct rfx_groups *g, const struct rfx_group_source *from,
                       struct rfx_subset ends) {
    const int *begins = &g->b->by_begin[g->b->at[from->boundary].begins];
    const struct rfx_subset *low = g->low;
    const struct rfx_subset *high = g->high;
    int most = g->n + MAX_ALIKE < MAX_GROUPS ? g->n + MAX_ALIKE : MAX_GROUPS;
    int h = g->n_high - 1;
    for (int l = 0; l < g->n_low && low[l].sum <= ends.sum; l++) {
        while (h >= 0 && high[h].sum > ends.sum - low[l].sum) h--;
        for (int k = h; k >= 0 && high[k].sum == ends.sum - low[l].sum; k--) {
            struct rfx_group group = {ends.mask, low[l].mask | high[k].mask};
            if (g->n == most) {
                g->complete = false;
                return;
            }
            if ((group.ends == from->left.ends) != (group.begins == from->left.begins)) continue;
            if (skips_twin(g, begins, from->left.begins, group.begins)) continue;
            g->list[g->n++] = group;
        }
    }
}

/* Keeps the groups of the block that is in the fewest. */
static void keep_fewest(struct rfx_groups *g, const struct rfx_subset *blocks, int n) {
    uint64_t best = 0;
    int fewest = INT32_MAX;
    for (int b = 0; b < n; b++) {
        int count = 0;
        for (int i = 0; i < g->n; i++) count += (g->list[i].ends & blocks[b].mask) != 0;
        if (count >= fewest) continue;
        fewest = count;
        best = blocks[b].mask;
    }
    int kept = 0;
    for (int i = 0; i < g->n; i++)
        if ((g->list[i].ends & best) != 0) g->list[kept++] = g->list[i];
    g->n = kept;
}

/* Lists the sums of the begins left in two halves, unless that was done just before. */
static void list_halves(struct rfx_groups *g, const struct rfx_group_source *from) {
    if (g->listed_boundary == from->boundary && g->listed_begins == from->left.begins) return;
    struct rfx_subset parts[RFX_BOUNDARY_MAX_SIDE];
    const int *begins = &g->b->by_begin[g->b->at[from->boundary].begins];
    int n = 0;
    for (uint64_t rest = from->left.begins; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        parts[n++] = (struct rfx_subset){g->b->items[begins[bit]].size, (uint64_t)1 << bit};
    }
    g->n_low = list_subsets(g, parts, n / 2, true, g->low);
    g->n_high = list_subsets(g, &parts[n / 2], n - n / 2, true, g->high);
    qsort(g->low, (size_t)g->n_low, sizeof *g->low, compare_subsets);
    qsort(g->high, (size_t)g->n_high, sizeof *g->high, compare_subsets);
    g->listed_boundary = from->boundary;
    g->listed_begins = from->left.begins;
}

void rfx_groups_list(struct rfx_groups *groups, const struct rfx_group_source *from,
                     struct rfx_pq_node *scratch) {
    struct rfx_groups *g = groups;
    struct rfx_subset blocks[RFX_BOUNDARY_MAX_SIDE];
    int n_blocks = list_blocks(g, from, blocks);
    int n_unions = list_subsets(g, blocks, n_blocks, false, g->unions);
    struct rfx_pq_run run = {.leaves = g->leaves};
    list_halves(g, from);
    g->n = 0;
    for (int u = 0; u < n_unions; u++) {
        int before = g->n;
        add_groups(g, from, g->unions[u]);
        if (g->n > before && u >= n_blocks &&
            rfx_groups_replace(g, from->boundary, from->tree, from->n_tree, g->list[before],
                               scratch, &run) == 0)
            g->n = before; /* these blocks cannot lie together */
    }
    keep_fewest(g, blocks, n_blocks);
}
