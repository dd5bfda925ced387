/* What the units of the cost model take, in picoseconds of one thread. Made by
 * tools/scripts/calibrate.py; not to be edited. What meetings and bytes of spilled maps take is
 * assumed. */
#ifndef RFX_TILER_COST_COST_CONSTANTS_H
#define RFX_TILER_COST_COST_CONSTANTS_H

/* clang-format off */
static const struct rfx_cost_set {
    const char *kernels; /* the first: for kernels of any other name */
    double dram_speed;   /* of memory for two threads or more, one thread's as 1 */
    double picoseconds[RFX_COST_UNITS];
} cost_sets[] = {
    /* AMD EPYC (family 25, model 1); caches 512K and 32768K; AHEAD_BYTE assumed, to DRAM_BYTE as with
       avx512 */
    {"avx2", 1.45,
     {
         [RFX_COST_DIRECT_MAC] = 23.05,
         [RFX_COST_WINOGRAD_MAC] = 33.02,
         [RFX_COST_OPENBLAS_MAC] = 29.68,
         [RFX_COST_CHANNEL_MAC] = 12.69,
         [RFX_COST_POOL_TAP] = 54.66,
         [RFX_COST_FEW_MAC] = 16.74,
         [RFX_COST_OTHER_MAC] = 15.69,
         [RFX_COST_CONV_ELEMENT] = 563.7,
         [RFX_COST_TILE_ELEMENT] = 78.13,
         [RFX_COST_TILE_FACTOR] = 91.72,
         [RFX_COST_ELEMENT] = 84.82,
         [RFX_COST_ACT_ELEMENT] = 1327,
         [RFX_COST_SUM_ELEMENT] = 151.1,
         [RFX_COST_IMAGE_ELEMENT] = 2752,
         [RFX_COST_RUN] = 3.118e+04,
         [RFX_COST_STEP] = 5.429e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_WEIGHT_BYTE] = 17.17,
         [RFX_COST_SHARED_BYTE] = 4.628,
         [RFX_COST_PLAIN_BYTE] = 10.29,
         [RFX_COST_COLD_BYTE] = 24.3,
         [RFX_COST_AHEAD_BYTE] = 21.7,
         [RFX_COST_DRAM_BYTE] = 31.6,
         [RFX_COST_LOAD_BYTE] = 740.6,
         [RFX_COST_SPILL_BYTE] = 2500,
         [RFX_COST_DECODING] = 1,
     }},
    /* AMD EPYC (family 26, model 2); caches 1024K and 32768K */
    {"avx512", 1.31,
     {
         [RFX_COST_DIRECT_MAC] = 7.622,
         [RFX_COST_WINOGRAD_MAC] = 9.413,
         [RFX_COST_OPENBLAS_MAC] = 20.38,
         [RFX_COST_CHANNEL_MAC] = 9.365,
         [RFX_COST_POOL_TAP] = 89.59,
         [RFX_COST_FEW_MAC] = 15.12,
         [RFX_COST_OTHER_MAC] = 8.909,
         [RFX_COST_CONV_ELEMENT] = 123.1,
         [RFX_COST_TILE_ELEMENT] = 64.91,
         [RFX_COST_TILE_FACTOR] = 47.76,
         [RFX_COST_ELEMENT] = 94.47,
         [RFX_COST_ACT_ELEMENT] = 320.7,
         [RFX_COST_SUM_ELEMENT] = 132.3,
         [RFX_COST_IMAGE_ELEMENT] = 1979,
         [RFX_COST_RUN] = 1.372e+04,
         [RFX_COST_STEP] = 4.868e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_WEIGHT_BYTE] = 10.91,
         [RFX_COST_SHARED_BYTE] = 3.624,
         [RFX_COST_PLAIN_BYTE] = 1.844,
         [RFX_COST_COLD_BYTE] = 13.21,
         [RFX_COST_AHEAD_BYTE] = 13.13,
         [RFX_COST_DRAM_BYTE] = 19.14,
         [RFX_COST_LOAD_BYTE] = 536.3,
         [RFX_COST_SPILL_BYTE] = 2500,
         [RFX_COST_DECODING] = 1,
     }},
};
/* clang-format on */
#endif
