/* What the units of the cost model take, in picoseconds of one thread. Made by
 * tools/scripts/calibrate.py; not to be edited.
 *
 * AMD EPYC; second and shared cache: 1024K and 32768K.
 * Measured: avx512. The others are avx2's, or those of what was
 * measured; neon cannot be measured on x86. Meetings of threads: assumed. */
#ifndef RFX_TILER_SEARCH_COST_CONSTANTS_H
#define RFX_TILER_SEARCH_COST_CONSTANTS_H

static const struct {
    const char *kernels; /* the first: for kernels of any other name */
    double picoseconds[RFX_COST_UNITS];
} cost_sets[] = {
    {"base",
     {
         [RFX_COST_DIRECT_MAC] = 9.683,
         [RFX_COST_OPENBLAS_MAC] = 21.56,
         [RFX_COST_CHANNEL_MAC] = 0,
         [RFX_COST_FEW_MAC] = 16.88,
         [RFX_COST_OTHER_MAC] = 10.81,
         [RFX_COST_CONV_ELEMENT] = 381.7,
         [RFX_COST_ELEMENT] = 198.6,
         [RFX_COST_ACT_ELEMENT] = 355,
         [RFX_COST_SUM_ELEMENT] = 2030,
         [RFX_COST_IMAGE_ELEMENT] = 6097,
         [RFX_COST_RUN] = 4.924e+04,
         [RFX_COST_STEP] = 2.365e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_SHARED_BYTE] = 0.1853,
         [RFX_COST_DRAM_BYTE] = 23.12,
         [RFX_COST_LOAD_BYTE] = 874.4,
     }},
    {"neon",
     {
         [RFX_COST_DIRECT_MAC] = 9.683,
         [RFX_COST_OPENBLAS_MAC] = 21.56,
         [RFX_COST_CHANNEL_MAC] = 0,
         [RFX_COST_FEW_MAC] = 16.88,
         [RFX_COST_OTHER_MAC] = 10.81,
         [RFX_COST_CONV_ELEMENT] = 381.7,
         [RFX_COST_ELEMENT] = 198.6,
         [RFX_COST_ACT_ELEMENT] = 355,
         [RFX_COST_SUM_ELEMENT] = 2030,
         [RFX_COST_IMAGE_ELEMENT] = 6097,
         [RFX_COST_RUN] = 4.924e+04,
         [RFX_COST_STEP] = 2.365e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_SHARED_BYTE] = 0.1853,
         [RFX_COST_DRAM_BYTE] = 23.12,
         [RFX_COST_LOAD_BYTE] = 874.4,
     }},
    {"avx2",
     {
         [RFX_COST_DIRECT_MAC] = 9.683,
         [RFX_COST_OPENBLAS_MAC] = 21.56,
         [RFX_COST_CHANNEL_MAC] = 0,
         [RFX_COST_FEW_MAC] = 16.88,
         [RFX_COST_OTHER_MAC] = 10.81,
         [RFX_COST_CONV_ELEMENT] = 381.7,
         [RFX_COST_ELEMENT] = 198.6,
         [RFX_COST_ACT_ELEMENT] = 355,
         [RFX_COST_SUM_ELEMENT] = 2030,
         [RFX_COST_IMAGE_ELEMENT] = 6097,
         [RFX_COST_RUN] = 4.924e+04,
         [RFX_COST_STEP] = 2.365e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_SHARED_BYTE] = 0.1853,
         [RFX_COST_DRAM_BYTE] = 23.12,
         [RFX_COST_LOAD_BYTE] = 874.4,
     }},
    {"avx512",
     {
         [RFX_COST_DIRECT_MAC] = 9.683,
         [RFX_COST_OPENBLAS_MAC] = 21.56,
         [RFX_COST_CHANNEL_MAC] = 0,
         [RFX_COST_FEW_MAC] = 16.88,
         [RFX_COST_OTHER_MAC] = 10.81,
         [RFX_COST_CONV_ELEMENT] = 381.7,
         [RFX_COST_ELEMENT] = 198.6,
         [RFX_COST_ACT_ELEMENT] = 355,
         [RFX_COST_SUM_ELEMENT] = 2030,
         [RFX_COST_IMAGE_ELEMENT] = 6097,
         [RFX_COST_RUN] = 4.924e+04,
         [RFX_COST_STEP] = 2.365e+05,
         [RFX_COST_MEETING] = 5e+06,
         [RFX_COST_SHARED_BYTE] = 0.1853,
         [RFX_COST_DRAM_BYTE] = 23.12,
         [RFX_COST_LOAD_BYTE] = 874.4,
     }},
};
#endif
