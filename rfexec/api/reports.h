/* Private: the stages of a plan in the public header's form. */
#ifndef RFX_RFEXEC_API_REPORTS_H
#define RFX_RFEXEC_API_REPORTS_H

#include "layers/core/status.h"
#include "rfexec/rfexec.h"
#include "tiler/plan/plan.h"

/* As rfx_network_stages; names are those of `graph`, which the plan was made for and outlives it.
 */
RFX_NODISCARD enum rfx_status rfx_report_stages(const struct rfx_plan *plan,
                                                const struct rfx_graph *graph,
                                                struct rfx_stage_report *stages, size_t stage_bytes,
                                                int most, int *count, struct rfx_error *err);
#endif
