/* Whether the process can have the threads that a run takes. */
#ifndef RFX_LAYERS_CORE_THREADS_H
#define RFX_LAYERS_CORE_THREADS_H

#include "layers/core/status.h"

/* Starts and joins threads - 1 threads that do nothing (64 at most), then has the OpenMP runtime
 * start those that it will use: it ends the process when it gets no thread or no memory, and what
 * it has now it need not ask for in the middle of a run. OUT_OF_MEMORY when the system does not
 * give as many. */
RFX_NODISCARD enum rfx_status rfx_threads_try(int threads, struct rfx_error *err);
#endif
