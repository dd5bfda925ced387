/* The values of an output in a few numbers: range, mean, and a histogram that is made in one pass
 * without knowing the range before.
 *
 * A bin is as wide as a power of two and begins at a multiple of it, so bins join in pairs exactly
 * when the range grows. Invariants: 1. every finite value is counted in the bin it lies in; 2. the
 * bins follow from the least and the largest value alone, whatever the order of the values; 3. NaN
 * and infinities are counted by themselves and are in no bin, range or mean. */
/* A small picture of a map that comes in parts: the first channels, each cell the mean of the
 * pixels it stands for. Pixels that are no finite numbers are left out of the means. */
#ifndef RFX_TOOLS_REPORT_OUTPUT_SUMMARY_H
#define RFX_TOOLS_REPORT_OUTPUT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

enum { RFX_SKETCH_BINS = 64 };

struct rfx_value_sketch { /* all zero: no values */
    int64_t finite, nan, plus_inf, minus_inf;
    double sum;
    float min, max; /* of the finite values, if there are some */
    int exponent;   /* a bin is 2^exponent wide */
    int64_t first;  /* bins[i] begins at (first + i) * 2^exponent */
    uint64_t
        bins[RFX_SKETCH_BINS]; /* those from the least to the largest value's are not 0 alone */
};

void rfx_value_sketch_add(struct rfx_value_sketch *sketch, const float *values, int64_t n);

/* Where bin i begins; i may be the number of bins that are used: where the last one ends. */
double rfx_value_sketch_edge(const struct rfx_value_sketch *sketch, int i);

/* Bins from the least value's to the largest one's; 0: there are no finite values. */
int rfx_value_sketch_used(const struct rfx_value_sketch *sketch);

enum { RFX_PREVIEW_SIDE = 160, RFX_PREVIEW_CHANNELS = 4 };

struct rfx_map_preview { /* all zero: of nothing */
    struct rfx_memory *mem;
    int64_t h, w, c;              /* of the map */
    int64_t rows, cols, channels; /* of the preview */
    double *sum;                  /* [channels, rows, cols] */
    uint32_t *count;              /* likewise */
};

/* Whether a tensor is a map with more than one pixel. */
bool rfx_map_preview_suits(const struct rfx_tensor *tensor);

/* Bytes that the preview of a tensor takes. */
size_t rfx_map_preview_bytes(const struct rfx_tensor *tensor);

/* OUT_OF_MEMORY. Freed with rfx_map_preview_free. */
RFX_NODISCARD enum rfx_status rfx_map_preview_create(struct rfx_memory *mem,
                                                     const struct rfx_tensor *tensor,
                                                     struct rfx_map_preview *preview,
                                                     struct rfx_error *err);
void rfx_map_preview_free(struct rfx_map_preview *preview);

/* Pixels of a rectangle, as sinks get them. */
void rfx_map_preview_add(struct rfx_map_preview *preview, struct rfx_rect rect,
                         const struct rfx_view *view);

/* The mean in a cell; NaN where no pixel was finite. */
double rfx_map_preview_mean(const struct rfx_map_preview *preview, int64_t channel, int64_t row,
                            int64_t col);
#endif
