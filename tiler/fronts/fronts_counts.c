/* A replacement in PQ-trees (packer_pq.c) of which only the number of orders is wanted. */
#include "tiler/fronts/fronts_counts.h"

#include <string.h>

struct rfx_front_count {
    int parent, tree; /* parent -1: a root */
    int leaves, children;
    int going;       /* leaves that may go */
    int gone;        /* of question `number`, else none */
    uint64_t number; /* the last question in which some went */
    int64_t orders;  /* of the subtree */
};

/* How much of a node goes. */
enum part { PART_NONE, PART_SOME, PART_ALL };

enum rfx_status rfx_front_counts_init(struct rfx_front_counts *c,
                                      const struct rfx_place_problem *problem,
                                      const struct rfx_front_times *times,
                                      const struct rfx_forests *forests,
                                      const struct rfx_front_judge *judge, struct rfx_error *err) {
    size_t nodes = 2 * (size_t)times->max_live + 2;
    struct rfx_memory *mem = problem->mem;
    *c = (struct rfx_front_counts){.mem = mem, .forests = forests, .judge = judge};
    c->nodes = rfx_memory_calloc(mem, nodes, sizeof *c->nodes);
    c->parents = rfx_memory_calloc(mem, nodes, sizeof *c->parents);
    c->bit_of = rfx_memory_calloc(mem, (size_t)problem->n, sizeof *c->bit_of);
    if (c->nodes == NULL || c->parents == NULL || c->bit_of == NULL)
        return rfx_memory_fail(mem, "packer", nodes * sizeof *c->nodes, err);
    for (int i = 0; i < problem->n; i++) c->bit_of[i] = -1;
    return RFX_OK;
}

void rfx_front_counts_release(struct rfx_front_counts *c) {
    if (c->mem == NULL) return; /* never begun */
    rfx_memory_release(c->mem, c->nodes);
    rfx_memory_release(c->mem, c->parents);
    rfx_memory_release(c->mem, c->bit_of);
}

static int64_t own_orders(const struct rfx_front_counts *c, int what, int children) {
    return c->judge->log_orders[what == RFX_PQ_P ? children : 2];
}

/* Sets what is known of the nodes of a tree. */
static void enter_nodes(struct rfx_front_counts *c, const struct rfx_pq_node *nodes, int root,
                        int tree) {
    int end = root + nodes[root].span, depth = 0;
    for (int i = root; i < end; i++) {
        while (depth > 0 && i >= c->parents[depth - 1] + nodes[c->parents[depth - 1]].span) depth--;
        struct rfx_front_count *node = &c->nodes[i];
        *node = (struct rfx_front_count){.parent = depth > 0 ? c->parents[depth - 1] : -1,
                                         .tree = tree};
        if (nodes[i].what < 0) {
            c->parents[depth++] = i;
        } else {
            node->leaves = 1;
            node->going = c->bit_of[nodes[i].what] >= 0;
        }
    }
    for (int i = end - 1; i >= root; i--) { /* children come before their parent */
        struct rfx_front_count *node = &c->nodes[i];
        if (nodes[i].what < 0) node->orders += own_orders(c, nodes[i].what, node->children);
        if (i == root) break;
        struct rfx_front_count *parent = &c->nodes[node->parent];
        parent->leaves += node->leaves;
        parent->going += node->going;
        parent->orders += node->orders;
        parent->children++;
    }
}

/* Finds the nodes of a tree all of which may go. */
static void find_heads(struct rfx_front_counts *c, const struct rfx_pq_node *nodes, int root) {
    for (int i = root; i < root + nodes[root].span;) {
        const struct rfx_front_count *node = &c->nodes[i];
        if (node->going == node->leaves) {
            int leaf = i;
            while (nodes[leaf].what < 0) leaf++;
            int bit = c->bit_of[nodes[leaf].what];
            c->heads |= (uint64_t)1 << bit;
            c->node_of[bit] = i;
        }
        i += node->going == 0 || node->going == node->leaves ? nodes[i].span : 1;
    }
}

