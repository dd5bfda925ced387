/* Charts of placements in an arena: time across, addresses upwards, one rectangle for each item, a
 * line for the lower bound, and frames around the items that are alive at the peak. `alloc --plot`
 * draws any placement; `memory --plot` draws the tensors of a network, coloured by the operators
 * that make them. */
#ifndef RFX_TOOLS_STUDY_PLACEMENT_CHART_H
#define RFX_TOOLS_STUDY_PLACEMENT_CHART_H

#include "layers/graph/graph.h"
#include "tiler/arena/packer.h"
#include "tools/study/chart.h"

/* Returns the length of the first `depth` parts of a name. A part ends at '.' or '/'. */
int rfx_step_name_length(const char *name, int depth);

/* Returns the largest number of parts to which names[n] can be cut so that at most `most` runs of
 * equal names remain. Returns 0 when even one part leaves more runs. */
int rfx_step_name_depth(const char *const *names, int n, int most);

/* A colour and its name in the legend. */
struct rfx_placement_kind {
    const char *name;
    int color; /* of the charts' palette, 1 .. */
};

/* The placement that is drawn. All pointers are borrowed. */
struct rfx_placement_drawing {
    const char *subject; /* begins the title: "mobilenet_v2, 224x224" */
    const char *items;   /* what the items are: "tensors" */
    const struct rfx_place_problem *problem;
    const size_t *offsets; /* [problem->n] */
    const struct rfx_packer_result *result;
    const char *const *names; /* [problem->n] */
    const int *kinds; /* [problem->n] index into kind; NULL: two kinds, alive at the peak or not */
    const struct rfx_placement_kind *kind;
    int n_kinds;
    /* Names of the times 0 .. n_steps - 1. The first parts of the names ("features.3" of
     * "features.3.conv.0") are written along the axis, each once. NULL: times are numbers. */
    const char *const *steps;
    int n_steps;
};

struct rfx_placement_chart; /* a chart and the arrays that it needs */

/* Creates the chart. `drawing` must outlive the chart. The caller frees the chart with
 * rfx_placement_chart_free, which accepts NULL. Statuses: INVALID_ARGUMENT when there is no item,
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_placement_chart_create(
    struct rfx_memory *mem, const struct rfx_placement_drawing *drawing,
    struct rfx_placement_chart **out, struct rfx_error *err);

const struct rfx_chart *rfx_placement_chart_get(const struct rfx_placement_chart *chart);

void rfx_placement_chart_free(struct rfx_placement_chart *chart);

/* Draws the chart of a placement into a file. Statuses: those of rfx_placement_chart_create and of
 * rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_placement_chart_write(struct rfx_memory *mem,
                                                        const struct rfx_placement_drawing *drawing,
                                                        const char *path, struct rfx_error *err);

/* The tensors of a network in an arena. The times of the problem are steps, one for each operator
 * that runs. All pointers are borrowed. */
struct rfx_memory_placement {
    const struct rfx_graph *graph;
    const char *model; /* as the user named it */
    const struct rfx_place_problem *problem;
    const int *nodes;      /* [problem->n] the node that makes the tensor */
    const size_t *offsets; /* [problem->n] */
    struct rfx_packer_result result;
};

/* Returns whether a node runs as an operator: it is neither the image, nor a constant, nor an
 * output that only joins several maps (rfx_node_is_joined). */
bool rfx_memory_is_step(const struct rfx_graph *graph, int node);

/* Draws the placement into `path`, .svg or .png. Statuses: those of rfx_placement_chart_write. */
RFX_NODISCARD enum rfx_status rfx_memory_chart(struct rfx_memory *mem,
                                               const struct rfx_memory_placement *placement,
                                               const char *path, struct rfx_error *err);
#endif
