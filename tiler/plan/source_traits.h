/* What the planner needs to know of an image source: plain data, filled by rfexec/image_source. */
#ifndef RFX_TILER_PLAN_SOURCE_TRAITS_H
#define RFX_TILER_PLAN_SOURCE_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Image rows that the executor asks of a source at a time, so that a source which is read from top
 * to bottom need not keep more; few enough to cost little, many enough to hide the call. */
#define RFX_READ_BAND_ROWS 16

struct rfx_source_traits {
    int64_t h, w, c;    /* the picture as the network sees it */
    bool random_access; /* any rectangle at any time, without a window of rows */
    size_t fixed_bytes; /* decoder state, or the whole decoded picture where the format forces it */
    size_t window_row_bytes; /* memory per row kept in the window; 0 with random access */
    double pass_picoseconds; /* that reading the picture once more takes; 0 with random access */
};
#endif
