/* Changes within a tree are PQ-trees' own; across trees they join them on both sides. */
#include "tiler/fronts/fronts_forest.h"

#include <string.h>

/* How a change finds a tree. */
struct touched {
    int tree, at, other_at; /* its roots on the side of the change and on the other */
    bool whole;             /* all of it goes */
    bool linked, reversed;  /* linked: what goes lies first */
    int place;              /* rfx_forest_run: on the other side */
};

enum rfx_status rfx_forests_init(struct rfx_forests *f, struct rfx_memory *mem, int n_items,
                                 int max_live, struct rfx_error *err) {
    size_t n = 2 * (size_t)max_live + 2;
    *f = (struct rfx_forests){.mem = mem};
    enum rfx_status status = rfx_pq_create(mem, max_live + 1, &f->pq, err);
    if (status != RFX_OK) return status;
    f->joined = rfx_memory_calloc(mem, n, sizeof *f->joined);
    f->marked = rfx_memory_calloc(mem, (size_t)n_items, sizeof *f->marked);
    f->tree_of = rfx_memory_calloc(mem, (size_t)n_items, sizeof *f->tree_of);
    if (f->joined != NULL && f->marked != NULL && f->tree_of != NULL) return RFX_OK;
    return rfx_memory_fail(mem, "packer", n * sizeof *f->joined, err);
}

void rfx_forests_release(struct rfx_forests *f) {
    if (f->mem == NULL) return; /* never begun */
    rfx_pq_free(f->pq);
    rfx_memory_release(f->mem, f->joined);
    rfx_memory_release(f->mem, f->marked);
    rfx_memory_release(f->mem, f->tree_of);
}

void rfx_forest_enter(struct rfx_forests *f, const struct rfx_forest *from, int side) {
    const struct rfx_pq_node *nodes = from->nodes[side], *other = from->nodes[1 - side];
    int at = 0, other_at = 0;
    for (int t = 0; t < from->n_trees; t++) {
        int end = at + nodes[at].span;
        f->at[side][t] = at;
        f->at[1 - side][t] = other_at;
        f->leaves[t] = 0;
        for (; at < end; at++) {
            if (nodes[at].what < 0) continue;
            f->tree_of[nodes[at].what] = t;
            f->leaves[t]++;
        }
        other_at += other[other_at].span;
    }
}

void rfx_forest_make(const struct rfx_place_problem *problem, const int *items, int n,
                     struct rfx_forest *out) {
    out->n_trees = n;
    memset(&out->linked, 0, sizeof out->linked);
    for (int side = 0; side < RFX_FRONT_SIDES; side++) {
        out->n_nodes[side] = n;
        for (int i = 0; i < n; i++)
            out->nodes[side][i] = (struct rfx_pq_node){items[i], 1, problem->items[items[i]].size};
    }
}

static void count(const struct rfx_forests *f, const struct rfx_pq_node *tree, int *gone,
                  int *leaves) {
    *gone = *leaves = 0;
    for (int k = 0; k < tree->span; k++) {
        if (tree[k].what < 0) continue;
        ++*leaves;
        *gone += f->marked[tree[k].what];
    }
}

/* Of a linked tree that goes in part: whether what goes lies first. Where the change is possible at
 * all, one end of the Q node stays at least in part, the other goes at least in part. */
static bool goes_first(const struct rfx_forests *f, const struct rfx_pq_node *tree) {
    int last = 1;
    int gone = 0;
    int leaves = 0;
    for (int k = 1; k < tree->span; k += tree[k].span) last = k;
    count(f, &tree[1], &gone, &leaves);
    if (gone == 0) return false;
    int gone_last = 0;
    int leaves_last = 0;
    count(f, &tree[last], &gone_last, &leaves_last);
    return gone_last < leaves_last;
}

/* Lists the trees that what goes lies in, by rising number; how many there are. */
static int find_touched(struct rfx_forests *f, const struct rfx_forest *from,
                        const struct rfx_forest_change *change, struct touched *list) {
    int side = change->side, n = 0;
    for (int i = 0; i < change->n_gone; i++) {
        int tree = f->tree_of[change->gone[i]], k = n;
        if (f->gone[tree]++ > 0) continue;
        for (; k > 0 && list[k - 1].tree > tree; k--) list[k] = list[k - 1];
        list[k] = (struct touched){.tree = tree};
        n++;
    }
    for (int i = 0; i < n; i++) {
        struct touched *t = &list[i];
        int gone = f->gone[t->tree];
        f->gone[t->tree] = 0;
        t->at = f->at[side][t->tree];
        t->other_at = f->at[1 - side][t->tree];
        t->whole = gone == f->leaves[t->tree];
        t->linked = rfx_forest_has(&from->linked, t->tree);
        t->reversed = t->linked && !t->whole && goes_first(f, &from->nodes[side][t->at]);
    }
    return n;
}

static int copy_tree(const struct rfx_pq_node *tree, struct rfx_pq_node *out) {
    memcpy(out, tree, (size_t)tree->span * sizeof *tree);
    return tree->span;
}

