/* Replacement in PQ-trees, without recursion. A node is "mixed" if it contains both leaves that are
 * removed and leaves that stay. Mixed nodes form at most two chains below the root of the
 * replacement; each chain is peeled from the outside in. */
#include "tiler/arena/pq_tree.h"

#include <assert.h>
#include <string.h>

/* The parts of a mixed chain, from the outside in: `kept` nodes stay, `gone` nodes are removed. The
 * entry ~node stands for all children of P node `node` that stay. */
struct peel {
    int *kept, *gone;
    int n_kept, n_gone;
};

struct rfx_pq {
    struct rfx_memory *mem;
    int *gone, *leaves; /* per node of the tree: removed leaves in it, and all leaves in it */
    int *children, *parent;
    struct peel left, right, middle;
};

enum { N_ARRAYS = 10 }; /* of a tree's nodes, in one block that begins with rfx_pq.gone */

enum { PEELED = -1, IMPOSSIBLE = -2 };

struct writer {
    const struct rfx_pq_node *tree;
    struct rfx_pq_node *out;
    int n;
};

enum rfx_status rfx_pq_create(struct rfx_memory *mem, int max_leaves, struct rfx_pq **out,
                              struct rfx_error *err) {
    size_t n = 2 * (size_t)max_leaves; /* more than the nodes of a tree */
    struct rfx_pq *pq = rfx_memory_calloc(mem, 1, sizeof *pq);
    if (pq == NULL) return rfx_memory_fail(mem, "packer", sizeof *pq, err);
    pq->mem = mem;
    pq->gone = rfx_memory_calloc(mem, N_ARRAYS * n, sizeof *pq->gone);
    if (pq->gone == NULL) {
        rfx_pq_free(pq);
        return rfx_memory_fail(mem, "packer", N_ARRAYS * n * sizeof *pq->gone, err);
    }
    int **const arrays[N_ARRAYS - 1] = {&pq->leaves,     &pq->children,    &pq->parent,
                                        &pq->left.kept,  &pq->left.gone,   &pq->right.kept,
                                        &pq->right.gone, &pq->middle.kept, &pq->middle.gone};
    for (size_t i = 0; i < N_ARRAYS - 1; i++) *arrays[i] = pq->gone + (i + 1) * n;
    *out = pq;
    return RFX_OK;
}

void rfx_pq_free(struct rfx_pq *pq) {
    if (pq == NULL) return;
    rfx_memory_release(pq->mem, pq->gone);
    rfx_memory_release(pq->mem, pq);
}

int rfx_pq_make(const int *leaves, int n, struct rfx_pq_node *out) {
    int count = 0;
    if (n > 1) out[count++] = (struct rfx_pq_node){RFX_PQ_P, n + 1};
    for (int i = 0; i < n; i++) out[count++] = (struct rfx_pq_node){leaves[i], 1};
    return count;
}

static bool is_kept(const struct rfx_pq *pq, int node) {
    return pq->gone[node] == 0;
}

static bool is_gone(const struct rfx_pq *pq, int node) {
    return pq->gone[node] == pq->leaves[node];
}

static void count_leaves(struct rfx_pq *pq, const struct rfx_pq_node *tree, int n,
                         const bool *gone) {
    for (int i = n - 1; i >= 0; i--) { /* children come before their parent */
        pq->leaves[i] = tree[i].what >= 0;
        pq->gone[i] = tree[i].what >= 0 && gone[tree[i].what];
        for (int k = i + 1; k < i + tree[i].span; k += tree[k].span) {
            pq->leaves[i] += pq->leaves[k];
            pq->gone[i] += pq->gone[k];
            pq->parent[k] = i;
        }
    }
}

/* Returns the deepest node that contains all removed leaves. */
static int find_root(const struct rfx_pq *pq, const struct rfx_pq_node *tree, int n_gone) {
    int root = 0;
    for (int k = 1; k < root + tree[root].span;) {
        if (pq->gone[k] == n_gone) {
            root = k++; /* go down */
        } else {
            k += tree[k].span;
        }
    }
    return root;
}

static int list_children(struct rfx_pq *pq, const struct rfx_pq_node *tree, int node) {
    int n = 0;
    for (int k = node + 1; k < node + tree[node].span; k += tree[k].span) pq->children[n++] = k;
    return n;
}

/* Peels a P node. Returns its mixed child, PEELED if it has none, IMPOSSIBLE if it has several. */
static int peel_p(const struct rfx_pq *pq, const struct rfx_pq_node *tree, int node,
                  struct peel *peel) {
    int mixed = PEELED;
    bool any_kept = false;
    for (int k = node + 1; k < node + tree[node].span; k += tree[k].span) {
        if (is_kept(pq, k)) {
            any_kept = true;
        } else if (is_gone(pq, k)) {
            peel->gone[peel->n_gone++] = k;
        } else {
            if (mixed != PEELED) return IMPOSSIBLE;
            mixed = k;
        }
    }
    if (any_kept) peel->kept[peel->n_kept++] = ~node;
    return mixed;
}

