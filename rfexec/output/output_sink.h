/* Where an output goes that is handed out while the run goes on, instead of being stored.
 *
 * Invariants, kept by the one who calls: 1. every element of an output is handed out exactly once,
 * all channels of a pixel together; 2. the rectangles are whole rows from top to bottom, unless the
 * sink takes any order (column strips, tiles); 3. the view is valid during the call only. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H

#include <math.h>
#include <stdbool.h>

#include "layers/core/status.h"
#include "layers/graph/tensor.h"

/* Receives outputs while the run goes on. */
struct rfx_output_sink {
    /* Takes `rect` of the map of output k, which lies in `view` (NHWC floats). NaN come as they
     * were computed: the sink makes them one with rfx_one_nan. Another status than RFX_OK stops the
     * run with it. */
    enum rfx_status (*write)(void *user, int k, struct rfx_rect rect, const struct rfx_view *view,
                             struct rfx_error *err);
    void *user;
    bool any_order; /* takes rectangles in any order, not only whole rows from top to bottom */
};

/* Sign and payload of a NaN depend on which operand an instruction met first, and so on where in a
 * vector an element lay. That an element is NaN does not; so all NaN leave as the same one. */
static inline float rfx_one_nan(float x) {
    return x != x ? NAN : x;
}
#endif
