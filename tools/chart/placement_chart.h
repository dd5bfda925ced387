/* The picture of a placement: time across, address up, one rectangle per item, the lower bound as a
 * line and a frame around the time in which most bytes are alive. `memory --plot` and `alloc
 * --plot` draw it. */
#ifndef RFX_TOOLS_CHART_PLACEMENT_CHART_H
#define RFX_TOOLS_CHART_PLACEMENT_CHART_H

#include "tiler/arena/packer.h"
#include "tools/chart/chart.h"

enum { RFX_PLACEMENT_MAX_KINDS = 8 };

/* What the legend calls the items of one colour. */
struct rfx_placement_kind {
    const char *name;
    int color; /* of the charts' palette, 1 .. */
};

/* All borrowed. */
struct rfx_placement_picture {
    const char *subject; /* begins the title: "mobilenet_v2, 224x224" */
    const char *items;   /* what they are: "tensors" */
    const struct rfx_place_problem *problem;
    const size_t *offsets; /* [problem->n] */
    const struct rfx_packer_result *result;
    const char *const *names; /* [problem->n] */
    const int *kinds; /* [problem->n] index into kind; NULL: what is alive at the peak, and the rest
                       */
    const struct rfx_placement_kind *kind;
    int n_kinds;
    /* Names of the times 0 .. n_steps - 1; their first parts ("features.3" of "features.3.conv.0")
     * are written along the axis, once each. NULL: times are numbers. */
    const char *const *steps;
    int n_steps;
};

struct rfx_placement_chart; /* the chart and the arrays it borrows */

/* Makes the chart. INVALID_ARGUMENT when there is no item, OUT_OF_MEMORY. The picture must outlive
 * it; free with rfx_placement_chart_free. */
RFX_NODISCARD enum rfx_status rfx_placement_chart_create(
    struct rfx_memory *mem, const struct rfx_placement_picture *picture,
    struct rfx_placement_chart **out, struct rfx_error *err);

const struct rfx_chart *rfx_placement_chart_get(const struct rfx_placement_chart *chart);

void rfx_placement_chart_free(struct rfx_placement_chart *chart);

/* Draws it into a file: see rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_placement_chart_write(struct rfx_memory *mem,
                                                        const struct rfx_placement_picture *picture,
                                                        const char *path, struct rfx_error *err);
#endif