/* Peels a Q node, whose kept children must be at one end and whose removed children at the other.
 * Returns as peel_p does. */
static int peel_q(struct rfx_pq *pq, const struct rfx_pq_node *tree, int node, struct peel *peel) {
    int n = list_children(pq, tree, node);
    int *child = pq->children;
    if (!is_kept(pq, child[0]) && !is_gone(pq, child[n - 1])) {
        for (int i = 0; i < n / 2; i++) {
            int swap = child[i];
            child[i] = child[n - 1 - i];
            child[n - 1 - i] = swap;
        }
    }
    int lo = 0;
    int hi = n;
    while (lo < hi && is_kept(pq, child[lo])) peel->kept[peel->n_kept++] = child[lo++];
    while (lo < hi && is_gone(pq, child[hi - 1])) peel->gone[peel->n_gone++] = child[--hi];
    if (lo == hi) return PEELED;
    return lo + 1 == hi ? child[lo] : IMPOSSIBLE;
}

/* Peels a chain of mixed nodes from `node` down. Returns whether its removed leaves are contiguous
 * in some order. */
static bool peel_mixed(struct rfx_pq *pq, const struct rfx_pq_node *tree, int node,
                       struct peel *peel) {
    while (node >= 0) {
        node = tree[node].what == RFX_PQ_Q ? peel_q(pq, tree, node, peel)
                                           : peel_p(pq, tree, node, peel);
    }
    return node == PEELED;
}

/* Peels the root, a P node: `middle` receives its children, up to two mixed ones go left and right.
 */
static bool peel_root_p(struct rfx_pq *pq, const struct rfx_pq_node *tree, int root) {
    int n_mixed = 0;
    for (int k = root + 1; k < root + tree[root].span; k += tree[k].span) {
        if (is_kept(pq, k)) {
            pq->middle.kept[pq->middle.n_kept++] = k;
        } else if (is_gone(pq, k)) {
            pq->middle.gone[pq->middle.n_gone++] = k;
        } else {
            if (n_mixed == 2) return false;
            if (!peel_mixed(pq, tree, k, n_mixed == 0 ? &pq->left : &pq->right)) return false;
            n_mixed++;
        }
    }
    return true;
}

/* Peels the root, a Q node: kept children go left and right, as the outermost ones there. */
static bool peel_root_q(struct rfx_pq *pq, const struct rfx_pq_node *tree, int root) {
    int n = list_children(pq, tree, root);
    const int *child = pq->children;
    int lo = 0;
    int hi = n;
    while (is_kept(pq, child[lo])) pq->left.kept[pq->left.n_kept++] = child[lo++];
    while (is_kept(pq, child[hi - 1])) pq->right.kept[pq->right.n_kept++] = child[--hi];
    int first = child[lo];
    int last = child[hi - 1];
    for (int i = lo; i < hi; i++) {
        if (is_gone(pq, child[i]))
            pq->middle.gone[pq->middle.n_gone++] = child[i];
        else if (i != lo && i != hi - 1)
            return false;
    }
    /* peel_mixed uses the array of children again */
    if (!is_gone(pq, first) && !peel_mixed(pq, tree, first, &pq->left)) return false;
    return is_gone(pq, last) || peel_mixed(pq, tree, last, &pq->right);
}

static void write_subtree(struct writer *w, int node) {
    int span = w->tree[node].span;
    memcpy(&w->out[w->n], &w->tree[node], (size_t)span * sizeof *w->out);
    w->n += span;
}

/* Writes a kept node, or (~node) all kept children of a P node under a new P node. */
static void write_kept(const struct rfx_pq *pq, struct writer *w, int kept) {
    if (kept >= 0) {
        write_subtree(w, kept);
        return;
    }
    int node = ~kept;
    int start = w->n++;
    int count = 0;
    for (int k = node + 1; k < node + w->tree[node].span; k += w->tree[k].span) {
        if (!is_kept(pq, k)) continue;
        write_subtree(w, k);
        count++;
    }
    if (count == 1) { /* no P node of one child */
        memmove(&w->out[start], &w->out[start + 1], (size_t)(w->n - start - 1) * sizeof *w->out);
        w->n--;
    } else {
        w->out[start] = (struct rfx_pq_node){RFX_PQ_P, w->n - start};
    }
}

/* Makes the first leaf from node `at` on the anchor of the run (pq_tree.h). */
static void set_anchor(const struct writer *w, struct rfx_pq_run *run, int at, bool first) {
    while (w->out[at].what < 0) at++;
    run->anchor = w->out[at].what;
    run->anchor_first = first;
}

/* Writes the new leaves in place of the run. */
static void write_new(struct writer *w, const int *with, int n_with) {
    w->n += rfx_pq_make(with, n_with, &w->out[w->n]);
}

/* Writes a Q node with the kept nodes on the left, the new leaves, and the kept nodes on the right.
 */
