/* Whether the process can have the threads that a run takes. */
#ifndef RFX_LAYERS_CORE_THREADS_H
#define RFX_LAYERS_CORE_THREADS_H

#include "layers/core/status.h"

/* Starts and joins threads - 1 threads that do nothing (64 at most). OUT_OF_MEMORY when the system
 * does not give as many: the OpenMP runtime, which starts the real ones in the middle of a run,
 * ends the process then. */
RFX_NODISCARD enum rfx_status rfx_threads_try(int threads, struct rfx_error *err);
#endif
