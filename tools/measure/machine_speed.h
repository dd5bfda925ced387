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
#ifndef RFX_TOOLS_MEASURE_MACHINE_SPEED_H
#define RFX_TOOLS_MEASURE_MACHINE_SPEED_H

#include <stdint.h>

/* Seconds of a predicted time (plan.cost) of so many threads on this processor. */
double rfx_machine_seconds(uint64_t picoseconds, int threads);
#endif
