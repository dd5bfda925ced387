/* Hashes and numbers of orders; see fronts_judge.h. */
#include "tiler/fronts/fronts_judge.h"

#include <math.h>

#include "tiler/packer/packer_hash.h"

/* Of polynomials of hashes of children. */
static const uint64_t base = 0x9e3779b97f4a7c15U;

/* A tree's hash in its order and in the reverse one, which differ only where it is linked. */
struct hashes {
    uint64_t forward, backward;
};

enum rfx_status rfx_front_judge_init(struct rfx_front_judge *j,
                                     const struct rfx_place_problem *problem,
                                     const struct rfx_front_times *times, struct rfx_error *err) {
    size_t children = 2 * (size_t)times->max_live + 3;
    struct rfx_memory *mem = problem->mem;
    *j = (struct rfx_front_judge){.mem = mem, .problem = problem, .times = times};
    j->hash = rfx_memory_calloc(mem, children, sizeof *j->hash);
    j->log_orders = rfx_memory_calloc(mem, children, sizeof *j->log_orders);
    if (j->hash == NULL || j->log_orders == NULL)
        return rfx_memory_fail(mem, "packer", children * sizeof *j->hash, err);
    for (size_t k = 2; k < children; k++) j->log_orders[k] = j->log_orders[k - 1] + log((double)k);
    return RFX_OK;
}

void rfx_front_judge_release(struct rfx_front_judge *j) {
    if (j->mem == NULL) return; /* never begun */
    rfx_memory_release(j->mem, j->hash);
    rfx_memory_release(j->mem, j->log_orders);
}

static uint64_t hash_item(const struct rfx_front_judge *j, int side, int item) {
    int end = side == RFX_FRONT_LATER ? j->problem->last[item] : j->problem->first[item];
    return rfx_packer_mix(j->problem->items[item].size ^
                          rfx_packer_mix(2 * (uint64_t)end + (uint64_t)side));
}

/* The hashes of node i from those of its children. */
static struct hashes hash_children(struct rfx_front_judge *j, const struct rfx_pq_node *tree,
                                   int i) {
    uint64_t sum = 0;
    uint64_t power = 1;
    struct hashes h = {0, 0};
    for (int k = i + 1; k < i + tree[i].span; k += tree[k].span) {
        uint64_t mixed = rfx_packer_mix(j->hash[k]);
        sum += mixed;
        h.forward = h.forward * base + mixed;
        h.backward += mixed * power;
        power *= base;
    }
    if (tree[i].what == RFX_PQ_P) {
        h.forward = h.backward = rfx_packer_mix(sum + 1) / 2;
    } else {
        h.forward = rfx_packer_mix(h.forward);
        h.backward = rfx_packer_mix(h.backward);
    }
    return h;
}

/* Hashes of a tree of a side. */
static struct hashes hash_tree(struct rfx_front_judge *j, int side, const struct rfx_pq_node *tree,
                               bool linked) {
    struct hashes h = {0, 0};
    for (int i = tree->span - 1; i >= 0; i--) { /* children come before their parent */
        if (tree[i].what >= 0) {
            j->hash[i] = hash_item(j, side, tree[i].what);
            continue;
        }
        h = hash_children(j, tree, i);
        j->hash[i] = h.forward + h.backward;
    }
    if (!linked) h.forward = h.backward = j->hash[0];
    return h;
}

/* The logarithm of the number of orders of a tree, but for the reversal of a linked one. */
static double count_orders(const struct rfx_front_judge *j, const struct rfx_pq_node *tree,
                           bool linked) {
    double orders = 0;
    for (int i = 0; i < tree->span; i++) {
        if (tree[i].what >= 0) continue;
        int n = 2;
        if (tree[i].what == RFX_PQ_P) {
            n = 0;
            for (int k = i + 1; k < i + tree[i].span; k += tree[k].span) n++;
        }
        if (tree[i].what == RFX_PQ_P || i > 0 || !linked) orders += j->log_orders[n];
    }
    return orders;
}

double rfx_front_orders(const struct rfx_front_judge *j, const struct rfx_forest *forest) {
    double orders = j->log_orders[forest->n_trees];
    int at[RFX_FRONT_SIDES] = {0, 0};
    for (int t = 0; t < forest->n_trees; t++) {
        bool linked = rfx_forest_has(&forest->linked, t);
        for (int side = 0; side < RFX_FRONT_SIDES; side++) {
            const struct rfx_pq_node *tree = &forest->nodes[side][at[side]];
            orders += count_orders(j, tree, linked);
            at[side] += tree->span;
        }
        if (linked) orders += j->log_orders[2];
    }
    return orders;
}

uint64_t rfx_front_judge(struct rfx_front_judge *j, const struct rfx_forest *forest,
                         const struct rfx_front_left *left) {
    uint64_t hash = (uint64_t)left->boundary;
    int at[RFX_FRONT_SIDES] = {0, 0};
    for (int t = 0; t < forest->n_trees; t++) {
        bool linked = rfx_forest_has(&forest->linked, t);
        struct hashes h[RFX_FRONT_SIDES];
        for (int side = 0; side < RFX_FRONT_SIDES; side++) {
            const struct rfx_pq_node *tree = &forest->nodes[side][at[side]];
            h[side] = hash_tree(j, side, tree, linked);
            at[side] += tree->span;
        }
        hash += rfx_packer_mix(rfx_packer_mix(h[0].forward) ^ h[1].forward) +
                rfx_packer_mix(rfx_packer_mix(h[0].backward) ^ h[1].backward);
    }
    if (left->boundary == j->times->n) return hash;
    const struct rfx_front_boundary *b = &j->times->at[left->boundary];
    for (uint64_t rest = left->begins; rest != 0; rest &= rest - 1) {
        int item = j->times->by_begin[b->begins + __builtin_ctzll(rest)];
        hash += rfx_packer_mix(hash_item(j, b->side, item));
    }
    return hash;
}
