/* Makes intermediate tensors additional outputs of the network. */
#ifndef RFX_RFEXEC_RUN_KEEP_TENSORS_H
#define RFX_RFEXEC_RUN_KEEP_TENSORS_H

#include "layers/graph/graph.h"

enum {
    RFX_KEEP_COPIES = 1, /* the outputs are copies: a stream hands out a copy row by row, but stores
                            a tensor that other nodes read too */
    RFX_KEEP_KNOWN = 2,  /* names that are not known, of constants, or of outputs are passed over */
};

/* Makes the tensors of the given names outputs under these names, so that they are neither fused
 * away nor overwritten. A name is a node's name or alias, or a module path such as "features.6"
 * (then the last node below that path; not with RFX_KEEP_KNOWN). The same name twice counts once.
 * Call it before rfx_graph_finish. INVALID_ARGUMENT: there is no such tensor (the text lists near
 * names), it is a constant, or it is already an output of the network. A cut tensor of a network
 * with late nodes is fine: it is an output of the graph under its name. */
RFX_NODISCARD enum rfx_status rfx_graph_keep(struct rfx_graph *graph, const char *const *names,
                                             int n, unsigned how, struct rfx_error *err);

/* Sets *node to a new node that copies the float32 tensor of *node: a LeakyRelu whose alpha is 1.
 * The new node's name begins with `name`. Statuses: as rfx_graph_add. */
RFX_NODISCARD enum rfx_status rfx_graph_copy_tensor(struct rfx_graph *graph, const char *name,
                                                    int *node, struct rfx_error *err);
#endif
