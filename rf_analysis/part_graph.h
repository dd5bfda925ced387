/* The graph of a shard: the same network with the same node indices. It computes only what one
 * rectangle of one output needs.
 *
 * The ROI of every node (`wanted` of struct rfx_node) follows from the rectangle by the operators'
 * own region maps, as it does for tiles. Plans, schedules, counts and sessions of such a graph
 * compute the ROI and nothing else. Every element has the same bits as in a run of the whole,
 * because steps, views and kernels keep the coordinates of the full maps.
 *
 * Invariants: 1. nodes that the shard does not need are INNER: never computed, never packed; 2. the
 * graph has one output, whose `part` is the rectangle; the graph of a share has one output for each
 * end of the base of which the share has a rectangle; 3. the graph reads weights, files and tables
 * of its base, which must outlive it. */
#ifndef RFX_RF_ANALYSIS_PART_GRAPH_H
#define RFX_RF_ANALYSIS_PART_GRAPH_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"
#include "rf_analysis/part_ends.h"

/* Makes the graph of rectangle `part` of output k of a finished graph without groups.
 * INVALID_ARGUMENT: the output is not a map of rows and columns, or the rectangle is empty or
 * reaches outside of it. Free with rfx_graph_free before the base. O(edges). Test: test_part_graph.
 */
RFX_NODISCARD enum rfx_status rfx_part_graph_create(const struct rfx_graph *base, int k,
                                                    struct rfx_rect part, struct rfx_graph **out,
                                                    struct rfx_error *err);

/* A known result of a reduction.
 *
 * A shard that comes after a global operation needs the operation's whole input. Reductions over
 * space have states that merge exactly (graph/reduction.h), so shards are computed in rounds. In
 * each round every shard adds its share of the rows to the states of all reductions whose inputs
 * can be computed. The states are merged, and the results are known in the next round. */
struct rfx_part_known {
    int node;            /* a reduction */
    const float *values; /* its result; copied */
};

struct rfx_part_rounds {
    int rounds;   /* rounds of states that are still needed; 0: shards of the output can be computed
                   */
    int blocking; /* a node that sees a whole map and has no state to merge: the output cannot be
                     computed in shards; -1: none */
    int first;    /* a reduction of the next round; -1: none */
    bool reads_image; /* the output still reads the image when all those states are known */
};

/* Computes the rounds that output k of a finished graph (or RFX_PART_ALL) needs when these results
 * are known. */
RFX_NODISCARD enum rfx_status rfx_part_graph_rounds(const struct rfx_graph *base, int k,
                                                    const struct rfx_part_known *known, int n_known,
                                                    struct rfx_part_rounds *out,
                                                    struct rfx_error *err);

/* A section of the network between two maps: `from`, the image (RFX_PART_OUTER) or a cut
 * (rfx_part_cuts_list), is read; a share of `to` is computed: some rows of a cut's map, the outputs
 * (RFX_PART_OUTER), or the states of the next round (RFX_PART_STATES). */
#define RFX_PART_OUTER (-1)
#define RFX_PART_STATES (-2)
struct rfx_part_section {
    int from, to;
};

/* Makes the graph that feeds share `index` of `count` of the rows of every input to the reductions
 * of the next round, which are its outputs. Each one's `taken` is its share, which may be empty.
 * The graph reads `from`: the image, or a cut before all those reductions. */
RFX_NODISCARD enum rfx_status rfx_part_graph_states(const struct rfx_graph *base, int k,
                                                    const struct rfx_part_known *known, int n_known,
                                                    int from, int64_t index, int64_t count,
                                                    struct rfx_graph **out, struct rfx_error *err);

/* rfx_part_graph_create with known results, which are constants of the graph. The rectangle is
 * ignored where the output is not a map. */
RFX_NODISCARD enum rfx_status rfx_part_graph_after(const struct rfx_graph *base, int k,
                                                   const struct rfx_part_known *known, int n_known,
                                                   struct rfx_rect part, struct rfx_graph **out,
                                                   struct rfx_error *err);

/* Makes the graph of a share of output k (or RFX_PART_ALL) with known results. Its outputs are the
 * ends (part_ends.h) of which the share has some, in their order, one by one; *out is NULL when
 * there are none. With several shares, no share may need the whole of a map: see rfx_part_rounds.
 */
RFX_NODISCARD enum rfx_status rfx_part_graph_share(const struct rfx_graph *base, int k,
                                                   const struct rfx_part_known *known, int n_known,
                                                   int64_t index, int64_t count,
                                                   struct rfx_graph **out, struct rfx_error *err);

/* Makes the graph of a share of a section with known results. `to` decides its outputs: all outputs
 * as in rfx_part_graph_share, the rows of a cut's map, or states as in rfx_part_graph_states. */
RFX_NODISCARD enum rfx_status rfx_part_graph_section(const struct rfx_graph *base,
                                                     struct rfx_part_section ends,
                                                     const struct rfx_part_known *known,
                                                     int n_known, int64_t index, int64_t count,
                                                     struct rfx_graph **out, struct rfx_error *err);

/* Returns the rectangle of the image that the graph reads; empty: none. */
struct rfx_rect rfx_part_graph_image(const struct rfx_graph *graph);
#endif
