/* A small picture of a map that comes in parts: the first channels, each cell the mean of the
 * pixels it stands for. Pixels that are no finite numbers are left out of the means. */
#ifndef RFX_TOOLS_PAGE_MAP_PREVIEW_H
#define RFX_TOOLS_PAGE_MAP_PREVIEW_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

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
