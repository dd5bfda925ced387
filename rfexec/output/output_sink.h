/* Where the outputs of a run go.
 *
 * A run hands out every output, piece by piece: while it goes on where the plan does so
 * (rfx_plan_request.emit_outputs), and what the plan stores at the end of the run. A piece is a
 * rectangle of a map; a tensor that is no map is one piece, a pixel whose channels are its
 * elements. Invariants, kept by the one who calls: 1. every element of an output is handed out
 * exactly once, all channels of a pixel together; 2. rectangles come in any order: whole rows from
 * top to bottom, column strips, tiles; of a map that is stored, whole rows from top to bottom; 3.
 * the view is valid during the call only; 4. maps that an output is joined of come in any order. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_SINK_H

#include <stdbool.h>

#include "layers/core/floats.h"
#include "layers/core/status.h"
#include "layers/graph/graph.h"

struct rfx_output_sink {
    /* Called when all memory of the run is there, before its first step: opens files. NULL: nothing
     * is to be done. Another status than RFX_OK ends the run with it. */
    enum rfx_status (*begin)(void *user, struct rfx_error *err);
    /* Called after the last piece of a run that went well: completes files. NULL: nothing is to be
     * done. Whoever owns the sink cleans up after a run that failed. */
    enum rfx_status (*end)(void *user, struct rfx_error *err);
    /* Called before the first write of a map that the plan stores, all of which is `rect` in the
     * view: a sink that has to know the range of values looks here. NULL: it does not look. */
    void (*look)(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view);
    /* Takes `rect` of the map `end` of output end->output, which lies in `view` (NHWC, elements of
     * view->type) and
     * belongs where end->at says; of a tensor that is no map its elements in order. NaN come as
     * they were computed: the sink makes them one (rfx_type_gather, rfx_one_nan). Another status
     * than RFX_OK stops the run with it. */
    enum rfx_status (*write)(void *user, const struct rfx_end *end, struct rfx_rect rect,
                             const struct rfx_view *view, struct rfx_error *err);
    void *user;
};

/* Lets the sink look, if it does. */
static inline void rfx_sink_look(const struct rfx_output_sink *sink, const struct rfx_end *end,
                                 struct rfx_rect rect, const struct rfx_view *view) {
    if (sink->look != NULL) sink->look(sink->user, end, rect, view);
}

/* Puts `rect` of a map, all its channels, where it belongs in an output in ONNX order, whose
 * elements are of the type: converted as rfx_type_gather says. */
void rfx_end_scatter(const struct rfx_end *end, enum rfx_type type, void *output,
                     struct rfx_rect rect, const struct rfx_view *view);
#endif
