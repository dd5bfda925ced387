/* Private: networks of the public header in an allocator of the caller's, which tests can let fail.
 */
#ifndef RFX_RFEXEC_API_NETWORK_H
#define RFX_RFEXEC_API_NETWORK_H

#include "layers/core/memory.h"
#include "rfexec/rfexec.h"

/* As rfx_network_open; `mem` is borrowed until rfx_network_free. */
RFX_NODISCARD enum rfx_code rfx_network_open_in(struct rfx_memory *mem, const char *model,
                                                const struct rfx_open_options *options,
                                                struct rfx_network **out, struct rfx_why *why);
#endif
