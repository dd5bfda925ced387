/* The network that states are of, as their JSON says. */
#ifndef RFX_TOOLS_PARTS_STATES_NETWORK_H
#define RFX_TOOLS_PARTS_STATES_NETWORK_H

#include "tools/parts/files/state_file.h"

/* Loads the network of states that were peeked at in `path`, and finds their output k. The model is
 * a built-in, the file that the parts were made with, or one of its name beside the states: that
 * runs were in another folder or elsewhere does no harm. MALFORMED, in words: it is nowhere, its
 * hash is not that of the parts, or the JSON does not say what was run. Free with rfx_graph_free.
 */
RFX_NODISCARD enum rfx_status rfx_part_states_load_network(struct rfx_memory *mem,
                                                           const struct rfx_part_states *states,
                                                           const char *path, size_t memory_bytes,
                                                           struct rfx_graph **out, int *k,
                                                           struct rfx_error *err);
#endif
