/* From where fronts could not go on to whole packings: what the last states had placed is mostly right
 * where they got far, so the rest is put in anywhere and items move until none overlap. */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_MEND_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_MEND_H

#include "tiler/fronts/fronts.h"

/* As rfx_fronts_place, of which it is all that is done where that finds something. request->parts is
 * not looked at. Of the moves each counts as a group. */
RFX_NODISCARD enum rfx_status rfx_mended_fronts_place(const struct rfx_place_problem *problem,
                                                      const struct rfx_fronts_request *request,
                                                      size_t *offsets, size_t *arena_bytes,
                                                      bool *complete, uint64_t *nodes,
                                                      struct rfx_error *err);
#endif
