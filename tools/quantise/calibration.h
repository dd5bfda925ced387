/* The values that the tensors of a network take on pictures, and the files in which parts of a job
 * pass them on.
 *
 * Such a file is JSON: {"format": "rfexec value counts", "version": 1, "model": "NAME", "size":
 * [rows, columns], "pictures": N, "part": [I, N], "tensors": {"NAME": {"range": [lo, hi], "bins":
 * [bin, count, ...]}}, "sum": "..."}. "size" is that of the first picture; "sum" is a checksum of
 * the other members. */
#ifndef RFX_TOOLS_QUANTISE_CALIBRATION_H
#define RFX_TOOLS_QUANTISE_CALIBRATION_H

#include "rfexec/quantise/quantiser.h"

struct rfx_calibration {
    struct rfx_memory *mem;
    const struct rfx_quantiser *quantiser;
    struct rfx_value_counts *counts; /* per node of the quantiser's graph; without bins where the
                                        tensor is not counted */
    uint64_t *bins;
    size_t bytes; /* of all bins */
    int64_t pictures;
    int part, parts; /* parts 0: all pictures */
};

/* Makes counts of no picture. */
RFX_NODISCARD enum rfx_status rfx_calibration_create(struct rfx_memory *mem,
                                                     const struct rfx_quantiser *quantiser,
                                                     struct rfx_calibration *out,
                                                     struct rfx_error *err);

/* Writes the counts to a file that has its name when it is complete. */
RFX_NODISCARD enum rfx_status rfx_calibration_write(const struct rfx_calibration *calibration,
                                                    const char *path, struct rfx_error *err);

/* Sets the size of the first picture of a file of counts. */
RFX_NODISCARD enum rfx_status rfx_calibration_size(const char *path, int64_t *rows,
                                                   int64_t *columns, struct rfx_error *err);

/* Adds the counts of n files. MALFORMED, with the name of the file: it is no whole file of counts,
 * it is of another network, or the files are not the parts 1 to n of one job, each once. */
RFX_NODISCARD enum rfx_status rfx_calibration_read(struct rfx_calibration *calibration,
                                                   const char *const *paths, int n,
                                                   struct rfx_error *err);

void rfx_calibration_release(struct rfx_calibration *calibration);
#endif