void rfx_front_counts_enter(struct rfx_front_counts *c, const struct rfx_forest *forest, int side,
                            const int *items, uint64_t ends) {
    c->forest = forest;
    c->side = side;
    c->heads = 0;
    memset(&c->entered, 0, sizeof c->entered);
    for (uint64_t rest = ends; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        c->bit_of[items[bit]] = bit;
    }
    for (uint64_t rest = ends; rest != 0; rest &= rest - 1) {
        int tree = c->forests->tree_of[items[__builtin_ctzll(rest)]];
        if (rfx_forest_has(&c->entered, tree)) continue;
        rfx_forest_put(&c->entered, tree, true);
        int root = c->forests->at[side][tree];
        enter_nodes(c, forest->nodes[side], root, tree);
        find_heads(c, forest->nodes[side], root);
    }
    for (uint64_t rest = ends; rest != 0; rest &= rest - 1)
        c->bit_of[items[__builtin_ctzll(rest)]] = -1;
}

static enum part part_of(const struct rfx_front_counts *c, int node) {
    const struct rfx_front_count *n = &c->nodes[node];
    if (n->number != c->number) return PART_NONE;
    return n->gone == n->leaves ? PART_ALL : PART_SOME;
}

/* Takes a P node that goes in part apart: adds the orders of what stays. Returns its child that
 * goes in part, -1: none does, -2: several do. */
static int peel_p(const struct rfx_front_counts *c, const struct rfx_pq_node *nodes, int node,
                  int64_t *orders) {
    int some = -1, kept = 0;
    for (int k = node + 1; k < node + nodes[node].span; k += nodes[k].span) {
        enum part part = part_of(c, k);
        if (part == PART_SOME && some != -1) return -2;
        if (part == PART_SOME) some = k;
        if (part != PART_NONE) continue;
        *orders += c->nodes[k].orders;
        kept++;
    }
    *orders += c->judge->log_orders[kept];
    return some;
}

/* As peel_p for a Q node: what stays must be at one end, what goes at the other; -2: it is not. */
static int peel_q(const struct rfx_front_counts *c, const struct rfx_pq_node *nodes, int node,
                  int64_t *orders) {
    int some = -1, end = node + nodes[node].span, last = node + 1;
    while (last + nodes[last].span < end) last += nodes[last].span;
    bool ahead = part_of(c, node + 1) == PART_NONE || part_of(c, last) == PART_ALL;
    int before = ahead ? PART_NONE : PART_ALL;
    for (int k = node + 1; k < end; k += nodes[k].span) {
        int part = (int)part_of(c, k);
        if (ahead ? part < before : part > before) return -2;
        if (part == PART_SOME && some != -1) return -2;
        if (part == PART_SOME) some = k;
        if (part == PART_NONE) *orders += c->nodes[k].orders;
        before = part;
    }
    return some;
}

/* Takes a node apart that goes in part, of which what goes has to lie at one end: adds the orders
 * of what stays. false: it cannot. */
static bool peel(const struct rfx_front_counts *c, int node, int64_t *orders) {
    const struct rfx_pq_node *nodes = c->forest->nodes[c->side];
    while (node >= 0)
        node = nodes[node].what == RFX_PQ_Q ? peel_q(c, nodes, node, orders)
                                            : peel_p(c, nodes, node, orders);
    return node == -1;
}

/* What becomes of a P node, the deepest one that holds all that goes: adds its orders. */
static bool replace_p(const struct rfx_front_counts *c, int root, int64_t *orders) {
    const struct rfx_pq_node *nodes = c->forest->nodes[c->side];
    int kept = 0, some = 0;
    for (int k = root + 1; k < root + nodes[root].span; k += nodes[k].span) {
        enum part part = part_of(c, k);
        if (part == PART_NONE) {
            kept++;
            *orders += c->nodes[k].orders;
        } else if (part == PART_SOME && (++some > 2 || !peel(c, k, orders))) {
            return false;
        }
    }
    if (some > 0) *orders += c->judge->log_orders[2]; /* a Q node */
    if (kept > 0) *orders += c->judge->log_orders[kept + 1];
    return true;
}

