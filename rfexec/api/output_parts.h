/* Private: outputs of a run on their way to the caller: into his arrays, or, those that have none,
 * to his function (options.write). */
#ifndef RFX_RFEXEC_API_OUTPUT_PARTS_H
#define RFX_RFEXEC_API_OUTPUT_PARTS_H

#include "rfexec/api/job.h"

/* The look function of a sink whose user is the job. */
void rfx_output_look(void *job, const struct rfx_end *end, struct rfx_rect rect,
                     const struct rfx_view *view);

/* The write function of a sink whose user is the job. IO: the caller's function failed. */
RFX_NODISCARD enum rfx_status rfx_output_take_part(void *job, const struct rfx_end *end,
                                                   struct rfx_rect rect,
                                                   const struct rfx_view *view,
                                                   struct rfx_error *err);
#endif