static void write_q(const struct rfx_pq *pq, struct writer *w, const int *with, int n_with,
                    struct rfx_pq_run *run) {
    int start = w->n++;
    for (int i = 0; i < pq->left.n_kept; i++) write_kept(pq, w, pq->left.kept[i]);
    int at = w->n;
    write_new(w, with, n_with);
    int after = w->n;
    for (int i = pq->right.n_kept - 1; i >= 0; i--) write_kept(pq, w, pq->right.kept[i]);
    w->out[start] = (struct rfx_pq_node){RFX_PQ_Q, w->n - start};
    if (pq->left.n_kept > 0)
        set_anchor(w, run, start + 1, true);
    else
        set_anchor(w, run, after, false);
    assert(at > start + 1 || w->n > after);
    (void)at;
}

static void add_run(const struct rfx_pq_node *tree, int node, struct rfx_pq_run *run) {
    for (int k = node; k < node + tree[node].span; k++)
        if (tree[k].what >= 0) run->leaves[run->count++] = tree[k].what;
}

/* Collects the removed leaves from left to right: the innermost of the left ones first, of the
 * right ones last. */
static void collect_run(const struct rfx_pq *pq, const struct rfx_pq_node *tree,
                        struct rfx_pq_run *run) {
    for (int i = pq->left.n_gone - 1; i >= 0; i--) add_run(tree, pq->left.gone[i], run);
    for (int i = 0; i < pq->middle.n_gone; i++) add_run(tree, pq->middle.gone[i], run);
    for (int i = 0; i < pq->right.n_gone; i++) add_run(tree, pq->right.gone[i], run);
}

/* Writes the root of the replacement, with the new leaves in place of the removed ones. */
static void write_root(const struct rfx_pq *pq, struct writer *w, int root, const int *with,
                       int n_with, struct rfx_pq_run *run) {
    bool is_q = w->tree[root].what == RFX_PQ_Q;
    bool mixed = pq->left.n_kept + pq->right.n_kept > 0;
    if (is_q || (mixed && pq->middle.n_kept == 0)) {
        write_q(pq, w, with, n_with, run);
        return;
    }
    int start = w->n++;
    for (int i = 0; i < pq->middle.n_kept; i++) write_subtree(w, pq->middle.kept[i]);
    if (mixed)
        write_q(pq, w, with, n_with, run);
    else
        write_new(w, with, n_with);
    w->out[start] = (struct rfx_pq_node){RFX_PQ_P, w->n - start};
}

int rfx_pq_replace(struct rfx_pq *pq, const struct rfx_pq_node *tree, int n_nodes, const bool *gone,
                   int n_gone, const int *with, int n_with, struct rfx_pq_node *out,
                   struct rfx_pq_run *run) {
    struct writer w = {tree, out, 0};
    struct peel *peels[] = {&pq->left, &pq->right, &pq->middle};
    for (int i = 0; i < 3; i++) peels[i]->n_kept = peels[i]->n_gone = 0;
    count_leaves(pq, tree, n_nodes, gone);
    assert(pq->gone[0] == n_gone);
    int root = find_root(pq, tree, n_gone);
    int after = root + tree[root].span;
    run->count = 0;
    run->anchor = -1;
    if (!is_gone(pq, root)) {
        bool possible =
            tree[root].what == RFX_PQ_Q ? peel_root_q(pq, tree, root) : peel_root_p(pq, tree, root);
        if (!possible) return 0;
    }
    memcpy(out, tree, (size_t)root * sizeof *out);
    w.n = root;
    if (is_gone(pq, root)) {
        add_run(tree, root, run);
        write_new(&w, with, n_with);
    } else {
        collect_run(pq, tree, run);
        write_root(pq, &w, root, with, n_with, run);
    }
    assert(run->count == n_gone);
    int change = w.n - after;
    for (int i = 0; i < root; i++)
        if (i + tree[i].span > root) out[i].span += change;
    memcpy(&out[w.n], &tree[after], (size_t)(n_nodes - after) * sizeof *out);
    return n_nodes + change;
}

int rfx_pq_blocks(struct rfx_pq *pq, const struct rfx_pq_node *tree, int n_nodes, const bool *gone,
                  int *leaves, int *block) {
    int n = 0;
    int n_blocks = 0;
    int after = -1; /* the node after the last block, when that was a child of a Q node */
    count_leaves(pq, tree, n_nodes, gone);
    pq->parent[0] = -1;
    for (int i = 0; i < n_nodes;) {
        if (!is_gone(pq, i)) {
            i++;
            continue;
        }
        int parent = pq->parent[i];
        int end = i + tree[i].span;
        if (i != after) n_blocks++;
        bool in_q = parent >= 0 && tree[parent].what == RFX_PQ_Q;
        after = in_q && end < parent + tree[parent].span ? end : -1;
        for (; i < end; i++) {
            if (tree[i].what < 0) continue;
            leaves[n] = tree[i].what;
            block[n++] = n_blocks - 1;
        }
    }
    return n;
}
