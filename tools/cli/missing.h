/* Finds the output pixels that depend on missing pixels of the image (--nodata).
 *
 * --nodata-mark field marks an output pixel when any sample in its receptive field is missing.
 * --nodata-mark centre marks it only when the sample at the centre of its receptive field is
 * missing. Operators that read a whole feature map do not enlarge receptive fields. The marks are
 * found before the run from image and network alone, so they do not depend on the plan. An output
 * has no marks when it is not a map of rows and columns, or when its pixels have no position in the
 * image. */
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
    float *row; /* buffer for one row of the widest output */
};

/* Reads the whole image and finds the marks of all outputs. `image` was opened with nodata.flags
 * and has as many channels as the network takes. middle: mark by the centre of the receptive field
 * only. most_bytes: limit of the memory that the search may hold; 0: no limit. The caller frees
 * *out with rfx_missing_release. Statuses: those of rfx_image_read, BUDGET_IMPOSSIBLE,
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_missing_find(struct rfx_memory *mem,
                                               const struct rfx_graph *graph,
                                               struct rfx_image *image, bool middle,
                                               size_t most_bytes, struct rfx_missing *out,
                                               struct rfx_error *err);

/* Frees the marks. A struct of zeros is allowed. */
void rfx_missing_release(struct rfx_missing *missing);

/* Returns the number of bytes that the marks occupy. */
size_t rfx_missing_bytes(const struct rfx_missing *missing);

/* Returns whether any pixel in the rectangle `rect` of output k is marked. */
bool rfx_missing_any(const struct rfx_missing *missing, int k, struct rfx_rect rect);

/* Copies columns [x0, x1) of row y of output k from `view`, writes NaN into the marked pixels, and
 * returns a view of the copy. The copy is valid until the next call. */
struct rfx_view rfx_missing_row(const struct rfx_missing *missing, int k, int64_t channels,
                                int64_t y, int64_t x0, int64_t x1, const struct rfx_view *view);
#endif
