/* Which Winograd convolutions keep their factors in memory, where they would be made while they are
 * used otherwise: a quarter less time, and four times the weights' bytes. The bits are the same. */
#ifndef RFX_TILER_SEARCH_FORMS_FACTORS_H
#define RFX_TILER_SEARCH_FORMS_FACTORS_H

#include "tiler/plan/plan.h"

/* The graph with the plan's groups and, as far as `room` bytes go, with factors that are kept: of
 * large maps first, for which they would be made most often. *out stays as it is where none fit.
 * OUT_OF_MEMORY. Freed before the graph. */
RFX_NODISCARD enum rfx_status rfx_factors_keep(const struct rfx_graph *graph,
                                               const struct rfx_plan *plan, size_t room,
                                               struct rfx_graph **out, struct rfx_error *err);

/* Lets the nodes that a request names keep their factors; *made is the graph with the request's
 * groups, or NULL: without, and is made if need be. INVALID_ARGUMENT: one is no convolution. */
RFX_NODISCARD enum rfx_status rfx_factors_apply(const struct rfx_graph *graph,
                                                const struct rfx_plan_request *request,
                                                struct rfx_graph **made, struct rfx_error *err);

/* How many convolutions of a plan keep factors that they would make otherwise. */
int rfx_factors_count(const struct rfx_plan *plan);
#endif
