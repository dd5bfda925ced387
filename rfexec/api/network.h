/* Private: networks of the public header in an allocator of the caller's, which tests can let fail.
 */
#ifndef RFX_RFEXEC_API_NETWORK_H
#define RFX_RFEXEC_API_NETWORK_H

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/rfexec.h"

/* As rfx_network_open; `mem` is borrowed until rfx_network_free, and used whatever the options say
 * of memory. */
RFX_NODISCARD enum rfx_code rfx_network_open_in(struct rfx_memory *mem, const char *model,
                                                const struct rfx_open_options *options,
                                                struct rfx_network **out, struct rfx_why *why);

/* Makes the network live until one more rfx_network_free. From any thread. */
void rfx_network_keep(struct rfx_network *network);

/* For what is made of it: valid as long as the network. */
struct rfx_graph *rfx_network_graph(struct rfx_network *network);
const struct rfx_graph *rfx_network_graph_of(const struct rfx_network *network);
#endif
