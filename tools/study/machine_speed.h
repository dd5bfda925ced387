/* What this machine can do: the limits of processor and memory, measured now with the kernels of
 * this process, and how long a predicted time takes here.
 *
 * Predicted times are those of the processor on which the constants of the cost model were measured
 * (tiler/cost/cost_constants.h), so that plans are the same everywhere. Where seconds are shown,
 * they are scaled by the multiply-adds per second of this processor; plans do not depend on it. The
 * speed is measured once, in some milliseconds, and kept in XDG_CACHE_HOME/rfexec (or
 * ~/.cache/rfexec): a small file for each processor model, instruction set and version. A folder
 * that cannot be written is no error. The environment variable RFX_MACHINE_SPEED sets the speed, as
 * a multiple of that of the constants' processor; with 1 nothing is measured. */
#ifndef RFX_TOOLS_STUDY_MACHINE_SPEED_H
#define RFX_TOOLS_STUDY_MACHINE_SPEED_H

#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

struct rfx_machine_peak {
    int threads;
    double flops_per_second; /* of fused multiply-adds, two operations each */
    double bytes_per_second; /* to and from memory, reads and writes together */
};

/* Bytes that rfx_machine_bytes_per_second takes while it runs. */
#define RFX_MACHINE_PEAK_BYTES ((size_t)64 << 20)

/* Measures multiply-adds of `threads` threads together, from registers, in the widest vectors of
 * the kernels in use: the best of several short spans, about 0.1 s. Takes no memory. */
double rfx_machine_flops_per_second(int threads);

/* Measures adding two arrays into a third, RFX_MACHINE_PEAK_BYTES all together: the best of several
 * passes. What a processor reads of a line before overwriting it is not counted, as it is not
 * counted for layers. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_machine_bytes_per_second(struct rfx_memory *mem, int threads,
                                                           double *out, struct rfx_error *err);

/* The seconds that a predicted time (plan.cost) takes in so many threads on this processor. */
double rfx_machine_seconds(uint64_t picoseconds, int threads);
#endif
