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
         [RFX_COST_DIRECT_MAC] = 7.459,
         [RFX_COST_WINOGRAD_MAC] = 9.306,
         [RFX_COST_OPENBLAS_MAC] = 19.51,
         [RFX_COST_CHANNEL_MAC] = 8.644,
         [RFX_COST_POOL_TAP] = 74.43,
         [RFX_COST_FEW_MAC] = 16.07,
         [RFX_COST_OTHER_MAC] = 12.09,
         [RFX_COST_CONV_ELEMENT] = 25.55,
         [RFX_COST_TILE_ELEMENT] = 59.47,
         [RFX_COST_TILE_FACTOR] = 89.62,
         [RFX_COST_ELEMENT] = 77.64,
         [RFX_COST_ACT_ELEMENT] = 322.9,
         [RFX_COST_SUM_ELEMENT] = 133.1,
         [RFX_COST_IMAGE_ELEMENT] = 3549,
         [RFX_COST_RUN] = 2.995e+04,
         [RFX_COST_STEP] = 5.357e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_WEIGHT_BYTE] = 12.4,
         [RFX_COST_SHARED_BYTE] = 3.249,
         [RFX_COST_PLAIN_BYTE] = 2.65,
         [RFX_COST_DRAM_BYTE] = 23.29,
         [RFX_COST_LOAD_BYTE] = 523.2,
         [RFX_COST_SPILL_BYTE] = 2500,
     }},
};
/* clang-format on */
#endif
