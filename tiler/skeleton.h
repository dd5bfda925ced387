/* The kinds of plan that the planner tries: which stages, with which targets.
 *
 * A skeleton says where the network is cut; modes, bands, strips and tiles are chosen on top of it.
 * Global operations are barriers: what comes after one can begin only when its whole input has been
 * seen. Nodes have a level: the number of barriers before them. */
#ifndef RFX_TILER_SKELETON_H
#define RFX_TILER_SKELETON_H

#include "tiler/plan.h"

enum rfx_skeleton_kind {
    RFX_SKELETON_WHOLE, /* one whole stage */
    RFX_SKELETON_TILES, /* tiles up to `cut`, the rest whole */
    RFX_SKELETON_CUT,   /* streamed up to `cut`, the rest whole */
    RFX_SKELETON_CUTS,  /* streamed up to `cut`, streamed on to `second`, the rest whole */
    RFX_SKELETON_CHAIN, /* everything that is local in space streamed, a stage per level. At the
                           first `passes` barriers no map is stored: the next stage starts again
                           from the image */
};

struct rfx_skeleton {
    enum rfx_skeleton_kind kind;
    int cut, second, passes;
};

/* Levels of a graph's nodes, computed once. */
struct rfx_levels {
    const struct rfx_graph *graph;
    int *level;  /* n_nodes */
    bool *local; /* n_nodes: an op that a streamed stage can compute */
    int n;       /* levels: 1 + the highest level of a local node; 0: none is local */
};

/* Tables from graph->mem; free with rfx_levels_release. */
RFX_NODISCARD enum rfx_status rfx_levels_init(struct rfx_levels *levels,
                                              const struct rfx_graph *graph, struct rfx_error *err);
void rfx_levels_release(struct rfx_levels *levels);

/* Most stages that any skeleton of the graph has. */
int rfx_skeleton_max_stages(const struct rfx_levels *levels);

/* Fills specs[max_stages] (mode and targets; bands, tiles 1) and returns their number; targets is
 * storage for max_stages * n_nodes indices. */
int rfx_skeleton_stages(const struct rfx_levels *levels, const struct rfx_skeleton *skeleton,
                        struct rfx_stage_spec *specs, int *targets);
#endif
