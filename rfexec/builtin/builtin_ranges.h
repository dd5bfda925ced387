/* The ranges of the tensors of built-in networks that are run on bytes. */
#ifndef RFX_RFEXEC_BUILTIN_BUILTIN_RANGES_H
#define RFX_RFEXEC_BUILTIN_BUILTIN_RANGES_H

struct rfx_builtin_range {
    const char *tensor;
    float lo, hi;
};

struct rfx_builtin_ranges {
    const char *network;
    int n;
    const struct rfx_builtin_range *ranges;
};

/* The seed of the weights with which the ranges were measured. */
enum { RFX_BUILTIN_RANGES_SEED = 0 };

/* Ends with a row without a network. builtin_ranges.c is written by
 * tools/scripts/make_builtin_ranges.py. */
extern const struct rfx_builtin_ranges rfx_builtin_ranges[];
#endif
