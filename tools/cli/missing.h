/* Which pixels of the outputs are made of missing pixels of the picture (--nodata).
 *
 * A pixel of a map is marked when a sample of the picture that is missing lies in its receptive
 * field, or, asked for so, in the middle of it. Operators that see all of a map are not passed
 * through. Found from the picture and the network alone, before the run: marks do not depend on the
 * plan. What is no map of rows and columns, or has no place in the picture, is not marked. */
#ifndef RFX_TOOLS_CLI_MISSING_H
#define RFX_TOOLS_CLI_MISSING_H

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"

/* The marks of an output: h rows, a bit a pixel. */
struct rfx_missing_map {
    int64_t h, w; /* 0: not marked */
    size_t row_bytes;
    unsigned char *bits;
};

struct rfx_missing {
    struct rfx_memory *mem;
    int n; /* outputs */
    struct rfx_missing_map *maps;
    int64_t pixels; /* of the picture that are missing */
    size_t row_bytes;
    float *row; /* some pixels of an output, as many as the widest row */
};

/* Reads the image, which is opened with nodata.flags for as many channels as the network takes.
 * most_bytes: that may be held; 0: any number. Statuses of rfx_image_read; BUDGET_IMPOSSIBLE,
 * OUT_OF_MEMORY. To be released. */
RFX_NODISCARD enum rfx_status rfx_missing_find(struct rfx_memory *mem,
                                               const struct rfx_graph *graph,
                                               struct rfx_image *image, bool middle,
                                               size_t most_bytes, struct rfx_missing *out,
                                               struct rfx_error *err);

/* Zeros are fine. */
void rfx_missing_release(struct rfx_missing *missing);

/* What it holds. */
size_t rfx_missing_bytes(const struct rfx_missing *missing);

/* Whether a pixel of `rect` of output k is marked. */
bool rfx_missing_any(const struct rfx_missing *missing, int k, struct rfx_rect rect);

/* Columns [x0, x1) of row y of output k from the view, marked pixels as NaN: valid until the next
 * call. */
struct rfx_view rfx_missing_row(const struct rfx_missing *missing, int k, int64_t channels,
                                int64_t y, int64_t x0, int64_t x1, const struct rfx_view *view);
#endif