/* The children of a Q node, the last first if `reversed`; returns the number of nodes. */
static int copy_children(const struct rfx_pq_node *tree, bool reversed, struct rfx_pq_node *out) {
    int n = tree->span - 1;
    if (!reversed) {
        memcpy(out, tree + 1, (size_t)n * sizeof *tree);
        return n;
    }
    for (int k = 1; k < tree->span; k += tree[k].span)
        (void)copy_tree(&tree[k], &out[n + 1 - k - tree[k].span]);
    return n;
}

/* Puts trees under one root; the number of nodes. */
static int join(const struct rfx_forest *from, int side, const struct touched *list, int n,
                struct rfx_pq_node *out) {
    int at = 1;
    size_t height = 0;
    for (int i = 0; i < n; i++) {
        const struct rfx_pq_node *tree = &from->nodes[side][list[i].at];
        height += tree->height;
        if (list[i].linked && list[i].reversed && list[i].place >= 0) {
            out[at] = *tree;
            at += 1 + copy_children(tree, true, &out[at + 1]);
        } else {
            at += copy_tree(tree, &out[at]);
        }
    }
    out[0] = (struct rfx_pq_node){RFX_PQ_P, at, height};
    return at;
}

/* A tree that goes in part, on the other side: `outward` where what stays lies last. */
static int write_part(const struct rfx_pq_node *tree, const struct touched *part, bool last,
                      struct rfx_pq_node *out) {
    if (!part->linked) return copy_tree(tree, out);
    return copy_children(tree, part->reversed != last, out); /* what goes lies inside */
}

/* Joins trees on the other side than the change; the number of nodes, and whether the roots are
 * linked now. */
static int write_other(const struct rfx_pq_node *nodes, const struct touched *list, int n,
                       struct rfx_pq_node *out, bool *linked) {
    const struct touched *parts[2] = {NULL, NULL};
    int n_parts = 0;
    int n_whole = 0;
    int at = 1;
    size_t height = 0;
    size_t whole = 0;
    for (int i = 0; i < n; i++) {
        size_t tall = nodes[list[i].other_at].height;
        height += tall;
        if (list[i].whole) {
            n_whole++;
            whole += tall;
        } else {
            parts[n_parts++] = &list[i];
        }
    }
    if (n_parts > 0) at += write_part(&nodes[parts[0]->other_at], parts[0], false, &out[at]);
    int middle = at;
    if (n_parts > 0 && n_whole > 1) at++;
    for (int i = 0; i < n; i++)
        if (list[i].whole) at += copy_tree(&nodes[list[i].other_at], &out[at]);
    if (n_parts > 0 && n_whole > 1)
        out[middle] = (struct rfx_pq_node){RFX_PQ_P, at - middle, whole};
    if (n_parts > 1) at += write_part(&nodes[parts[1]->other_at], parts[1], true, &out[at]);
    out[0] = (struct rfx_pq_node){n_parts > 0 ? RFX_PQ_Q : RFX_PQ_P, at, height};
    *linked = n_parts > 0;
    return at;
}

static void mark(struct rfx_forests *f, const struct rfx_forest_change *change, bool marked) {
    for (int i = 0; i < change->n_gone; i++) f->marked[change->gone[i]] = marked;
}

/* A change within one tree. */
static bool change_tree(struct rfx_forests *f, const struct rfx_forest *from,
                        const struct rfx_forest_change *change, const struct touched *touched,
                        struct rfx_forest *out, struct rfx_forest_tree *made,
                        struct rfx_pq_run *run) {
    int side = change->side;
    int at = touched->at;
    const struct rfx_pq_node *tree = &from->nodes[side][at];
    int after = at + tree->span;
    struct rfx_pq_node *nodes = out->nodes[side];
    int n = rfx_pq_replace(f->pq, tree, tree->span, f->marked, change->n_gone, change->with,
                           change->n_with, &nodes[at], run);
    if (n == 0) return false;
    memcpy(nodes, from->nodes[side], (size_t)at * sizeof *nodes);
    memcpy(&nodes[at + n], &from->nodes[side][after],
           (size_t)(from->n_nodes[side] - after) * sizeof *nodes);
    out->n_nodes[side] = at + n + from->n_nodes[side] - after;
    out->n_nodes[1 - side] = from->n_nodes[1 - side];
    memcpy(out->nodes[1 - side], from->nodes[1 - side],
           (size_t)from->n_nodes[1 - side] * sizeof *nodes);
    out->n_trees = from->n_trees;
    out->linked = from->linked;
    if (touched->whole) rfx_forest_put(&out->linked, touched->tree, false);
    made->number = touched->tree;
    made->at[side] = at;
    made->at[1 - side] = touched->other_at;
    return true;
}

/* Copies the trees of a side but for those listed, by rising number; the number of nodes. */
static int copy_others(const struct rfx_forest *from, int side, int changed_side,
                       const struct touched *list, int n, struct rfx_pq_node *out) {
    const struct rfx_pq_node *nodes = from->nodes[side];
    int count = 0, at = 0;
    for (int i = 0; i <= n; i++) {
        int skip =
            i == n ? from->n_nodes[side] : (side == changed_side ? list[i].at : list[i].other_at);
        memcpy(&out[count], &nodes[at], (size_t)(skip - at) * sizeof *out);
        count += skip - at;
        at = i == n ? skip : skip + nodes[skip].span;
    }
    return count;
}

