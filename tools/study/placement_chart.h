/* Charts of placements in an arena: time across, addresses upwards, one rectangle for each item, a
 * line for the lower bound, and frames around the items alive when most bytes are. `alloc --plot`
 * draws any placement; `memory --plot` draws the tensors of a network, coloured by the operators
 * that make them. */
#ifndef RFX_TOOLS_STUDY_PLACEMENT_CHART_H
#define RFX_TOOLS_STUDY_PLACEMENT_CHART_H

#include "layers/graph/graph.h"
#include "tiler/arena/packer.h"
#include "tools/study/chart.h"

/* The length of the first `depth` parts of a name; parts end at '.' or '/'. */
int rfx_step_name_length(const char *name, int depth);

/* The largest number of parts with which no more than `most` runs of equal names remain; 0: even
 * one part leaves more. */
int rfx_step_name_depth(const char *const *names, int n, int most);

/* A colour and its name in the legend. */
struct rfx_placement_kind {
    const char *name;
    int color; /* of the charts' palette, 1 .. */
};

/* What is drawn. All borrowed. */
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
    /* Names of the times 0 .. n_steps - 1. Their first parts ("features.3" of "features.3.conv.0")
     * are written once each along the axis. NULL: times are numbers. */
    const char *const *steps;
    int n_steps;
};

struct rfx_placement_chart; /* a chart with the arrays that it borrows */

/* Makes the chart, which borrows the picture. INVALID_ARGUMENT: there is no item; OUT_OF_MEMORY.
 * Free with rfx_placement_chart_free. */
RFX_NODISCARD enum rfx_status rfx_placement_chart_create(
    struct rfx_memory *mem, const struct rfx_placement_drawing *drawing,
    struct rfx_placement_chart **out, struct rfx_error *err);

const struct rfx_chart *rfx_placement_chart_get(const struct rfx_placement_chart *chart);

void rfx_placement_chart_free(struct rfx_placement_chart *chart);

/* Draws it into a file. Statuses of rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_placement_chart_write(struct rfx_memory *mem,
                                                        const struct rfx_placement_drawing *drawing,
                                                        const char *path, struct rfx_error *err);

/* The tensors of a network in an arena. Times of the problem are steps, one for each operator that
 * runs. All borrowed. */
struct rfx_memory_placement {
    const struct rfx_graph *graph;
    const char *model; /* as the user named it */
    const struct rfx_place_problem *problem;
    const int *nodes;      /* [problem->n] the node that makes the tensor */
    const size_t *offsets; /* [problem->n] */
    struct rfx_packer_result result;
};

/* Whether a node runs as an operator: it is neither the image nor a constant. */
bool rfx_memory_is_step(const struct rfx_graph *graph, int node);

/* Writes `path`, .svg or .png. Statuses of rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_memory_chart(struct rfx_memory *mem,
                                               const struct rfx_memory_placement *placement,
                                               const char *path, struct rfx_error *err);
#endif
