/* Reductions over space: a state to which the pixels of a map are added part by part, in any order.
 *
 * Invariants: 1. a state is a caller-owned block without pointers, so it can be copied, written to
 * a file and read back as bytes by the same build; 2. states are exact: the bits of the result
 * depend only on the set of pixels added, not on their order or on how they were divided among
 * states that were merged; 3. nothing here allocates. The schedule feeds operators whose row has a
 * reduction (rfx_op_def) with rows, tiles or strips as soon as their input is computed. */
#ifndef RFX_LAYERS_GRAPH_REDUCTION_H
#define RFX_LAYERS_GRAPH_REDUCTION_H

#include "layers/graph/graph.h"

struct rfx_run_args;
struct rfx_team;

struct rfx_reduction {
    /* Returns the bytes of a state, a multiple of RFX_ALIGNMENT_BYTES. */
    size_t (*state_bytes)(const struct rfx_node *node);

    /* Initialises `state` (uninitialised memory) to no pixels. */
    void (*begin)(const struct rfx_node *node, void *state);

    /* Adds the pixels of `rect`, which the view `in` of the node's input 0 contains. */
    void (*add)(const struct rfx_node *node, void *state, const struct rfx_view *in,
                struct rfx_rect rect);

    /* Adds the pixels of state `other`. The value of `other` does not change, but its bytes may. */
    void (*merge)(const struct rfx_node *node, void *state, void *other);

    /* Writes the node's output; all pixels of its h x w input must have been added. */
    void (*finish)(const struct rfx_node *node, void *state, int64_t h, int64_t w,
                   const struct rfx_view *out);

    /* Whether bytes from a file are safe as a state of this node: merging and finishing the state
     * accesses no memory outside it and does not overflow. */
    bool (*is_sound)(const struct rfx_node *node, const void *state);
};

/* Returns the reduction of a node's operator, or NULL if it has none. */
const struct rfx_reduction *rfx_node_reduction(const struct rfx_node *node);

/* Functions for the members scratch_bytes and run of operators that reduce their whole input. */
size_t rfx_reduction_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                   int threads);
void rfx_reduction_run(const struct rfx_run_args *args);

/* Adds the pixels of a rectangle to a state. If the rectangle is large enough, each thread of the
 * team (NULL: none) adds pixels to its own state, and the states are merged at the end. scratch:
 * one state for each thread except the first. */
void rfx_reduction_add(const struct rfx_node *node, void *state, const struct rfx_view *in,
                       struct rfx_rect rect, struct rfx_team *team, void *scratch);
#endif
