/* The receiver of a run's outputs.
 *
 * A run passes every output to the sink in pieces: during the run where the plan does so
 * (rfx_plan_request.emit_outputs), and at the end of the run for maps that the plan stores. A piece
 * is a rectangle of a map. A tensor that is no map is one piece: one pixel whose channels are its
 * elements. Invariants, kept by the caller of the sink: 1. every element of an output is passed
 * exactly once, all channels of a pixel together; 2. rectangles come in any order: whole rows from
 * top to bottom, column strips, or tiles; a stored map comes in whole rows from top to bottom; 3.
 * the view is valid during the call only; 4. the maps that are joined to one output come in any
 * order. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H

#include <stdbool.h>

#include "layers/core/floats.h"
#include "layers/core/status.h"
#include "layers/graph/graph.h"

struct rfx_output_sink {
    /* Called once the run has allocated all its memory, before its first step. Opens files. NULL:
     * nothing to do. A status other than RFX_OK ends the run with that status. */
    enum rfx_status (*begin)(void *user, struct rfx_error *err);
    /* Called after the last piece of a successful run. Completes files. NULL: nothing to do. After
     * a failed run the owner of the sink cleans up. */
    enum rfx_status (*end)(void *user, struct rfx_error *err);
    /* Called before the first write of a map that the plan stores. The view holds the whole map,
     * `rect`. A sink that needs the range of the values reads it here. NULL: not needed. */
    void (*look)(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view);
    /* Takes rectangle `rect` of a map of output end->output. The rectangle lies in `view` (NHWC,
     * elements of view->type), and end->at gives its place in the output. For a tensor that is no
     * map: takes its elements in order. NaNs come as they were computed; the sink must replace them
     * by one NaN (rfx_type_gather, rfx_one_nan). A status other than RFX_OK ends the run with that
     * status. */
    enum rfx_status (*write)(void *user, const struct rfx_end *end, struct rfx_rect rect,
                             const struct rfx_view *view, struct rfx_error *err);
    void *user;
};

/* Calls the sink's look function, if it has one. */
static inline void rfx_sink_look(const struct rfx_output_sink *sink, const struct rfx_end *end,
                                 struct rfx_rect rect, const struct rfx_view *view) {
    if (sink->look != NULL) sink->look(sink->user, end, rect, view);
}

/* Writes all channels of `rect` of a map to their places in `output`, an array in ONNX order with
 * elements of `type`. Converts values like rfx_type_gather. */
void rfx_end_scatter(const struct rfx_end *end, enum rfx_type type, void *output,
                     struct rfx_rect rect, const struct rfx_view *view);
#endif
