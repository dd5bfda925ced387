/* Joins the outputs of a head that a file describes (rfexec/output/detector.h) into one more
 * output, as join_heads.h does for the heads that it knows.
 *
 * The tensors of an output are split into levels and reshaped to 1 x cells x (anchors and values).
 * This is done by nodes that layers/fuse/heads.h turns back into maps, where the values of a cell
 * come from one pixel of a map: the joined output is then computed row by row. Otherwise it is
 * stored whole. */
#ifndef RFX_RFEXEC_RUN_JOIN_DETECTOR_H
#define RFX_RFEXEC_RUN_JOIN_DETECTOR_H

#include "layers/graph/graph.h"
#include "rfexec/output/detector.h"

/* Adds an output "detections" whose stored.detector is a copy of the description with the members
 * set that joining finds. only: the outputs that it names are no outputs any more, so that no plan
 * stores them. Call it before rfx_graph_finish. INVALID_ARGUMENT: an output is missing, or the
 * shapes are not those of the description; the text names the output and the numbers. */
RFX_NODISCARD enum rfx_status rfx_graph_join_detector(struct rfx_graph *graph,
                                                      const struct rfx_detector *detector,
                                                      bool only, struct rfx_error *err);
#endif
