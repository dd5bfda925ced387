/* PQ-trees (Booth and Lueker 1976): all orders of leaves on a line in which given sets of leaves
 * are contiguous.
 *
 * The children of a P node may be permuted freely; the children of a Q node may only be reversed.
 * The one operation is the step of a perfect packing from one moment to the next: leaves that are
 * contiguous are removed, and other leaves take their place.
 *
 * Invariants: 1. a tree is a flat array in preorder, so that memcpy copies it; 2. P and Q nodes
 * have at least two children, so a tree of n leaves has fewer than 2 n nodes; 3. a replacement
 * keeps exactly those orders of the old tree in which the removed leaves are contiguous. */
#ifndef RFX_TILER_ARENA_PQ_TREE_H
#define RFX_TILER_ARENA_PQ_TREE_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

enum { RFX_PQ_P = -1, RFX_PQ_Q = -2 };

struct rfx_pq_node {
    int what; /* a leaf >= 0, or RFX_PQ_P, RFX_PQ_Q */
    int span; /* nodes of the subtree, this one included */
};

/* The removed leaves, in an order that the old tree allows. When `anchor` >= 0, it is a leaf of the
 * new tree: if it lies on the other side of the run than anchor_first says (before the run), the
 * run is reversed. */
struct rfx_pq_run {
    int *leaves;
    int count, anchor;
    bool anchor_first;
};

/* Scratch tables for trees of up to max_leaves leaves. Free with rfx_pq_free. */
struct rfx_pq;
RFX_NODISCARD enum rfx_status rfx_pq_create(struct rfx_memory *mem, int max_leaves,
                                            struct rfx_pq **out, struct rfx_error *err);
void rfx_pq_free(struct rfx_pq *pq);

/* Makes the tree of all orders of n >= 1 leaves; returns its number of nodes. */
int rfx_pq_make(const int *leaves, int n, struct rfx_pq_node *out);

/* Replaces the n_gone >= 1 leaves with gone[leaf] by the n_with >= 1 leaves of `with`, in any
 * order, where the removed leaves are contiguous. run->leaves has room for n_gone. Returns the
 * number of nodes of *out; 0 when they are contiguous in no order of the tree. O(nodes). */
int rfx_pq_replace(struct rfx_pq *pq, const struct rfx_pq_node *tree, int n_nodes, const bool *gone,
                   int n_gone, const int *with, int n_with, struct rfx_pq_node *out,
                   struct rfx_pq_run *run);

/* Lists the leaves with gone[leaf] from left to right, and the block (0, 1, ...) of each: the
 * leaves of a block are contiguous in every order of the tree. Returns the number of leaves. */
int rfx_pq_blocks(struct rfx_pq *pq, const struct rfx_pq_node *tree, int n_nodes, const bool *gone,
                  int *leaves, int *block);
#endif
