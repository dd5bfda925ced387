/* Joins the cut tensors of a network with late nodes (rfexec/late/late.h) into one output, so that
 * they can be made in parts: 1 x elements x 1, the elements of one cut tensor after those of the
 * other, each in ONNX order. rfx_split_heads makes it a join of maps if every cut tensor is made of
 * maps; else it is stored, and has no parts. */
#ifndef RFX_RFEXEC_RUN_JOIN_CUTS_H
#define RFX_RFEXEC_RUN_JOIN_CUTS_H

#include "layers/graph/graph.h"

/* stored.head of the joined output, whose name is "cut tensors". */
#define RFX_CUTS_HEAD "late nodes"

/* Replaces all outputs by the joined one. graph->late is freed: the graph is that of the parts, and
 * the late nodes run when they are merged. Call it before rfx_graph_finish. Statuses: as
 * rfx_graph_add. */
RFX_NODISCARD enum rfx_status rfx_graph_join_cuts(struct rfx_graph *graph, struct rfx_error *err);
#endif
