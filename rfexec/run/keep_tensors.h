/* Keeping intermediate tensors: they become additional outputs of the network. */
#ifndef RFX_RFEXEC_RUN_KEEP_TENSORS_H
#define RFX_RFEXEC_RUN_KEEP_TENSORS_H

#include "layers/graph/graph.h"

/* Declares the tensors of these names outputs under the names as given, so that they are neither
 * fused away nor written over. A name is a node's name or alias, or a module path such as
 * "features.6" (then the last node below it); the same name twice counts once. To be called before
 * rfx_graph_finish. INVALID_ARGUMENT: no such tensor (with near names), a constant, or an output of
 * the network already. */
RFX_NODISCARD enum rfx_status rfx_graph_keep(struct rfx_graph *graph, const char *const *names,
                                             int n, struct rfx_error *err);
#endif
