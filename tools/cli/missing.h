/* Finds the output pixels that depend on missing pixels of the image (--nodata).
 *
 * An output pixel is marked when a missing sample lies in its receptive field, or only when one
 * lies at the centre of its receptive field. Receptive fields end at operators that see a whole
 * map. The marks are found before the run from image and network alone, so they do not depend on
 * the plan. Outputs that are no maps of rows and columns, or have no place in the image, have no
 * marks. */
#ifndef RFX_TOOLS_CLI_MISSING_H
#define RFX_TOOLS_CLI_MISSING_H

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"

/* Marks of one output: h rows of w bits, one bit for each pixel. */
struct rfx_missing_map {
    int64_t h, w; /* 0: the output has no marks */
    size_t row_bytes;
    unsigned char *bits;
};

struct rfx_missing {
    struct rfx_memory *mem;
    int n; /* outputs */
    struct rfx_missing_map *maps;
    int64_t pixels; /* missing pixels of the image */
    size_t row_bytes;
    float *row; /* some pixels of an output, as many as the widest row */
};

/* Reads the image, which was opened with nodata.flags for as many channels as the network takes,
 * and finds the marks. most_bytes: bytes that may be held; 0: any number. Statuses: those of
 * rfx_image_read, BUDGET_IMPOSSIBLE, OUT_OF_MEMORY. Freed by rfx_missing_release. */
RFX_NODISCARD enum rfx_status rfx_missing_find(struct rfx_memory *mem,
                                               const struct rfx_graph *graph,
                                               struct rfx_image *image, bool middle,
                                               size_t most_bytes, struct rfx_missing *out,
                                               struct rfx_error *err);

/* Zeroed marks are fine. */
void rfx_missing_release(struct rfx_missing *missing);

/* Bytes that the marks hold. */
size_t rfx_missing_bytes(const struct rfx_missing *missing);

/* Whether a pixel of `rect` of output k is marked. */
bool rfx_missing_any(const struct rfx_missing *missing, int k, struct rfx_rect rect);

/* Returns columns [x0, x1) of row y of output k, copied from the view with marked pixels as NaN.
 * Valid until the next call. */
struct rfx_view rfx_missing_row(const struct rfx_missing *missing, int k, int64_t channels,
                                int64_t y, int64_t x0, int64_t x1, const struct rfx_view *view);
#endif
