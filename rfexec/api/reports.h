/* Private: describes the stages of a plan in the structs of the public header. */
#ifndef RFX_RFEXEC_API_REPORTS_H
#define RFX_RFEXEC_API_REPORTS_H

#include "layers/core/status.h"
#include "rfexec/rfexec.h"
#include "tiler/plan/plan.h"

/* Like rfx_network_stages, for a plan. The texts are names of `graph`, for which the plan was made
 * and which outlives the plan. */
RFX_NODISCARD enum rfx_status rfx_report_stages(const struct rfx_plan *plan,
                                                const struct rfx_graph *graph,
                                                struct rfx_stage_report *stages, size_t stage_bytes,
                                                int most, int *count, struct rfx_error *err);
#endif
