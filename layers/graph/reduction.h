/* Reductions over space: a state that takes in a map part by part, in any order.
 *
 * Invariants: 1. a state is a block of the caller's without pointers, so it can be copied, written
 * to a file and read back as bytes by the same build; 2. states are exact: the bits of the result
 * are a function of the set of pixels added, not of their order or of how they were divided among
 * states that were merged; 3. nothing here allocates. An operator whose row has one (rfx_op_def) is
 * fed by the schedule in rows, tiles or strips, as its input comes. */
#ifndef RFX_LAYERS_GRAPH_REDUCTION_H
#define RFX_LAYERS_GRAPH_REDUCTION_H

#include "layers/graph/graph.h"

struct rfx_run_args;
struct rfx_team;

struct rfx_reduction {
    /* Bytes of a state, a multiple of RFX_ALIGNMENT_BYTES. */
    size_t (*state_bytes)(const struct rfx_node *node);

    /* Makes `state` (garbage) that of no pixels. */
    void (*begin)(const struct rfx_node *node, void *state);

    /* Adds the pixels of `rect`, which the view of the node's input 0 holds. */
    void (*add)(const struct rfx_node *node, void *state, const struct rfx_view *in,
                struct rfx_rect rect);

    /* Adds the pixels that `other` holds; `other` keeps its value, but may be rearranged. */
    void (*merge)(const struct rfx_node *node, void *state, void *other);

    /* Writes the node's output, given that all pixels of its h x w input have been added. */
    void (*finish)(const struct rfx_node *node, void *state, int64_t h, int64_t w,
                   const struct rfx_view *out);

    /* Whether bytes that come from a file may be a state of this node's: merging and finishing it
     * touches nothing else and does not overflow. */
    bool (*is_sound)(const struct rfx_node *node, const void *state);
};

/* The reduction of a node's operator, or NULL when it is none. */
const struct rfx_reduction *rfx_node_reduction(const struct rfx_node *node);

/* scratch_bytes and run of an operator that is a reduction of its whole input. */
size_t rfx_reduction_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                   int threads);
void rfx_reduction_run(const struct rfx_run_args *args);

/* Adds the pixels of a rectangle to a state: where that pays, each thread of the team (NULL: none)
 * adds rows to a state of its own, and the states are merged. scratch: a state for each thread but
 * the first. */
void rfx_reduction_add(const struct rfx_node *node, void *state, const struct rfx_view *in,
                       struct rfx_rect rect, struct rfx_team *team, void *scratch);
#endif
