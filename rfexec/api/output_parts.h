/* Private: passes the outputs of a run to the caller: into the caller's arrays, into files, or to
 * options.write. */
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
