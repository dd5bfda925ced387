/* All orders of what is alive at two times that are orders of the same bytes.
 *
 * A stack of items lay side by side at one time. Since then some of them went and others came in
 * their place, to the later side and to the earlier one. What is still possible is a forest: each
 * tree stands for some of the items of the beginning, which lie together, and has a PQ-tree
 * (packer_pq.h) of what lies there now for each side. The trees may lie in any order, the same on
 * both sides. Of a linked tree both roots are Q nodes that can only be reversed together; all
 * others have nothing to do with each other.
 *
 * That is exact: items of several trees go together only with at most two of the trees going in
 * part, which then lie outside, and what is linked is all of it again one tree. */
#ifndef RFX_TILER_FRONTS_FRONTS_FOREST_H
#define RFX_TILER_FRONTS_FRONTS_FOREST_H

#include "tiler/fronts/fronts_times.h"
#include "tiler/packer/packer_pq.h"

/* Trees, and the words of a bit for each. */
enum { RFX_FOREST_MAX_TREES = 128, RFX_FOREST_WORDS = RFX_FOREST_MAX_TREES / 64 };

struct rfx_forest_set {
    uint64_t words[RFX_FOREST_WORDS];
};

static inline bool rfx_forest_has(const struct rfx_forest_set *set, int tree) {
    return (set->words[tree / 64] >> tree % 64 & 1) != 0;
}

static inline void rfx_forest_put(struct rfx_forest_set *set, int tree, bool in) {
    uint64_t bit = (uint64_t)1 << tree % 64;
    set->words[tree / 64] = in ? set->words[tree / 64] | bit : set->words[tree / 64] & ~bit;
}

/* The trees of a side one after the other, each in preorder, in the same order on both sides. */
struct rfx_forest {
    struct rfx_pq_node *nodes[RFX_FRONT_SIDES];
    int n_nodes[RFX_FRONT_SIDES];
    int n_trees;
    struct rfx_forest_set linked;
};

/* A tree: its number and its roots. */
struct rfx_forest_tree {
    int number, at[RFX_FRONT_SIDES];
};

/* What goes and what comes. */
struct rfx_forest_change {
    int side;
    const int *gone, *with;
    int n_gone, n_with;
};

struct rfx_forests {
    struct rfx_memory *mem;
    struct rfx_pq *pq;
    struct rfx_pq_node *joined; /* trees under one root */
    bool *marked;               /* per item; false between calls */
    /* of the forest entered last, seen from a side */
    int *tree_of;                                                 /* per item that is there */
    int at[RFX_FRONT_SIDES][RFX_FOREST_MAX_TREES];                /* roots */
    int leaves[RFX_FOREST_MAX_TREES], gone[RFX_FOREST_MAX_TREES]; /* gone: 0 between calls */
    /* of the last change: the trees of the forest before it that it took something of, by rising
     * number */
    int n_touched, touched[RFX_FOREST_MAX_TREES];
};

/* For trees of up to max_live leaves of n_items items. Release with rfx_forests_release,
 * after a failure too. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_forests_init(struct rfx_forests *f, struct rfx_memory *mem,
                                               int n_items, int max_live, struct rfx_error *err);
void rfx_forests_release(struct rfx_forests *f);

/* Every order of n <= RFX_FOREST_MAX_TREES items: a tree for each. Heights are their sizes. */
void rfx_forest_make(const struct rfx_place_problem *problem, const int *items, int n,
                     struct rfx_forest *out);

/* Looks up where the items of a side are: before the changes to that side of the same forest. */
void rfx_forest_enter(struct rfx_forests *f, const struct rfx_forest *from, int side);

/* Makes the change to the forest that was entered; `run` as of rfx_pq_replace. *made: the tree that
 * is a new one, whose heights are not yet those of what came. false: what goes does not lie
 * together in any order. */
RFX_NODISCARD bool rfx_forest_replace(struct rfx_forests *f, const struct rfx_forest *from,
                                      const struct rfx_forest_change *change,
                                      struct rfx_forest *out, struct rfx_forest_tree *made,
                                      struct rfx_pq_run *run);

/* As rfx_forest_replace, on the way back: the leaves that went, in the order in which they lay, run
 * in the direction of `place`, which has for each item of the other side its place there; anchors
 * as of rfx_pq_replace where that does not tell. */
void rfx_forest_run(struct rfx_forests *f, const struct rfx_forest *from,
                    const struct rfx_forest_change *change, const int *place,
                    struct rfx_forest *scratch, struct rfx_pq_run *run);
#endif
