/* What the machine can do at most, measured now, with the kernels that this process uses: the roofs
 * that a layer's speed is held against. */
#ifndef RFX_TOOLS_MEASURE_MACHINE_PEAK_H
#define RFX_TOOLS_MEASURE_MACHINE_PEAK_H

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

/* That of one thread, by the time that it has had a processor, in some milliseconds: other work on
 * the machine hardly lowers it. */
double rfx_machine_probe(void);

/* Bytes that adding two arrays into a third moves, RFX_MACHINE_PEAK_BYTES all three; what a
 * processor reads of a line before it is overwritten is not counted, as it is not for layers. The
 * best of several passes. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_machine_bytes_per_second(struct rfx_memory *mem, int threads,
                                                           double *out, struct rfx_error *err);
#endif
