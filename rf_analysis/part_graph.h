/* The graph of a part: the same network under the same indices, of which only what a rectangle of
 * one output needs is computed.
 *
 * What is wanted of every node (struct rfx_node's `wanted`) follows from the rectangle by the
 * operators' own region maps, as what tiles need does. Plans, schedules, counts and sessions of
 * such a graph make that and nothing else; every element has the bits that it has in a run of the
 * whole, for steps, views and kernels stay in the coordinates of the full maps.
 * Invariants: 1. nodes that the part does not need are INNER: never computed, never packed; 2. the
 * graph has one output, whose `part` is the rectangle, or of a share one for each end of the base
 * that it has some of; 3. it reads weights, files and tables of its base, which must outlive it. */
#ifndef RFX_RF_ANALYSIS_PART_GRAPH_H
#define RFX_RF_ANALYSIS_PART_GRAPH_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"
#include "rf_analysis/part_ends.h"

/* The graph that makes `part` of output k of a finished graph without groups. INVALID_ARGUMENT: the
 * output is no map of rows and columns, or the part is empty or reaches outside of it. Free with
 * rfx_graph_free before the base. O(edges). Pinned by test_part_graph. */
RFX_NODISCARD enum rfx_status rfx_part_graph_create(const struct rfx_graph *base, int k,
                                                    struct rfx_rect part, struct rfx_graph **out,
                                                    struct rfx_error *err);

/* Global operations: a part of what comes after one needs all of what comes before it. Reductions
 * over space have states that merge exactly (graph/reduction.h), so parts are made in rounds: in
 * each, every part adds its share of the rows to the states of all reductions whose inputs can be
 * made; they are merged, and in the next round their results are known. */
struct rfx_part_known {
    int node;            /* a reduction */
    const float *values; /* its result; copied */
};

struct rfx_part_rounds {
    int rounds;   /* of states that are still needed; 0: parts of the output can be made */
    int blocking; /* a node that sees all of a map and has no state, so that there are no parts; -1:
                     there is none */
    int first;    /* a reduction of the next round; -1: there is none */
    bool reads_image; /* the output, all those states known */
};

/* How many rounds output k of a finished graph, or RFX_PART_ALL, takes when these results are
 * known. */
RFX_NODISCARD enum rfx_status rfx_part_graph_rounds(const struct rfx_graph *base, int k,
                                                    const struct rfx_part_known *known, int n_known,
                                                    struct rfx_part_rounds *out,
                                                    struct rfx_error *err);

/* A part of the network between two maps: `from`, the image (RFX_PART_OUTER) or a cut
 * (part_cuts.h), is read, of `to` a share is made: of a cut's map of its rows, or of the outputs
 * (RFX_PART_OUTER), or of the next round's states (RFX_PART_STATES). */
#define RFX_PART_OUTER (-1)
#define RFX_PART_STATES (-2)
struct rfx_part_section {
    int from, to;
};

/* The graph that feeds share `index` of `count` of the rows of every input to the reductions of the
 * next round: they are its outputs. Each `taken` is its share, which may be empty. It reads `from`,
 * the image or a cut, behind which all those reductions are. */
RFX_NODISCARD enum rfx_status rfx_part_graph_states(const struct rfx_graph *base, int k,
                                                    const struct rfx_part_known *known, int n_known,
                                                    int from, int64_t index, int64_t count,
                                                    struct rfx_graph **out, struct rfx_error *err);

/* rfx_part_graph_create where these results are known: they are constants of the graph. Of an
 * output that is no map the part is not looked at. */
RFX_NODISCARD enum rfx_status rfx_part_graph_after(const struct rfx_graph *base, int k,
                                                   const struct rfx_part_known *known, int n_known,
                                                   struct rfx_rect part, struct rfx_graph **out,
                                                   struct rfx_error *err);

/* The graph that makes a share of output k, or of everything that the network hands out, these
 * results known. Its outputs are those ends (part_ends.h) of which the share is not empty, in their
 * order, each by itself; *out is NULL when there is none. Of several shares none must need the
 * whole of a map: see rfx_part_rounds. */
RFX_NODISCARD enum rfx_status rfx_part_graph_share(const struct rfx_graph *base, int k,
                                                   const struct rfx_part_known *known, int n_known,
                                                   int64_t index, int64_t count,
                                                   struct rfx_graph **out, struct rfx_error *err);

/* The graph of a share of a section, these results known: of everything that the network hands out
 * as rfx_part_graph_share, of a cut's map its only output, of states as rfx_part_graph_states. */
RFX_NODISCARD enum rfx_status rfx_part_graph_section(const struct rfx_graph *base,
                                                     struct rfx_part_section ends,
                                                     const struct rfx_part_known *known,
                                                     int n_known, int64_t index, int64_t count,
                                                     struct rfx_graph **out, struct rfx_error *err);

/* The rectangle of its input, the image, that the graph reads; empty: none of it. */
struct rfx_rect rfx_part_graph_image(const struct rfx_graph *graph);
#endif
