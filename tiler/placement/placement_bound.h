/* What an arena of records takes at least, slides counted. */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_BOUND_H
#define RFX_TILER_PLACEMENT_PLACEMENT_BOUND_H

#include "tiler/placement/placement.h"

/* Steps [begin, end). */
struct rfx_place_span {
    int begin, end;
};

/* What is placed: records, and slides by rising steps, those of a node next to each other. */
struct rfx_place_job {
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    int n_steps;
    const struct rfx_place_span *spans; /* rising: no record begins, and none has ended, at any
                                           other step; NULL: all steps */
    int n_spans;
};

/* Largest sum of live bytes, or what of it no slide can save; *rest: in steps from rest_first on.
 * `live` is scratch of n_steps + 1 elements. O(n + n_slides + steps of spans). */
size_t rfx_place_slides_bound(const struct rfx_place_job *job, int rest_first, size_t *live,
                              size_t *rest);
#endif
