/* The speed of this machine: the limits of processor and memory, measured now with the kernels of
 * this process, and the time that predicted work takes here.
 *
 * The cost model predicts times for the processor on which its constants were measured
 * (tiler/cost/cost_constants.h), so that plans are the same everywhere. Seconds that are shown to
 * the user are scaled to the speed of this processor; plans do not depend on this speed. The speed
 * is measured once, in some milliseconds, and stored in XDG_CACHE_HOME/rfexec (or ~/.cache/rfexec):
 * a small file for each processor model, instruction set and version. A folder that cannot be
 * written is no error. The environment variable RFX_MACHINE_SPEED sets the speed as a multiple of
 * the speed of the constants' processor; then nothing is measured. */
#ifndef RFX_TOOLS_STUDY_MACHINE_SPEED_H
#define RFX_TOOLS_STUDY_MACHINE_SPEED_H

#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

struct rfx_machine_peak {
    int threads;
    double flops_per_second;   /* of fused multiply-adds, two operations each */
    double int_ops_per_second; /* of integer convolutions, likewise; 0: not measured */
    double bytes_per_second;   /* to and from memory, reads and writes together */
};

/* Bytes of memory that rfx_machine_bytes_per_second takes while it runs. */
#define RFX_MACHINE_PEAK_BYTES ((size_t)64 << 20)

/* Returns the floating-point operations per second of `threads` threads together: multiply-adds on
 * registers, in the widest vectors of the kernels in use. The best of several short measurements
 * counts; all take about 0.1 s. Takes no memory. */
double rfx_machine_flops_per_second(int threads);

/* The same for the multiply-adds of integer convolutions: dot products of bytes where the kernels
 * have them, else products of pairs of int16. Two operations for each multiply-add. */
double rfx_machine_int_ops_per_second(int threads);

/* Sets *out to the bytes per second at which `threads` threads add two arrays into a third array.
 * The arrays have RFX_MACHINE_PEAK_BYTES together. The best of several passes counts. A cache line
 * that the processor reads before overwriting it is not counted, as it is not counted for layers
 * either. Status: OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_machine_bytes_per_second(struct rfx_memory *mem, int threads,
                                                           double *out, struct rfx_error *err);

/* Returns the seconds that work with a predicted time (plan.cost) takes on this processor with a
 * number of threads. */
double rfx_machine_seconds(uint64_t picoseconds, int threads);
#endif
