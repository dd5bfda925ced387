/* What the machine can do at most, measured now, with the kernels that this process uses: the roofs
 * that a layer's speed is held against. */
/* How long a predicted time takes on this processor.
 *
 * Predicted times are of the processor that the constants of the cost model were measured on
 * (tiler/cost/cost_constants.h), so that plans are the same everywhere. Where seconds are shown,
 * they are scaled by what this processor multiplies in a second, against that one. Plans do not
 * depend on it.
 *
 * The speed is measured once, in some milliseconds, and kept in XDG_CACHE_HOME/rfexec (or
 * ~/.cache/rfexec): a small file for each processor model, instruction set and version. A folder
 * that cannot be written is no error. The environment variable RFX_MACHINE_SPEED sets it, as a
 * multiple of the speed of the constants' processor: with 1 nothing is measured. */
#ifndef RFX_TOOLS_STUDY_MACHINE_SPEED_H
#define RFX_TOOLS_STUDY_MACHINE_SPEED_H

#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

struct rfx_machine_peak {
    int threads;
    double flops_per_second; /* of fused multiply-adds, two operations each */
    double bytes_per_second; /* to and from memory, read and written together */
};

/* The bytes that rfx_machine_bytes_per_second takes while it runs. */
#define RFX_MACHINE_PEAK_BYTES ((size_t)64 << 20)

/* Multiply-adds of `threads` threads together, from registers, in the widest vectors of the kernels
 * in use: the best of several short spans, about 0.1 s. Takes no memory. */
double rfx_machine_flops_per_second(int threads);

/* Bytes that adding two arrays into a third moves, RFX_MACHINE_PEAK_BYTES all three; what a
 * processor reads of a line before it is overwritten is not counted, as it is not for layers. The
 * best of several passes. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_machine_bytes_per_second(struct rfx_memory *mem, int threads,
                                                           double *out, struct rfx_error *err);

/* Seconds of a predicted time (plan.cost) of so many threads on this processor. */
double rfx_machine_seconds(uint64_t picoseconds, int threads);
#endif