/* As replace_p, of a Q node. */
static bool replace_q(const struct rfx_front_counts *c, int root, int64_t *orders) {
    const struct rfx_pq_node *nodes = c->forest->nodes[c->side];
    int first = -1, last = -1;
    for (int k = root + 1; k < root + nodes[root].span; k += nodes[k].span) {
        if (part_of(c, k) == PART_NONE) {
            *orders += c->nodes[k].orders;
            continue;
        }
        if (first < 0) first = k;
        last = k;
    }
    *orders += c->judge->log_orders[2];
    for (int k = first; k <= last; k += nodes[k].span) {
        enum part part = part_of(c, k);
        if (part == PART_ALL) continue;
        if ((k != first && k != last) || part == PART_NONE || !peel(c, k, orders)) return false;
    }
    return true;
}

/* All that goes is of one tree, with this root: the change of the number of orders. */
static bool count_within(const struct rfx_front_counts *c, int root, int64_t *orders) {
    const struct rfx_pq_node *nodes = c->forest->nodes[c->side];
    int tree = c->nodes[root].tree, gone = c->nodes[root].gone, at = root;
    if (gone == c->nodes[root].leaves) { /* then it is linked no more */
        bool linked = rfx_forest_has(&c->forest->linked, tree);
        *orders = (linked ? c->judge->log_orders[2] : 0) - c->nodes[root].orders;
        return true;
    }
    for (int k = root + 1; k < at + nodes[at].span;) {
        if (part_of(c, k) != PART_NONE && c->nodes[k].gone == gone)
            at = k++; /* go down */
        else
            k += nodes[k].span;
    }
    *orders = -c->nodes[at].orders;
    if (part_of(c, at) == PART_ALL) return true;
    return nodes[at].what == RFX_PQ_Q ? replace_q(c, at, orders) : replace_p(c, at, orders);
}

/* What goes is of several trees, which become one; parts of at most two stay, on the outside. */
static bool count_across(const struct rfx_front_counts *c, const int *roots, int n,
                         int64_t *orders) {
    const int64_t *log_orders = c->judge->log_orders;
    int some = 0;
    *orders = 0;
    for (int i = 0; i < n; i++) {
        const struct rfx_front_count *root = &c->nodes[roots[i]];
        int64_t linked = rfx_forest_has(&c->forest->linked, root->tree) ? log_orders[2] : 0;
        *orders -= root->orders - linked;
        if (root->gone == root->leaves) continue;
        *orders -= linked; /* its root on the other side is one no more */
        if (++some > 2 || !peel(c, roots[i], orders)) return false;
    }
    if (some > 0) *orders += log_orders[2]; /* linked */
    *orders += log_orders[n - some];
    return true;
}

double rfx_front_counts_without(struct rfx_front_counts *c, uint64_t ends) {
    int roots[RFX_FRONT_MAX_SIDE], n = 0;
    struct rfx_front_sums sums = c->judge->all;
    int64_t change = 0;
    c->number++;
    for (uint64_t rest = ends & c->heads; rest != 0; rest &= rest - 1) {
        int head = c->node_of[__builtin_ctzll(rest)];
        for (int at = head; at >= 0; at = c->nodes[at].parent) {
            struct rfx_front_count *node = &c->nodes[at];
            if (node->number != c->number) {
                node->gone = 0;
                if (node->parent < 0) roots[n++] = at;
            }
            node->number = c->number;
            node->gone += c->nodes[head].leaves;
        }
    }
    if (n == 1 ? !count_within(c, roots[0], &change) : !count_across(c, roots, n, &change))
        return -1;
    sums.orders += change;
    return rfx_front_orders(c->judge, &sums, c->forest->n_trees - n + 1);
}
