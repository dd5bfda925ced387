/* The picture of `memory --plot`: a network's tensors as placed, coloured by what makes them. */
#ifndef RFX_TOOLS_CHART_MEMORY_CHART_H
#define RFX_TOOLS_CHART_MEMORY_CHART_H

#include "layers/graph/graph.h"
#include "tiler/arena/packer.h"

/* A placement of a network's tensors: times of the problem are steps, one per operator that runs.
 * All borrowed. */
struct rfx_memory_placement {
    const struct rfx_graph *graph;
    const char *model; /* as the user named it */
    const struct rfx_place_problem *problem;
    const int *nodes;      /* [problem->n] what makes the tensor */
    const size_t *offsets; /* [problem->n] */
    struct rfx_packer_result result;
};

/* Whether a node runs as an operator: neither the image nor a constant. */
bool rfx_memory_is_step(const struct rfx_graph *graph, int node);

/* Writes `path`, .svg or .png. Statuses of rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_memory_chart(struct rfx_memory *mem,
                                               const struct rfx_memory_placement *placement,
                                               const char *path, struct rfx_error *err);
#endif
