/* Checks that the process can start the threads that a run needs. */
#ifndef RFX_LAYERS_CORE_THREADS_H
#define RFX_LAYERS_CORE_THREADS_H

#include "layers/core/status.h"

/* Starts and joins `threads` - 1 threads (64 at most) that do nothing, then runs an empty team so
 * that the OpenMP runtime starts its threads. The runtime ends the process if it gets no thread or
 * no memory, so it has to start them before the run and not in its middle. Returns OUT_OF_MEMORY
 * when the system does not give enough threads. */
RFX_NODISCARD enum rfx_status rfx_threads_try(int threads, struct rfx_error *err);
#endif
