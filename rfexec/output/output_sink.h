/* Where an output goes that is handed out while the run goes on, instead of being stored.
 *
 * Invariants, kept by the one who calls: 1. every element of an output is handed out exactly once,
 * all channels of a pixel together; 2. of a map the rectangles are whole rows from top to bottom,
 * unless the sink takes any order (column strips, tiles); 3. the view is valid during the call
 * only;
 * 4. of an output that is joined of several maps all are handed out or none is, in any order: those
 * that the plan stores at the end of the run. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H

#include <math.h>
#include <stdbool.h>

#include "layers/core/status.h"
#include "layers/graph/graph.h"

/* Receives outputs while the run goes on. */
struct rfx_output_sink {
    /* Takes `rect` of the map `end` of output end->output, which lies in `view` (NHWC floats) and
     * belongs where end->at says. NaN come as they were computed: the sink makes them one with
     * rfx_one_nan. Another status than RFX_OK stops the run with it. */
    enum rfx_status (*write)(void *user, const struct rfx_end *end, struct rfx_rect rect,
                             const struct rfx_view *view, struct rfx_error *err);
    void *user;
    bool any_order; /* takes rectangles in any order, not only whole rows from top to bottom */
};

/* Sign and payload of a NaN depend on which operand an instruction met first, and so on where in a
 * vector an element lay. That an element is NaN does not; so all NaN leave as the same one. */
static inline float rfx_one_nan(float x) {
    return x != x ? NAN : x;
}

/* Puts `rect` of a map, all its channels, where it belongs in an output in ONNX order. */
void rfx_end_scatter(const struct rfx_end *end, float *output, struct rfx_rect rect,
                     const struct rfx_view *view);
#endif
