/* A beam search over skylines: items are put on what lies below them, the lowest place first.
 *
 * Of the states in which as many items are placed the best `width` are kept: those that have wasted
 * the smallest share of what the fullest sections can spare, with the fewest steps in their skyline
 * (each has to be filled exactly, or wasted). A state is dropped when the section-wise bound of
 * packer_branch.h passes the capacity. States with the same items placed and the same skyline are
 * one. That nothing is found proves nothing. */
#ifndef RFX_TILER_PACKER_PACKER_SKYLINE_H
#define RFX_TILER_PACKER_PACKER_SKYLINE_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

struct rfx_skyline_request {
    size_t capacity_bytes;
    size_t unit_bytes; /* every size is a multiple; rfx_search_unit_bytes */
    int width;         /* states kept, > 0 */
    bool rough;        /* small steps of the skyline count less where there are bytes to spare */
    uint64_t seed;     /* 0: no chance; else of a disturbance of what is best */
    const struct rfx_place_stop *stop;
};

/* Fills offsets[n] when *found; adds the states it looked at to *nodes. RFX_STATUS_OUT_OF_MEMORY.
 * Where nothing stops it the outcome is a function of problem and request. */
RFX_NODISCARD enum rfx_status rfx_skyline_place(const struct rfx_place_problem *problem,
                                                const struct rfx_skyline_request *request,
                                                size_t *offsets, bool *found, uint64_t *nodes,
                                                struct rfx_error *err);
#endif