/* Which trees are linked, without those listed. */
static struct rfx_forest_set linked_others(const struct rfx_forest *from,
                                           const struct touched *list, int n) {
    struct rfx_forest_set linked = {{0}};
    int trees = 0;
    for (int t = 0, i = 0; t < from->n_trees; t++) {
        if (i < n && list[i].tree == t)
            i++;
        else
            rfx_forest_put(&linked, trees++, rfx_forest_has(&from->linked, t));
    }
    return linked;
}

/* A change across trees: the tree that they become is the last. */
static bool join_trees(struct rfx_forests *f, const struct rfx_forest *from,
                       const struct rfx_forest_change *change, const struct touched *list, int n,
                       struct rfx_forest *out, struct rfx_forest_tree *made,
                       struct rfx_pq_run *run) {
    int side = change->side;
    bool link = false;
    int n_joined = join(from, side, list, n, f->joined);
    int at = copy_others(from, side, side, list, n, out->nodes[side]);
    int other_at = copy_others(from, 1 - side, side, list, n, out->nodes[1 - side]);
    out->linked = linked_others(from, list, n);
    int more = rfx_pq_replace(f->pq, f->joined, n_joined, f->marked, change->n_gone, change->with,
                              change->n_with, &out->nodes[side][at], run);
    if (more == 0) return false;
    out->n_nodes[side] = at + more;
    out->n_nodes[1 - side] = other_at + write_other(from->nodes[1 - side], list, n,
                                                    &out->nodes[1 - side][other_at], &link);
    out->n_trees = from->n_trees - n + 1;
    made->number = out->n_trees - 1;
    rfx_forest_put(&out->linked, made->number, link);
    made->at[side] = at;
    made->at[1 - side] = other_at;
    return true;
}

bool rfx_forest_replace(struct rfx_forests *f, const struct rfx_forest *from,
                        const struct rfx_forest_change *change, struct rfx_forest *out,
                        struct rfx_forest_tree *made, struct rfx_pq_run *run) {
    struct touched list[RFX_FOREST_MAX_TREES];
    mark(f, change, true);
    int n = find_touched(f, from, change, list);
    int parts = 0;
    f->n_touched = n;
    for (int i = 0; i < n; i++) {
        parts += !list[i].whole;
        list[i].place = -1;
        f->touched[i] = list[i].tree;
    }
    bool possible = false;
    if (n == 1)
        possible = change_tree(f, from, change, &list[0], out, made, run);
    else if (parts <= 2)
        possible = join_trees(f, from, change, list, n, out, made, run);
    mark(f, change, false);
    return possible;
}

static int first_leaf(const struct rfx_pq_node *tree) {
    while (tree->what < 0) tree++;
    return tree->what;
}

static int last_leaf(const struct rfx_pq_node *tree) {
    return tree[tree->span - 1].what; /* the last node in preorder is one */
}

/* Sorts the trees by their places on the other side, and finds which linked ones lie reversed. */
static void set_places(const struct rfx_forest *from, int side, const int *place,
                       struct touched *list, int n) {
    for (int i = 0; i < n; i++) {
        struct touched t = list[i];
        const struct rfx_pq_node *other = &from->nodes[1 - side][t.other_at];
        int k = i;
        t.place = place[first_leaf(other)];
        t.reversed = t.linked && place[last_leaf(other)] < t.place;
        for (; k > 0 && list[k - 1].place > t.place; k--) list[k] = list[k - 1];
        list[k] = t;
    }
}

/* What goes in part is written first where there is one such tree, so it has to lie first. */
static void turn_over(struct touched *list, int n) {
    for (int i = 0; i < n / 2; i++) {
        struct touched swap = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = swap;
    }
    for (int i = 0; i < n; i++) list[i].reversed = list[i].linked && !list[i].reversed;
}

void rfx_forest_run(struct rfx_forests *f, const struct rfx_forest *from,
                    const struct rfx_forest_change *change, const int *place,
                    struct rfx_forest *scratch, struct rfx_pq_run *run) {
    struct touched list[RFX_FOREST_MAX_TREES];
    rfx_forest_enter(f, from, change->side);
    mark(f, change, true);
    int n = find_touched(f, from, change, list);
    set_places(from, change->side, place, list, n);
    if (n > 1 && !list[n - 1].whole && list[0].whole) turn_over(list, n);
    int n_joined = join(from, change->side, list, n, f->joined);
    struct rfx_pq_node *tree = n == 1 ? &f->joined[1] : f->joined;
    /* its answer was yes when the way was found */
    (void)rfx_pq_replace(f->pq, tree, n == 1 ? n_joined - 1 : n_joined, f->marked, change->n_gone,
                         change->with, change->n_with, scratch->nodes[change->side], run);
    mark(f, change, false);
}
