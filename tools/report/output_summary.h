/* Summary of an output for a report: figures and a histogram of its values, and a small image.
 *
 * The histogram is made in one pass without knowing the range of the values before. A bin is as
 * wide as a power of two and begins at a multiple of its width, so bins are joined in pairs exactly
 * when the range grows. Invariants: 1. every finite value is counted in its bin; 2. the bins depend
 * only on the smallest and the largest value, not on the order of the values; 3. NaN and infinities
 * are counted separately and are in no bin, range or mean.
 *
 * The small image shows the first channels of a map that arrives in rectangles. Each cell of it is
 * the mean of the finite pixels of its part of the map. */
#ifndef RFX_TOOLS_REPORT_OUTPUT_SUMMARY_H
#define RFX_TOOLS_REPORT_OUTPUT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

enum { RFX_SKETCH_BINS = 64 };

struct rfx_value_sketch { /* all zeros: no values yet */
    int64_t finite, nan, plus_inf, minus_inf;
    double sum;
    float min, max;                 /* of the finite values, if there are any */
    int exponent;                   /* a bin is 2^exponent wide */
    int64_t first;                  /* bins[i] begins at (first + i) * 2^exponent */
    uint64_t bins[RFX_SKETCH_BINS]; /* zero outside of the bins from the smallest to the largest
                                       value's */
};

void rfx_value_sketch_add(struct rfx_value_sketch *sketch, const float *values, int64_t n);

/* Returns the lower edge of bin i. With i equal to the number of used bins, returns the upper edge
 * of the last bin. */
double rfx_value_sketch_edge(const struct rfx_value_sketch *sketch, int i);

/* Returns the number of bins from that of the smallest value to that of the largest value; 0 when
 * there are no finite values. */
int rfx_value_sketch_used(const struct rfx_value_sketch *sketch);

enum { RFX_PREVIEW_SIDE = 160, RFX_PREVIEW_CHANNELS = 4 };

struct rfx_map_preview { /* all zeros: no preview */
    struct rfx_memory *mem;
    int64_t h, w, c;              /* of the map */
    int64_t rows, cols, channels; /* of the preview */
    double *sum;                  /* [channels, rows, cols] */
    uint32_t *count;              /* likewise */
};

/* Returns whether a tensor is a map with more than one pixel. */
bool rfx_map_preview_suits(const struct rfx_tensor *tensor);

/* Returns the bytes of memory that the preview of a tensor takes. */
size_t rfx_map_preview_bytes(const struct rfx_tensor *tensor);

/* Creates an empty preview. The caller frees it with rfx_map_preview_free. Status: OUT_OF_MEMORY.
 */
RFX_NODISCARD enum rfx_status rfx_map_preview_create(struct rfx_memory *mem,
                                                     const struct rfx_tensor *tensor,
                                                     struct rfx_map_preview *preview,
                                                     struct rfx_error *err);
void rfx_map_preview_free(struct rfx_map_preview *preview);

/* Adds the pixels of a rectangle. */
void rfx_map_preview_add(struct rfx_map_preview *preview, struct rfx_rect rect,
                         const struct rfx_view *view);

/* Returns the mean of a cell, or NaN when no pixel of the cell was finite. */
double rfx_map_preview_mean(const struct rfx_map_preview *preview, int64_t channel, int64_t row,
                            int64_t col);
#endif
