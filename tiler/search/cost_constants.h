/* Made by tools/scripts/calibrate.py; see docs/tradeoff_notes.md. Picoseconds of one thread, in the order of
 * enum rfx_cost_unit. Provisional. */
#ifndef RFX_TILER_SEARCH_COST_CONSTANTS_H
#define RFX_TILER_SEARCH_COST_CONSTANTS_H

static const struct {
    const char *kernels;
    double picoseconds[RFX_COST_UNITS];
} cost_sets[] = {
    {"avx512", {12, 16, 30, 20, 100, 100, 200, 400, 1000, 2000, 20000, 1000000, 4000000, 60, 150, 300}},
};
#endif
