/* Fronts that go on where no state of theirs could: what the last ones had placed is mostly right
 * where they got far, so the rest is put in where it overlaps least, and items move until none
 * overlap (overlaps.h). */
#ifndef RFX_TILER_PORTFOLIO_PORTFOLIO_MEND_H
#define RFX_TILER_PORTFOLIO_PORTFOLIO_MEND_H

#include "tiler/fronts/fronts.h"

/* As rfx_fronts_place, and no more than that where some state of the beam got to the end.
 * request->parts is not looked at. A move counts as a group, but not towards request->nodes. */
RFX_NODISCARD enum rfx_status rfx_mended_fronts_place(const struct rfx_place_problem *problem,
                                                      const struct rfx_fronts_request *request,
                                                      size_t *offsets, size_t *arena_bytes,
                                                      bool *complete, uint64_t *nodes,
                                                      struct rfx_error *err);
#endif
