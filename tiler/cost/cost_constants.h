/* What the units of the cost model take, in picoseconds of one thread. Made by
 * tools/scripts/calibrate.py; not to be edited.
 *
 * AMD EPYC; second and shared cache: 1024K and 32768K.
 * Measured: avx512. Meetings of threads: assumed.
 * Files of spilled maps: assumed. */
#ifndef RFX_TILER_COST_COST_CONSTANTS_H
#define RFX_TILER_COST_COST_CONSTANTS_H

/* clang-format off */
static const struct {
    const char *kernels; /* the first: for kernels of any other name */
    double picoseconds[RFX_COST_UNITS];
} cost_sets[] = {
    {"avx512",
     {
         [RFX_COST_DIRECT_MAC] = 9.369,
         [RFX_COST_OPENBLAS_MAC] = 21.37,
         [RFX_COST_CHANNEL_MAC] = 7.401,
         [RFX_COST_POOL_TAP] = 119.5,
         [RFX_COST_FEW_MAC] = 13.89,
         [RFX_COST_OTHER_MAC] = 9.451,
         [RFX_COST_CONV_ELEMENT] = 301.8,
         [RFX_COST_ELEMENT] = 213.7,
         [RFX_COST_ACT_ELEMENT] = 452.3,
         [RFX_COST_SUM_ELEMENT] = 2074,
         [RFX_COST_IMAGE_ELEMENT] = 5118,
         [RFX_COST_RUN] = 0,
         [RFX_COST_STEP] = 5.731e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_WEIGHT_BYTE] = 27.3,
         [RFX_COST_SHARED_BYTE] = 4.811,
         [RFX_COST_PLAIN_BYTE] = 10.26,
         [RFX_COST_DRAM_BYTE] = 34.16,
         [RFX_COST_LOAD_BYTE] = 818.9,
         [RFX_COST_SPILL_BYTE] = 2500,
     }},
};
/* clang-format on */
#endif
